//! What differs between the outputs of two models.
//!
//! The first model is the reference. Errors are measured over the elements that are finite on both sides; where one
//! side is NaN or infinite the other must be the same, or the output is a mismatch. Equality is that of numbers: 0 and -0
//! are equal, and so are two NaNs, whatever their bits. Every figure is finite, so that it can be written as JSON.

use std::fmt;

use half::{bf16, f16};
use relayout::{Model, Optimized};
use relayout_ir::dtype::DType;
use serde::{Deserialize, Serialize};

use super::noise::has;
use super::{Data, ElementType, Tensor};

/// How far floating-point outputs may be from the reference. All other outputs must be equal.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Tolerance {
    /// The root mean square of the error over that of the reference.
    pub rms: f64,
    /// The largest error over the largest magnitude in the reference.
    pub largest: f64,
}

impl Tolerance {
    /// Only equal outputs hold.
    pub const EXACT: Self = Self { rms: 0.0, largest: 0.0 };

    /// A tolerance of `rms` and `largest`, both relative to the reference.
    pub fn new(rms: f64, largest: f64) -> Self {
        Self { rms, largest }
    }

    /// What a result may differ from its model by: rms 2e-3 and largest 2e-2 where the model has halves, since runtimes compute in floats
    /// what halves would round; else 1e-4 and 1e-3 where arithmetic was folded into weights, which rounds otherwise; else the default,
    /// as only data moved.
    pub fn of_result(model: &Model, result: &Optimized) -> Self {
        if has(&model.ir().graph, &[DType::F16, DType::BF16]) {
            Self::new(2e-3, 2e-2)
        } else if result.report().rewrites.is_empty() {
            Self::default()
        } else {
            Self::new(1e-4, 1e-3)
        }
    }
}

impl Default for Tolerance {
    /// What sums in another order cost in f32 through a deep network, with room: rms 1e-5, largest 1e-4. Models in half
    /// precision or with quantized layers need more where sums were reordered.
    fn default() -> Self {
        Self { rms: 1e-5, largest: 1e-4 }
    }
}

/// An input or an order of names that the two models do not share.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Difference {
    /// What differs, such as ``input `x` ``.
    pub what: String,
    /// What the first model has; `None` if it lacks it.
    pub a: Option<String>,
    /// What the second model has; `None` if it lacks it.
    pub b: Option<String>,
}

/// One output of both models, the worst over all rounds.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct OutputComparison {
    /// The name of the output; `name[i]` for element `i` of a sequence.
    pub name: String,
    /// The type of the elements, of the first model that has the output.
    pub element_type: ElementType,
    /// The dimensions.
    pub shape: Vec<i64>,
    /// Why the errors say nothing: the output is missing in one model, types or shapes differ, or NaN and infinity stand
    /// in different places. `None` if the outputs can be compared.
    pub mismatch: Option<String>,
    /// Whether all elements were equal in every round.
    pub exact: bool,
    /// The number of elements that differ.
    pub differing: usize,
    /// Root mean square of the error over that of the reference (over 1 if the reference is all zero).
    pub rms: f64,
    /// The largest error.
    pub largest_absolute: f64,
    /// The largest error over the largest magnitude in the reference (over 1 if the reference is all zero).
    pub largest_relative: f64,
    /// The index of the largest error; `None` if there is no error.
    pub worst_at: Option<Vec<i64>>,
}

/// The result of a comparison of two models.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Comparison {
    /// How many sets of inputs the models ran on; 0 if the second does not take the inputs of the first.
    pub rounds: u32,
    /// Whether inputs and outputs agree and all outputs were equal.
    pub exact: bool,
    /// The worst `rms` of the outputs.
    pub rms: f64,
    /// The worst `largest_absolute` of the outputs.
    pub largest_absolute: f64,
    /// The worst `largest_relative` of the outputs.
    pub largest_relative: f64,
    /// Where the interfaces of the models differ. Empty if they agree.
    pub differences: Vec<Difference>,
    /// The outputs, in the order of the first model.
    pub outputs: Vec<OutputComparison>,
}

