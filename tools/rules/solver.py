"""What an SMT solver says of two expressions, and inputs on which two expressions of given extents differ."""

import itertools
import math
import random
from fractions import Fraction

import z3

from . import expressions as ex

WIDTHS = {"float": z3.Float32(), "byte": z3.FPSort(4, 4)}
NEAREST = z3.RNE()
FUNCTIONS = {
    "exp": math.exp, "erf": math.erf, "tanh": math.tanh, "sqrt": math.sqrt,
    "sigmoid": lambda x: 1 / (1 + math.exp(-x)), "round": round,
}
FIXED = {"1/sqrt(2)": math.sqrt(0.5), "sqrt(2/pi)": math.sqrt(2 / math.pi)}
# How many steps the solver may take: for what it is asked on the way, and for the last question. Steps do not depend on the machine. Those
# of some of its procedures are not counted, so there is a limit of time as well, in milliseconds; what answers in a second in one order
# of terms may not end in the other, so both get the first limit before one gets the second.
STEPS = {False: 8_000_000, True: 20_000_000}
TIMES = (5_000, 120_000)


class Solver:
    """Compares expressions in one arithmetic.

    `free` has no laws at all: what is the same in it is made by the same operations of the same elements. `float` and `byte` are those of
    IEEE 754 with 32 and 8 bits, with infinities and both zeros; what is no number is one value. `real` is that of numbers, where both
    sides are defined. Sums and products are spelled in the order of their terms' texts, or `backward`: what the solver finds in one it may
    not find in the other.
    """

    def __init__(self, arithmetic, facts=(), bijections=(), backward=False, time=TIMES[-1]):
        self.arithmetic = arithmetic
        self.time = time
        self.backward = backward
        self.sums = ex.Sums()
        self.folds = []
        self.fresh = itertools.count()
        self.values = z3.DeclareSort("Value")
        self.facts = []
        self.laws = [self.bijection(*pair) for pair in bijections]
        self.bijections = list(bijections)
        self.given = facts
        self.asked = 0

    def sort(self):
        return {"free": self.values, "real": z3.RealSort(), **WIDTHS}[self.arithmetic]

    def bijection(self, there, back):
        f, g = (z3.Function(name, z3.IntSort(), z3.IntSort()) for name in (there, back))
        i = z3.Int("i")
        return z3.And(
            z3.ForAll([i], f(g(i)) == i, patterns=[g(i)]), z3.ForAll([i], g(f(i)) == i, patterns=[f(i)])
        )

    # Indices.

    def index(self, tree):
        if isinstance(tree, int):
            return z3.IntVal(tree)
        kind = tree[0]
        if kind == "var":
            return z3.Int(tree[1])
        if kind == "app":
            args = [self.index(a) for a in tree[2:]]
            return z3.Function(tree[1], *[z3.IntSort()] * (len(args) + 1))(*args)
        if kind == "cond":
            return z3.If(self.condition(tree[1]), self.index(tree[2]), self.index(tree[3]))
        a, b = self.index(tree[1]), self.index(tree[2])
        if kind in ("div", "mod"):
            return self.parts(a, b)[kind]
        return {"plus": a + b, "times": a * b, "minus": a - b}[kind]

    def parts(self, a, b):
        """Quotient and rest of a count by one above 0, with what makes them such."""
        div, rest = a / b, a % b
        if not z3.is_int_value(b):
            div, rest = (z3.Function(name, z3.IntSort(), z3.IntSort(), z3.IntSort())(a, b) for name in ("quotient", "rest"))
            self.facts += [a == div * b + rest, 0 <= rest, rest < b]
        return {"div": div, "mod": rest}

    def condition(self, tree):
        kind = tree[0]
        if kind == "and":
            return z3.And([self.condition(c) for c in tree[1:]])
        if kind == "holds":
            args = [self.index(a) for a in tree[2:]]
            return z3.Function(tree[1], *[z3.IntSort()] * len(args), z3.BoolSort())(*args)
        a, b = self.index(tree[1]), self.index(tree[2])
        return {"le": a <= b, "lt": a < b, "eq": a == b}[kind]

    # Values.

    def value(self, tree):
        if self.arithmetic == "real":
            return self.polynomial(self.sums.normal(tree))
        kind = tree[0]
        if kind == "num":
            return self.number(tree[1])
        if kind == "elem":
            return self.element(tree)
        if kind == "if":
            return z3.If(self.condition(tree[1]), self.value(tree[2]), self.value(tree[3]))
        if kind == "fold":
            return self.folded(tree)
        if kind == "fn":
            return self.function(tree[1], self.value(tree[2]))
        args = [self.value(a) for a in tree[1:]]
        if self.arithmetic == "free":
            return z3.Function(kind, *[self.values] * (len(args) + 1))(*args)
        return float_op(self.sort(), kind, args)

    def number(self, value):
        if self.arithmetic == "free":
            return z3.Const(f"number {value}", self.values)
        return z3.RealVal(value) if self.arithmetic == "real" else z3.FPVal(float(value), self.sort())

    def element(self, tree):
        args = [self.index(i) for i in tree[2]]
        if self.arithmetic == "real" and tree[1] in FIXED:
            constant, of = z3.Real(tree[1]), Fraction(FIXED[tree[1]])
            self.facts += [constant > of - Fraction(1, 10**9), constant < of + Fraction(1, 10**9)]
            return constant
        return z3.Function(tree[1], *[z3.IntSort()] * len(args), self.sort())(*args) if args else z3.Const(tree[1], self.sort())

    def function(self, name, of):
        made = z3.Function(name, self.sort(), self.sort())(of)
        if self.arithmetic == "real":
            self.facts += {"exp": [made > 0], "sqrt": [made >= 0, made * made == of, of >= 0]}.get(name, [])
        return made

    def ordered(self, terms):
        return sorted(terms, key=ex.spelled, reverse=self.backward)

    def polynomial(self, polynomial):
        total = z3.RealVal(0)
        for factors, number in self.ordered(polynomial.items()):
            product = z3.RealVal(number)
            for atom, exponent in self.ordered(factors):
                value = self.atom(atom)
                if exponent < 0:
                    self.facts.append(value != 0)
                    value = 1 / value
                for _ in range(abs(exponent)):
                    product = product * value
            total = total + product
        return total

    def atom(self, tree):
        kind = tree[0]
        if kind == "elem":
            return self.element(tree)
        if kind == "in":
            return z3.If(self.condition(tree[1]), z3.RealVal(1), z3.RealVal(0))
        if kind == "extent":
            extent = z3.Real(f"extent {tree[1]}")
            self.facts.append(extent >= 1)
            return extent
        if kind == "inv":
            of = self.polynomial(dict(tree[1]))
            self.facts.append(of != 0)
            return 1 / of
        if kind == "fn":
            return self.function(tree[1], self.polynomial(dict(tree[2])))
        if kind == "fold":
            return self.folded(tree)
        a, b = (self.polynomial(dict(part)) for part in tree[1:])
        if kind == "choose":
            return z3.If(a < 0, b, a)
        return z3.If((a >= b) if kind == "max" else (a <= b), a, b)

    def body(self, tree):
        return self.polynomial(dict(tree)) if isinstance(tree, frozenset) else self.value(tree)

    # Sums and the like: the same if what they are made of is, at each place.

    def folded(self, tree):
        _, tag, told, binders, body = tree
        kind = (tag, len(told), sorted(str(digit) for _, digit in binders), deep(body))
        for other, of, constant in self.folds:
            if other == kind and (of == tree or self.same_folds(of, tree)):
                return constant
        constant = z3.Const(f"{tag} {len(self.folds)}", self.sort())
        self.folds.append((kind, tree, constant))
        if tag == "sum" and self.arithmetic == "real" and positive(body):
            self.facts.append(constant > 0)
        return constant

    def same_folds(self, left, right):
        if left[2] != right[2]:
            equal = z3.And([self.index(a) == self.index(b) for a, b in zip(left[2], right[2])])
            if not self.holds(equal):
                return False
        for order in itertools.permutations(right[3]):
            if [d for _, d in order] != [d for _, d in left[3]]:
                continue
            new = [("var", f"{d}!{next(self.fresh)}") for _, d in left[3]]
            for i, (_, d) in zip(new, left[3]):
                extent = ("var", f"|{d}|") if isinstance(d, str) else d[1]
                self.facts += [self.condition(("le", 0, i)), self.condition(("lt", i, extent))]
            for bent in self.bent(new):
                a = ex.replace(left[4], dict(zip((n for n, _ in left[3]), bent[0])))
                b = ex.replace(right[4], dict(zip((n for n, _ in order), bent[1])))
                if self.holds(self.body(a) == self.body(b)):
                    return True
        return False

    def bent(self, new):
        """The places of both sides: the same, or each through a bijection."""
        for names in self.bijections:
            for name in names:
                for i in range(len(new)):
                    through = new[:i] + [("app", name, new[i])] + new[i + 1:]
                    yield through, new
                    yield new, through
        yield new, new

    def holds(self, claim):
        return self.ask(z3.Not(claim), last=False) == z3.unsat

    def ask(self, claim, last=True):
        solver = z3.Solver()
        solver.set("rlimit", STEPS[last])
        solver.set("timeout", self.time)
        facts = list(self.facts) + [self.fact(f) for f in self.given]
        solver.add(*self.laws, *facts, claim)
        self.asked += 1
        said = solver.check()
        self.model = solver.model() if said == z3.sat else None
        return said

    def fact(self, fact):
        """A fact of indices, or of numbers."""
        kind, a, b = fact
        if kind in ("le", "lt", "eq"):
            return self.condition(fact)
        if self.arithmetic == "free":
            return z3.BoolVal(True)
        a, b = self.value(a), self.value(b)
        if self.arithmetic in WIDTHS:
            return {"above": z3.fpGT(a, b), "upto": z3.fpLEQ(a, b), "is": z3.fpEQ(a, b), "not": z3.Not(z3.fpEQ(a, b))}[kind]
        return {"above": a > b, "upto": a <= b, "is": a == b, "not": a != b}[kind]

    def equal(self, left, right, zeros_alike=False):
        """Whether both are the same: `True`, `False` with a model, or `None` if the solver does not say."""
        a, b = self.value(left), self.value(right)
        same = a == b
        if self.arithmetic in WIDTHS and zeros_alike:
            same = z3.Or(a == b, z3.fpEQ(a, b))
        return {"unsat": True, "sat": False}.get(str(self.ask(z3.Not(same))))


