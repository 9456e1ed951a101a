//! Optimizes a model for standard ONNX, and says what came of it.

use relayout::{Model, Options, optimize, target};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let model = Model::open("../unet.onnx")?;
    let target = target("onnx")?;
    let optimized = optimize(&model, target.as_ref(), &Options::default())?;
    println!("{}", optimized.report().summary());
    optimized.write("unet.onnx")?;
    Ok(())
}
