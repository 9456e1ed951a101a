//! What signatures become on nodes: letters on axes, and the orders in which an op runs.

use crate::op_common::inferred;
use relayout_ir::form::{Bound, Form, Role, Slot, View};
use relayout_ir::op::bind;

fn form(op: &str, opset: i64, attrs: &str, operands: &str, results: usize) -> Form {
    let (graph, id, problems) = inferred(op, opset, attrs, operands, results);
    assert!(problems.is_empty(), "{problems:?}");
    bind(&graph, id)
}

fn bound(op: &str, opset: i64, attrs: &str, operands: &str) -> Bound {
    bound_to(op, opset, attrs, operands, 1)
}

fn bound_to(op: &str, opset: i64, attrs: &str, operands: &str, results: usize) -> Bound {
    match form(op, opset, attrs, operands, results) {
        Form::Axes(bound) => *bound,
        other => panic!("{op} is {other:?}"),
    }
}

fn opaque(op: &str, opset: i64, attrs: &str, operands: &str) -> String {
    form(op, opset, attrs, operands, 1).opaque_reason().unwrap().to_owned()
}

fn role(bound: &Bound, name: &str) -> Role {
    bound.atoms.iter().find(|a| a.name == name).unwrap().role
}

/// The order in which `to` is stored if `from` is stored as `stored`.
fn follows(bound: &Bound, from: Slot, stored: &[usize], to: Slot) -> Option<Vec<usize>> {
    bound.restrict(&bound.order_from(from, stored)?, to)
}

const X: Slot = Slot::In(0);
const W: Slot = Slot::In(1);
const Y: Slot = Slot::Out(0);

#[test]
fn no_layout_passes_through_what_cannot_be() {
    for (op, attrs, operands, why) in [
        ("Add", "", "f32[3,4] f32[5,4]", "do not broadcast"),
        ("Conv", "", "f32[2,4,5,5] f32[8,3,3,3]", "channels"),
        ("Concat", "axis=0", "f32[2,3] f32[2,4]", "concatenated"),
    ] {
        let (graph, id, problems) = inferred(op, 13, attrs, operands, 1);
        assert!(!problems.is_empty(), "{op}");
        let form = bind(&graph, id);
        let reason = form.opaque_reason().unwrap_or_else(|| panic!("{op} is {form:?}"));
        assert!(reason.contains(why), "{reason}");
    }
}

#[test]
fn a_convolution_stays_where_it_is() {
    let b = bound("Conv", 13, "", "f32[N,4,H,W] f32[8,4,3,3] f32[8]");
    assert_eq!(b.to_string(), "n (g ci) s0 s1, (g co) ci k0 k1, (g co) -> n (g co) s0 s1");
    assert_eq!((role(&b, "s0"), role(&b, "k0"), role(&b, "n")), (Role::Windowed, Role::Windowed, Role::Carried));
    assert!(b.order_from(X, &[0, 1, 2, 3]).is_some());
    assert_eq!(b.order_from(X, &[0, 2, 3, 1]), None);
    assert_eq!(b.order_from(X, &[0, 1, 3, 2]), None);
}

#[test]
fn elementwise_ops_run_in_any_order_and_align_short_operands_at_the_end() {
    let b = bound("Add", 14, "", "f32[N,C,H,W] f32[C,1,1]");
    assert_eq!(b.to_string(), "a0 a1 a2 a3, a1 a2 a3 -> a0 a1 a2 a3");
    assert_eq!(follows(&b, X, &[0, 2, 3, 1], W), Some(vec![1, 2, 0]));
    assert_eq!(follows(&b, X, &[0, 2, 3, 1], Y), Some(vec![0, 2, 3, 1]));
    let b = bound("Sum", 13, "", "f32[C] f32[N,C] f32[]");
    assert_eq!(b.to_string(), "a1, a0 a1,  -> a0 a1");
}

