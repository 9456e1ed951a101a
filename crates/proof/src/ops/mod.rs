//! The checker's own table: what each op does along which axis.

mod along;
mod blocked;
mod blocks;
mod dynamic;
mod each;
mod filters;
mod fold;
mod fused;
mod heads;
mod indexed;
mod integers;
mod movement;
mod placed;
mod quantize;
mod recurrent;
mod signed;
mod sized;
mod transposed;
mod turned;
mod units;
mod window;

use crate::files::model::Attr;
use crate::lemmas::halves::of_halves;
use crate::terms::align::{broadcast, term_of};
use crate::terms::name::Name;
use crate::terms::term::{Op, Terms};
use crate::terms::value::Value;
use crate::terms::view::View;

pub(crate) use blocks::Convolved;
pub(crate) use each::choose;
pub(crate) use filters::Filters;
pub(crate) use fold::picked;
pub(crate) use indexed::{back, ordered};
pub(crate) use sized::run as of_extents;
pub(crate) use turned::Quantized;
pub(crate) use window::binary;

/// One use of an op, with the values of its operands.
pub(crate) struct Call<'c> {
    pub(crate) op: &'c str,
    pub(crate) domain: &'c str,
    pub(crate) opset: i64,
    pub(crate) attrs: &'c [(String, Attr)],
    pub(crate) inputs: &'c [Option<Value>],
    /// Which results have a name.
    pub(crate) results: Vec<bool>,
    /// Channels of a block on the hosts that the file is for.
    pub(crate) block: Option<i64>,
    pub(crate) terms: &'c mut Terms,
}

/// The first operator set in which the axes of operands are aligned at their ends.
const BROADCASTS_SINCE: i64 = 7;

type Made = Result<Value, String>;
pub(crate) type Results = Result<Vec<Option<Value>>, String>;

/// What the results of an op are; `None` if it is not in the table.
pub(crate) fn run(call: &mut Call<'_>) -> Option<Results> {
    let made = plainly(call);
    if let Some(y) = units::otherwise(call, made.as_ref()) {
        return Some(one(y));
    }
    Some(made?.map(|made| of_halves(call, made, plainly)))
}

/// Ops besides those that treat indices alike which do no more with an extent that differs from call to call than they ask `Terms` for.
const OPEN: &[&str] = &[
    "ArgMax",
    "ArgMin",
    "AveragePool",
    "Concat",
    "Constant",
    "Conv",
    "ConvInteger",
    "ConvTranspose",
    "CumProd",
    "CumSum",
    "DepthToSpace",
    "Dropout",
    "DynamicQuantizeLinear",
    "Expand",
    "Flatten",
    "GRU",
    "Gather",
    "GatherElements",
    "GatherND",
    "GridSample",
    "Identity",
    "LRN",
    "LSTM",
    "LpPool",
    "MatMulInteger",
    "MaxPool",
    "Pad",
    "QLinearConv",
    "QLinearMatMul",
    "RNN",
    "Reshape",
    "Resize",
    "ScatterElements",
    "ScatterND",
    "Slice",
    "SpaceToDepth",
    "Split",
    "Squeeze",
    "Tile",
    "TopK",
    "Transpose",
    "Trilu",
    "Unsqueeze",
    "Upsample",
];

/// The same of ONNX Runtime's own ops.
const OPEN_OF_RUNTIME: &[&str] = &[
    "BiasGelu",
    "DynamicQuantizeLSTM",
    "DynamicQuantizeMatMul",
    "FastGelu",
    "FusedConv",
    "FusedGemm",
    "FusedMatMul",
    "Gelu",
    "MatMulIntegerToFloat",
    "NhwcMaxPool",
    "QLinearConcat",
    "QLinearConv",
    "QLinearGlobalAveragePool",
    "QuickGelu",
    "SkipLayerNormalization",
];

/// Whether the table says what an op does of extents that differ from call to call.
pub(crate) fn takes_open(domain: &str, op: &str) -> bool {
    match domain {
        "" => each::is_alike(op) || OPEN.contains(&op),
        "com.microsoft" => OPEN_OF_RUNTIME.contains(&op),
        "com.microsoft.nchwc" => true,
        _ => false,
    }
}

/// Operands whose axes are counted in ways that no common digits say.
const APART: &str = "have axes that do not split alike";

