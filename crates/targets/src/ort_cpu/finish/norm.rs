//! Normalizations over groups of channels of a blocked image, in what the runtime has for blocks.
//!
//! *Rows.* Where a group is whole blocks, its bytes are one row: two Reshapes of the blocked bytes around an
//! `InstanceNormalization`. It reads the pixels of a group in another order, which changes nothing but the rounding.
//!
//! *Channels.* With `s` for a sum over the pixels of a channel and `g` for a mean over the channels of a group:
//!
//! ```text
//! d = x - g(s(x)) / HW                 global pool, convolution of one tap with the mean as its bias
//! v = g(s(d * d) + HW * epsilon)       depthwise convolution of `d` with itself as the filters, as large as the image
//! y = d * scale * sqrt(HW / v) + bias  convolution of one tap
//! ```
//!
//! The mean goes before anything is squared, so a large one costs no digits. Images of a batch have sums of their own, so
//! they become channels of one image. Constant scales and shifts that follow are those of the last convolution.

use super::make::Maker;
use super::scale::{become_convolution, constant_scale, convolve_images};
use crate::ort_cpu::nodes::{convolution, reshape};
use relayout_eval::{Affine, floats};
use relayout_ir::attr::Attr;
use relayout_ir::constant::Constant;
use relayout_ir::dim::Dim;
use relayout_ir::dtype::DType;
use relayout_ir::form::{Form, KernelLayouts};
use relayout_ir::graph::{Graph, NodeId, OpName, ValueId};
use relayout_ir::layout::Layout;
use relayout_ir::op::NCHWC;
use relayout_ir::patch::{Patch, remove_dead};
use relayout_ir::raised::{GroupNorm, Written};
use relayout_ir::types::Type;
use relayout_target::PassError;

/// Every raised normalization for which a kernel was chosen. `opset` is the model's version of the standard domain.
pub(super) fn say_norms(graph: &mut Graph, opset: i64) -> Result<(), PassError> {
    for n in graph.order().unwrap_or_default() {
        if !graph.contains(n) {
            continue;
        }
        let node = graph.node(n);
        let Some((op, written)) = GroupNorm::of(node).zip(Written::of(node)) else { continue };
        let Some(norm) = Norm::of(graph, n, op) else { continue };
        match written {
            Written::Rows => norm.by_rows(graph)?,
            Written::Channels => norm.by_channels(graph, opset)?,
        }
    }
    Ok(())
}

/// A normalization that is to be said.
struct Norm {
    node: NodeId,
    x: ValueId,
    y: ValueId,
    /// How many there are, perhaps a symbol.
    images: Dim,
    /// Channels, rows and columns of each.
    sizes: [i64; 3],
    op: GroupNorm,
    /// Its own scale and bias, per channel.
    affine: Affine,
    /// The operands, where they have an entry per group.
    per_group: Option<[ValueId; 2]>,
    layouts: KernelLayouts,
    /// Names of what is made.
    base: String,
}

impl Norm {
    fn of(graph: &Graph, n: NodeId, op: GroupNorm) -> Option<Norm> {
        let node = graph.node(n);
        let Form::Kernel(layouts) = &node.form else { return None };
        let operand = |slot: usize| node.inputs.get(slot).copied().flatten();
        let (x, y) = (operand(0)?, node.outputs.first().copied().flatten()?);
        let [images, channels, h, w] = graph.value(x).ty.shape()? else { return None };
        let sizes = [channels.as_const()?, h.as_const()?, w.as_const()?];
        let per_channel = |slot: usize| {
            let numbers = floats(graph.constant(operand(slot)?)?)?;
            let each = usize::try_from(sizes[0]).ok()?.checked_div(numbers.len())?;
            Some(numbers.into_iter().flat_map(|x| std::iter::repeat_n(x, each)).collect())
        };
        let affine = Affine { scale: per_channel(1)?, shift: per_channel(2)? };
        let entries = graph.value(operand(1)?).ty.const_shape()?.iter().product::<i64>();
        let per_group = if entries == op.groups { Some([operand(1)?, operand(2)?]) } else { None };
        let (layouts, base) = (layouts.as_ref().clone(), graph.value(y).name.clone());
        Some(Norm { node: n, x, y, images: images.clone(), sizes, op, affine, per_group, layouts, base })
    }

