//! Walks a graph and says of each value which term it is, and under which index map.

use crate::files::model::{Attr, DeclaredDim, Function, Graph, Input, Model, Node, ReadingOf, Tensor};
use crate::graph::loops;
use crate::graph::opaque::{Occurrences, Told};
use crate::graph::order::{in_order, needed};
use crate::graph::sizes::Sizes;
use crate::ops::{self, Call};
use crate::standard::defaults::is_default;
use crate::standard::typed;
use crate::terms::align::term_of;
use crate::terms::arg::{Arg, Op, Term};
use crate::terms::name::{Name, Own};
use crate::terms::state::Terms;
use crate::terms::symbolic::Symbolic;
use crate::terms::value::{Source, Value, count_of};
use crate::terms::view;
use bytes::Bytes;
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::BTreeMap;
use std::rc::Rc;

/// The type of truth values.
pub(crate) const BOOL: u8 = 9;

/// Why the meaning of a node is not known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Refusal {
    /// The node, by name and op.
    pub(crate) node: String,
    pub(crate) why: String,
}

/// Values of a graph by name.
pub(crate) type Values = FxHashMap<String, Value>;

/// What names mean at a place in a model.
pub(crate) struct Scope<'s> {
    pub(crate) model: &'s Model,
    pub(crate) opsets: &'s BTreeMap<String, i64>,
    /// Attributes of the function's call.
    attrs: Option<&'s [(String, Attr)]>,
    outer: Option<(&'s Scope<'s>, &'s Values)>,
    depth: usize,
    /// The bodies around it.
    path: String,
}

/// Called with each node and its results, in order. It may put other values in their place, which are equal.
pub(crate) type Checked<'c> = &'c mut dyn FnMut(&mut Terms, &Node, &mut Values) -> Result<(), Refusal>;

/// The machine that both graphs are read by.
pub(crate) struct Machine {
    pub(crate) terms: Terms,
    pub(crate) sizes: Sizes,
    /// Constants of the graph that was read first, by name: where the other one has the same bytes, they are looked at once.
    first: FxHashMap<String, Tensor>,
    /// Ops that draw numbers.
    pub(crate) occurrences: Occurrences,
    /// Whether no shape is looked at.
    pub(crate) blind: bool,
    /// Values of unknown shapes by what they are in another order of axes, and that order.
    pub(crate) turned: FxHashMap<u32, (Value, Vec<i64>)>,
    /// Results of branches of the input that are not taken.
    untaken: FxHashSet<Vec<Arg>>,
    /// Nodes that were looked at, those of functions once for each call.
    pub(crate) visited: usize,
}

/// Most nodes that are looked at: functions that call others twice each are soon more than any machine can.
const VISITED: usize = 1 << 22;

impl Machine {
    /// `None` for dims without a size that stay unknown.
    pub(crate) fn new(sizes: Option<BTreeMap<String, i64>>) -> Machine {
        let sizes = Sizes { given: sizes, ..Sizes::default() };
        let occurrences = Occurrences::default();
        let (first, untaken) = (FxHashMap::default(), FxHashSet::default());
        let turned = FxHashMap::default();
        Machine { terms: Terms::new(), sizes, first, occurrences, blind: false, turned, untaken, visited: 0 }
    }

    /// For all sizes, with these numbers for some extents.
    pub(crate) fn of_all_sizes(symbolic: Symbolic, fixed: BTreeMap<String, i64>) -> Machine {
        let mut machine = Machine::new(None);
        machine.terms.symbolic = Some(symbolic.with(fixed));
        machine
    }

    /// All of the input was read. What is read from now on is the result.
    pub(crate) fn input_ends(&mut self) {
        self.terms.input_ends();
        self.occurrences.input_ends();
    }

