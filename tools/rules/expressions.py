"""Elements of tensors as expressions, which are tuples: an operation and what it is of.

`('num', fraction)`, `('elem', operand, index)`, an operation of two or one such as `('add', a, b)`, `('fn', name, a)`,
`('if', condition, a, b)`, and `('fold', tag, told, binders, body)`: what an operation such as a sum makes of all places of the binders.
A binder is a pair of a variable and the digit that it counts. Indices are integers, `('var', name)`, and sums, products and functions of
indices.
"""

from fractions import Fraction

ONE = ("num", Fraction(1))
ZERO = ("num", Fraction(0))


def num(value):
    return ("num", Fraction(value))


def indicator(condition):
    return ("if", condition, ONE, ZERO)


def replace(tree, of):
    """The tree with variables of indices replaced."""
    if isinstance(tree, frozenset):
        return frozenset(replace(part, of) for part in tree)
    if not isinstance(tree, tuple):
        return tree
    if tree[:1] == ("var",):
        return of.get(tree[1], tree)
    return tuple(replace(part, of) for part in tree)


def variables(tree):
    if isinstance(tree, frozenset):
        tree = tuple(tree)
    if not isinstance(tree, tuple):
        return set()
    if tree[:1] == ("var",):
        return {tree[1]}
    return set().union(*(variables(part) for part in tree)) if tree else set()


class Sums:
    """Expressions over the reals as polynomials: sums of products of atoms with exponents.

    What a sum's terms have in common goes out of the sum, a sum of sums is two sums, and a sum in a sum is one sum over both. `lemmas` of
    the solver are these three laws.
    """

    def __init__(self):
        self.made = 0

    def normal(self, tree):
        """A polynomial: a dictionary from products, which are sets of pairs of atom and exponent, to numbers."""
        kind = tree[0]
        if kind == "num":
            return {frozenset(): tree[1]} if tree[1] else {}
        if kind in ("add", "sub"):
            return plus(self.normal(tree[1]), self.normal(tree[2]), 1 if kind == "add" else -1)
        if kind == "neg":
            return plus({}, self.normal(tree[1]), -1)
        if kind == "mul":
            return times(self.normal(tree[1]), self.normal(tree[2]))
        if kind == "div":
            return times(self.normal(tree[1]), inverse(self.normal(tree[2])))
        if kind == "inv":
            return inverse(self.normal(tree[1]))
        if kind == "if":
            on = {frozenset({(("in", tree[1]), 1)}): Fraction(1)}
            then, other = self.normal(tree[2]), self.normal(tree[3])
            return plus(other, times(on, plus(then, other, -1)), 1)
        if kind == "fn":
            return self.function(tree[1], self.normal(tree[2]))
        if kind == "fold":
            return self.fold(tree)
        if kind in ("max", "min", "choose"):
            return atom((kind, frozen(self.normal(tree[1])), frozen(self.normal(tree[2]))))
        return atom(tree)

    def function(self, name, of):
        """The exponential of a sum is a product of exponentials; other functions are atoms."""
        if name != "exp":
            return atom(("fn", name, frozen(of)))
        product = {frozenset(): Fraction(1)}
        for factors, number in of.items():
            one = atom(("fn", "exp", frozen({factors: abs(number)})))
            product = times(product, one if number > 0 else inverse(one))
        return product

    def fold(self, tree):
        _, tag, told, binders, body = tree
        self.made += 1
        new = {name: ("var", f"{name}'{self.made}") for name, _ in binders}
        body = self.normal(replace(body, new))
        binders = tuple((new[name][1], digit) for name, digit in binders)
        if tag != "sum":
            return atom(("fold", tag, told, binders, frozen(body)))
        total = {}
        for factors, number in body.items():
            total = plus(total, self.sum_of(binders, factors), number)
        return total

    def sum_of(self, binders, factors):
        """The sum of one product: what does not depend on the binders stands before it."""
        names = {name for name, _ in binders}
        outside = {frozenset((a, n) for a, n in factors if not variables(a) & names): Fraction(1)}
        inside = {frozenset((a, n) for a, n in factors if variables(a) & names): Fraction(1)}
        for inner, exponent in sorted(next(iter(inside)), key=spelled):
            if exponent == 1 and inner[:2] == ("fold", "sum"):
                self.made += 1
                new = {name: ("var", f"{name}'{self.made}") for name, _ in inner[3]}
                ((of, _),) = inner[4]
                inside = times(times(inside, {frozenset({(inner, -1)}): Fraction(1)}), {replace_set(of, new): Fraction(1)})
                binders = binders + tuple((new[name][1], digit) for name, digit in inner[3])
        factors = next(iter(inside))
        used = set().union(*(variables(a) for a, _ in factors))
        for name, digit in binders:
            if name not in used:
                outside = times(outside, atom(("extent", digit)))
        binders = tuple(sorted(((n, d) for n, d in binders if n in used), key=lambda b: str(b[1])))
        if not binders:
            return outside
        return times(outside, atom(named(binders, factors)))


def named(binders, factors):
    """A sum whose binders have names by how deep it is, so that the same sums are the same atom."""
    level = depth(tuple(factors)) + 1
    new = {name: ("var", f"{digit}@{level}.{i}") for i, (name, digit) in enumerate(binders)}
    binders = tuple((new[name][1], digit) for name, digit in binders)
    return ("fold", "sum", (), binders, frozenset({(replace_set(factors, new), Fraction(1))}))


def replace_set(factors, new):
    return frozenset((replace(a, new), n) for a, n in factors)


def depth(tree):
    if isinstance(tree, frozenset):
        tree = tuple(tree)
    if not isinstance(tree, tuple) or not tree:
        return 0
    return max(map(depth, tree)) + (tree[:2] == ("fold", "sum"))


def spelled(tree):
    """The text of an expression, the same in each run: sets have no order, and the solver's way depends on the one it is given."""
    if isinstance(tree, frozenset):
        return f"{{{' '.join(sorted(map(spelled, tree)))}}}"
    return f"({' '.join(map(spelled, tree))})" if isinstance(tree, tuple) else repr(tree)


def frozen(polynomial):
    return frozenset(polynomial.items())


def atom(a):
    return {frozenset({(a, 1)}): Fraction(1)}


def plus(left, right, sign=1):
    total = dict(left)
    for factors, number in right.items():
        total[factors] = total.get(factors, 0) + sign * number
        if not total[factors]:
            del total[factors]
    return total


def times(left, right):
    total = {}
    for a, x in left.items():
        for b, y in right.items():
            powers = dict(a)
            for factor, exponent in b:
                powers[factor] = powers.get(factor, 0) + exponent
            on = ((f, 1 if f[0] == "in" else n) for f, n in powers.items() if n)
            total = plus(total, {frozenset(on): x * y})
    return total


def inverse(polynomial):
    """One over it. Of a single product it is one; anything else is an atom."""
    if len(polynomial) == 1:
        ((factors, number),) = polynomial.items()
        if not any(a[0] == "in" for a, _ in factors):
            return {frozenset((a, -n) for a, n in factors): 1 / number}
    return atom(("inv", frozen(polynomial)))
