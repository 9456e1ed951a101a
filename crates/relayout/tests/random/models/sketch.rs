//! A model under construction: values with their types at the sizes that the test runs, nodes and constants.

use crate::dice::Dice;
use crate::models::recipe::Recipe;
use crate::op_cases::case::{encoded, initializer};
use prost::Message;
use relayout_onnx::proto::{
    AttributeProto, GraphProto, ModelProto, NodeProto, OperatorSetIdProto, TensorProto, ValueInfoProto,
    tensor_proto::DataType,
};
use relayout_verify::{Data, Tensor};
use std::collections::BTreeMap;

pub(crate) use crate::proto::{body, float, info, int, ints, list_node, node, text};
use crate::proto::{constant_node, tensor};

/// Most elements of a value: samples must run in a moment.
const MOST_ELEMENTS: i64 = 4096;
/// Most axes of a value.
const MOST_AXES: usize = 6;
/// Most factors in a value: products must stay far from infinity.
pub(crate) const MOST_FACTORS: u32 = 12;

/// Types of which ONNX Runtime moves, joins and cuts tensors, whatever the op.
const MOVED: &[DataType] = &[DataType::Float, DataType::Int32, DataType::Int64, DataType::Bool, DataType::Uint8];

/// A value that ops may read.
#[derive(Clone, Debug)]
pub(crate) struct Value {
    pub(crate) name: String,
    pub(crate) dtype: DataType,
    /// Extents at the sizes of the run.
    pub(crate) shape: Vec<i64>,
    /// Moved, compared and rounded only: equal bit by bit whatever the layout.
    pub(crate) exact: bool,
    /// How many random numbers are multiplied in an element, at most.
    pub(crate) factors: u32,
    /// Read by a node.
    pub(crate) read: bool,
    /// A constant; no output.
    pub(crate) constant: bool,
}

impl Value {
    pub(crate) fn rank(&self) -> usize {
        self.shape.len()
    }

    pub(crate) fn elements(&self) -> i64 {
        self.shape.iter().product()
    }
}

/// Index of a value.
pub(crate) type Id = usize;

/// A model that grows.
pub(crate) struct Sketch {
    pub(crate) opset: i64,
    pub(crate) values: Vec<Value>,
    /// The operand that the next op has to take first.
    pub(crate) forced: Option<Id>,
    /// What the model is fed beside its random inputs.
    pub(crate) feeds: Vec<Tensor>,
    /// Values that are inputs of the model, and no outputs.
    given: Vec<Id>,
    inputs: Vec<ValueInfoProto>,
    nodes: Vec<NodeProto>,
    initializers: Vec<TensorProto>,
    names: usize,
}

/// A finished model.
pub(crate) struct Sample {
    pub(crate) bytes: Vec<u8>,
    /// No op of it rounds in an order that a layout may change.
    pub(crate) exact: bool,
    /// Sizes of symbolic dims in the run.
    pub(crate) dims: BTreeMap<String, i64>,
    /// Inputs that are not random.
    pub(crate) feeds: Vec<Tensor>,
    /// The model.
    pub(crate) proto: ModelProto,
    /// Shapes of the values that nodes make and of the inputs, by name, at the sizes of the run.
    pub(crate) shapes: BTreeMap<String, Vec<i64>>,
}

impl Sketch {
    /// A name that is not taken.
    pub(crate) fn name(&mut self, base: &str) -> String {
        self.names += 1;
        format!("{base}{}", self.names)
    }

    /// A value that suits, most often the last.
    pub(crate) fn choose(&mut self, dice: &mut Dice<'_>, suits: impl Fn(&Value) -> bool) -> Option<Id> {
        if let Some(forced) = self.forced.take() {
            return suits(&self.values[forced]).then_some(forced);
        }
        let fitting: Vec<Id> = (0..self.values.len()).filter(|&i| suits(&self.values[i])).collect();
        let last = *fitting.last()?;
        Some(if dice.below(3) < 2 { last } else { fitting[dice.below(fitting.len())] })
    }

    /// A floating-point value of at least this rank.
    pub(crate) fn float(&mut self, dice: &mut Dice<'_>, rank: usize) -> Option<Id> {
        self.choose(dice, |v| v.dtype == DataType::Float && v.rank() >= rank && !v.constant)
    }