    /// Every value of a model's main graph that an output needs, by name. `given` has inputs that are known before.
    pub(crate) fn model(&mut self, model: &Model, given: Values, checked: Checked<'_>) -> Result<Values, Refusal> {
        let scope = Scope { model, opsets: &model.opsets, attrs: None, outer: None, depth: 0, path: String::new() };
        let mut values = given;
        let fixed: FxHashSet<&str> = model.constants().map(|(name, _)| name).collect();
        for input in model.graph.inputs.iter().filter(|input| !fixed.contains(input.name.as_str())) {
            if values.contains_key(&input.name) {
                continue;
            }
            let value = self.input(input).map_err(|why| Refusal { node: format!("input `{}`", input.name), why })?;
            values.insert(input.name.clone(), value);
        }
        self.graph(&scope, &model.graph, &mut values, checked)?;
        Ok(values)
    }

    fn input(&mut self, input: &Input) -> Result<Value, String> {
        let sized = self.sizes.given.is_some() || self.terms.symbolic.is_some();
        let Some(dims) = input.dims.as_ref().filter(|dims| sized || dims.iter().all(is_known)) else {
            return Ok(self.unshaped_input(input));
        };
        let (mut shape, mut symbols) = (Vec::new(), Vec::new());
        for (axis, dim) in dims.iter().enumerate() {
            let symbol = match dim {
                DeclaredDim::Known(extent) if *extent != -1 => {
                    shape.push(*extent);
                    continue;
                }
                DeclaredDim::Symbol(symbol) if !symbol.is_empty() => symbol.clone(),
                // Each dim without a name has one of its own.
                _ => format!("{}[{axis}]", input.name),
            };
            shape.push(match &mut self.terms.symbolic {
                Some(symbolic) => symbolic.named(&symbol).ok_or("the model has too many symbols")?,
                None => self.sizes.of(&symbol),
            });
            symbols.push((axis, symbol));
        }
        if shape.iter().any(|d| *d < 1) {
            return Err("a dim is below 1".to_owned());
        }
        count_of(&shape)?;
        let attrs = format!("{} {shape:?}", input.name).into_bytes();
        let op = Op { name: Name::Own(Own::Input), attrs: &attrs, dtype: input.dtype };
        let made = self.terms.placed(&op, &[], &[(shape, input.dtype)]).and_then(|mut v| v.pop());
        let made = made.ok_or_else(|| "it is no tensor".to_owned())?;
        self.sizes.inputs.extend(term_of(&made).map(|term| (term, input.name.clone())));
        for (axis, symbol) in symbols {
            self.terms.fits.named(&made, axis, symbol);
        }
        Ok(made)
    }

    /// An input of which only some extents are known, or which is no tensor.
    fn unshaped_input(&mut self, input: &Input) -> Value {
        let extent = |dim: &DeclaredDim| match dim {
            DeclaredDim::Known(extent) if *extent != -1 => Some(*extent),
            _ => None,
        };
        let dims: Option<Vec<Option<i64>>> = input.dims.as_ref().map(|dims| dims.iter().map(extent).collect());
        let attrs = format!("{:?} {} {dims:?} {:?}", input.name, input.dtype, input.other).into_bytes();
        Value::opaque(self.terms.intern(Term { attrs, ..Term::of(Name::Own(Own::OpaqueInput)) }))
    }

    /// Reads a body whose inputs have values already.
    pub(crate) fn body(&mut self, scope: &Scope<'_>, body: &Graph, made: &mut Values) -> Result<(), Refusal> {
        self.terms.symbolic.iter_mut().for_each(|symbolic| symbolic.bodies += 1);
        let done = self.graph(scope, body, made, &mut |terms, node, values| {
            by_lemma(terms, node, values);
            Ok(())
        });
        self.terms.symbolic.iter_mut().for_each(|symbolic| symbolic.bodies -= 1);
        done
    }

    /// Reads a graph whose inputs have values already.
    fn graph(
        &mut self,
        scope: &Scope<'_>,
        graph: &Graph,
        values: &mut Values,
        checked: Checked<'_>,
    ) -> Result<(), Refusal> {
        for (name, tensor) in &graph.initializers {
            // What a caller may set has no value that is known.
            if values.contains_key(name) {
                continue;
            }
            let known = self.first.entry(name.clone()).or_insert_with(|| tensor.clone());
            let same = known.dtype == tensor.dtype && is_same(&known.data, &tensor.data);
            let data = if same { &known.data } else { &tensor.data };
            values.insert(name.clone(), Value::constant(tensor.dtype, &tensor.dims, data.clone()));
        }
        self.nodes(scope, &graph.nodes, &graph.outputs, values, checked)
    }

