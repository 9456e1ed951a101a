//! The table of ops for people and programs: what each entry says, in words. Nothing is decided here; the words are derived from
//! what binding and export read.

use super::{Absent, Axes, AxisSource, Case, OpDef, TABLE};
use crate::form::{Implicit, Renumber};
use serde::Serialize;

/// One entry of the table.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Description {
    /// The family it stands in.
    pub family: &'static str,
    /// Domain of the operator set; empty for ONNX's own.
    pub domain: &'static str,
    /// Operator type.
    pub op: &'static str,
    /// First version of the operator set.
    pub first_opset: i64,
    /// Last version of the operator set.
    pub last_opset: i64,
    /// What it means for layouts.
    #[serde(flatten)]
    pub meaning: Meaning,
}

/// What an entry means for layouts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "kind", rename_all = "lowercase")]
pub enum Meaning {
    /// A relabelling of operand 0, which moves nothing.
    View {
        /// Which.
        what: &'static str,
    },
    /// The first reading that fits.
    Signature {
        /// The readings in order.
        readings: Vec<Reading>,
    },
    /// A signature that an attribute spells.
    Spelled {
        /// How.
        what: &'static str,
        /// What export rewrites for another order of axes.
        #[serde(skip_serializing_if = "Vec::is_empty")]
        renumbered: Vec<String>,
    },
    /// No layout passes.
    Opaque {
        /// Why.
        reason: &'static str,
    },
}

/// One reading of an op.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Reading {
    /// The signature.
    pub signature: &'static str,
    /// Where the axis is said that the signature names.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub axis: Option<String>,
    /// Which axes are reduced.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reduced: Option<String>,
    /// What export rewrites for another order of axes.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub renumbered: Vec<String>,
    /// Whether it applies only under a condition on the node.
    pub conditional: bool,
    /// Whether runtimes compute it only in some of the orders that the letters allow.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub limited: bool,
}

/// Every entry, in the order of the table.
pub fn describe() -> Vec<Description> {
    TABLE.iter().flat_map(|family| family.ops.iter().map(|def| description(family.name, def))).collect()
}

fn description(family: &'static str, def: &OpDef) -> Description {
    let meaning = match def.axes {
        Axes::View(what, _) => Meaning::View { what },
        Axes::Sig(cases) => Meaning::Signature { readings: cases.iter().map(reading).collect() },
        Axes::Spelled(case, _) => {
            Meaning::Spelled { what: case.sig, renumbered: case.renumber.iter().map(renumbered).collect() }
        }
        Axes::Opaque(reason) => Meaning::Opaque { reason },
    };
    let (first_opset, last_opset) = def.opsets;
    Description { family, domain: def.domain, op: def.name, first_opset, last_opset, meaning }
}

fn reading(case: &Case) -> Reading {
    Reading {
        signature: case.sig,
        axis: axis(case.axis),
        reduced: case.reduce.map(|r| {
            let said = match (r.attr, r.input) {
                (Some(attr), _) => format!("`{attr}`"),
                (None, Some(slot)) => format!("operand {slot}"),
                (None, None) => "nothing".to_owned(),
            };
            match r.absent {
                Absent::All | Absent::AllUnlessNoop => format!("{said}, by default all"),
                Absent::Axis(axis) => format!("{said}, by default {axis}"),
            }
        }),
        renumbered: case.renumber.iter().map(renumbered).collect(),
        conditional: case.when.is_some(),
        limited: case.orders.is_some(),
    }
}

fn axis(source: AxisSource) -> Option<String> {
    match source {
        AxisSource::None => None,
        AxisSource::Attr(name, default) => Some(format!("`{name}`, by default {default}")),
        AxisSource::ResultAttr(name, default) => Some(format!("`{name}` of the result, by default {default}")),
        AxisSource::Input(slot) => Some(format!("operand {slot}")),
        AxisSource::InputOr(slot, default) => Some(format!("operand {slot}, by default {default}")),
        AxisSource::LastExtent(slot) => Some(format!("the last extent of operand {slot}")),
    }
}

fn renumbered(what: &Renumber) -> String {
    let leading = |implicit: Implicit| match implicit {
        Implicit::All => "",
        Implicit::Leading | Implicit::These(_) => ", written out where absent",
    };
    match *what {
        Renumber::AxisAttr(name, _) | Renumber::ResultAxisAttr(name, _) => format!("`{name}`"),
        Renumber::Letters(name) => format!("letters of `{name}`"),
        Renumber::AxisInput(slot) => format!("operand {slot}"),
        Renumber::AxisInputOr(slot, _) => format!("operand {slot}, written out where absent"),
        Renumber::AxesAttr(name, implicit) => format!("`{name}`{}", leading(implicit)),
        Renumber::AxesInput(slot, implicit) => format!("operand {slot}{}", leading(implicit)),
        Renumber::PerAxisAttr(name, _) => format!("entries of `{name}`"),
        Renumber::PerAxisInput(slot, _) => format!("entries of operand {slot}"),
        Renumber::TrailingInput(slot) => format!("last entries of operand {slot}"),
        Renumber::Extents => "entries of the result".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_description_says_what_export_rewrites() {
        let all = describe();
        let find = |op: &str, opset: i64| {
            all.iter()
                .find(|d| d.op == op && d.domain.is_empty() && (d.first_opset..=d.last_opset).contains(&opset))
                .unwrap()
        };
        let Meaning::Signature { readings } = &find("Pad", 18).meaning else { panic!("Pad has a signature") };
        assert_eq!(readings[0].renumbered, ["operand 3, written out where absent"]);
        assert_eq!(readings[1].renumbered, ["entries of operand 1"]);
        let Meaning::Signature { readings } = &find("ReduceMean", 13).meaning else { panic!("it has a signature") };
        assert_eq!(readings[0].reduced.as_deref(), Some("`axes`, by default all"));
        assert!(matches!(find("Transpose", 13).meaning, Meaning::View { .. }));
    }

    #[test]
    fn reasons_and_views_are_phrases_that_go_after_a_colon() {
        for d in describe() {
            let phrase = match d.meaning {
                Meaning::Opaque { reason } => reason,
                Meaning::View { what } | Meaning::Spelled { what, .. } => what,
                Meaning::Signature { .. } => continue,
            };
            let lower = phrase.chars().next().is_some_and(char::is_lowercase);
            assert!(lower && !phrase.ends_with('.') && phrase.len() > 9, "{}: {phrase:?}", d.op);
        }
    }
}