/// Whether a message says that the table has no such use of an op, rather than that its operands do not fit it.
pub(crate) fn is_unknown(why: &str) -> bool {
    ["the checker does not know ", "the checker knows "].iter().any(|begin| why.starts_with(begin))
}

/// Whether a message says that operands fit, and that no digits say how. Other sizes may have some.
pub(crate) fn is_apart(why: &str) -> bool {
    why.ends_with(APART)
}

/// The same, as the op says it.
fn plainly(call: &mut Call<'_>) -> Option<Results> {
    if let Some(made) = units::run(call) {
        return Some(made);
    }
    if call.domain.is_empty() {
        if let Some(made) = fold::run(call) {
            return Some(made.map(|values| values.into_iter().map(Some).collect()));
        }
        for family in [movement::run, each::run, along::run] {
            if let Some(made) = family(call) {
                return Some(made);
            }
        }
    }
    for family in [
        along::run_quantized,
        blocked::run,
        fused::run,
        dynamic::run,
        indexed::run,
        recurrent::run,
        integers::run,
        heads::run,
    ] {
        if let Some(made) = family(call) {
            return Some(made);
        }
    }
    placed::run(call)
}

impl Call<'_> {
    /// Name of the op with its domain.
    pub(crate) fn name(&self) -> String {
        if self.domain.is_empty() { self.op.to_owned() } else { format!("{}.{}", self.domain, self.op) }
    }

    /// Whether an attribute says how the axes of its operands stand to each other.
    fn is_aligned_by_attribute(&self) -> bool {
        self.opset < BROADCASTS_SINCE && self.int("broadcast", 0) != 0
    }

    pub(crate) fn attr(&self, name: &str) -> Option<&Attr> {
        self.attrs.iter().find(|(n, _)| n == name).map(|(_, attr)| attr)
    }

    pub(crate) fn int(&self, name: &str, default: i64) -> i64 {
        match self.attr(name) {
            Some(Attr::Int(value)) => *value,
            _ => default,
        }
    }

    /// A type of elements that an attribute names; 0 if it is absent, or no type.
    pub(crate) fn dtype(&self, name: &str) -> u8 {
        u8::try_from(self.int(name, 0)).unwrap_or_default()
    }

    pub(crate) fn ints(&self, name: &str) -> Option<Vec<i64>> {
        match self.attr(name) {
            Some(Attr::Ints(values)) => Some(values.clone()),
            _ => None,
        }
    }

    pub(crate) fn text(&self, name: &str) -> Option<String> {
        match self.attr(name) {
            Some(Attr::Text(text)) => Some(String::from_utf8_lossy(text).into_owned()),
            _ => None,
        }
    }

    pub(crate) fn input(&self, at: usize) -> Option<&Value> {
        self.inputs.get(at).and_then(Option::as_ref)
    }

    pub(crate) fn need(&self, at: usize) -> Result<Value, String> {
        self.input(at).cloned().ok_or_else(|| format!("operand {at} is absent"))
    }

    /// An operand as known integers.
    pub(crate) fn known(&self, at: usize) -> Result<Option<Vec<i64>>, String> {
        let unknown = || format!("operand {at} is not known before the model runs");
        self.input(at).map(|value| value.as_ints().ok_or_else(unknown)).transpose()
    }

    /// Integers of an attribute in older opsets, of an operand in newer ones.
    pub(crate) fn list(&self, name: &str, at: usize) -> Result<Option<Vec<i64>>, String> {
        match self.ints(name) {
            Some(list) => Ok(Some(list)),
            // Runtimes take a number for a list of one there.
            None if self.op == "Unsqueeze" => self.known(at),
            None => self.known_list(at),
        }
    }

    /// An operand as a known list of integers: runtimes fail at a number in its place.
    pub(crate) fn known_list(&self, at: usize) -> Result<Option<Vec<i64>>, String> {
        match self.input(at) {
            Some(value) if value.rank() != 1 => {
                Err(format!("the checker does not know operand {at}, which is no list"))
            }
            _ => self.known(at),
        }
    }

    /// The same where open extents are known too.
    pub(crate) fn extents(&self, name: &str, at: usize) -> Result<Option<Vec<i64>>, String> {
        let listed = self.input(at).filter(|value| value.rank() == 1 && self.terms.is_list(value));
        match listed.and_then(|value| self.terms.numbers_of(value)) {
            Some(list) => Ok(Some(list)),
            None => match self.list(name, at)? {
                Some(list) if list.iter().any(|number| self.terms.is_open(*number)) => {
                    Err(format!("operand {at} has a number that stands for another one"))
                }
                list => Ok(list),
            },
        }
    }

    /// The only result that may have a name.
    pub(crate) fn single(&self) -> Result<(), String> {
        let more = self.results.iter().skip(1).any(|named| *named);
        if more { Err("the checker knows only its first result".to_owned()) } else { Ok(()) }
    }

    /// All attributes but these, in an order of their own, as bytes.
    pub(crate) fn encoded(&self, without: &[&str]) -> Result<Vec<u8>, String> {
        let mut kept: Vec<&(String, Attr)> =
            self.attrs.iter().filter(|(name, _)| !without.contains(&name.as_str())).collect();
        kept.sort_by(|a, b| a.0.cmp(&b.0));
        if let Some((name, _)) = kept.iter().find(|(_, attr)| matches!(attr, Attr::Unread(..) | Attr::Graph(_))) {
            return Err(format!("the checker does not read attribute `{name}`"));
        }
        Ok(kept.iter().flat_map(|(name, attr)| format!("{name}={attr:?};").into_bytes()).collect())
    }

    /// The attributes as bytes, with those that ONNX would put in the place of absent ones.
    pub(crate) fn with_defaults(&self) -> Result<Vec<u8>, String> {
        let defaults: &[(&str, f32)] = match self.op {
            "HardSigmoid" => &[("alpha", 0.2), ("beta", 0.5)],
            "LeakyRelu" => &[("alpha", 0.01)],
            "Elu" | "Celu" | "Swish" | "SwiGLU" => &[("alpha", 1.0)],
            "Selu" if self.opset < 6 => &[("alpha", 1.6732), ("gamma", 1.0507)],
            "Selu" => &[("alpha", 1.673_263_2), ("gamma", 1.050_701)],
            _ => return self.encoded(&[]),
        };
        let mut attrs = Vec::new();
        for &(name, default) in defaults {
            let value = match self.attr(name) {
                Some(Attr::Float(value)) => *value,
                _ => default,
            };
            attrs.extend(format!("{name}={};", value.to_bits()).into_bytes());
        }
        Ok(attrs)
    }

    /// What an op of ONNX makes of these operands.
    fn inner(&mut self, op: &str, attrs: &[(String, Attr)], inputs: &[Option<Value>]) -> Made {
        let (domain, results, block) = ("", vec![true], self.block);
        let mut inner = Call { op, domain, opset: 17, attrs, inputs, results, block, terms: self.terms };
        let made = run(&mut inner).ok_or_else(|| format!("the checker does not know {op}"))?;
        made?.pop().flatten().ok_or_else(|| format!("{op} makes nothing"))
    }

    /// An op that treats all indices of its broadcast operands alike.
    pub(crate) fn pointwise(&mut self, attrs: &[u8], operands: &[&Value], dtype: u8) -> Made {
        let name = self.name();
        let op = Op { name: Name::Model(&name), attrs, dtype };
        pointwise(self.terms, &op, operands)
    }
}

