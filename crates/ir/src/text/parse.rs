//! Text to graph: one pass over the lines with a [`Cursor`], no grammar but the one of the [module](super).
//!
//! A line may only read what stands above it, so a parsed graph has no cycle. The rank of a call is its place among the
//! lines, so that [`Graph::order`] gives the lines back.

use super::cursor::Cursor;
use super::layouts;
use super::names::{KEYWORDS, captured, is_op_part};
use super::scalars::encode;
use super::values::{self, AttrSlot};
use crate::attr::{Attr, Attrs};
use crate::constant::{ConstSource, Constant};
use crate::dtype::DType;
use crate::graph::{DuplicateName, Graph, Node, Op, OpName, ValueId};
use crate::layout::Layout;
use crate::storage::StorageRule;
use crate::types::Type;
use bytes::Bytes;
use std::sync::Arc;

/// Deepest nesting of bodies that is read.
const MAX_DEPTH: usize = 64;

/// A text that is no graph, and where that shows.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}, column {column}: {message}")]
pub struct ParseError {
    /// Line, from 1.
    pub line: usize,
    /// Column in characters, from 1.
    pub column: usize,
    /// What is wrong, and what would be right.
    pub message: String,
}

type Parsed<T> = Result<T, ParseError>;

/// The graph that a text says; see the [module](super) for the format.
///
/// # Errors
/// [`ParseError`] at the first place that is wrong.
pub fn parse(text: &str) -> Result<Graph, ParseError> {
    let mut parser = Parser { cursor: Cursor::new(text), opset: 0, storage: StorageRule::default() };
    parser.cursor.line_start();
    parser.cursor.expect("graph ")?;
    let name = parser.cursor.name(false)?;
    parser.header()?;
    parser.block(name, 0)
}

struct Parser<'t> {
    cursor: Cursor<'t>,
    /// Version of ONNX's own operator set where a line does not say another.
    opset: i64,
    /// How blocked values are declared.
    storage: StorageRule,
}

/// A result as a line names it.
struct ResultText {
    name: String,
    ty: Type,
    layout: Layout,
}

