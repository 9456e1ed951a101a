//! What the runtime's CPU kernels cost on dense tensors and on views of strides: where the prices of `src/nxrt.toml` are from.
//!
//!     RAYON_NUM_THREADS=1 cargo run --release --example kernels

#[path = "common/mod.rs"]
mod common;

use common::{Result, feeds, round, session};
use onnx_runtime_ir::{Attribute, DataType, Graph, Node, NodeId, TensorData, ValueId, WeightRef, static_shape};

/// Runs of one graph, of which the shortest counts.
const RUNS: usize = 15;

/// A graph that is made node by node.
struct Made {
    graph: Graph,
    last: ValueId,
}

impl Made {
    /// An image as input.
    fn of(shape: &[usize]) -> Made {
        let mut graph = Graph::new();
        graph.opset_imports.insert(String::new(), 17);
        let last = graph.create_named_value("x", DataType::Float32, static_shape(shape.iter().copied()));
        graph.add_input(last);
        Made { graph, last }
    }

    fn constant(&mut self, shape: &[usize]) -> ValueId {
        let count = shape.iter().product::<usize>();
        let bytes = (0..count).flat_map(|i| ((i * 7 % 11) as f32 * 0.02 - 0.1).to_le_bytes()).collect();
        let value = self.graph.create_named_value("w", DataType::Float32, static_shape(shape.iter().copied()));
        let data = TensorData::from_raw(DataType::Float32, shape.to_vec(), bytes);
        self.graph.set_initializer(value, WeightRef::Inline(data));
        value
    }

    /// An op on what there is, and on constants.
    fn then(mut self, op: &str, others: &[ValueId], shape: &[usize], attributes: &[(&str, Attribute)]) -> Made {
        let name = format!("v{}", self.graph.num_values());
        let result = self.graph.create_named_value(name, DataType::Float32, static_shape(shape.iter().copied()));
        let inputs = std::iter::once(self.last).chain(others.iter().copied()).map(Some).collect();
        let mut node = Node::new(NodeId(0), op, inputs, vec![result]);
        node.attributes.extend(attributes.iter().map(|(name, value)| ((*name).to_owned(), value.clone())));
        self.graph.insert_node(node);
        self.last = result;
        self
    }

    fn transpose(self, perm: &[usize]) -> Made {
        let shape = &self.graph.value(self.last).shape;
        let shape: Vec<usize> = perm.iter().map(|axis| shape[*axis].as_static().unwrap_or(1)).collect();
        let perm = perm.iter().map(|axis| *axis as i64).collect();
        self.then("Transpose", &[], &shape, &[("perm", Attribute::Ints(perm))])
    }

    /// The shortest time of a run, in microseconds.
    fn timed(mut self) -> Result<f64> {
        self.graph.add_output(self.last);
        let mut session = session(self.graph)?;
        let feeds = feeds(&session)?;
        Ok(round(&mut session, &feeds, RUNS)? * 1e6)
    }
}

/// An op on a dense image, on one that a Transpose leaves, and on a dense copy of that by an Identity: all in microseconds.
fn compared(name: &str, shape: [usize; 4], op: impl Fn(Made, &[usize]) -> Made) -> Result<()> {
    let [n, c, h, w] = shape;
    let turned = || Made::of(&[n, h, w, c]).transpose(&[0, 3, 1, 2]);
    let dense = op(Made::of(&shape), &shape).timed()?;
    let strided = op(turned(), &shape).timed()?;
    let copied = op(turned().then("Identity", &[], &shape, &[]), &shape).timed()?;
    let each = |time: f64| (time - dense) * 1e3 / (n * c * h * w) as f64;
    println!(
        "| {name} | {c} | {h} | {dense:.0} | {strided:.0} | {copied:.0} | {:.1} | {:.1} |",
        each(strided),
        each(copied)
    );
    Ok(())
}

