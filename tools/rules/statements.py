"""Statements of rules in text, and what is shown of them.

A file of statements has a block for each. It begins with the name of a rule or an equation; lines that follow say what its operands are:

    x [A (G C) 1]    a tensor; each letter is a digit, which stands for any number of axes of any extent, and 1 is an axis of extent 1
    x *              a tensor that broadcasts with the others that have a star
    s number > 0     a number; `= 1/6`, `> 0`, `!= 0`, `<= 1` and `1/extent K` say more
    z zeros [K]      a tensor of zeros
    a axes K         the axes of these digits
    d shape [A K]    a shape
    p perm 0 2 1     an order of axes; `any` is every one
    n count > 0      a whole number that is not negative
    i places J < n   whole numbers below n, one for each place of J
    o ones [1 C]     a tensor of ones
    i ends J         the last place, as -1
    pi order K back  a bijection of the places of K, and the way back

Further lines:

    says TEXT                  what the product says of the rule
    proves TERM = TERM         what is shown, where the product has no terms
    smt SCRIPT                 what no numbers satisfy, as SMT-LIB; behind `needs CONDITION:` what some do
    with FACT                  a fact of counts, such as `(eq u (count* n b))`
    needs CONDITION: CHANGES   what the operands are where only this condition does not hold: then both sides have to differ
    free CONDITION: CHANGES    the same, and both sides do not differ: the condition is there for another reason
    other CONDITION: REASON    a condition of which nothing is shown, and why
    except TEXT                what an exact rule does not keep
    not TEXT                   why nothing is shown
    counter CHANGES            extents at which a wrong rule is refuted
    exact                      of a wrong rule: that it says to keep bits
"""

import dataclasses
import itertools
import re
from fractions import Fraction

from . import expressions as ex
from .counted import axis_of
from .ops import evaluate
from .solver import TIMES, Solver, difference
from .tensors import Tensor, Unsaid, World, number, operand


@dataclasses.dataclass
class Changed:
    """What is otherwise where one condition does not hold."""

    condition: str = ""
    operands: dict = dataclasses.field(default_factory=dict)
    extents: dict = dataclasses.field(default_factory=dict)
    equation: str = ""
    dropped: set = dataclasses.field(default_factory=set)
    smt: str = ""


@dataclasses.dataclass
class Statement:
    name: str
    operands: dict = dataclasses.field(default_factory=dict)
    says: str = ""
    proves: list = dataclasses.field(default_factory=list)
    smt: list = dataclasses.field(default_factory=list)
    facts: list = dataclasses.field(default_factory=list)
    needs: list = dataclasses.field(default_factory=list)
    free: list = dataclasses.field(default_factory=list)
    other: list = dataclasses.field(default_factory=list)
    counter: Changed = dataclasses.field(default_factory=Changed)
    exact: bool = False
    excepts: str = ""
    unproved: str = ""


def parse(text):
    """A term in parentheses, as lists and words."""
    words = re.findall(r"\[[^]]*\]|[()]|[^\s()]+", text)
    stack = [[]]
    for word in words:
        if word == "(":
            stack.append([])
        elif word == ")":
            done = stack.pop()
            stack[-1].append(done)
        else:
            stack[-1].append(word)
    (term,) = stack[0]
    return term


def sides(text):
    """Both sides of an equation: the sign stands outside of all parentheses."""
    depth = 0
    for at, letter in enumerate(text):
        depth += (letter == "(") - (letter == ")")
        if depth == 0 and text[at:at + 3] == " = ":
            return parse(text[:at]), parse(text[at + 3:])
    raise ValueError(f"no equation: {text}")


def changes(text):
    """`CONDITION: name kind; name kind` with extents `K=3`, another equation `= LEFT = RIGHT`, and `drop N`, a fact that does not hold."""
    condition, _, rest = text.partition(": ")
    of = Changed(condition)
    if rest.startswith("smt "):
        of.smt = rest.removeprefix("smt ")
        return of
    for part in filter(None, (p.strip() for p in rest.split(";"))):
        if match := re.fullmatch(r"([\w']+)=(\d+)", part):
            of.extents[match[1]] = int(match[2])
        elif part.startswith("= "):
            of.equation = part[2:]
        elif part.startswith("drop "):
            of.dropped.add(int(part[5:]))
        else:
            name, kind = part.split(" ", 1)
            of.operands[name] = kind
    return of


