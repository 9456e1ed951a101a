//! Layouts of inputs and outputs that those who asked for a result agreed to. They come from whoever asked, and not from a proof.

use crate::check::laid;
use crate::eval::{Refusal, Values};
use crate::term::Terms;
use crate::value::Value;
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
    pub(crate) fn inputs_of(&self, terms: &mut Terms, known: &Values) -> Result<Values, Refusal> {
        let of = |(name, digits): (&String, &Digits)| {
            let refused = |why: &str| Refusal { node: format!("input `{name}`"), why: why.to_owned() };
            let value = known.get(name).ok_or_else(|| refused("the model has no such input"))?;
            let lies = as_agreed(terms, value, digits).ok_or_else(|| refused(UNFIT))?;
            Ok((name.clone(), lies))
        };
        self.inputs.iter().map(of).collect()
    }

    /// What an output of the result has to be, if it lies otherwise.
    pub(crate) fn output(&self, terms: &mut Terms, name: &str, value: &Value) -> Option<Result<Value, Refusal>> {
        let digits = self.outputs.get(name)?;
        let refused = || Refusal { node: format!("output `{name}`"), why: UNFIT.to_owned() };
        Some(as_agreed(terms, value, digits).ok_or_else(refused))
    }
}

const UNFIT: &str = "it has not the axes of the layout that was agreed to, or nobody knows its shape";

fn as_agreed(terms: &mut Terms, value: &Value, digits: &Digits) -> Option<Value> {
    if value.is_opaque() { None } else { laid(terms, value, Some(digits)) }
}
