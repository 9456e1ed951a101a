//! A compiler with a representation and kernels of its own: it describes its program, says what its kernels cost, gets a plan in
//! its own ids, carries it out on its program, and runs both.
//!
//!     cargo run --example foreign_ir -p relayout

use relayout::ir::attr::Attr;
use relayout::ir::constant::Constant;
use relayout::ir::dim::Dim;
use relayout::ir::dtype::DType;
use relayout::ir::form::KernelLayouts;
use relayout::ir::graph::OpName;
use relayout::ir::layout::Layout;
use relayout::ir::text::AttrJson;
use relayout::plan::{Action, GraphPlan, Ids, NodePlan, OperandPlan};
use relayout::target::Cost;
use relayout::target::{Become, Capabilities, MoveKind, MoveQuery, NodeQuery, Offer, OpQuery};
use relayout::{GraphBuilder, Options, Target, plan_graph};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::error::Error;

type Result<T> = std::result::Result<T, Box<dyn Error>>;

// ---- The program of the compiler: tensors and instructions by number, buffers dense and row-major.

/// A tensor of a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub(crate) struct TensorId(usize);

/// An instruction of a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub(crate) struct InstrId(usize);

#[derive(Clone, Debug)]
struct Tensor {
    shape: Vec<usize>,
    /// Contents of weights.
    data: Option<Vec<f32>>,
}

#[derive(Clone, Debug, PartialEq)]
enum What {
    /// Image N C H W, weights O I H W; three by three, padded by one.
    Conv,
    /// Image N H W C, weights O H W I: what the hardware is good at.
    ConvNhwc,
    Relu,
    /// Shapes are aligned at their end and repeated.
    Add,
    Concat {
        axis: usize,
    },
    Transpose {
        perm: Vec<usize>,
    },
    Reshape,
}

#[derive(Clone, Debug)]
struct Instr {
    what: What,
    reads: Vec<TensorId>,
    writes: TensorId,
}

/// Where a tensor lies that has no buffer of its own: a part of another one's, as long as nobody reads it but through that.
#[derive(Clone, Debug)]
struct Home {
    within: TensorId,
    offset: i64,
    strides: Vec<i64>,
}

/// A program.
#[derive(Clone, Debug, Default)]
pub(crate) struct Program {
    tensors: Vec<Tensor>,
    instrs: Vec<Instr>,
    inputs: Vec<TensorId>,
    outputs: Vec<TensorId>,
    homes: BTreeMap<TensorId, Home>,
}

impl Program {
    fn tensor(&mut self, shape: &[usize], data: Option<Vec<f32>>) -> TensorId {
        self.tensors.push(Tensor { shape: shape.to_vec(), data });
        TensorId(self.tensors.len() - 1)
    }

    /// Weights that are small whole numbers, so that sums in any order are equal.
    fn weights(&mut self, shape: &[usize]) -> TensorId {
        let data = (0..shape.iter().product()).map(|i: usize| ((i * 7 + shape.len()) % 5) as f32 - 2.0).collect();
        self.tensor(shape, Some(data))
    }

    fn emit(&mut self, what: What, reads: &[TensorId], shape: &[usize]) -> TensorId {
        let writes = self.tensor(shape, None);
        self.instrs.push(Instr { what, reads: reads.to_vec(), writes });
        writes
    }

    /// Whether a tensor is written by an instruction and is free to be written anywhere: it has no readers yet and no home.
    fn is_free(&self, t: TensorId) -> bool {
        self.instrs.iter().any(|i| i.writes == t)
            && !self.instrs.iter().any(|i| i.reads.contains(&t))
            && !self.homes.contains_key(&t)
    }

    /// How many instructions do nothing but put tensors one behind the other.
    fn concatenations(&self) -> usize {
        self.instrs.iter().filter(|i| matches!(i.what, What::Concat { .. })).count()
    }

    /// How many instructions do nothing but move data.
    fn moves(&self) -> usize {
        self.instrs.iter().filter(|i| matches!(i.what, What::Transpose { .. })).count()
    }
}

