//! What `Relayout` means: from attributes and the input's dims to the output's dims and a kernel.
//!
//! Both forms speak of *storage*: the dims that a tensor has in the file. In the form with `perm` they are permuted as by
//! Transpose. In the form with `from` and `to` a layout is stored with one dim for each of its factors, outermost first, so
//! `NCHW16c` of `[1, 20, 7, 7]` is stored as `[1, 2, 7, 7, 16]`. The logical dims behind that are what `shape` says, and where it says
//! nothing or -1, as many as the input has slots, or as the slot map of `from` has indices.

use relayout_codegen::{Hint, Kernel, Options, Order, plan, relayout};
use relayout_layout::Layout;

use crate::error::Refusal;

/// A node's attributes, as they are in the file.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct Attributes {
    pub(crate) perm: Option<Vec<i64>>,
    pub(crate) from: Option<String>,
    pub(crate) to: Option<String>,
    pub(crate) shape: Option<Vec<i64>>,
}

/// A dim before the tensor is there; `N` is what the runtime calls one of unknown size.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Dim<N> {
    Known(i64),
    Named(N),
    Unknown,
}

/// What a node does, checked as far as that goes without its input.
#[derive(Debug, Clone)]
pub(crate) enum Move {
    /// Output dim `i` is input dim `perm[i]`.
    Permute(Vec<usize>),
    Relayout(Box<Layouts>),
}

/// From one layout to another of the same axes.
#[derive(Debug, Clone)]
pub(crate) struct Layouts {
    from: Layout,
    to: Layout,
    /// The logical dims that are given.
    shape: Vec<Option<i64>>,
}

/// A move planned for one shape.
pub(crate) struct Planned {
    pub(crate) kernel: Kernel,
    /// Dims of the output.
    pub(crate) dims: Vec<i64>,
}

impl Move {
    pub(crate) fn new(attributes: Attributes) -> Result<Self, Refusal> {
        let Attributes { perm, from, to, shape } = attributes;
        match (perm, from, to) {
            (None, None, None) => Err(Refusal::NoLayouts),
            (Some(_), Some(_), _) => Err(Refusal::TwoForms { other: "from" }),
            (Some(_), _, Some(_)) => Err(Refusal::TwoForms { other: "to" }),
            (Some(_), None, None) if shape.is_some() => Err(Refusal::TwoForms { other: "shape" }),
            (Some(perm), None, None) => permutation(&perm).map(Self::Permute).ok_or(Refusal::NotAPermutation { perm }),
            (None, Some(_), None) => Err(Refusal::Incomplete { given: "from", missing: "to" }),
            (None, None, Some(_)) => Err(Refusal::Incomplete { given: "to", missing: "from" }),
            (None, Some(from), Some(to)) => Self::layouts(&from, &to, shape),
        }
    }

    fn layouts(from: &str, to: &str, shape: Option<Vec<i64>>) -> Result<Self, Refusal> {
        let parsed = |attribute, text: &str| text.parse().map_err(|source| Refusal::Layout { attribute, source });
        let (from, to): (Layout, Layout) = (parsed("from", from)?, parsed("to", to)?);
        if from.rank() != to.rank() {
            return Err(Refusal::Ranks { from: from.rank(), to: to.rank() });
        }
        let shape = shape.unwrap_or_else(|| vec![-1; from.rank()]);
        if shape.len() != from.rank() {
            return Err(Refusal::ShapeRank { want: from.rank(), got: shape.len() });
        }
        let given = |&dim: &i64| match dim {
            -1 => Ok(None),
            0.. => Ok(Some(dim)),
            _ => Err(Refusal::ShapeDim { dim }),
        };
        let shape = shape.iter().map(given).collect::<Result<_, _>>()?;
        Ok(Self::Relayout(Box::new(Layouts { from, to, shape })))
    }

    /// The output's dims.
    pub(crate) fn infer<N: Clone>(&self, input: &[Dim<N>]) -> Result<Vec<Dim<N>>, Refusal> {
        match self {
            Self::Permute(perm) => {
                check_rank("`perm` names", perm.len(), input.len())?;
                Ok(perm.iter().map(|&at| input.get(at).cloned().unwrap_or(Dim::Unknown)).collect())
            }
            Self::Relayout(layouts) => layouts.infer(input),
        }
    }

