//! A graph built in code, without any ONNX file: two convolutions in a channels-last network, optimized for standard ONNX.
//!
//!     cargo run --example embed -p relayout

use relayout::ir::attr::Attr;
use relayout::ir::constant::Constant;
use relayout::ir::dim::Dim;
use relayout::ir::dtype::DType;
use relayout::ir::graph::ValueId;
use relayout::{BuildError, GraphBuilder, Options, Report, optimize_graph, target};

/// Optimizes a network and says what moves are left.
pub(crate) fn main() -> Result<(), Box<dyn std::error::Error>> {
    let graph = channels_last_network()?;
    println!("{graph}");
    let (graph, report): (_, Report) = optimize_graph(graph, target("onnx")?.as_ref(), &Options::default())?;
    println!("{graph}");
    println!("{}", report.explain());
    Ok(())
}

/// Image in, image out, both channels-last; between the convolutions, too, every tensor is put back into that order.
fn channels_last_network() -> Result<relayout::ir::graph::Graph, BuildError> {
    let mut b = GraphBuilder::new("embedded");
    let image = b.input("image", DType::F32, [Dim::symbol("N"), Dim::from(32), Dim::from(32), Dim::from(3)])?;
    let features = convolve(&mut b, "first", image, 3, 16)?;
    let features = b.op("Relu", "features", &[features], [])?;
    let result = convolve(&mut b, "second", features, 16, 3)?;
    b.output(result)?;
    Ok(b.finish())
}

/// A convolution that takes and leaves channels-last tensors.
fn convolve(b: &mut GraphBuilder, name: &str, x: ValueId, channels: i64, filters: i64) -> Result<ValueId, BuildError> {
    let weights = vec![0u8; usize::try_from(filters * channels * 9 * 4).unwrap_or(0)];
    let weights = Constant::inline(DType::F32, vec![filters, channels, 3, 3], weights.into());
    let weights = b.constant(&format!("{name}.weights"), weights)?;
    let nchw = b.op("Transpose", &format!("{name}.nchw"), &[x], [("perm", Attr::Ints(vec![0, 3, 1, 2]))])?;
    let same = ("pads", Attr::Ints(vec![1, 1, 1, 1]));
    let conv = b.op("Conv", &format!("{name}.conv"), &[nchw, weights], [same])?;
    b.op("Transpose", &format!("{name}.nhwc"), &[conv], [("perm", Attr::Ints(vec![0, 2, 3, 1]))])
}