/// An image comes channels-last, goes through channels-first convolutions, and is wanted both ways.
fn program() -> Program {
    let mut p = Program::default();
    let image = p.tensor(&[1, 8, 6, 3], None);
    p.inputs.push(image);
    let (w1, bias, w2, w3) =
        (p.weights(&[8, 3, 3, 3]), p.weights(&[8, 1, 1]), p.weights(&[4, 8, 3, 3]), p.weights(&[2, 8, 3, 3]));
    let x = p.emit(What::Transpose { perm: vec![0, 3, 1, 2] }, &[image], &[1, 3, 8, 6]);
    let x = p.emit(What::Conv, &[x, w1], &[1, 8, 8, 6]);
    let x = p.emit(What::Add, &[x, bias], &[1, 8, 8, 6]);
    let x = p.emit(What::Relu, &[x], &[1, 8, 8, 6]);
    let a = p.emit(What::Conv, &[x, w2], &[1, 4, 8, 6]);
    let b = p.emit(What::Conv, &[x, w3], &[1, 2, 8, 6]);
    let both = p.emit(What::Concat { axis: 1 }, &[a, b], &[1, 6, 8, 6]);
    let last = p.emit(What::Transpose { perm: vec![0, 2, 3, 1] }, &[both], &[1, 8, 6, 6]);
    p.outputs = vec![both, last];
    p
}

// ---- What the compiler tells: its program as a graph, its kernels as a target.

/// The program as a graph, with the compiler's ids for everything in it.
fn describe(p: &Program) -> Result<(relayout::ir::graph::Graph, Ids<TensorId, InstrId>)> {
    let mut b = GraphBuilder::new("foreign");
    let mut ids = Ids::new();
    let mut values = vec![None; p.tensors.len()];
    for (t, tensor) in p.tensors.iter().enumerate() {
        let dims: Vec<i64> = tensor.shape.iter().map(|&n| i64::try_from(n)).collect::<std::result::Result<_, _>>()?;
        let name = format!("t{t}");
        let value = match &tensor.data {
            Some(data) => {
                let bytes: Vec<u8> = data.iter().flat_map(|x| x.to_le_bytes()).collect();
                b.constant(&name, Constant::inline(DType::F32, dims, bytes.into()))?
            }
            None if p.inputs.contains(&TensorId(t)) => b.input(&name, DType::F32, dims.into_iter().map(Dim::from))?,
            None => continue,
        };
        ids.value(value, TensorId(t));
        values[t] = Some(value);
    }
    for (i, instr) in p.instrs.iter().enumerate() {
        let reads = instr.reads.iter().map(|t| values[t.0]).collect::<Option<Vec<_>>>().ok_or("read before written")?;
        let (op, attrs) = match &instr.what {
            What::Conv => ("Conv", vec![("pads", Attr::Ints(vec![1, 1, 1, 1]))]),
            What::Relu => ("Relu", vec![]),
            What::Add => ("Add", vec![]),
            What::Concat { axis } => ("Concat", vec![("axis", Attr::Int(i64::try_from(*axis)?))]),
            What::Transpose { perm } => {
                ("Transpose", vec![("perm", Attr::Ints(perm.iter().map(|&p| p as i64).collect()))])
            }
            What::ConvNhwc | What::Reshape => return Err("a program that is planned already".into()),
        };
        let value = b.op(op, &format!("t{}", instr.writes.0), &reads, attrs)?;
        ids.value(value, instr.writes);
        ids.node(b.producer(value), InstrId(i));
        values[instr.writes.0] = Some(value);
    }
    for t in &p.outputs {
        b.output(values[t.0].ok_or("an output that nothing writes")?)?;
    }
    Ok((b.finish(), ids))
}

/// Hardware whose convolutions are four times as fast channels-last.
struct Npu;