#[test]
fn batch_axes_of_a_product_are_free_and_matrices_are_pinned() {
    let b = bound("MatMul", 13, "", "f32[A,1,M,K] f32[B,K,N]");
    assert_eq!(b.to_string(), "a0 a1 m k, a1 k n -> a0 a1 m n");
    assert_eq!(follows(&b, X, &[1, 0, 2, 3], Y), Some(vec![1, 0, 2, 3]));
    assert_eq!(b.order_from(X, &[0, 2, 1, 3]), None);
    assert_eq!(b.order_from(X, &[0, 1, 3, 2]), None);
    let b = bound("MatMul", 13, "", "f32[A,B,C,K] f32[K,N]");
    assert_eq!(b.to_string(), "a0 a1 a2 k, k n -> a0 a1 a2 n");
    assert_eq!(follows(&b, X, &[2, 0, 1, 3], Y), Some(vec![2, 0, 1, 3]));
    assert_eq!(b.order_from(X, &[3, 0, 1, 2]), None);
    let vectors = [
        ("f32[K] f32[K]", "k, k -> "),
        ("f32[K] f32[A,K,N]", "k, a0 k n -> a0 n"),
        ("f32[A,K] f32[K]", "a0 k, k -> a0"),
    ];
    for (operands, text) in vectors {
        assert_eq!(bound("MatMul", 13, "", operands).to_string(), text, "{operands}");
    }
}

#[test]
fn gather_puts_the_axes_of_its_indices_together_where_the_axis_was() {
    let b = bound("Gather", 13, "axis=1", "f32[A,X,C] i64[I,J]");
    assert_eq!(b.to_string(), "a0 x c0, b0 b1 -> a0 b0 b1 c0");
    assert_eq!(role(&b, "x"), Role::Whole);
    assert_eq!(follows(&b, X, &[2, 1, 0], Y), Some(vec![3, 1, 2, 0]));
    assert_eq!(follows(&b, X, &[1, 2, 0], Y), Some(vec![1, 2, 3, 0]));
    assert_eq!(b.order_from(Y, &[0, 2, 1, 3]), None, "indices in another order");
    assert_eq!(b.order_from(Y, &[1, 0, 2, 3]), None, "indices apart");
    let b = bound("Gather", 13, "axis=-1", "f32[A,X] i64[]");
    assert_eq!(b.to_string(), "a0 x,  -> a0");
    assert_eq!(follows(&b, X, &[1, 0], Y), Some(vec![0]));
}

#[test]
fn reduced_axes_are_contracted_whether_kept_or_not() {
    let b = bound("ReduceMean", 13, "axes=[2,3]", "f32[N,C,H,W]");
    assert_eq!(b.to_string(), "a0 a1 a2 a3 -> a0 a1 a2 a3");
    assert_eq!((role(&b, "a1"), role(&b, "a2")), (Role::Carried, Role::Contracted));
    assert_eq!(follows(&b, X, &[0, 2, 3, 1], Y), Some(vec![0, 2, 3, 1]));
    let b = bound("ReduceMean", 18, "keepdims=0", "f32[N,C,H,W] =[-1,1]");
    assert_eq!(b.to_string(), "a0 a1 a2 a3, _ -> a0 a2");
    assert_eq!(follows(&b, X, &[3, 2, 1, 0], Y), Some(vec![1, 0]));
    let b = bound("ArgMax", 13, "axis=1 keepdims=0", "f32[N,C,H]");
    assert_eq!(b.to_string(), "a0 x b0 -> a0 b0");
    assert!(opaque("ReduceMean", 18, "", "f32[N,C] i64[1]").contains("computed at run time"));
    let b = bound("ReduceMean", 18, "noop_with_empty_axes=1", "f32[N,C]");
    assert_eq!(role(&b, "a0"), Role::Carried);
}

#[test]
fn concat_and_split_name_one_axis_along_which_runs_are_joined() {
    let b = bound("Concat", 13, "axis=1", "f32[N,3,H] f32[N,4,H]");
    assert_eq!(b.to_string(), "a0 x b0, a0 x b0 -> a0 x b0");
    assert_eq!((role(&b, "x"), role(&b, "b0")), (Role::Joined, Role::Carried));
    assert_eq!(follows(&b, X, &[0, 2, 1], W), Some(vec![0, 2, 1]));
    let b = bound_to("Split", 13, "axis=-1", "f32[N,H,6] =[2,4]", 2);
    assert_eq!(b.to_string(), "a0 a1 x, _ -> a0 a1 x, a0 a1 x");
    assert_eq!(follows(&b, Slot::Out(1), &[2, 0, 1], X), Some(vec![2, 0, 1]));
}

