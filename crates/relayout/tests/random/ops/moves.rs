//! Transposes, Reshapes and what exporters put around them.

use super::*;

pub(super) fn transposed(s: &mut Sketch, x: Id, perm: &[usize]) -> Option<Id> {
    let shape = permuted(&s.values[x].shape, perm);
    let list: Vec<i64> = perm.iter().map(|&p| p as i64).collect();
    let reversed = perm.iter().rev().copied().eq(0..perm.len());
    let attributes = if reversed { vec![] } else { vec![ints("perm", &list)] };
    s.simple("Transpose", x, &[], shape, EXACT, attributes)
}

pub(super) fn transpose(s: &mut Sketch, dice: &mut Dice<'_>) -> Option<Id> {
    let x = s.any(dice, 2)?;
    let perm = dice.permutation(s.values[x].rank());
    transposed(s, x, &perm)
}

/// A Transpose, an op or two, and the Transpose back.
pub(super) fn wrapped(s: &mut Sketch, dice: &mut Dice<'_>) -> Option<Id> {
    const INNER: &[Family] =
        &[unary, constant_operand, binary, pad, reduce, concat, softmax, slice, tile, clip, expand, cast];
    let x = s.float(dice, 2)?;
    let rank = s.values[x].rank();
    let perm = dice.permutation(rank);
    let mut y = transposed(s, x, &perm)?;
    for _ in 0..=dice.below(2) {
        s.forced = Some(y);
        y = dice.pick(INNER)(s, dice).unwrap_or(y);
        s.forced = None;
    }
    if s.values[y].rank() != rank {
        return Some(y);
    }
    let mut back = vec![0; rank];
    for (i, &p) in perm.iter().enumerate() {
        back[p] = i;
    }
    transposed(s, y, &back)
}

pub(super) fn transposed_constant(s: &mut Sketch, dice: &mut Dice<'_>) -> Option<Id> {
    let x = s.float(dice, 2)?;
    let shape = s.values[x].shape.clone();
    let perm = dice.permutation(shape.len());
    let mut before = vec![0; shape.len()];
    for (i, &p) in perm.iter().enumerate() {
        before[p] = shape[i];
    }
    let c = s.constant(dice, &before);
    let t = transposed(s, c, &perm)?;
    two(s, "Add", x, t, shape)
}

pub(super) fn reshape(s: &mut Sketch, dice: &mut Dice<'_>) -> Option<Id> {
    let x = s.any(dice, 1)?;
    let v = s.values[x].clone();
    let mut shape = v.shape.clone();
    let mut target;
    match dice.below(4) {
        // Two neighbours as one.
        0 if shape.len() >= 2 => {
            let at = dice.below(shape.len() - 1);
            let n = shape.remove(at + 1);
            shape[at] *= n;
            target = shape.clone();
        }
        // One axis as two.
        1 => {
            let at = dice.below(shape.len());
            let digit = (2..=shape[at]).find(|d| shape[at] % d == 0).unwrap_or(1);
            shape[at] /= digit;
            let place = at + 1;
            shape.insert(place, digit);
            target = shape.clone();
        }
        // Everything as two axes that cut where they may.
        2 => {
            let n = v.elements();
            let outer = dice.pick(&[1, 2, 3, 4, 6]);
            if n % outer != 0 {
                return None;
            }
            shape = vec![outer, n / outer];
            target = shape.clone();
        }
        // The same numbers in another order.
        _ => {
            shape.rotate_left(1);
            target = shape.clone();
        }
    }
    let at = dice.below(target.len() * 2);
    if at < target.len() {
        target[at] = -1;
    }
    if dice.once_in(3) && shape.first() == v.shape.first() {
        target[0] = 0;
    }
    let list = s.ints(&target);
    s.simple("Reshape", x, &[list], shape, EXACT, vec![])
}

pub(super) fn flatten(s: &mut Sketch, dice: &mut Dice<'_>) -> Option<Id> {
    let x = s.float(dice, 1)?;
    let v = s.values[x].clone();
    let axis = dice.below(v.rank() + 1);
    let shape = vec![v.shape[..axis].iter().product(), v.shape[axis..].iter().product()];
    s.simple("Flatten", x, &[], shape, EXACT, vec![int("axis", axis as i64)])
}

pub(super) fn squeeze(s: &mut Sketch, dice: &mut Dice<'_>) -> Option<Id> {
    let x = s.choose(dice, |v| v.shape.contains(&1) && !v.constant)?;
    let v = s.values[x].clone();
    let ones: Vec<usize> = (0..v.rank()).filter(|&i| v.shape[i] == 1).collect();
    let axis = dice.pick(&ones);
    let mut shape = v.shape.clone();
    shape.remove(axis);
    list_of_axes(s, "Squeeze", x, &[axis as i64], shape)
}

