//! Entries of the table that no random model can have, because ONNX Runtime has no kernel for them on the CPU; each with a node
//! that it would run if it had. A test runs these nodes: one that does run has to go from here.

use crate::common::runtime;
use crate::histogram::entry_row;
use crate::op_cases::case::{Case, bools, byte, case, exact, f, float, fr, of_domain, u8s};
use relayout::ir::op::{OpDef, entries};
use relayout::verify::{Data, Level, ModelSource, run};

const BEFORE: &str = "ONNX Runtime has no kernels for operator sets before 7";
const NO_KERNEL: &str = "ONNX Runtime has no kernel on the CPU";
const SAVED: &str = "only sessions on other devices write and run this domain";

/// Domain, op (`*` for all of the domain), first version of the entry, reason.
const ABSENT: &[(&str, &str, i64, &str)] = &[
    ("", "Add", 1, BEFORE),
    ("", "Sub", 1, BEFORE),
    ("", "Mul", 1, BEFORE),
    ("", "Div", 1, BEFORE),
    ("", "Pow", 1, BEFORE),
    ("", "And", 1, BEFORE),
    ("", "Or", 1, BEFORE),
    ("", "Xor", 1, BEFORE),
    ("", "Equal", 1, BEFORE),
    ("", "Greater", 1, BEFORE),
    ("", "Less", 1, BEFORE),
    ("", "PRelu", 1, BEFORE),
    ("", "Pad", 1, BEFORE),
    ("", "Tile", 1, BEFORE),
    ("", "Upsample", 1, BEFORE),
    ("", "Swish", 24, NO_KERNEL),
    ("com.ms.internal.nhwc", "*", 1, SAVED),
];

/// What ONNX Runtime says where it lacks a kernel for a node that is right.
const LACKING: &str = "Could not find an implementation for";

/// The line that is about an entry.
pub(crate) fn line(def: &OpDef) -> Option<&'static (&'static str, &'static str, i64, &'static str)> {
    ABSENT.iter().find(|(domain, op, first, _)| {
        *domain == def.domain && *first == def.opsets.0 && (*op == "*" || *op == def.name)
    })
}

/// The entries that are absent, each with the reason.
pub(crate) fn listed() -> impl Iterator<Item = String> {
    entries().filter_map(|def| Some(format!("{}: {}", entry_row(def), line(def)?.3)))
}

/// A node of the entry at the last version that it speaks of.
fn probe(def: &OpDef) -> Case {
    if !def.domain.is_empty() {
        return internal(def.name);
    }
    let last = def.opsets.1;
    let x = || fr(&[2, 3, 4], 0.5, 2.0);
    match def.name {
        "And" | "Or" | "Xor" => case(def.name, last, last).x(bools(&[2, 3])).x(bools(&[2, 3])),
        "Equal" => case("Equal", last, last).x(bools(&[2, 3])).x(bools(&[2, 3])),
        "PRelu" => case("PRelu", last, last).x(x()).x(f(&[1])),
        "Pad" => case("Pad", last, last).list("paddings", &[0, 1, 0, 1, 0, 0]).x(x()),
        "Tile" => {
            case("Tile", last, last).x(x()).x(exact(&[1], Data::F32(vec![2.0]))).x(exact(&[1], Data::F32(vec![1.0])))
        }
        "Upsample" => case("Upsample", last, last).num("height_scale", 2.0).num("width_scale", 2.0).x(f(&[1, 2, 3, 4])),
        "Swish" => case("Swish", last, last).x(x()),
        op => case(op, last, last).x(x()).x(x()),
    }
}

/// A node of ONNX Runtime's channels-last ops, whose operands are those of ONNX's op of the name with channels at the end.
fn internal(op: &'static str) -> Case {
    let image = of_domain("com.ms.internal.nhwc", op).x(f(&[1, 6, 5, 4]));
    match op {
        "QLinearAveragePool" => quantized(of_domain("com.ms.internal.nhwc", op).x(u8s(&[1, 6, 5, 4])))
            .c(float(0.05))
            .c(byte(100))
            .list("kernel_shape", &[2, 2]),
        "QLinearConv" | "QLinearConvTranspose" => {
            let image = quantized(of_domain("com.ms.internal.nhwc", op).x(u8s(&[1, 6, 5, 4])));
            quantized(image.c(u8s(&[4, 4, 2, 2]))).c(float(0.05)).c(byte(100))
        }
        "GridSample" => image.x(fr(&[1, 2, 2, 2], -0.9, 0.9)),
        "MaxUnpool" => image.x(exact(&[1, 6, 5, 4], Data::I64((0..120).collect()))).list("kernel_shape", &[1, 1]),
        "Resize" => image.none().c(exact(&[4], Data::F32(vec![1.0, 2.0, 2.0, 1.0]))),
        "Conv" | "ConvTranspose" => image.x(f(&[4, 4, 2, 2])),
        "MaxPool" | "AveragePool" | "LpPool" => image.list("kernel_shape", &[2, 2]),
        "BatchNormalization" => image.x(f(&[4])).x(f(&[4])).x(f(&[4])).x(fr(&[4], 0.5, 2.0)),
        "InstanceNormalization" => image.x(f(&[4])).x(f(&[4])),
        "LRN" => image.int("size", 3),
        "DepthToSpace" | "SpaceToDepth" => image.int("blocksize", 1),
        _ => image,
    }
}

fn quantized(case: Case) -> Case {
    case.c(float(0.05)).c(byte(100))
}

#[test]
fn ops_that_are_said_to_have_no_kernel_on_the_cpu_have_none() {
    let mut wrong = Vec::new();
    for def in entries() {
        let Some((_, _, _, reason)) = line(def) else { continue };
        let (case, opset) = (probe(def), def.opsets.1);
        let bytes = prost::Message::encode_to_vec(&case.model(opset));
        let (domain, op) = (def.domain, def.name);
        match run(runtime(), ModelSource::Bytes(&bytes), &case.feeds(), Level::Disabled) {
            Ok(_) => wrong.push(format!("{domain} {op} of opset {opset} runs, though {reason}: take it off the list")),
            Err(e) if e.to_string().contains(LACKING) => {}
            Err(e) => wrong.push(format!("{domain} {op} of opset {opset} is refused for another reason: {e}")),
        }
    }
    let idle = ABSENT.iter().filter(|l| !entries().any(|def| line(def).is_some_and(|found| found == *l)));
    wrong.extend(idle.map(|l| format!("{l:?} is not in the table")));
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
