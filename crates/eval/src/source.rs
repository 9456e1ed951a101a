//! Constants that are computed when their bytes are asked for.

use super::numbers::{Numbers, decode, encode};
use super::shuffle::{pick, strides};
use super::{Step, Tensor, extents, width};
use bytes::Bytes;
use relayout_ir::constant::{ConstSource, Constant};
use relayout_ir::dtype::DType;
use std::sync::Arc;

/// The result of a step on constants.
#[derive(Debug)]
pub struct Computed {
    /// What is done.
    pub step: Step,
    /// To these.
    pub operands: Vec<Constant>,
    /// Element type of the result.
    pub dtype: DType,
    /// Extents of the result.
    pub dims: Vec<i64>,
    depth: usize,
}

impl Computed {
    /// The result of a step on these.
    pub fn new(step: Step, operands: Vec<Constant>, dtype: DType, dims: Vec<i64>) -> Computed {
        let depth = operands.iter().map(|c| c.source.depth()).max().unwrap_or(0).saturating_add(1);
        Computed { step, operands, dtype, dims, depth }
    }
}

impl ConstSource for Computed {
    fn depth(&self) -> usize {
        self.depth
    }

    fn bytes(&self) -> Result<Bytes, String> {
        let operands: Vec<Tensor> = self.operands.iter().map(tensor).collect::<Result<_, _>>()?;
        let bytes = self.step.run(&operands, self.dtype, &extents(&self.dims)?)?;
        let wanted = Constant::missing(self.dtype, self.dims.clone(), String::new()).size_bytes();
        if wanted != Some(bytes.len() as u64) {
            return Err(format!("{} bytes were computed for {}{:?}", bytes.len(), self.dtype, self.dims));
        }
        Ok(bytes.into())
    }

    fn is_available(&self) -> bool {
        self.operands.iter().all(|c| c.source.is_available())
    }

    fn is_computed(&self) -> bool {
        true
    }
}

/// How an index into weights says its output channel. Weights are read as `[groups, inputs, channels, rest]`; the channel is
/// `group * channels + channel`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Split {
    /// Groups.
    pub groups: usize,
    /// Input channels of a group, where they come before the output channels.
    pub inputs: usize,
    /// Output channels of a group.
    pub channels: usize,
    /// Elements that share both.
    pub rest: usize,
}

impl Split {
    /// Runs of elements with the same channel: the channel and how many elements, in the order of the weights.
    pub fn runs(self) -> impl Iterator<Item = (usize, usize)> {
        let Split { groups, inputs, channels, rest } = self;
        (0..groups)
            .flat_map(move |g| (0..inputs).flat_map(move |_| (0..channels).map(move |c| (g * channels + c, rest))))
    }

    /// Elements in all.
    pub fn elems(self) -> Option<usize> {
        self.groups.checked_mul(self.inputs)?.checked_mul(self.channels)?.checked_mul(self.rest)
    }
}

/// Weights with each output channel multiplied by its own factor: in f64, rounded once.
#[derive(Debug)]
pub struct Scaled {
    /// The weights.
    pub weights: Constant,
    /// One factor per output channel.
    pub factors: Arc<[f64]>,
    /// Where the channels are.
    pub split: Split,
}

impl ConstSource for Scaled {
    fn depth(&self) -> usize {
        self.weights.source.depth().saturating_add(1)
    }

    fn bytes(&self) -> Result<Bytes, String> {
        let weights = bytes_of(&self.weights)?;
        let dtype = self.weights.dtype;
        let width = width(dtype)?;
        if self.split.elems().and_then(|n| n.checked_mul(width)) != Some(weights.len()) {
            return Err(format!("{} bytes of weights do not have the shape that was said", weights.len()));
        }
        let mut out = Vec::with_capacity(weights.len());
        let mut runs = self.split.runs();
        let (mut factor, mut left) = (1.0, 0);
        // A block at a time, so that what is held besides the result stays small.
        for block in weights.chunks(BLOCK * width) {
            let mut numbers = decode(dtype, block)?.floats().ok_or("the weights are not floats")?;
            for w in &mut numbers {
                while left == 0 {
                    let (channel, run) = runs.next().ok_or("there are more weights than channels")?;
                    factor = *self.factors.get(channel).ok_or("a channel has no factor")?;
                    left = run;
                }
                *w *= factor;
                left -= 1;
            }
            out.extend(encode(&Numbers::F64(numbers), dtype)?);
        }
        Ok(out.into())
    }

    fn is_available(&self) -> bool {
        self.weights.source.is_available()
    }

    fn is_computed(&self) -> bool {
        true
    }
}

/// Halves as float32.
#[derive(Debug)]
pub struct Widened {
    /// The halves.
    pub halves: Constant,
}

impl Widened {
    /// Little-endian halves as little-endian float32.
    ///
    /// # Errors
    /// A half that is cut off.
    pub fn widen(halves: &[u8]) -> Result<Vec<u8>, String> {
        let mut out = Vec::with_capacity(halves.len().saturating_mul(2));
        for block in halves.chunks(BLOCK * 2) {
            out.extend(encode(&decode(DType::F16, block)?, DType::F32)?);
        }
        Ok(out)
    }
}

