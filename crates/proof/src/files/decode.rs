//! The decoder of ONNX files: messages, and what readers would read in more than one way.

use crate::error::Error;
use crate::files::model::{Attr, DeclaredDim, Function, Graph, Input, Model, Node};
use crate::files::wire::{Field, fields, fixeds, varints};
use bytes::Bytes;
use rustc_hash::FxHashSet;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::rc::Rc;

/// What a decoder needs beside the bytes.
pub(crate) struct Reader {
    /// Where files beside it are, if it is a file.
    pub(crate) folder: Option<PathBuf>,
    /// Files beside it, by name: those that were given or read.
    pub(crate) external: BTreeMap<String, Bytes>,
    pub(crate) file: String,
    /// How many graphs are around what is read.
    depth: usize,
    /// How many bytes more sparse constants may have with their zeros.
    pub(crate) sparse: usize,
}

/// Most bodies inside of each other.
const DEEPEST: usize = 64;

pub(crate) type Read<T> = Result<T, Error>;

impl Model {
    /// Reads a model. Data that it names is in `given` or in the folder, where it is mapped.
    pub(crate) fn decode(
        bytes: &Bytes,
        folder: Option<PathBuf>,
        given: BTreeMap<String, Bytes>,
        file: &str,
    ) -> Read<Model> {
        let mut reader = Reader { folder, external: given, file: file.to_owned(), depth: 0, sparse: Reader::SPARSE };
        let model = reader.model(bytes)?;
        Ok(Model { file: bytes.clone(), beside: reader.external, ..model })
    }
}

impl Reader {
    fn fields(&self, message: &Bytes) -> Read<Vec<(u32, Field)>> {
        fields(message).ok_or_else(|| self.damaged("a message"))
    }

    /// The fields of a message of which these stand once at most. Of several, some readers take the first, others the last, and others
    /// join them.
    pub(crate) fn with_single(&self, message: &Bytes, what: &str, single: &[u32]) -> Read<Vec<(u32, Field)>> {
        let fields = self.fields(message)?;
        for number in single {
            if fields.iter().filter(|(other, _)| other == number).count() > 1 {
                return Err(self.twice(&format!("field {number} of {what}")));
            }
        }
        Ok(fields)
    }

    fn twice(&self, what: &str) -> Error {
        Error::Unsupported { what: format!("{what} that stands twice in {}", self.file) }
    }

    pub(crate) fn damaged(&self, what: &str) -> Error {
        Error::Read { file: self.file.clone(), why: format!("{what} is damaged; it is not an ONNX model") }
    }

    fn model(&mut self, bytes: &Bytes) -> Read<Model> {
        let (mut model, mut about_blocks) = (Model::default(), 0);
        for (number, field) in self.with_single(bytes, "a model", &[1, 7])? {
            match number {
                1 => model.ir = field.number() as i64,
                7 => model.graph = Rc::new(self.graph(&field.bytes())?),
                8 => self.opset(&field.bytes(), &mut model.opsets)?,
                14 => {
                    let (key, value) = self.entry(&field.bytes())?;
                    if key == "relayout.block" {
                        about_blocks += 1;
                        model.block = value.parse().ok().filter(|block| matches!(block, 8 | 16));
                    }
                }
                25 => model.functions.push(Rc::new(self.function(&field.bytes())?)),
                _ => {}
            }
        }
        if about_blocks > 1 {
            return Err(self.twice("`relayout.block`"));
        }
        self.own_names(&model)?;
        Ok(model)
    }

    /// Functions of the model stand for no op that the checker knows by its name, and each has a name of its own: readers differ about
    /// which of both a node means.
    fn own_names(&self, model: &Model) -> Read<()> {
        for (at, function) in model.functions.iter().enumerate() {
            let name = format!("{}::{}", function.domain, function.name);
            if function.domain.is_empty() || function.domain.starts_with("com.microsoft") {
                let what = format!("the function `{name}` of the model, which has the name of an operator");
                return Err(Error::Unsupported { what });
            }
            let same = |other: &Rc<Function>| {
                (&other.domain, &other.name, &other.overload) == (&function.domain, &function.name, &function.overload)
            };
            if model.functions.iter().skip(at + 1).any(same) {
                return Err(self.twice(&format!("the function `{name}`")));
            }
        }
        Ok(())
    }