    fn by_rows(self, graph: &mut Graph) -> Result<(), PassError> {
        let ([c, h, w], groups, n) = (self.sizes, self.op.groups, self.node);
        let rows = vec![self.images.clone(), Dim::from(groups), Dim::from(c / groups * h * w)];
        let apart = reshape(graph, n, self.x, &[0, groups, -1], rows.clone())?;
        let mut made = self.maker(graph);
        let [scale, bias] = if let Some(own) = self.per_group {
            own
        } else {
            let each = |x: f64| vec![x; usize::try_from(groups).unwrap_or(0)];
            [made.floats("unit", &each(1.0), &[groups])?, made.floats("zero", &each(0.0), &[groups])?]
        };
        let even = made.op("InstanceNormalization", vec![apart, scale, bias], "even", rows)?;
        made.set(even, "epsilon", Attr::Float(self.op.epsilon));
        let back = [0, c, h, w];
        if self.per_group.is_some() {
            let extents = made.ints("shape", &back)?;
            become_reshape(graph, n, [even, extents], &self.layouts.outs);
            return Ok(());
        }
        let scale = made.floats("scale", &self.affine.scale, &[c, 1, 1, 1])?;
        let shift = made.floats("shift", &self.affine.shift, &[c])?;
        let image = vec![self.images.clone(), Dim::from(c), Dim::from(h), Dim::from(w)];
        let even = reshape(graph, n, even, &back, image)?;
        become_convolution(graph, n, vec![Some(even), Some(scale), Some(shift)], c, &self.layouts.outs);
        Ok(())
    }

    fn by_channels(mut self, graph: &mut Graph, opset: i64) -> Result<(), PassError> {
        let Some(images) = self.images.as_const() else { return Ok(()) };
        self.take_scales(graph)?;
        let ([c, h, w], n, groups) = (self.sizes, self.node, self.op.groups);
        let wide = images * c;
        let flat = [1, wide, h, w].map(Dim::from);
        let x = if images == 1 { self.x } else { reshape(graph, n, self.x, &[1, wide, h, w], flat.to_vec())? };
        let centred = self.centred(graph, x, (images, &flat), opset)?;
        let mut made = self.maker(graph);
        let filters = made.reshaped(centred, &[wide, 1, h, w], "filters")?;
        let (pixels, each) = ((h * w) as f64, c / groups);
        let least = vec![f64::from(self.op.epsilon) * pixels; usize::try_from(wide).unwrap_or(0)];
        let least = made.floats("epsilon", &least, &[wide])?;
        let summed = [1, wide, 1, 1].map(Dim::from);
        let squares = made.depthwise([centred, filters], Some(least), "squares", (summed, [h, w]))?;
        let (variance, dims) = made.per_group(squares, [images, groups, each], opset)?;
        let deviation = made.op("Sqrt", vec![variance], "deviation", dims)?;
        let scale: Vec<f64> = self.affine.scale.iter().map(|s| s * pixels.sqrt()).collect();
        let scale = made.floats("scale", &scale, &[1, groups, each])?;
        let scales = [images, groups, each].map(Dim::from).to_vec();
        let scale = made.op("Div", vec![scale, deviation], "scales", scales)?;
        let taps = made.reshaped(scale, &[wide, 1, 1, 1], "taps")?;
        let shift = self.affine.shift.repeat(usize::try_from(images).unwrap_or(0));
        let shift = made.floats("shift", &shift, &[wide])?;
        let inputs = vec![Some(centred), Some(taps), Some(shift)];
        convolve_images(graph, n, inputs, [images, c], &flat, &self.layouts.outs)
    }

    /// The images less the mean of each channel's group, as channels of one image of shape `flat`.
    fn centred(
        &self,
        graph: &mut Graph,
        x: ValueId,
        (images, flat): (i64, &[Dim; 4]),
        opset: i64,
    ) -> Result<ValueId, PassError> {
        let ([c, ..], groups) = (self.sizes, self.op.groups);
        let dims = [images, groups, c / groups];
        let mut made = self.maker(graph);
        let means = made.pooled(self.x, self.layouts.ins.first().cloned().flatten(), [images, c])?;
        let (means, _) = made.per_group(means, dims, opset)?;
        let zeros = vec![0.0; self.affine.scale.len()];
        let zeros = made.floats("zero", &zeros, &[1, groups, c / groups])?;
        let less = made.op("Sub", vec![zeros, means], "less", dims.map(Dim::from).to_vec())?;
        let less = made.reshaped(less, &[images * c], "shifts")?;
        let ones = vec![1.0; usize::try_from(images * c).unwrap_or(0)];
        let ones = made.floats("unit", &ones, &[images * c, 1, 1, 1])?;
        made.depthwise([x, ones], Some(less), "centred", (flat.clone(), [1, 1]))
    }

    /// Constant scales and shifts per channel that alone read the result become its own.
    fn take_scales(&mut self, graph: &mut Graph) -> Result<(), PassError> {
        loop {
            let Some(only) = graph.only_use(self.y) else { return Ok(()) };
            let Form::Kernel(layouts) = graph.node(only.node).form.clone() else { return Ok(()) };
            let scaled = constant_scale(graph, only.node, &layouts).filter(|(x, _)| *x == self.y);
            let z = graph.node(only.node).outputs.first().copied().flatten();
            let (Some((_, affine)), Some(z)) = (scaled, z) else { return Ok(()) };
            self.affine = self.affine.then(&affine);
            let mut patch = Patch::new();
            patch.replace(z, self.y);
            patch.apply(graph)?;
            remove_dead(graph, [only.node]);
        }
    }

    fn maker<'a>(&'a self, graph: &'a mut Graph) -> Made<'a> {
        let rank = graph.node(self.node).rank;
        Made { maker: Maker { graph, rank }, base: &self.base }
    }
}

