//! Recurrent ops: their operands are taken as they lie, and the shapes of their results are known.

use super::{Call, Results, placed};
use crate::files::exact::exact;
use crate::terms::arg::Op;
use crate::terms::name::Name;
use crate::terms::value::Value;

pub(super) fn run(call: &mut Call<'_>) -> Option<Results> {
    let (gates, turned) = match call.name().as_str() {
        "RNN" => (1, false),
        "GRU" => (3, false),
        "LSTM" => (4, false),
        // Its matrices lie the other way round.
        "com.microsoft.DynamicQuantizeLSTM" => (4, true),
        _ => return None,
    };
    Some(recurrent(call, gates, turned))
}

fn recurrent(call: &mut Call<'_>, gates: i64, turned: bool) -> Results {
    let (x, w, r) = (call.need(0)?, call.need(1)?, call.need(2)?);
    let wrong = || format!("operands of {:?}, {:?} and {:?} do not fit", x.shape(), w.shape(), r.shape());
    let last = call.int("layout", 0) != 0;
    let &[first, second, inputs] = x.shape().as_slice() else { return Err(wrong()) };
    let (time, batch) = if last { (second, first) } else { (first, second) };
    let matrix = |value: &Value| match *value.shape().as_slice() {
        [directions, to, from] if !turned => Some((directions, to, from)),
        [directions, from, to] => Some((directions, to, from)),
        _ => None,
    };
    let ((directions, to, from), (more, again, hidden)) = matrix(&w).zip(matrix(&r)).ok_or_else(wrong)?;
    let wanted = if call.text("direction").as_deref() == Some("bidirectional") { 2 } else { 1 };
    call.terms.fixes(&x, 2, from);
    if from != inputs || [directions, more] != [wanted; 2] || Some(to) != hidden.checked_mul(gates) || to != again {
        return Err(wrong());
    }
    for at in [5, 6] {
        let state = if last { [batch, directions, hidden] } else { [directions, batch, hidden] };
        if let Some(value) = call.input(at).filter(|_| at == 5 || gates == 4)
            && value.shape() != state
        {
            return Err(format!("its state is {:?} in place of {state:?}", value.shape()));
        }
    }
    let (all, state) = if last {
        (vec![batch, time, directions, hidden], vec![batch, directions, hidden])
    } else {
        (vec![time, directions, batch, hidden], vec![directions, batch, hidden])
    };
    let mut shapes = vec![all, state.clone()];
    shapes.extend((gates == 4).then_some(state));
    let results: Vec<placed::Typed> = shapes.into_iter().map(|shape| (shape, x.dtype)).collect();
    let attrs = exact(call.opset, call.attrs)?;
    let name = call.name();
    let mut operands: Vec<Option<&Value>> = call.inputs.iter().map(Option::as_ref).collect();
    // Without a first state it is zero.
    let bytes = |value: &Value| value.splat().as_ref().unwrap_or(value).elements();
    let zeros = |value: &Value| bytes(value).is_some_and(|bytes| bytes.iter().all(|byte| *byte == 0));
    for operand in operands.iter_mut().skip(5).take(2) {
        *operand = operand.filter(|value| !zeros(value));
    }
    while operands.last().is_some_and(Option::is_none) {
        operands.pop();
    }
    let made = call.terms.placed(&Op { name: Name::Model(&name), attrs: &attrs, dtype: 0 }, &operands, &results);
    Ok(made.ok_or("its result is empty")?.into_iter().map(Some).collect())
}
