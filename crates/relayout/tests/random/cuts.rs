//! Families of steps that add rows and columns to an image, or take some away.

use crate::dice::Dice;
use crate::net::{CHANNELS, Conv, Id, Net};
use crate::proto::{int, ints, text};
use crate::steps::{convolved, followed, shape};

/// Numbers beside the image, now and then beside its channels, and a convolution of both.
pub(crate) fn pad(net: &mut Net, dice: &mut Dice<'_>) -> Option<Id> {
    let x = net.any(dice)?;
    let [c, h, w] = shape(net, x);
    let (top, left, bottom, right) = dice.pick(&[(1i64, 1i64, 1i64, 1i64), (0, 0, 1, 1), (2, 1, 0, 1)]);
    let more = if dice.once_in(4) { dice.pick(&[3i64, 12]) } else { 0 };
    let mode = if more == 0 { dice.pick(&["constant", "constant", "reflect", "edge"]) } else { "constant" };
    if h < 4 || w < 4 || !net.fits(c + more, h + top + bottom, w + left + right) {
        return None;
    }
    let ends =
        if net.last { [0, top, left, 0, 0, bottom, right, more] } else { [0, 0, top, left, 0, more, bottom, right] };
    let pads = net.list(&ends);
    let value = net.number(if dice.once_in(3) { 0.5 } else { 0.0 });
    let operands: &[&str] = if mode == "constant" { &[&pads, &value] } else { &[&pads] };
    let name = net.read(x);
    let inputs: Vec<&str> = std::iter::once(name.as_str()).chain(operands.iter().copied()).collect();
    let y = net.add("Pad", &inputs, vec![text("mode", mode)]);
    let y = net.image(y, c + more, h + top + bottom, w + left + right);
    net.conv(y, Conv { pads: [0; 4], ..Conv::same(dice.pick(CHANNELS), 3) })
}

/// Some of the rows and columns, every second one or in reverse too.
pub(crate) fn slice(net: &mut Net, dice: &mut Dice<'_>) -> Option<Id> {
    let x = net.choose(dice, |v| v.h > 5 && v.w > 5)?;
    let x = convolved(net, dice, x);
    let [c, h, w] = shape(net, x);
    // First element, end, step, and how many these are of so many.
    let cut = |kind: usize, size: i64| match kind {
        0 => (1, i64::MAX, 1, size - 1),
        1 => (0, -1, 1, size - 1),
        2 => (0, i64::MAX, 2, (size + 1) / 2),
        _ => (-1, i64::MIN, -1, size),
    };
    let (rows, columns) = (cut(dice.below(4), h), cut(dice.below(4), w));
    let axes = net.spatial_axes();
    let lists = [[rows.0, columns.0], [rows.1, columns.1], [axes[0], axes[1]], [rows.2, columns.2]];
    let lists = lists.map(|list| net.list(&list));
    let name = net.read(x);
    let y = net.add("Slice", &[&name, &lists[0], &lists[1], &lists[2], &lists[3]], vec![]);
    let y = net.image(y, c, rows.3, columns.3);
    Some(followed(net, dice, y))
}

/// What a convolution makes, its channels made pixels, in both modes and with ops between; or pixels made channels. Blocks pay
/// where a convolution follows.
pub(crate) fn space(net: &mut Net, dice: &mut Dice<'_>) -> Option<Id> {
    let factor = dice.pick(&[2i64, 2, 3]);
    let x = net.choose(dice, |v| v.h <= 10 && v.w <= 10)?;
    let to_depth = dice.once_in(3);
    let channels = dice.pick(&[16i64, 32, 16, 16, 5]);
    let [_, h, w] = shape(net, x);
    if to_depth && (h % factor, w % factor) != (0, 0) || !net.fits(channels * factor * factor, h, w) {
        return None;
    }
    let mut x = net.conv(x, Conv::same(if to_depth { channels } else { channels * factor * factor }, 3))?;
    if dice.once_in(2) {
        x = net.keeping(dice.pick(&["Relu", "Tanh", "Softplus"]), x, &[], vec![]);
    }
    let name = net.read(x);
    let first = net.first(&name);
    let y = if to_depth {
        net.add("SpaceToDepth", &[&first], vec![int("blocksize", factor)])
    } else {
        let mode = text("mode", dice.pick(&["CRD", "CRD", "DCR"]));
        net.add("DepthToSpace", &[&first], vec![int("blocksize", factor), mode])
    };
    let y = net.back(y);
    let y = if to_depth {
        net.image(y, channels * factor * factor, h / factor, w / factor)
    } else {
        net.image(y, channels, h * factor, w * factor)
    };
    Some(followed(net, dice, y))
}

/// An image that is made larger by a transposed convolution: most often by its stride, with kernels as long as that and longer ones.
pub(crate) fn enlarged(net: &mut Net, dice: &mut Dice<'_>) -> Option<Id> {
    let stride = dice.pick(&[2i64, 2, 3]);
    let x = net.choose(dice, |v| v.h <= 16 && v.w <= 16)?;
    let x = net.conv(x, Conv::same(dice.pick(&[32i64, 16, 48]), 3))?;
    let channels = dice.pick(&[16i64, 32, 16, 32, 24]);
    let longer = dice.pick(&[0i64, 0, 0, 1, 2]);
    // Else the result has a row and a column more or less than the stride times those of the operand.
    let more = if dice.once_in(6) { 1 - longer % 2 } else { longer % 2 };
    let (kernel, pads) = (stride + longer, i64::midpoint(longer, more));
    let [c, h, w] = shape(net, x);
    let [h, w] = [h, w].map(|side| (side - 1) * stride + kernel + more - 2 * pads);
    if !net.fits(channels, h, w) {
        return None;
    }
    let reach = (3.0 * (stride * stride) as f32 / (c * kernel * kernel) as f32).sqrt();
    let weights = net.between(&[c, channels, kernel, kernel], -reach, reach);
    let bias = (!dice.once_in(3)).then(|| net.between(&[channels], -0.3, 0.3));
    let name = net.read(x);
    let first = net.first(&name);
    let mut inputs = vec![first.as_str(), weights.as_str()];
    inputs.extend(bias.as_deref());
    let told = [("strides", [stride; 2]), ("output_padding", [more; 2]), ("kernel_shape", [kernel; 2])];
    let mut attributes: Vec<_> = told.iter().map(|(name, list)| ints(name, list)).collect();
    attributes.push(ints("pads", &[pads; 4]));
    let y = net.add("ConvTranspose", &inputs, attributes);
    let y = net.back(y);
    let y = net.image(y, channels, h, w);
    net.conv(y, Conv::same(dice.pick(CHANNELS), dice.pick(&[1, 3])))
}
