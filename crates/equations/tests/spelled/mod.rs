//! Graphs that are written as expressions, for tests that need many small ones.
//!
//! ```text
//! q: [2,4,5,8]               an operand, float32
//! s: const [8]               a constant of distinct numbers; `zeros [8]` of zeros
//! m = (ReduceMean x axes=[-1] keepdims=1)
//! (Mul (Sub x m) 0.5)        the last line is the result
//! ```
//!
//! `0.5` is a scalar constant, `[1,2]` a vector of whole numbers, `_` an operand that is absent, `key=value` an attribute.

#![allow(dead_code, reason = "each test file uses its part")]

use relayout_ir::attr::Attr;
use relayout_ir::build::Builder;
use relayout_ir::constant::Constant;
use relayout_ir::dim::Dim;
use relayout_ir::dtype::DType;
use relayout_ir::graph::{Graph, Node, Op, ValueId};
use relayout_ir::types::Type;
use std::collections::BTreeMap;

/// A graph that is being written.
pub(crate) struct Spelled {
    pub(crate) graph: Graph,
    pub(crate) names: BTreeMap<String, ValueId>,
    opset: i64,
    unknowns: u32,
    /// How many nodes there are; they are named by it.
    pub(crate) count: usize,
}

impl Spelled {
    pub(crate) fn new(opset: i64) -> Spelled {
        Spelled { graph: Graph::new("g"), names: BTreeMap::new(), opset, unknowns: 0, count: 0 }
    }

    /// The graph of these lines.
    pub(crate) fn of<'l>(opset: i64, lines: impl IntoIterator<Item = &'l str>) -> Result<Spelled, String> {
        let mut spelled = Spelled::new(opset);
        for line in lines {
            spelled.line(line.trim()).map_err(|e| format!("`{}`: {e}", line.trim()))?;
        }
        Ok(spelled)
    }

    /// One line of them.
    pub(crate) fn line(&mut self, line: &str) -> Result<(), String> {
        if let Some((name, rest)) = line.split_once(": ") {
            let v = self.declared(name, rest.trim())?;
            self.names.insert(name.to_owned(), v);
        } else if let Some((name, rest)) = line.split_once(" = ") {
            let v = self.expression(rest)?;
            self.names.insert(name.to_owned(), v);
        } else {
            let v = self.expression(line)?;
            self.graph.add_output(v);
        }
        Ok(())
    }

    fn declared(&mut self, name: &str, what: &str) -> Result<ValueId, String> {
        let (kind, dims) = match what.split_once(' ') {
            Some((kind, dims)) => (kind, list(dims)?),
            None => ("input", list(what)?),
        };
        let count = dims.iter().product::<i64>();
        let added = match kind {
            "input" => {
                let shape = dims.iter().copied().map(Dim::from).collect();
                let v = self.graph.add_input(name, Type::tensor(DType::F32, shape));
                return v.map_err(|e| e.to_string());
            }
            "zeros" => Constant::floats((0..count).map(|_| 0.0), &dims),
            "const" => Constant::floats((0..count).map(|i| 0.25 + 0.125 * (i % 7) as f64), &dims),
            other => return Err(format!("`{other}` is neither const nor zeros")),
        };
        self.graph.add_constant(name, added).map_err(|e| e.to_string())
    }

    /// The value of an expression.
    pub(crate) fn expression(&mut self, text: &str) -> Result<ValueId, String> {
        let tokens = text.replace('(', " ( ").replace(')', " ) ");
        let mut tokens = tokens.split_whitespace().peekable();
        let v = self.term(&mut tokens)?.ok_or("an operand that is absent is no result")?;
        tokens.next().map_or(Ok(v), |rest| Err(format!("`{rest}` is too much")))
    }

    fn term<'t>(&mut self, tokens: &mut impl Iterator<Item = &'t str>) -> Result<Option<ValueId>, String> {
        let token = tokens.next().ok_or("it ends too soon")?;
        match token {
            "_" => Ok(None),
            "(" => self.node(tokens).map(Some),
            _ => self.atom(token).map(Some),
        }
    }

    fn node<'t>(&mut self, tokens: &mut impl Iterator<Item = &'t str>) -> Result<ValueId, String> {
        let op = tokens.next().ok_or("no op")?;
        let (mut operands, mut attrs) = (Vec::new(), Vec::new());
        loop {
            let token = tokens.next().ok_or_else(|| format!("({op} is not closed"))?;
            match (token, token.split_once('=')) {
                (")", _) => break,
                ("(", _) => operands.push(Some(self.node(tokens)?)),
                ("_", _) => operands.push(None),
                (_, Some((key, value))) => attrs.push((key.to_owned(), attr(value)?)),
                _ => operands.push(Some(self.atom(token)?)),
            }
        }
        self.count += 1;
        let name = format!("t{}", self.count);
        let mut make = Builder::new(&mut self.graph, self.count as u32).opset(self.opset);
        let made = make.op(op, operands).attrs(attrs).inferred(&name, &mut self.unknowns);
        made.map_err(|e| e.to_string())
    }

    fn atom(&mut self, token: &str) -> Result<ValueId, String> {
        if let Some(&v) = self.names.get(token) {
            return Ok(v);
        }
        let constant = if token.starts_with('[') {
            Constant::ints(&list(token)?)
        } else {
            let x: f64 = token.parse().map_err(|_| format!("`{token}` is no name and no number"))?;
            Constant::floats([x], &[])
        };
        let v = self.graph.add_constant(format!("{token} #{}", self.graph.node_count()), constant);
        let v = v.map_err(|e| e.to_string())?;
        self.graph.know_contents(v);
        Ok(v)
    }

    /// The nodes, in topological order.
    pub(crate) fn ops(&self) -> Vec<relayout_ir::graph::NodeId> {
        let order = self.graph.order().unwrap();
        order.into_iter().filter(|&n| is_op(self.graph.node(n))).collect()
    }
}

fn is_op(node: &Node) -> bool {
    matches!(node.op, Op::Onnx(_))
}

/// `[1,2]`.
pub(crate) fn list(text: &str) -> Result<Vec<i64>, String> {
    let inner = text.strip_prefix('[').and_then(|rest| rest.strip_suffix(']'));
    let inner = inner.ok_or_else(|| format!("`{text}` is no list"))?;
    inner.split(',').filter(|x| !x.is_empty()).map(|x| x.parse().map_err(|_| format!("`{x}` is no number"))).collect()
}

fn attr(text: &str) -> Result<Attr, String> {
    if text.starts_with('[') {
        return Ok(Attr::Ints(list(text)?));
    }
    if let Ok(x) = text.parse::<i64>() {
        return Ok(Attr::Int(x));
    }
    Ok(text.parse::<f32>().map_or_else(|_| Attr::String(text.as_bytes().to_vec().into()), Attr::Float))
}