impl Npu {
    /// Multiplications of a convolution.
    fn products(query: &NodeQuery<'_>) -> Option<u64> {
        let node = query.graph.node(query.node);
        if node.onnx() != Some("Conv") {
            return None;
        }
        let weights = query.sizes.shape(query.graph, node.inputs.get(1).copied().flatten()?)?;
        let result = query.sizes.shape(query.graph, node.outputs.first().copied().flatten()?)?;
        let places: u64 = result.iter().skip(2).product();
        Some(weights.iter().product::<u64>() * places)
    }
}

impl Target for Npu {
    fn name(&self) -> &'static str {
        "npu"
    }

    fn about(&self) -> &'static str {
        "an accelerator with channels-last convolutions"
    }

    fn layouts(&self) -> &'static str {
        "any order; channels-last at convolutions"
    }

    fn dialect(&self) -> &'static str {
        "the instructions of the compiler"
    }

    fn cost_source(&self) -> &'static str {
        "made up for this example"
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities {
            standard: false,
            decides_again: false,
            checks_sizes: false,
            may_move_more: true,
            ..Capabilities::STANDARD
        }
    }

    /// The other instructions run on dense buffers of any order.
    fn op_cost(&self, query: &OpQuery<'_>) -> Option<Cost> {
        let whole = query.ins.iter().chain(query.outs).all(|layout| layout.as_permutation().is_some());
        whole.then_some(Cost::ZERO)
    }

    fn plain_cost(&self, query: &NodeQuery<'_>) -> Cost {
        Npu::products(query).map_or(Cost::ZERO, |n| Cost::new(4 * n))
    }

    fn offers(&self, query: &NodeQuery<'_>) -> Vec<Offer> {
        let weights = query.graph.node(query.node).inputs.get(1).copied().flatten();
        let (Some(products), Some(weights)) = (Npu::products(query), weights) else { return Vec::new() };
        if !(query.is_constant)(weights) {
            return Vec::new();
        }
        let channels_last = Layout::permutation(&[0, 2, 3, 1]).ok();
        let layouts =
            KernelLayouts { ins: vec![channels_last.clone(), channels_last.clone()], outs: vec![channels_last] };
        let op = OpName { domain: "npu".to_owned(), name: "ConvNhwc".to_owned(), overload: String::new() };
        let becomes = Some(Become { op, opset: 1, operands: None, set: Vec::new(), remove: Vec::new() });
        vec![Offer { form: "conv_nhwc", layouts, cost: Cost::new(products), becomes, adds_zeros: false }]
    }

    fn move_cost(&self, query: &MoveQuery<'_>) -> Option<Cost> {
        let whole = query.from.as_permutation().is_some() && query.to.as_permutation().is_some();
        match query.kind {
            MoveKind::View => Some(self.view_cost()),
            MoveKind::Permute => whole.then(|| Cost::new(100 + query.bytes / 4)),
        }
    }

    fn view_cost(&self) -> Cost {
        Cost::new(10)
    }

    fn pass_cost(&self, bytes: u64) -> Cost {
        Cost::new(10 + bytes / 4)
    }
}

// ---- Carrying out the plan.

/// A program under way: the tensors in which each value of the old one is to be had.
struct Applied<'p> {
    old: &'p Program,
    plan: &'p GraphPlan<TensorId, InstrId>,
    new: Program,
    places: Vec<(TensorId, Layout, TensorId)>,
}

fn sizes(shape: &[Dim]) -> Result<Vec<usize>> {
    shape.iter().map(|d| Ok(usize::try_from(d.as_const().ok_or("a size that is not known")?)?)).collect()
}

/// Place `i` of `to` is place `perm[i]` of `from`.
fn permutation(from: &Layout, to: &Layout) -> Result<Vec<usize>> {
    let (from, to) = (from.as_permutation(), to.as_permutation());
    let (from, to) = from.zip(to).ok_or("a layout that this compiler does not have")?;
    to.iter().map(|axis| from.iter().position(|a| a == axis).ok_or_else(|| "other axes".into())).collect()
}

