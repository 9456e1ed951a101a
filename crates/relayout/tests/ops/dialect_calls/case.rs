//! A call of the dialect and the standard op that it stands for, on the same values.

use super::{Array, checked, single, with_function};
use relayout_ir::layout::Layout;
use relayout_onnx::dialect::{self, DialectError, DialectOp, Operand};
use relayout_onnx::proto::{AttributeProto, ModelProto, NodeProto};
use relayout_verify::Level;

/// An operand of a case.
pub(crate) struct In {
    array: Array,
    /// As which it is stored, and what its pad lanes hold.
    stored: Option<(Layout, i8)>,
}

pub(super) fn plain(array: Array) -> In {
    In { array, stored: None }
}

pub(super) fn packed(array: Array, layout: &Layout, lane: i8) -> In {
    In { array, stored: Some((layout.clone(), lane)) }
}

pub(crate) fn layout(text: &str) -> Layout {
    text.parse().unwrap_or_else(|e| panic!("{text}: {e}"))
}

/// A call beside the op.
pub(crate) struct Case {
    op: &'static str,
    opset: i64,
    attributes: Vec<AttributeProto>,
    /// Attributes that the call has in place of the op's of the same name.
    instead: Vec<AttributeProto>,
    inputs: Vec<Option<In>>,
    output: Option<Layout>,
    name: String,
    /// Whether pad lanes of the result have to be zero.
    zero_lanes: bool,
}

impl Case {
    pub(super) fn new(op: &'static str, name: &str, attributes: Vec<AttributeProto>) -> Case {
        let (inputs, instead) = (Vec::new(), Vec::new());
        Case { op, opset: 17, attributes, instead, inputs, output: None, name: name.to_owned(), zero_lanes: false }
    }

    pub(super) fn with(mut self, input: In) -> Case {
        self.inputs.push(Some(input));
        self
    }

    pub(super) fn absent(mut self) -> Case {
        self.inputs.push(None);
        self
    }

    pub(super) fn to(mut self, layout: &Layout) -> Case {
        self.output = Some(layout.clone());
        self
    }

    pub(super) fn at(mut self, opset: i64) -> Case {
        self.opset = opset;
        self
    }

    pub(super) fn zero_lanes(mut self) -> Case {
        self.zero_lanes = true;
        self
    }

    pub(super) fn instead(mut self, attribute: AttributeProto) -> Case {
        self.instead.push(attribute);
        self
    }

    fn form(&self) -> Result<DialectOp, DialectError> {
        let operand = |input: &Option<In>| match input {
            None => Operand::Absent,
            Some(In { stored: None, .. }) => Operand::Plain,
            Some(In { stored: Some((layout, _)), .. }) => Operand::Stored(layout.clone()),
        };
        let ins: Vec<Operand> = self.inputs.iter().map(operand).collect();
        let out = self.output.clone().map_or(Operand::Plain, Operand::Stored);
        DialectOp::new(self.op, self.opset, &ins, &[out])
    }

    /// The call as a file.
    pub(crate) fn file(&self) -> ModelProto {
        let form = self.form().unwrap_or_else(|e| panic!("{} {}: {e}", self.op, self.name));
        let names: Vec<String> = (0..self.inputs.len()).map(|i| format!("x{i}")).collect();
        self.model(&form, &names, self.result_type(), false, false).0
    }

    /// Hands the case on.
    pub(super) fn give(&self, each: &mut dyn FnMut(&Case)) {
        each(self);
    }

    /// Runs both and compares.
    pub(crate) fn check(&self) {
        let form = self.form().unwrap_or_else(|e| panic!("{} {}: {e}", self.op, self.name));
        assert_eq!(form.name(), self.name);
        let names: Vec<String> = (0..self.inputs.len()).map(|i| format!("x{i}")).collect();
        let logical: Vec<(String, Array, bool)> = names
            .iter()
            .zip(&self.inputs)
            .filter_map(|(n, i)| Some((n.clone(), i.as_ref()?.array.clone(), false)))
            .collect();
        let input = names.iter().zip(&self.inputs).map(|(n, i)| i.as_ref().map_or_else(String::new, |_| n.clone()));
        let node = NodeProto {
            op_type: Some(self.op.to_owned()),
            input: input.collect(),
            output: vec!["y".to_owned()],
            attribute: self.attributes.clone(),
            ..NodeProto::default()
        };
        let result = self.result_type();
        let rank = logical[0].1.shape.len();
        let reference = single(node, &logical, (result, rank), self.opset, false);
        let expected = checked(&reference, &logical, Level::Disabled).unwrap_or_else(|e| panic!("{}: {e}", self.op));
        for (level, symbolic, constants) in [
            (Level::Disabled, false, false),
            (Level::Disabled, true, false),
            (Level::All, false, true),
            (Level::All, true, false),
        ] {
            let what = format!("{} at {level:?}, symbolic {symbolic}, constants {constants}", self.name);
            let (model, stored) = self.model(&form, &names, result, symbolic, constants);
            let y = checked(&model, &stored, level).unwrap_or_else(|e| panic!("{what}: {e}"));
            let row_major = Layout::row_major(expected.shape.len());
            let (y, lanes) = y.unpacked(self.output.as_ref().unwrap_or(&row_major), &expected.shape);
            near(&y, &expected, &what);
            assert!(!self.zero_lanes || lanes.iter().all(|&lane| lane == 0.0), "{what}: pad lanes {lanes:?}");
        }
    }

    fn model(
        &self,
        form: &DialectOp,
        names: &[String],
        result: i32,
        symbolic: bool,
        constants: bool,
    ) -> (ModelProto, Vec<(String, Array, bool)>) {
        let mut stored = Vec::new();
        for i in form.inputs() {
            let input = self.inputs[i].as_ref().unwrap();
            let array = match &input.stored {
                None => input.array.clone(),
                Some((layout, lane)) => input.array.packed(layout, *lane),
            };
            stored.push((names[i].clone(), array, constants && i > 0));
        }
        let replaced = |a: &&AttributeProto| self.instead.iter().all(|b| b.name != a.name);
        let attribute = self.attributes.iter().filter(replaced).chain(&self.instead).cloned().collect();
        let node = NodeProto {
            op_type: Some(form.name().to_owned()),
            domain: Some(dialect::DOMAIN.to_owned()),
            input: stored.iter().map(|(name, ..)| name.clone()).collect(),
            output: vec!["y".to_owned()],
            attribute,
            ..NodeProto::default()
        };
        let first = self.inputs[0].as_ref().unwrap().array.shape.len();
        let rank = self.output.as_ref().map_or(first, |l| l.factors().len());
        (with_function(single(node, &stored, (result, rank), self.opset, symbolic), form.function()), stored)
    }

    /// ONNX's number of the result's element type.
    fn result_type(&self) -> i32 {
        match self.op {
            "ConvInteger" | "MatMulInteger" => 6,
            "DequantizeLinear" => 1,
            "QuantizeLinear" => 2,
            _ => self.inputs[0].as_ref().unwrap().array.onnx_type(),
        }
    }
}

fn near(y: &Array, expected: &Array, what: &str) {
    assert_eq!(y.shape, expected.shape, "{what}");
    for (i, (a, b)) in y.values().iter().zip(expected.values()).enumerate() {
        assert!((a - b).abs() <= 1e-5 * b.abs().max(1.0), "{what}: element {i} is {a}, not {b}");
    }
}
