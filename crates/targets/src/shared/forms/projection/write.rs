//! A projection in a form other than the file's: standard ops, and views that say how operand and result lie.

use super::find::Told;
use super::images;
use crate::shared::forms::product::GEMM_WITHOUT_SUMMAND;
use relayout_ir::attr::Attr;
use relayout_ir::build::Builder;
use relayout_ir::dim::Dim;
use relayout_ir::dtype::DType;
use relayout_ir::form::{Form, View};
use relayout_ir::graph::{Graph, NodeId, ValueId};
use relayout_ir::patch::Patch;
use relayout_ir::perm;
use relayout_ir::raised::ProjectionForm;
use relayout_target_api::PassError;

/// Writes a raised projection in the form that was chosen; what takes the place of its result.
pub(crate) fn write(graph: &mut Graph, n: NodeId, opset: i64) -> Result<Option<ValueId>, PassError> {
    let Some((y, told)) = graph.node(n).only_result().zip(Told::recognize(graph, n)) else { return Ok(None) };
    let shape = |v: ValueId| graph.value(v).ty.shape().map(<[Dim]>::to_vec);
    let Some((from, to)) = shape(told.x).zip(shape(y)) else { return Ok(None) };
    let Some([of_x, of_result]) = told.raised.orders(told.form, &from, &to) else { return Ok(None) };
    let Some(rows) = to.get(..told.raised.rows).and_then(Dim::product) else { return Ok(None) };
    let base = graph.value(y).name.clone();
    let mut writer = Writer { graph, opset, base, found: &told, rows, from };
    let z = match told.form {
        ProjectionForm::Apart => writer.apart()?,
        ProjectionForm::Pixels => writer.pixels(y, &of_x, &to)?,
        ProjectionForm::TurnedResult => writer.turned_result()?,
        ProjectionForm::TurnedOperand => writer.turned_operand()?,
        ProjectionForm::TurnedBoth => writer.turned_both([&of_x, &of_result], &to)?,
    };
    let stored = of_result.iter().filter_map(|&axis| to.get(axis).cloned()).collect();
    let z = writer.make().reshape(z, "stored", stored)?;
    Ok(Some(writer.make().transpose(z, "as_read", &perm::inverse(&of_result))?))
}

struct Writer<'g, 'f> {
    graph: &'g mut Graph,
    opset: i64,
    /// What new names begin with.
    base: String,
    found: &'f Told,
    /// All rows together.
    rows: Dim,
    /// Shape of the operand.
    from: Vec<Dim>,
}