    fn nodes(
        &mut self,
        scope: &Scope<'_>,
        nodes: &[Node],
        outputs: &[String],
        values: &mut Values,
        checked: Checked<'_>,
    ) -> Result<(), Refusal> {
        let nodes = in_order(nodes);
        let needed = needed(&nodes, outputs);
        for (node, _) in nodes.iter().zip(&needed).filter(|(_, needed)| **needed) {
            let refusal = |why| Refusal { node: described(node), why };
            self.visited += 1;
            if self.visited > VISITED {
                return Err(refusal(format!("functions make more than {VISITED} nodes of the model")));
            }
            let results = self.node(scope, node, values).map_err(refusal)?;
            for (name, value) in node.outputs.iter().zip(results) {
                if let Some(value) = value.filter(|_| !name.is_empty()) {
                    let value = value.counted().map_err(refusal)?;
                    if !self.terms.is_closed(&value) || !self.terms.is_full(&value) {
                        return Err(refusal("nobody knows that an extent is one for all sizes".to_owned()));
                    }
                    if values.contains_key(name) {
                        return Err(refusal(format!("`{name}` is made twice")));
                    }
                    values.insert(name.clone(), value);
                }
            }
            checked(&mut self.terms, node, values)?;
        }
        Ok(())
    }

    fn node(&mut self, scope: &Scope<'_>, node: &Node, values: &Values) -> Result<Vec<Option<Value>>, String> {
        let mut inputs = Vec::new();
        for name in &node.inputs {
            let missing = || format!("nothing makes its operand `{name}`");
            inputs.push(if name.is_empty() { None } else { Some(scope.find(values, name).ok_or_else(missing)?) });
        }
        let mut attrs = scope.resolved(&node.attrs)?;
        if node.domain.is_empty() || node.op == "DynamicQuantizeLSTM" {
            attrs.retain(|(name, attr)| !is_default(name, attr));
        }
        let function = scope
            .model
            .functions
            .iter()
            .find(|f| f.domain == node.domain && f.name == node.op && f.overload == node.overload);
        if let Some(function) = function {
            return self.call(scope, function, &attrs, &inputs);
        }
        let opset = scope.opsets.get(&node.domain).copied().unwrap_or(0);
        if !self.terms.is_of_input()
            && let Some(why) = typed::fault(&node.domain, &node.op, opset, &dtypes(&inputs))
        {
            return Err(why);
        }
        let told = Told { attrs: &attrs, inputs: &inputs };
        if self.terms.symbolic.is_some() {
            return self.symbolic_node(scope, node, &told, values);
        }
        let bodies = told.bodies();
        if !bodies.is_empty() {
            return self.with_bodies(scope, node, &told, &bodies, values);
        }
        if let Some(made) = self.unshaped(scope, node, &told) {
            return made;
        }
        match ops::run(&mut self.called(scope, node, &told)) {
            Some(Err(why)) if self.sizes.used.is_empty() && ops::is_apart(&why) => self.apart(scope, node, &told, why),
            Some(Err(why)) if ops::is_unknown(&why) => self.opaque(scope, node, &told, &[]).map_err(|_| why),
            Some(made) => made,
            None => self.opaque(scope, node, &told, &[]),
        }
    }

    /// The use of an op whose operands have axes that do not split alike: they are taken as they lie.
    fn apart(
        &mut self,
        scope: &Scope<'_>,
        node: &Node,
        told: &Told<'_>,
        why: String,
    ) -> Result<Vec<Option<Value>>, String> {
        self.terms.apart = true;
        let made = ops::run(&mut self.called(scope, node, told));
        self.terms.apart = false;
        match made {
            Some(Ok(made)) => Ok(made),
            _ => self.opaque(scope, node, told, &[]).map_err(|_| why),
        }
    }

