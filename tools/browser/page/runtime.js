// onnxruntime-web: what runs of a model, and with which results.

export const BACKENDS = [
  { name: "webgpu", label: "WebGPU", script: "/ort/ort.webgpu.min.mjs" },
  { name: "wasm", label: "WebAssembly", script: "/ort/ort.wasm.min.mjs" },
];

// The runtime prints its profile to the console, an event a line, by the function that is there when it is loaded.
const print = console.log.bind(console);
let heard = null;
console.log = (...words) => (heard ? heard.push(words.join(" ")) : print(...words));

/** The module of a backend. Each has a runtime of its own. */
export async function runtime({ script }) {
  const ort = await import(script);
  ort.env.wasm.wasmPaths = "/ort/";
  ort.env.wasm.numThreads = 1;
  ort.env.logLevel = "error";
  return ort;
}

/** Which adapter WebGPU has; throws why there is none. */
export async function adapter() {
  if (!navigator.gpu) throw new Error("this browser has no WebGPU");
  const found = await navigator.gpu.requestAdapter();
  if (!found) throw new Error("this browser has WebGPU, but no adapter for it");
  const { vendor, architecture, description } = found.info;
  return [vendor, architecture, description].filter(Boolean).join(" ") || "an adapter without a name";
}

export async function open(ort, backend, file, options = {}) {
  try {
    return await ort.InferenceSession.create(file.bytes, { executionProviders: [backend.name], logSeverityLevel: 3, ...options });
  } catch (problem) {
    throw new Error(`${file.name} does not load in ${backend.label}: ${problem.message ?? problem}`);
  }
}

/** Numbers between 0 and 1, the same each time. */
function* numbers(seed) {
  for (let state = seed >>> 0; ; ) {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    yield ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  }
}

const ARRAYS = {
  float32: Float32Array, float64: Float64Array, float16: globalThis.Float16Array, bool: Uint8Array, int8: Int8Array, uint8: Uint8Array,
  int16: Int16Array, uint16: Uint16Array, int32: Int32Array, uint32: Uint32Array, int64: BigInt64Array, uint64: BigUint64Array,
};

/** Random inputs of a session: around 0 for floats, 0 or 1 for integers. */
export function feeds(ort, session, file) {
  const draw = numbers(1);
  const next = () => draw.next().value;
  const made = session.inputMetadata.map(({ name, type, shape }) => {
    const kind = ARRAYS[type];
    if (!kind) throw new Error(`${file.name}: this page cannot make an input of type ${type} for ${name}`);
    const dims = shape.map((dim) => (typeof dim === "number" && dim > 0 ? dim : 1));
    const one = type.startsWith("float") ? () => 2 * next() - 1 : /64$/.test(type) ? () => BigInt(next() < 0.5 ? 0 : 1) : () => (next() < 0.5 ? 0 : 1);
    return [name, new ort.Tensor(type, kind.from({ length: dims.reduce((a, b) => a * b, 1) }, one), dims)];
  });
  return Object.fromEntries(made);
}

/** Results of a run as arrays that stay when the session goes. */
export async function results(session, inputs, file) {
  let found;
  try {
    found = await session.run(inputs);
  } catch (problem) {
    throw new Error(`${file.name} does not run: ${problem.message ?? problem}`);
  }
  const kept = {};
  for (const [name, tensor] of Object.entries(found)) {
    kept[name] = Array.from(await tensor.getData(), Number);
    tensor.dispose();
  }
  return kept;
}

/**
 * The nodes of one inference by the runtime's profile: Transposes, elements that they wrote, all nodes, and nodes on the CPU; and how far its
 * results are from the right ones.
 */
export async function counted(ort, backend, file, right) {
  const session = await open(ort, backend, file, { enableProfiling: true });
  const found = await results(session, feeds(ort, session, file), file);
  heard = [];
  session.endProfiling();
  const lines = heard;
  heard = null;
  await session.release();
  const events = lines.filter((line) => line.startsWith("{")).map((line) => JSON.parse(line.replace(/,\s*$/, "")));
  const nodes = events.filter(({ cat, name }) => cat === "Node" && name.endsWith("_kernel_time")).map(({ args }) => args);
  if (!nodes.length) throw new Error(`${file.name}: onnxruntime-web gave no profile`);
  const moves = nodes.filter(({ op_name: op }) => op === "Transpose");
  const elements = ({ output_type_shape: shapes = [] }) =>
    shapes.flatMap((shape) => Object.values(shape)).reduce((sum, dims) => sum + dims.reduce((a, b) => a * b, 1), 0);
  return {
    transposes: moves.length,
    elements: moves.reduce((sum, node) => sum + elements(node), 0),
    nodes: nodes.length,
    difference: distance(found, right),
    cpu: nodes.filter(({ provider }) => provider?.startsWith("CPU")).length,
  };
}

/** The largest distance of any two numbers, over the largest number of `right`. */
export function distance(found, right) {
  let most = 0;
  for (const [name, numbers] of Object.entries(right)) {
    const other = found[name];
    if (!other || other.length !== numbers.length) return Infinity;
    let [largest, far] = [1e-6, 0];
    for (let at = 0; at < numbers.length; at++) {
      const same = Object.is(other[at], numbers[at]) || other[at] === numbers[at];
      const apart = same ? 0 : Math.abs(other[at] - numbers[at]);
      far = Number.isNaN(apart) ? Infinity : Math.max(far, apart);
      if (Number.isFinite(numbers[at])) largest = Math.max(largest, Math.abs(numbers[at]));
    }
    most = Math.max(most, far / largest);
  }
  return most;
}