#[test]
fn operands_that_repeat_in_groups_bind_alike() {
    let operands = "f32[] u8[] u8[N,8,H] f32[] u8[] u8[N,2,H] f32[] u8[]";
    let b = bound("com.microsoft::QLinearConcat", 1, "axis=1", operands);
    assert_eq!(b.to_string(), "_, _, a0 x b0, _, _, a0 x b0, _, _ -> a0 x b0");
    assert_eq!(follows(&b, Slot::In(5), &[0, 2, 1], Y), Some(vec![0, 2, 1]));
}

#[test]
fn softmax_before_13_pins_the_axes_that_it_takes_together() {
    let b = bound("Softmax", 12, "axis=2", "f32[N,C,H,W]");
    assert_eq!(b.to_string(), "a0 a1 x0 x1 -> a0 a1 x0 x1");
    assert!(b.order_from(X, &[1, 0, 2, 3]).is_some());
    assert_eq!(b.order_from(X, &[0, 2, 1, 3]), None);
    let b = bound("Softmax", 13, "axis=1", "f32[N,C,H,W]");
    assert_eq!(b.to_string(), "a0 x b0 b1 -> a0 x b0 b1");
    assert_eq!(follows(&b, X, &[0, 2, 3, 1], Y), Some(vec![0, 2, 3, 1]));
    assert_eq!(role(&b, "x"), Role::Whole);
}

#[test]
fn quantization_per_axis_binds_the_scale_to_its_axis() {
    let b = bound("QuantizeLinear", 13, "axis=1", "f32[N,C,H] f32[C] u8[C]");
    assert_eq!(b.to_string(), "a0 x b0, x, x -> a0 x b0");
    assert_eq!(follows(&b, X, &[0, 2, 1], Y), Some(vec![0, 2, 1]));
    let b = bound("DequantizeLinear", 13, "", "u8[N,C,H] f32[] u8[]");
    assert_eq!(b.to_string(), "a0 a1 a2, _, _ -> a0 a1 a2");
    let b = bound("DequantizeLinear", 21, "block_size=2 axis=1", "u8[N,8,H] f32[N,4,H]");
    assert_eq!(b.to_string(), "a0 x b0, a0 x b0 -> a0 x b0");
    assert_eq!((role(&b, "x"), role(&b, "b0")), (Role::Whole, Role::Carried));
    assert_eq!(follows(&b, X, &[2, 0, 1], W), Some(vec![2, 0, 1]));
    assert!(opaque("DequantizeLinear", 21, "", "u8[N,C] f32[N,D]").contains("neither a single number nor a vector"));
}

#[test]
fn normalizations_leave_what_they_do_not_find_by_position() {
    let b = bound("BatchNormalization", 15, "", "f32[N,C,H,W] f32[C] f32[C] f32[C] f32[C]");
    assert_eq!(b.to_string(), "n c s0 s1, c, c, c, c -> n c s0 s1");
    assert!(b.order_from(X, &[0, 1, 3, 2]).is_some());
    assert_eq!(b.order_from(X, &[0, 2, 3, 1]), None);
    let training = opaque("BatchNormalization", 15, "training_mode=1", "f32[N,C] f32[C] f32[C] f32[C] f32[C]");
    assert!(training.contains("trains"));
    let b = bound("LayerNormalization", 17, "", "f32[N,H,W,C] f32[C] f32[C]");
    assert_eq!(b.to_string(), "a0 a1 a2 b0, b0, b0 -> a0 a1 a2 b0");
    assert_eq!(follows(&b, X, &[2, 0, 1, 3], Y), Some(vec![2, 0, 1, 3]));
    assert_eq!(b.order_from(X, &[0, 3, 1, 2]), None);
    let wide = opaque("LayerNormalization", 17, "", "f32[N,H,W,C] f32[1,C]");
    assert!(wide.contains("does not fit"), "a scale of more axes than are normalized would broadcast: {wide}");
}

