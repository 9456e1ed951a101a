// Runs a model in onnxruntime-web's WebAssembly, as worker.py says: node web.mjs MODEL.onnx INPUTS RESULTS

import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import { createInterface } from "node:readline";

const ort = createRequire(new URL("../browser/package.json", import.meta.url))("onnxruntime-web");
const [model, inputs, results] = process.argv.slice(2);
// The first name is numpy's, the second the runtime's. Halves are kept as their bits.
const KINDS = [
  ["float32", "float32", Float32Array], ["float64", "float64", Float64Array], ["float16", "float16", globalThis.Float16Array ?? Uint16Array],
  ["bool", "bool", Uint8Array], ["int8", "int8", Int8Array], ["uint8", "uint8", Uint8Array], ["int16", "int16", Int16Array],
  ["uint16", "uint16", Uint16Array], ["int32", "int32", Int32Array], ["uint32", "uint32", Uint32Array],
  ["int64", "int64", BigInt64Array], ["uint64", "uint64", BigUint64Array],
];

function read(folder) {
  const listed = JSON.parse(readFileSync(join(folder, "tensors.json"), "utf8"));
  return Object.fromEntries(listed.map(({ name, dtype, shape }, at) => {
    const [, type, array] = KINDS.find(([kind]) => kind === dtype);
    const bytes = new Uint8Array(readFileSync(join(folder, `${at}.bin`)));
    return [name, new ort.Tensor(type, new array(bytes.buffer, 0, bytes.length / array.BYTES_PER_ELEMENT), shape)];
  }));
}

function write(folder, found) {
  mkdirSync(folder, { recursive: true });
  const listed = Object.entries(found).map(([name, { type, dims, data }], at) => {
    writeFileSync(join(folder, `${at}.bin`), new Uint8Array(data.buffer, data.byteOffset, data.byteLength));
    return { name, dtype: KINDS.find(([, kind]) => kind === type)[0], shape: dims };
  });
  writeFileSync(join(folder, "tensors.json"), JSON.stringify(listed));
}

async function main() {
  let session, given;
  try {
    ort.env.wasm.numThreads = 1;
    ort.env.logLevel = "fatal";
    given = read(inputs);
    session = await ort.InferenceSession.create(readFileSync(model), { executionProviders: ["wasm"], logSeverityLevel: 4 });
    write(results, await session.run(given));
  } catch (problem) {
    console.log(`@note ${String(problem.message ?? problem).replace(/\s+/g, " ").slice(0, 300)}`);
    return;
  }
  console.log("@ready");
  for await (const line of createInterface({ input: process.stdin })) {
    const times = Number.parseInt(line, 10);
    const begin = performance.now();
    for (let run = 0; run < times; run++) await session.run(given);
    console.log(`@${(performance.now() - begin) / 1000 / times}`);
  }
}

await main();
