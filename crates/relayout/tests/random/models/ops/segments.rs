//! Channels in segments whose extents are no multiple of a block, where a convolution reads them.

use super::*;

/// Extents of channels that fill no block of 4 or more.
const ODD: &[i64] = &[5, 3, 7, 6, 9, 17];

fn image(s: &mut Sketch, dice: &mut Dice<'_>) -> Option<Id> {
    s.choose(dice, |v| {
        let small = v.shape.get(2..).is_some_and(|spatial| spatial.iter().product::<i64>() <= 64);
        v.dtype == DataType::Float && (3..=5).contains(&v.rank()) && !v.constant && small && v.factors < 5
    })
}

/// A convolution to so many channels that keeps the spatial extents.
fn convolved(s: &mut Sketch, dice: &mut Dice<'_>, x: Id, channels: i64) -> Option<Id> {
    let v = s.values[x].clone();
    let spatial = v.rank() - 2;
    let kernel = dice.pick(&[1i64, 3]);
    let w = s.constant(dice, &[vec![channels, v.shape[1]], vec![kernel; spatial]].concat());
    let shape = [vec![v.shape[0], channels], v.shape[2..].to_vec()].concat();
    let names = vec![v.name, s.values[w].name.clone()];
    let attributes = vec![ints("pads", &vec![kernel / 2; 2 * spatial])];
    s.op("Conv", &[x, w], names, &[(DataType::Float, shape)], CONTRACTS, attributes)
}

fn with_channels(shape: &[i64], channels: i64) -> Vec<i64> {
    [&shape[..1], &[channels], &shape[2..]].concat()
}

/// Two convolutions, their results side by side, and a convolution of that.
pub(super) fn joined_channels(s: &mut Sketch, dice: &mut Dice<'_>) -> Option<Id> {
    let x = image(s, dice)?;
    let (a, b) = (dice.pick(ODD), dice.pick(&[5, 3, 20, 12, 6]));
    let parts = [convolved(s, dice, x, a)?, convolved(s, dice, x, b)?];
    let shape = with_channels(&s.values[x].shape.clone(), a + b);
    let names = parts.iter().map(|&p| s.values[p].name.clone()).collect();
    let y = s.op("Concat", &parts, names, &[(DataType::Float, shape.clone())], EXACT, vec![int("axis", 1)])?;
    let y = if dice.once_in(2) { s.simple("Relu", y, &[], shape, EXACT, vec![])? } else { y };
    let channels = dice.pick(ODD);
    convolved(s, dice, y, channels)
}

/// A convolution whose channels are split, each part read by another one.
pub(super) fn split_channels(s: &mut Sketch, dice: &mut Dice<'_>) -> Option<Id> {
    let x = image(s, dice)?;
    let sizes = [dice.pick(ODD), dice.pick(&[5, 3, 20, 12, 6])];
    let y = convolved(s, dice, x, sizes.iter().sum())?;
    let v = s.values[y].clone();
    let results: Vec<_> = sizes.iter().map(|&n| (DataType::Float, with_channels(&v.shape, n))).collect();
    let (mut inputs, mut attributes) = (vec![v.name], vec![int("axis", 1)]);
    if s.opset < 13 {
        attributes.push(ints("split", &sizes));
    } else {
        inputs.push(s.ints(&sizes));
    }
    let first = s.op("Split", &[y], inputs, &results, EXACT, attributes)?;
    let channels = dice.pick(ODD);
    convolved(s, dice, first, channels)?;
    convolved(s, dice, first + 1, channels)
}

/// Zeros beside the channels, and a convolution of both.
pub(super) fn padded_channels(s: &mut Sketch, dice: &mut Dice<'_>) -> Option<Id> {
    let x = image(s, dice)?;
    let channels = dice.pick(ODD);
    let x = convolved(s, dice, x, channels)?;
    let v = s.values[x].clone();
    let mut pads = vec![0i64; 2 * v.rank()];
    pads[1] = dice.pick(&[0, 1, 2]);
    pads[v.rank() + 1] = dice.pick(&[1, 3, 4]);
    pads[v.rank() - 1] = dice.pick(&[0, 1]);
    let shape: Vec<i64> = (0..v.rank()).map(|i| v.shape[i] + pads[i] + pads[v.rank() + i]).collect();
    let y = if s.opset < 11 {
        s.simple("Pad", x, &[], shape, EXACT, vec![ints("pads", &pads)])?
    } else {
        let list = s.ints(&pads);
        s.simple("Pad", x, &[list], shape, EXACT, vec![])?
    };
    convolved(s, dice, y, channels)
}
