//! Is a node one that the standard allows? Numbers of operands, results and bodies' ends, and attributes.
//!
//! What is refused here, ONNX Runtime refuses to load. Nothing is said of operators of other domains, of opsets newer than the
//! table, and of types, shapes and values.

use super::schema::{self, Attribute, Count, Lookup, OpSchema};
use crate::proto::attribute_proto::AttributeType;
use crate::proto::{AttributeProto, GraphProto, NodeProto};

/// What is wrong with a node of the standard's domain, each a sentence without a subject.
pub(super) fn node(node: &NodeProto, opset: i64) -> Vec<String> {
    if opset < 1 || opset > schema::newest_opset() {
        return Vec::new();
    }
    let op = node.op_type();
    match schema::find(op, opset) {
        Lookup::Known(schema) => {
            let mut wrong = ends(node, schema);
            wrong.extend(attributes(node, schema));
            // Bodies are looked at only if they are there and the ends are sound.
            if wrong.is_empty() {
                wrong.extend(bodies(node, opset));
            }
            wrong
        }
        Lookup::Deprecated(since) => {
            vec![format!("`{op}` is not an operator since opset {since}, and the model has {opset}")]
        }
        Lookup::Later(since) => {
            vec![format!("`{op}` is an operator only from opset {since} on, and the model has {opset}")]
        }
        Lookup::Unknown => vec![format!("`{op}` is not an operator of the ONNX standard (opset {opset})")],
    }
}

/// What is wrong with an attribute whatever the operator: no name, no kind, or fields that do not belong to its kind.
pub(super) fn attribute(a: &AttributeProto, ir_version: i64) -> Option<String> {
    if a.name().is_empty() {
        return Some("an attribute has no name".to_owned());
    }
    let declared = AttributeType::try_from(super::kind_of(a)).ok()?;
    if a.r#type.unwrap_or(0) == 0 && ir_version >= 2 {
        return Some(format!("attribute `{}` does not say of which kind it is", a.name()));
    }
    let stray = fields(a).into_iter().find(|(kind, set)| *set && *kind != declared).map(|(kind, _)| kind)?;
    Some(format!("attribute `{}` is said to be {}, but holds {}", a.name(), said(declared), said(stray)))
}

fn fields(a: &AttributeProto) -> [(AttributeType, bool); 14] {
    [
        (AttributeType::Float, a.f.is_some()),
        (AttributeType::Int, a.i.is_some()),
        (AttributeType::String, a.s.is_some()),
        (AttributeType::Tensor, a.t.is_some()),
        (AttributeType::Graph, a.g.is_some()),
        (AttributeType::SparseTensor, a.sparse_tensor.is_some()),
        (AttributeType::TypeProto, a.tp.is_some()),
        (AttributeType::Floats, !a.floats.is_empty()),
        (AttributeType::Ints, !a.ints.is_empty()),
        (AttributeType::Strings, !a.strings.is_empty()),
        (AttributeType::Tensors, !a.tensors.is_empty()),
        (AttributeType::Graphs, !a.graphs.is_empty()),
        (AttributeType::SparseTensors, !a.sparse_tensors.is_empty()),
        (AttributeType::TypeProtos, !a.type_protos.is_empty()),
    ]
}

fn ends(node: &NodeProto, schema: &OpSchema) -> Vec<String> {
    let inputs = end(&node.input, schema.inputs, "input");
    inputs.into_iter().chain(end(&node.output, schema.outputs, "output")).collect()
}

fn end(names: &[String], count: Count, what: &str) -> Option<String> {
    let found = names.len();
    if found < count.least || count.most.is_some_and(|most| found > most) {
        let may = match count.most {
            Some(most) if most == count.least => format!("{most}"),
            Some(most) => format!("{} to {most}", count.least),
            None => format!("at least {}", count.least),
        };
        return Some(format!("has {found} {what}s, and the operator takes {may}"));
    }
    let empty = names.iter().take(count.least).position(String::is_empty).filter(|_| !count.omissible)?;
    Some(format!("{what} {empty} is left out, and the operator needs it"))
}