def read(text):
    """The statements of a file, in its order."""
    made = []
    for line in text.splitlines():
        if not line.strip() or line.strip().startswith("#"):
            continue
        if not line.startswith(" "):
            made.append(Statement(line.strip()))
            continue
        word, _, rest = line.strip().partition(" ")
        of = made[-1]
        if word in ("needs", "free"):
            getattr(of, word).append(changes(rest))
        elif word == "other":
            of.other.append(tuple(rest.split(": ", 1)))
        elif word == "counter":
            of.counter = changes(f"counter: {rest}")
        elif word == "exact":
            of.exact = True
        elif word in ("proves", "smt"):
            getattr(of, word).append(rest)
        elif word == "with":
            of.facts.append(rest)
        elif word in ("says", "except", "not"):
            setattr(of, {"says": "says", "except": "excepts", "not": "unproved"}[word], rest)
        else:
            of.operands[word] = rest
    return made


def axes(text):
    """`[A (G C) 1]` as tuples of digits."""
    found = re.findall(r"\(([^)]*)\)|(\S+)", text.strip()[1:-1])
    return [tuple((inner or outer).split()) if (inner or outer) != "1" else () for inner, outer in found]


class Case:
    """A statement with its operands in a world."""

    def __init__(self, statement, changed=None, extents=None):
        changed = changed or Changed()
        kinds = statement.operands | changed.operands
        self.facts, self.laws, self.bijections, self.operands = [], [], [], {}
        if extents is not None:
            among = re.findall(r"\[[^]]*\]|places \w+", " ".join(kinds.values()))
            extents = dict.fromkeys(re.findall(r"[A-Za-z]\w*'?", " ".join(among)), 2) | {"two": 2, "S": 3, "K": 2} | extents
        self.world = World(extents)
        self.counts = {}
        stars = [name for name, kind in kinds.items() if kind == "*"]
        for name, kind in kinds.items():
            self.operands[name] = self.star(name, stars) if kind == "*" else self.operand(name, kind)
        for at, fact in enumerate(statement.facts, 1):
            kind, a, b = parse(fact)
            if at not in changed.dropped:
                self.facts.append((kind, *(self.counted(side) for side in (a, b))))

    def counted(self, term):
        made = evaluate(self.world, term, self.operands)
        return made.read([]) if isinstance(made, Tensor) else made

    def star(self, name, stars):
        """One of several tensors that broadcast: a digit for each set of those that have an axis there."""
        sets = [s for n in range(1, len(stars) + 1) for s in itertools.combinations(stars, n)]
        wide = [("".join(s),) if name in s else () for s in sets]
        if self.world.extents is not None:
            self.world.extents.update({"".join(s): 2 for s in sets})
        return operand(name, wide)

    def operand(self, name, kind):
        word, _, rest = kind.partition(" ")
        if word.startswith("["):
            return operand(name, axes(kind))
        if word == "number":
            return self.number(name, rest)
        if word == "zeros":
            return Tensor(axes(rest), lambda _: ex.ZERO)
        if word == "axes" and rest.startswith("-"):
            return ("at", tuple(int(a) for a in rest.split()))
        if word == "axes":
            return ("digits", frozenset(rest.split()))
        if word == "shape":
            return ("shape", axes(rest))
        if word == "perm":
            return ("any", (name,)) if rest == "any" else ("order", tuple(int(i) for i in rest.split()))
        if word == "ones":
            return Tensor(axes(rest), lambda _: ex.ONE)
        if word == "order":
            self.bijections.append((name, rest.split()[-1]))
            return ("name", name)
        if word == "ends":
            return lambda _: -1
        if word == "groups":
            return ("groups", rest)
        if word == "count":
            return self.count(name, rest)
        if word == "places":
            return self.places(name, rest)
        raise Unsaid(f"{name}: what is `{kind}`")

    def number(self, name, rest):
        tree = ("elem", name, ())
        sign, _, value = rest.partition(" ")
        if sign == "1/extent":
            return number(("div", ex.ONE, self.world.count([(d,) for d in value.split()])))
        if sign == "=":
            try:
                return number(ex.num(Fraction(value)))
            except ValueError:
                return number(("elem", value, ()))
        if sign:
            self.facts.append(({">": "above", "<=": "upto", "!=": "not"}[sign], tree, ex.num(Fraction(value))))
        return number(tree)

    def count(self, name, rest):
        if self.world.extents is not None:
            return self.world.extents.get(name, 1)
        least = 1 if rest == "> 0" else 0
        self.facts.append(("le", least, ("var", name)))
        return ("var", name)

    def places(self, name, rest):
        digit, _, below = rest.partition(" < ")
        if self.world.extents is not None:
            return lambda i: i % self.world.extents.get(below, 1)
        self.laws.append((name, below))
        return lambda i: ("app", name, i)