    /// A value of any type and at least this rank, now and then a constant.
    pub(crate) fn any(&mut self, dice: &mut Dice<'_>, rank: usize) -> Option<Id> {
        let constants = dice.once_in(6);
        self.choose(dice, |v| v.rank() >= rank && (constants || !v.constant) && MOVED.contains(&v.dtype))
    }

    /// A floating-point constant, kept for later ops to share.
    pub(crate) fn constant(&mut self, dice: &mut Dice<'_>, shape: &[i64]) -> Id {
        let name = self.name("c");
        let n = shape.iter().product::<i64>();
        let salt = dice.below(97) as i64;
        let data: Vec<u8> =
            (0..n).flat_map(|i| (((i * 37 + salt * 11) % 29 - 14) as f32 / 16.0 + 0.03125).to_le_bytes()).collect();
        let tensor = tensor(&name, DataType::Float, shape, data);
        let as_node = dice.once_in(4);
        self.add_tensor(tensor, as_node);
        self.values.push(Value {
            name,
            dtype: DataType::Float,
            shape: shape.to_vec(),
            exact: true,
            factors: 0,
            read: true,
            constant: true,
        });
        self.values.len() - 1
    }

    fn add_tensor(&mut self, tensor: TensorProto, as_node: bool) {
        if !as_node {
            self.initializers.push(tensor);
            return;
        }
        self.push(constant_node(tensor));
    }

    /// The name of a constant list of integers.
    pub(crate) fn ints(&mut self, list: &[i64]) -> String {
        let name = self.name("i");
        let data = list.iter().flat_map(|v| v.to_le_bytes()).collect();
        self.add_tensor(tensor(&name, DataType::Int64, &[list.len() as i64], data), list.len() % 3 == 2);
        name
    }

    /// The name of a constant of this type; `shape` and `data` agree.
    pub(crate) fn raw(&mut self, dtype: DataType, shape: &[i64], data: Vec<u8>) -> String {
        let name = self.name("r");
        self.add_tensor(tensor(&name, dtype, shape, data), false);
        name
    }

    /// The same, made by a node.
    pub(crate) fn constant_of(&mut self, dtype: DataType, shape: &[i64], data: Vec<u8>) -> String {
        let name = self.name("r");
        self.add_tensor(tensor(&name, dtype, shape, data), true);
        name
    }

    /// The name of a value, which is read by this.
    pub(crate) fn read(&mut self, id: Id) -> String {
        self.values[id].read = true;
        self.values[id].name.clone()
    }

    /// Adds a node; the names of its results.
    pub(crate) fn push_node(
        &mut self,
        op: &str,
        inputs: Vec<String>,
        outputs: Vec<String>,
        attributes: Vec<AttributeProto>,
    ) {
        self.push(node(op, inputs, outputs, attributes));
    }

    /// Adds a node of any domain; two in three get a name.
    pub(crate) fn push(&mut self, node: NodeProto) {
        let op = node.op_type.as_deref().unwrap_or_default();
        let name = (self.nodes.len() % 3 != 2).then(|| format!("{op}_{}", self.nodes.len()));
        self.nodes.push(NodeProto { name, ..node });
    }

    /// Adds an input that is fed this tensor.
    pub(crate) fn fed(&mut self, tensor: &Tensor) -> Id {
        let name = self.name("d");
        let tensor = Tensor::new(name.clone(), tensor.shape(), tensor.data().clone()).expect("as many elements");
        let dtype = element_type(tensor.data());
        self.inputs.push(info(&name, dtype, tensor.shape(), &BTreeMap::new(), true));
        self.given.push(self.values.len());
        let shape = tensor.shape().to_vec();
        self.feeds.push(tensor);
        self.values.push(Value { name, dtype, shape, exact: true, factors: 1, read: true, constant: false });
        self.values.len() - 1
    }

    /// The name of a constant that has these elements.
    pub(crate) fn known(&mut self, tensor: &Tensor, as_node: bool) -> String {
        let name = self.name("k");
        self.add_tensor(TensorProto { name: Some(name.clone()), ..initializer(tensor) }, as_node);
        name
    }