impl ConstSource for Widened {
    fn depth(&self) -> usize {
        self.halves.source.depth().saturating_add(1)
    }

    fn bytes(&self) -> Result<Bytes, String> {
        Widened::widen(&bytes_of(&self.halves)?).map(Bytes::from)
    }

    fn is_available(&self) -> bool {
        self.halves.source.is_available()
    }

    fn is_computed(&self) -> bool {
        true
    }
}

/// Weights of a grouped convolution, `[outputs, inputs of a group, rest]`, with neighbouring groups joined: an output has the
/// inputs of all groups that are joined with its own, and zeros for theirs.
#[derive(Debug)]
pub struct Diagonal {
    /// The weights.
    pub weights: Constant,
    /// How many groups they have.
    pub groups: i64,
    /// How many of these are one from now on.
    pub joined: i64,
}

impl ConstSource for Diagonal {
    fn depth(&self) -> usize {
        self.weights.source.depth().saturating_add(1)
    }

    fn bytes(&self) -> Result<Bytes, String> {
        let weights = bytes_of(&self.weights)?;
        let (groups, joined) = (count(self.groups)?, count(self.joined)?);
        let outputs = extents(&self.weights.dims)?.first().copied().unwrap_or(0);
        if outputs == 0 || !outputs.is_multiple_of(groups) || !weights.len().is_multiple_of(outputs) {
            return Err(format!("{} bytes of {outputs} filters are not those of {groups} groups", weights.len()));
        }
        let (filter, own) = (weights.len() / outputs, outputs / groups);
        let size = weights.len().checked_mul(joined).ok_or("the result is too large")?;
        let mut out = vec![0u8; size];
        if filter > 0 {
            for (output, bytes) in weights.chunks_exact(filter).enumerate() {
                let at = (output * joined + output / own % joined) * filter;
                out[at..at + filter].copy_from_slice(bytes);
            }
        }
        Ok(out.into())
    }

    fn is_available(&self) -> bool {
        self.weights.source.is_available()
    }

    fn is_computed(&self) -> bool {
        true
    }
}

/// Weights of a convolution of volumes, `[outputs, inputs, taps, rest]`, for images whose channels are those of several frames: an
/// output of a frame has, for each frame that is read, the inputs of one tap, or zeros.
#[derive(Debug)]
pub struct Tapped {
    /// The weights.
    pub weights: Constant,
    /// How many taps they have.
    pub taps: usize,
    /// For each frame that is left and each that is read: the tap.
    pub read: Vec<Vec<Option<usize>>>,
    /// Output and input channels of a frame, those that fill its last block among them.
    pub slots: [usize; 2],
}

impl ConstSource for Tapped {
    fn depth(&self) -> usize {
        self.weights.source.depth().saturating_add(1)
    }

    fn bytes(&self) -> Result<Bytes, String> {
        let weights = bytes_of(&self.weights)?;
        let dims = extents(&self.weights.dims)?;
        let &[outputs, inputs, ..] = dims.as_slice() else { return Err("weights have no channels".to_owned()) };
        let runs = outputs.checked_mul(inputs).and_then(|n| n.checked_mul(self.taps)).filter(|&n| n > 0);
        let run = runs.filter(|&n| weights.len().is_multiple_of(n)).map(|n| weights.len() / n);
        let run = run.ok_or_else(|| format!("{} bytes of weights are not {} taps", weights.len(), self.taps))?;
        let [most, wide] = self.slots;
        let frames = self.read.first().map_or(0, Vec::len);
        if most < outputs || wide < inputs || self.read.iter().flatten().flatten().any(|&tap| tap >= self.taps) {
            return Err(format!("{outputs} outputs, {inputs} inputs and {} taps do not fit", self.taps));
        }
        let size = [self.read.len(), most, frames, wide].into_iter().try_fold(run, usize::checked_mul);
        let mut out = vec![0u8; size.ok_or("the result is too large")?];
        for (left, read) in self.read.iter().enumerate() {
            let own = read.iter().enumerate().filter_map(|(frame, tap)| Some((frame, (*tap)?)));
            for ((frame, tap), output) in own.flat_map(|own| (0..outputs).map(move |output| (own, output))) {
                for input in 0..inputs {
                    let from = ((output * inputs + input) * self.taps + tap) * run;
                    let to = (((left * most + output) * frames + frame) * wide + input) * run;
                    out[to..to + run].copy_from_slice(&weights[from..from + run]);
                }
            }
        }
        Ok(out.into())
    }

    fn is_available(&self) -> bool {
        self.weights.source.is_available()
    }

    fn is_computed(&self) -> bool {
        true
    }
}

/// A number of at least 1.
fn count(n: i64) -> Result<usize, String> {
    usize::try_from(n).ok().filter(|n| *n > 0).ok_or_else(|| format!("{n} is not a number of groups"))
}

/// Elements that are widened at a time.
const BLOCK: usize = 4096;

