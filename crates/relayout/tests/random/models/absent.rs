//! Entries of the table that no random model can have, each with the reason: ONNX Runtime has no kernel for them on the CPU, its
//! kernel is wrong, or there is no case of them. `tests/ops/uncovered.rs` lists the first and the last. Those of the first kind
//! have a node here that would run if there were a kernel, and those of the second a model that shows it. Tests run these: what does
//! run, or runs rightly, has to go from the list.

use super::{cards, sketch};
use crate::common::runtime;
use crate::models::histogram::entry_row;
use crate::models::ops::DEALT;
use crate::op_cases::case::{Case, bools, byte, case, exact, f, float, fr, i8s, i64s, microsoft, of_domain, u8s};
use crate::uncovered::{ABSENT, Line, UNCOVERED, speaks_of};
use relayout::ir::op::{OpDef, WRITTEN_OPSET, entries};
use relayout_onnx::proto::tensor_proto::DataType;
use relayout_verify::{Data, Level, ModelSource, run};
use std::collections::BTreeMap;

const CLOBBERS: &str = "ONNX Runtime's kernel clears its result before it reads its first operand, and both lie in the same memory \
                        where nothing else reads the operand: it computes something else behind another op than on an input";

/// What ONNX Runtime says where it lacks a kernel for a node that is right.
const LACKING: &str = "Could not find an implementation for";

/// Entries whose kernel is wrong.
const WRONG: &[Line] = &[("com.microsoft", "MoE", 1, CLOBBERS)];

fn found(list: &'static [Line], def: &OpDef) -> Option<&'static Line> {
    list.iter().find(|line| speaks_of(line, def))
}

/// Whether a model can be dealt the entry.
fn has_cards(def: &OpDef) -> bool {
    let family = DEALT.iter().any(|(op, ..)| def.domain.is_empty() && *op == def.name);
    family || cards::cases().iter().any(|case| (case.domain, case.op) == (def.domain, def.name))
}

/// Why no random model has an entry.
pub(crate) fn reason(def: &OpDef) -> Option<&'static str> {
    let own = found(ABSENT, def).or_else(|| found(WRONG, def));
    own.or_else(|| found(UNCOVERED, def).filter(|_| !has_cards(def))).map(|line| line.3)
}

/// The entries that are absent, each with the reason.
pub(crate) fn listed() -> impl Iterator<Item = String> {
    entries().filter_map(|def| Some(format!("{}: {}", entry_row(def), reason(def)?)))
}

/// A node of the entry at the last version that it speaks of.
fn probe(def: &OpDef) -> Case {
    match def.domain {
        "" => {}
        "com.microsoft" => return contributed(def.name),
        _ => return internal(def.name),
    }
    let last = def.opsets.1.min(WRITTEN_OPSET);
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
        "ImageDecoder" => case("ImageDecoder", last, last).x(u8s(&[16])),
        "Swish" => case("Swish", last, last).x(x()),
        op => case(op, last, last).x(x()).x(x()),
    }
}

/// A node of an op of ONNX Runtime's own that only other devices have.
fn contributed(op: &'static str) -> Case {
    let of = microsoft(op);
    let grouped = || microsoft(op).int("activation", 0).int("groups", 2).x(f(&[1, 5, 6, 4])).x(f(&[4])).x(f(&[4]));
    let reduced = |case: Case| case.list("axes", &[1]).int("keepdims", 1);
    match op {
        "BiasAdd" => of.x(f(&[2, 3, 4])).x(f(&[4])).x(f(&[2, 3, 4])),
        "BiasSplitGelu" => of.x(f(&[2, 3, 8])).x(f(&[8])),
        "FusedMatMulActivation" => of.text("activation", "Relu").x(f(&[2, 3])).x(f(&[3, 4])),
        "GemmFastGelu" => of.x(f(&[2, 3])).x(f(&[3, 4])),
        // With channels last they are written out where the runtime has no kernel, and run.
        "GroupNorm" => grouped().int("channels_last", 0),
        "SkipGroupNorm" => grouped().int("channels_last", 0).x(f(&[1, 5, 6, 4])),
        "IsAllFinite" => of.x(f(&[2, 3])),
        "MulInteger" => of.x(u8s(&[2, 3])).c(byte(3)).x(u8s(&[2, 3])).c(byte(3)),
        "NhwcConv" | "NhwcFusedConv" => of.x(f(&[1, 6, 5, 4])).x(f(&[8, 3, 3, 4])),
        "QLinearReduceMean" => quantized(reduced(of).x(u8s(&[2, 3, 4]))).c(float(0.05)).c(byte(100)),
        "ReduceSumInteger" => reduced(of).x(i8s(&[2, 3, 4])),
        "TorchEmbedding" => of.x(f(&[5, 4])).x(i64s(&[2, 3], 0, 5)),
        _ => of.x(f(&[2, 2])).x(f(&[2, 2])),
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
        let Some((_, _, _, reason)) = found(ABSENT, def) else { continue };
        let (case, opset) = (probe(def), def.opsets.1.min(WRITTEN_OPSET));
        let mut model = case.model(opset);
        if def.name == "ReduceSumInteger" {
            // ONNX Runtime does not infer which of two types its result has.
            let result = sketch::info("y0", DataType::Int32, &[2, 1, 4], &BTreeMap::new(), true);
            model.graph.get_or_insert_default().output = vec![result];
        }
        let bytes = prost::Message::encode_to_vec(&model);
        let (domain, op) = (def.domain, def.name);
        match run(runtime(), ModelSource::Bytes(&bytes), &case.feeds(), Level::Disabled) {
            Ok(_) => wrong.push(format!("{domain} {op} of opset {opset} runs, though {reason}: take it off the list")),
            Err(e) if e.to_string().contains(LACKING) => {}
            Err(e) => wrong.push(format!("{domain} {op} of opset {opset} is refused for another reason: {e}")),
        }
    }
    let named = |list: &'static [Line], l: &Line| entries().any(|def| found(list, def).is_some_and(|own| own == l));
    let idle = ABSENT.iter().filter(|l| !named(ABSENT, l)).chain(WRONG.iter().filter(|l| !named(WRONG, l)));
    wrong.extend(idle.map(|l| format!("{l:?} is not in the table")));
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn kernels_that_are_said_to_overwrite_their_first_operand_do() {
    let mut right = Vec::new();
    for (domain, op, ..) in WRONG {
        let case =
            cards::cases().iter().find(|c| (c.domain, c.op) == (*domain, *op)).expect("there is a case that shows it");
        let negated = |x: &str, y: &str| sketch::node("Neg", vec![x.to_owned()], vec![y.to_owned()], vec![]);
        let mut plain = case.model(1);
        // Its result is no output of the model: that would have memory of its own.
        let graph = plain.graph.get_or_insert_default();
        let last = std::mem::replace(&mut graph.node[0].output[0], "result".to_owned());
        graph.node.push(negated("result", &last));
        let mut behind = plain.clone();
        let graph = behind.graph.get_or_insert_default();
        let first = std::mem::replace(&mut graph.node[0].input[0], "same".to_owned());
        graph.node.splice(0..0, [negated(&first, "negated"), negated("negated", "same")]);
        let results = [plain, behind].map(|model| {
            let bytes = prost::Message::encode_to_vec(&model);
            run(runtime(), ModelSource::Bytes(&bytes), &case.feeds(), Level::Disabled).expect("it runs")
        });
        if results[0] == results[1] {
            right.push(format!("{domain} {op} computes the same behind two Negs as on an input: take it off the list"));
        }
    }
    assert!(right.is_empty(), "{}", right.join("\n"));
}
