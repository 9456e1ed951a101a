//! A graph and its bodies as flat lists, and what became of each node between two of them.

use crate::page::{GraphPart, NodePart, NodeState, ValuePart};
use crate::strings::Strings;
use relayout::ir::attr::Attr;
use relayout::ir::graph::{Graph, Node, NodeId, Op, ValueId};
use relayout::ir::layout::Layout;
use relayout::target::hints::Hints;
use relayout::why::Why;
use std::collections::HashMap;

/// Longest text of an attribute that is shown whole, in characters.
const SHOWN_CHARS: usize = 400;

/// What a graph is drawn with.
pub(crate) struct Drawn<'a> {
    /// Sizes of symbolic dims.
    pub(crate) hints: &'a Hints,
    /// The layouts of values by body and name, where these are not those of the graph.
    pub(crate) layouts: Layouts,
    /// What is known about values, by body and name.
    pub(crate) whys: &'a Whys,
    /// Why no layout passes through nodes, by body and what messages call them.
    pub(crate) opaque: &'a Opaque,
}

/// Reasons by body and what messages call a node.
pub(crate) type Opaque = HashMap<(String, String), String>;

/// Layouts of values by body and name.
pub(crate) type Layouts = HashMap<(String, String), Layout>;

/// Places of explanations by body and name of the value.
pub(crate) type Whys = HashMap<(String, String), u32>;

/// The layouts of all values of a graph and its bodies.
pub(crate) fn layouts(graph: &Graph) -> Layouts {
    let mut found = Layouts::new();
    each(graph, "", &mut |graph, path| {
        for v in graph.values().filter(|&v| graph.value(v).ty.rank().is_some()) {
            let value = graph.value(v);
            found.insert((path.to_owned(), value.name.clone()), value.layout.clone());
        }
    });
    found
}

/// The places of explanations by what they explain.
pub(crate) fn by_value(whys: &[(String, Why)]) -> Whys {
    let at = |(place, (path, why)): (usize, &(String, Why))| ((path.clone(), why.value.clone()), place as u32);
    whys.iter().enumerate().map(at).collect()
}

/// Visits a graph and its bodies, each with its path.
pub(crate) fn each(graph: &Graph, path: &str, visit: &mut impl FnMut(&Graph, &str)) {
    visit(graph, path);
    for n in graph.nodes() {
        let node = graph.node(n);
        for (name, attr) in &node.attrs {
            for body in attr.bodies() {
                each(body, &node.body_path(graph, path, name), visit);
            }
        }
    }
}

/// A graph with where its nodes stand in the lists.
pub(crate) struct Flat {
    pub(crate) part: GraphPart,
    /// Places of nodes by body and the name of their first result.
    places: HashMap<(String, String), usize>,
    /// Places of Transposes by body and the name of what they read.
    transposes: HashMap<(String, String), Vec<usize>>,
}

impl Flat {
    /// The place of the node that makes a value.
    pub(crate) fn maker(&self, path: &str, value: &str) -> Option<usize> {
        self.places.get(&(path.to_owned(), value.to_owned())).copied()
    }

    /// The places of the Transposes that read a value.
    pub(crate) fn transposes(&self, path: &str, value: &str) -> &[usize] {
        self.transposes.get(&(path.to_owned(), value.to_owned())).map_or(&[], Vec::as_slice)
    }
}

/// Makes the lists of a graph.
pub(crate) fn flat(title: &str, graph: &Graph, drawn: &Drawn<'_>, strings: &mut Strings) -> Flat {
    let part = GraphPart { title: title.to_owned(), ..GraphPart::default() };
    let mut walk = Walk {
        flat: Flat { part, places: HashMap::new(), transposes: HashMap::new() },
        drawn,
        strings,
        layouts: HashMap::new(),
    };
    walk.graph(graph, "");
    walk.flat
}

struct Walk<'a> {
    flat: Flat,
    drawn: &'a Drawn<'a>,
    strings: &'a mut Strings,
    layouts: HashMap<String, u32>,
}