impl Comparison {
    pub(super) fn new(rounds: u32, differences: Vec<Difference>, outputs: Vec<OutputComparison>) -> Self {
        let worst = |figure: fn(&OutputComparison) -> f64| outputs.iter().map(figure).fold(0.0, f64::max);
        Self {
            rounds,
            exact: differences.is_empty() && outputs.iter().all(|output| output.exact),
            rms: worst(|output| output.rms),
            largest_absolute: worst(|output| output.largest_absolute),
            largest_relative: worst(|output| output.largest_relative),
            differences,
            outputs,
        }
    }

    /// Whether the second model can stand for the first: same inputs and outputs, and every output equal or, where it is
    /// floating-point, within `tolerance`.
    pub fn holds(&self, tolerance: &Tolerance) -> bool {
        self.differences.is_empty() && self.outputs.iter().all(|output| output.holds(tolerance))
    }
}

impl fmt::Display for Comparison {
    /// A line per difference and per output.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let none = || "none".to_owned();
        for d in &self.differences {
            let (a, b) = (d.a.clone().unwrap_or_else(none), d.b.clone().unwrap_or_else(none));
            writeln!(f, "{}: {a} in the first, {b} in the second", d.what)?;
        }
        for (i, o) in self.outputs.iter().enumerate() {
            if i > 0 {
                writeln!(f)?;
            }
            match &o.mismatch {
                Some(why) => write!(f, "output `{}`: {why}", o.name)?,
                None if o.exact => write!(f, "output `{}`: equal", o.name)?,
                None => write!(f, "output `{}`: rms {:.1e}, largest {:.1e}", o.name, o.rms, o.largest_relative)?,
            }
        }
        Ok(())
    }
}

impl OutputComparison {
    /// Whether this output is equal or within `tolerance`.
    pub fn holds(&self, tolerance: &Tolerance) -> bool {
        let near = self.rms <= tolerance.rms && self.largest_relative <= tolerance.largest;
        self.mismatch.is_none() && (self.exact || (self.element_type.is_float() && near))
    }

    pub(super) fn mismatched(tensor: &Tensor, why: String) -> Self {
        Self { mismatch: Some(why), exact: false, ..Self::equal(tensor) }
    }

    fn equal(tensor: &Tensor) -> Self {
        Self {
            name: tensor.name().to_owned(),
            element_type: tensor.element_type(),
            shape: tensor.shape().to_vec(),
            mismatch: None,
            exact: true,
            differing: 0,
            rms: 0.0,
            largest_absolute: 0.0,
            largest_relative: 0.0,
            worst_at: None,
        }
    }

    /// Takes over what is worse in `other`, the same output in another round.
    pub(super) fn worsen(&mut self, other: Self) {
        if other.largest_relative > self.largest_relative {
            self.worst_at = other.worst_at;
            self.shape = other.shape;
        }
        self.mismatch = self.mismatch.take().or(other.mismatch);
        self.exact &= other.exact;
        self.differing = self.differing.max(other.differing);
        self.rms = self.rms.max(other.rms);
        self.largest_absolute = self.largest_absolute.max(other.largest_absolute);
        self.largest_relative = self.largest_relative.max(other.largest_relative);
    }
}

/// Adds a round with the outputs `a` and `b` to `outputs`, which stay in the order in which they first appear.
pub(super) fn add_round(outputs: &mut Vec<OutputComparison>, a: &[Tensor], b: &[Tensor]) {
    let find = |tensors: &'_ [Tensor], name: &str| tensors.iter().position(|tensor| tensor.name() == name);
    let of_a = a.iter().map(|reference| match find(b, reference.name()).and_then(|index| b.get(index)) {
        Some(other) => compare(reference, other),
        None => OutputComparison::mismatched(reference, "only the first model has it".to_owned()),
    });
    let of_b = b.iter().filter(|tensor| find(a, tensor.name()).is_none());
    let of_b = of_b.map(|t| OutputComparison::mismatched(t, "only the second model has it".to_owned()));
    for output in of_a.chain(of_b) {
        match outputs.iter_mut().find(|known| known.name == output.name) {
            Some(known) => known.worsen(output),
            None => outputs.push(output),
        }
    }
}