pub(super) fn unsqueeze(s: &mut Sketch, dice: &mut Dice<'_>) -> Option<Id> {
    let x = s.any(dice, 0)?;
    let mut shape = s.values[x].shape.clone();
    let axis = dice.below(shape.len() + 1);
    shape.insert(axis, 1);
    list_of_axes(s, "Unsqueeze", x, &[axis as i64], shape)
}

pub(super) fn list_of_axes(s: &mut Sketch, op: &str, x: Id, axes: &[i64], shape: Vec<i64>) -> Option<Id> {
    if s.opset < 13 {
        return s.simple(op, x, &[], shape, EXACT, vec![ints("axes", axes)]);
    }
    let list = s.ints(axes);
    s.simple(op, x, &[list], shape, EXACT, vec![])
}

/// Shape arithmetic as exporters write it: one extent is read, the rest is one.
pub(super) fn by_shape(s: &mut Sketch, dice: &mut Dice<'_>) -> Option<Id> {
    let x = s.float(dice, 2)?;
    let v = s.values[x].clone();
    let at = dice.below(v.rank());
    let name = s.read(x);
    let shape = s.helper("Shape", vec![name], vec![]);
    let place = s.ints(&[at as i64]);
    let extent = s.helper("Gather", vec![shape, place], vec![int("axis", 0)]);
    let rest = s.ints(&[-1]);
    let target = s.helper("Concat", vec![extent, rest], vec![int("axis", 0)]);
    let result = vec![v.shape[at], v.elements() / v.shape[at]];
    s.simple("Reshape", x, &[target], result, EXACT, vec![])
}

pub(super) fn space(s: &mut Sketch, dice: &mut Dice<'_>) -> Option<Id> {
    let x = s.choose(dice, |v| v.dtype == DataType::Float && v.rank() == 4 && !v.constant)?;
    let v = s.values[x].shape.clone();
    if v[1] % 4 == 0 && dice.once_in(2) {
        let shape = vec![v[0], v[1] / 4, v[2] * 2, v[3] * 2];
        return s.simple("DepthToSpace", x, &[], shape, EXACT, vec![int("blocksize", 2)]);
    }
    if v[2] % 2 != 0 || v[3] % 2 != 0 {
        return None;
    }
    let shape = vec![v[0], v[1] * 4, v[2] / 2, v[3] / 2];
    s.simple("SpaceToDepth", x, &[], shape, EXACT, vec![int("blocksize", 2)])
}

/// An If whose branches read the value from outside.
pub(super) fn branches(s: &mut Sketch, dice: &mut Dice<'_>) -> Option<Id> {
    let x = s.float(dice, 2)?;
    let v = s.values[x].clone();
    let perm = dice.permutation(v.rank());
    let list: Vec<i64> = perm.iter().map(|&p| p as i64).collect();
    let back: Vec<i64> =
        (0..list.len() as i64).map(|i| list.iter().position(|&p| p == i).map_or(0, |p| p as i64)).collect();
    let shape = permuted(&v.shape, &perm);
    let condition = s.raw(DataType::Bool, &[], vec![u8::from(dice.once_in(2))]);
    let capture = s.read(x);
    let names: Vec<String> = (0..5).map(|_| s.name("b")).collect();
    let one = |op: &str, from: &str, to: usize, attributes| {
        node(op, vec![from.to_owned()], vec![names[to].clone()], attributes)
    };
    // Either both branches leave the result transposed, or the pair in the first cancels.
    let plain = dice.once_in(2);
    let result = if plain { shape } else { v.shape.clone() };
    let mut then = vec![one("Transpose", &capture, 0, vec![ints("perm", &list)]), one("Relu", &names[0], 1, vec![])];
    let other = if plain {
        then.push(one("Abs", &names[1], 2, vec![]));
        vec![one("Transpose", &capture, 3, vec![ints("perm", &list)]), one("Neg", &names[3], 4, vec![])]
    } else {
        then.push(one("Transpose", &names[1], 2, vec![ints("perm", &back)]));
        vec![one("Neg", &capture, 4, vec![])]
    };
    let out = |name: &str| info(name, DataType::Float, &result, &std::collections::BTreeMap::new(), false);
    let attributes = vec![body("then_branch", then, out(&names[2])), body("else_branch", other, out(&names[4]))];
    s.op("If", &[x], vec![condition], &[(DataType::Float, result.clone())], EXACT, attributes)
}
