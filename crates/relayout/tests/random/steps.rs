//! The families of steps that a random network grows by. Each takes its operands and attributes from the dice and adds nothing where
//! they do not fit.

use crate::bodies::{branches, iterate};
use crate::cuts::{enlarged, pad, slice, space};
use crate::dice::Dice;
use crate::net::{CHANNELS, Conv, Id, Image, Net};
use crate::proto::{float, int, ints, node, text};
use relayout_onnx::proto::AttributeProto;

/// Adds one op or a few; the last image that it made.
pub(crate) type Family = fn(&mut Net, &mut Dice<'_>) -> Option<Id>;

/// Families and how often each is drawn.
const FAMILIES: &[(usize, Family)] = &[
    (5, regular),
    (3, pointwise),
    (3, depthwise),
    (2, grouped),
    (2, narrow),
    (2, batch_norm),
    (2, per_channel),
    (3, squeeze),
    (4, activated),
    (2, residual),
    (2, branching),
    (2, concat),
    (2, split),
    (3, pool),
    (1, global_pool),
    (2, resize),
    (2, pad),
    (2, slice),
    (4, space),
    (4, enlarged),
    (3, hazard),
    (2, unary),
    (1, turned),
    (1, branches),
    (1, iterate),
];

/// How many families there are.
pub(crate) const COUNT: u16 = FAMILIES.len() as u16;

/// The family that a number stands for: below [`COUNT`] each once, above as often as it is drawn.
pub(crate) fn family(number: u16) -> Family {
    if let Some((_, family)) = FAMILIES.get(usize::from(number)) {
        return *family;
    }
    let total: usize = FAMILIES.iter().map(|(weight, _)| weight).sum();
    let mut left = usize::from(number) % total;
    for &(weight, family) in FAMILIES {
        if left < weight {
            return family;
        }
        left -= weight;
    }
    regular
}

pub(crate) fn shape(net: &Net, x: Id) -> [i64; 3] {
    let Image { c, h, w, .. } = net.images[x];
    [c, h, w]
}

/// What a convolution makes of an image, most often: blocks then pay for what follows.
pub(crate) fn convolved(net: &mut Net, dice: &mut Dice<'_>, x: Id) -> Id {
    if dice.once_in(4) {
        return x;
    }
    net.conv(x, Conv::same(dice.pick(CHANNELS), dice.pick(&[3, 1]))).unwrap_or(x)
}

/// What a convolution makes of an image, now and then.
pub(crate) fn followed(net: &mut Net, dice: &mut Dice<'_>, x: Id) -> Id {
    if dice.once_in(3) {
        return x;
    }
    net.conv(x, Conv::same(dice.pick(CHANNELS), dice.pick(&[1, 3]))).unwrap_or(x)
}

fn regular(net: &mut Net, dice: &mut Dice<'_>) -> Option<Id> {
    let x = net.any(dice)?;
    let kernel = dice.pick(&[[3i64, 3], [3, 3], [5, 5], [1, 3], [2, 2]]);
    let dilation = if dice.once_in(3) { [2, 2] } else { [1, 1] };
    let stride = dice.pick(&[[1i64, 1], [1, 1], [2, 2], [2, 1]]);
    let half = [0, 1].map(|k| dilation[k] * (kernel[k] - 1) / 2);
    let pads = match dice.below(3) {
        0 | 1 => [half[0], half[1], half[0], half[1]],
        // As SAME has it with a stride.
        _ => [0, 0, half[0], half[1] + 1],
    };
    let conv =
        Conv { kernel, dilation, stride, pads, bias: !dice.once_in(3), ..Conv::same(dice.pick(CHANNELS), kernel[0]) };
    net.conv(x, conv)
}

fn pointwise(net: &mut Net, dice: &mut Dice<'_>) -> Option<Id> {
    let x = net.any(dice)?;
    let stride = if dice.once_in(4) { [2, 2] } else { [1, 1] };
    let bias = !dice.once_in(3);
    net.conv(x, Conv { stride, bias, ..Conv::same(dice.pick(CHANNELS), 1) })
}

fn depthwise(net: &mut Net, dice: &mut Dice<'_>) -> Option<Id> {
    let x = net.choose(dice, |v| v.c > 3)?;
    let c = net.images[x].c;
    let multiplier = if dice.once_in(6) { 2 } else { 1 };
    let kernel = dice.pick(&[3i64, 5]);
    let stride = if dice.once_in(3) { [2, 2] } else { [1, 1] };
    let bias = !dice.once_in(3);
    net.conv(x, Conv { group: c, stride, bias, ..Conv::same(c * multiplier, kernel) })
}

/// Of groups that are whole blocks, and some that are not.
fn grouped(net: &mut Net, dice: &mut Dice<'_>) -> Option<Id> {
    let x = net.any(dice)?;
    let c = dice.pick(&[32i64, 64, 32, 48, 24, 40]);
    let x = if net.images[x].c == c { x } else { net.conv(x, Conv::same(c, 1))? };
    let group = if c == 48 { dice.pick(&[3, 2]) } else { dice.pick(&[2, 4, 2]) };
    let out = dice.pick(&[c, c, 2 * c]);
    net.conv(x, Conv { group, bias: dice.once_in(2), ..Conv::same(out, dice.pick(&[3, 1])) })
}

/// Of groups that are fewer channels than a block, as many as a block has or some other number, to as many or more.
fn narrow(net: &mut Net, dice: &mut Dice<'_>) -> Option<Id> {
    let x = net.any(dice)?;
    let (width, groups) =
        dice.pick(&[(4i64, 8i64), (4, 16), (2, 16), (8, 4), (1, 32), (12, 4), (3, 8), (5, 4), (24, 2)]);
    let c = width * groups;
    let x = net.conv(x, Conv::same(c, dice.pick(&[1, 3])))?;
    let out = if width == 1 { 2 * c } else { dice.pick(&[c, c, 2 * c]) };
    let stride = if dice.once_in(3) { [2, 2] } else { [1, 1] };
    let y =
        net.conv(x, Conv { group: groups, stride, bias: !dice.once_in(3), ..Conv::same(out, dice.pick(&[3, 3, 1])) })?;
    let y = if dice.once_in(2) { activate(net, dice, y) } else { y };
    Some(followed(net, dice, y))
}

fn batch_norm(net: &mut Net, dice: &mut Dice<'_>) -> Option<Id> {
    let x = net.any(dice)?;
    let [c, h, w] = shape(net, x);
    let name = net.read(x);
    let first = net.first(&name);
    let scale = net.between(&[c], 0.5, 1.5);
    let [shift, mean] = [(); 2].map(|()| net.between(&[c], -0.5, 0.5));
    let variance = net.between(&[c], 0.5, 2.0);
    let y = net.add("BatchNormalization", &[&first, &scale, &shift, &mean, &variance], vec![]);
    let y = net.back(y);
    Some(net.image(y, c, h, w))
}

/// A number for each channel.
fn per_channel(net: &mut Net, dice: &mut Dice<'_>) -> Option<Id> {
    let x = net.any(dice)?;
    let x = if dice.once_in(2) { activated(net, dice)? } else { x };
    let c = net.images[x].c;
    let mut at = x;
    for _ in 0..=dice.below(2) {
        let extents = match (net.last, dice.below(2)) {
            (true, 0) => vec![c],
            (true, _) => vec![1, 1, 1, c],
            (false, 0) => vec![c, 1, 1],
            (false, _) => vec![1, c, 1, 1],
        };
        let op = dice.pick(&["Mul", "Add", "Sub", "Div"]);
        let numbers = net.between(&extents, 0.5, 1.5);
        at = if dice.once_in(4) && op != "Div" {
            let [c, h, w] = shape(net, at);
            let name = net.read(at);
            let y = net.add(op, &[&numbers, &name], vec![]);
            net.image(y, c, h, w)
        } else {
            net.keeping(op, at, &[&numbers], vec![])
        };
    }
    Some(at)
}

/// The mean over rows and columns, now and then their maximum, which keeps them as extents of 1.
fn mean(net: &mut Net, dice: &mut Dice<'_>, x: Id) -> Id {
    let c = net.images[x].c;
    let name = net.read(x);
    let y = if dice.once_in(3) {
        let first = net.first(&name);
        let y = net.add("GlobalAveragePool", &[&first], vec![]);
        net.back(y)
    } else {
        reduction(net, dice, &name, c)
    };
    net.image(y, c, 1, 1)
}

/// A reduction over rows and columns, with a Reshape where it drops their axes.
fn reduction(net: &mut Net, dice: &mut Dice<'_>, name: &str, c: i64) -> String {
    let axes = net.spatial_axes();
    let drops = dice.once_in(2);
    let op = dice.pick(&["ReduceMean", "ReduceMean", "ReduceMax"]);
    let mut attributes = if drops { vec![int("keepdims", 0)] } else { vec![] };
    let y = if net.opset < 18 {
        attributes.push(ints("axes", &axes));
        net.add(op, &[name], attributes)
    } else {
        let axes = net.list(&axes);
        net.add(op, &[name, &axes], attributes)
    };
    if !drops {
        return y;
    }
    let shape = net.list(&if net.last { [0, 1, 1, c] } else { [0, c, 1, 1] });
    net.add("Reshape", &[&y, &shape], vec![])
}

/// Squeeze and excitation.
fn squeeze(net: &mut Net, dice: &mut Dice<'_>) -> Option<Id> {
    let x = net.choose(dice, |v| v.c > 3 && v.h * v.w > 1)?;
    let [c, h, w] = shape(net, x);
    let m = mean(net, dice, x);
    let narrow = net.conv(m, Conv::same((c / 4).max(1), 1))?;
    let op = dice.pick(&["Relu", "Sigmoid", "Relu"]);
    let narrow = net.keeping(op, narrow, &[], vec![]);
    let wide = net.conv(narrow, Conv::same(c, 1))?;
    let gate = if dice.once_in(2) {
        net.keeping("HardSigmoid", wide, &[], vec![float("alpha", 1.0 / 6.0)])
    } else {
        net.keeping("Sigmoid", wide, &[], vec![])
    };
    let (x, gate) = (net.read(x), net.read(gate));
    let operands = if dice.once_in(3) { [gate.as_str(), x.as_str()] } else { [x.as_str(), gate.as_str()] };
    let y = net.add("Mul", &operands, vec![]);
    Some(net.image(y, c, h, w))
}

fn activate(net: &mut Net, dice: &mut Dice<'_>, x: Id) -> Id {
    match dice.below(12) {
        0 | 1 => net.keeping("Relu", x, &[], vec![]),
        2 | 3 => {
            let ends = [net.number(dice.pick(&[0.0f32, -0.5, 0.25])), net.number(dice.pick(&[6.0f32, 1.0]))];
            net.keeping("Clip", x, &[&ends[0], &ends[1]], vec![])
        }
        4 => {
            let alpha = float("alpha", dice.pick(&[0.1, 0.3, -0.2]));
            net.keeping("LeakyRelu", x, &[], vec![alpha])
        }
        10 => net.keeping("LeakyRelu", x, &[], vec![]),
        5 => net.keeping("Tanh", x, &[], vec![]),
        6 => net.keeping("Sigmoid", x, &[], vec![]),
        7 => net.keeping("HardSigmoid", x, &[], vec![]),
        8 | 9 if net.opset >= 14 => net.keeping("HardSwish", x, &[], vec![]),
        // Swish.
        _ => {
            let gate = net.keeping("Sigmoid", x, &[], vec![]);
            let [c, h, w] = shape(net, x);
            let (x, gate) = (net.read(x), net.read(gate));
            let y = net.add("Mul", &[&x, &gate], vec![]);
            net.image(y, c, h, w)
        }
    }
}

/// A convolution and its activation.
fn activated(net: &mut Net, dice: &mut Dice<'_>) -> Option<Id> {
    let x = net.any(dice)?;
    let mut at = x;
    for _ in 0..=dice.below(3) {
        let conv = Conv::same(dice.pick(CHANNELS), dice.pick(&[3, 1]));
        at = net.conv(at, conv)?;
        at = activate(net, dice, at);
    }
    Some(followed(net, dice, at))
}

fn sum(net: &mut Net, dice: &mut Dice<'_>, a: Id, b: Id) -> Id {
    let [c, h, w] = shape(net, a);
    let (a, b) = (net.read(a), net.read(b));
    let op = dice.pick(&["Add", "Sum", "Add", "Mul", "Max", "Add"]);
    let y = net.add(op, &[&a, &b], vec![]);
    net.image(y, c, h, w)
}

/// What two convolutions make of an image, and the image.
fn residual(net: &mut Net, dice: &mut Dice<'_>) -> Option<Id> {
    let x = net.choose(dice, |v| v.c > 3)?;
    let c = net.images[x].c;
    let inner = net.conv(x, Conv::same(dice.pick(CHANNELS), dice.pick(&[1, 3])))?;
    let inner = activate(net, dice, inner);
    let inner = net.conv(inner, Conv { bias: dice.once_in(2), ..Conv::same(c, dice.pick(&[3, 1])) })?;
    let y = sum(net, dice, inner, x);
    Some(if dice.once_in(2) { y } else { activate(net, dice, y) })
}

/// Two convolutions of an image, added up.
fn branching(net: &mut Net, dice: &mut Dice<'_>) -> Option<Id> {
    let x = net.any(dice)?;
    let out = dice.pick(CHANNELS);
    let a = net.conv(x, Conv { bias: dice.once_in(2), ..Conv::same(out, 3) })?;
    let b = net.conv(x, Conv { bias: dice.once_in(2), ..Conv::same(out, 1) })?;
    let b = if dice.once_in(3) { activate(net, dice, b) } else { b };
    let y = sum(net, dice, a, b);
    Some(if dice.once_in(2) { y } else { activate(net, dice, y) })
}

fn concat(net: &mut Net, dice: &mut Dice<'_>) -> Option<Id> {
    let x = net.any(dice)?;
    let [c, h, w] = shape(net, x);
    let a = net.conv(x, Conv::same(dice.pick(CHANNELS), dice.pick(&[1, 3])))?;
    let alike = net.choose(dice, |v| v.spatial() == [h, w])?;
    let other = if dice.once_in(2) { alike } else { net.conv(x, Conv::same(dice.pick(CHANNELS), 1))? };
    let parts = if dice.once_in(3) { vec![a, other, x] } else { vec![a, other] };
    let all = parts.iter().map(|&p| net.images[p].c).sum();
    if !net.fits(all, h, w) || c < 1 {
        return None;
    }
    let names: Vec<String> = parts.iter().map(|&p| net.read(p)).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let axis = if dice.once_in(3) { net.channel_axis() - 4 } else { net.channel_axis() };
    let y = net.add("Concat", &names, vec![int("axis", axis)]);
    Some(net.image(y, all, h, w))
}

fn split(net: &mut Net, dice: &mut Dice<'_>) -> Option<Id> {
    let x = net.any(dice)?;
    let [_, h, w] = shape(net, x);
    let sizes = dice.pick(&[[16i64, 16], [20, 12], [8, 24], [5, 17], [24, 24], [32, 16]]);
    let x = net.conv(x, Conv::same(sizes.iter().sum(), 1))?;
    let mut inputs = vec![net.read(x)];
    let mut attributes = vec![int("axis", net.channel_axis())];
    if net.opset < 13 {
        attributes.push(ints("split", &sizes));
    } else {
        inputs.push(net.list(&sizes));
    }
    let outputs = vec![net.name("s"), net.name("s")];
    net.nodes.push(node("Split", inputs, outputs.clone(), attributes));
    let parts: Vec<Id> = outputs.into_iter().zip(sizes).map(|(name, c)| net.image(name, c, h, w)).collect();
    let first = activate(net, dice, parts[0]);
    net.conv(first, Conv::same(dice.pick(CHANNELS), 3))?;
    net.conv(parts[1], Conv::same(dice.pick(CHANNELS), 1))
}

fn pool(net: &mut Net, dice: &mut Dice<'_>) -> Option<Id> {
    let x = net.choose(dice, |v| v.h > 4 && v.w > 4)?;
    let x = convolved(net, dice, x);
    let [c, h, w] = shape(net, x);
    let kernel = dice.pick(&[[2i64, 2], [3, 3], [3, 2]]);
    let stride = dice.pick(&[[2i64, 2], [1, 1], [2, 1], [3, 3]]);
    let pads = dice.pick(&[[0i64; 4], [1, 1, 1, 1], [0, 0, 1, 1], [1, 0, 0, 1]]);
    let ceil = dice.once_in(2);
    let op = dice.pick(&["MaxPool", "AveragePool"]);
    let extent = |k: usize, from: i64| {
        let room = from + pads[k] + pads[k + 2] - kernel[k];
        let steps = if ceil { (room + stride[k] - 1) / stride[k] } else { room / stride[k] };
        // No window starts in the zeros at the end.
        let starts_behind = ceil && steps * stride[k] >= from + pads[k];
        steps + 1 - i64::from(starts_behind)
    };
    let (oh, ow) = (extent(0, h), extent(1, w));
    let mut attributes = vec![ints("kernel_shape", &kernel), ints("strides", &stride), ints("pads", &pads)];
    if ceil {
        attributes.push(int("ceil_mode", 1));
    }
    if op == "AveragePool" && dice.once_in(2) {
        attributes.push(int("count_include_pad", 1));
    }
    let name = net.read(x);
    let first = net.first(&name);
    let y = net.add(op, &[&first], attributes);
    let y = net.back(y);
    let y = net.image(y, c, oh, ow);
    Some(followed(net, dice, y))
}

fn global_pool(net: &mut Net, dice: &mut Dice<'_>) -> Option<Id> {
    let x = net.any(dice)?;
    let x = convolved(net, dice, x);
    if dice.once_in(3) {
        return Some(mean(net, dice, x));
    }
    let c = net.images[x].c;
    let name = net.read(x);
    let first = net.first(&name);
    let y = net.add("GlobalMaxPool", &[&first], vec![]);
    let y = net.back(y);
    let y = net.image(y, c, 1, 1);
    Some(followed(net, dice, y))
}

fn resize(net: &mut Net, dice: &mut Dice<'_>) -> Option<Id> {
    let x = net.choose(dice, |v| v.h <= 16 && v.w <= 16)?;
    let x = convolved(net, dice, x);
    let [c, h, w] = shape(net, x);
    let (mode, coordinates, rounding) = dice.pick(&[
        ("nearest", "asymmetric", "floor"),
        ("nearest", "half_pixel", "round_prefer_floor"),
        ("nearest", "half_pixel", "floor"),
        ("nearest", "asymmetric", "ceil"),
        ("linear", "half_pixel", ""),
        ("linear", "align_corners", ""),
        ("linear", "asymmetric", ""),
        ("linear", "pytorch_half_pixel", ""),
    ]);
    let (fh, fw) = dice.pick(&[(2.0f32, 2.0f32), (2.0, 2.0), (3.0, 2.0), (1.0, 2.0), (1.5, 2.0)]);
    let (oh, ow) = ((h as f32 * fh).floor() as i64, (w as f32 * fw).floor() as i64);
    if !net.fits(c, oh, ow) {
        return None;
    }
    let mut attributes = vec![text("mode", mode), text("coordinate_transformation_mode", coordinates)];
    if !rounding.is_empty() {
        attributes.push(text("nearest_mode", rounding));
    }
    let name = net.read(x);
    let first = net.first(&name);
    let empty = if net.opset < 13 { net.floats(&[]) } else { String::new() };
    let y = if dice.once_in(3) && !net.symbolic {
        let sizes = net.list(&[net.batch, c, oh, ow]);
        let scales = if net.opset < 13 { net.floats(&[]) } else { String::new() };
        net.add("Resize", &[&first, &empty, &scales, &sizes], attributes)
    } else {
        let scales = net.floats(&[1.0, 1.0, fh, fw]);
        net.add("Resize", &[&first, &empty, &scales], attributes)
    };
    let y = net.back(y);
    let y = net.image(y, c, oh, ow);
    Some(followed(net, dice, y))
}

/// Numbers well away from 0 whose pad slots are 0, an op that makes no number of 0, and a convolution that would read it.
fn hazard(net: &mut Net, dice: &mut Dice<'_>) -> Option<Id> {
    let x = net.any(dice)?;
    let x = net.keeping("Tanh", x, &[], vec![]);
    let around = Conv { centre: 4.0, spread: 0.3, ..Conv::same(dice.pick(CHANNELS), dice.pick(&[1, 3])) };
    let x = net.conv(x, around)?;
    let op = dice.pick(&["Reciprocal", "Log", "Sqrt", "Pow", "Div", "Exp"]);
    let y = match op {
        "Pow" => {
            let exponent = net.number(dice.pick(&[-1.0f32, -0.5]));
            net.keeping(op, x, &[&exponent], vec![])
        }
        "Div" => {
            let [c, h, w] = shape(net, x);
            let (one, name) = (net.number(1.0), net.read(x));
            let y = net.add(op, &[&one, &name], vec![]);
            net.image(y, c, h, w)
        }
        _ => net.keeping(op, x, &[], vec![]),
    };
    if dice.once_in(3) {
        let m = mean(net, dice, y);
        return net.conv(m, Conv::same(dice.pick(CHANNELS), 1));
    }
    net.conv(y, Conv { bias: dice.once_in(2), spread: 0.5, ..Conv::same(dice.pick(CHANNELS), dice.pick(&[1, 3])) })
}

fn unary(net: &mut Net, dice: &mut Dice<'_>) -> Option<Id> {
    let x = net.any(dice)?;
    let softmax: fn(&Net, i64) -> Vec<AttributeProto> = |_, axis| vec![int("axis", axis)];
    Some(match dice.below(7) {
        0 => net.keeping("Softmax", x, &[], softmax(net, net.channel_axis())),
        1 => net.keeping("Softmax", x, &[], softmax(net, 3)),
        2 => net.keeping("Elu", x, &[], vec![float("alpha", 0.7)]),
        3 => {
            let x = net.keeping("Tanh", x, &[], vec![]);
            net.keeping("Exp", x, &[], vec![])
        }
        4 => net.keeping("Softplus", x, &[], vec![]),
        5 => net.keeping("Abs", x, &[], vec![]),
        _ => {
            let number = net.number(dice.pick(&[0.5f32, 2.0, 3.0]));
            net.keeping(dice.pick(&["Mul", "Add"]), x, &[&number], vec![])
        }
    })
}

/// An op in the other order of axes.
fn turned(net: &mut Net, dice: &mut Dice<'_>) -> Option<Id> {
    let x = net.any(dice)?;
    let [c, h, w] = shape(net, x);
    let (there, back) = if net.last { ([0i64, 3, 1, 2], [0i64, 2, 3, 1]) } else { ([0, 2, 3, 1], [0, 3, 1, 2]) };
    let name = net.read(x);
    let mut y = net.add("Transpose", &[&name], vec![ints("perm", &there)]);
    for _ in 0..=dice.below(2) {
        y = match dice.below(3) {
            0 => net.add("Relu", &[&y], vec![]),
            1 => net.add("Softmax", &[&y], vec![int("axis", 3)]),
            _ => {
                let numbers = net.between(&[if net.last { w } else { c }], 0.5, 1.5);
                net.add("Mul", &[&y, &numbers], vec![])
            }
        };
    }
    let y = net.add("Transpose", &[&y], vec![ints("perm", &back)]);
    Some(net.image(y, c, h, w))
}
