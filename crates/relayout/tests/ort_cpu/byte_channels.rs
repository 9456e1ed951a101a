//! Target `ort-cpu`, channels of quantized images that are shuffled between convolutions: made in the order in which they are read. Each
//! network is run before and after in ONNX Runtime. Where the runtime computes in integers every bit is the same.

use crate::common;
use crate::fold_nets::blocks::{blocks, levels};
use crate::fold_nets::cpu::{refusal, target};
use crate::fold_nets::{F32, I8, I32, Net, U8, runtime};
use prost::Message;
use relayout::{Model, Numerics, Report, optimize};
use relayout_onnx::proto::ModelProto;
use relayout_targets::Block;
use relayout_verify::{Comparison, Inputs, Level, ModelSource, Options, Tolerance, save_as_loaded, verify};
use std::collections::BTreeMap;

const CHANNELS: (&str, &[i64]) = ("axis", &[1]);
/// In floats a sum in another order may be rounded to the next byte, and what is computed of that as well.
const STEPS: f64 = 0.1;

/// How a network is written.
#[derive(Clone, Debug)]
#[expect(clippy::struct_excessive_bools, reason = "each is one way or the other")]
struct Way {
    /// Of activations.
    bytes: i32,
    /// As ops on bytes, and not as floats between pairs.
    on_bytes: bool,
    /// A scale for each filter.
    per_channel: bool,
    /// Pairs around views, in place of views of floats or bytes.
    pairs: bool,
    /// A Split in place of Slices.
    split: bool,
    opset: i64,
    batch: i64,
    half: i64,
    groups: i64,
    units: usize,
    side: i64,
}

impl Way {
    fn plain() -> Way {
        Way {
            bytes: U8,
            on_bytes: false,
            per_channel: false,
            pairs: true,
            split: false,
            opset: 17,
            batch: 1,
            half: 58,
            groups: 2,
            units: 3,
            side: 28,
        }
    }

    /// One of all that there are.
    fn drawn(seed: u64) -> Way {
        let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
        let mut below = |n: u64| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) % n
        };
        Way {
            bytes: if below(3) == 0 { I8 } else { U8 },
            on_bytes: below(3) == 0,
            per_channel: below(2) == 0,
            pairs: below(3) > 0,
            split: below(2) == 0,
            opset: [13, 17, 21][below(3) as usize],
            batch: [1, 1, 2, -1][below(4) as usize],
            half: [6, 12, 20, 30, 58][below(5) as usize],
            groups: [2, 2, 4][below(3) as usize],
            units: 1 + below(5) as usize,
            side: [5, 14, 28][below(3) as usize],
        }
    }
}

/// Bytes, and the names of what they mean.
#[derive(Clone, Debug)]
struct Bytes {
    name: String,
    scale: String,
    zero: String,
    /// The number that the scale is.
    step: f32,
}

struct Units {
    net: Net,
    way: Way,
    made: usize,
}

impl Units {
    fn new(way: Way) -> Units {
        let side = way.side.to_string();
        let batch = if way.batch < 0 { "N".to_owned() } else { way.batch.to_string() };
        let net = Net::new(way.opset).symbolic_input("x", F32, &[&batch, "3", &side, &side]);
        Units { net, way, made: 0 }
    }

    fn fresh(&mut self) -> String {
        self.made += 1;
        format!("v{}", self.made)
    }

    fn with(&mut self, add: impl FnOnce(Net) -> Net) {
        let net = std::mem::replace(&mut self.net, Net::new(self.way.opset));
        self.net = add(net);
    }

    fn op(&mut self, op: &str, inputs: &[&str], ints: &[(&str, &[i64])]) -> String {
        let y = self.fresh();
        self.with(|net| net.node_with(op, inputs, &y, ints));
        y
    }

    /// What bytes mean: no two alike.
    fn meaning(&mut self) -> Bytes {
        let [name, scale, zero] = [self.fresh(), self.fresh(), self.fresh()];
        let step = 0.02 + 0.0013 * (self.made % 17) as f32;
        let at = (self.made % 7) as f32 + if self.way.bytes == U8 { 118.0 } else { -5.0 };
        let bytes = self.way.bytes;
        self.with(|net| net.values(&scale, F32, &[], &[step]).values(&zero, bytes, &[], &[at]));
        Bytes { name, scale, zero, step }
    }

    fn quantized(&mut self, floats: &str, of: &Bytes) -> Bytes {
        let name = self.op("QuantizeLinear", &[floats, &of.scale, &of.zero], &[]);
        Bytes { name, ..of.clone() }
    }

