//! ONNX Runtime's blocked ops. Their channels are multiples of every host's block, so that they run anywhere; what they compute
//! there is of no matter, as no layout passes through.

use super::case::{Case, f, of_domain};

pub(crate) fn cases() -> Vec<Case> {
    let op = |name| of_domain("com.microsoft.nchwc", name);
    let x = || f(&[1, 16, 6, 5]);
    vec![
        op("Conv").x(x()).x(f(&[32, 16, 3, 3])).x(f(&[32])).list("strides", &[2, 1]).text("activation", "Relu"),
        op("MaxPool").x(x()).list("kernel_shape", &[2, 2]),
        op("AveragePool").x(x()).list("kernel_shape", &[2, 2]).list("pads", &[0, 1, 0, 1]),
        op("GlobalAveragePool").x(x()),
        op("GlobalMaxPool").x(x()),
        op("ReorderInput").x(x()),
        op("ReorderInput").variant("from channels last").int("channels_last", 1).x(f(&[1, 6, 5, 16])),
        op("ReorderInput").variant("that rounds up").partial().x(f(&[1, 20, 6, 5])),
        op("ReorderOutput").int("channels", 12).x(x()),
        op("ReorderOutput").variant("to channels last").int("channels", 12).int("channels_last", 1).x(x()),
        op("Upsample").list("scales", &[1, 1, 2, 3]).x(x()),
    ]
}
