//! Ops by themselves. What the checker does not know is one term if it is the same op, of the same version and told the same, of
//! operands that are the same and lie alike. Its result has a shape and a type that nobody knows, so all that is made of it is such a
//! term too.
//!
//! Ops that draw numbers, and ops of which nobody says that they do not, are *occurrences*: two of them that are told the same are not
//! the same. Each occurrence of the result is one of the input, and each of the input is one of the result.

use crate::files::exact::Bytes;
use crate::files::model::{Attr, Graph, Node};
use crate::graph::eval::{Machine, Scope, Values};
use crate::standard::schema;
use crate::terms::arg::{Arg, Term};
use crate::terms::name::{Name, Own};
use crate::terms::value::{Source, Value};
use rustc_hash::FxHashMap;
use std::rc::Rc;

/// Operands that say what an op of the standard does, rather than what it does it to. Without them the checker does not know the shape
/// of its result.
const TOLD: &[(&str, &[usize])] = &[
    ("ConstantOfShape", &[0]),
    ("CumProd", &[1]),
    ("CumSum", &[1]),
    ("Expand", &[1]),
    ("Pad", &[1, 2, 3]),
    ("Range", &[0, 1, 2]),
    ("Reshape", &[1]),
    ("Resize", &[1, 2, 3]),
    ("Slice", &[1, 2, 3, 4]),
    ("Split", &[1]),
    ("Squeeze", &[1]),
    ("Tile", &[1]),
    ("TopK", &[1]),
    ("Unsqueeze", &[1]),
    ("Upsample", &[1]),
];

/// Ops whose results have as many axes as their first operand.
const OF_OPERAND: &[&str] = &["AveragePool", "LpPool", "MaxPool"];

/// Ops of `ai.onnx.ml` whose only result has floats of 32 bits, whatever their operands have.
const FLOATS: &[&str] = &[
    "FeatureVectorizer",
    "LinearRegressor",
    "Normalizer",
    "OneHotEncoder",
    "SVMRegressor",
    "Scaler",
    "TreeEnsembleRegressor",
];

/// Ops of the standard that draw numbers.
const RANDOM: &[&str] =
    &["Bernoulli", "Multinomial", "RandomNormal", "RandomNormalLike", "RandomUniform", "RandomUniformLike"];

/// Occurrences of the input, by what they are told: the name of the first result of each, and which of the result is it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Occurrences {
    known: FxHashMap<Term, Vec<(String, bool)>>,
    /// Whether the result is read.
    of_result: bool,
}

impl Occurrences {
    /// All occurrences of the input are there.
    pub(crate) fn input_ends(&mut self) {
        self.of_result = true;
    }

    /// The number of an occurrence among those that are told the same.
    fn number(&mut self, term: &Term, name: &str) -> Result<usize, String> {
        let known = self.known.entry(term.clone()).or_default();
        if !self.of_result {
            known.push((name.to_owned(), false));
            return Ok(known.len() - 1);
        }
        let of_this_name = known.iter().position(|(other, taken)| !taken && other == name);
        let found = of_this_name.or_else(|| known.iter().position(|(_, taken)| !taken));
        let found = found.ok_or("each such op of the input is one of the result, and this is one more")?;
        known[found].1 = true;
        Ok(found)
    }

    /// The first result of an occurrence of the input that is none of the result.
    pub(crate) fn left(&self) -> Option<&str> {
        let left = self.known.values().flatten().filter(|(_, taken)| !taken);
        left.map(|(name, _)| name.as_str()).min()
    }
}

impl Machine {
    /// The results of a node whose shapes the checker does not work out: an operand is of an unknown shape, or says only when the model
    /// runs what the op does. `None` for any other node.
    pub(crate) fn unshaped(&mut self, scope: &Scope<'_>, node: &Node, call: &Told<'_>) -> Option<Result<Made, String>> {
        let (inputs, standard) = (call.inputs, node.domain.is_empty());
        let any = inputs.iter().flatten().any(Value::is_opaque);
        if let ("Identity", [Some(x)]) = (node.op.as_str(), inputs)
            && standard
            && (any || self.blind)
        {
            return Some(Ok(vec![Some(x.clone())]));
        }
        if let ("Cast", true, [Some(x)]) = (node.op.as_str(), standard, inputs)
            && self.is_of_floats(x)
            && call.attrs.iter().any(|(name, to)| name == "to" && matches!(to, Attr::Int(1)))
        {
            return Some(Ok(vec![Some(x.clone())]));
        }
        if let ("Transpose", true, [Some(x)], Some(order)) = (node.op.as_str(), standard, inputs, call.ints("perm"))
            && let Source::Opaque(term) = x.source
            && self.rank_of(term) == Some(order.len())
        {
            return Some(self.turned(scope, node, (x, term), &order));
        }
        let late = |at: &usize| {
            let late = |value: &Value| !value.is_constant() && !self.terms.is_list(value);
            inputs.get(*at).and_then(Option::as_ref).is_some_and(late)
        };
        let late = TOLD.iter().any(|(op, places)| *op == node.op && places.iter().any(late));
        // What a node holds is known as what a file holds beside its nodes is.
        let blind = self.blind && !(standard && node.op == "Constant");
        let by_itself = any || blind || standard && (late || is_text(node, call.attrs) || draws(scope, node, call));
        by_itself.then(|| self.opaque(scope, node, call, &[]))
    }

