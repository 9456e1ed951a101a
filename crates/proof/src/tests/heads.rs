//! Ops of language models: heads of their own or packed, caches, norms of rows.

use super::volumes::ints;
use super::*;

/// `x` [2, 6, 4, 5] as what `lines` make of it, in opset 28.
fn newest(lines: &[Line<'_>], constants: &[(&str, &[i64], Vec<f32>)]) -> Model {
    let mut made = model(lines, constants);
    made.opsets.insert(String::new(), 28);
    made
}

fn heads(count: i64, name: &'static str) -> (&'static str, Attr) {
    (name, Attr::Int(count))
}

/// Rows [2, 6, 20] of `x`, four heads of five numbers.
const ROWS: Line<'static> = ("r", "Reshape", &["x", "rows"], Vec::new());

fn with_shapes(made: Model) -> Model {
    ints(made, &[("rows", &[3], &[2, 6, 20]), ("split", &[4], &[2, 6, 4, 5])])
}

/// The op of packed rows, as heads and back.
fn packed(op: &'static str, attrs: Vec<(&'static str, Attr)>, operands: &[&str]) -> Model {
    let lines: &[Line<'_>] = &[ROWS, ("p", op, operands, attrs), ("y", "Reshape", &["p", "split"], vec![])];
    with_shapes(newest(lines, &[("cos", &[2, 6, 2], vec![0.5; 24]), ("sin", &[2, 6, 2], vec![0.25; 24])]))
}

/// The op with heads before positions.
fn apart(op: &'static str, attrs: Vec<(&'static str, Attr)>, operands: &[&str], order: &[i64]) -> Model {
    let lines: &[Line<'_>] =
        &[("t", "Transpose", &["x"], perm(order)), ("a", op, operands, attrs), ("y", "Transpose", &["a"], perm(order))];
    newest(lines, &[("cos", &[2, 6, 2], vec![0.5; 24]), ("sin", &[2, 6, 2], vec![0.25; 24])])
}

const HEADS_FIRST: &[i64] = &[0, 2, 1, 3];

#[test]
fn attention_of_heads_is_attention_of_packed_rows() {
    let plain = apart("Attention", vec![], &["t", "t", "t"], HEADS_FIRST);
    let of = |queries, keys| vec![heads(queries, "q_num_heads"), heads(keys, "kv_num_heads")];
    let right = packed("Attention", of(4, 4), &["r", "r", "r"]);
    assert!(holds(&plain, &right), "{}", verdict(&plain, &right, &Proof::default()));
    assert!(!holds(&plain, &packed("Attention", of(2, 2), &["r", "r", "r"])));
    assert!(!holds(&plain, &packed("Attention", of(4, 2), &["r", "r", "r"])));
    let causal = [of(4, 4), vec![("is_causal", Attr::Int(1))]].concat();
    assert!(!holds(&plain, &packed("Attention", causal.clone(), &["r", "r", "r"])));
    let masked = apart("Attention", vec![("is_causal", Attr::Int(1))], &["t", "t", "t"], HEADS_FIRST);
    assert!(holds(&masked, &packed("Attention", causal, &["r", "r", "r"])));
    // Positions are no heads.
    assert!(!holds(&apart("Attention", vec![], &["t", "t", "t"], &[0, 1, 2, 3]), &right));
}

#[test]
fn turned_heads_are_turned_packed_rows() {
    let plain = apart("RotaryEmbedding", vec![], &["t", "cos", "sin"], HEADS_FIRST);
    let attrs = |count| vec![heads(count, "num_heads"), ("rotary_embedding_dim", Attr::Int(4))];
    let some = apart("RotaryEmbedding", attrs(4)[1..].to_vec(), &["t", "cos", "sin"], HEADS_FIRST);
    let right = packed("RotaryEmbedding", attrs(4), &["r", "cos", "sin"]);
    assert!(holds(&some, &right), "{}", verdict(&some, &right, &Proof::default()));
    assert!(!holds(&plain, &right), "all numbers are turned there");
    assert!(!holds(&some, &packed("RotaryEmbedding", attrs(2), &["r", "cos", "sin"])));
    assert!(!holds(&some, &packed("RotaryEmbedding", attrs(4), &["r", "sin", "cos"])));
}

#[test]
fn a_cache_takes_in_rows_wherever_its_other_axes_lie() {
    let lines = |axis_of: i64, update: &'static str, order: &[i64]| {
        let made: Vec<Line<'_>> = vec![
            ("n", "Transpose", &["z"], perm(TO_FIRST)),
            ("m", "Neg", &["n"], vec![]),
            ("t", "Transpose", &["x"], perm(order)),
            ("u", "Transpose", if update == "n" { &["n"] } else { &["m"] }, perm(order)),
            ("s", "TensorScatter", &["t", "u"], axis(axis_of)),
        ];
        let mut back = vec![0; 4];
        order.iter().enumerate().for_each(|(to, &from)| back[from as usize] = to as i64);
        let mut made = made;
        made.push(("y", "Transpose", &["s"], perm(&back)));
        newest(&made, &[])
    };
    let a = lines(2, "n", &[0, 1, 2, 3]);
    assert!(holds(&a, &lines(-2, "n", &[0, 1, 2, 3])));
    assert!(holds(&a, &lines(1, "n", &[0, 2, 3, 1])));
    assert!(holds(&a, &lines(3, "n", &[0, 3, 1, 2])));
    assert!(!holds(&a, &lines(2, "n", &[0, 2, 3, 1])));
    assert!(!holds(&a, &lines(1, "m", &[0, 2, 3, 1])));
}