def solver_of(case, arithmetic, **options):
    """A solver that knows the facts of a case; extents are above 0."""
    import z3
    solver = Solver(arithmetic, case.facts, case.bijections, **options)
    for name, below in case.laws:
        i, of = z3.Int("i"), z3.Function(name, z3.IntSort(), z3.IntSort())
        solver.laws.append(z3.ForAll([i], z3.And(0 <= of(i), of(i) < z3.Int(below)), patterns=[of(i)]))
    return solver


def both(case, equation):
    left, right = equation
    return evaluate(case.world, left, case.operands), evaluate(case.world, right, case.operands)


def one_shape(case, left, right):
    """Whether both have the same axes, some of which have computed extents."""
    if left.rank != right.rank:
        return False
    solver = solver_of(case, "real")
    for a, b in zip(left.axes, right.axes):
        for d, e in itertools.zip_longest(a, b):
            if d == e:
                continue
            if not all(isinstance(digit, tuple) or digit is not None for digit in (d, e)):
                return False
            extents = [digit[1] if isinstance(digit, tuple) else ("var", f"|{digit}|") for digit in (d, e)]
            if not (isinstance(d, tuple) or isinstance(e, tuple)) or not solver.holds(
                solver.index(extents[0]) == solver.index(extents[1])
            ):
                return False
    return True


def prove(statement, equation, arithmetic, changed=None, zeros_alike=False):
    """Whether both sides have one shape and the same elements, with what the solver was asked."""
    case = Case(statement, changed)
    left, right = both(case, equation)
    if not one_shape(case, left, right):
        return False, 0
    index = [tuple(("var", f"at {n}.{m}") for m, _ in enumerate(axis)) for n, axis in enumerate(left.axes)]
    for axis, place in zip(left.axes, index):
        for digit, i in zip(axis, place):
            extent = digit[1] if isinstance(digit, tuple) else ("var", f"|{digit}|")
            case.facts += [("le", 0, i), ("lt", i, extent)]
    for time, backward in itertools.product(TIMES, (False, True)):
        solver = solver_of(case, arithmetic, time=time, backward=backward)
        said = solver.equal(left.read(index), right.read(index), zeros_alike)
        if said:
            break
    return said, solver.asked


def refuted(statement, equation, changed):
    """Operands of given extents on which both sides differ, in words, or `None`."""
    if changed.equation:
        equation = sides(changed.equation)
    case = Case(statement, changed, dict(changed.extents))
    left = evaluate(case.world, equation[0], case.operands)
    try:
        right = evaluate(case.world, equation[1], case.operands)
        right.read([tuple(0 for _ in axis) for axis in right.axes])
    except Unsaid as why:
        return f"the right side has no meaning: {why}"
    shapes = [[case.world.extent(axis) for axis in t.axes] for t in (left, right)]
    if shapes[0] != shapes[1]:
        return f"shapes {shapes[0]} and {shapes[1]}"
    pairs = []
    for flat in range(case.world.extent([d for axis in left.axes for d in axis])):
        indices = [case.world.unflat(t.axes, flat) for t in (left, right)]
        pairs.append((left.read(indices[0]), right.read(indices[1])))
    return difference(pairs, case.facts)
