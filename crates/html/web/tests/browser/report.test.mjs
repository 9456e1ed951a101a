// Reports in headless Chromium: what is on them, search, clicks, keyboard, colours, accessibility, size, printing.
//
// RELAYOUT names the program. MODELS may name a folder with models of the corpus; then five of them are looked at too, and PICTURES
// names a folder for their screenshots.

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { existsSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { after, before, test } from "node:test";
import { fileURLToPath, pathToFileURL } from "node:url";
import { gunzipSync } from "node:zlib";
import { open, start } from "./browser.mjs";

const here = dirname(fileURLToPath(import.meta.url));
const testdata = join(here, "../../../../../testdata");
const axe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
const { RELAYOUT: program, MODELS: models, PICTURES: pictures } = process.env;
if (!program) throw new Error("RELAYOUT names no program; tools/html runs these tests");

let browser, folder;
before(async () => {
  folder = mkdtempSync(join(tmpdir(), "relayout-report-"));
  browser = await start();
});
after(async () => {
  await browser?.close();
  rmSync(folder, { recursive: true, force: true });
});

/** Runs the program with words that make a page; gives the path of it. */
function report(name, ...words) {
  const path = join(folder, `${name}.html`);
  execFileSync(program, [...words, "--html", path], { stdio: ["ignore", "ignore", "inherit"], maxBuffer: 1 << 28 });
  return path;
}

/** A model of the repository, or of the folder of models, unpacked. */
function model(name) {
  const plain = [join(testdata, name), models && join(models, name)].find((path) => path && existsSync(path));
  if (plain) return plain;
  const path = join(folder, name);
  writeFileSync(path, gunzipSync(readFileSync(join(models, `${name}.gz`))));
  return path;
}

/** What axe-core finds wrong, in words. */
async function violations(page) {
  const session = await page.context().newCDPSession(page);
  // The page allows no script of others but through the debugger.
  await session.send("Runtime.evaluate", { expression: axe });
  const { violations: found } = await page.evaluate(() => window.axe.run(document, { resultTypes: ["violations"] }));
  return found.map((v) => `${v.id}: ${v.help}: ${v.nodes.slice(0, 3).map((n) => n.target).join(", ")}`);
}

async function checked(path, options) {
  const opened = await open(browser, path, options);
  assert.deepEqual(await violations(opened.page), []);
  assert.deepEqual(opened.problems, []);
  return opened;
}

const demo = () => report("demo", "explain", model("demo/tf_unet.onnx"));

test("the first screen says what is gained and why moves are left", async () => {
  const { page, context, problems } = await checked(demo());
  assert.match(await page.title(), /^tf_unet\.onnx/);
  const figures = await page.locator(".figures .card").allInnerTexts();
  assert.match(figures[0], /Moves[\s\S]*36[\s\S]*2[\s\S]*94 % less/);
  assert.match(figures[1], /71\.1 MB[\s\S]*1\.18 MB/);
  assert.equal(await page.locator(".dearest > li").count(), 2);
  assert.match(await page.locator(".dearest > li").first().innerText(), /Why: .*What it would take for it to go:\s+Can’t go: .*without that: /s);
  const bottom = await page.locator(".figures").boundingBox();
  assert.ok(bottom.y + bottom.height < 900, "the figures are on the first screen");
  assert.deepEqual(problems, []);
  await context.close();
});

test("a search finds a node, and choosing it shows its attributes, candidates and costs", async () => {
  const { page, context, problems } = await open(browser, demo());
  await page.fill("#search", "concatenate_1/concat");
  assert.match(await page.locator("#said").innerText(), /nodes? found/);
  await page.locator("#results button").first().click();
  const details = page.locator("#details");
  await details.getByText("Concat", { exact: true }).waitFor();
  assert.match(await details.innerText(), /Attributes\s+axis\s+3/i);
  await page.fill("#search", "conv2d_14_1/BiasAdd");
  await page.locator("#results button", { hasText: "Conv" }).first().click();
  const table = details.locator("table").first();
  await table.waitFor();
  assert.match(await table.innerText(), /[−+][\d.]+ (ns|us|ms), [−+][\d.]+ (B|kB|MB) moved/);
  await page.fill("#search", "no such name");
  assert.equal(await page.locator("#said").innerText(), "0 nodes found.");
  assert.equal(await page.locator("#results li").count(), 0);
  assert.deepEqual(problems, []);
  await context.close();
});

test("a click on the picture chooses the node that is drawn there, and its twin in the other picture", async () => {
  const { page, context, problems } = await open(browser, demo());
  await page.locator("#graph").scrollIntoViewIfNeeded();
  const canvas = page.locator(".canvas").first();
  await canvas.scrollIntoViewIfNeeded();
  const at = await page.evaluate(() => {
    const pane = document.querySelector(".canvas")._cyreg.cy;
    const node = pane.nodes(".move").filter((n) => {
      const { x, y } = n.renderedPosition();
      return x > 20 && y > 20 && x < pane.width() - 20 && y < pane.height() - 20;
    })[0];
    return { ...node.renderedPosition(), label: node.data("label") };
  });
  await canvas.click({ position: { x: at.x, y: at.y } });
  const text = await page.locator("#details").innerText();
  assert.match(text, /Transpose[\s\S]*This is a move/i);
  assert.ok(text.includes(at.label.split("\n")[0]), `${text} has not ${at.label}`);
  const chosen = await page.evaluate(() => [...document.querySelectorAll(".canvas")].map((box) => box._cyreg.cy.nodes(".chosen").length));
  assert.deepEqual(chosen, [1, 1]);
  assert.deepEqual(problems, []);
  await context.close();
});

test("the table of moves sorts, filters and leads to the graph", async () => {
  const { page, context, problems } = await open(browser, demo());
  const rows = page.locator("#moves tbody tr");
  assert.equal(await rows.count(), 38);
  const header = page.getByRole("columnheader", { name: "Bytes" });
  assert.equal(await header.getAttribute("aria-sort"), "descending");
  const largest = await rows.first().innerText();
  await header.getByRole("button").click();
  assert.equal(await header.getAttribute("aria-sort"), "ascending");
  assert.notEqual(await rows.first().innerText(), largest);
  assert.equal(await rows.last().innerText(), largest);
  await page.fill("#filter", "input:0");
  assert.equal(await rows.count(), 2);
  await rows.first().getByRole("button").click();
  assert.match(await page.locator("#details").innerText(), /input:0/);
  assert.deepEqual(problems, []);
  await context.close();
});

test("everything can be reached with the keyboard, and the list says what the picture says", async () => {
  const { page, context, problems } = await open(browser, demo());
  await page.keyboard.press("Tab");
  assert.equal(await page.evaluate(() => document.activeElement.textContent), "Skip to the table of moves");
  await page.keyboard.press("Enter");
  assert.equal(await page.evaluate(() => document.activeElement.id), "moves");
  const summary = page.locator(".tree > summary").first();
  await summary.focus();
  await page.keyboard.press("Enter");
  const listed = page.locator(".tree").first().locator("li");
  await listed.first().waitFor();
  assert.equal(await listed.filter({ hasText: "move of" }).count(), 36);
  const { drawn, nodes } = await page.evaluate(() => {
    const cy = document.querySelector(".canvas")._cyreg.cy;
    return { drawn: cy.nodes(".move").length, nodes: cy.nodes("[node]").length };
  });
  assert.equal(drawn, 36);
  assert.ok(nodes >= drawn);
  // Every element of the picture is an entry, folded regions with as many nodes.
  const shown = await page.evaluate(() => document.querySelector(".canvas")._cyreg.cy.nodes().map((n) => (n.data("node") === undefined ? Number.parseInt(n.data("label")) : 1)));
  const entries = await page.locator(".tree").first().locator("> ul > li").evaluateAll((all) => all.map((li) => Number.parseInt(li.querySelector(":scope > details > summary")?.textContent ?? "1")));
  assert.deepEqual(entries.sort(), shown.sort());
  await page.keyboard.press("Tab");
  await page.keyboard.press("Enter");
  assert.equal(await page.evaluate(() => document.activeElement.id), "details");
  assert.match(await page.locator("#details h3").innerText(), /^input/);
  assert.deepEqual(problems, []);
  await context.close();
});

test("dark and light are both readable, and the button changes between them", async () => {
  const { page, context } = await checked(demo(), { dark: true });
  const paper = () => page.evaluate(() => getComputedStyle(document.body).backgroundColor);
  const dark = await paper();
  await page.click("#theme");
  assert.notEqual(await paper(), dark);
  await page.click("#theme");
  assert.equal(await paper(), dark);
  assert.equal(await page.locator("#theme").innerText(), "Colours: dark");
  await context.close();
});

test("narrow screens need no scrolling sideways", async () => {
  const { page, context } = await checked(demo(), { width: 390, height: 800 });
  assert.ok(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth));
  await context.close();
});