/// Compares `b` with the reference `a`.
pub(super) fn compare(a: &Tensor, b: &Tensor) -> OutputComparison {
    if a.shape() != b.shape() {
        return OutputComparison::mismatched(
            a,
            format!("shape {:?} in the first model, {:?} in the second", a.shape(), b.shape()),
        );
    }
    macro_rules! numbers {
        ($($variant:ident: $as_f64:expr),*) => {
            match (a.data(), b.data()) {
                $((Data::$variant(x), Data::$variant(y)) => compare_numbers(a, x, y, $as_f64),)*
                (Data::Str(x), Data::Str(y)) => compare_strings(a, x, y),
                _ => OutputComparison::mismatched(
                    a,
                    format!("{} in the first model, {} in the second", a.element_type(), b.element_type()),
                ),
            }
        };
    }
    numbers!(
        F16: f16::to_f64, BF16: bf16::to_f64, F32: f64::from, F64: |x| x,
        I8: f64::from, I16: f64::from, I32: f64::from, I64: |x| x as f64,
        U8: f64::from, U16: f64::from, U32: f64::from, U64: |x| x as f64,
        Bool: |x| f64::from(u8::from(x))
    )
}

/// How far the elements of `b` are from those of `a`: 0 where they are equal, infinite where one is a NaN or an infinity and the other is
/// something else, and where texts differ. What can't be compared is said.
pub(super) fn distances(a: &Tensor, b: &Tensor) -> Result<Vec<f64>, String> {
    if a.shape() != b.shape() {
        return Err(format!("its shape is {:?} and {:?}", a.shape(), b.shape()));
    }
    macro_rules! numbers {
        ($($variant:ident: $as_f64:expr),*) => {
            match (a.data(), b.data()) {
                $((Data::$variant(x), Data::$variant(y)) => {
                    Ok(x.iter().zip(y).map(|(&x, &y)| distance(x, y, $as_f64)).collect())
                })*
                (Data::Str(x), Data::Str(y)) => {
                    Ok(x.iter().zip(y).map(|(x, y)| if x == y { 0.0 } else { f64::INFINITY }).collect())
                }
                _ => Err(format!("its type is {} and {}", a.element_type(), b.element_type())),
            }
        };
    }
    numbers!(
        F16: f16::to_f64, BF16: bf16::to_f64, F32: f64::from, F64: |x| x,
        I8: f64::from, I16: f64::from, I32: f64::from, I64: |x| x as f64,
        U8: f64::from, U16: f64::from, U32: f64::from, U64: |x| x as f64,
        Bool: |x| f64::from(u8::from(x))
    )
}

/// How far two numbers are apart. Equality is decided in their type, since f64 can't tell all integers of 64 bits apart.
fn distance<T: Copy + PartialEq>(x: T, y: T, as_f64: fn(T) -> f64) -> f64 {
    let equal = x == y;
    let (x, y) = (as_f64(x), as_f64(y));
    match (equal || (x.is_nan() && y.is_nan()), x.is_finite() && y.is_finite()) {
        (true, _) => 0.0,
        (false, false) => f64::INFINITY,
        (false, true) => (x - y).abs().max(f64::MIN_POSITIVE),
    }
}

fn compare_strings(a: &Tensor, x: &[String], y: &[String]) -> OutputComparison {
    let differing = x.iter().zip(y).filter(|(x, y)| x != y).count();
    OutputComparison { exact: differing == 0, differing, ..OutputComparison::equal(a) }
}

