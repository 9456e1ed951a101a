//! Transposed convolutions. One that makes images as many times larger as its stride is a convolution of stride 1, whose filters make
//! each place of a cell of the result: `y[s q + r]` adds up `x[q + d]` times the taps for which `s (q + d) + tap - before` is that place.

use super::window;
use super::{Call, Made, Results, one, placed};
use crate::files::model::width;
use crate::terms::value::Value;
use crate::terms::windows::Windows;

/// How many times as large as the weights filters are at most, with their zeros: a file should not make the checker take memory.
const MOST: usize = 16;

pub(super) fn run(call: &mut Call<'_>) -> Results {
    let (x, w) = (call.need(0)?, call.need(1)?);
    let (shape, weights) = (x.shape(), w.shape());
    let auto = call.text("auto_pad").unwrap_or_else(|| "NOTSET".to_owned());
    if call.ints("output_shape").is_some() || auto != "NOTSET" {
        return Err("the checker does not know its padding".to_owned());
    }
    if shape.len() < 3 || weights.len() != shape.len() || weights[0] != shape[1] {
        return Err(format!("operands of {shape:?} and {weights:?} do not fit"));
    }
    if call.ints("kernel_shape").is_some_and(|kernel| kernel != weights[2..]) {
        return Err(format!("its window is not that of its weights {weights:?}"));
    }
    let more = call.ints("output_padding").unwrap_or_else(|| vec![0; shape.len() - 2]);
    let group = call.int("group", 1);
    let channels = weights[1].checked_mul(group).ok_or("its groups do not fit")?;
    let mut out = vec![shape[0], channels];
    let windows = placed::windows_of(call, &weights[2..], &shape[2..])?;
    for (at, stride) in windows.strides.iter().enumerate() {
        let more = more.get(at).ok_or("its window does not fit its operand")?;
        let more = more.checked_sub(*stride).and_then(|more| more.checked_add(windows.reach(at) - windows.padding(at)));
        let cells = stride.checked_mul(shape[at + 2]);
        let all = cells.zip(more).and_then(|(cells, more)| call.terms.sum_of(&[cells], more));
        out.push(all.ok_or("its result is too large")?);
    }
    let cells = Cells::new(&shape, &w, &windows, &out).filter(|_| group == 1);
    let bias = call.input(2).map_or(Some(None), |bias| Some(Some(bias.elements()?)));
    if let Some(cells) = cells
        && let Some(filters) = cells.filters(&w)
        && let Some(repeated) = bias
    {
        let repeated = repeated.map(|bytes| {
            let times = cells.stride * cells.stride;
            Value::constant(w.dtype, &[times * channels], bytes.repeat(times as usize).into())
        });
        let y = cells.convolved(call, &x, &filters, repeated.as_ref(), &out)?;
        // The input may add the bias to what the filters make. What it computes is the one that it is.
        let y = call.terms.real(y);
        let Some(bias) = call.input(2).cloned().filter(|_| call.terms.lacks(&y)) else { return one(y) };
        let plain = cells.convolved(call, &x, &filters, None, &out)?;
        let sum = window::shifted(call.terms, plain, Some(&bias))?;
        let sum = call.terms.real(sum);
        return one(if call.terms.lacks(&sum) { y } else { sum });
    }
    // What is added is one more summand.
    let (inputs, attrs) = (call.inputs, call.attrs);
    let results = vec![true];
    let mut plain = Call { inputs: &inputs[..2], attrs, results, terms: call.terms, ..*call };
    let y = placed::of_results(&mut plain, &[(out, x.dtype)])?.pop().flatten().ok_or("it makes nothing")?;
    window::shifted(plain.terms, y, inputs.get(2).and_then(Option::as_ref)).and_then(one)
}

/// A transposed convolution whose result has a cell of so many rows and columns for each pixel of the operand.
struct Cells {
    stride: i64,
    /// Of rows and columns: the padding before.
    before: [i64; 2],
    /// Extents of the kernel.
    kernel: [i64; 2],
}

