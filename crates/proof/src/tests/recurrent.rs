//! Recurrent ops between ops that move: their shapes are known, and all that they are told is compared.

use super::*;

/// An LSTM of `x` [2, 6, 20] between reshapes, and a Transpose of what it makes, [2, 1, 6, 4].
fn lstm(change: impl Fn(&mut Model)) -> Model {
    let shape = |list: &[i64]| vec![("value_ints", Attr::Ints(list.to_vec()))];
    let lines: &[Line<'_>] = &[
        ("s", "Constant", &[], shape(&[2, 6, 20])),
        ("u", "Reshape", &["x", "s"], vec![]),
        ("l", "LSTM", &["u", "w", "r", "b"], vec![("hidden_size", Attr::Int(4))]),
        ("y", "Transpose", &["l"], perm(&[0, 2, 3, 1])),
    ];
    let numbers = |count: usize| (0..count).map(|n| n as f32 * 0.1 - 3.0).collect::<Vec<f32>>();
    let constants: &[(&str, &[i64], Vec<f32>)] =
        &[("w", &[1, 16, 20], numbers(320)), ("r", &[1, 16, 4], numbers(64)), ("b", &[1, 32], numbers(32))];
    let mut made = model(lines, constants);
    change(&mut made);
    made
}

/// The same with the Transpose in two.
fn in_two(order: &[i64], change: impl Fn(&mut Model)) -> Model {
    lstm(|made| {
        let graph = Rc::make_mut(&mut made.graph);
        "t".clone_into(&mut graph.nodes[3].outputs[0]);
        let mut last = graph.nodes[3].clone();
        graph.nodes[3].attrs[0].1 = Attr::Ints(vec![3, 1, 0, 2]);
        (last.inputs, last.outputs) = (vec!["t".into()], vec!["y".into()]);
        last.attrs[0].1 = Attr::Ints(order.to_vec());
        graph.nodes.push(last);
        change(made);
    })
}

#[test]
fn what_a_recurrent_op_makes_can_be_moved() {
    let a = lstm(|_| ());
    let right: &[i64] = &[2, 3, 0, 1];
    assert!(holds(&a, &in_two(right, |_| ())), "{}", verdict(&a, &in_two(right, |_| ()), &Proof::default()));
    assert!(!holds(&a, &in_two(&[2, 0, 3, 1], |_| ())));
    let node = |made: &mut Model, change: fn(&mut Node)| change(&mut Rc::make_mut(&mut made.graph).nodes[2]);
    let wrong: [fn(&mut Node); 5] = [
        |n| n.attrs.push(("direction".into(), Attr::Text(b"reverse".to_vec()))),
        |n| n.attrs.push(("clip".into(), Attr::Float(3.0))),
        |n| n.inputs.truncate(3),
        |n| n.outputs = vec![String::new(), "l".into()],
        |n| "GRU".clone_into(&mut n.op),
    ];
    for change in wrong {
        assert!(!holds(&a, &in_two(right, |made| node(made, change))));
    }
    for at in 0..3 {
        let other = in_two(right, |made| {
            let tensor = &mut Rc::make_mut(&mut made.graph).initializers[at].1;
            let mut data = tensor.data.to_vec();
            data[5] ^= 1;
            tensor.data = data.into();
        });
        assert!(!holds(&a, &other), "constant {at}");
    }
    assert!(!holds(&a, &in_two(right, |made| made.opsets.extend([(String::new(), 13)]))), "another version");
}

#[test]
fn operands_that_do_not_fit_are_refused() {
    let wide = lstm(|made| Rc::make_mut(&mut made.graph).initializers[1].1.dims = vec![1, 4, 16]);
    assert!(!holds(&wide, &wide));
}

#[test]
fn without_a_first_state_it_is_zero() {
    let first = |number: f32| {
        lstm(|made| {
            let graph = Rc::make_mut(&mut made.graph);
            let data: Vec<u8> = [0.0, number].repeat(12).iter().flat_map(|value| value.to_le_bytes()).collect();
            graph.initializers.push(("h".into(), Tensor { dims: vec![1, 6, 4], dtype: 1, data: data.into() }));
            graph.nodes[2].inputs.extend([String::new(), "h".into(), "h".into()]);
        })
    };
    let none = lstm(|_| ());
    assert!(holds(&first(0.0), &none) && holds(&none, &first(0.0)));
    assert!(!holds(&first(0.5), &none));
}