def deep(tree):
    """How many folds stand in one another: folds are compared with those as deep, so that comparing ends."""
    if not isinstance(tree, (tuple, frozenset)) or not tree:
        return 0
    fold = isinstance(tree, tuple) and tree[0] == "fold"
    return max(map(deep, tree)) + fold


def positive(body):
    """Whether a sum is of products of exponentials."""
    return isinstance(body, frozenset) and all(
        n > 0 and all(a[:2] == ("fn", "exp") for a, _ in factors) for factors, n in body
    )


def float_op(sort, kind, args):
    """Operations of IEEE 754; the greater of two is the second where neither is less, and no number if one is none."""
    one = z3.FPVal(1.0, sort)
    two = {
        "add": lambda a, b: z3.fpAdd(NEAREST, a, b), "sub": lambda a, b: z3.fpSub(NEAREST, a, b),
        "mul": lambda a, b: z3.fpMul(NEAREST, a, b), "div": lambda a, b: z3.fpDiv(NEAREST, a, b),
        "choose": lambda a, b: z3.If(z3.fpLT(a, z3.FPVal(0.0, sort)), b, a),
        "max": lambda a, b: choose(sort, a, b, z3.fpGT(a, b)), "min": lambda a, b: choose(sort, a, b, z3.fpLT(a, b)),
    }
    if kind in two:
        return two[kind](*args)
    return {"neg": z3.fpNeg, "inv": lambda a: z3.fpDiv(NEAREST, one, a)}[kind](*args)


