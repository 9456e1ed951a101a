// Times of two contenders beside each other, as tools/timing.py compares them: in turns, in the other order each second round, and with
// two turns of the first one, whose ratio is the control.

const CONFIDENCE = 0.95;

/** How many of `count` sorted numbers lie below the interval of their median, and as many above it; 0 where there are too few. */
export function rank(count) {
  let [below, found, chosen] = [0, 0, 1];
  for (let at = 0; at < count >> 1; at++) {
    below += chosen / 2 ** count;
    if (2 * below > 1 - CONFIDENCE) break;
    found = at;
    chosen = (chosen * (count - at)) / (at + 1);
  }
  return found;
}

export function median(numbers) {
  const sorted = [...numbers].sort((a, b) => a - b);
  const half = sorted.length >> 1;
  return sorted.length % 2 ? sorted[half] : (sorted[half - 1] + sorted[half]) / 2;
}

/** The median of numbers and the interval that holds it. Of fewer than six it is all of them. */
export function ratio(numbers) {
  const sorted = [...numbers].sort((a, b) => a - b);
  const cut = rank(sorted.length);
  return { low: sorted[cut], median: median(sorted), high: sorted[sorted.length - 1 - cut] };
}

// A turn takes at least so long: clocks of browsers are coarse.
const TURN_MS = 20;

async function timed(run, times) {
  const begin = performance.now();
  for (let at = 0; at < times; at++) await run();
  return (performance.now() - begin) / times;
}

/**
 * Milliseconds of each round: of the original, of ours, and of the original once more. One round before does not count. `runs` says how many
 * inferences a turn has.
 */
export async function beside(original, ours, rounds) {
  const turns = [[original, []], [ours, []], [original, []]];
  let runs = 1;
  for (let round = -1; round < rounds; round++) {
    for (const [run, taken] of round % 2 === 0 ? turns : [...turns].reverse()) {
      const ms = await timed(run, runs);
      if (round >= 0) taken.push(ms);
      else if (run === original) runs = Math.min(100, Math.ceil(TURN_MS / Math.max(ms, 0.1)));
    }
  }
  const [first, other, again] = turns.map(([, taken]) => taken);
  const over = (below) => ratio(first.map((ms, at) => ms / below[at]));
  return { rounds, runs, original: median(first), ours: median(other), faster: over(other), control: over(again) };
}