/// The bytes of a constant in its own order.
///
/// # Errors
/// What the source says, or that they can't be moved.
pub fn bytes_of(c: &Constant) -> Result<Bytes, String> {
    let source = c.source.bytes()?;
    let Some(repack) = &c.pending else { return Ok(source) };
    let extents = extents(&repack.extents)?;
    let own = strides(&extents);
    let at = |&p: &usize| Some((*extents.get(p)?, *own.get(p)?));
    let moved: Option<(Vec<usize>, Vec<i64>)> = repack
        .to
        .as_permutation()
        .and_then(|perm| Some(perm.iter().map(at).collect::<Option<Vec<_>>>()?.into_iter().unzip()));
    let (dims, read) = moved.ok_or("it is to be stored in blocks")?;
    pick(&source, width(c.dtype)?, &dims, 0, &read).map(Bytes::from)
}

fn tensor(c: &Constant) -> Result<Tensor, String> {
    Ok(Tensor { dtype: c.dtype, dims: extents(&c.dims)?, bytes: bytes_of(c)? })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn floats(v: &[f32]) -> Bytes {
        v.iter().flat_map(|x| x.to_le_bytes()).collect::<Vec<u8>>().into()
    }

    #[test]
    fn factors_go_to_the_channel_wherever_it_is() {
        let weights = Constant::inline(DType::F32, vec![4, 2], floats(&[1., 2., 3., 4., 5., 6., 7., 8.]));
        let scaled = |split, factors: &[f64]| {
            Scaled { weights: weights.clone(), factors: factors.into(), split }.bytes().unwrap()
        };
        let first = Split { groups: 1, inputs: 1, channels: 4, rest: 2 };
        assert_eq!(scaled(first, &[1., 2., 3., 4.]), floats(&[1., 2., 6., 8., 15., 18., 28., 32.]));
        let last = Split { groups: 1, inputs: 4, channels: 2, rest: 1 };
        assert_eq!(scaled(last, &[1., 10.]), floats(&[1., 20., 3., 40., 5., 60., 7., 80.]));
        let grouped = Split { groups: 2, inputs: 2, channels: 2, rest: 1 };
        assert_eq!(scaled(grouped, &[1., 2., 3., 4.]), floats(&[1., 4., 3., 8., 15., 24., 21., 32.]));
    }

    #[test]
    fn joined_groups_have_zeros_for_the_channels_of_the_others() {
        // Four groups of one output and two inputs each.
        let weights = Constant::inline(DType::F32, vec![4, 2, 1], floats(&[1., 2., 3., 4., 5., 6., 7., 8.]));
        let wide = |joined| Diagonal { weights: weights.clone(), groups: 4, joined }.bytes().unwrap();
        let pairs = [[1., 2., 0., 0.], [0., 0., 3., 4.], [5., 6., 0., 0.], [0., 0., 7., 8.]];
        assert_eq!(wide(2), floats(&pairs.concat()));
        assert_eq!(wide(1), weights.source.bytes().unwrap());
        let all = wide(4);
        let (row, _) = all[2 * 8 * 4..3 * 8 * 4].as_chunks::<4>();
        assert_eq!(row.iter().map(|b| f32::from_le_bytes(*b)).collect::<Vec<_>>(), [0., 0., 0., 0., 5., 6., 0., 0.]);
        assert!(Diagonal { weights, groups: 3, joined: 1 }.bytes().is_err());
    }

    #[test]
    fn taps_lie_at_the_frames_that_they_read() {
        // One output, two inputs, two taps of one pixel.
        let weights = Constant::inline(DType::F32, vec![1, 2, 2, 1, 1], floats(&[1., 2., 3., 4.]));
        let of = |read: &[&[Option<usize>]], slots| {
            let read = read.iter().map(|frames| frames.to_vec()).collect();
            Tapped { weights: weights.clone(), taps: 2, read, slots }.bytes()
        };
        assert_eq!(of(&[&[Some(0), Some(1)]], [1, 2]).unwrap(), floats(&[1., 3., 2., 4.]));
        assert_eq!(of(&[&[Some(0), Some(1)]], [1, 3]).unwrap(), floats(&[1., 3., 0., 2., 4., 0.]));
        let joined = of(&[&[Some(1), None], &[Some(0), Some(1)]], [2, 2]).unwrap();
        assert_eq!(joined, floats(&[2., 4., 0., 0., 0., 0., 0., 0., 1., 3., 2., 4., 0., 0., 0., 0.]));
        assert!(of(&[&[Some(2)]], [1, 2]).is_err());
        assert!(of(&[&[Some(0)]], [1, 1]).is_err());
    }

    #[test]
    fn blocks_end_where_runs_do_not() {
        let n = BLOCK + 3;
        let weights = Constant::inline(DType::F32, vec![2, n as i64], floats(&vec![1.0; 2 * n]));
        let split = Split { groups: 1, inputs: 1, channels: 2, rest: n };
        let bytes = Scaled { weights, factors: [2.0, 3.0].into(), split }.bytes().unwrap();
        let wanted: Vec<f32> = [vec![2.0; n], vec![3.0; n]].concat();
        assert_eq!(bytes, floats(&wanted));
    }
}