    /// Plans the move of an input with these dims and elements of so many bytes.
    pub(crate) fn plan(&self, input: &[usize], elem_bytes: usize) -> Result<Planned, Refusal> {
        // One thread: more would start a pool of our own. The session's are lent when the kernel runs.
        let options = Options::default().hint(Hint::Auto).threads(1);
        match self {
            Self::Permute(perm) => {
                check_rank("`perm` names", perm.len(), input.len())?;
                let plan = plan(input, perm, elem_bytes)?;
                let dims = perm.iter().map(|&at| input.get(at).map_or(0, |&dim| dim as i64)).collect();
                Ok(Planned { kernel: Kernel::new(&plan, &options), dims })
            }
            Self::Relayout(layouts) => layouts.plan(input, elem_bytes, &options),
        }
    }
}

impl Layouts {
    fn infer<N: Clone>(&self, input: &[Dim<N>]) -> Result<Vec<Dim<N>>, Refusal> {
        let Self { from, to, shape } = self;
        check_rank("`from` is stored in", from.factors().len(), input.len())?;
        let axes = axes(from, shape, input);
        for (at, (factor, have)) in from.factors().iter().zip(input).enumerate() {
            let want = stored(from, factor, &axes);
            if let (Dim::Known(want), &Dim::Known(got)) = (want, have)
                && want != got
            {
                return Err(Refusal::InputDim { at, want, got });
            }
        }
        Ok(to.factors().iter().map(|factor| stored(to, factor, &axes)).collect())
    }

    fn plan(&self, input: &[usize], elem_bytes: usize, options: &Options) -> Result<Planned, Refusal> {
        let Self { from, to, shape } = self;
        let known: Vec<Dim<()>> = input.iter().map(|&dim| Dim::Known(dim as i64)).collect();
        // Says what does not fit, too.
        self.infer(&known)?;
        let logical: Vec<i64> = axes(from, shape, &known).iter().map(Axis::extent).collect();
        let order = |layout: &Layout| Order::new(layout, &logical).map_err(Refusal::Shape);
        let (source, target) = (order(from)?, order(to)?);
        let extents: Vec<usize> = logical.iter().map(|&extent| extent.max(0) as usize).collect();
        let dims = target.digits.iter().map(|digit| digit.extent as i64).collect();
        let zero = vec![0; elem_bytes];
        let made = relayout(&extents, &source, &target, &zero)?;
        Ok(Planned { kernel: Kernel::between(&made, options), dims })
    }
}

fn permutation(perm: &[i64]) -> Option<Vec<usize>> {
    let mut named = vec![false; perm.len()];
    let axis = |&axis: &i64| {
        let axis = usize::try_from(axis).ok()?;
        let fresh = named.get_mut(axis).is_some_and(|seen| !std::mem::replace(seen, true));
        fresh.then_some(axis)
    };
    perm.iter().map(axis).collect()
}

fn check_rank(says: &'static str, want: usize, got: usize) -> Result<(), Refusal> {
    if want == got { Ok(()) } else { Err(Refusal::InputRank { says, want, got }) }
}

/// A logical axis: `dim` times `times` indices, or fewer where `from` pads.
struct Axis<N> {
    dim: Dim<N>,
    times: i64,
}

impl<N> Axis<N> {
    /// Its size; -1 where that is not known or beyond any tensor, which binding a layout refuses.
    fn extent(&self) -> i64 {
        match self.dim {
            Dim::Known(dim) => dim.checked_mul(self.times).unwrap_or(-1),
            _ => -1,
        }
    }
}

/// The logical axes of an input that is stored as `from`.
fn axes<N: Clone>(from: &Layout, shape: &[Option<i64>], input: &[Dim<N>]) -> Vec<Axis<N>> {
    let axis = |(axis, given): (usize, &Option<i64>)| {
        let mapped = from.slot_map(axis).map(|map| map.iter().map(|segment| segment.len as i64).sum());
        if let Some(size) = given.or(mapped) {
            return Axis { dim: Dim::Known(size), times: 1 };
        }
        let outer = from.factors().iter().zip(input).find(|(f, _)| usize::from(f.axis) == axis && f.modulo.is_none());
        outer.map_or(Axis { dim: Dim::Unknown, times: 1 }, |(factor, dim)| Axis {
            dim: dim.clone(),
            times: factor.div as i64,
        })
    };
    shape.iter().enumerate().map(axis).collect()
}

