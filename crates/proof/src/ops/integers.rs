//! Products of matrices of integers. Each number of the result is a sum over pairs of numbers less their zero points, so the axes of
//! operands may lie in any order, as those of a product of floats.

use super::{Call, Made, Results, one, over};
use crate::terms::arg::Op;
use crate::terms::name::Name;
use crate::terms::value::Value;
use crate::terms::view::{View, extent, shape};

/// The type of sums.
const SUMS: u8 = 6;

pub(super) fn run(call: &mut Call<'_>) -> Option<Results> {
    let made = match call.name().as_str() {
        "MatMulInteger" => product(call, &[Part::Matrix, Part::Matrix, Part::Left, Part::Right], None),
        "QLinearMatMul" => {
            let parts =
                [Part::Matrix, Part::Left, Part::Left, Part::Matrix, Part::Right, Part::Right, Part::One, Part::One];
            product(call, &parts, Some(7))
        }
        _ => return None,
    };
    Some(made.and_then(one))
}

/// What an operand is.
#[derive(Clone, Copy, PartialEq)]
enum Part {
    Matrix,
    /// One number of the left matrix.
    Left,
    /// One number of the right matrix, or one for each of its columns.
    Right,
    /// One number.
    One,
}

/// The sum of products over the last axis of `[batch, rows, columns, sums]`. Its type is that of an operand, or that of sums.
fn product(call: &mut Call<'_>, parts: &[Part], typed: Option<usize>) -> Made {
    let dtype = typed.map_or(Ok(SUMS), |at| call.need(at).map(|zero| zero.dtype))?;
    let matrices: Vec<usize> = (0..parts.len()).filter(|&at| parts[at] == Part::Matrix).collect();
    let (a, b) = (call.need(matrices[0])?, call.need(matrices[1])?);
    let wrong = || format!("{:?} and {:?} have no product", a.shape(), b.shape());
    let (Some(batch), Some(more)) = (a.rank().checked_sub(2), b.rank().checked_sub(2)) else { return Err(wrong()) };
    let rank = batch.max(more);
    let lifted = |matrix: &Value, sums: usize, kept: usize| -> View {
        let mut view = vec![Vec::new(); rank + 3];
        let axes = matrix.rank() - 2;
        view[rank - axes..rank].clone_from_slice(&matrix.view[..axes]);
        view[rank + kept].clone_from(&matrix.view[axes + kept]);
        view[rank + 2].clone_from(&matrix.view[axes + sums]);
        view
    };
    let (left, right) = (lifted(&a, 1, 0), lifted(&b, 0, 1));
    if extent(&left[rank + 2]) != extent(&right[rank + 2]) {
        return Err(wrong());
    }
    let mut all = Vec::new();
    for (l, r) in shape(&left).into_iter().zip(shape(&right)) {
        all.push(if l == 1 { r } else { l });
    }
    let (mut operands, mut attrs) = (Vec::new(), Vec::new());
    for (at, part) in parts.iter().enumerate() {
        attrs.push(u8::from(call.input(at).is_some()));
        let Some(value) = call.input(at) else { continue };
        let mut view = vec![Vec::new(); rank + 3];
        match part {
            Part::Matrix => view.clone_from(if at == matrices[0] { &left } else { &right }),
            _ if value.count() == 1 => {}
            Part::Right if value.rank() == 1 => view[rank + 1].clone_from(&value.view[0]),
            _ => return Err("the checker does not know zero points or scales of rows".to_owned()),
        }
        operands.push((value.clone(), view));
    }
    let operands: Vec<(&Value, View)> = operands.iter().map(|(value, view)| (value, view.clone())).collect();
    let name = call.name();
    let op = Op { name: Name::Model(&name), attrs: &attrs, dtype };
    let mut y = over(call.terms, &op, &all, &operands, &[rank + 2], true)?;
    y.view.truncate(rank + 2);
    Ok(y)
}
