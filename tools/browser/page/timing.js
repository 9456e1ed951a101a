// Times of two contenders beside each other, as tools/timing.py compares them: in turns, two of each in a round. The ratio of the first
// one's two turns is the control.

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

async function timed(run, times, clock) {
  const begin = clock();
  for (let at = 0; at < times; at++) await run();
  return (clock() - begin) / times;
}

/** Milliseconds of an inference, of the original and of ours. One round before does not count. `runs` says how many inferences a turn has.
    `clock` gives milliseconds. */
export async function beside(original, ours, rounds, clock = () => performance.now()) {
  const [base, other] = [{ run: original, turns: [] }, { run: ours, turns: [] }];
  let runs = 1;
  for (let round = -1; round < rounds; round++) {
    // So none follows itself and finds its own data in the caches.
    for (const contender of [base, other, base, other]) {
      const ms = await timed(contender.run, runs, clock);
      if (round >= 0) contender.turns.push(ms);
      else if (contender === base) runs = Math.min(100, Math.ceil(TURN_MS / Math.max(ms, 0.1)));
    }
  }
  const each = (of) => Array.from({ length: rounds }, (_, round) => of(2 * round, 2 * round + 1));
  const mean = ({ turns }) => each((first, second) => (turns[first] + turns[second]) / 2);
  const [before, after] = [mean(base), mean(other)];
  const faster = ratio(before.map((ms, round) => ms / after[round]));
  const control = ratio(each((first, second) => base.turns[first] / base.turns[second]));
  return { rounds, runs, original: median(before), ours: median(after), faster, control };
}
