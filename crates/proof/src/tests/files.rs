//! Files that readers read in more than one way, or that mean something else than they seem to: refused.

use super::*;
use crate::files::contents::Contents;
use ::bytes::Bytes;

fn varint(mut value: u64) -> Vec<u8> {
    let mut bytes = Vec::new();
    while value >= 0x80 {
        bytes.push(value as u8 | 0x80);
        value >>= 7;
    }
    bytes.push(value as u8);
    bytes
}

/// A field of bytes.
fn field(number: u64, content: impl AsRef<[u8]>) -> Vec<u8> {
    let content = content.as_ref();
    [varint(number << 3 | 2), varint(content.len() as u64), content.to_vec()].concat()
}

/// A field of a number.
fn number(field: u64, value: u64) -> Vec<u8> {
    [varint(field << 3), varint(value)].concat()
}

fn node(op: &str, more: &[u8]) -> Vec<u8> {
    [field(1, "x"), field(2, "y"), field(4, op), more.to_vec()].concat()
}

fn graph(node: &[u8], more: &[u8]) -> Vec<u8> {
    let shape = field(1, number(1, 2));
    let tensor = [number(1, 1), field(2, shape)].concat();
    let input = [field(1, "x"), field(2, field(1, tensor))].concat();
    field(7, [field(1, node), field(11, input), field(12, field(1, "y")), more.to_vec()].concat())
}

fn file(graph: &[u8], more: &[u8]) -> Vec<u8> {
    let opset = field(8, [field(1, ""), number(2, 17)].concat());
    [number(1, 8), opset, graph.to_vec(), more.to_vec()].concat()
}

fn read(bytes: Vec<u8>) -> Result<Model, String> {
    Contents::new(bytes.into(), "m.onnx").read().map_err(|e| e.to_string())
}

#[test]
fn what_stands_twice_is_refused() {
    let plain = graph(&node("Relu", &[]), &[]);
    assert!(read(file(&plain, &[])).is_ok());
    let alpha = |value: f32| {
        let bits = [varint(2 << 3 | 5), value.to_le_bytes().to_vec()].concat();
        [field(1, "alpha"), bits, number(20, 1)].concat()
    };
    let once = node("LeakyRelu", &field(5, alpha(0.5)));
    assert!(read(file(&graph(&once, &[]), &[])).is_ok());
    let twice = |more: &[u8]| node("LeakyRelu", more);
    let sigmoid = |domain: &str, name: &str| {
        let body = node("Relu", &[]);
        let opset = field(9, [field(1, ""), number(2, 17)].concat());
        field(25, [field(1, name), field(4, "x"), field(5, "y"), field(7, body), opset, field(10, domain)].concat())
    };
    let own = sigmoid("mine", "Sigmoid");
    assert!(read(file(&plain, &own)).is_ok());
    let data = [field(1, varint(1)), number(2, 1), field(8, "c"), field(9, 1f32.to_le_bytes())].concat();
    assert!(read(file(&graph(&node("Relu", &[]), &field(5, &data)), &[])).is_ok());
    let (once, both) = (field(5, &data), [data, field(4, 2f32.to_le_bytes())].concat());
    let refused = [
        ("the graph", file(&plain, &plain)),
        ("the version of the format", file(&plain, &number(1, 9))),
        ("an operator set", file(&plain, &field(8, [field(1, "ai.onnx"), number(2, 9)].concat()))),
        ("the op of a node", file(&graph(&node("Relu", &field(4, "Neg")), &[]), &[])),
        ("an attribute", file(&graph(&twice(&[field(5, alpha(0.5)), field(5, alpha(0.25))].concat()), &[]), &[])),
        ("the name of an attribute", {
            let attribute = [alpha(0.5), field(1, "beta")].concat();
            file(&graph(&twice(&field(5, attribute)), &[]), &[])
        }),
        ("a function", file(&plain, &[own.clone(), own].concat())),
        ("the block", {
            let block = |value: &str| field(14, [field(1, "relayout.block"), field(2, value)].concat());
            file(&plain, &[block("8"), block("16")].concat())
        }),
        ("data in two places", file(&graph(&node("Relu", &[]), &field(5, both)), &[])),
        ("an initializer", file(&graph(&node("Relu", &[]), &[once.clone(), once].concat()), &[])),
        ("a function named like an operator", file(&plain, &sigmoid("", "Sigmoid"))),
        ("the same by the other name of the domain", file(&plain, &sigmoid("ai.onnx", "Sigmoid"))),
        ("a function named like one of the runtime", file(&plain, &sigmoid("com.microsoft", "Gelu"))),
    ];
    for (what, bytes) in refused {
        assert!(read(bytes).is_err(), "{what}");
    }
}

/// `x` times six numbers, one for each channel, which a caller may set if `c` is an input too.
fn scaled(by: &'static str, ir: i64, free: bool) -> Model {
    let numbers = || (1..=6).map(|n| n as f32).collect::<Vec<f32>>();
    let constants: [(&str, &[i64], Vec<f32>); 2] = [("c", &[1, 6, 1, 1], numbers()), ("k", &[1, 6, 1, 1], numbers())];
    let mut made = model(&[("y", "Mul", &["x", by], vec![])], &constants);
    made.ir = ir;
    if free {
        let dims = Some([1, 6, 1, 1].map(DeclaredDim::Known).to_vec());
        Rc::make_mut(&mut made.graph).inputs.push(Input { name: "c".to_owned(), dtype: 1, dims, ..Input::default() });
    }
    made
}

