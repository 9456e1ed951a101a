//! Numbers of strangers: what is too large is refused, without a panic and without much memory.

use super::*;

fn ints(list: &[i64]) -> Attr {
    Attr::Ints(list.to_vec())
}

fn constant(name: &'static str, list: &[i64]) -> Line<'static> {
    (name, "Constant", &[], vec![("value_ints", ints(list))])
}

#[test]
fn claims_of_any_numbers_are_refused() {
    let a = model(&[("y", "Relu", &["x"], vec![])], &[]);
    let all = (0, -1, 1);
    let lists: [Vec<Vec<(u32, i64, i64)>>; 6] = [
        vec![vec![(0, 2, i64::MIN)]],
        vec![vec![(0, i64::MAX, i64::MAX)]],
        vec![vec![(0, i64::MIN, 1)]],
        vec![vec![(9, 1, 1)]],
        vec![vec![(1, -1, 1); 90]],
        vec![vec![all]; 90],
    ];
    for lies in lists {
        let claim = Claim { value: "y".into(), is: None, lies: Some(lies) };
        let proof = Proof { version: 1, values: vec![claim], ..Proof::default() };
        assert!(!verdict(&a, &a, &proof).holds(), "{proof:?}");
    }
}

#[test]
fn ops_with_any_numbers_are_refused() {
    let huge = 1 << 40;
    let last = |list: &[i64], op: &'static str, operands: &'static [&'static str], attrs: Vec<(&'static str, Attr)>| {
        model(&[constant("n", list), ("y", op, operands, attrs)], &[("w", &[6, 6, 1, 1], vec![1.0; 36])])
    };
    let alone = |name: &'static str, list: &[i64]| vec![(name, ints(list))];
    let models = [
        last(&[huge, huge], "ConstantOfShape", &["n"], vec![]),
        last(&[huge, i64::MAX], "Expand", &["x", "n"], vec![]),
        last(&[i64::MAX, i64::MAX, i64::MAX, i64::MAX], "Tile", &["x", "n"], vec![]),
        last(&[i64::MAX, 2], "Reshape", &["x", "n"], vec![]),
        last(&[i64::MAX, i64::MAX], "Split", &["x", "n"], vec![]),
        last(&[0], "Split", &["x"], vec![("num_outputs", Attr::Int(i64::MAX))]),
        last(&[i64::MAX; 8], "Pad", &["x", "n"], vec![]),
        last(&[0], "Conv", &["x", "w"], alone("strides", &[i64::MAX, 1])),
        last(&[0], "Conv", &["x", "w"], alone("pads", &[i64::MAX, i64::MAX, 0, i64::MAX])),
        last(&[0], "ConvTranspose", &["x", "w"], vec![("group", Attr::Int(i64::MAX))]),
        last(&[0], "DepthToSpace", &["x"], vec![("blocksize", Attr::Int(i64::MAX))]),
    ];
    for model in models {
        assert!(!holds(&model, &model), "{:?}", model.graph.nodes[1]);
    }
}

#[test]
fn constants_are_not_made_much_larger_than_their_file() {
    let wide = |op: &'static str| {
        let lines: &[Line<'_>] = &[
            constant("rows", &[1 << 20, 1]),
            constant("columns", &[1, 1 << 20]),
            ("a", "Expand", &["w", "rows"], vec![]),
            ("b", "Expand", &["w", "columns"], vec![]),
            ("c", op, &["a", "b"], vec![]),
            ("s", "Shape", &["c"], vec![]),
            ("m", "ReduceMean", &["c"], vec![]),
            ("y", "Mul", &["x", "m"], vec![]),
        ];
        model(lines, &[("w", &[1, 1], vec![0.5])])
    };
    // Elements that are all the same are one.
    assert!(holds(&wide("Add"), &wide("Add")));
    let lines: &[Line<'_>] = &[
        constant("start", &[0]),
        constant("end", &[1 << 60]),
        ("n", "Range", &["start", "end", "one"], vec![]),
        ("y", "Gather", &["x", "n"], vec![]),
    ];
    let range = model(&[&[constant("one", &[1])], lines].concat(), &[]);
    assert!(!holds(&range, &range));
}

/// A file with a tensor of these dims, and no data, as protobuf has it.
fn with_dims(dims: &[u64]) -> Vec<u8> {
    let varint = |mut n: u64| {
        let mut bytes = Vec::new();
        while n >= 0x80 {
            bytes.push(n as u8 | 0x80);
            n >>= 7;
        }
        bytes.push(n as u8);
        bytes
    };
    let field = |number: u8, bytes: &[u8]| [&[number << 3 | 2][..], &varint(bytes.len() as u64), bytes].concat();
    let list: Vec<u8> = dims.iter().flat_map(|&dim| [vec![8], varint(dim)].concat()).collect();
    // Its dims, floats, its name, and data of no bytes.
    let tensor = [list, vec![16, 1], field(8, b"w"), field(9, b"")].concat();
    let graph = [field(2, b"g"), field(5, &tensor)].concat();
    [vec![8, 8], field(7, &graph)].concat()
}

#[test]
fn tensors_of_no_elements_have_dims_that_can_be_multiplied() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("m.onnx");
    for (dims, is_read) in [
        (&[0, 3][..], true),
        (&[3, 0, 1 << 40], true),
        (&[0, 1 << 40, 1 << 40], false),
        (&[1 << 40, 1 << 40, 0], false),
        (&[0, u64::MAX], false),
        (&[1 << 40], false),
    ] {
        std::fs::write(&path, with_dims(dims)).unwrap();
        let verdict = crate::prove(&path, &path, &Proof::default());
        assert_eq!(verdict.is_ok(), is_read, "{dims:?}: {verdict:?}");
    }
}
