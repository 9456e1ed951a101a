// The page compares times as tools/timing.py does.

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { dirname, join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { beside, rank, ratio } from "../page/timing.js";

const root = join(dirname(fileURLToPath(import.meta.url)), "../../..");

test("ranks are those of tools/timing.py", () => {
  const said = execFileSync("python3", ["-c", "import timing; print([timing.rank(n) for n in range(64)])"], { cwd: join(root, "tools"), encoding: "utf8" });
  assert.deepEqual(Array.from({ length: 64 }, (_, count) => rank(count)), JSON.parse(said));
});

test("an interval leaves out as many numbers on both sides", () => {
  assert.deepEqual(ratio([4, 1, 3, 2, 9, 8, 7, 6, 5]), { low: 2, median: 5, high: 8 });
  assert.deepEqual(ratio([3, 1]), { low: 1, median: 2, high: 3 });
});

test("contenders take turns, and none follows itself", async () => {
  const order = [];
  const run = (name) => () => new Promise((resolve) => setTimeout(resolve, 25, order.push(name)));
  const found = await beside(run("original"), run("ours"), 2);
  assert.deepEqual(order.join(" "), Array(6).fill("original ours").join(" "));
  assert.deepEqual([found.rounds, found.runs], [2, 1]);
  assert.ok(found.original >= 20 && found.control.low <= found.control.high);
});

test("ratios are taken within a round, of what both turns took", async () => {
  // The base, ours, and both again: 40 and 80 ms beside 20 and 40.
  const turns = [40, 20, 80, 40];
  let at = 0;
  const run = () => new Promise((resolve) => setTimeout(resolve, turns[at++ % turns.length]));
  const found = await beside(run, run, 3);
  assert.ok(found.faster.low > 1.6 && found.faster.high < 2.4, JSON.stringify(found));
  assert.ok(found.control.low > 0.4 && found.control.high < 0.65, JSON.stringify(found));
});

test("what takes less than a clock of a browser sees is run many times in a turn", async () => {
  let count = 0;
  const found = await beside(async () => count++, async () => {}, 1);
  // One round that does not count has its first run alone.
  assert.equal(found.runs, 100);
  assert.equal(count, 1 + 100 + 200);
});