#[test]
fn cut_axes_are_whole_and_the_others_carried() {
    let b = bound("Slice", 13, "", "f32[N,C,H] =[0] =[2] =[2]");
    assert_eq!((role(&b, "a1"), role(&b, "a2")), (Role::Carried, Role::Whole));
    let b = bound("Pad", 13, "", "f32[N,C,H] =[0,0,1,0,0,1]");
    assert_eq!((role(&b, "a1"), role(&b, "a2")), (Role::Carried, Role::Whole));
    let b = bound("Pad", 18, "", "f32[N,C,H] =[1,1] - =[1]");
    assert_eq!((role(&b, "a1"), role(&b, "a2")), (Role::Whole, Role::Carried));
    let b = bound("Resize", 13, "", "f32[N,C,8,8] - f=[1.0,1.0,2.0,2.0]");
    assert_eq!((role(&b, "a1"), role(&b, "a2")), (Role::Carried, Role::Whole));
    assert_eq!(follows(&b, X, &[0, 2, 3, 1], Y), Some(vec![0, 2, 3, 1]));
    assert_eq!(b.order_from(X, &[1, 2, 3, 0]), None, "it is slow with the batch innermost");
    let b = bound("Resize", 13, "mode=cubic", "f32[N,C,8,8] - f=[1.0,1.0,2.0,2.0]");
    assert_eq!(b.order_from(X, &[0, 2, 3, 1]), None, "runtimes have no such kernel");
    assert!(b.order_from(X, &[1, 0, 2, 3]).is_some());
    assert!(opaque("Slice", 13, "", "f32[N,C] i64[1] i64[1] i64[1]").contains("computed at run time"));
    let b = bound("Slice", 13, "", "f32[N,C] =[1] =[2]");
    assert_eq!((role(&b, "a0"), role(&b, "a1")), (Role::Whole, Role::Carried));
    assert!(opaque("Slice", 13, "", "f32[N,C] i64[D] i64[D]").contains("number of its starts"));
    let b = bound("Expand", 13, "", "f32[C,1] =[2,3,4]");
    assert_eq!(b.to_string(), "a0 a1, _ -> n0 a0 a1");
    assert_eq!(follows(&b, X, &[1, 0], Y), Some(vec![0, 2, 1]));
    assert!(opaque("Expand", 13, "", "f32[C,D] =[3]").contains("fewer entries"));
}

#[test]
fn an_einsum_spells_its_own_signature_and_its_letters_are_free() {
    let b = bound("Einsum", 12, "equation=bhid,bhjd->bhij", "f32[B,H,I,8] f32[B,H,J,8]");
    assert_eq!(b.to_string(), "b h i d, b h j d -> b h i j");
    assert_eq!((role(&b, "i"), role(&b, "d")), (Role::Carried, Role::Contracted));
    assert_eq!(follows(&b, X, &[0, 2, 1, 3], Y), Some(vec![0, 2, 1, 3]));
    assert_eq!(bound("Einsum", 12, "equation=ij,jk", "f32[I,J] f32[J,K]").to_string(), "i j, j k -> i k");
    let turned = bound("Einsum", 12, "equation=ij,jk->ki", "f32[I,J] f32[J,K]");
    assert_eq!(turned.to_string(), "i j, j k -> k i1");
    assert_eq!((role(&turned, "i"), role(&turned, "k")), (Role::Whole, Role::Carried));
    assert_eq!(bound("Einsum", 12, "equation=ii->i", "f32[I,I]").to_string(), "i i1 -> i");
    let b = bound("Einsum", 12, "equation=...ij,...jk", "f32[A,I,J] f32[A,J,K]");
    assert_eq!(b.to_string(), "00 i j, 00 j k -> 00 i k");
    assert_eq!(
        b.order_from(X, &[1, 0, 2]),
        Some(vec![1, 0, 2, 3]),
        "what an ellipsis stands for is spelled where it moves"
    );
    let refused = [
        ("...i->i", "f32[A,I]", "ellipsis"),
        ("...i,...j->...ij", "f32[A,I] f32[A,B,J]", "another number of axes"),
        ("i$->i", "f32[I,J]", "other signs"),
    ];
    for (equation, operands, why) in refused {
        assert!(opaque("Einsum", 12, &format!("equation={equation}"), operands).contains(why), "{equation}");
    }
}

