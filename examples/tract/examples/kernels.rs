//! What tract's kernels cost with channels first and last: one thread, the shortest of the runs.
//!
//!     cargo run --release --example kernels

use relayout_tract::measured;
use tract_core::internal::*;
use tract_core::ops::cnn::conv::Conv;
use tract_core::ops::cnn::{KernelFormat, MaxPool, PaddingSpec, PoolSpec, SumPool};
use tract_core::ops::einsum::EinSum;
use tract_core::ops::nn::{DataFormat, Reduce, Reducer};

/// Images of so many channels, of so many rows and columns.
#[derive(Clone, Copy)]
struct Image {
    batch: usize,
    channels: usize,
    side: usize,
}

impl Image {
    /// tract drops a batch of one.
    fn shape(self, last: bool) -> TVec<usize> {
        let Image { batch, channels, side } = self;
        let image = if last { [side, side, channels] } else { [channels, side, side] };
        let batch = (batch > 1).then_some(batch);
        batch.into_iter().chain(image).collect()
    }

    fn format(self, last: bool) -> DataFormat {
        match (self.batch > 1, last) {
            (false, false) => DataFormat::CHW,
            (false, true) => DataFormat::HWC,
            (true, false) => DataFormat::NCHW,
            (true, true) => DataFormat::NHWC,
        }
    }

    fn windows(self, last: bool, kernel: usize, stride: usize, out: usize) -> PoolSpec {
        let pad = (kernel - 1) / 2;
        PoolSpec {
            data_format: self.format(last),
            kernel_shape: tvec!(kernel, kernel),
            padding: PaddingSpec::Explicit(tvec!(pad, pad), tvec!(pad, pad)),
            dilations: None,
            strides: Some(tvec!(stride, stride)),
            input_channels: self.channels,
            output_channels: out,
        }
    }
}

/// The time of an op that reads an image, in microseconds.
fn time(
    image: Image,
    last: bool,
    wire: impl Fn(&mut TypedModel, OutletId) -> TractResult<OutletId>,
) -> TractResult<f64> {
    let mut model = TypedModel::default();
    let x = model.add_source("x", f32::fact(image.shape(last)))?;
    let y = wire(&mut model, x)?;
    model.select_output_outlets(&[y])?;
    Ok(measured(model)? as f64 / 1e3)
}

fn row(
    name: &str,
    image: Image,
    both: impl Fn(&mut TypedModel, OutletId, bool) -> TractResult<OutletId>,
) -> TractResult<()> {
    let first = time(image, false, |m, x| both(m, x, false))?;
    let last = time(image, true, |m, x| both(m, x, true))?;
    let Image { batch, channels, side } = image;
    println!("| {name} | {batch} | {channels} | {side} | {first:.0} | {last:.0} | {:.2} |", first / last);
    Ok(())
}

fn weights(model: &mut TypedModel, shape: &[usize]) -> TractResult<OutletId> {
    let count = shape.iter().product::<usize>();
    let numbers: Vec<f32> = (0..count).map(|i| (i % 7) as f32 * 0.1 - 0.3).collect();
    model.add_const("weights", Tensor::from_shape(shape, &numbers)?)
}

fn conv(image: Image, kernel: usize, stride: usize, out: usize, group: usize) -> TractResult<()> {
    let name = match group {
        1 => format!("Conv {kernel}x{kernel}/{stride} to {out}"),
        _ => format!("Conv {kernel}x{kernel}/{stride} in {group} groups"),
    };
    row(&name, image, |model, x, last| {
        let w = weights(model, &[out, image.channels / group, kernel, kernel])?;
        let bias = model.add_const("bias", Tensor::from_shape(&[out], &vec![0.5f32; out])?)?;
        let pool_spec = image.windows(last, kernel, stride, out);
        let op = Conv { pool_spec, kernel_fmt: KernelFormat::OIHW, group, q_params: None };
        Ok(model.wire_node("y", op, &[x, w, bias])?[0])
    })
}

/// What tract makes of a convolution of one tap.
fn product(image: Image, out: usize) -> TractResult<()> {
    row(&format!("EinSum (Conv 1x1) to {out}"), image, |model, x, last| {
        let w = weights(model, &[out, image.channels])?;
        let (n, ends) = (if image.batch > 1 { "n" } else { "" }, if last { ["hwi", "hwo"] } else { ["ihw", "ohw"] });
        let [x_axes, y_axes] = ends.map(|end| format!("{n}{end}"));
        let axes = AxesMapping::from_strs(&[x_axes, "oi".to_owned()], &[y_axes])?;
        Ok(model.wire_node("y", EinSum::new(axes, f32::datum_type()), &[x, w])?[0])
    })
}

fn others(image: Image) -> TractResult<()> {
    row("MaxPool 3x3/2", image, |model, x, last| {
        let op = MaxPool { pool_spec: image.windows(last, 3, 2, image.channels), with_index_outputs: None };
        Ok(model.wire_node("y", op, &[x])?[0])
    })?;
    row("SumPool 3x3/1", image, |model, x, last| {
        let pool_spec = image.windows(last, 3, 1, image.channels);
        Ok(model.wire_node("y", SumPool { pool_spec, count_include_pad: true, normalize: true }, &[x])?[0])
    })?;
    row("Reduce<Sum> over rows and columns", image, |model, x, last| {
        let first = usize::from(image.batch > 1) + usize::from(!last);
        let op = Reduce { axes: tvec!(first, first + 1), reducer: Reducer::Sum };
        Ok(model.wire_node("y", op, &[x])?[0])
    })?;
    row("Move to the other end", image, |model, x, last| {
        let (n, end) = (usize::from(image.batch > 1), usize::from(image.batch > 1) + 2);
        let op = if last { AxisOp::Move(end, n) } else { AxisOp::Move(n, end) };
        Ok(model.wire_node("y", op, &[x])?[0])
    })
}

fn main() -> TractResult<()> {
    println!("| op | batch | channels | side | first, us | last, us | first / last |");
    println!("|---|---:|---:|---:|---:|---:|---:|");
    for batch in [1, 4] {
        let image = |channels, side| Image { batch, channels, side };
        conv(image(3, 224), 3, 2, 32, 1)?;
        conv(image(3, 224), 7, 2, 64, 1)?;
        conv(image(3, 224), 3, 1, 64, 1)?;
        for (channels, side) in [(32, 112), (64, 56), (128, 28), (256, 14), (512, 7)] {
            conv(image(channels, side), 3, 1, channels, 1)?;
        }
        conv(image(64, 56), 3, 2, 128, 1)?;
        conv(image(128, 28), 3, 1, 128, 32)?;
        for (channels, side) in [(32, 112), (96, 56), (144, 28), (384, 14), (960, 7)] {
            conv(image(channels, side), 3, 1, channels, channels)?;
        }
        conv(image(96, 112), 3, 2, 96, 96)?;
        conv(image(240, 14), 5, 1, 240, 240)?;
        conv(image(96, 56), 7, 1, 96, 96)?;
        for (channels, side, out) in
            [(32, 112, 16), (64, 56, 256), (144, 56, 24), (384, 14, 64), (960, 7, 160), (512, 7, 2048)]
        {
            product(image(channels, side), out)?;
        }
        for (channels, side) in [(64, 112), (256, 28), (1024, 7)] {
            others(image(channels, side))?;
        }
    }
    Ok(())
}