/// Compares numbers of one type. Equality is decided in that type, since f64 cannot tell all 64-bit integers apart.
fn compare_numbers<T: Copy + PartialEq>(a: &Tensor, x: &[T], y: &[T], as_f64: fn(T) -> f64) -> OutputComparison {
    let mut result = OutputComparison::equal(a);
    let (mut misplaced, mut first_misplaced) = (0_usize, None);
    let (mut peak, mut worst, mut worst_at) = (0.0_f64, 0.0_f64, None);
    for (index, (&x, &y)) in x.iter().zip(y).enumerate() {
        let (from, to) = (as_f64(x), as_f64(y));
        let equal = x == y || (from.is_nan() && to.is_nan());
        result.differing += usize::from(!equal);
        if from.is_finite() {
            peak = peak.max(from.abs());
        }
        let finite = from.is_finite() && to.is_finite();
        if !equal && !finite {
            misplaced += 1;
            first_misplaced = first_misplaced.or(Some(index));
        } else if !equal && (from - to).abs() > worst {
            worst = (from - to).abs().min(f64::MAX);
            worst_at = Some(index);
        }
    }
    result.exact = result.differing == 0;
    if let Some(first) = first_misplaced {
        let at = coordinates(first, a.shape());
        result.mismatch = Some(format!("NaN or infinity on one side only in {misplaced} elements, first at {at:?}"));
    }
    let scale = if peak > 0.0 { peak } else { 1.0 };
    result.largest_absolute = worst;
    result.largest_relative = (worst / scale).min(f64::MAX);
    result.worst_at = worst_at.map(|index| coordinates(index, a.shape()));
    if worst > 0.0 {
        let pairs = || x.iter().zip(y).map(|(&x, &y)| (as_f64(x), as_f64(y))).filter(|(x, y)| (x - y).is_finite());
        let error = root_mean_square(pairs().map(|(x, y)| x - y), worst);
        let reference = root_mean_square(pairs().map(|(x, _)| x), peak);
        result.rms = (error / if reference > 0.0 { reference } else { 1.0 }).min(f64::MAX);
    }
    result
}

/// The root mean square of `values`, none of which is larger than `peak`: they are divided by it first, so that no square
/// overflows or vanishes.
fn root_mean_square(values: impl Iterator<Item = f64>, peak: f64) -> f64 {
    let (sum, count) = values.fold((0.0, 0_usize), |(sum, count), value| {
        let scaled = value / peak;
        (sum + scaled * scaled, count + 1)
    });
    if peak > 0.0 && count > 0 { peak * (sum / count as f64).sqrt() } else { 0.0 }
}

/// The index of each axis of the element that is number `flat` in row-major order.
pub(super) fn coordinates(flat: usize, shape: &[i64]) -> Vec<i64> {
    let mut rest = flat as i64;
    let mut index: Vec<i64> = shape
        .iter()
        .rev()
        .map(|&dim| {
            let digit = rest.checked_rem(dim).unwrap_or(0);
            rest = rest.checked_div(dim).unwrap_or(0);
            digit
        })
        .collect();
    index.reverse();
    index
}

#[cfg(test)]
mod tests {
    use super::*;

    fn f32s(values: &[f32]) -> Tensor {
        Tensor::new("y", [2, values.len() as i64 / 2], Data::F32(values.to_vec())).expect("two rows")
    }

    const INF: f32 = f32::INFINITY;

    #[test]
    fn errors_are_relative_to_the_reference() {
        let result = compare(&f32s(&[3.0, -4.0, 0.0, 0.0]), &f32s(&[3.0, -4.5, 0.0, 0.0]));
        assert_eq!((result.differing, result.exact), (1, false));
        assert_eq!((result.largest_absolute, result.largest_relative), (0.5, 0.125));
        assert!((result.rms - 0.1).abs() < 1e-15, "rms {}", result.rms);
        assert_eq!(result.worst_at, Some(vec![0, 1]));
        assert!(result.holds(&Tolerance::new(0.11, 0.125)));
        assert!(!result.holds(&Tolerance::new(0.09, 1.0)) && !result.holds(&Tolerance::new(1.0, 0.12)));
    }