    /// The use of an op by a node.
    fn called<'c>(&'c mut self, scope: &Scope<'_>, node: &'c Node, told: &Told<'c>) -> Call<'c> {
        Call {
            op: &node.op,
            domain: &node.domain,
            opset: scope.opsets.get(&node.domain).copied().unwrap_or(0),
            attrs: told.attrs,
            inputs: told.inputs,
            results: node.outputs.iter().map(|o| !o.is_empty()).collect(),
            block: scope.model.block,
            reading: scope.model.reading,
            terms: &mut self.terms,
        }
    }

    /// The same for all sizes. What does more with an extent that differs from call to call than is known of it is one term by itself.
    fn symbolic_node(
        &mut self,
        scope: &Scope<'_>,
        node: &Node,
        told: &Told<'_>,
        values: &Values,
    ) -> Result<Vec<Option<Value>>, String> {
        let bodies = told.bodies();
        match node.op.as_str() {
            "Loop" if !bodies.is_empty() => return self.opaque_bodies(scope, node, told, &bodies, values),
            _ if !bodies.is_empty() => return self.with_bodies(scope, node, told, &bodies, values),
            _ => {}
        }
        if let Some(made) = ops::of_extents(&mut self.called(scope, node, told)) {
            return made;
        }
        if let Some(made) = self.unshaped(scope, node, told) {
            return made;
        }
        let open = told.inputs.iter().flatten().any(|x| self.terms.has_open(x) || self.terms.is_list(x));
        if open && !ops::takes_open(&node.domain, &node.op) {
            return self.opaque(scope, node, told, &[]);
        }
        match ops::run(&mut self.called(scope, node, told)) {
            // Of numbers of the files alone no extent comes that differs from call to call.
            Some(Ok(made)) if !open && made.iter().flatten().any(|y| self.terms.has_open(y)) => {
                Err("its extent is a number that stands for another one".to_owned())
            }
            Some(Ok(made)) => Ok(made),
            Some(Err(why)) if ops::is_apart(&why) => self.apart(scope, node, told, why),
            Some(Err(why)) => {
                let by_itself = open && self.terms.symbolic.as_ref().is_some_and(|symbolic| symbolic.found.is_none())
                    || ops::is_unknown(&why);
                if by_itself { self.opaque(scope, node, told, &[]).map_err(|_| why) } else { Err(why) }
            }
            None => self.opaque(scope, node, told, &[]),
        }
    }

    /// A call of a function is its body.
    fn call(
        &mut self,
        scope: &Scope<'_>,
        function: &Rc<Function>,
        attrs: &[(String, Attr)],
        inputs: &[Option<Value>],
    ) -> Result<Vec<Option<Value>>, String> {
        if scope.depth > 64 {
            return Err("functions call each other without an end".to_owned());
        }
        let mut given = attrs.to_vec();
        let defaults = function.defaults.iter().filter(|(name, _)| !attrs.iter().any(|(a, _)| a == name));
        given.extend(defaults.cloned());
        let inner = Scope {
            model: scope.model,
            opsets: &function.opsets,
            attrs: Some(&given),
            outer: None,
            depth: scope.depth + 1,
            path: scope.path.clone(),
        };
        let mut values = Values::default();
        for (name, value) in function.inputs.iter().zip(inputs) {
            values.extend(value.clone().map(|value| (name.clone(), value)));
        }
        let done = self.nodes(&inner, &function.nodes, &function.outputs, &mut values, &mut |_, _, _| Ok(()));
        done.map_err(|r| format!("in function `{}`: {}: {}", function.name, r.node, r.why))?;
        Ok(function.outputs.iter().map(|name| values.get(name).cloned()).collect())
    }