    fn floats(&mut self, x: &Bytes) -> String {
        self.op("DequantizeLinear", &[&x.name, &x.scale, &x.zero], &[])
    }

    fn conv(&mut self, x: &Bytes, [from, to]: [i64; 2], kernel: i64, group: i64) -> Bytes {
        let y = self.meaning();
        let [w, ws, wz, b, bs] = [(); 5].map(|()| self.fresh());
        let taps = from / group * kernel * kernel;
        let count = if self.way.per_channel { vec![to] } else { vec![] };
        let scales: Vec<f32> = (0..count.first().copied().unwrap_or(1))
            .map(|i| (0.004 + 0.0007 * (i % 5) as f32) * 6.0 / (taps as f32).sqrt())
            .collect();
        // No two filters alike: those would be told from each other by nothing.
        let mut state = self.made as u64;
        let mut below = |n: u64| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            ((state >> 33) % n) as f32
        };
        // Seven bits: of more, sums of two products saturate on hosts without VNNI, in an order of their own.
        let weights: Vec<f32> = (0..to * taps).map(|_| below(127) - 63.0).collect();
        let sums: Vec<f32> = (0..to).map(|_| below(1201) - 600.0).collect();
        let of_sums: Vec<f32> = scales.iter().map(|scale| scale * x.step).collect();
        let zeros = vec![0.0; scales.len()];
        self.with(|net| {
            net.values(&w, I8, &[to, from / group, kernel, kernel], &weights)
                .values(&ws, F32, &count, &scales)
                .values(&wz, I8, &count, &zeros)
                .values(&b, I32, &[to], &sums)
                .values(&bs, F32, &count, &of_sums)
        });
        let pads = [kernel / 2; 4];
        let told: [(&str, &[i64]); 2] = [("pads", &pads), ("group", &[group])];
        if self.way.on_bytes {
            let ins = [&x.name, &x.scale, &x.zero, &w, &ws, &wz, &y.scale, &y.zero, &b].map(String::as_str);
            return Bytes { name: self.op("QLinearConv", &ins, &told), ..y };
        }
        let first: &[(&str, &[i64])] = &[("axis", &[0])];
        let weights = self.op("DequantizeLinear", &[&w, &ws, &wz], first);
        let bias = self.op("DequantizeLinear", &[&b, &bs], first);
        let x = self.floats(x);
        let sums = self.op("Conv", &[&x, &weights, &bias], &told);
        self.quantized(&sums, &y)
    }

    fn concat(&mut self, parts: &[&Bytes]) -> Bytes {
        let y = self.meaning();
        if self.way.on_bytes {
            let own = [&y.scale, &y.zero].into_iter();
            let ins = own.chain(parts.iter().flat_map(|part| [&part.name, &part.scale, &part.zero]));
            let name = self.op("QLinearConcat", &ins.map(String::as_str).collect::<Vec<_>>(), &[CHANNELS]);
            self.with(|net| net.of_domain("com.microsoft"));
            return Bytes { name, ..y };
        }
        let floats: Vec<String> = parts.iter().map(|part| self.floats(part)).collect();
        let joined = self.op("Concat", &floats.iter().map(String::as_str).collect::<Vec<_>>(), &[CHANNELS]);
        self.quantized(&joined, &y)
    }

    /// Views of bytes, one after the other.
    fn views(&mut self, x: &Bytes, each: &[(&str, Vec<i64>)]) -> Bytes {
        let mut x = x.clone();
        let mut floats = (!self.way.on_bytes).then(|| self.floats(&x));
        for (at, (op, told)) in each.iter().enumerate() {
            if at > 0 && self.way.pairs && !self.way.on_bytes {
                x = self.quantized(&floats.expect("floats"), &x);
                floats = Some(self.floats(&x));
            }
            let from = floats.clone().unwrap_or_else(|| x.name.clone());
            let y = if *op == "Transpose" {
                self.op(op, &[&from], &[("perm", told)])
            } else {
                let shape = self.fresh();
                self.with(|net| net.ints(&shape, told));
                self.op(op, &[&from, &shape], &[])
            };
            match floats {
                Some(_) => floats = Some(y),
                None => x.name = y,
            }
        }
        match floats {
            Some(floats) => self.quantized(&floats, &x),
            None => x,
        }
    }

    fn shuffle(&mut self, x: &Bytes) -> Bytes {
        let Way { batch, half, groups, side, .. } = self.way;
        let apart = vec![batch, groups, 2 * half / groups, side, side];
        let together = vec![batch, 2 * half, side, side];
        self.views(x, &[("Reshape", apart), ("Transpose", vec![0, 2, 1, 3, 4]), ("Reshape", together)])
    }

    /// Both halves of a value.
    fn halves(&mut self, x: &Bytes) -> [Bytes; 2] {
        let half = self.way.half;
        let from = if self.way.on_bytes { x.name.clone() } else { self.floats(x) };
        let parts = if self.way.split {
            let [a, b, sizes] = [self.fresh(), self.fresh(), self.fresh()];
            let ins = [from.as_str(), sizes.as_str()];
            self.with(|net| net.ints(&sizes, &[half, half]).node_with("Split", &ins, &a, &[CHANNELS]).also(&b));
            [a, b]
        } else {
            [[0, half], [half, i64::MAX]].map(|[start, end]| {
                let [a, b, c] = [self.fresh(), self.fresh(), self.fresh()];
                self.with(|net| net.ints(&a, &[start]).ints(&b, &[end]).ints(&c, &[1]));
                self.op("Slice", &[&from, &a, &b, &c], &[])
            })
        };
        parts.map(|part| if self.way.on_bytes { Bytes { name: part, ..x.clone() } } else { self.quantized(&part, x) })
    }

    fn start(&mut self) -> Bytes {
        let of = self.meaning();
        let x = self.quantized("x", &of);
        let half = self.way.half;
        let [a, b] = [3, 1].map(|kernel| self.conv(&x, [3, half], kernel, 1));
        self.concat(&[&a, &b])
    }

    /// What comes of one half, beside the other one.
    fn unit(&mut self, x: &Bytes) -> Bytes {
        let half = self.way.half;
        let [kept, read] = self.halves(x);
        let y = self.conv(&read, [half, half], 1, 1);
        let y = self.conv(&y, [half, half], 3, half);
        let y = self.conv(&y, [half, half], 1, 1);
        self.concat(&[&kept, &y])
    }

    /// Units with shuffles before and behind them.
    fn shuffled(&mut self) -> Bytes {
        let mut x = self.start();
        for _ in 0..self.way.units {
            let y = self.shuffle(&x);
            x = self.unit(&y);
        }
        self.shuffle(&x)
    }

    /// A depthwise convolution and one of all channels.
    fn end(mut self, x: &Bytes) -> Net {
        let channels = 2 * self.way.half;
        let y = self.conv(x, [channels, channels], 3, channels);
        let y = self.conv(&y, [channels, 16], 1, 1);
        let y = self.floats(&y);
        self.net.node("Identity", &[&y], "y").output("y", F32)
    }

    fn network(way: &Way) -> Net {
        let mut units = Units::new(way.clone());
        let y = units.shuffled();
        units.end(&y)
    }
}