fn attributes(node: &NodeProto, schema: &OpSchema) -> Vec<String> {
    let find = |name: &str| schema.attributes.iter().find(|a| a.name == name);
    let mut wrong = Vec::new();
    // A name that begins with two underscores is the runtime's own business.
    for a in node.attribute.iter().filter(|a| !a.name().starts_with("__")) {
        match find(a.name()) {
            None => wrong.push(format!("the operator has no attribute `{}`", a.name())),
            Some(known) => wrong.extend(mismatch(a, known)),
        }
    }
    let missing = schema.attributes.iter().filter(|a| a.required && !node.attribute.iter().any(|b| b.name() == a.name));
    wrong.extend(missing.map(|a| format!("the attribute `{}` is required and not there", a.name)));
    if node.op_type() == "Constant" && node.attribute.is_empty() {
        wrong.push("has no value".to_owned());
    }
    wrong
}

fn mismatch(a: &AttributeProto, known: &Attribute) -> Option<String> {
    // Files of IR version 1 do not say the kind, which then follows from the field that is set.
    let found = AttributeType::try_from(super::kind_of(a)).unwrap_or(AttributeType::Undefined);
    let fits = found == known.kind;
    (!fits).then(|| format!("attribute `{}` is {}, and the operator takes {}", a.name(), said(found), said(known.kind)))
}

fn said(kind: AttributeType) -> &'static str {
    match kind {
        AttributeType::Undefined => "of no kind",
        AttributeType::Float => "a float",
        AttributeType::Int => "an integer",
        AttributeType::String => "a string",
        AttributeType::Tensor => "a tensor",
        AttributeType::Graph => "a graph",
        AttributeType::SparseTensor => "a sparse tensor",
        AttributeType::TypeProto => "a type",
        AttributeType::Floats => "a list of floats",
        AttributeType::Ints => "a list of integers",
        AttributeType::Strings => "a list of strings",
        AttributeType::Tensors => "a list of tensors",
        AttributeType::Graphs => "a list of graphs",
        AttributeType::SparseTensors => "a list of sparse tensors",
        AttributeType::TypeProtos => "a list of types",
    }
}

/// Ends of bodies against those of the node that holds them.
fn bodies(node: &NodeProto, opset: i64) -> Option<String> {
    let body = |name: &str| node.attribute.iter().find(|a| a.name() == name).and_then(|a| a.g.as_deref());
    match node.op_type() {
        "If" => branches(node, body("then_branch")?, body("else_branch")?),
        "Loop" => {
            let body = body("body")?;
            takes(body, node.input.len()).or_else(|| gives(body, node.output.len() + 1))
        }
        // In opset 8 the first operand is no input of the body.
        "Scan" if opset >= 9 => {
            let scanned = node.attribute.iter().find(|a| a.name() == "num_scan_inputs").map_or(0, AttributeProto::i);
            let body = body("body")?;
            if usize::try_from(scanned).is_ok_and(|n| (1..=node.input.len()).contains(&n)) {
                return takes(body, node.input.len()).or_else(|| gives(body, node.output.len()));
            }
            Some(format!("num_scan_inputs is {scanned}, and the node has {} inputs", node.input.len()))
        }
        _ => None,
    }
}

fn branches(node: &NodeProto, then: &GraphProto, or_else: &GraphProto) -> Option<String> {
    let (a, b) = (then.output.len(), or_else.output.len());
    if a != b {
        return Some(format!("its branches have {a} and {b} outputs"));
    }
    (a < node.output.len()).then(|| format!("has {} outputs, and its branches have {a}", node.output.len()))
}

fn takes(body: &GraphProto, operands: usize) -> Option<String> {
    let all = body.input.len();
    // Whether an input with a default counts is not agreed among readers.
    let set = body.initializer.iter().filter(|t| body.input.iter().any(|i| i.name() == t.name())).count();
    let fits = operands == all || operands + set == all;
    (!fits).then(|| format!("has {operands} inputs, and its body takes {all}"))
}

fn gives(body: &GraphProto, needed: usize) -> Option<String> {
    (body.output.len() < needed)
        .then(|| format!("its body has {} outputs, and the node needs {needed}", body.output.len()))
}
