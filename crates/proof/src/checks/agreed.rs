//! Layouts of inputs and outputs that those who asked for a result agreed to. They come from whoever asked, and not from a proof.

use crate::checks::lies::laid;
use crate::files::model::{DeclaredDim, Input, Model};
use crate::graph::eval::{Refusal, Values};
use crate::terms::state::Terms;
use crate::terms::value::Value;
use std::collections::BTreeMap;

/// How a value lies: for each of its dims, digits of the axes of the value that it is, outermost first, as (axis, extent, stride).
/// An extent of -1 is all that is left of the axis.
pub type Digits = Vec<Vec<(u32, i64, i64)>>;

/// Inputs that callers feed and outputs that they take otherwise than the model has them, by name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Agreed {
    /// How inputs of the result lie.
    pub inputs: BTreeMap<String, Digits>,
    /// How outputs of the result lie.
    pub outputs: BTreeMap<String, Digits>,
}

impl Agreed {
    /// Whether all ends lie as the model has them.
    pub fn is_empty(&self) -> bool {
        self.inputs.is_empty() && self.outputs.is_empty()
    }

    /// What the inputs of the result are that lie otherwise. `known` has those of the model.
    pub(crate) fn inputs_of(&self, terms: &mut Terms, b: &Model, known: &Values) -> Result<Values, Refusal> {
        let of = |(name, digits): (&String, &Digits)| {
            let node = || format!("input `{name}`");
            let value = known.get(name).filter(|value| !value.is_opaque());
            let declared = b.graph.inputs.iter().find(|input| input.name == *name).and_then(known_dims);
            let lies = value.and_then(|value| laid(terms, value, Some(digits)));
            // The file may declare elements in this order with other extents, as ONNX Runtime does with blocks.
            let lies = lies.and_then(|lies| match declared.filter(|_| !is_order(digits)) {
                Some(dims) => terms.moved(&lies, &dims),
                None => Some(lies),
            });
            Ok((name.clone(), lies.ok_or_else(|| Refusal { node: node(), why: UNFIT.to_owned() })?))
        };
        self.inputs.iter().map(of).collect()
    }

    /// What an output of the result has to be that the model has as `value`, and the result as `made`.
    pub(crate) fn output(
        &self,
        terms: &mut Terms,
        (name, value, made): (&str, &Value, &Value),
    ) -> Result<Value, Refusal> {
        let Some(digits) = self.outputs.get(name) else { return Ok(value.clone()) };
        let lies = Some(value).filter(|value| !value.is_opaque()).and_then(|value| laid(terms, value, Some(digits)));
        let wanted = if is_order(digits) || made.is_opaque() {
            lies
        } else {
            lies.and_then(|lies| terms.moved(&lies, &made.shape()))
        };
        wanted.ok_or_else(|| Refusal { node: format!("output `{name}`"), why: UNFIT.to_owned() })
    }
}

/// Why nothing can be said of an end.
pub(crate) const UNFIT: &str = "it has not the axes of the layout that was agreed to, or nobody knows its shape";

/// Whether digits are an order of whole axes.
fn is_order(digits: &Digits) -> bool {
    digits.iter().all(|dim| matches!(dim[..], [(_, -1, 1)]))
}

/// The extents that an input is declared with, if all are numbers.
fn known_dims(input: &Input) -> Option<Vec<i64>> {
    let known = |dim: &DeclaredDim| if let DeclaredDim::Known(extent) = dim { Some(*extent) } else { None };
    input.dims.as_ref()?.iter().map(known).collect()
}
