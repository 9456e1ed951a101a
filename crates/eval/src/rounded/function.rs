//! Functions of one number and of two. Those that the processor does not have are of crate `libm`, which gives the same bits on
//! every platform.

use relayout_ir::graph::{Graph, Node};
use relayout_ir::op::read::number_told;

/// A function of one number.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Function {
    /// One that has no parameter.
    Plain(fn(f64) -> f64),
    /// One with two numbers of its own.
    With(fn(f64, f64, f64) -> f64, f64, f64),
}

/// A function of two numbers.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Pair {
    /// The first to the power of the second.
    Power,
    /// The smaller; no number if one is none.
    Least,
    /// The larger; no number if one is none.
    Largest,
    /// Both together.
    Sum,
}

impl Pair {
    pub(super) fn apply(self, a: f64, b: f64) -> f64 {
        match self {
            Pair::Power => libm::pow(a, b),
            Pair::Sum => a + b,
            _ if a.is_nan() || b.is_nan() => f64::NAN,
            Pair::Least => a.min(b),
            Pair::Largest => a.max(b),
        }
    }
}

impl Function {
    /// The function that a node computes.
    pub(super) fn recognize(graph: &Graph, node: &Node) -> Option<Function> {
        let name = node.onnx()?;
        if let Some(plain) = plain(name, node) {
            return Some(Function::Plain(plain));
        }
        let told = |alpha: f64, beta: f64| {
            Some([number_told(graph, node, "alpha", alpha)?, number_told(graph, node, "beta", beta)?])
        };
        let (f, [alpha, beta]): (fn(f64, f64, f64) -> f64, _) = match name {
            "LeakyRelu" => (|x, alpha, _| if x < 0.0 { alpha * x } else { x }, told(f64::from(0.01f32), 0.0)?),
            "Elu" => (|x, alpha, _| if x < 0.0 { alpha * libm::expm1(x) } else { x }, told(1.0, 0.0)?),
            "HardSigmoid" => {
                let hard = |x: f64, alpha: f64, beta: f64| (alpha * x + beta).clamp(0.0, 1.0);
                (hard, told(f64::from(0.2f32), 0.5)?)
            }
            _ => return None,
        };
        Some(Function::With(f, alpha, beta))
    }

    pub(super) fn apply(self, x: f64) -> f64 {
        match self {
            Function::Plain(f) => f(x),
            Function::With(f, a, b) => f(x, a, b),
        }
    }
}

fn plain(name: &str, node: &Node) -> Option<fn(f64) -> f64> {
    Some(match name {
        "Exp" => libm::exp,
        "Log" => libm::log,
        "Erf" => libm::erf,
        "Sin" => libm::sin,
        "Cos" => libm::cos,
        "Tan" => libm::tan,
        "Asin" => libm::asin,
        "Acos" => libm::acos,
        "Atan" => libm::atan,
        "Sinh" => libm::sinh,
        "Cosh" => libm::cosh,
        "Asinh" => libm::asinh,
        "Acosh" => libm::acosh,
        "Atanh" => libm::atanh,
        "Tanh" => libm::tanh,
        "Sigmoid" => sigmoid,
        "Softplus" => |x| x.max(0.0) + libm::log1p(libm::exp(-x.abs())),
        "Softsign" => |x| x / (1.0 + x.abs()),
        "Relu" => |x| if x < 0.0 { 0.0 } else { x },
        "HardSwish" => |x| x * (x / 6.0 + 0.5).clamp(0.0, 1.0),
        "Mish" => |x| x * libm::tanh(x.max(0.0) + libm::log1p(libm::exp(-x.abs()))),
        "Gelu" if node.str("approximate") == Some("tanh") => |x| {
            let inner = std::f64::consts::FRAC_2_PI.sqrt() * (x + 0.044_715 * x * x * x);
            0.5 * x * (1.0 + libm::tanh(inner))
        },
        "Gelu" if matches!(node.str("approximate"), None | Some("none")) => {
            |x| 0.5 * x * (1.0 + libm::erf(x * std::f64::consts::FRAC_1_SQRT_2))
        }
        _ => return None,
    })
}

fn sigmoid(x: f64) -> f64 {
    1.0 / (1.0 + libm::exp(-x))
}
