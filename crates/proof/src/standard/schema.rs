//! What the standard lets nodes of its operators have, by opset: how many operands and results, and which attributes of which kinds; and
//! what ONNX Runtime lets nodes of its own have. `operators.txt` is data that `tools/make_operators.py` takes from their schemas.

use crate::files::model::{Attr, Node};
use rustc_hash::FxHashMap;
use std::sync::LazyLock;

/// A table of forms: what is said of an operator since an opset.
pub(crate) struct Table<F>(FxHashMap<&'static str, Vec<(i64, F)>>);

impl<F> Table<F> {
    /// One form of each line, of the words behind the operator and the opset.
    pub(crate) fn read(text: &'static str, form: impl Fn(&[&'static str]) -> F) -> Table<F> {
        let mut forms: FxHashMap<&str, Vec<(i64, F)>> = FxHashMap::default();
        for line in text.lines().filter(|line| !line.starts_with('#')) {
            let words: Vec<&'static str> = line.split(' ').collect();
            if let [name, since, rest @ ..] = &words[..]
                && let Ok(since) = since.parse()
            {
                forms.entry(*name).or_default().push((since, form(rest)));
            }
        }
        Table(forms)
    }

    /// The form of an operator in this opset of its domain.
    pub(crate) fn form(&self, domain: &str, op: &str, opset: i64) -> Option<&F> {
        let forms = if domain.is_empty() { self.0.get(op) } else { self.0.get(format!("{domain}.{op}").as_str()) };
        forms?.iter().rfind(|(since, _)| *since <= opset).map(|(_, form)| form)
    }
}

struct Rules {
    inputs: Count,
    outputs: Count,
    /// Name, kind, and whether it has to be there.
    attrs: Vec<(&'static str, char, bool)>,
}

#[derive(Clone, Copy)]
struct Count {
    least: usize,
    most: usize,
    /// Whether one of the least many may have an empty name.
    gaps: bool,
}

/// `None` for an operator that this opset took away.
static OPERATORS: LazyLock<Table<Option<Rules>>> = LazyLock::new(|| Table::read(include_str!("operators.txt"), rules));

fn rules(words: &[&'static str]) -> Option<Rules> {
    let [inputs, outputs, attrs @ ..] = words else { return None };
    let attr = |word: &&'static str| {
        let (name, kind) = word.split_once(':')?;
        Some((name, kind.chars().next()?, kind.ends_with('!')))
    };
    Some(Rules { inputs: count(inputs)?, outputs: count(outputs)?, attrs: attrs.iter().filter_map(attr).collect() })
}

fn count(word: &str) -> Option<Count> {
    let gaps = word.ends_with('?');
    let (least, most) = word.trim_end_matches('?').split_once('-')?;
    let most = if most == "*" { usize::MAX } else { most.parse().ok()? };
    Some(Count { least: least.parse().ok()?, most, gaps })
}

/// Types of elements that an attribute can name.
const ELEMENTS: std::ops::RangeInclusive<i64> = 1..=26;

/// Attributes whose integer is a type of elements, and whether zero stands for none.
const TYPES: &[(&str, bool)] = &[("to", false), ("dtype", false), ("output_dtype", true), ("output_datatype", false)];

/// Attributes whose integer is a truth value: of others runtimes say what they like.
const TRUTHS: &[&str] = &[
    "across_channels",
    "align_corners",
    "allowzero",
    "antialias",
    "broadcast",
    "ceil_mode",
    "center_point_box",
    "count_include_pad",
    "detect_negative",
    "detect_positive",
    "exclude_outside",
    "exclusive",
    "fmod",
    "input_forget",
    "interleaved",
    "inverse",
    "is_case_sensitive",
    "is_causal",
    "is_test",
    "keepdims",
    "largest",
    "layout",
    "linear_before_reset",
    "new_axis",
    "noop_with_empty_axes",
    "normalize_variance",
    "onesided",
    "output_sequence",
    "periodic",
    "reverse",
    "saturate",
    "select_last_index",
    "sorted",
    "spatial",
    "storage_order",
    "training_mode",
    "transA",
    "transB",
    "upper",
];

/// The words that an attribute can have: op, or nothing for all ops; attribute; words.
const WORDS: &[(&str, &str, &[&str])] = &[
    ("", "auto_pad", &["NOTSET", "SAME_UPPER", "SAME_LOWER", "VALID"]),
    ("DepthToSpace", "mode", &["DCR", "CRD"]),
    ("Resize", "mode", &["nearest", "linear", "cubic"]),
    ("Upsample", "mode", &["nearest", "linear", "bilinear", "cubic"]),
    ("Pad", "mode", &["constant", "reflect", "edge", "wrap"]),
    ("", "nearest_mode", &["round_prefer_floor", "round_prefer_ceil", "floor", "ceil"]),
    ("", "reduction", &["none", "add", "mul", "max", "min", "mean", "sum"]),
    ("Gelu", "approximate", &["none", "tanh"]),
    ("BitShift", "direction", &["LEFT", "RIGHT"]),
];

/// Whether an opset has this operator.
pub(crate) fn knows(op: &str, opset: i64) -> bool {
    rules_of("", op, opset).is_some()
}

fn rules_of(domain: &str, op: &str, opset: i64) -> Option<&'static Rules> {
    OPERATORS.form(domain, op, opset)?.as_ref()
}

