//! What the standard says an operator may have: how many inputs and outputs, and which attributes of which kind.
//!
//! The table is data (`operators.txt`, made by `tools/make_operators.py` from the standard's own schemas, with what
//! ONNX Runtime adds to the standard's domain). It knows nothing of types, shapes and values, and nothing of other domains.

use crate::proto::attribute_proto::AttributeType;
use rustc_hash::FxHashMap;
use std::sync::OnceLock;

/// How many operands or results.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Count {
    pub(super) least: usize,
    /// `None` for no limit.
    pub(super) most: Option<usize>,
    /// Whether one of the `least` may be left out by an empty name.
    pub(super) omissible: bool,
}

/// One attribute.
#[derive(Clone, Copy, Debug)]
pub(super) struct Attribute {
    pub(super) name: &'static str,
    pub(super) kind: AttributeType,
    pub(super) required: bool,
}

/// What an operator may have from one opset on, until the next schema.
#[derive(Debug)]
pub(super) struct OpSchema {
    pub(super) inputs: Count,
    pub(super) outputs: Count,
    /// In order of their names.
    pub(super) attributes: Vec<Attribute>,
}

/// What the table says of an operator in an opset.
#[derive(Debug)]
pub(super) enum Lookup {
    /// It has this schema.
    Known(&'static OpSchema),
    /// That opset, or one before it, took it away.
    Deprecated(i64),
    /// It comes with that later opset.
    Later(i64),
    /// No opset has it.
    Unknown,
}

struct Table {
    ir_version: i64,
    opset: i64,
    /// By name; schemas in order of the opset in which each begins. `None` is a deprecation.
    operators: FxHashMap<&'static str, Vec<(i64, Option<OpSchema>)>>,
}

/// The newest IR version that is known.
pub(super) fn newest_ir_version() -> i64 {
    table().ir_version
}

/// The newest opset that is known. Of newer ones nothing can be said.
pub(super) fn newest_opset() -> i64 {
    table().opset
}

/// Looks an operator of the standard's domain up.
pub(super) fn find(operator: &str, opset: i64) -> Lookup {
    let Some(forms) = table().operators.get(operator) else { return Lookup::Unknown };
    match forms.iter().rev().find(|(since, _)| *since <= opset) {
        Some((_, Some(schema))) => Lookup::Known(schema),
        Some((since, None)) => Lookup::Deprecated(*since),
        None => forms.first().map_or(Lookup::Unknown, |(since, _)| Lookup::Later(*since)),
    }
}

fn table() -> &'static Table {
    static TABLE: OnceLock<Table> = OnceLock::new();
    TABLE.get_or_init(|| {
        parse(include_str!("operators.txt")).expect("the table is data of this crate, and a test reads it")
    })
}

fn parse(text: &'static str) -> Option<Table> {
    let mut table = Table { ir_version: 0, opset: 0, operators: FxHashMap::default() };
    for line in text.lines().filter(|line| !line.starts_with('#')) {
        let mut words = line.split(' ');
        let (name, since) = (words.next()?, words.next()?);
        if name == "newest" {
            (table.ir_version, table.opset) = (words.next()?.parse().ok()?, words.nth(1)?.parse().ok()?);
            continue;
        }
        let form = match words.next()? {
            "deprecated" => None,
            inputs => Some(OpSchema {
                inputs: count(inputs)?,
                outputs: count(words.next()?)?,
                attributes: words.map(attribute).collect::<Option<_>>()?,
            }),
        };
        table.operators.entry(name).or_default().push((since.parse().ok()?, form));
    }
    Some(table)
}

fn count(text: &str) -> Option<Count> {
    let (text, omissible) = text.strip_suffix('?').map_or((text, false), |text| (text, true));
    let (least, most) = text.split_once('-')?;
    let most = if most == "*" { None } else { Some(most.parse().ok()?) };
    Some(Count { least: least.parse().ok()?, most, omissible })
}

fn attribute(text: &'static str) -> Option<Attribute> {
    let (name, kind) = text.split_once(':')?;
    let (kind, required) = kind.strip_suffix('!').map_or((kind, false), |kind| (kind, true));
    let kind = match kind {
        "f" => AttributeType::Float,
        "i" => AttributeType::Int,
        "s" => AttributeType::String,
        "t" => AttributeType::Tensor,
        "g" => AttributeType::Graph,
        "x" => AttributeType::SparseTensor,
        "p" => AttributeType::TypeProto,
        "F" => AttributeType::Floats,
        "I" => AttributeType::Ints,
        "S" => AttributeType::Strings,
        "T" => AttributeType::Tensors,
        "G" => AttributeType::Graphs,
        "X" => AttributeType::SparseTensors,
        "P" => AttributeType::TypeProtos,
        _ => return None,
    };
    Some(Attribute { name, kind, required })
}

#[cfg(test)]
mod tests {
    use super::*;
    use relayout_ir::form::{Implicit, Renumber};
    use relayout_ir::op::{Axes, entries};

    #[test]
    fn every_line_of_the_table_can_be_read_and_forms_are_in_order() {
        let table = parse(include_str!("operators.txt")).unwrap();
        assert!(table.operators.len() > 150 && table.opset >= 26 && table.ir_version >= 10);
        assert!(table.operators.values().all(|forms| forms.windows(2).all(|pair| pair[0].0 < pair[1].0)));
    }

    #[test]
    fn an_operator_has_the_form_of_its_opset() {
        assert!(matches!(find("Upsample", 9), Lookup::Known(schema) if schema.inputs.most == Some(2)));
        assert!(matches!(find("Upsample", 10), Lookup::Deprecated(10)));
        assert!(matches!(find("Resize", 9), Lookup::Later(10)));
        assert!(matches!(find("Reluu", 9), Lookup::Unknown));
        let Lookup::Known(concat) = find("Concat", 13) else { panic!() };
        assert_eq!(concat.inputs, Count { least: 1, most: None, omissible: true });
        assert!(concat.attributes.iter().any(|a| a.name == "axis" && a.required && a.kind == AttributeType::Int));
    }

    #[test]
    fn what_is_written_though_the_node_did_not_say_it_is_there_in_every_opset() {
        let mut wrong = Vec::new();
        for def in entries().filter(|def| def.domain.is_empty()) {
            let Axes::Sig(cases) = &def.axes else { continue };
            for opset in def.opsets.0..=def.opsets.1 {
                let Lookup::Known(schema) = find(def.name, opset) else { continue };
                let lacks = |what: &&Renumber| match **what {
                    Renumber::AxisAttr(name, _)
                    | Renumber::ResultAxisAttr(name, _)
                    | Renumber::AxesAttr(name, Implicit::Leading | Implicit::These(_)) => {
                        schema.attributes.iter().all(|a| a.name != name)
                    }
                    Renumber::AxisInputOr(slot, _) | Renumber::AxesInput(slot, Implicit::Leading) => {
                        schema.inputs.most.is_some_and(|most| slot >= most)
                    }
                    _ => false,
                };
                let lacking = cases.iter().flat_map(|case| case.renumber).filter(lacks);
                wrong.extend(lacking.map(|what| format!("{} of opset {opset}: {what:?}", def.name)));
            }
        }
        assert!(wrong.is_empty(), "{wrong:#?}");
    }
}