impl Applied<'_> {
    /// The tensor that has the value in this layout; a copy is made when it is first asked for.
    fn get(&mut self, value: TensorId, layout: &Layout) -> Result<TensorId> {
        if let Some((_, _, there)) = self.places.iter().find(|(v, l, _)| *v == value && l == layout) {
            return Ok(*there);
        }
        let copy = self.plan.relayouts.iter().find(|r| r.value == value && r.to == *layout);
        let copy = copy.ok_or_else(|| format!("nobody makes {value:?} as {layout}"))?;
        let from = self.get(value, &copy.from)?;
        let perm = permutation(&copy.from, &copy.to)?;
        let there = self.new.emit(What::Transpose { perm }, &[from], &sizes(&copy.shape)?);
        self.places.push((value, layout.clone(), there));
        Ok(there)
    }

    /// Inputs as the plan has them, weights as they are and repacked.
    fn begin(&mut self) -> Result<()> {
        for (t, tensor) in self.old.tensors.iter().enumerate() {
            let id = TensorId(t);
            let planned = self.plan.values.iter().find(|v| v.value == id).ok_or("a tensor without a plan")?;
            if tensor.data.is_none() && !self.old.inputs.contains(&id) {
                continue;
            }
            let new = self.new.tensor(&sizes(&planned.shape)?, tensor.data.clone());
            self.places.push((id, planned.layout.clone(), new));
            if self.old.inputs.contains(&id) {
                self.new.inputs.push(new);
            }
        }
        for constant in &self.plan.constants {
            let data = self.old.tensors[constant.value.0].data.as_ref().ok_or("no weights")?;
            let bound = constant.to.bind(&constant.extents)?;
            let plain = Layout::row_major(constant.extents.len()).bind(&constant.extents)?;
            let element =
                |slot| bound.coordinate(slot).and_then(|at| plain.offset(&at)).map_or(0.0, |i| data[i as usize]);
            let repacked = (0..bound.storage_elems()).map(element).collect();
            let new = self.new.tensor(&sizes(&constant.shape)?, Some(repacked));
            self.places.push((constant.value, constant.to.clone(), new));
        }
        Ok(())
    }

    /// Whether the operands of a concatenation can be written where they are wanted: each is a window of the result, and
    /// nobody else reads it.
    fn is_woven(&self, node: &NodePlan<TensorId, InstrId>, reads: &[TensorId]) -> bool {
        let uses = |t: &Option<OperandPlan<TensorId>>| {
            let value = t.as_ref().map(|t| t.value);
            let readers = self.plan.nodes.iter().flat_map(|n| n.operands.iter().flatten());
            readers.filter(|o| Some(o.value) == value).count()
                + self.plan.outputs.iter().filter(|o| Some(o.value) == value).count()
        };
        node.windows.len() == reads.len()
            && reads.iter().all(|t| self.new.is_free(*t))
            && node.operands.iter().all(|t| uses(t) == 1)
    }

    /// The result of a concatenation that its operands write.
    fn weave(&mut self, node: &NodePlan<TensorId, InstrId>, reads: &[TensorId], shape: &[usize]) -> TensorId {
        let within = self.new.tensor(shape, None);
        for window in &node.windows {
            let home = Home { within, offset: window.offset, strides: window.strides.clone() };
            self.new.homes.insert(reads[window.slot], home);
        }
        within
    }

    fn instructions(&mut self) -> Result<()> {
        let plan = self.plan;
        for node in &plan.nodes {
            let old = &self.old.instrs[node.node.0];
            let mut reads = Vec::new();
            for operand in node.operands.iter().flatten() {
                let mut tensor = self.get(operand.value, &operand.layout)?;
                if let Some(shape) = &operand.shape {
                    tensor = self.new.emit(What::Reshape, &[tensor], &sizes(shape)?);
                }
                reads.push(tensor);
            }
            let result = plan.values.iter().find(|v| v.value == old.writes).ok_or("a result without a plan")?;
            let shape = sizes(&result.shape)?;
            let what = match &node.action {
                Action::Alias => {
                    self.places.push((old.writes, result.layout.clone(), reads[0]));
                    continue;
                }
                Action::Reshape { .. } => What::Reshape,
                Action::Move { from, to } => What::Transpose { perm: permutation(from, to)? },
                Action::Kernel { op } if op == "npu::ConvNhwc" => What::ConvNhwc,
                Action::Keep => match (old.what.clone(), node.attributes.get("axis")) {
                    (What::Concat { .. }, Some(AttrJson::Int(axis))) => What::Concat { axis: usize::try_from(*axis)? },
                    (what, _) => what,
                },
                other => return Err(format!("{other:?} is nothing that this compiler can do").into()),
            };
            let new = match what {
                What::Concat { .. } if self.is_woven(node, &reads) => self.weave(node, &reads, &shape),
                what => self.new.emit(what, &reads, &shape),
            };
            self.places.push((old.writes, result.layout.clone(), new));
        }
        for output in &plan.outputs {
            let layout = output.layout.as_ref().ok_or("an output of unknown rank")?;
            let tensor = self.get(output.value, layout)?;
            self.new.outputs.push(tensor);
        }
        Ok(())
    }
}