/// An op that treats all indices of its broadcast operands alike.
pub(crate) fn pointwise(terms: &mut Terms, op: &Op<'_>, operands: &[&Value]) -> Made {
    together(terms, op, operands, &[], false)
}

/// The same, but for axes whose indices it takes as a set.
pub(crate) fn together(terms: &mut Terms, op: &Op<'_>, operands: &[&Value], axes: &[usize], dropped: bool) -> Made {
    let Some((shape, padded)) = broadcast(operands) else {
        if let Some(wide) = terms.stretched(operands, None) {
            return together(terms, op, &wide.iter().collect::<Vec<_>>(), axes, dropped);
        }
        apart(terms, operands);
        return Err(shapes(operands, "do not broadcast"));
    };
    over(terms, op, &shape, &padded, axes, dropped)
}

/// Notes two extents of operands that keep these from broadcasting.
fn apart(terms: &mut Terms, operands: &[&Value]) {
    let extent = |value: &Value, back: usize| value.rank().checked_sub(back).map(|axis| (axis, value.shape()[axis]));
    for back in 1..=operands.iter().map(|value| value.rank()).max().unwrap_or(0) {
        let wide = |value: &&&Value| extent(value, back).is_some_and(|(_, extent)| extent != 1);
        let found: Vec<&&Value> = operands.iter().filter(wide).collect();
        let fixed = found.iter().copied().find(|value| value.is_constant()).or(found.first().copied());
        let Some((fixed, (axis, wanted))) = fixed.and_then(|value| Some((value, extent(value, back)?))) else {
            continue;
        };
        let other =
            found.iter().find_map(|value| extent(value, back).filter(|(_, e)| *e != wanted).map(|e| (value, e.0)));
        if let Some((other, at)) = other {
            terms.mismatch((other, at), (fixed, axis));
            return;
        }
    }
}