    /// An op with bodies.
    fn with_bodies(
        &mut self,
        scope: &Scope<'_>,
        node: &Node,
        told: &Told<'_>,
        bodies: &[(String, Rc<Graph>)],
        values: &Values,
    ) -> Result<Vec<Option<Value>>, String> {
        let find = |name: &str| bodies.iter().find(|(n, _)| n == name).map(|(_, g)| g);
        if !node.domain.is_empty() {
            return Err(format!("the checker does not look into the bodies of {}.{}", node.domain, node.op));
        }
        match (node.op.as_str(), told.inputs, find("then_branch"), find("else_branch"), find("body")) {
            ("If", [Some(condition)], Some(yes), Some(no), None) => self.branches(scope, condition, [yes, no], values),
            ("Loop", _, None, None, Some(body)) if scope.model.reading == ReadingOf::Onnx && loops::is_listed(body) => {
                self.opaque_bodies(scope, node, told, bodies, values)
            }
            ("Loop", _, None, None, Some(body)) => self.repeated(scope, (node, body), told.inputs, values),
            ("Scan", _, None, None, Some(body)) => {
                let before = self.occurrences.clone();
                if let Ok(made) = self.scanned(scope, (node, body), told, values) {
                    return Ok(made);
                }
                self.occurrences = before;
                self.opaque_bodies(scope, node, told, bodies, values)
            }
            _ => self.opaque_bodies(scope, node, told, bodies, values),
        }
    }

    /// If: a choice between the results of its branches.
    fn branches(
        &mut self,
        scope: &Scope<'_>,
        condition: &Value,
        bodies: [&Rc<Graph>; 2],
        values: &Values,
    ) -> Result<Vec<Option<Value>>, String> {
        if !condition.is_opaque() && condition.dtype != BOOL {
            return Err("its condition is no truth value".to_owned());
        }
        let known = condition.as_ints().and_then(|list| list.first().map(|number| *number != 0));
        let mut sides = Vec::new();
        for (at, (body, name)) in bodies.into_iter().zip(["If.then_branch", "If.else_branch"]).enumerate() {
            let inner = scope.inside(values, name);
            if known == Some(at == 1) {
                self.not_taken(&inner, body)?;
            } else {
                sides.push(self.branch(&inner, body)?);
            }
        }
        if known.is_some() {
            return Ok(sides.pop().unwrap_or_default().into_iter().map(Some).collect());
        }
        let (no, yes) = (sides.pop().unwrap_or_default(), sides.pop().unwrap_or_default());
        if yes.len() != no.len() {
            return Err("its branches have not as many results as each other".to_owned());
        }
        yes.iter().zip(&no).map(|(yes, no)| self.choose(condition, yes, no).map(Some)).collect()
    }

    /// The results of a branch.
    fn branch(&mut self, inner: &Scope<'_>, body: &Graph) -> Result<Vec<Value>, String> {
        let mut made = Values::default();
        self.body(inner, body, &mut made).map_err(|r| format!("in a branch: {}: {}", r.node, r.why))?;
        let found: Option<Vec<Value>> = body.outputs.iter().map(|name| inner.find(&made, name)).collect();
        found.ok_or_else(|| "nothing makes a result of a branch".to_owned())
    }

    /// A branch that no run takes for these sizes: others may, so one of the result is one of the input. It need not fit these sizes.
    fn not_taken(&mut self, inner: &Scope<'_>, body: &Graph) -> Result<(), String> {
        let before = self.occurrences.clone();
        let shaped = self.branch(inner, body);
        let made = if let Ok(made) = shaped {
            made
        } else {
            self.occurrences = before;
            let blind = std::mem::replace(&mut self.blind, true);
            let made = self.branch(inner, body);
            self.blind = blind;
            made?
        };
        let results = self.operands(&made.iter().map(Some).collect::<Vec<_>>())?;
        if self.terms.is_of_input() {
            self.untaken.insert(results);
        } else if !self.untaken.contains(&results) {
            return Err("a branch that is not taken for these sizes is none of the input".to_owned());
        }
        Ok(())
    }

    /// One of two values, by a condition.
    fn choose(&mut self, condition: &Value, yes: &Value, no: &Value) -> Result<Value, String> {
        let alike = yes.shape() == no.shape() && yes.dtype == no.dtype && condition.count() == 1;
        if alike && ![condition, yes, no].iter().any(|value| value.is_opaque()) {
            self.terms.apart = self.sizes.used.is_empty();
            let made = ops::choose(&mut self.terms, condition, yes, no);
            self.terms.apart = false;
            return made;
        }
        let args = self.operands(&[Some(condition), Some(yes), Some(no)])?;
        Ok(self.part(&Term { args, ..Term::of(Name::Opaque("If")) }, 0))
    }
}