def choose(sort, a, b, first):
    return z3.If(z3.Or(z3.fpIsNaN(a), z3.fpIsNaN(b)), z3.fpNaN(sort), z3.If(first, a, b))


# Expressions of given extents.

def numeric(tree, at):
    """The value of an expression without folds, as a float."""
    kind = tree[0]
    if kind == "num":
        return float(tree[1])
    if kind == "elem":
        return at(tree)
    if kind == "fn":
        return FUNCTIONS[tree[1]](numeric(tree[2], at))
    args = [numeric(a, at) for a in tree[1:]]
    if kind == "inv":
        return 1 / args[0]
    if kind == "neg":
        return -args[0]
    a, b = args
    return {"add": lambda: a + b, "sub": lambda: a - b, "mul": lambda: a * b, "div": lambda: a / b,
            "max": lambda: max(a, b), "min": lambda: min(a, b), "choose": lambda: b if a < 0 else a}[kind]()


def far(a, b):
    return abs(a - b) > 1e-6 * max(1, abs(a), abs(b))


def difference(pairs, facts):
    """Inputs at which one of the pairs of expressions differs, confirmed with the functions as they are: words, or `None`."""
    for left, right in pairs:
        solver = Solver("real", facts)
        try:
            if solver.equal(left, right) is not False:
                continue
        except RecursionError:
            continue
        model = solver.model
        point = {}

        def at(tree, point=point, model=model, solver=solver):
            if tree[1] in FIXED:
                return point.setdefault(tree, FIXED[tree[1]])
            if tree not in point:
                value = model.eval(solver.element(tree), model_completion=True)
                point[tree] = float(value.as_fraction()) if z3.is_rational_value(value) else float(value.approx(20).as_fraction())
            return point[tree]

        if differs(left, right, at, facts):
            return point_told(point)
    return drawn(pairs, facts)