#[test]
fn norms_of_rows_and_their_activations_pass_moves() {
    let scale: Vec<f32> = (0..5).map(|n| n as f32 + 0.5).collect();
    let made = |order: &[i64], axis_of: i64, alpha: f32, scale: &[f32]| {
        let mut back = vec![0; 4];
        order.iter().enumerate().for_each(|(to, &from)| back[from as usize] = to as i64);
        let lines: &[Line<'_>] = &[
            ("t", "Transpose", &["x"], perm(order)),
            ("n", "RMSNormalization", &["t", "g"], axis(axis_of)),
            ("w", "Swish", &["n"], vec![("alpha", Attr::Float(alpha))]),
            ("v", "SwiGLU", &["w", "n"], vec![]),
            ("y", "Transpose", &["v"], perm(&back)),
        ];
        newest(lines, &[("g", &[5], scale.to_vec())])
    };
    let a = made(&[0, 1, 2, 3], -1, 1.0, &scale);
    assert!(holds(&a, &made(&[0, 2, 1, 3], 3, 1.0, &scale)));
    assert!(!holds(&a, &made(&[0, 2, 1, 3], 2, 1.0, &scale)));
    assert!(!holds(&a, &made(&[0, 2, 1, 3], 3, 1.5, &scale)));
    let mut other = scale.clone();
    other[3] += 1.0;
    assert!(!holds(&a, &made(&[0, 2, 1, 3], 3, 1.0, &other)));
    let lines: &[Line<'_>] = &[
        ("n", "RMSNormalization", &["x", "g"], vec![]),
        ("w", "Swish", &["n"], vec![]),
        ("y", "SwiGLU", &["w", "n"], vec![]),
    ];
    assert!(holds(&a, &newest(lines, &[("g", &[5], scale.clone())])), "defaults");
    let lines: &[Line<'_>] = &[
        ("n", "RMSNormalization", &["x", "g"], vec![]),
        ("w", "Swish", &["n"], vec![]),
        ("y", "SwiGLU", &["n", "w"], vec![]),
    ];
    assert!(!holds(&a, &newest(lines, &[("g", &[5], scale)])), "the gate is another operand");
}

#[test]
fn space_goes_to_depth_in_the_order_that_is_said() {
    let made = |mode: Option<&str>| {
        let mut attrs = vec![("blocksize", Attr::Int(2))];
        attrs.extend(mode.map(|mode| ("mode", Attr::Text(mode.as_bytes().to_vec()))));
        let lines: &[Line<'_>] = &[
            ("c", "Transpose", &["z"], perm(&[0, 2, 1, 3])),
            ("d", "SpaceToDepth", &["c"], attrs),
            ("y", "Relu", &["d"], vec![]),
        ];
        newest(lines, &[])
    };
    assert!(holds(&made(None), &made(Some("DCR"))));
    assert!(!holds(&made(None), &made(Some("CRD"))));
}
