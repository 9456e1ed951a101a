//! Attributes of nodes whose op a pass chose.

use crate::import::kind_of;
use crate::proto::make::{empty_attribute, floats_attribute, int_attribute, ints_attribute};
use crate::proto::{AttributeProto, NodeProto, attribute_proto::AttributeType};
use relayout_ir::attr::Attr;
use relayout_ir::graph::{Node, Op};

/// The message of a node, said for the op that it is now. One that is what it was stays as it was read.
pub(super) fn restated(origin: &NodeProto, node: &Node) -> NodeProto {
    let mut proto = origin.clone();
    let Op::Onnx(op) = &node.op else { return proto };
    let same = |have: &Option<String>, now: &str| have.as_deref().unwrap_or_default() == now;
    // `ai.onnx` is another name of the default domain.
    let standard = op.domain.is_empty() && same(&origin.domain, "ai.onnx");
    if same(&origin.op_type, &op.name) && (standard || same(&origin.domain, &op.domain)) {
        restate(&mut proto, node);
        return proto;
    }
    proto.op_type = Some(op.name.clone());
    proto.domain = Some(op.domain.clone());
    let kept = |name: &String| origin.attribute.iter().find(|a| a.name.as_ref() == Some(name)).cloned();
    proto.attribute =
        node.attrs.iter().filter_map(|(name, attr)| attribute(name, attr).or_else(|| kept(name))).collect();
    proto
}

/// Attributes that a pass changed, said anew, without those that it took away; whatever else the node says stays as it was read.
fn restate(proto: &mut NodeProto, node: &Node) {
    // A flag that is off says what its absence says, so it stays where it was read.
    let is_off = |a: &AttributeProto| a.r#type == Some(AttributeType::Int as i32) && a.i() == 0;
    proto.attribute.retain(|a| is_off(a) || node.attrs.contains_key(a.name.as_deref().unwrap_or_default()));
    for (name, attr) in &node.attrs {
        let have = proto.attribute.iter_mut().find(|a| a.name.as_ref() == Some(name));
        match have {
            Some(have) if says(have, attr) => {}
            Some(have) => {
                if let Some(now) = attribute(name, attr) {
                    *have = AttributeProto { doc_string: have.doc_string.take(), ..now };
                }
            }
            None => proto.attribute.extend(attribute(name, attr)),
        }
    }
}

/// Whether a message says what an attribute is now, to the bit. Bodies are written by themselves. No pass changes tensors, types and what
/// refers to a caller.
fn says(have: &AttributeProto, attr: &Attr) -> bool {
    let of = |kind: AttributeType| kind_of(have) == kind as i32 && have.ref_attr_name().is_empty();
    let bits = |list: &[f32]| list.iter().map(|x| x.to_bits()).collect::<Vec<_>>();
    match attr {
        Attr::Int(i) => of(AttributeType::Int) && have.i() == *i,
        Attr::Ints(list) => of(AttributeType::Ints) && have.ints == *list,
        Attr::Float(x) => of(AttributeType::Float) && have.f().to_bits() == x.to_bits(),
        Attr::Floats(list) => of(AttributeType::Floats) && bits(&have.floats) == bits(list),
        Attr::String(s) => of(AttributeType::String) && have.s() == &s[..],
        Attr::Strings(list) => of(AttributeType::Strings) && have.strings == *list,
        Attr::Tensor(_) | Attr::Graph(_) | Attr::Graphs(_) | Attr::Ref(_) | Attr::Other(_) => true,
    }
}

/// Sets the type of every attribute of a node and of the nodes in its bodies.
pub(super) fn set_kinds(node: &mut NodeProto) {
    for a in &mut node.attribute {
        a.r#type = Some(kind_of(a));
        a.g.as_deref_mut().into_iter().chain(&mut a.graphs).flat_map(|body| &mut body.node).for_each(set_kinds);
    }
}

/// A message with nothing but the op.
fn bare_node(op: &Op) -> NodeProto {
    match op {
        Op::Onnx(name) => NodeProto {
            op_type: Some(name.name.clone()),
            domain: (!name.domain.is_empty()).then(|| name.domain.clone()),
            overload: (!name.overload.is_empty()).then(|| name.overload.clone()),
            ..NodeProto::default()
        },
        _ => NodeProto::default(),
    }
}

/// The message of a node that a pass made.
pub(super) fn made(node: &Node) -> NodeProto {
    let mut proto = bare_node(&node.op);
    proto.name = (!node.name.is_empty()).then(|| node.name.clone());
    proto.attribute = node.attrs.iter().filter_map(|(name, attr)| attribute(name, attr)).collect();
    proto
}

/// An attribute, if it is a number, a text or a list of such.
fn attribute(name: &str, attr: &Attr) -> Option<AttributeProto> {
    let typed = |kind| empty_attribute(name, kind);
    Some(match attr {
        Attr::Int(i) => int_attribute(name, *i),
        Attr::Ints(list) => ints_attribute(name, list.clone()),
        Attr::Float(f) => AttributeProto { f: Some(*f), ..typed(AttributeType::Float) },
        Attr::Floats(list) => floats_attribute(name, list.clone()),
        Attr::String(s) => AttributeProto { s: Some(s.clone()), ..typed(AttributeType::String) },
        Attr::Strings(list) => AttributeProto { strings: list.clone(), ..typed(AttributeType::Strings) },
        _ => return None,
    })
}