    fn opset(&self, bytes: &Bytes, opsets: &mut BTreeMap<String, i64>) -> Read<()> {
        let (mut domain, mut version) = (String::new(), 0);
        for (number, field) in self.with_single(bytes, "an operator set", &[1, 2])? {
            match number {
                1 => domain = field.text(),
                2 => version = field.number() as i64,
                _ => {}
            }
        }
        let domain = standard(domain);
        match opsets.insert(domain.clone(), version) {
            Some(other) if other != version => Err(self.twice(&format!("the operator set `{domain}`"))),
            _ => Ok(()),
        }
    }

    fn function(&mut self, bytes: &Bytes) -> Read<Function> {
        let mut function = Function::default();
        for (number, field) in self.with_single(bytes, "a function", &[1, 10, 13])? {
            match number {
                1 => function.name = field.text(),
                4 => function.inputs.push(field.text()),
                5 => function.outputs.push(field.text()),
                7 => function.nodes.push(self.node(&field.bytes())?),
                9 => self.opset(&field.bytes(), &mut function.opsets)?,
                10 => function.domain = standard(field.text()),
                11 => function.defaults.push(self.attribute(&field.bytes())?),
                13 => function.overload = field.text(),
                _ => {}
            }
        }
        Ok(function)
    }

    fn graph(&mut self, bytes: &Bytes) -> Read<Graph> {
        if self.depth > DEEPEST {
            return Err(Error::Unsupported { what: format!("bodies that are nested more than {DEEPEST} deep") });
        }
        self.depth += 1;
        let (mut graph, mut named) = (Graph::default(), FxHashSet::default());
        for (number, field) in self.fields(bytes)? {
            match number {
                1 => graph.nodes.push(self.node(&field.bytes())?),
                5 | 15 => {
                    let bytes = field.bytes();
                    let (name, tensor) = if number == 5 { self.tensor(&bytes)? } else { self.sparse(&bytes)? };
                    if !named.insert(name.clone()) {
                        return Err(self.twice(&format!("the initializer `{name}`")));
                    }
                    graph.initializers.push((name, tensor));
                }
                11 => graph.inputs.push(self.input(&field.bytes())?),
                12 => {
                    let output = self.input(&field.bytes())?;
                    graph.outputs.push(output.name.clone());
                    graph.declared.push(output);
                }
                _ => {}
            }
        }
        self.depth -= 1;
        Ok(graph)
    }

    fn node(&mut self, bytes: &Bytes) -> Read<Node> {
        let mut node = Node::default();
        for (number, field) in self.with_single(bytes, "a node", &[3, 4, 7, 8])? {
            match number {
                1 => node.inputs.push(field.text()),
                2 => node.outputs.push(field.text()),
                3 => node.name = field.text(),
                4 => node.op = field.text(),
                5 => node.attrs.push(self.attribute(&field.bytes())?),
                7 => node.domain = standard(field.text()),
                8 => node.overload = field.text(),
                _ => {}
            }
        }
        for (at, (name, _)) in node.attrs.iter().enumerate() {
            if node.attrs.iter().skip(at + 1).any(|(other, _)| other == name) {
                return Err(self.twice(&format!("attribute `{name}` of a node {}", node.op)));
            }
        }
        Ok(node)
    }