fn made(block: Block, bytes: &[u8], numerics: Numerics) -> (Vec<u8>, Report) {
    let model = Model::from_bytes(bytes.to_vec().into(), None).expect("it opens");
    let options = relayout::Options::default().numerics(numerics).strict();
    let result = optimize(&model, &target(block).unguarded(), &options).expect("it is optimized");
    (result.to_bytes().expect("it is written"), result.report().clone())
}

fn compared(net: &Net, made: &[u8], level: Level) -> Comparison {
    let batch = net.reads_symbol("N").then(|| ("N".to_owned(), 2));
    let inputs = Inputs::Random { seed: 7, dims: batch.into_iter().collect::<BTreeMap<_, _>>() };
    let mut options = Options::default();
    (options.level_a, options.level_b) = (level, level);
    let (a, b) = (net.clone().described_bytes(), ModelSource::Bytes(made));
    verify(runtime(), ModelSource::Bytes(&a), b, &inputs, &options).expect("both run")
}

/// The model for a block, and whether its channels were ordered. Its results are those of the network.
fn optimized(block: Block, net: &Net, way: &Way) -> (Vec<u8>, bool) {
    let bytes = net.clone().described_bytes();
    let (file, report) = made(block, &bytes, Numerics::Reassociate);
    for level in levels(block, &file) {
        let comparison = compared(net, &file, level);
        // Pairs of signed bytes, and what the runtime leaves of pairs, are floats.
        let integers = way.on_bytes || way.bytes == U8 && level == Level::All;
        let holds = if integers { comparison.exact } else { comparison.holds(&Tolerance::new(STEPS, 2.0 * STEPS)) };
        assert!(holds, "{way:?}, {level:?}: {comparison}");
    }
    assert_eq!(made(block, &file, Numerics::Reassociate).0, file, "{way:?}: a second run changes something");
    // The checker cuts no axis in quarters that was put together of halves.
    if way.groups == 2 {
        assert_eq!(refusal(block, &bytes), None, "{way:?}");
    }
    (file, report.rewrites.contains_key("order_bytes"))
}