fn conv(made: Made, shape: &[usize], kernel: usize, groups: usize) -> Made {
    let mut made = made;
    let weights = made.constant(&[shape[1], shape[1] / groups, kernel, kernel]);
    let pad = (kernel / 2) as i64;
    let attributes = [("pads", Attribute::Ints(vec![pad; 4])), ("group", Attribute::Int(groups as i64))];
    made.then("Conv", &[weights], shape, &attributes)
}

/// Softmax and ReduceMean along the innermost axis and along an outer one, dense: microseconds.
fn along_axes(shape: [usize; 4]) -> Result<()> {
    let [n, c, h, w] = shape;
    for (name, axes) in [("Softmax along one axis", [-1, 1]), ("ReduceMean over one axis", [-1, 1])] {
        let of = |axis: i64| -> Result<f64> {
            let mut kept = shape.to_vec();
            let made = Made::of(&shape);
            if name.starts_with("Softmax") {
                return made.then("Softmax", &[], &kept, &[("axis", Attribute::Int(axis))]).timed();
            }
            kept[if axis < 0 { 3 } else { 1 }] = 1;
            made.then("ReduceMean", &[], &kept, &[("axes", Attribute::Ints(vec![axis]))]).timed()
        };
        let (inner, outer) = (of(axes[0])?, of(axes[1])?);
        println!(
            "| {name} | {c} | {h} | {inner:.0} | {outer:.0} | {:.1} | {:.2} |",
            outer / inner,
            (outer - inner) * 1e3 / (n * c * h * w) as f64
        );
    }
    Ok(())
}

/// Ops of one image of these extents.
fn all(shape: [usize; 4]) -> Result<()> {
    for op in ["Relu", "Sigmoid"] {
        compared(op, shape, |made, shape| made.then(op, &[], shape, &[]))?;
    }
    for (name, rows) in [("Add of an image", shape[2]), ("Add of a vector", 1)] {
        compared(name, shape, |mut made, shape| {
            let other = made.constant(&[1, shape[1], rows, rows]);
            made.then("Add", &[other], shape, &[])
        })?;
    }
    compared("Conv 1x1", shape, |made, shape| conv(made, shape, 1, 1))?;
    compared("Conv 3x3", shape, |made, shape| conv(made, shape, 3, 1))?;
    compared("Conv 3x3, a group each", shape, |made, shape| conv(made, shape, 3, shape[1]))?;
    compared("MaxPool 3x3", shape, |made, shape| {
        let attributes = [("kernel_shape", Attribute::Ints(vec![3, 3])), ("pads", Attribute::Ints(vec![1; 4]))];
        made.then("MaxPool", &[], shape, &attributes)
    })?;
    compared("MatMul", shape, |mut made, shape| {
        let matrix = made.constant(&[shape[3], shape[3]]);
        made.then("MatMul", &[matrix], shape, &[])
    })?;
    compared("Concat with a constant", shape, |mut made, shape| {
        let other = made.constant(shape);
        made.then("Concat", &[other], &[1, 2 * shape[1], shape[2], shape[3]], &[("axis", Attribute::Int(1))])
    })?;
    compared("ReduceMean of the image", shape, |made, shape| {
        made.then("ReduceMean", &[], &[1, shape[1], 1, 1], &[("axes", Attribute::Ints(vec![2, 3]))])
    })?;
    compared("Softmax", shape, |made, shape| made.then("Softmax", &[], shape, &[("axis", Attribute::Int(-1))]))
}

fn main() -> Result<()> {
    println!(
        "| op | channels | side | dense, us | behind a Transpose, us | and an Identity, us | ns an element more | with Identity |"
    );
    println!("|---|---:|---:|---:|---:|---:|---:|---:|");
    for shape in [[1, 64, 56, 56], [1, 256, 14, 14]] {
        all(shape)?;
    }
    println!();
    println!("| op | channels | side | innermost, us | channels first of three, us | ratio | ns an element more |");
    println!("|---|---:|---:|---:|---:|---:|---:|");
    for shape in [[1, 64, 56, 56], [1, 256, 14, 14]] {
        along_axes(shape)?;
    }
    Ok(())
}