test("it prints without what needs a mouse, with every row, in light colours", async () => {
  const { page, context } = await open(browser, report("long", "audit", model("demo/tf_unet.onnx"), model("demo/tf_unet.onnx")), { dark: true });
  const rows = page.locator("#moves tbody tr");
  const before = await rows.count();
  await page.evaluate(() => dispatchEvent(new Event("beforeprint")));
  assert.equal(await rows.count(), 72);
  assert.ok(before < 72, `${before} rows`);
  assert.equal(await page.evaluate(() => getComputedStyle(document.body).colorScheme), "light");
  await page.evaluate(() => dispatchEvent(new Event("afterprint")));
  assert.equal(await page.evaluate(() => getComputedStyle(document.body).colorScheme), "dark");
  await page.emulateMedia({ media: "print" });
  assert.equal(await page.locator("#print").isVisible(), false);
  assert.equal(await page.locator("#moves table").isVisible(), true);
  assert.ok((await page.pdf()).length > 20000);
  await context.close();
});

test("where no worker may start, the lists say what the picture would", async () => {
  const context = await browser.newContext();
  const page = await context.newPage();
  const problems = [];
  page.on("pageerror", (error) => problems.push(String(error)));
  await page.addInitScript(() => {
    window.Worker = class {
      postMessage() {
        setTimeout(() => this.onerror(new ErrorEvent("error", { message: "no workers here" })));
      }
    };
  });
  await page.goto(pathToFileURL(demo()).href);
  await page.waitForFunction(() => document.documentElement.dataset.drawn);
  assert.match(await page.locator(".counts").first().innerText(), /cannot be drawn here: no workers here/);
  await page.locator(".tree > summary").first().click();
  const moves = page.locator(".tree").first().locator("li", { hasText: "move of" });
  // A list is filled once its element says that it was opened.
  await moves.first().waitFor();
  assert.equal(await moves.count(), 36);
  await page.locator(".tree").first().locator("li button").first().click();
  assert.match(await page.locator("#details h3").innerText(), /^input/);
  assert.deepEqual(problems, []);
  await context.close();
});