/// Why a node is none of its operator in the standard's domain; `None` if it is one.
pub(crate) fn fault(node: &Node, opset: i64) -> Option<String> {
    match rules_of("", &node.op, opset) {
        Some(rules) => unruly(node, rules),
        None => Some(format!("opset {opset} has no operator {}", node.op)),
    }
}

/// Why a node is none of its operator in a domain of a runtime; `None` if it is one, or if nothing is known of it.
pub(crate) fn own_fault(node: &Node, opset: i64) -> Option<String> {
    rules_of(&node.domain, &node.op, opset).and_then(|rules| unruly(node, rules))
}

fn unruly(node: &Node, rules: &Rules) -> Option<String> {
    number("operands", rules.inputs, &node.inputs)
        .or_else(|| number("results", rules.outputs, &node.outputs))
        .or_else(|| node.attrs.iter().find_map(|(name, attr)| attribute(rules, &node.op, name, attr)))
        .or_else(|| {
            let there = |name: &str| node.attrs.iter().any(|(other, _)| other == name);
            let absent = rules.attrs.iter().find(|(name, _, needed)| *needed && !there(name))?;
            Some(format!("attribute `{}` is absent", absent.0))
        })
        .or_else(|| {
            let one = node.op != "Constant" || node.attrs.len() == 1;
            (!one).then(|| "it has not one value".to_owned())
        })
}

fn number(what: &str, count: Count, names: &[String]) -> Option<String> {
    if names.len() < count.least || names.len() > count.most {
        return Some(format!("it has {} {what}", names.len()));
    }
    let empty = names.iter().take(count.least).position(String::is_empty).filter(|_| !count.gaps);
    empty.map(|at| format!("number {at} of its {what} has no name"))
}

fn attribute(rules: &Rules, op: &str, name: &str, attr: &Attr) -> Option<String> {
    let Some((_, kind, _)) = rules.attrs.iter().find(|(known, ..)| *known == name) else {
        return Some(format!("attribute `{name}` is unknown to it"));
    };
    match attr {
        Attr::Ref(_) => None,
        attr if attr.kind() != *kind => Some(format!("attribute `{name}` is of another kind")),
        Attr::Int(value) if TRUTHS.contains(&name) => {
            let right = matches!(value, 0 | 1);
            (!right).then(|| format!("attribute `{name}` is {value}, which is no truth value"))
        }
        Attr::Int(value) => {
            let zero = TYPES.iter().find(|(known, _)| *known == name)?.1;
            let right = ELEMENTS.contains(value) || zero && *value == 0;
            (!right).then(|| format!("attribute `{name}` is {value}, which is no type of elements"))
        }
        Attr::Text(text) => {
            let own = |(of, known, _): &&(&str, &str, &[&str])| *known == name && (of.is_empty() || *of == op);
            let words = WORDS.iter().find(own)?.2;
            let right = words.iter().any(|word| word.as_bytes() == text);
            (!right).then(|| format!("attribute `{name}` is `{}`, which it can't be", String::from_utf8_lossy(text)))
        }
        _ => None,
    }
}