    /// How many axes a value of an unknown shape has, if that is known.
    fn rank_of(&self, term: u32) -> Option<usize> {
        if let Some((_, order)) = self.turned.get(&term) {
            return Some(order.len());
        }
        let made = self.terms.get(term);
        match made.args.first()? {
            Arg::View { view, .. } if matches!(made.name(), Name::Opaque(op) if OF_OPERAND.contains(&op)) => {
                Some(view.len())
            }
            _ => None,
        }
    }

    /// A value of an unknown shape with its axes in another order. Two orders are one, and the first one is none.
    fn turned(
        &mut self,
        scope: &Scope<'_>,
        node: &Node,
        (x, term): (&Value, u32),
        order: &[i64],
    ) -> Result<Made, String> {
        let wrong = || format!("{order:?} is no order of its axes");
        let first: Vec<i64> = (0..order.len() as i64).collect();
        let inner = self.turned.get(&term).cloned();
        let (inner, before) = inner.unwrap_or_else(|| (x.clone(), first.clone()));
        let place = |axis: &i64| usize::try_from(*axis).ok().and_then(|axis| before.get(axis)).copied();
        let all: Vec<i64> = order.iter().map(place).collect::<Option<_>>().ok_or_else(wrong)?;
        let mut sorted = all.clone();
        sorted.sort_unstable();
        if sorted != first {
            return Err(wrong());
        }
        if all == first {
            return Ok(vec![Some(inner)]);
        }
        let attrs = [("perm".to_owned(), Attr::Ints(all.clone()))];
        let inputs = [Some(inner.clone())];
        let made = self.opaque(scope, node, &Told { attrs: &attrs, inputs: &inputs }, &[])?;
        if let [Some(Value { source: Source::Opaque(term), .. })] = made.as_slice() {
            self.turned.insert(*term, (inner, all));
        }
        Ok(made)
    }

    /// Whether a value is what an op makes that makes floats of 32 bits of anything.
    fn is_of_floats(&self, value: &Value) -> bool {
        let Source::Opaque(term) = value.source else { return false };
        let Name::Opaque(name) = self.terms.get(term).name() else { return false };
        name.strip_prefix("ai.onnx.ml.").is_some_and(|op| FLOATS.contains(&op))
    }

    /// The results of a node that the checker knows nothing of but what it is told. `more` are results of its bodies.
    pub(crate) fn opaque(
        &mut self,
        scope: &Scope<'_>,
        node: &Node,
        call: &Told<'_>,
        more: &[(String, Vec<Value>)],
    ) -> Result<Made, String> {
        let unknown = || format!("the checker does not know {}", named(node));
        let opset = *scope.opsets.get(&node.domain).ok_or_else(unknown)?;
        if let Some(why) = Some(node).filter(|node| node.domain.is_empty()).and_then(|node| schema::fault(node, opset))
        {
            return Err(if schema::knows(&node.op, opset) { why } else { unknown() });
        }
        let mut told = Bytes::default();
        for text in [&node.domain, &node.op, &node.overload] {
            told.list(text.as_bytes());
        }
        told.number(opset);
        told.number(node.outputs.len() as i64);
        told.list(&node.outputs.iter().map(|name| u8::from(!name.is_empty())).collect::<Vec<_>>());
        told.attrs(call.attrs)?;
        let mut term = Term::of(Name::Opaque(&named(node)));
        let mut values: Vec<Option<&Value>> = call.inputs.iter().map(Option::as_ref).collect();
        told.number(values.len() as i64);
        for (body, results) in more {
            told.list(body.as_bytes());
            told.number(results.len() as i64);
            values.extend(results.iter().map(Some));
        }
        term.args = self.operands(&values)?;
        term.attrs = told.all;
        if draws(scope, node, call) {
            let mut key = term.clone();
            key.attrs.extend(scope.path().as_bytes());
            let name = node.outputs.iter().find(|name| !name.is_empty()).map_or("", String::as_str);
            let number = self.occurrences.number(&key, name)?;
            term.attrs.extend(format!(" number {number} {}", scope.path()).into_bytes());
        }
        Ok((0..node.outputs.len()).map(|at| Some(self.part(&term, at))).collect())
    }