impl Walk<'_> {
    fn graph(&mut self, graph: &Graph, path: &str) {
        let order = graph.order().unwrap_or_else(|_| graph.nodes().collect());
        let mut values: HashMap<ValueId, u32> = HashMap::new();
        for &n in &order {
            for &v in graph.node(n).outputs.iter().flatten() {
                values.insert(v, self.value(graph, v, path));
            }
        }
        for n in order {
            self.node(graph, n, path, &values);
        }
    }

    fn value(&mut self, graph: &Graph, v: ValueId, path: &str) -> u32 {
        let value = graph.value(v);
        let key = (path.to_owned(), value.name.clone());
        let decided = self.drawn.layouts.get(&key).filter(|l| Some(l.rank()) == value.ty.rank());
        let layout = value.ty.rank().map(|_| decided.unwrap_or(&value.layout).clone());
        let part = ValuePart {
            name: self.strings.place(&value.name),
            ty: self.strings.place(&value.ty.to_string()),
            layout: layout.map(|layout| self.layout(&layout)),
            bytes: self.drawn.hints.bytes(graph, v),
            constant: graph.constant(v).is_some(),
            output: path.is_empty() && graph.is_output(v),
            why: self.drawn.whys.get(&key).copied(),
        };
        self.flat.part.values.push(part);
        self.flat.part.values.len() as u32 - 1
    }

    fn layout(&mut self, layout: &Layout) -> u32 {
        let text = if layout.rank() == 0 { "scalar".to_owned() } else { layout.to_string() };
        let list = &mut self.flat.part.layouts;
        *self.layouts.entry(text.clone()).or_insert_with(|| {
            list.push((text, layout.is_row_major()));
            list.len() as u32 - 1
        })
    }

    fn node(&mut self, graph: &Graph, n: NodeId, path: &str, values: &HashMap<ValueId, u32>) {
        let node = graph.node(n);
        let op = match &node.op {
            Op::Constant(_) => return,
            Op::Input { .. } => "input".to_owned(),
            Op::Outer => "outer".to_owned(),
            Op::Relayout => "Relayout".to_owned(),
            Op::Onnx(name) => name.to_string(),
        };
        let first = node.outputs.iter().flatten().next().map(|&v| graph.value(v).name.clone()).unwrap_or_default();
        let at = |slots: &[Option<ValueId>]| slots.iter().map(|v| values.get(&(*v)?).copied()).collect();
        let opaque = self.drawn.opaque.get(&(path.to_owned(), node.describe(graph)));
        let part = NodePart {
            op: self.strings.place(&op),
            name: self.strings.place(if node.name.is_empty() { &first } else { &node.name }),
            path: self.strings.place(path),
            state: NodeState::Same,
            ins: at(&node.inputs),
            outs: at(&node.outputs),
            attrs: self.attributes(node),
            moved: None,
            opaque: opaque.map(|why| self.strings.place(why)),
        };
        let place = self.flat.part.nodes.len();
        self.flat.places.insert((path.to_owned(), first), place);
        if let Some(read) = node.operand(0).filter(|_| node.onnx() == Some("Transpose")) {
            let key = (path.to_owned(), graph.value(read).name.clone());
            self.flat.transposes.entry(key).or_default().push(place);
        }
        self.flat.part.nodes.push(part);
        self.bodies(graph, node, path);
    }

    fn attributes(&mut self, node: &Node) -> Vec<(u32, u32)> {
        let mut attrs: Vec<(&String, &Attr)> = node.attrs.iter().collect();
        attrs.sort_by_key(|(name, _)| *name);
        let pair = |(name, attr): (&String, &Attr)| {
            let text = attr.to_string();
            let cut = text.char_indices().nth(SHOWN_CHARS).map(|(at, _)| format!("{}…", &text[..at]));
            (self.strings.place(name), self.strings.place(cut.as_ref().unwrap_or(&text)))
        };
        attrs.into_iter().map(pair).collect()
    }

    fn bodies(&mut self, graph: &Graph, node: &Node, path: &str) {
        for (name, attr) in &node.attrs {
            let inner = node.body_path(graph, path, name);
            attr.bodies().iter().for_each(|body| self.graph(body, &inner));
        }
    }
}

/// Says of every node of both graphs what became of it. Nodes are found again by the name of their first result.
pub(crate) fn compare(before: &mut Flat, after: &mut Flat) {
    let pairs: Vec<(usize, usize)> =
        before.places.iter().filter_map(|(key, &a)| Some((a, *after.places.get(key)?))).collect();
    before.part.nodes.iter_mut().for_each(|node| node.state = NodeState::Gone);
    after.part.nodes.iter_mut().for_each(|node| node.state = NodeState::New);
    for (a, b) in pairs {
        let same = is_same(&before.part, a, &after.part, b);
        let state = if same { NodeState::Same } else { NodeState::Changed };
        (before.part.nodes[a].state, after.part.nodes[b].state) = (state, state);
    }
}

/// Whether nodes do the same with the same values in the same layouts.
fn is_same(one: &GraphPart, a: usize, other: &GraphPart, b: usize) -> bool {
    let (x, y) = (&one.nodes[a], &other.nodes[b]);
    let told = |part: &GraphPart, slots: &[Option<u32>]| -> Vec<Option<(u32, u32, Option<String>)>> {
        let of = |v: &Option<u32>| {
            let value = part.values.get((*v)? as usize)?;
            let layout = value.layout.and_then(|l| part.layouts.get(l as usize)).map(|(text, _)| text.clone());
            Some((value.name, value.ty, layout))
        };
        slots.iter().map(of).collect()
    };
    (x.op, &x.attrs) == (y.op, &y.attrs)
        && told(one, &x.ins) == told(other, &y.ins)
        && told(one, &x.outs) == told(other, &y.outs)
}