#[test]
fn tuples_address_leading_axes_and_leave_the_others_free() {
    let b = bound("GatherND", 12, "", "f32[A,B,C,D] i64[I,J,2]");
    assert_eq!(b.to_string(), "x0 x1 c0 c1, i0 i1 k -> i0 i1 c0 c1");
    assert_eq!(follows(&b, X, &[0, 1, 3, 2], Y), Some(vec![0, 1, 3, 2]));
    assert_eq!(b.order_from(X, &[1, 0, 2, 3]), None);
    let b = bound("ScatterND", 13, "", "f32[A,B,C] i64[I,1] f32[I,B,C]");
    assert_eq!(b.to_string(), "x0 c0 c1, i0 k, i0 c0 c1 -> x0 c0 c1");
    assert!(opaque("GatherND", 12, "batch_dims=1", "f32[A,B] i64[A,1]").contains("batch"));
    assert!(opaque("GatherND", 12, "", "f32[A,B] i64[A,K]").contains("not known"));
}

#[test]
fn along_an_axis_that_an_operand_says() {
    let b = bound("CumSum", 14, "", "f32[N,C,H] =1");
    assert_eq!(b.to_string(), "a0 x b0, _ -> a0 x b0");
    assert_eq!(role(&b, "x"), Role::Whole);
    assert!(opaque("CumSum", 14, "", "f32[N,C] i64[]").contains("computed at run time"));
}

#[test]
fn views_say_what_they_rename_and_refuse_what_is_not_known() {
    let view = |op, attrs, operands| match form(op, 13, attrs, operands, 1) {
        Form::View(view) => Ok(view),
        other => Err(other.opaque_reason().unwrap().to_owned()),
    };
    assert_eq!(view("Transpose", "perm=[0,2,1]", "f32[A,B,C]"), Ok(View::Transpose(vec![0, 2, 1])));
    assert_eq!(view("Transpose", "", "f32[A,B,C]"), Ok(View::Transpose(vec![2, 1, 0])));
    assert_eq!(view("Identity", "", "f32[A]"), Ok(View::Same));
    assert_eq!(view("Reshape", "", "f32[A,B] =[-1]"), Ok(View::Reshape));
    assert_eq!(view("Unsqueeze", "", "f32[A,B] =[0]"), Ok(View::Reshape));
    assert!(view("Squeeze", "", "f32[A,1] i64[1]").unwrap_err().contains("computed at run time"));
    assert!(view("Squeeze", "", "f32[A,1]").unwrap_err().contains("rank of `y0` is not known"));
    assert!(view("Identity", "", "f32[*]").unwrap_err().contains("rank of `x0` is not known"));
}

#[test]
fn what_can_not_be_bound_says_why() {
    let cases = [
        ("Relu", 13, "", "f32[*]", "the rank of `x0` is not known"),
        ("Relu", 29, "", "f32[A]", "Relu of opset 29 is not in the table"),
        ("x::Relu", 1, "", "f32[A]", "x::Relu is not in the table of ops: a function"),
        ("Add", 6, "broadcast=1", "f32[A,B] f32[B]", "broadcasts by the rules of opset 6"),
        ("Dropout", 13, "", "f32[A] - bool[]", "drops at random"),
        ("NonZero", 13, "", "f32[A]", "row-major order"),
    ];
    for (op, opset, attrs, operands, why) in cases {
        let found = opaque(op, opset, attrs, operands);
        assert!(found.contains(why), "{op}: {found}");
    }
}