/// The dim that a factor is stored in.
fn stored<N: Clone>(layout: &Layout, factor: &relayout_layout::Factor, axes: &[Axis<N>]) -> Dim<N> {
    if let Some(extent) = factor.modulo {
        return Dim::Known(extent as i64);
    }
    let (at, div) = (usize::from(factor.axis), factor.div as i64);
    let mapped = layout.slot_map(at).map(|map| map.iter().map(|segment| segment.slots as i64).sum::<i64>());
    match (mapped, axes.get(at)) {
        (Some(slots), _) => Dim::Known(slots / div),
        // Blocks that stay as they are keep the name of their number.
        (None, Some(axis)) if axis.times == div => axis.dim.clone(),
        (None, Some(axis)) if axis.extent() >= 0 => {
            Dim::Known(axis.extent().unsigned_abs().div_ceil(factor.div) as i64)
        }
        _ => Dim::Unknown,
    }
}

#[cfg(test)]
mod tests {
    use super::{Attributes, Dim, Move};
    use crate::error::Refusal;

    fn layouts(from: &str, to: &str, shape: Option<&[i64]>) -> Result<Move, Refusal> {
        let text = |text: &str| Some(text.to_owned());
        Move::new(Attributes { perm: None, from: text(from), to: text(to), shape: shape.map(<[i64]>::to_vec) })
    }

    /// `?` is unknown, letters are names.
    fn dims(text: &str) -> Vec<Dim<String>> {
        let dim = |word: &str| match word.parse() {
            Ok(size) => Dim::Known(size),
            Err(_) if word == "?" => Dim::Unknown,
            Err(_) => Dim::Named(word.to_owned()),
        };
        text.split_whitespace().map(dim).collect()
    }

