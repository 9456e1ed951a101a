// The page on WebGPU and on WebAssembly: Transposes that ran, results, and what it says of files that are no models.
//
// RELAYOUT names the program. MODELS is a folder with shuffle.onnx and, for the second test, shufflenet_v2_x1_0.onnx. Screenshots are
// written there. The second test takes times if ROUNDS says how many rounds.

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdtempSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { serve } from "../serve.mjs";
import { open, start } from "./browser.mjs";

// Of a result, over the largest number.
const FAR = 1e-4;
const { RELAYOUT: program, MODELS: models } = process.env;
if (!program || !models) throw new Error("RELAYOUT or MODELS is not set; tools/browser/test runs these tests");

let browser, folder;
before(async () => {
  folder = mkdtempSync(join(tmpdir(), "relayout-browser-"));
  browser = await start();
});
after(async () => {
  await browser?.close();
  rmSync(folder, { recursive: true, force: true });
});

/** Opens the page for two files; gives what it came to. The server ends with the test. */
async function shown(t, original, ours, options) {
  const { url, close } = await serve({ original, ours });
  t.after(close);
  const opened = await open(browser, url, options);
  t.after(() => opened.context.close());
  assert.deepEqual(opened.problems, []);
  return opened;
}

function optimized(model, name) {
  const path = join(folder, `${name}.webgpu.onnx`);
  execFileSync(program, ["optimize", model, "-o", path, "--target", "ort-nhwc", "--provider", "webgpu", "-q"], { stdio: ["ignore", "ignore", "inherit"] });
  return path;
}

const NAMES = { webgpu: "WebGPU", wasm: "WebAssembly" };

/** A model and ours: results agree in every backend, and on WebGPU at most `left` of at least `before` Transposes run. */
async function compared(t, name, { before: least, left, rounds }) {
  const model = join(models, `${name}.onnx`);
  const { page, state, report } = await shown(t, model, optimized(model, name), { rounds });
  const said = await page.locator("main").innerText();
  assert.equal(state, "done", said);
  await page.screenshot({ path: join(models, `${name}.png`), fullPage: true });
  assert.ok(statSync(join(models, `${name}.png`)).size > 10_000, "the screenshot shows something");
  for (const [backend, label] of Object.entries(NAMES)) {
    await t.test(`${name} in ${label}`, async (t) => {
      const row = report.backends[backend];
      if (row.skipped) {
        assert.match(said, new RegExp(`${label}[\\s\\S]*Not run: `));
        return t.skip(`${label}: ${row.skipped}`);
      }
      const { original, ours, time } = row;
      t.diagnostic(`${row.device ?? label}: Transposes ${original.transposes} to ${ours.transposes}, ${original.elements} to ${ours.elements} elements, ${original.cpu} and ${ours.cpu} of ${original.nodes} and ${ours.nodes} nodes on the CPU${time ? `; ${time.original.toFixed(1)} to ${time.ours.toFixed(1)} ms` : ""}`);
      assert.ok(original.difference <= FAR && ours.difference <= FAR, `results differ by ${original.difference} and ${ours.difference}`);
      if (rounds) assert.ok(time.original > 0 && time.ours > 0 && time.rounds === rounds);
      else assert.equal(time, undefined);
      const cells = await page.locator("table", { has: page.locator(`xpath=preceding-sibling::h2[1][starts-with(., "${label}")]`) }).locator("tbody tr").first().locator("td").allInnerTexts();
      assert.deepEqual(cells, [original.transposes, ours.transposes].map((n) => n.toLocaleString("en")));
      if (backend === "webgpu") {
        assert.ok(original.transposes >= least, `the original has only ${original.transposes} Transposes`);
        assert.ok(ours.transposes <= left && ours.elements < original.elements, `${ours.transposes} Transposes are left`);
        assert.equal(ours.cpu, original.cpu);
      }
    });
  }
}

test("shuffles of channels need no Transposes on WebGPU", (t) => compared(t, "shuffle", { before: 4, left: 1, rounds: 2 }));

test("a ShuffleNet has at most 2 Transposes on WebGPU", (t) =>
  compared(t, "shufflenet_v2_x1_0", { before: 40, left: 2, rounds: Number(process.env.ROUNDS ?? 0) }));

test("without WebGPU the page says so, and WebAssembly runs", async (t) => {
  const model = join(models, "shuffle.onnx");
  const { page, state, report } = await shown(t, model, model, { rounds: 1, gpu: false });
  assert.equal(state, "done");
  assert.deepEqual(await page.locator(".skipped").allInnerTexts(), ["Not run: this browser has no WebGPU."]);
  assert.deepEqual(Object.keys(report.backends.webgpu), ["label", "skipped"]);
  const { original, ours } = report.backends.wasm;
  assert.deepEqual([original.transposes, original.difference], [ours.transposes, ours.difference]);
  assert.ok(original.transposes > 0);
});

test("a file that is no model gets one message", async (t) => {
  const broken = join(folder, "broken.onnx");
  writeFileSync(broken, "This is no model.");
  const model = join(models, "shuffle.onnx");
  for (const [original, ours] of [[broken, model], [model, broken]]) {
    const { page, state } = await shown(t, original, ours, { rounds: 0 });
    assert.equal(state, "failed");
    const messages = await page.getByRole("alert").allInnerTexts();
    assert.equal(messages.length, 1);
    assert.match(messages[0], /^broken\.onnx does not load in WebAssembly: ./);
    assert.equal(await page.locator("table").count(), 0);
  }
});

test("a file that is not there gets one message", async (t) => {
  const model = join(models, "shuffle.onnx");
  const { page, state } = await shown(t, model, join(folder, "nowhere.onnx"), { rounds: 0 });
  assert.equal(state, "failed");
  assert.deepEqual(await page.getByRole("alert").allInnerTexts(), ["nowhere.onnx cannot be read: the server answers 404"]);
});

test("nothing but the page, the runtime and the two files is served", async (t) => {
  const model = join(models, "shuffle.onnx");
  const { url, close } = await serve({ original: model, ours: model });
  t.after(close);
  for (const path of ["package.json", "../serve.mjs", "ort/../../package.json", "ort/%2e%2e/package.json", "tests/page.test.mjs"]) {
    assert.equal((await fetch(url + path)).status, 404, path);
  }
  assert.equal((await fetch(`${url}original.onnx`)).status, 200);
});
