"""How long things take beside each other: the one way in which the Python tools of this repository compare times.

Contenders take turns, so that whatever else the machine does meets all of them. Each has two turns in a round, always in the same order:
so none follows itself, and each finds in the caches what another one left there. One that follows itself is one or two percent faster.
Ratios are taken within a round, of what both turns took. The ratio of the base's two turns, the control, is what this machine
calls a difference today although there is none. A ratio is the median of the rounds', with an interval that holds the true
median with a probability of 95 %, whatever the distribution is.

Files that are the same are no comparison: tools ask `identical` and leave them out.
"""
import filecmp
import math
import statistics
import time
from dataclasses import dataclass

CONFIDENCE = 0.95
# Of each contender in a round.
TURNS = 2


@dataclass(frozen=True)
class Ratio:
    """The median of ratios, and the interval that holds it."""

    low: float
    median: float
    high: float

    def __str__(self):
        return f"{self.median:.2f} ({self.low:.2f} to {self.high:.2f})"

    def inverse(self):
        return Ratio(1 / self.high, 1 / self.median, 1 / self.low)


def rank(count):
    """How many of `count` sorted numbers lie below the interval of their median, and as many above it; 0 where there are too few."""
    below, found = 0.0, 0
    for at in range(count // 2):
        below += math.comb(count, at) / 2**count
        if 2 * below > 1 - CONFIDENCE:
            break
        found = at
    return found


def ratio(numbers):
    """The median of one or more numbers. Of fewer than six no interval is that sure: it is then all of them."""
    ordered = sorted(numbers)
    cut = rank(len(ordered))
    return Ratio(ordered[cut], statistics.median(ordered), ordered[-1 - cut])


@dataclass(frozen=True)
class Beside:
    """What was measured: of each round the seconds of both turns, by contender. The first contender is the base."""

    turns: dict

    def seconds(self, name):
        """Of a turn, for each round."""
        return [statistics.fmean(taken) for taken in self.turns[name]]

    def median(self, name):
        return statistics.median(self.seconds(name))

    def over(self, name, of=None):
        """How many times as long a contender takes as another one, or as the base."""
        of = of or next(iter(self.turns))
        return ratio(a / b for a, b in zip(self.seconds(name), self.seconds(of), strict=True))

    def control(self):
        """The same for the base's second turn beside its first."""
        return ratio(second / first for first, second in next(iter(self.turns.values())))


def timed(run):
    """Seconds of a call. One that returns a float has measured itself: a process, or a GPU."""
    begin = time.perf_counter()
    kept = run()
    taken = time.perf_counter() - begin
    return kept if isinstance(kept, float) else taken


def beside(runs, rounds, warm=1):
    """Times contenders, a dict of functions without arguments by name, in so many rounds after `warm` that do not count."""
    turns = {name: [] for name in runs}
    for at in range(-warm, rounds):
        taken = [[timed(run) for run in runs.values()] for _ in range(TURNS)]
        if at >= 0:
            for name, both in zip(runs, zip(*taken, strict=True), strict=True):
                turns[name].append(both)
    return Beside(turns)


def identical(a, b):
    """Whether two files have the same bytes."""
    return filecmp.cmp(a, b, shallow=False)