#[test]
fn what_a_caller_may_set_is_no_constant() {
    assert!(holds(&scaled("c", 8, true), &scaled("c", 8, true)));
    assert!(holds(&scaled("c", 8, false), &scaled("k", 8, false)));
    assert!(!holds(&scaled("c", 8, true), &scaled("k", 8, true)), "the caller's numbers are not read");
    assert!(!holds(&scaled("c", 8, true), &scaled("c", 8, false)), "nobody can set them any more");
    // Before version 4 every initializer had to be an input.
    assert!(holds(&scaled("c", 3, true), &scaled("k", 3, true)));
    let mut other = scaled("c", 8, true);
    let graph = Rc::make_mut(&mut other.graph);
    graph.initializers[0].1.data = graph.initializers[0].1.data.iter().rev().copied().collect::<Vec<u8>>().into();
    assert!(!holds(&scaled("c", 8, true), &other), "another default");
}

#[test]
fn padding_that_readers_take_otherwise_is_refused() {
    let pool = |more: &[(&'static str, Attr)]| {
        let mut attrs = vec![("kernel_shape", Attr::Ints(vec![3, 3])), ("strides", Attr::Ints(vec![2, 2]))];
        attrs.extend(more.iter().cloned());
        model(&[("y", "MaxPool", &["x"], attrs)], &[])
    };
    let auto = |text: &str| ("auto_pad", Attr::Text(text.into()));
    let plain = pool(&[]);
    assert!(holds(&plain, &pool(&[auto("VALID")])));
    assert!(!holds(&plain, &pool(&[auto("VALID"), ("ceil_mode", Attr::Int(1))])));
    let same = pool(&[auto("SAME_UPPER")]);
    assert!(holds(&same, &same));
    let gaps = pool(&[auto("SAME_UPPER"), ("dilations", Attr::Ints(vec![2, 2]))]);
    assert!(!holds(&gaps, &gaps));
    assert!(!holds(&plain, &pool(&[auto("VALID"), ("pads", Attr::Ints(vec![1, 1, 1, 1]))])));
}

#[test]
fn attention_with_a_scale_of_zero_has_the_usual_one() {
    let attention = |scale: Option<f32>| {
        let mut attrs = vec![("num_heads", Attr::Int(2))];
        attrs.extend(scale.map(|scale| ("scale", Attr::Float(scale))));
        let rows: &[i64] = &[2, 20, 6];
        let data: Vec<u8> = rows.iter().flat_map(|n| n.to_le_bytes()).collect();
        let lines: &[Line<'_>] =
            &[("r", "Reshape", &["x", "n"], vec![]), ("y", "MultiHeadAttention", &["r", "r", "r"], attrs)];
        let mut made = model(lines, &[]);
        let graph = Rc::make_mut(&mut made.graph);
        graph.initializers.push(("n".to_owned(), Tensor { dims: vec![3], dtype: 7, data: data.into() }));
        graph.nodes[1].domain = "com.microsoft".to_owned();
        made.opsets.insert("com.microsoft".to_owned(), 1);
        made
    };
    assert!(holds(&attention(None), &attention(Some(0.0))));
    assert!(holds(&attention(None), &attention(Some(1.0 / 3f32.sqrt()))));
    assert!(!holds(&attention(None), &attention(Some(0.5))));
}

#[test]
fn a_file_that_nobody_touched_is_proved_if_it_is_a_model() {
    let strange = |op: &str, more: &[u8]| read(file(&graph(&node(op, more), &[]), &[])).unwrap();
    let told = |size: u64| field(5, [field(1, "blocksize"), number(3, size), number(20, 2)].concat());
    // Not of images, so the checker does not say what it makes.
    let (a, b) = (strange("DepthToSpace", &told(2)), strange("DepthToSpace", &told(3)));
    assert_eq!(verdict(&a, &a, &Proof::default()).to_string(), "PROVED: 0 links");
    assert!(!holds(&a, &b), "another file");
    for (op, more) in [
        ("Foo", vec![]),
        ("DepthToSpace", vec![]),
        ("DepthToSpace", [told(2), field(2, "z")].concat()),
        ("LSTM", vec![]),
    ] {
        let wrong = strange(op, &more);
        assert!(!holds(&wrong, &wrong), "{op}");
    }
    let mut beside = a.clone();
    beside.beside.insert("weights".into(), Bytes::from_static(b"1"));
    assert!(!holds(&a, &beside), "other weights beside it");
    let claim = Claim { value: "y".into(), is: Some("x".into()), lies: None };
    let proof = Proof { version: 1, values: vec![claim], ..Proof::default() };
    assert!(!verdict(&a, &a, &proof).holds(), "a false claim");
    let unread = strange("DepthToSpace", &[told(2), field(5, [field(1, "more"), number(20, 9)].concat())].concat());
    assert!(!holds(&unread, &unread), "constants that are not read");
    let blocked = |more: &[u8]| {
        let opset = field(8, [field(1, "com.microsoft.nchwc"), number(2, 1)].concat());
        let reorder = node("ReorderInput", &field(7, "com.microsoft.nchwc"));
        read(file(&graph(&reorder, &[]), &[opset, more.to_vec()].concat())).unwrap()
    };
    let block = field(14, [field(1, "relayout.block"), field(2, "16")].concat());
    assert!(holds(&blocked(&block), &blocked(&block)));
    assert!(!holds(&blocked(&[]), &blocked(&[])), "blocks of no known size");
}

#[test]
fn numbers_of_less_than_a_byte_are_read_one_by_one() {
    let constant = |dtype: u64, count: u64, data: &[u8]| {
        let tensor = [number(1, count), number(2, dtype), field(8, "c"), data.to_vec()].concat();
        let model = read(file(&graph(&node("Relu", &[]), &field(5, tensor)), &[]))?;
        let found = model.constants().find(|(name, _)| *name == "c").map(|(_, tensor)| tensor.data.to_vec());
        Ok::<_, String>(found)
    };
    let raw = |bytes: &[u8]| field(9, bytes);
    assert_eq!(constant(22, 3, &raw(&[0xe1, 0x03])), Ok(Some(vec![1, 14, 3])));
    // What fills the last byte says nothing.
    assert_eq!(constant(22, 3, &raw(&[0xe1, 0x73])), Ok(Some(vec![1, 14, 3])));
    assert_eq!(constant(22, 3, &field(5, [varint(0xe1), varint(3)].concat())), Ok(Some(vec![1, 14, 3])));
    assert_eq!(constant(25, 5, &raw(&[0b1101_1000, 0b10])), Ok(Some(vec![0, 2, 1, 3, 2])));
    for (count, data) in [(5, &[0xe1, 0x03][..]), (3, &[0xe1]), (2, &[0xe1, 0x03])] {
        assert!(constant(22, count, &raw(data)).is_err(), "{count}");
    }
}

/// A sparse constant `c` of 32 bit floats with these values.
fn sparse(values: &[f32], indices: &[i64], of: &[u64], dims: &[u64]) -> Vec<u8> {
    let list = |numbers: &[u64]| numbers.iter().flat_map(|n| varint(*n)).collect::<Vec<u8>>();
    let data: Vec<u8> = values.iter().flat_map(|v| v.to_le_bytes()).collect();
    let values = [field(1, varint(values.len() as u64)), number(2, 1), field(8, "c"), field(9, data)].concat();
    let data: Vec<u8> = indices.iter().flat_map(|v| v.to_le_bytes()).collect();
    let indices = [field(1, list(of)), number(2, 7), field(9, data)].concat();
    [field(1, values), field(2, indices), field(3, list(dims))].concat()
}

#[test]
fn a_sparse_constant_is_one_with_zeros() {
    let add = [field(1, "x"), field(1, "c"), field(2, "y"), field(4, "Add")].concat();
    let of = |constant: &[u8]| read(file(&graph(&add, constant), &[]));
    let dense = |numbers: [f32; 2]| {
        let data: Vec<u8> = numbers.iter().flat_map(|v| v.to_le_bytes()).collect();
        let tensor = [field(1, varint(2)), number(2, 1), field(8, "c"), field(9, data)].concat();
        of(&field(5, tensor)).expect("it is read")
    };
    let one = of(&field(15, sparse(&[2.5], &[1], &[1], &[2]))).expect("it is read");
    assert!(holds(&dense([0.0, 2.5]), &one));
    assert!(!holds(&dense([2.5, 0.0]), &one));
    assert!(!holds(&dense([0.0, 2.0]), &one));
    let by_axis = of(&field(15, sparse(&[2.5], &[1], &[1, 1], &[2]))).expect("it is read");
    assert!(holds(&one, &by_axis));
    for (wrong, constant) in [
        ("an index behind the end", sparse(&[2.5], &[2], &[1], &[2])),
        ("an index before the start", sparse(&[2.5], &[-1], &[1], &[2])),
        ("one place twice", sparse(&[2.5, 1.5], &[1, 1], &[2], &[2])),
        ("another order", sparse(&[2.5, 1.5], &[1, 0], &[2], &[2])),
        ("fewer indices than values", sparse(&[2.5, 1.5], &[1], &[1], &[2])),
        ("an index of more axes", sparse(&[2.5], &[0, 1], &[1, 2], &[2])),
        ("more than memory holds", sparse(&[2.5], &[1], &[1], &[1 << 40])),
        ("more than can be counted", sparse(&[2.5], &[1], &[1], &[1 << 62, 2, 0])),
    ] {
        assert!(of(&field(15, constant)).is_err(), "{wrong}");
    }
    let twice = [field(15, sparse(&[2.5], &[1], &[1], &[2])), field(15, sparse(&[2.5], &[1], &[1], &[2]))].concat();
    assert!(of(&twice).is_err(), "a constant that stands twice");
}
