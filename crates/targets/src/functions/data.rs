//! The data file of a target of domain `relayout`.

use crate::TargetError;
use crate::shared::data::{Moves, Rates};
use relayout_ir::dtype::DType;
use relayout_ir::layout::{Layout, LayoutNames};
use serde::Deserialize;

/// Ranks of features: one to three spatial axes.
const RANKS: std::ops::RangeInclusive<usize> = 3..=5;

/// A target.
#[derive(Clone, Debug)]
pub(super) struct Data {
    pub(super) name: String,
    pub(super) about: String,
    pub(super) layouts: String,
    pub(super) source: String,
    pub(super) rates: Rates,
    pub(super) ops: Ops,
    pub(super) features: Vec<Features>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    name: String,
    #[serde(rename = "dialect")]
    _dialect: String,
    about: String,
    layouts: String,
    source: String,
    moves: Moves,
    ops: Ops,
    features: Vec<FeaturesFile>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Ops {
    outer_axis_percent: u64,
    pass_bytes_per_ns: u64,
    /// What a standard convolution costs beyond its kernel, in percent of moving its operands and result once.
    pub(super) anchor_moves_percent: u64,
    /// What one of the other ops that have kernels costs beyond its kernel, in percent of moving its operands and result once.
    pub(super) other_moves_percent: u64,
    /// Ops that the libraries of the target's runtime have fast kernels for channels first only: they run as ONNX has them.
    #[serde(default)]
    pub(super) channels_first: Vec<String>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct FeaturesFile {
    dtypes: Vec<String>,
    ranks: Vec<usize>,
    layout: String,
    weights: String,
    filters: String,
    #[serde(default = "one")]
    channels: u64,
    #[serde(default)]
    images: u64,
    #[serde(default)]
    reads_plain: bool,
    macs_per_ns: u64,
    #[serde(default = "hundred")]
    unaligned_percent: u64,
    #[serde(default)]
    pads_unaligned: bool,
}

fn one() -> u64 {
    1
}

fn hundred() -> u64 {
    100
}

/// How features of some element types are stored, and the weights that meet them.
#[derive(Clone, Debug)]
pub(super) struct Features {
    dtypes: Vec<DType>,
    ranks: Vec<usize>,
    /// Patterns: `S` stands for the spatial axes.
    layout: String,
    weights: String,
    filters: String,
    /// Channels that a kernel takes at a time where they are one digit: slots are a multiple of it where that pays.
    pub(super) channels: u64,
    /// Up to so many input channels there are kernels for images, which take them as they are.
    pub(super) images: u64,
    /// Whether a convolution of few channels reads them as ONNX has them, and its filters without blocks of input channels.
    pub(super) reads_plain: bool,
    /// Multiply-adds of a convolution in a nanosecond.
    pub(super) macs_per_ns: u64,
    /// What a convolution costs on channels that are no multiple of `channels`, in percent of what it does on those.
    pub(super) unaligned_percent: u64,
    /// Whether the library pads both sides of a dense convolution by itself, with a move of each, where both have such channels. It
    /// does not channels first.
    pub(super) pads_unaligned: bool,
}

impl Data {
    /// Reads a file.
    pub(super) fn parse(name: &str, text: &str) -> Result<Data, TargetError> {
        let malformed = |why: String| TargetError::Malformed { name: name.to_owned(), why };
        let file: File = toml::from_str(text).map_err(|e| malformed(e.to_string()))?;
        let rates =
            Rates::new(&file.moves, file.ops.outer_axis_percent, file.ops.pass_bytes_per_ns).map_err(malformed)?;
        let features =
            file.features.into_iter().map(Features::read).collect::<Result<Vec<_>, _>>().map_err(malformed)?;
        if features.is_empty() {
            return Err(malformed("it has no [[features]], so there is no layout to run in".to_owned()));
        }
        let File { name, about, layouts, source, ops, .. } = file;
        Ok(Data { name, about, layouts, source, rates, ops, features })
    }
}

impl Features {
    fn read(file: FeaturesFile) -> Result<Features, String> {
        let parse =
            |name: &String| name.parse::<DType>().map_err(|_| format!("`dtypes`: `{name}` is not an element type"));
        let dtypes = file.dtypes.iter().map(parse).collect::<Result<_, _>>()?;
        if let Some(rank) = file.ranks.iter().find(|rank| !RANKS.contains(rank)) {
            return Err(format!("`ranks`: features have rank {} to {}, not {rank}", RANKS.start(), RANKS.end()));
        }
        if file.macs_per_ns == 0 || file.channels == 0 {
            return Err("`macs_per_ns` and `channels` must be at least 1".to_owned());
        }
        let features = Features {
            dtypes,
            ranks: file.ranks,
            layout: file.layout,
            weights: file.weights,
            filters: file.filters,
            channels: file.channels,
            images: file.images,
            reads_plain: file.reads_plain,
            macs_per_ns: file.macs_per_ns,
            unaligned_percent: file.unaligned_percent,
            pads_unaligned: file.pads_unaligned,
        };
        for rank in RANKS {
            pattern("layout", &features.layout, "NC", rank)?;
            pattern("weights", &features.weights, "OI", rank)?;
            pattern("filters", &features.filters, "OI", rank)?;
        }
        if features.block() > 1 && features.channels > 1 {
            return Err(format!(
                "`channels` says how many slots whole channels get, but `{}` has them in blocks; leave it out",
                features.layout
            ));
        }
        Ok(features)
    }

    /// Whether features of this type and rank are stored so.
    pub(super) fn takes(&self, dtype: DType, rank: usize) -> bool {
        self.dtypes.contains(&dtype) && self.ranks.contains(&rank)
    }

    /// The layout of features.
    pub(super) fn layout(&self, rank: usize) -> Option<Layout> {
        pattern("layout", &self.layout, "NC", rank).ok()
    }

    /// The layout of weights. `head` names their first two axes: `OI`, or `IO` for a transposed convolution.
    pub(super) fn weights(&self, head: &str, rank: usize) -> Option<Layout> {
        pattern("weights", &self.weights, head, rank).ok()
    }

    /// The layout of weights whose input channels are in no blocks.
    pub(super) fn filters(&self, head: &str, rank: usize) -> Option<Layout> {
        pattern("filters", &self.filters, head, rank).ok()
    }

    /// Channels of a block, 1 where channels are one digit.
    pub(super) fn block(&self) -> u64 {
        self.layout(*RANKS.start()).map_or(1, |l| l.block_of(1))
    }
}

/// A layout from its pattern. `head` has the letters of the first two axes; `S` stands for the spatial ones.
fn pattern(key: &str, text: &str, head: &str, rank: usize) -> Result<Layout, String> {
    let spatial = match rank {
        3 => "W",
        4 => "HW",
        _ => "DHW",
    };
    let word = |token: &str| -> String {
        if token == "S" { spatial.chars().flat_map(|c| [c, ' ']).collect() } else { format!("{token} ") }
    };
    let spelled: String = text.split_whitespace().map(word).collect();
    let wrong =
        |why: String| format!("`{key}` = `{text}`: {why}; write letters of {head} and S, as in `N C/16 S C%16`");
    let names = LayoutNames::custom(&format!("{head}{spatial}")).ok_or_else(|| wrong("no letters".to_owned()))?;
    // One word would be read as a compact name, which has no S.
    let layout = Layout::parse_with(spelled.trim(), &names).map_err(|e| wrong(e.to_string()))?;
    if layout.rank() != rank || layout.may_pad() && (0..rank).any(|axis| layout.slot_map(axis).is_some()) {
        return Err(wrong("every axis once, and no segments".to_owned()));
    }
    Ok(layout)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_fit_every_rank() {
        let layout = |text: &str, rank| pattern("layout", text, "NC", rank).unwrap().to_string();
        assert_eq!(layout("N S C", 4), "NHWC");
        assert_eq!(layout("N C/16 S C%16", 4), "NCHW16c");
        assert_eq!(layout("N C/16 S C%16", 5), "NCDHW16c");
        assert_eq!(layout("C/4 S N C%4", 4), "CHWN4");
    }

    #[test]
    fn transposed_weights_have_their_letters_the_other_way_round() {
        let dense = pattern("weights", "O/8 I/8 S I%8 O%8", "OI", 4).unwrap();
        let transposed = pattern("weights", "O/8 I/8 S I%8 O%8", "IO", 4).unwrap();
        assert_eq!(dense.transpose(&[1, 0, 2, 3]).unwrap(), transposed);
    }

    #[test]
    fn a_pattern_that_is_no_layout_says_what_is_wrong() {
        for text in ["N C", "N X S C", "N C/16 S", "N S C[3:4]"] {
            let error = pattern("layout", text, "NC", 4).unwrap_err();
            assert!(error.contains(text) && error.contains("N C/16 S C%16"), "{error}");
        }
    }
}
