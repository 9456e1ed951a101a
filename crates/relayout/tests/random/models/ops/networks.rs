//! What finds its axes by position: convolutions, pools, normalizations, products of matrices.

use super::*;

pub(super) fn conv(s: &mut Sketch, dice: &mut Dice<'_>) -> Option<Id> {
    let x = s.choose(dice, |v| v.dtype == DataType::Float && (3..=5).contains(&v.rank()) && !v.constant)?;
    let v = s.values[x].clone();
    let (channels, spatial) = (v.shape[1], v.rank() - 2);
    let depthwise = dice.once_in(3);
    let group = if depthwise { channels } else { 1 };
    let out = if depthwise { channels } else { 1 + dice.below(4) as i64 };
    let kernel = dice.pick(&[1i64, 3]);
    let weights = [vec![out, channels / group], vec![kernel; spatial]].concat();
    let w = s.constant(dice, &weights);
    let mut operands = vec![x, w];
    if dice.once_in(2) {
        operands.push(s.constant(dice, &[out]));
    }
    let shape = [vec![v.shape[0], out], v.shape[2..].to_vec()].concat();
    let names = operands.iter().map(|&o| s.values[o].name.clone()).collect();
    let attributes = vec![int("group", group), ints("pads", &vec![kernel / 2; 2 * spatial])];
    s.op("Conv", &operands, names, &[(DataType::Float, shape)], CONTRACTS, attributes)
}

pub(super) fn pool(s: &mut Sketch, dice: &mut Dice<'_>) -> Option<Id> {
    let x = s.choose(dice, |v| v.dtype == DataType::Float && (3..=5).contains(&v.rank()) && !v.constant)?;
    let v = s.values[x].clone();
    let spatial = v.rank() - 2;
    if v.shape[2..].iter().any(|&d| d < 2) {
        return None;
    }
    let stride = dice.pick(&[1i64, 2]);
    let shape = [v.shape[..2].to_vec(), v.shape[2..].iter().map(|d| (d - 2) / stride + 1).collect()].concat();
    let attributes = vec![ints("kernel_shape", &vec![2; spatial]), ints("strides", &vec![stride; spatial])];
    let (op, effect) = dice.pick(&[("MaxPool", EXACT), ("AveragePool", ROUNDS)]);
    s.simple(op, x, &[], shape, effect, attributes)
}

pub(super) fn global_pool(s: &mut Sketch, dice: &mut Dice<'_>) -> Option<Id> {
    let x = s.choose(dice, |v| v.dtype == DataType::Float && (3..=5).contains(&v.rank()) && !v.constant)?;
    let v = s.values[x].clone();
    let shape = [v.shape[..2].to_vec(), vec![1; v.rank() - 2]].concat();
    s.simple("GlobalAveragePool", x, &[], shape, ROUNDS, vec![])
}

pub(super) fn batch_norm(s: &mut Sketch, dice: &mut Dice<'_>) -> Option<Id> {
    let x = s.float(dice, 2)?;
    let v = s.values[x].clone();
    let c = v.shape[1];
    let mut operands = vec![x];
    for _ in 0..3 {
        operands.push(s.constant(dice, &[c]));
    }
    let variance = (0..c).flat_map(|i| (1.0 + i as f32 / 4.0).to_le_bytes()).collect();
    let variance = s.raw(DataType::Float, &[c], variance);
    let mut names: Vec<String> = operands.iter().map(|&o| s.values[o].name.clone()).collect();
    names.push(variance);
    s.op("BatchNormalization", &operands, names, &[(DataType::Float, v.shape)], ROUNDS, vec![])
}

pub(super) fn layer_norm(s: &mut Sketch, dice: &mut Dice<'_>) -> Option<Id> {
    let x = s.float(dice, 1)?;
    let v = s.values[x].clone();
    let (axis, said) = axis_of(s, dice, x);
    let elements: i64 = v.shape[axis..].iter().product();
    // Of few numbers the variance may be nothing but rounding.
    if s.opset < 17 || elements < 4 || !v.exact {
        return None;
    }
    let c = s.constant(dice, &v.shape[axis..]);
    let names = vec![v.name.clone(), s.values[c].name.clone()];
    s.op("LayerNormalization", &[x, c], names, &[(DataType::Float, v.shape)], ROUNDS, vec![int("axis", said)])
}

pub(super) fn matmul(s: &mut Sketch, dice: &mut Dice<'_>) -> Option<Id> {
    let x = s.float(dice, 2)?;
    let v = s.values[x].clone();
    let k = v.shape[v.rank() - 1];
    let lead = v.shape[..v.rank() - 2].to_vec();
    let partner = |o: &crate::models::sketch::Value| {
        o.dtype == DataType::Float
            && !o.constant
            && o.rank() == v.rank()
            && o.shape[o.rank() - 2] == k
            && o.shape[..o.rank() - 2] == lead
    };
    let other = if dice.once_in(2) { s.choose(dice, partner) } else { None };
    let y = if let Some(y) = other {
        y
    } else {
        let n = 1 + dice.below(4) as i64;
        let batched = dice.once_in(4);
        let shape = if batched { [lead.clone(), vec![k, n]].concat() } else { vec![k, n] };
        s.constant(dice, &shape)
    };
    let n = *s.values[y].shape.last()?;
    let mut shape = v.shape.clone();
    *shape.last_mut()? = n;
    let names = vec![v.name, s.values[y].name.clone()];
    s.op("MatMul", &[x, y], names, &[(DataType::Float, shape)], CONTRACTS, vec![])
}

pub(super) fn gemm(s: &mut Sketch, dice: &mut Dice<'_>) -> Option<Id> {
    let x = s.choose(dice, |v| v.dtype == DataType::Float && v.rank() == 2 && !v.constant)?;
    let v = s.values[x].clone();
    let (a, b) = (dice.below(2), dice.below(2));
    let (m, k) = (v.shape[a], v.shape[1 - a]);
    let n = 1 + dice.below(4) as i64;
    let w = s.constant(dice, &if b == 1 { [n, k] } else { [k, n] });
    let mut operands = vec![x, w];
    if s.opset < 11 || dice.once_in(2) {
        operands.push(s.constant(dice, &[n]));
    }
    let names = operands.iter().map(|&o| s.values[o].name.clone()).collect();
    let attributes = vec![int("transA", a as i64), int("transB", b as i64)];
    s.op("Gemm", &operands, names, &[(DataType::Float, vec![m, n])], CONTRACTS, attributes)
}