    #[test]
    fn dims_are_known_as_far_as_the_layouts_tell() {
        type Case = (&'static str, &'static str, Option<&'static [i64]>, &'static str, &'static str);
        let cases: &[Case] = &[
            ("NCHW", "NHWC", None, "N 3 ? W", "N ? W 3"),
            ("NCHW", "NCHW16c", None, "N 20 7 W", "N 2 7 W 16"),
            ("NCHW", "NCHW16c", None, "1 C 7 7", "1 ? 7 7 16"),
            ("NCHW16c", "NCHW", None, "1 2 7 7 16", "1 32 7 7"),
            ("NCHW16c", "NCHW", Some(&[-1, 20, -1, -1]), "N 2 H 7 16", "N 20 H 7"),
            ("NCHW16c", "NHWC", None, "1 C 7 7 16", "1 7 7 ?"),
            ("NCHW16c", "N H W C/16 C%16", None, "1 C 7 7 16", "1 7 7 C 16"),
            ("NCHW16c", "NCHW8c", Some(&[-1, 20, -1, -1]), "1 2 7 7 16", "1 3 7 7 8"),
            ("NCHW", "N C[58:64,58:64] H W", None, "1 116 7 7", "1 128 7 7"),
            ("N C[58:64,58:64] H W", "NHWC", None, "1 128 7 7", "1 7 7 116"),
            ("MN", "M/8 N/8 M%8 N%8", None, "9 0", "2 0 8 8"),
        ];
        for (from, to, shape, input, output) in cases {
            let made = layouts(from, to, *shape).expect("layouts");
            assert_eq!(made.infer(&dims(input)), Ok(dims(output)), "{from} to {to} of {input}");
        }
        let permute = Move::new(Attributes { perm: Some(vec![2, 0, 1]), ..Attributes::default() }).expect("one");
        assert_eq!(permute.infer(&dims("A 3 ?")), Ok(dims("? A 3")));
    }

    #[test]
    fn what_is_inferred_is_what_is_planned() {
        for (from, to, input) in [
            ("NCHW", "NCHW16c", [2, 20, 5, 3].as_slice()),
            ("NCHW16c", "N C/4 H W C%4", &[2, 2, 5, 3, 16]),
            ("MN", "M/8 N/8 M%8 N%8", &[9, 0]),
        ] {
            let made = layouts(from, to, None).expect("layouts");
            let known: Vec<Dim<String>> = input.iter().map(|&dim| Dim::Known(dim as i64)).collect();
            let planned = made.plan(input, 4).expect("it fits");
            let dims: Vec<Dim<String>> = planned.dims.iter().map(|&dim| Dim::Known(dim)).collect();
            assert_eq!(made.infer(&known), Ok(dims));
            let (src, mut dst) = (
                vec![0; 4 * input.iter().product::<usize>()],
                vec![0; 4 * planned.dims.iter().product::<i64>() as usize],
            );
            assert_eq!(planned.kernel.run(&src, &mut dst), Ok(()));
        }
    }

    #[test]
    fn attributes_that_say_too_little_or_too_much_are_refused() {
        let cases: &[(&[(&str, &str)], &str)] = &[
            (&[], "no layouts are given"),
            (&[("from", "NCHW")], "`from` is set and `to` is not"),
            (&[("to", "NCHW")], "`to` is set and `from` is not"),
            (&[("perm", "0"), ("from", "N")], "`perm` is set and `from` too"),
            (&[("perm", "0"), ("to", "N")], "`perm` is set and `to` too"),
            (&[("perm", "0"), ("shape", "1")], "`perm` is set and `shape` too"),
            (&[("perm", "0 0")], "`perm` is [0, 0]"),
            (&[("perm", "1 -1")], "`perm` is [1, -1]"),
            (&[("from", "NCHW"), ("to", "MN")], "`from` has 4 axes and `to` has 2"),
            (&[("from", "NCHW"), ("to", "NNHW")], "attribute `to`: "),
            (&[("from", "NCHW"), ("to", "NHWC"), ("shape", "1")], "`shape` has 1 dims for layouts of 4"),
            (&[("from", "NCHW"), ("to", "NHWC"), ("shape", "1 2 3 -2")], "`shape` has the dim -2"),
        ];
        for (attributes, error) in cases {
            let get = |name: &str| attributes.iter().find(|(key, _)| *key == name).map(|(_, text)| (*text).to_owned());
            let list = |name: &str| get(name).map(|text| text.split(' ').map(|n| n.parse().expect("one")).collect());
            let attributes = Attributes { perm: list("perm"), from: get("from"), to: get("to"), shape: list("shape") };
            let text = Move::new(attributes).map(|_| ()).expect_err("it is wrong").to_string();
            assert!(text.contains(error), "{text}, not {error}");
        }
    }

    #[test]
    fn inputs_that_do_not_fit_are_refused() {
        let text = |from, to, shape: Option<&[i64]>, input: &[usize]| {
            let made = layouts(from, to, shape).expect("layouts");
            made.plan(input, 4).map(|_| ()).expect_err("it does not fit").to_string()
        };
        for (text, error) in [
            (text("NCHW16c", "NCHW", None, &[1, 2, 7, 7]), "the input has 4 dims, but `from` is stored in 5"),
            (
                text("NCHW16c", "NCHW", None, &[1, 2, 7, 7, 8]),
                "dim 4 of the input is 8, but `from` and `shape` want 16",
            ),
            (text("NCHW16c", "NCHW", Some(&[-1, 33, -1, -1]), &[1, 2, 7, 7, 16]), "dim 1 of the input is 2, but"),
            (text("NCHW", "NHWC", Some(&[-1, 33, -1, -1]), &[1, 2, 7, 7]), "dim 1 of the input is 2, but"),
            (text("NC", "N C/2 C%2", None, &[1 << 30, 1 << 30]), "more than 2^59"),
            (text("N C[4:8] ", "NC", None, &[2, 4]), "dim 1 of the input is 4, but `from` and `shape` want 8"),
        ] {
            assert!(text.contains(error), "{text}, not {error}");
        }
        let permute = Move::new(Attributes { perm: Some(vec![1, 0]), ..Attributes::default() }).expect("one");
        let error = permute.plan(&[1, 2, 3], 4).map(|_| ()).expect_err("three dims").to_string();
        assert!(error.contains("the input has 3 dims, but `perm` names 2"), "{error}");
    }
}