/// The program that the plan says.
fn apply(old: &Program, plan: &GraphPlan<TensorId, InstrId>) -> Result<Program> {
    let mut applied = Applied { old, plan, new: Program::default(), places: Vec::new() };
    applied.begin()?;
    applied.instructions()?;
    Ok(applied.new)
}

// ---- A machine that runs programs. It knows buffers and shapes, and nothing of layouts.

/// Coordinates of a dense buffer, in its order.
fn coordinates(shape: &[usize]) -> impl Iterator<Item = Vec<usize>> + '_ {
    (0..shape.iter().product::<usize>()).map(move |mut i| {
        let mut at = vec![0; shape.len()];
        for (place, n) in at.iter_mut().zip(shape).rev() {
            (*place, i) = (i % n, i / n);
        }
        at
    })
}

/// The element at a coordinate whose leading places the buffer may lack and whose others it may repeat.
fn read(buffer: &[f32], shape: &[usize], at: &[usize]) -> f32 {
    let at = &at[at.len() - shape.len()..];
    buffer[shape.iter().zip(at).fold(0, |i, (&n, &a)| i * n + if n == 1 { 0 } else { a })]
}

/// One element of a convolution; `places` are where N, C, H, W of images and O, I, H, W of weights are.
fn convolve(x: (&[f32], &[usize]), w: (&[f32], &[usize]), at: &[usize], places: [usize; 4]) -> f32 {
    let [n, c, h, v] = places;
    let mut sum = 0.0;
    for i in 0..x.1[c] {
        for (dy, dx) in (0..3).flat_map(|dy| (0..3).map(move |dx| (dy, dx))) {
            let (y, z) = (at[h] + dy, at[v] + dx);
            if y == 0 || z == 0 || y > x.1[h] || z > x.1[v] {
                continue;
            }
            let (mut image, mut weight) = ([0; 4], [0; 4]);
            (image[n], image[c], image[h], image[v]) = (at[n], i, y - 1, z - 1);
            (weight[n], weight[c], weight[h], weight[v]) = (at[c], i, dy, dx);
            sum += read(x.0, x.1, &image) * read(w.0, w.1, &weight);
        }
    }
    sum
}