impl Parser<'_> {
    fn header(&mut self) -> Parsed<()> {
        loop {
            self.cursor.take_while(|c| c == ' ');
            if self.cursor.is_at_end() || self.cursor.rest().starts_with(['\n', '\r', ';']) {
                return self.cursor.line_end().map(|_| ());
            }
            let key = self.cursor.name(false)?;
            self.cursor.expect("=")?;
            if key == "opset" {
                self.opset = self.cursor.int()?;
            } else if key == "storage" {
                let at = self.cursor.at();
                let known = StorageRule::named(&self.cursor.name(false)?);
                self.storage = known.map_or_else(|| self.cursor.error_at(at, "write per-digit or per-axis"), Ok)?;
            } else if !self.cursor.rest().starts_with([' ', '\n']) {
                self.cursor.name(false)?;
            }
        }
    }

    /// Lines up to the end of the text, or of the body.
    fn block(&mut self, name: String, depth: usize) -> Parsed<Graph> {
        let mut graph = Graph::new(name);
        graph.storage = self.storage;
        loop {
            self.cursor.line_start();
            let rest = self.cursor.rest();
            if rest.is_empty() {
                return if depth == 0 { Ok(graph) } else { self.cursor.error("this body has no `end`") };
            }
            if rest.starts_with(['%', '_', '(']) {
                self.node(&mut graph, depth)?;
            } else if self.cursor.eat("output ") {
                let v = self.operand(&graph)?;
                graph.add_output(v);
                self.cursor.line_end()?;
            } else if depth > 0 && self.cursor.eat("end") {
                self.cursor.line_end()?;
                return Ok(graph);
            } else {
                return self.cursor.error("expected a line such as `%y: f32[1] = Relu(%x)` or `output %y`");
            }
        }
    }

    fn node(&mut self, graph: &mut Graph, depth: usize) -> Parsed<()> {
        let start = self.cursor.at();
        let results = self.results()?;
        self.cursor.expect(" = ")?;
        let before = self.cursor.at();
        let word = self.cursor.take_while(is_op_part);
        if !KEYWORDS.contains(&word) || self.cursor.rest().starts_with(':') {
            self.cursor.back_to(before);
            let name = self.op_name()?;
            return self.call(graph, start, Op::Onnx(name), results, depth);
        }
        match word {
            "relayout" => self.call(graph, start, Op::Relayout, results, depth),
            "outer" => {
                self.cursor.line_end()?;
                self.add(graph, start, Node::new(Op::Outer, Vec::new()), results)
            }
            "const" => self.constant(graph, start, results),
            _ => self.input(graph, start, results),
        }
    }

    fn results(&mut self) -> Parsed<Vec<Option<ResultText>>> {
        let mut results = Vec::new();
        if self.cursor.eat("()") {
            return Ok(results);
        }
        loop {
            results.push(self.result()?);
            if !self.cursor.eat(", ") {
                return Ok(results);
            }
        }
    }

    fn result(&mut self) -> Parsed<Option<ResultText>> {
        if self.cursor.eat("_") {
            return Ok(None);
        }
        self.cursor.expect("%")?;
        let name = self.cursor.name(true)?;
        self.cursor.expect(": ")?;
        let ty = values::ty(&mut self.cursor)?;
        let rank = ty.rank().unwrap_or(0);
        let mut layout = Layout::row_major(rank);
        if self.cursor.eat("@") {
            let at = self.cursor.at();
            let text = self.cursor.take_until(&[", %", ", _", " = "]);
            layout = layouts::parse(text).or_else(|why| self.cursor.error_at(at, why))?;
        }
        Ok(Some(ResultText { name, ty, layout }))
    }

    fn op_name(&mut self) -> Parsed<OpName> {
        let mut name = self.cursor.part(is_op_part)?;
        let mut domain = String::new();
        if self.cursor.eat("::") {
            domain = std::mem::replace(&mut name, self.cursor.part(is_op_part)?);
        }
        let overload = if self.cursor.eat(":") { self.cursor.part(is_op_part)? } else { String::new() };
        Ok(OpName { domain, name, overload })
    }

    fn operand(&mut self, graph: &Graph) -> Parsed<ValueId> {
        self.cursor.expect("%")?;
        let at = self.cursor.at();
        let name = self.cursor.name(false)?;
        match graph.by_name(&name) {
            Some(v) => Ok(v),
            None => self.cursor.error_at(at, format!("no line above makes a value `{name}`")),
        }
    }

    fn operands(&mut self, graph: &Graph) -> Parsed<Vec<Option<ValueId>>> {
        let mut operands = Vec::new();
        self.cursor.expect("(")?;
        if self.cursor.eat(")") {
            return Ok(operands);
        }
        loop {
            operands.push(if self.cursor.eat("_") { None } else { Some(self.operand(graph)?) });
            if self.cursor.eat(")") {
                return Ok(operands);
            }
            self.cursor.expect(", ")?;
        }
    }

    /// An op with operands, attributes and, on the lines below, bodies.
    fn call(
        &mut self,
        graph: &mut Graph,
        start: usize,
        op: Op,
        results: Vec<Option<ResultText>>,
        depth: usize,
    ) -> Parsed<()> {
        let onnx_own = matches!(&op, Op::Onnx(name) if name.domain.is_empty());
        let foreign = matches!(&op, Op::Onnx(name) if !name.domain.is_empty());
        let mut node = Node::new(op, self.operands(graph)?);
        let attrs = values::attrs(&mut self.cursor)?;
        node.opset = if self.cursor.eat(" opset ") {
            self.cursor.int()?
        } else if foreign {
            1
        } else if onnx_own {
            self.opset
        } else {
            0
        };
        self.cursor.line_end()?;
        node.attrs = self.bodies(attrs, depth + 1)?;
        node.captures = captured(graph, &node);
        self.add(graph, start, node, results)
    }

    /// Attributes with their bodies, which stand on the lines below in the order of the attributes.
    fn bodies(&mut self, slots: Vec<(String, AttrSlot)>, depth: usize) -> Parsed<Attrs> {
        let mut attrs = Attrs::default();
        for (name, slot) in slots {
            let attr = match slot {
                AttrSlot::Here(attr) => attr,
                AttrSlot::Body => Attr::Graph(Box::new(self.body(depth)?)),
                AttrSlot::Bodies(count) => {
                    let mut bodies = Vec::new();
                    for _ in 0..count {
                        bodies.push(self.body(depth)?);
                    }
                    Attr::Graphs(bodies)
                }
            };
            attrs.insert(name, attr);
        }
        Ok(attrs)
    }

    fn body(&mut self, depth: usize) -> Parsed<Graph> {
        self.cursor.line_start();
        if depth > MAX_DEPTH {
            return self.cursor.error(format!("bodies are nested more than {MAX_DEPTH} deep"));
        }
        self.cursor.expect("body ")?;
        let name = self.cursor.name(false)?;
        self.cursor.line_end()?;
        self.block(name, depth)
    }

    fn add(&mut self, graph: &mut Graph, start: usize, mut node: Node, results: Vec<Option<ResultText>>) -> Parsed<()> {
        // Sources keep rank 0: the printer puts them in front of their readers anyway.
        if !matches!(node.op, Op::Outer) {
            node.rank = u32::try_from(graph.node_count()).unwrap_or(u32::MAX);
        }
        let (named, layouts): (Vec<_>, Vec<_>) =
            results.into_iter().map(|r| r.map_or((None, None), |r| (Some((r.name, r.ty)), Some(r.layout)))).unzip();
        let n = graph.add(node, named).or_else(|twice| self.duplicate(start, &twice))?;
        for (v, layout) in graph.node(n).outputs.clone().into_iter().zip(layouts) {
            if let (Some(v), Some(layout)) = (v, layout) {
                *graph.value_mut(v).layout = layout;
            }
        }
        Ok(())
    }

    fn duplicate<T>(&self, start: usize, twice: &DuplicateName) -> Parsed<T> {
        self.cursor.error_at(start, format!("{twice}; give one of them another name"))
    }

    fn only(&self, start: usize, results: Vec<Option<ResultText>>, what: &str) -> Parsed<ResultText> {
        match <[Option<ResultText>; 1]>::try_from(results) {
            Ok([Some(result)]) => Ok(result),
            _ => self.cursor.error_at(start, format!("{what} has exactly one result")),
        }
    }

    fn constant(&mut self, graph: &mut Graph, start: usize, results: Vec<Option<ResultText>>) -> Parsed<()> {
        let result = self.only(start, results, "a constant")?;
        let (held, stop) = self.held(&result)?;
        let notes = self.cursor.line_end()?;
        let c = self.tensor(held, notes, stop, &result.name)?;
        self.source(graph, start, result, |graph, name, _| graph.add_constant(name, c))
    }

    fn input(&mut self, graph: &mut Graph, start: usize, results: Vec<Option<ResultText>>) -> Parsed<()> {
        let result = self.only(start, results, "an input")?;
        if !self.cursor.eat("(default") {
            self.cursor.line_end()?;
            return self.source(graph, start, result, Graph::add_input);
        }
        let (held, stop) = self.held(&result)?;
        self.cursor.expect(")")?;
        let notes = self.cursor.line_end()?;
        let c = self.tensor(held, notes, stop, &result.name)?;
        self.source(graph, start, result, |graph, name, ty| graph.add_overridable(name, ty, c))
    }

    fn source(
        &self,
        graph: &mut Graph,
        start: usize,
        result: ResultText,
        add: impl FnOnce(&mut Graph, String, Type) -> Result<ValueId, DuplicateName>,
    ) -> Parsed<()> {
        let v = add(graph, result.name, result.ty.clone()).or_else(|twice| self.duplicate(start, &twice))?;
        let value = graph.value_mut(v);
        *value.ty = result.ty;
        *value.layout = result.layout;
        Ok(())
    }

    /// The type and, if they are shown, the elements of a constant; and the place of them.
    fn held(&mut self, result: &ResultText) -> Parsed<(Held, usize)> {
        let at = self.cursor.at();
        let own = if self.cursor.eat("<") {
            let ty = values::ty(&mut self.cursor)?;
            self.cursor.expect(">")?;
            layouts::stored_type(&ty, &Layout::row_major(ty.rank().unwrap_or(0)), self.storage)
        } else {
            layouts::stored_type(&result.ty, &result.layout, self.storage)
        };
        let Some((dtype, dims)) = own else {
            return self.cursor.error_at(at, "a constant needs an element type and extents that are numbers");
        };
        let at = self.cursor.at();
        let ints = match self.cursor.rest().as_bytes() {
            [b' ', b'[', ..] => {
                self.cursor.eat(" ");
                Some(self.cursor.list(Cursor::int)?)
            }
            [b' ', b'-' | b'0'..=b'9', ..] => {
                self.cursor.eat(" ");
                Some(vec![self.cursor.int()?])
            }
            _ => None,
        };
        Ok((Held { dtype, dims, ints }, at))
    }

    fn tensor(&self, held: Held, notes: Option<&str>, at: usize, name: &str) -> Parsed<Constant> {
        let Held { dtype, dims, ints } = held;
        if let Some(ints) = ints {
            let bytes = encode(dtype, &ints).or_else(|why| self.cursor.error_at(at, why))?;
            let c = Constant::inline(dtype, dims, bytes.into());
            if c.elems() != Some(ints.len() as u64) {
                let (found, dims) = (ints.len(), &c.dims);
                return self.cursor.error_at(at, format!("{found} elements do not fill the extents {dims:?}"));
            }
            return Ok(c);
        }
        let notes =
            layouts::read_notes(notes.unwrap_or_default(), &dims).or_else(|why| self.cursor.error_at(at, why))?;
        let why = format!("`{name}` was read from the text of a graph, which does not hold its bytes");
        let source = Arc::new(Unheld { why, exists: !notes.missing });
        Ok(Constant { dtype, dims, source, pending: notes.pending })
    }
}

/// What a line says of a constant.
struct Held {
    dtype: DType,
    dims: Vec<i64>,
    ints: Option<Vec<i64>>,
}

/// Bytes that the text left out: they exist, unless it says that they are missing, but not here.
#[derive(Debug)]
struct Unheld {
    why: String,
    exists: bool,
}

impl ConstSource for Unheld {
    fn bytes(&self) -> Result<Bytes, String> {
        Err(self.why.clone())
    }

    fn is_available(&self) -> bool {
        self.exists
    }
}