test("bodies, blocks and a model without moves have pages", async () => {
  for (const [name, ...words] of [
    ["bodies", "explain", model("cli/branches.onnx")],
    ["blocks", "explain", model("cli/conv.onnx"), "--target", "nhwc"],
    ["audit", "audit", model("demo/tf_unet.onnx")],
  ]) {
    const { context } = await checked(report(name, ...words));
    await context.close();
  }
  const out = join(folder, "relu.onnx");
  execFileSync(program, ["optimize", model("cli/relu.onnx"), "-o", out, "-q"]);
  const { page, context } = await checked(report("empty", "explain", out));
  assert.equal(await page.locator("#left-title").innerText(), "No move is left");
  await context.close();
  const settled = join(folder, "settled.onnx");
  execFileSync(program, ["optimize", model("cli/conv.onnx"), "--target", "nhwc", "-o", settled, "-q"]);
  const again = await checked(report("settled", "explain", settled, "--target", "nhwc"));
  assert.match(await again.page.locator("#first").innerText(), /made for target nhwc already.*Nothing was decided about it/s);
  await again.context.close();
});

test("optimize writes the page beside the model, and a diff shows both", async () => {
  const [source, out] = [model("demo/tf_unet.onnx"), join(folder, "out.onnx")];
  const made = await checked(report("made", "optimize", source, "-o", out));
  assert.equal(await made.page.locator("h1").innerText(), "What was gained");
  await made.context.close();
  const { page, context } = await checked(report("diff", "diff", source, out));
  assert.equal(await page.locator("h1").innerText(), "What changed");
  assert.ok((await page.locator("#moves tbody tr").count()) > 40);
  await context.close();
});

/** Models of the corpus, each with a target and the part of the page that its picture shows. */
const CORPUS = [
  ["tf_unet", "demo/tf_unet.onnx", "onnx", "first"],
  ["swin_t", "swin_t.onnx", "onnx", "graph"],
  ["swin_t_dynamo", "swin_t_dynamo.onnx", "onnx", "graph"],
  ["mobilevit_s", "mobilevit_s.onnx", "ort-cpu", "graph"],
  ["tf_efficientnet_b0", "tf_efficientnet_b0_notr.onnx", "onnx", "moves"],
];
const MOST_BYTES = 6e6;
/** Nodes that are drawn at first, those of small regions among them. */
const MOST_DRAWN = 300;

for (const [name, file, target, part] of CORPUS.filter(([, file]) => models || file.startsWith("demo/"))) {
  test(`the report of ${name} is small and has no violations`, async (t) => {
    const path = report(name, "explain", model(file), "--target", target);
    const { size } = statSync(path);
    assert.ok(size < MOST_BYTES, `${size} bytes`);
    const { page, context, ms } = await checked(path, { dark: name === "mobilevit_s" });
    const drawn = await page.evaluate(() => [...document.querySelectorAll(".canvas")].reduce((sum, box) => sum + box._cyreg.cy.nodes("[node]").length, 0));
    assert.ok(drawn > 20 && drawn <= MOST_DRAWN, `${drawn} nodes`);
    const times = await page.evaluate(() => ({ ...document.documentElement.dataset }));
    t.diagnostic(`${size} bytes; text after ${times.filled} ms, the first picture after ${times.first} ms, both after ${times.drawn} ms, ${Math.round(ms)} ms with the start of the tab; ${drawn} nodes drawn`);
    if (pictures) await picture(page, name, part);
    await context.close();
  });
}

async function picture(page, name, part) {
  const region = page.locator(".canvas").last();
  if (part === "graph") {
    await page.evaluate(() => {
      const box = [...document.querySelectorAll(".canvas")].pop();
      const move = box._cyreg.cy.nodes(".move.stays").filter((n) => n.renderedPosition().y > 60)[0] ?? box._cyreg.cy.nodes(".move")[0];
      move?.emit("tap");
    });
  }
  await region.waitFor();
  await page.evaluate((id) => document.getElementById(id).scrollIntoView(), part);
  await page.waitForTimeout(300);
  await page.screenshot({ path: join(pictures, `report_${name}.png`) });
}
