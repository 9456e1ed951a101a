//! Transposes that ONNX Runtime takes into the product of matrices that reads them (`FusedMatMul`), for providers that have such a product:
//! `core/optimizer/matmul_transpose_fusion.cc`. They run as a stride of an operand.

use super::net::{N, Net, V};
use super::order::is_identity;

/// Takes them in.
pub(super) fn take_in(net: &mut Net) {
    for n in net.order() {
        if net.nodes[n].op != "MatMul" || net.nodes[n].ins.len() != 2 || becomes_gemm(net, n) {
            continue;
        }
        for slot in 0..2 {
            let (reader, at) = scale(net, n, slot).unwrap_or((n, slot));
            if let Some(t) = net.nodes[reader].ins[at].and_then(|v| taken(net, v)) {
                let base = net.nodes[t].ins[0];
                net.set(reader, at, base);
                net.remove_unread(t);
            }
        }
    }
}

/// The node that multiplies an operand by a number, and the slot of what it multiplies: the product takes in the number too
/// (`core/optimizer/matmul_scale_fusion.cc`).
fn scale(net: &Net, n: N, slot: usize) -> Option<(N, usize)> {
    let v = net.nodes[n].ins[slot].filter(|&v| !net.values[v].left && net.readers(v) == [n])?;
    let maker =
        net.values[v].maker.filter(|&m| !net.nodes[m].gone && matches!(net.nodes[m].op.as_str(), "Mul" | "Div"))?;
    let is_number = |v: V| {
        let value = &net.values[v];
        value.constant && value.shape.as_ref().is_some_and(|shape| shape.iter().all(|&d| d == 1))
    };
    let [Some(a), Some(b)] = net.nodes[maker].ins[..] else { return None };
    match (is_number(a), is_number(b)) {
        (false, true) => Some((maker, 0)),
        (true, false) if net.nodes[maker].op == "Mul" => Some((maker, 1)),
        _ => None,
    }
}

/// The Transpose that makes an operand, if a product can read what it reads.
fn taken(net: &Net, v: V) -> Option<N> {
    let t = net.turned(v).filter(|_| !net.values[v].left)?;
    is_stride(&net.nodes[t].perm).then_some(t)
}

/// Whether a product reads a matrix by columns in this order, or rows before batches, or both.
pub(crate) fn is_stride(perm: &[usize]) -> bool {
    let Some(last) = perm.len().checked_sub(1).filter(|last| *last > 0) else { return false };
    let columns = perm[last] == last - 1 && perm[last - 1] == last && is_identity(&perm[..last - 1]);
    let shifted = |upto: usize| perm[..upto].iter().enumerate().all(|(i, &axis)| axis == i + 1) && perm[upto] == 0;
    let batches = last > 1 && (shifted(last) || shifted(last - 1) && perm[last] == last);
    columns || batches
}

/// Whether the runtime makes a Gemm of a product with constant weights, and the sum with a bias behind it, before it looks at Transposes.
fn becomes_gemm(net: &Net, n: N) -> bool {
    let constant = net.nodes[n].ins[1].is_some_and(|v| net.values[v].constant);
    let y = net.nodes[n].outs.first().copied();
    let readers = y.map(|y| net.readers(y)).unwrap_or_default();
    constant && matches!(readers, [reader] if net.nodes[*reader].op == "Add")
}

#[cfg(test)]
mod tests {
    use super::is_stride;

    #[test]
    fn a_product_reads_columns_and_rows_before_batches_as_they_lie() {
        for perm in [&[1, 0][..], &[0, 2, 1], &[1, 0, 2], &[1, 2, 0], &[0, 1, 3, 2], &[1, 2, 0, 3], &[1, 2, 3, 0]] {
            assert!(is_stride(perm), "{perm:?}");
        }
        for perm in [&[][..], &[0], &[0, 1], &[2, 0, 1], &[0, 2, 1, 3], &[0, 2, 3, 1], &[2, 1, 0], &[1, 0, 2, 3]] {
            assert!(!is_stride(perm), "{perm:?}");
        }
    }
}