/// Makes what a normalization is said with, named after its result.
struct Made<'a> {
    maker: Maker<'a>,
    base: &'a str,
}

impl Made<'_> {
    fn floats(&mut self, what: &str, numbers: &[f64], dims: &[i64]) -> Result<ValueId, PassError> {
        let bytes: Vec<u8> = numbers.iter().flat_map(|x| (*x as f32).to_le_bytes()).collect();
        let constant = Constant::inline(DType::F32, dims.to_vec(), bytes.into());
        self.maker.constant(&format!("{}.{what}", self.base), constant)
    }

    fn ints(&mut self, what: &str, numbers: &[i64]) -> Result<ValueId, PassError> {
        self.maker.constant(&format!("{}.{what}", self.base), Constant::ints(numbers))
    }

    /// A standard op of row-major floats.
    fn op(&mut self, op: &str, inputs: Vec<ValueId>, what: &str, shape: Vec<Dim>) -> Result<ValueId, PassError> {
        self.maker.node("", op, inputs, &format!("{}.{what}", self.base), Type::tensor(DType::F32, shape), 0)
    }

    fn reshaped(&mut self, x: ValueId, dims: &[i64], what: &str) -> Result<ValueId, PassError> {
        let extents = self.ints(&format!("{what}.shape"), dims)?;
        self.op("Reshape", vec![x, extents], what, dims.iter().map(|&d| Dim::from(d)).collect())
    }

    /// Sums per image and channel as the mean of each group, and the extents of that.
    fn per_group(&mut self, sums: ValueId, dims: [i64; 3], opset: i64) -> Result<(ValueId, Vec<Dim>), PassError> {
        let [images, groups, each] = dims;
        let sums = self.reshaped(sums, &dims, "apart")?;
        let one = [images, groups, 1].map(Dim::from).to_vec();
        if each == 1 {
            return Ok((sums, one));
        }
        // From version 18 on axes are an operand.
        let axes = if opset >= 18 { Some(self.ints("axes", &[2])?) } else { None };
        let mean = self.op("ReduceMean", std::iter::once(sums).chain(axes).collect(), "mean", one.clone())?;
        if axes.is_none() {
            self.set(mean, "axes", Attr::Ints(vec![2]));
        }
        Ok((mean, one))
    }

    /// The mean of each channel of blocked images.
    fn pooled(&mut self, x: ValueId, blocked: Option<Layout>, [n, c]: [i64; 2]) -> Result<ValueId, PassError> {
        let ty = Type::tensor(DType::F32, [n, c, 1, 1].map(Dim::from).to_vec());
        let y = self.maker.node(NCHWC, "GlobalAveragePool", vec![x], &format!("{}.means", self.base), ty, 1)?;
        self.reads(y, blocked);
        Ok(y)
    }

    /// A depthwise convolution of one image, its channels in blocks, with filters of this size.
    fn depthwise(
        &mut self,
        [x, filters]: [ValueId; 2],
        bias: Option<ValueId>,
        what: &str,
        (shape, kernel): ([Dim; 4], [i64; 2]),
    ) -> Result<ValueId, PassError> {
        let OpName { domain, name, .. } = convolution();
        let group = shape[1].as_const().unwrap_or(1);
        let inputs = [x, filters].into_iter().chain(bias).collect();
        let ty = Type::tensor(DType::F32, shape.to_vec());
        let y = self.maker.node(&domain, &name, inputs, &format!("{}.{what}", self.base), ty, 1)?;
        self.set(y, "group", Attr::Int(group));
        self.set(y, "kernel_shape", Attr::Ints(kernel.to_vec()));
        let layout = self.maker.graph.value(x).layout.clone();
        self.reads(y, (!layout.is_row_major()).then_some(layout));
        Ok(y)
    }

    /// Says in which layout the node that made a value reads its first operand; its result is declared as it is.
    fn reads(&mut self, y: ValueId, layout: Option<Layout>) {
        let (node, _) = self.maker.graph.value(y).producer();
        let layouts = KernelLayouts { ins: vec![layout], outs: Vec::new() };
        self.maker.graph.set_form(node, Form::Kernel(Box::new(layouts)));
    }

    fn set(&mut self, y: ValueId, name: &str, attr: Attr) {
        let (node, _) = self.maker.graph.value(y).producer();
        self.maker.graph.attrs_mut(node).insert(name.to_owned(), attr);
    }
}

/// Makes a node a Reshape of plain bytes to the layout of its result.
fn become_reshape(graph: &mut Graph, n: NodeId, [x, extents]: [ValueId; 2], outs: &[Option<Layout>]) {
    let op = OpName { domain: String::new(), name: "Reshape".to_owned(), overload: String::new() };
    graph.set_inputs(n, vec![Some(x), Some(extents)]);
    graph.set_op(n, op, 0);
    graph.attrs_mut(n).clear();
    graph.set_form(n, Form::Kernel(Box::new(KernelLayouts { ins: Vec::new(), outs: outs.to_vec() })));
}