/// Transposes that the runtime runs.
fn transposes(file: &[u8], name: &str) -> usize {
    let place = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("byte_channels_{name}.onnx"));
    save_as_loaded(runtime(), ModelSource::Bytes(file), Level::All, &place).expect("it loads");
    let model = ModelProto::decode(std::fs::read(place).expect("it was saved").as_slice()).expect("a model");
    model.graph.iter().flat_map(|g| &g.node).filter(|node| node.op_type() == "Transpose").count()
}

#[test]
fn shuffles_between_quantized_convolutions_go_and_the_runtime_moves_nothing_between_them() {
    let plain = Way::plain();
    let ways = [
        plain.clone(),
        Way { per_channel: true, split: true, ..plain.clone() },
        Way { bytes: I8, ..plain.clone() },
        Way { on_bytes: true, ..plain.clone() },
        Way { on_bytes: true, per_channel: true, split: true, batch: -1, ..plain.clone() },
        Way { pairs: false, units: 7, side: 14, half: 116, ..plain },
    ];
    for block in blocks() {
        for (number, way) in ways.iter().enumerate() {
            let (file, ordered) = optimized(block, &Units::network(way), way);
            assert_eq!(ordered, block == Block::B16, "{way:?}");
            if !ordered {
                continue;
            }
            // The images that come in, and what goes out.
            assert!(transposes(&file, &format!("{}_{number}", block.channels())) <= 2, "{way:?}");
        }
    }
}

#[test]
fn drawn_networks_of_shuffled_bytes_compute_the_same() {
    let count = common::number("RELAYOUT_BYTE_CHANNELS", if common::all_cases() { 96 } else { 16 });
    let ordered = (0..count).filter(|&seed| {
        let way = Way::drawn(seed);
        let block = if seed % 2 == 0 { Block::B16 } else { Block::B8 };
        optimized(block, &Units::network(&way), &way).1
    });
    assert!(ordered.count() as u64 > count / 4, "few networks are ordered, so little is shown");
}

#[test]
fn channels_that_something_knows_by_their_numbers_stay() {
    let plain = Way { units: 2, ..Way::plain() };
    let stays = |what: &str, net: &Net, way: &Way| {
        for block in blocks() {
            assert!(!optimized(block, net, way).1, "{what}");
        }
    };
    let mut output = Units::new(plain.clone());
    let y = output.shuffled();
    let z = output.floats(&y);
    let net = output.end(&y).node("Identity", &[&z], "z").output("z", F32);
    stays("an output", &net, &plain);
    // A sum with channels of its own.
    let mut sum = Units::new(plain.clone());
    let y = sum.shuffled();
    let (a, of) = (sum.floats(&y), sum.meaning());
    let numbers: Vec<f32> = (0..116).map(|i| i as f32 * 0.01).collect();
    sum.with(|net| net.values("k", F32, &[1, 116, 1, 1], &numbers));
    let b = sum.op("Gelu", &[&a], &[]);
    sum.with(|net| net.of_domain("com.microsoft"));
    let c = sum.op("Add", &[&a, &b], &[]);
    let y = sum.quantized(&c, &of);
    stays("a sum of two images", &sum.end(&y), &plain);
    // Weights that the caller gives.
    let mut given = Units::new(plain.clone());
    let y = given.shuffled();
    let (x, of) = (given.floats(&y), given.meaning());
    given.with(|net| net.input("w", F32, &[8, 116, 1, 1]));
    let y = given.op("Conv", &[&x, "w"], &[]);
    let y = given.quantized(&y, &of);
    let y = given.floats(&y);
    stays("weights that are computed", &given.net.node("Identity", &[&y], "y").output("y", F32), &plain);
    for block in blocks() {
        let bytes = Units::network(&plain).described_bytes();
        let (_, report) = made(block, &bytes, Numerics::Exact);
        assert!(!report.rewrites.contains_key("order_bytes"), "sums in another order");
    }
}