    /// A node without a value of its own: the name of its result.
    pub(crate) fn helper(&mut self, op: &str, inputs: Vec<String>, attributes: Vec<AttributeProto>) -> String {
        let name = self.name("h");
        self.push_node(op, inputs, vec![name.clone()], attributes);
        name
    }

    /// Whether a value of this shape may be made.
    pub(crate) fn fits(shape: &[i64]) -> bool {
        shape.len() <= MOST_AXES && shape.iter().all(|&d| d > 0) && shape.iter().product::<i64>() <= MOST_ELEMENTS
    }

    /// Adds an op with these results (type and shape each) if they fit. It reads `of`, whose exactness and size it inherits;
    /// `exact` says whether the op keeps the former, `factors` what it adds to the latter.
    pub(crate) fn op(
        &mut self,
        op: &str,
        of: &[Id],
        inputs: Vec<String>,
        results: &[(DataType, Vec<i64>)],
        effect: Effect,
        attributes: Vec<AttributeProto>,
    ) -> Option<Id> {
        let exact = effect.exact && of.iter().all(|&i| self.values[i].exact);
        let most = of.iter().map(|&i| self.values[i].factors).max().unwrap_or(0);
        let sum: u32 = of.iter().map(|&i| self.values[i].factors.max(1)).sum();
        let factors = if effect.multiplies { sum + 1 } else { most };
        if factors > MOST_FACTORS || !results.iter().all(|(_, shape)| Sketch::fits(shape)) {
            return None;
        }
        for &i in of {
            self.values[i].read = true;
        }
        let names: Vec<String> = results.iter().map(|_| self.name("v")).collect();
        self.push_node(op, inputs, names.clone(), attributes);
        let first = self.values.len();
        for (name, (dtype, shape)) in names.into_iter().zip(results) {
            let (dtype, shape) = (*dtype, shape.clone());
            self.values.push(Value { name, dtype, shape, exact, factors, read: false, constant: false });
        }
        Some(first)
    }

    /// An op of one operand and one result of the same type.
    pub(crate) fn simple(
        &mut self,
        op: &str,
        x: Id,
        more: &[String],
        shape: Vec<i64>,
        effect: Effect,
        attributes: Vec<AttributeProto>,
    ) -> Option<Id> {
        let mut inputs = vec![self.values[x].name.clone()];
        inputs.extend(more.iter().cloned());
        let dtype = self.values[x].dtype;
        self.op(op, &[x], inputs, &[(dtype, shape)], effect, attributes)
    }
}

/// The type of these elements.
pub(crate) fn element_type(data: &Data) -> DataType {
    DataType::try_from(encoded(data).0).expect("the types of elements are known")
}

/// What an op does to the numbers.
#[derive(Clone, Copy)]
pub(crate) struct Effect {
    exact: bool,
    multiplies: bool,
}

/// Moves, compares, or rounds each element by itself.
pub(crate) const EXACT: Effect = Effect { exact: true, multiplies: false };
/// Multiplies, each element by itself.
pub(crate) const PRODUCT: Effect = Effect { exact: true, multiplies: true };
/// Rounds in an order that a layout may change.
pub(crate) const ROUNDS: Effect = Effect { exact: false, multiplies: false };
/// Sums of products.
pub(crate) const CONTRACTS: Effect = Effect { exact: false, multiplies: true };

/// The model of a recipe.
pub(crate) fn sample(recipe: &Recipe) -> Sample {
    let mut sketch = Sketch {
        opset: recipe.opset,
        values: Vec::new(),
        forced: None,
        feeds: Vec::new(),
        given: Vec::new(),
        inputs: Vec::new(),
        nodes: Vec::new(),
        initializers: Vec::new(),
        names: 0,
    };
    let mut dims = BTreeMap::new();
    for (k, shape) in recipe.inputs.iter().enumerate() {
        let mut shape = shape.clone();
        let mut symbols = BTreeMap::new();
        let symbolic = k == 0 && !shape.is_empty();
        for (&(axis, size), symbol) in recipe.symbols.iter().zip(["N", "L", "M"]).filter(|_| symbolic) {
            let axis = usize::from(axis) % shape.len();
            shape[axis] = size;
            symbols.insert(axis, symbol);
        }
        dims.extend(symbols.iter().map(|(&axis, &symbol)| (symbol.to_owned(), shape[axis])));
        let name = format!("x{k}");
        sketch.inputs.push(info(&name, DataType::Float, &shape, &symbols, true));
        sketch.given.push(sketch.values.len());
        sketch.values.push(Value {
            name,
            dtype: DataType::Float,
            shape,
            exact: true,
            factors: 1,
            read: true,
            constant: false,
        });
    }
    for step in &recipe.steps {
        sketch.forced = None;
        let _ = step.play(&mut sketch, &mut Dice::of(&step.choices));
    }
    finish(recipe, sketch, dims)
}

