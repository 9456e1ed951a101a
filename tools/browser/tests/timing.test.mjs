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

/** A clock that only runs of contenders move, so what a test expects is exact on a busy machine too. */
function stopped() {
  let now = 0;
  return {
    clock: () => now,
    /** A contender: each run takes the next of these milliseconds. `ran` is called with each run. */
    contender(milliseconds, ran = () => {}) {
      let at = 0;
      return async () => {
        ran();
        now += milliseconds[at++ % milliseconds.length];
      };
    },
  };
}

test("contenders take turns, and none follows itself", async () => {
  const order = [];
  const { clock, contender } = stopped();
  const run = (name) => contender([25], () => order.push(name));
  const found = await beside(run("original"), run("ours"), 2, clock);
  assert.equal(order.join(" "), Array(6).fill("original ours").join(" "));
  const same = { low: 1, median: 1, high: 1 };
  assert.deepEqual(found, { rounds: 2, runs: 1, original: 25, ours: 25, faster: same, control: same });
});

test("ratios are taken within a round, of what both turns took", async () => {
  const { clock, contender } = stopped();
  // The machine is slower in some rounds: the ratios stay.
  const found = await beside(contender([40, 80, 60, 120, 80, 160]), contender([20, 40, 30, 60, 40, 80]), 3, clock);
  assert.deepEqual(found.faster, { low: 2, median: 2, high: 2 });
  assert.deepEqual(found.control, { low: 0.5, median: 0.5, high: 0.5 });
  assert.deepEqual([found.original, found.ours], [90, 45]);
});

test("what takes less than a clock of a browser sees is run many times in a turn", async () => {
  let count = 0;
  const { clock, contender } = stopped();
  const found = await beside(contender([0.05], () => count++), contender([0.05]), 1, clock);
  // One round that does not count has its first run alone.
  assert.equal(found.runs, 100);
  assert.equal(count, 1 + 100 + 200);
});