impl Cells {
    fn new(shape: &[i64], w: &Value, windows: &Windows, out: &[i64]) -> Option<Cells> {
        let &[_, _, h, w_] = shape else { return None };
        let (&[stride, other], &[_, _, oh, ow]) = (windows.strides.as_slice(), out) else { return None };
        let larger = stride > 1 && other == stride && [Some(oh), Some(ow)] == [h, w_].map(|n| n.checked_mul(stride));
        let whole = windows.dilations.iter().all(|d| *d == 1) && windows.pads.iter().all(|p| *p >= 0);
        let kernel = <[i64; 2]>::try_from(windows.kernel.as_slice()).ok()?;
        let before = [*windows.pads.first()?, *windows.pads.get(1)?];
        (larger && whole && w.is_constant()).then_some(Cells { stride, before, kernel })
    }

    /// The place in a cell to which a tap along an axis adds, and how far behind its own pixel the one is that it is multiplied with.
    fn place(&self, axis: usize, tap: i64) -> (i64, i64) {
        let at = tap - self.before[axis];
        (at.rem_euclid(self.stride), -at.div_euclid(self.stride))
    }

    /// The first and the last pixel that a cell reads along an axis, counted from its own.
    fn reach(&self, axis: usize) -> (i64, i64) {
        let all = (0..self.kernel[axis]).map(|tap| self.place(axis, tap).1);
        all.fold((0, 0), |(first, last), d| (first.min(d), last.max(d)))
    }

    /// How many pixels a cell reads along an axis.
    fn extent(&self, axis: usize) -> i64 {
        let (first, last) = self.reach(axis);
        last - first + 1
    }

    /// `[places of a cell, outputs]` filters of the convolution.
    fn filters(&self, w: &Value) -> Option<Value> {
        let &[inputs, outputs, rows, columns] = w.shape().as_slice() else { return None };
        let (bytes, size) = (w.elements()?, width(w.dtype)?);
        let ([high, wide], [top, left]) = ([0, 1].map(|axis| self.extent(axis)), [0, 1].map(|axis| self.reach(axis).0));
        let dims = [self.stride.checked_mul(self.stride)?.checked_mul(outputs)?, inputs, high, wide];
        let count = dims.iter().try_fold(size, |all, &n| all.checked_mul(usize::try_from(n).ok()?))?;
        let mut data = vec![0; Some(count).filter(|&count| count <= bytes.len().saturating_mul(MOST))?];
        let mut from = 0;
        for (input, output) in (0..inputs).flat_map(|input| (0..outputs).map(move |output| (input, output))) {
            for (row, column) in (0..rows).flat_map(|row| (0..columns).map(move |column| (row, column))) {
                let ((r, down), (c, along)) = (self.place(0, row), self.place(1, column));
                let filter = (r * self.stride + c) * outputs + output;
                let [down, along] = [down - top, along - left];
                let to = (((filter * inputs + input) * high + down) * wide + along) as usize * size;
                data.get_mut(to..to + size)?.copy_from_slice(bytes.get(from..from + size)?);
                from += size;
            }
        }
        Some(Value::constant(w.dtype, &dims, data.into()))
    }

    /// The convolution, its channels brought to the places of cells.
    fn convolved(&self, call: &mut Call<'_>, x: &Value, w: &Value, bias: Option<&Value>, out: &[i64]) -> Made {
        let [rows, columns] = [0, 1].map(|axis| self.reach(axis));
        let windows = Windows {
            kernel: vec![self.extent(0), self.extent(1)],
            strides: vec![1; 2],
            dilations: vec![1; 2],
            pads: vec![-rows.0, -columns.0, rows.1, columns.1],
            ceil: false,
            ruled: vec![None; 2],
        };
        let (shape, s) = (x.shape(), self.stride);
        let y = window::convolved(call.terms, x, w, bias, 1, windows)?;
        let cells = call.terms.moved(&y, &[shape[0], s, s, out[1], shape[2], shape[3]]);
        let cells = cells.and_then(|cells| cells.permuted(&[0, 3, 4, 1, 5, 2]));
        cells.and_then(|cells| call.terms.moved(&cells, out)).ok_or_else(|| "its channels do not fit".to_owned())
    }
}