    fn attribute(&mut self, bytes: &Bytes) -> Read<(String, Attr)> {
        let (mut name, mut kind, mut refers) = (String::new(), 0, String::new());
        let (mut float, mut int, mut text, mut texts) = (0f32, 0, Vec::new(), Vec::new());
        let (mut tensor, mut graph) = (None, None);
        let (mut floats, mut ints) = (Vec::new(), Vec::new());
        for (number, field) in self.with_single(bytes, "an attribute", &[1, 2, 3, 4, 5, 6, 20, 21])? {
            match number {
                1 => name = field.text(),
                2 => float = f32::from_bits(field.number() as u32),
                3 => int = field.number() as i64,
                4 => text = field.bytes().to_vec(),
                5 => tensor = Some(self.tensor(&field.bytes())?.1),
                6 => graph = Some(Rc::new(self.graph(&field.bytes())?)),
                7 => floats.extend(fixeds::<4>(field).chunks_exact(4).map(le_f32)),
                8 => ints.extend(varints(field).ok_or_else(|| self.damaged("a list"))?.into_iter().map(|n| n as i64)),
                9 => texts.push(field.bytes().to_vec()),
                20 => kind = field.number(),
                21 => refers = field.text(),
                _ => {}
            }
        }
        if !refers.is_empty() {
            return Ok((name, Attr::Ref(refers)));
        }
        let attr = match (kind, tensor, graph) {
            (1, ..) => Attr::Float(float),
            (2, ..) => Attr::Int(int),
            (3, ..) => Attr::Text(text),
            (4, Some(tensor), _) => Attr::Tensor(tensor),
            (5, _, Some(graph)) => Attr::Graph(graph),
            (6, ..) => Attr::Floats(floats),
            (7, ..) => Attr::Ints(ints),
            (8, ..) => Attr::Texts(texts),
            (9, ..) => Attr::Unread('T', bytes.clone()),
            (10, ..) => Attr::Unread('G', bytes.clone()),
            (11, ..) => Attr::Unread('x', bytes.clone()),
            (12, ..) => Attr::Unread('X', bytes.clone()),
            (13, ..) => Attr::Unread('p', bytes.clone()),
            (14, ..) => Attr::Unread('P', bytes.clone()),
            _ => Attr::Unread('?', bytes.clone()),
        };
        Ok((name, attr))
    }

    fn input(&self, bytes: &Bytes) -> Read<Input> {
        let mut input = Input::default();
        for (number, field) in self.with_single(bytes, "an input", &[1, 2])? {
            match number {
                1 => input.name = field.text(),
                2 => self.declared(&field.bytes(), &mut input)?,
                _ => {}
            }
        }
        Ok(input)
    }

    fn declared(&self, bytes: &Bytes, input: &mut Input) -> Read<()> {
        for (number, field) in self.with_single(bytes, "a type", &[1])? {
            if number != 1 {
                input.other = bytes.clone();
                continue;
            }
            for (number, field) in self.with_single(&field.bytes(), "a type of tensors", &[1, 2])? {
                match number {
                    1 => input.dtype = dtype(field.number()),
                    2 => input.dims = Some(self.dims(&field.bytes())?),
                    _ => {}
                }
            }
        }
        Ok(())
    }

    fn dims(&self, bytes: &Bytes) -> Read<Vec<DeclaredDim>> {
        let mut dims = Vec::new();
        for (number, field) in self.fields(bytes)? {
            if number != 1 {
                continue;
            }
            let mut dim = DeclaredDim::Unknown;
            for (number, field) in self.with_single(&field.bytes(), "a dim", &[1, 2])? {
                match number {
                    1 => dim = DeclaredDim::Known(field.number() as i64),
                    2 => dim = DeclaredDim::Symbol(field.text()),
                    _ => {}
                }
            }
            dims.push(dim);
        }
        Ok(dims)
    }

    pub(crate) fn entry(&self, bytes: &Bytes) -> Read<(String, String)> {
        let (mut key, mut value) = (String::new(), String::new());
        for (number, field) in self.fields(bytes)? {
            match number {
                1 => key = field.text(),
                2 => value = field.text(),
                _ => {}
            }
        }
        Ok((key, value))
    }
}

/// The standard domain has two names.
fn standard(domain: String) -> String {
    if domain == "ai.onnx" { String::new() } else { domain }
}

/// A type of elements; 0, which is none, for what no type has as its number.
pub(crate) fn dtype(number: u64) -> u8 {
    u8::try_from(number).unwrap_or_default()
}

fn le_f32(bytes: &[u8]) -> f32 {
    f32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]])
}
