//! Transposes, Reshapes and what exporters put around them.

use super::*;

pub(crate) fn transposed(s: &mut Sketch, x: Id, perm: &[usize]) -> Option<Id> {
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
    const INNER: &[Family] = &[
        unary,
        constant_operand,
        binary,
        pad,
        reduce,
        concat,
        softmax,
        slice,
        tile,
        clip,
        expand,
        cast,
        conv,
        pool,
        batch_norm,
        matmul,
        gemm,
        gather,
        top_k,
        cum_sum,
        quantize,
        layer_norm,
        split,
        arg,
        choose_where,
    ];
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

/// A constant that a node makes, added to a value.
pub(super) fn constant_node(s: &mut Sketch, dice: &mut Dice<'_>) -> Option<Id> {
    let x = s.float(dice, 1)?;
    let v = s.values[x].clone();
    let extent = *v.shape.last()?;
    let data = (0..extent).flat_map(|i| (i as f32 / 8.0 - 0.25).to_le_bytes()).collect();
    let c = s.constant_of(DataType::Float, &[extent], data);
    s.simple("Add", x, &[c], v.shape, EXACT, vec![])
}