def drawn(pairs, facts):
    """The same with drawn numbers, where the solver's functions are not those of arithmetic."""
    numbers = random.Random(7)
    for _ in range(200):
        point = {}

        def at(tree, point=point):
            return point.setdefault(tree, FIXED.get(tree[1]) or numbers.choice([-2.5, -1.25, -0.5, 0.25, 0.75, 1.5, 3.0]))

        for left, right in pairs:
            if differs(left, right, at, facts):
                return point_told(point)
    return None


def differs(left, right, at, facts):
    try:
        test = {"above": lambda a, b: a > b, "upto": lambda a, b: a <= b, "is": lambda a, b: not far(a, b), "not": lambda a, b: a != b}
        if not all(test[kind](numeric(a, at), numeric(b, at)) for kind, a, b in facts if kind in test):
            return False
        return far(numeric(left, at), numeric(right, at))
    except (ZeroDivisionError, ValueError, OverflowError):
        return False


def point_told(point):
    told = [f"{name}{list(index) if index else ''} = {value:.4g}" for (_, name, index), value in sorted(point.items(), key=str)]
    return ", ".join(told[:6]) + (", ..." if len(told) > 6 else "")


def lemmas():
    """The laws of sums that `expressions.Sums` uses, by induction over how many summands there are: names and whether they hold."""
    n, s = z3.Int("n"), z3.Real("s")
    f, g, total_f, total_g = (z3.Function(name, z3.IntSort(), z3.RealSort()) for name in ("f", "g", "F", "G"))
    h, total_h = z3.Function("h", z3.IntSort(), z3.RealSort()), z3.Function("H", z3.IntSort(), z3.RealSort())
    starts = z3.And(total_f(0) == 0, total_g(0) == 0, total_h(0) == 0)
    grows = z3.And(*[t(n + 1) == t(n) + e(n) for t, e in ((total_f, f), (total_g, g), (total_h, h))])
    laws = {
        "a factor goes out of a sum": (g(n) == s * f(n), lambda k: total_g(k) == s * total_f(k)),
        "a sum of sums is two sums": (h(n) == f(n) + g(n), lambda k: total_h(k) == total_f(k) + total_g(k)),
        "a sum of one number is as many times it": (f(n) == s, lambda k: total_f(k) == s * z3.ToReal(k)),
        # h(n) is the sum over the other axis at n, f(n) and g(n) its parts: a row that is added to both orders of summation.
        "a sum over two axes may be taken in any order": (h(n) == f(n) + g(n), lambda k: total_h(k) == total_f(k) + total_g(k)),
    }
    for name, (body, claim) in laws.items():
        ends = z3.Solver()
        ends.add(starts, z3.Not(claim(z3.IntVal(0))))
        step = z3.Solver()
        step.add(n >= 0, grows, body, claim(n), z3.Not(claim(n + 1)))
        yield name, ends.check() == z3.unsat and step.check() == z3.unsat