    #[test]
    fn a_reference_of_zeros_is_measured_against_one() {
        let result = compare(&f32s(&[0.0; 4]), &f32s(&[0.0, 0.0, 0.5, 0.0]));
        assert_eq!((result.rms, result.largest_relative), (0.25, 0.5));
    }

    #[test]
    fn equal_nan_infinity_and_zeros_of_both_signs_are_exact() {
        let result = compare(&f32s(&[f32::NAN, INF, 0.0, -INF]), &f32s(&[-f32::NAN, INF, -0.0, -INF]));
        assert!(result.exact && result.mismatch.is_none(), "{result:?}");
    }

    #[test]
    fn nan_or_infinity_elsewhere_is_a_mismatch_whatever_the_tolerance() {
        for (a, b) in [([1.0, INF], [1.0, -INF]), ([1.0, 2.0], [1.0, f32::NAN]), ([1.0, INF], [1.0, f32::MAX])] {
            for (a, b) in [(a, b), (b, a)] {
                let result = compare(&f32s(&a), &f32s(&b));
                assert!(result.mismatch.as_ref().is_some_and(|why| why.ends_with("first at [1, 0]")), "{result:?}");
                assert!(!result.exact && !result.holds(&Tolerance::new(INF.into(), INF.into())));
            }
        }
    }

    #[test]
    fn figures_stay_finite_for_the_largest_and_smallest_numbers() {
        let f64s = |values: [f64; 2]| Tensor::new("y", [2], Data::F64(values.to_vec())).expect("two elements");
        let tiny = f64::from_bits(1);
        for (a, b) in [([f64::MAX, 1.0], [f64::MIN, 1.0]), ([tiny, 0.0], [f64::MAX, 0.0]), ([tiny, tiny], [0.0, tiny])]
        {
            let result = compare(&f64s(a), &f64s(b));
            let figures = [result.rms, result.largest_absolute, result.largest_relative];
            assert!(figures.iter().all(|figure| figure.is_finite()), "{result:?}");
            assert!(!result.exact && !result.holds(&Tolerance::default()), "{result:?}");
        }
    }

    #[test]
    fn whole_numbers_must_be_equal_even_where_f64_cannot_tell_them_apart() {
        let i64s = |values: [i64; 2]| Tensor::new("y", [2], Data::I64(values.to_vec())).expect("two elements");
        let result = compare(&i64s([i64::MAX, 0]), &i64s([i64::MAX - 1, 0]));
        assert_eq!((result.exact, result.differing), (false, 1));
        assert!(!result.holds(&Tolerance::new(1.0, 1.0)));
        assert!(compare(&i64s([7, 0]), &i64s([7, 0])).exact);
    }

    #[test]
    fn types_and_shapes_must_agree() {
        let other_type = Tensor::new("y", [2, 1], Data::I32(vec![1, 2])).expect("two elements");
        let other_shape = Tensor::new("y", [1, 2], Data::F32(vec![1.0, 2.0])).expect("two elements");
        for other in [other_type, other_shape] {
            let result = compare(&f32s(&[1.0, 2.0]), &other);
            assert!(result.mismatch.is_some() && !result.holds(&Tolerance::new(9.0, 9.0)), "{result:?}");
        }
    }

    #[test]
    fn rounds_keep_what_is_worst() {
        let mut outputs = Vec::new();
        add_round(&mut outputs, &[f32s(&[1.0, 1.0])], &[f32s(&[1.0, 1.5])]);
        add_round(&mut outputs, &[f32s(&[1.0, 1.0])], &[f32s(&[1.25, 1.0])]);
        let [output] = outputs.as_slice() else { panic!("{outputs:?}") };
        assert_eq!((output.largest_absolute, output.worst_at.clone()), (0.5, Some(vec![1, 0])));
        assert!(!output.exact);
    }
}