fn finish(recipe: &Recipe, mut sketch: Sketch, dims: BTreeMap<String, i64>) -> Sample {
    let made = |i: &Id| !sketch.values[*i].constant && !sketch.given.contains(i);
    let made: Vec<Id> = (0..sketch.values.len()).filter(made).collect();
    let leaves: Vec<Id> = made.iter().copied().filter(|&i| !sketch.values[i].read).collect();
    // Now and then a value that nobody reads stays one: a dead node of the input.
    let dead = recipe.outputs.first().copied().unwrap_or(0) % 4 == 3 && leaves.len() > 1;
    let mut outputs: Vec<Id> = leaves.iter().copied().skip(usize::from(dead)).collect();
    for &pick in &recipe.outputs {
        let Some(&v) = made.get(usize::from(pick) % made.len().max(1)) else { continue };
        let stays_dead = dead && v == leaves[0];
        if !outputs.contains(&v) && !stays_dead {
            outputs.push(v);
        }
    }
    if outputs.is_empty() {
        let name = sketch.read(0);
        let (dtype, shape) = (sketch.values[0].dtype, sketch.values[0].shape.clone());
        outputs.extend(sketch.op("Identity", &[0], vec![name], &[(dtype, shape)], EXACT, vec![]));
    }
    let said = dims.is_empty();
    let old = recipe.old_ir;
    let mut inputs = std::mem::take(&mut sketch.inputs);
    if old {
        inputs.extend(sketch.initializers.iter().map(|t| {
            let dtype = DataType::try_from(t.data_type.unwrap_or(0)).expect("a known type");
            info(t.name.as_deref().unwrap_or_default(), dtype, &t.dims, &BTreeMap::new(), true)
        }));
    }
    // Declared types of values in between: they have to follow the layouts.
    let declared = made.iter().filter(|v| said && *v % 2 == 0 && !outputs.contains(v)).map(|&v| &sketch.values[v]);
    let declared = declared.map(|v| info(&v.name, v.dtype, &v.shape, &BTreeMap::new(), true)).collect();
    let outcome: Vec<&Value> = outputs.iter().map(|&i| &sketch.values[i]).collect();
    let graph = GraphProto {
        name: Some("random".into()),
        input: inputs,
        output: outcome.iter().map(|v| info(&v.name, v.dtype, &v.shape, &BTreeMap::new(), said)).collect(),
        value_info: declared,
        node: sketch.nodes,
        initializer: sketch.initializers,
        ..GraphProto::default()
    };
    let exact = outcome.iter().all(|v| v.exact);
    let own = graph.node.iter().filter_map(|n| n.domain.clone()).filter(|domain| !domain.is_empty());
    let mut domains: Vec<String> = own.collect();
    domains.sort();
    domains.dedup();
    let set = |domain: Option<String>, version| OperatorSetIdProto { domain, version: Some(version) };
    let others = domains.into_iter().map(|domain| set(Some(domain), 1));
    let proto = ModelProto {
        ir_version: Some(if old { 3 } else { 8 }),
        opset_import: std::iter::once(set(None, recipe.opset)).chain(others).collect(),
        graph: Some(graph),
        ..ModelProto::default()
    };
    let shapes = sketch.values.iter().filter(|v| !v.constant).map(|v| (v.name.clone(), v.shape.clone())).collect();
    Sample { bytes: proto.encode_to_vec(), exact, dims, feeds: sketch.feeds, proto, shapes }
}
