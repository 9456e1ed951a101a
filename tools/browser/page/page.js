// Runs the original and ours in each backend, one after the other, and shows figures of both.
//
// In the address: ?rounds=N times so many rounds, 11 by default, 0 for no times. When all is done `data-state` of the page is `done`, or
// `failed`, and then the one message is in the element with the role `alert`. `window.report` has the figures.

import { BACKENDS, adapter, counted, feeds, open, results, runtime } from "./runtime.js";
import { beside } from "./timing.js";

const asked = Number.parseInt(new URLSearchParams(location.search).get("rounds") ?? "11", 10);
const rounds = asked >= 0 ? Math.min(asked, 1000) : 11;
const at = (id) => document.getElementById(id);

function element(kind, text, attributes = {}) {
  const made = document.createElement(kind);
  made.textContent = text;
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  return made;
}

/** Says what goes on, and lets the browser draw it. */
async function progress(text) {
  at("progress").textContent = text;
  await new Promise((resolve) => setTimeout(resolve, 20));
}

async function fetched(address, name) {
  const answer = await fetch(address);
  if (!answer.ok) throw new Error(`${name} cannot be read: the server answers ${answer.status}`);
  return { name, bytes: new Uint8Array(await answer.arrayBuffer()) };
}

const three = (number) => (number >= 1000 ? Math.round(number).toLocaleString("en") : String(Number(number.toPrecision(3))));
const within = ({ low, median, high }) => `${median.toFixed(2)} (${low.toFixed(2)} to ${high.toFixed(2)})`;
const small = (number) => (number === 0 ? "0" : number.toExponential(0));

function table({ label, device, original, ours, time }) {
  const rows = [
    ["Transposes that ran", original.transposes, ours.transposes, (n) => n.toLocaleString("en")],
    ["Elements that they wrote", original.elements, ours.elements, (n) => n.toLocaleString("en")],
    ["Nodes that ran", original.nodes, ours.nodes, (n) => n.toLocaleString("en")],
    ["Difference", original.difference, ours.difference, small],
  ];
  if (time) rows.push([`Time of an inference in ms, median of ${time.rounds}`, time.original, time.ours, three]);
  const made = element("table", "");
  const head = made.createTHead().insertRow();
  for (const text of ["", "original", "ours"]) head.append(element("th", text, { scope: "col" }));
  const body = made.createTBody();
  for (const [name, before, after, shown] of rows) {
    const row = body.insertRow();
    row.append(element("th", name, { scope: "row" }), element("td", shown(before)));
    row.append(element("td", shown(after), name !== "Difference" && after < before ? { class: "better" } : {}));
  }
  const said = element("p", time ? `The original takes ${within(time.faster)} times as long as ours; control ${within(time.control)}.` : "");
  at("tables").append(element("h2", device ? `${label}: ${device}` : label), made, said);
}

/** How long the files take in a backend, in turns. */
async function timed(ort, backend, files) {
  await progress(`${backend.label}: timing ${rounds} rounds.`);
  const [sessions, runs] = [[], []];
  for (const file of Object.values(files)) {
    const session = await open(ort, backend, file);
    const inputs = feeds(ort, session, file);
    sessions.push(session);
    runs.push(() => results(session, inputs, file));
  }
  const time = await beside(...runs, rounds);
  for (const session of sessions) await session.release();
  return time;
}

/** One backend: what runs, how far results are from the right ones, and how long it takes. */
async function measured(backend, files, right) {
  const ort = await runtime(backend);
  const row = { label: backend.label };
  for (const [name, file] of Object.entries(files)) {
    await progress(`${backend.label}: counting ${file.name}.`);
    row[name] = await counted(ort, backend, file, right);
  }
  return rounds ? { ...row, time: await timed(ort, backend, files) } : row;
}

/** Results of the original in WebAssembly, as it is. Ours is loaded too, so that a file that is no model is named at once. */
async function reference({ original, ours }) {
  const backend = BACKENDS.find(({ name }) => name === "wasm");
  const ort = await runtime(backend);
  const session = await open(ort, backend, original, { graphOptimizationLevel: "disabled" });
  const right = await results(session, feeds(ort, session, original), original);
  await session.release();
  await (await open(ort, backend, ours, { graphOptimizationLevel: "disabled" })).release();
  return right;
}

async function main() {
  const names = await (await fetch("/models.json")).json();
  at("files").textContent = `Original: ${names.original}. Ours: ${names.ours}.`;
  const files = { original: await fetched("/original.onnx", names.original), ours: await fetched("/ours.onnx", names.ours) };
  await progress("Computing the right results.");
  const right = await reference(files);
  window.report = { rounds, files: names, backends: {} };
  for (const backend of BACKENDS) {
    let device;
    try {
      if (backend.name === "webgpu") device = await adapter();
    } catch ({ message }) {
      window.report.backends[backend.name] = { label: backend.label, skipped: message };
      at("tables").append(element("h2", backend.label), element("p", `Not run: ${message}.`, { class: "skipped" }));
      continue;
    }
    const row = { ...(await measured(backend, files, right)), device };
    window.report.backends[backend.name] = row;
    table(row);
  }
  at("progress").remove();
  at("notes").hidden = false;
}

try {
  await main();
  document.documentElement.dataset.state = "done";
} catch (problem) {
  at("tables").replaceChildren();
  at("progress").replaceWith(element("p", problem.message ?? String(problem), { role: "alert" }));
  document.documentElement.dataset.state = "failed";
}