    /// Operands as they lie.
    pub(crate) fn operands(&mut self, values: &[Option<&Value>]) -> Result<Vec<Arg>, String> {
        let mut args = Vec::new();
        for value in values {
            args.push(self.terms.plain(*value).ok_or("an operand can't be followed")?);
        }
        Ok(args)
    }

    /// One result of a term of an unknown shape.
    pub(crate) fn part(&mut self, term: &Term, at: usize) -> Value {
        let attrs = [term.attrs.as_slice(), &at.to_le_bytes()].concat();
        Value::opaque(self.terms.intern(Term { attrs, ..term.clone() }))
    }

    /// A name for a value of which nothing is known.
    pub(crate) fn unshaped_name(&mut self, name: &str) -> Value {
        let attrs = [b"opaque ".as_slice(), name.as_bytes()].concat();
        Value::opaque(self.terms.intern(Term { attrs, ..Term::of(Name::Own(Own::Carried)) }))
    }

    /// An op with bodies that the checker knows nothing of but what one run of each makes of names for its operands.
    pub(crate) fn opaque_bodies(
        &mut self,
        scope: &Scope<'_>,
        node: &Node,
        call: &Told<'_>,
        bodies: &[(String, Rc<Graph>)],
        values: &Values,
    ) -> Result<Made, String> {
        let mut more = Vec::new();
        for (name, body) in bodies {
            let inner = scope.inside(values, &format!("{}.{name}", node.op));
            let mut made = Values::default();
            for (at, input) in body.inputs.iter().enumerate() {
                let value = self.unshaped_name(&format!("{} {name} {at}", inner.depth()));
                made.insert(input.name.clone(), value);
            }
            self.body(&inner, body, &mut made).map_err(|r| format!("in its body: {}: {}", r.node, r.why))?;
            let found: Option<Vec<Value>> = body.outputs.iter().map(|name| inner.find(&made, name)).collect();
            // Runtimes read the declared types of a body's inputs.
            let types = body.inputs.iter().map(|input| format!("{} {:?} {:?}", input.dtype, input.dims, input.other));
            more.push((
                format!("{name} {:?}", types.collect::<Vec<_>>()),
                found.ok_or("nothing makes a result of its body")?,
            ));
        }
        more.sort_by(|a, b| a.0.cmp(&b.0));
        self.opaque(scope, node, call, &more)
    }
}

/// What a node is told.
#[derive(Clone, Copy)]
pub(crate) struct Told<'t> {
    pub(crate) attrs: &'t [(String, Attr)],
    pub(crate) inputs: &'t [Option<Value>],
}

impl Told<'_> {
    fn attr(&self, name: &str) -> Option<&Attr> {
        self.attrs.iter().find(|(known, _)| known == name).map(|(_, attr)| attr)
    }

    /// An attribute that is a number.
    pub(crate) fn int(&self, name: &str) -> Option<i64> {
        if let Some(Attr::Int(number)) = self.attr(name) { Some(*number) } else { None }
    }

    /// An attribute that is a list of numbers.
    pub(crate) fn ints(&self, name: &str) -> Option<Vec<i64>> {
        if let Some(Attr::Ints(list)) = self.attr(name) { Some(list.clone()) } else { None }
    }

    /// The bodies among its attributes.
    pub(crate) fn bodies(&self) -> Vec<(String, Rc<Graph>)> {
        let body = |(name, attr): &(String, Attr)| match attr {
            Attr::Graph(graph) => Some((name.clone(), Rc::clone(graph))),
            _ => None,
        };
        self.attrs.iter().filter_map(body).collect()
    }
}

/// Its results.
pub(crate) type Made = Vec<Option<Value>>;

fn named(node: &Node) -> String {
    if node.domain.is_empty() { node.op.clone() } else { format!("{}.{}", node.domain, node.op) }
}

/// A constant of words, of which the checker knows no elements.
fn is_text(node: &Node, attrs: &[(String, Attr)]) -> bool {
    node.op == "Constant" && attrs.iter().any(|(_, attr)| matches!(attr, Attr::Text(_) | Attr::Texts(_)))
}

/// Whether two of these ops that are told the same may compute different numbers.
fn draws(scope: &Scope<'_>, node: &Node, call: &Told<'_>) -> bool {
    let opset = scope.opsets.get("").copied().unwrap_or(0);
    !node.domain.is_empty() || RANDOM.contains(&node.op.as_str()) || node.op == "Dropout" && trains(opset, call)
}

/// Whether a Dropout drops anything.
fn trains(opset: i64, Told { attrs, inputs }: &Told<'_>) -> bool {
    if opset < 7 {
        return !attrs.iter().any(|(name, attr)| name == "is_test" && matches!(attr, Attr::Int(1)));
    }
    let known = |value: &Value| value.as_ints().is_some_and(|list| list.iter().all(|mode| *mode == 0));
    opset >= 12 && inputs.get(2).and_then(Option::as_ref).is_some_and(|mode| !known(mode))
}