/// Runs a program; its outputs.
fn execute(p: &Program, inputs: &[Vec<f32>]) -> Result<Vec<Vec<f32>>> {
    let mut buffers: Vec<Option<Vec<f32>>> = p.tensors.iter().map(|t| t.data.clone()).collect();
    for (t, data) in p.inputs.iter().zip(inputs) {
        buffers[t.0] = Some(data.clone());
    }
    for instr in &p.instrs {
        let shape = &p.tensors[instr.writes.0].shape;
        let operands: Vec<(&[f32], &[usize])> = instr
            .reads
            .iter()
            .map(|t| Some((buffers[t.0].as_deref()?, &p.tensors[t.0].shape[..])))
            .collect::<Option<_>>()
            .ok_or("an instruction reads what is not there")?;
        let x = operands[0];
        let element = |at: Vec<usize>| match &instr.what {
            What::Conv => convolve(x, operands[1], &at, [0, 1, 2, 3]),
            What::ConvNhwc => convolve(x, operands[1], &at, [0, 3, 1, 2]),
            What::Relu => read(x.0, x.1, &at).max(0.0),
            What::Add => read(x.0, x.1, &at) + read(operands[1].0, operands[1].1, &at),
            What::Concat { axis } => {
                let mut at = at;
                for (data, shape) in &operands {
                    if at[*axis] < shape[*axis] {
                        return read(data, shape, &at);
                    }
                    at[*axis] -= shape[*axis];
                }
                f32::NAN
            }
            What::Transpose { perm } => {
                let mut from = vec![0; perm.len()];
                for (place, &p) in perm.iter().enumerate() {
                    from[p] = at[place];
                }
                read(x.0, x.1, &from)
            }
            What::Reshape => x.0[shape.iter().zip(&at).fold(0, |i, (n, a)| i * n + a)],
        };
        let result: Vec<f32> = coordinates(shape).map(element).collect();
        match p.homes.get(&instr.writes) {
            Some(home) => {
                let room = p.tensors[home.within.0].shape.iter().product();
                let buffer = buffers[home.within.0].get_or_insert_with(|| vec![f32::NAN; room]);
                for (at, x) in coordinates(shape).zip(result) {
                    let steps = at.iter().zip(&home.strides).map(|(&i, stride)| i as i64 * stride);
                    buffer[usize::try_from(home.offset + steps.sum::<i64>())?] = x;
                }
            }
            None => buffers[instr.writes.0] = Some(result),
        }
    }
    p.outputs.iter().map(|t| buffers[t.0].clone().ok_or_else(|| "an output is not there".into())).collect()
}

/// What came of it.
pub(crate) struct Outcome {
    /// The plan.
    pub(crate) plan: GraphPlan<TensorId, InstrId>,
    /// Moves of the program before and after.
    pub(crate) moves: (usize, usize),
    /// Its concatenations before and after.
    pub(crate) concatenations: (usize, usize),
    /// Results of both.
    pub(crate) results: (Vec<Vec<f32>>, Vec<Vec<f32>>),
}

/// Describes, plans, applies and runs.
///
/// # Errors
/// What the planner, or the application of a plan, reports.
pub(crate) fn outcome() -> Result<Outcome> {
    let before = program();
    let (graph, ids) = describe(&before)?;
    let (plan, _) = plan_graph(&graph, &ids, &Npu, &Options::default())?;
    // A plan is plain data: this one goes through a file, as it would between two programs.
    let plan: GraphPlan<TensorId, InstrId> = serde_json::from_str(&serde_json::to_string(&plan)?)?;
    let after = apply(&before, &plan)?;
    let image: Vec<f32> = (0..8 * 6 * 3).map(|i| (i * 5 % 11) as f32 - 4.0).collect();
    let inputs = [image];
    let results = (execute(&before, &inputs)?, execute(&after, &inputs)?);
    let concatenations = (before.concatenations(), after.concatenations());
    Ok(Outcome { plan, moves: (before.moves(), after.moves()), concatenations, results })
}

/// Says what was decided, and fails if the results differ.
pub(crate) fn main() -> Result<()> {
    let Outcome { plan, moves, concatenations, results } = outcome()?;
    println!("moves {} -> {}", moves.0, moves.1);
    println!("concatenations {} -> {}: their operands are written in place", concatenations.0, concatenations.1);
    for node in &plan.nodes {
        println!("{:?}: {:?} {:?}", node.node, node.action, node.attributes);
    }
    for r in &plan.relayouts {
        println!("{:?} is copied from {} to {}, outputs {:?}", r.value, r.from, r.to, r.outputs);
    }
    for c in &plan.constants {
        println!("{:?} is repacked to {} for {:?}", c.value, c.to, c.users);
    }
    if results.0 != results.1 {
        return Err("the planned program computes something else".into());
    }
    println!("both programs compute the same");
    Ok(())
}