impl Writer<'_, '_> {
    /// Makes nodes that are named after the result.
    fn make(&mut self) -> Builder<'_> {
        Builder::at(self.graph, self.found.node).opset(self.opset).named(self.base.clone())
    }

    /// Makes views of constants, named after these.
    fn beside(&mut self) -> Builder<'_> {
        Builder::at(self.graph, self.found.node)
    }

    /// `[heads, rows, width]`.
    fn apart(&mut self) -> Result<ValueId, PassError> {
        let (inputs, heads, width) =
            (Dim::from(self.found.inputs), Dim::from(self.found.heads), Dim::from(self.found.width));
        let x = self.as_rows()?;
        let (split, turns) = if self.found.by_columns {
            (vec![heads.clone(), width.clone(), inputs], [0, 2, 1])
        } else {
            (vec![inputs, heads.clone(), width.clone()], [1, 0, 2])
        };
        let name = self.name_of(self.found.weights, "heads");
        let found = self.found;
        let apart = self.beside().reshape(found.weights, &format!("{name}.apart"), split)?;
        let weights = self.beside().transpose(apart, &name, &turns)?;
        let result = [heads.clone(), self.rows.clone(), width.clone()];
        let z = self.make().op("MatMul", [x, weights]).shaped("product", &result)?;
        self.plus(z, vec![heads, Dim::ONE, width], &result)
    }

    /// `[N, columns, pixels..]`, in images where it is read as such: so a runtime that computes convolutions channels last does not turn
    /// it round for a Reshape between them.
    fn pixels(&mut self, y: ValueId, of_x: &[usize], to: &[Dim]) -> Result<ValueId, PassError> {
        let found = self.found;
        let rows = found.raised.rows;
        let read = images(self.graph, y, rows);
        let pixels = read.as_ref().map_or_else(|| to[1..rows].to_vec(), |images| images.extents.clone());
        let [columns, inputs] = self.matrix();
        let of = |channels: &Dim| [&to[0], channels].into_iter().chain(&pixels).cloned().collect::<Vec<Dim>>();
        let x = self.make().transpose(found.x, "channels", of_x)?;
        let made = read.and_then(|images| images.made);
        let x = if made.is_some() { self.make().reshape(x, "image", of(&inputs))? } else { x };
        let taps = std::iter::repeat_n(Dim::ONE, pixels.len());
        let weights = self.weights_by_columns()?;
        let name = self.name_of(self.found.weights, "taps");
        let weights =
            self.beside().reshape(weights, &name, [columns.clone(), inputs].into_iter().chain(taps).collect())?;
        let mut operands = vec![x, weights];
        if let Some(bias) = self.found.bias {
            let name = self.name_of(bias, "channels");
            operands.push(self.beside().reshape(bias, &name, vec![columns.clone()])?);
        }
        let z = self.make().op("Conv", operands).shaped("pixels", &of(&columns))?;
        // Without the Reshapes to one axis and back.
        if let Some(made) = made.filter(|&v| !self.graph.is_output(v) && self.graph.value(v).layout.is_row_major()) {
            let mut patch = Patch::new();
            patch.replace(made, z);
            patch.apply(self.graph)?;
        }
        Ok(z)
    }

    /// `[columns, rows]`.
    fn turned_result(&mut self) -> Result<ValueId, PassError> {
        let x = self.as_rows()?;
        let weights = self.weights_by_columns()?;
        let [columns, _] = self.matrix();
        let result = [columns.clone(), self.rows.clone()];
        // What is added is another op: Gemm would first fill its result with it, one number per row.
        let z = self.gemm([weights, x], None, [false, true], &result)?;
        self.plus(z, vec![columns, Dim::ONE], &result)
    }

    /// `[rows, columns]`.
    fn turned_operand(&mut self) -> Result<ValueId, PassError> {
        let x = self.as_rows()?;
        let x = self.make().transpose(x, "turned", &[1, 0])?;
        let [columns, _] = self.matrix();
        let bias = match self.found.bias {
            Some(bias) => {
                let name = self.name_of(bias, "columns");
                Some(self.beside().reshape(bias, &name, vec![columns.clone()])?)
            }
            None => None,
        };
        let flags = [true, self.found.by_columns];
        self.gemm([x, self.found.weights], bias, flags, &[self.rows.clone(), columns])
    }

    /// `[rows.., columns, last row]`.
    fn turned_both(&mut self, [of_x, of_result]: [&[usize]; 2], to: &[Dim]) -> Result<ValueId, PassError> {
        let found = self.found;
        let x = self.make().transpose(found.x, "columns", of_x)?;
        let weights = self.weights_by_columns()?;
        let result: Vec<Dim> = of_result.iter().filter_map(|&axis| to.get(axis).cloned()).collect();
        let [columns, _] = self.matrix();
        let z = self.make().op("MatMul", [weights, x]).shaped("product", &result)?;
        self.plus(z, vec![columns, Dim::ONE], &result)
    }

    /// A Gemm that reads these operands turned.
    fn gemm(
        &mut self,
        operands: [ValueId; 2],
        bias: Option<ValueId>,
        turned: [bool; 2],
        result: &[Dim],
    ) -> Result<ValueId, PassError> {
        let bias = match bias {
            None if self.opset < GEMM_WITHOUT_SUMMAND => {
                let dtype = self.graph.value(operands[0]).ty.dtype().unwrap_or(DType::F32);
                Some(self.make().filled("zero", dtype, &[1], 0.0)?)
            }
            bias => bias,
        };
        let operands: Vec<ValueId> = operands.into_iter().chain(bias).collect();
        let flags = [("transA", turned[0]), ("transB", turned[1])];
        let set: Vec<_> = flags.into_iter().filter(|(_, on)| *on).map(|(name, _)| (name, Attr::Int(1))).collect();
        Ok(self.make().op("Gemm", operands).attrs(set).shaped("product", result)?)
    }

    /// The sum with the bias, if there is one, in this shape.
    fn plus(&mut self, z: ValueId, shape: Vec<Dim>, result: &[Dim]) -> Result<ValueId, PassError> {
        let Some(bias) = self.found.bias else { return Ok(z) };
        let name = self.name_of(bias, "heads");
        let bias = self.beside().reshape(bias, &name, shape)?;
        Ok(self.make().op("Add", [z, bias]).shaped("sum", result)?)
    }

    /// The operand as a matrix.
    fn as_rows(&mut self) -> Result<ValueId, PassError> {
        let shape = vec![self.rows.clone(), Dim::from(self.found.inputs)];
        let x = source(self.graph, self.found.x);
        let stored = |v: ValueId| {
            let value = self.graph.value(v);
            View::Reshape.forward(&value.layout, value.ty.shape().unwrap_or_default(), &shape).ok()
        };
        let x = if stored(x) == stored(self.found.x) { x } else { self.found.x };
        // What was a matrix before may have had other columns.
        let ty = &self.graph.value(x).ty;
        if ty.rank() == Some(2) && (x == self.found.x || ty.shape() == Some(&shape)) {
            return Ok(x);
        }
        let stored = stored(x);
        let rows = self.make().reshape(x, "rows", shape)?;
        if let Some(layout) = stored.filter(|_| rows != x) {
            let mut patch = Patch::new();
            patch.set_layout(rows, layout);
            patch.apply(self.graph)?;
        }
        Ok(rows)
    }

    /// Columns and inputs.
    fn matrix(&self) -> [Dim; 2] {
        let inputs = self.from.last().cloned().unwrap_or_else(|| Dim::from(self.found.inputs));
        [Dim::from(self.found.heads * self.found.width), inputs]
    }

    /// The weights with a row per column of the result.
    fn weights_by_columns(&mut self) -> Result<ValueId, PassError> {
        if self.found.by_columns {
            return Ok(self.found.weights);
        }
        let name = self.name_of(self.found.weights, "turned");
        let weights = self.found.weights;
        Ok(self.beside().transpose(weights, &name, &[1, 0])?)
    }

    fn name_of(&self, v: ValueId, what: &str) -> String {
        format!("{}.{what}", self.graph.value(v).name)
    }
}

/// What a value is the Reshape of, if nothing else reads it; else itself.
fn source(graph: &Graph, v: ValueId) -> ValueId {
    let node = graph.node(graph.value(v).producer().0);
    let reshapes = node.onnx().is_some() && matches!(node.form, Form::View(View::Reshape));
    node.operand(0).filter(|_| reshapes && graph.only_use(v).is_some()).unwrap_or(v)
}