impl<'s> Scope<'s> {
    /// The scope of a body, which sees the values around it.
    pub(crate) fn inside<'i>(&'i self, values: &'i Values, body: &str) -> Scope<'i>
    where
        's: 'i,
    {
        Scope {
            model: self.model,
            opsets: self.opsets,
            attrs: self.attrs,
            outer: Some((self, values)),
            depth: self.depth + 1,
            path: format!("{}/{body}", self.path),
        }
    }

    /// The bodies around it.
    pub(crate) fn path(&self) -> &str {
        &self.path
    }

    /// How many bodies and functions are around it.
    pub(crate) fn depth(&self) -> usize {
        self.depth
    }
}

impl Scope<'_> {
    pub(crate) fn find(&self, values: &Values, name: &str) -> Option<Value> {
        let here = values.get(name).cloned();
        here.or_else(|| self.outer.and_then(|(scope, values)| scope.find(values, name)))
    }

    /// Attributes with those of the caller in the place of references.
    fn resolved(&self, attrs: &[(String, Attr)]) -> Result<Vec<(String, Attr)>, String> {
        let mut found = Vec::new();
        for (name, attr) in attrs {
            match attr {
                Attr::Ref(refers) => {
                    let given = self.attrs.ok_or("an attribute refers to a caller, and there is none")?;
                    found.extend(given.iter().find(|(n, _)| n == refers).map(|(_, a)| (name.clone(), a.clone())));
                }
                attr => found.push((name.clone(), attr.clone())),
            }
        }
        Ok(found)
    }
}

/// Puts the term of the input in the place of one that is the same over the reals.
pub(crate) fn by_lemma(terms: &mut Terms, node: &Node, values: &mut Values) {
    for name in &node.outputs {
        if let Some(value) = values.get_mut(name) {
            *value = terms.real(value.clone());
        }
    }
}

fn is_known(dim: &DeclaredDim) -> bool {
    matches!(dim, DeclaredDim::Known(extent) if *extent != -1)
}

/// A node as a message names it.
pub(crate) fn described(node: &Node) -> String {
    let name = if node.name.is_empty() { node.outputs.first().map_or("", String::as_str) } else { &node.name };
    format!("{} `{name}`", node.op)
}

/// Whether two runs of bytes are the same: in one place of memory they are, without a look.
pub(crate) fn is_same(a: &Bytes, b: &Bytes) -> bool {
    a.len() == b.len() && (a.as_ptr() == b.as_ptr() || a == b)
}

/// What is said of a value whose shape is not known.
pub(crate) const SHAPELESS: &str = "of a shape that is not known";

/// What a value is, in words.
pub(crate) fn explained(terms: &Terms, value: &Value) -> String {
    match &value.source {
        Source::Constant { .. } => format!("a constant {:?}", value.shape()),
        Source::Opaque(term) => format!("{} number {term}, {SHAPELESS}", terms.get(*term).op),
        Source::Term(term) => {
            let axes =
                value.view.iter().map(|axis| axis.iter().map(digit).collect::<Vec<_>>().join("*")).collect::<Vec<_>>();
            format!("{}, seen as [{}] {:?}", named(terms, *term), axes.join(", "), view::shape(&value.view))
        }
    }
}

fn named(terms: &Terms, mut term: u32) -> String {
    let layers = terms.beneath(term).1;
    let name = |term: u32| format!("{} number {term} over {:?}", terms.get(term).op, terms.get(term).base);
    let mut words = vec![name(term)];
    for _ in 0..layers {
        if let [Arg::Term { term: inner, .. }] = terms.get(term).args.as_slice() {
            term = *inner;
            words.push(name(term));
        }
    }
    words.join(" of ")
}

fn digit(digit: &view::Digit) -> String {
    match digit.axis {
        view::REPEAT => format!("repeat {}", digit.extent),
        axis => format!("{axis}:{}/{}", digit.extent, digit.stride),
    }
}

fn dtypes(values: &[Option<Value>]) -> Vec<Option<u8>> {
    values.iter().map(|value| value.as_ref().map(|value| value.dtype)).collect()
}