fn over(
    terms: &mut Terms,
    op: &Op<'_>,
    shape: &[i64],
    operands: &[(&Value, View)],
    axes: &[usize],
    dropped: bool,
) -> Made {
    let fits = |(_, view): &(&Value, View)| {
        let extents = crate::terms::view::shape(view);
        extents.len() == shape.len() && extents.iter().zip(shape).all(|(have, all)| *have == 1 || have == all)
    };
    let what = if operands.iter().all(fits) { APART } else { "do not fit" };
    let split = || shapes(&operands.iter().map(|(v, _)| *v).collect::<Vec<_>>(), what);
    let made = terms.each(op, shape, operands, axes, dropped);
    made.or_else(|| as_they_lie(terms, op, shape, operands, axes, dropped)).ok_or_else(split)
}

/// The same where no common digits say the axes of the operands: these are taken as they lie, in an order of axes that does not depend on
/// how they do. Axes of one place are left out.
fn as_they_lie(
    terms: &mut Terms,
    op: &Op<'_>,
    shape: &[i64],
    operands: &[(&Value, View)],
    axes: &[usize],
    dropped: bool,
) -> Option<Value> {
    terms.apart.then_some(())?;
    let mut values: Vec<Value> =
        operands.iter().map(|(v, view)| Value { view: view.clone(), ..(*v).clone() }).collect();
    if op.name.commutes() {
        values.sort_by_key(|value| term_of(value).unwrap_or(u32::MAX));
    }
    let order =
        ordered(&values.iter().collect::<Vec<_>>(), (0..shape.len()).filter(|&axis| shape[axis] != 1).collect());
    let seen =
        |value: &Value| Value { view: order.iter().map(|&axis| value.view[axis].clone()).collect(), ..value.clone() };
    let values: Vec<Value> = values.iter().map(seen).collect();
    let gone = |axis: &usize| dropped && axes.contains(axis);
    let made: Vec<i64> = order.iter().map(|axis| if gone(axis) { 1 } else { shape[*axis] }).collect();
    let name = op.name.to_string();
    let sets: Vec<u8> = order.iter().map(|axis| u8::from(axes.contains(axis))).collect();
    let attrs = [op.attrs, &sets, &[u8::from(dropped)]].concat();
    let operands: Vec<Option<&Value>> = values.iter().map(Some).collect();
    let y = terms
        .placed(&Op { name: Name::AsItLies(&name), attrs: &attrs, ..*op }, &operands, &[(made, op.dtype)])?
        .pop()?;
    let mut view: View = vec![Vec::new(); shape.len()];
    order.iter().zip(&y.view).for_each(|(&axis, digits)| view[axis].clone_from(digits));
    Some(Value { view, ..y })
}

fn shapes(operands: &[&Value], what: &str) -> String {
    let shapes: Vec<String> = operands.iter().map(|v| format!("{:?}", v.shape())).collect();
    format!("operands of {} {what}", shapes.join(", "))
}

/// An axis, counted from the end if it is negative.
pub(crate) fn axis_of(axis: i64, rank: usize) -> Result<usize, String> {
    let axis = if axis < 0 { axis + rank as i64 } else { axis };
    usize::try_from(axis).ok().filter(|a| *a < rank).ok_or_else(|| format!("axis {axis} of rank {rank}"))
}

/// Axes, each once.
pub(crate) fn axes_of(axes: &[i64], rank: usize) -> Result<Vec<usize>, String> {
    let mut found = Vec::new();
    for axis in axes {
        let axis = axis_of(*axis, rank)?;
        if found.contains(&axis) {
            return Err(format!("axis {axis} is named twice"));
        }
        found.push(axis);
    }
    Ok(found)
}

#[expect(clippy::unnecessary_wraps, reason = "it ends chains of results")]
fn one(value: Value) -> Results {
    Ok(vec![Some(value)])
}
