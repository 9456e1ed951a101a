//! The verifier: a graph per problem, and its neighbour that is fine.

use relayout_ir::form::{Atom, AtomId, Bound, Form, Role, View};
use relayout_ir::graph::{Graph, Node, NodeId, Op, OpName, Use};
use relayout_ir::layout::Layout;
use relayout_ir::patch::{Insert, Patch};
use relayout_ir::text::parse;
use relayout_ir::verify::{Contract, Invariant, Violation, verify, verify_with};

/// Binds ops by their type, as a pass would: one signature per op here, whatever ONNX says.
fn bind(graph: &mut Graph) {
    let nodes: Vec<NodeId> = graph.nodes().collect();
    for n in nodes {
        let node = graph.node(n);
        let form = match node.onnx() {
            Some("Relu" | "Add") => elementwise(graph, node),
            Some("MatMul") => bound(
                &[("m", Role::Carried, false), ("k", Role::Contracted, false), ("n", Role::Carried, false)],
                &[Some(&[0, 1]), Some(&[1, 2])],
                &[Some(&[0, 2])],
            ),
            Some("Conv") => bound(
                &[
                    ("n", Role::Carried, true),
                    ("co", Role::Produced, false),
                    ("ci", Role::Contracted, false),
                    ("s", Role::Windowed, false),
                ],
                &[Some(&[0, 2, 3]), Some(&[1, 2, 3])],
                &[Some(&[0, 1, 3])],
            ),
            Some("Gather") => {
                let form = bound(
                    &[
                        ("x", Role::Carried, false),
                        ("axis", Role::Contracted, false),
                        ("i", Role::Carried, false),
                        ("y", Role::Carried, false),
                    ],
                    &[Some(&[0, 1, 3]), Some(&[2])],
                    &[Some(&[0, 2, 3])],
                );
                let Form::Axes(mut b) = form else { unreachable!("bound() makes axes") };
                b.substitute = Some((1, vec![2]));
                Form::Axes(b)
            }
            Some("Whole") => bound(&[("a", Role::Carried, false)], &[Some(&[0]), None], &[Some(&[0])]),
            Some("Identity") => Form::View(View::Same),
            Some("Reshape") => Form::View(View::Reshape),
            Some("Transpose") => {
                Form::View(View::Transpose(node.ints("perm").unwrap().iter().map(|&p| p as usize).collect()))
            }
            _ => Form::Opaque("no letters".to_owned()),
        };
        graph.set_form(n, form);
    }
}

fn elementwise(graph: &Graph, node: &Node) -> Form {
    let rank = |v: &Option<_>| v.and_then(|v| graph.value(v).ty.rank()).unwrap();
    let full = node.outputs.iter().map(rank).max().unwrap() as AtomId;
    let atoms: Vec<String> = (0..full).map(|k| format!("a{k}")).collect();
    let atoms: Vec<_> = atoms.iter().map(|name| (name.as_str(), Role::Carried, false)).collect();
    let slots: Vec<Vec<AtomId>> = node.inputs.iter().map(|v| (full - rank(v) as AtomId..full).collect()).collect();
    let slots: Vec<Option<&[AtomId]>> = slots.iter().map(|s| Some(s.as_slice())).collect();
    let all: Vec<AtomId> = (0..full).collect();
    bound(&atoms, &slots, &[Some(&all)])
}

fn bound(atoms: &[(&str, Role, bool)], operands: &[Option<&[AtomId]>], results: &[Option<&[AtomId]>]) -> Form {
    let own = |slots: &[Option<&[AtomId]>]| slots.iter().map(|s| s.map(<[AtomId]>::to_vec)).collect();
    let atoms = atoms.iter().map(|&(name, role, pinned)| Atom { name: name.to_owned(), role, pinned }).collect();
    let (operands, results): (Vec<_>, Vec<_>) = (own(operands), own(results));
    let aligned = vec![false; operands.len()];
    Form::Axes(Box::new(Bound {
        atoms,
        operands,
        results,
        aligned,
        substitute: None,
        orders: None,
        renumber: vec![],
        text: "of a test",
    }))
}

fn graph(lines: &str) -> Graph {
    let text = format!("graph g\n{lines}");
    let mut graph = parse(&text).unwrap_or_else(|e| panic!("{e}\n{text}"));
    bind(&mut graph);
    graph
}

fn problems(graph: &Graph) -> Vec<Violation> {
    verify(graph).err().unwrap_or_default()
}

fn texts(violations: &[Violation]) -> String {
    violations.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")
}

#[test]
#[expect(clippy::too_many_lines, reason = "a table of cases")]
fn sound_graphs_are_verified() {
    let cases = [
        "",
        // Channels-last in between, with moves at the ends.
        "  %x: f32[2,3,4,5]@NCHW = input
  %x.1: f32[2,3,4,5]@NHWC = relayout(%x)
  %y: f32[2,3,4,5]@NHWC = Relu(%x.1)
  %b: f32[3,1,1]@abc = const
  %z: f32[2,3,4,5]@NHWC = Add(%y, %b)
  %out: f32[2,3,4,5]@NCHW = relayout(%z)
  output %out\n",
        // Blocked, alike on both sides; the operand of extent 1 has no say.
        "  %x: f32[2,32,4,5]@NCHW = input
  %o: f32[1,1,4,5]@NHWC = const
  %x.1: f32[2,32,4,5]@NCHW16c = relayout(%x)
  %y: f32[2,32,4,5]@NCHW16c = Add(%x.1, %o)
  %out: f32[2,32,4,5]@NCHW = relayout(%y)
  output %out\n",
        // A transposed weight, letters in one order: k n m.
        "  %a: f32[2,3]@ab = input
  %a.1: f32[2,3]@ba = relayout(%a)
  %w: f32[3,4]@ab = const
  %y: f32[2,4]@ba = MatMul(%a.1, %w)
  %z: f32[4,2]@ab = Transpose(%y) {perm=[1,0]}
  output %z\n",
        // Axes of extent 1 may stand anywhere, at pinned ends as well.
        "  %x: f32[1,3,1,1]@NHWC = input
  %y: f32[1,3,1,1]@NCHW = Relu(%x)
  output %y\n",
        // A Transpose may move; a Reshape of row-major data with extents that can't be compared.
        "  %x: f32[N,3]@ab = input
  %t: f32[3,N]@ab = Transpose(%x) {perm=[1,0]}
  %s: i64[2] = const [0,-1]
  %r: f32[M,K]@ab = Reshape(%t, %s)
  %i: f32[M,K]@ab = Identity(%r)
  output %i\n",
        // Gather's indices follow the axis that they replace, whatever the order.
        "  %x: f32[2,3,4]@abc = input
  %i: i64[5] = input
  %x.1: f32[2,3,4]@cba = relayout(%x)
  %y: f32[2,5,4]@cba = Gather(%x.1, %i)
  %z: f32[2,5,4]@abc = relayout(%y)
  output %z\n",
        // What has no rank has no layout.
        "  %x: <seq(tensor(float))> = input
  %y: ?[*] = SequenceAt(%x)
  output %y\n",
        // A constant that is still to be repacked, and bodies that capture.
        "  %c: bool[] = input
  %w: f32[2,3]@ba = const ; 24 B, stored as @ba
  %v: f32[2,3]@ab = relayout(%w)
  %y: f32[2,3]@ab = If(%c) {else_branch=body, then_branch=body}
    body a
      %v: f32[2,3]@ab = outer
      output %v
    end
    body b
      %y: f32[2,3]@ab = If() {then_branch=body}
        body c
          %k: f32[2,3]@ab = const
          output %k
        end
      output %y
    end
  output %y\n",
    ];
    for lines in cases {
        let g = graph(lines);
        if let Err(violations) = verify(&g) {
            panic!("{}\n{lines}", texts(&violations));
        }
    }
}

/// What is wrong, what it breaks, the graph, and what its message says.
const PROBLEMS: &[(&str, Invariant, &str, &[&str])] = &[
    ("an outer value in the main graph", Invariant::Scope, "  %x: f32[2] = outer\n", &["value `x`", "no outer scope"]),
    (
        "an outer value that nobody captures",
        Invariant::Scope,
        "  %y: f32[2] = If() {then_branch=body}\n    body b\n      %x: f32[2] = outer\n      output %x\n    end\n  output %y\n",
        &["If -> `y`", "value `x`", "does not capture it"],
    ),
    (
        "a constant of another type",
        Invariant::Constant,
        "  %x: i64[2] = const<f32[2]>\n",
        &["value `x` is i64[2], but its constant is f32"],
    ),
    (
        "a constant of other extents",
        Invariant::Constant,
        "  %x: f32[2,3]@ba = const<f32[2,3]>\n",
        &["f32[2,3] stored as ba", "extents [2, 3]"],
    ),
    (
        "a repack that loses elements",
        Invariant::Constant,
        "  %x: f32[2,3]@ba = const ; 24 B, stored as [2,4]@ba\n",
        &["from [2, 4] as ba to [3, 2]"],
    ),
    ("a layout of another rank", Invariant::Layout, "  %x: f32[2,3]@NCHW = my::Op()\n", &["`x` is f32[2,3]", "rank 4"]),
    (
        "a slot map that does not fit",
        Invariant::Layout,
        "  %x: f32[1,100,7,7]@N C[58:64,58:64]/16 H W C%16 = my::Op()\n",
        &["covers 116 indices"],
    ),
    (
        "a slot map of a symbolic axis",
        Invariant::Layout,
        "  %x: f32[1,C,7,7]@N C[58:64,58:64]/16 H W C%16 = my::Op()\n",
        &["slot map for the symbolic axis 1"],
    ),
    (
        "an input",
        Invariant::Pinned,
        "  %x: f32[2,3]@ba = input\n",
        &["`x` is stored as ba", "the caller sees it as ab"],
    ),
    (
        "an output",
        Invariant::Pinned,
        "  %x: f32[2,3]@ab = input\n  %y: f32[2,3]@ba = relayout(%x)\n  output %y\n",
        &["`y` is stored as ba", "the caller sees it"],
    ),
    (
        "a captured value",
        Invariant::Pinned,
        "  %x: f32[2,3]@ab = input
  %y: f32[2,3]@ba = relayout(%x)
  %z: f32[2,3]@ab = If() {b=body}
    body b
      %y: f32[2,3]@ab = outer
      output %y
    end\n",
        &["If -> `z`", "value `y` is stored as ba", "crosses the border of a body"],
    ),
    (
        "an outer value",
        Invariant::Pinned,
        "  %y: f32[2,3]@ab = input
  %z: f32[2,3]@ab = If() {b=body}
    body b
      %y: f32[2,3]@ba = outer
      %y.1: f32[2,3]@ab = relayout(%y)
      output %y.1
    end\n",
        &["If -> `z`", "value `y` is stored as ba", "crosses the border of a body"],
    ),
    (
        "the output of a body",
        Invariant::Pinned,
        "  %z: f32[2,3]@ab = If() {b=body}
    body b
      %x: f32[2,3]@ab = const
      %y: f32[2,3]@ba = relayout(%x)
      output %y
    end\n",
        &["If -> `z`: value `y`", "crosses the border of a body"],
    ),
    (
        "a relayout that changes the type",
        Invariant::Relayout,
        "  %x: f32[2,3]@ab = input\n  %y: f32[3,2]@ab = relayout(%x)\n",
        &["value `y` is f32[3,2]", "operand `x` is f32[2,3]"],
    ),
    (
        "a relayout without operand",
        Invariant::Relayout,
        "  %y: f32[3,2]@ab = relayout()\n",
        &["one operand and one result"],
    ),
    (
        "a relayout of what has no rank",
        Invariant::Relayout,
        "  %x: f32[*] = input\n  %y: f32[*] = relayout(%x)\n",
        &["no known rank"],
    ),
    (
        "operands in two orders",
        Invariant::Axes,
        "  %x: f32[2,3]@ab = input\n  %y: f32[2,3]@ba = relayout(%x)\n  %z: f32[2,3]@ab = Add(%x, %y)\n",
        &["Add -> `z`: value `y` is stored as ba", "orders the letters otherwise", "a0 a1, a0 a1 -> a0 a1"],
    ),
    (
        "a result in another order",
        Invariant::Axes,
        "  %x: f32[2,3,4]@abc = input\n  %z: f32[2,3,4]@acb = Relu(%x)\n",
        &["value `z` is stored as acb"],
    ),
    (
        "three operands whose orders make a circle",
        Invariant::Axes,
        "  %a: f32[2,3]@ab = input\n  %w: f32[3,4]@ab = const\n  %y: f32[2,4]@ba = MatMul(%a, %w)\n",
        &["value `y` is stored as ba"],
    ),
    (
        "a block on one side only",
        Invariant::Axes,
        "  %x: f32[1,32,2,2]@NCHW = input\n  %z: f32[1,32,2,2]@NCHW16c = Relu(%x)\n",
        &["value `z`", "splits `a1` otherwise"],
    ),
    (
        "a letter that is found by position",
        Invariant::Axes,
        "  %x: f32[2,3,4]@abc = input
  %x.1: f32[2,3,4]@bac = relayout(%x)
  %w: f32[5,3,2]@abc = const
  %y: f32[2,5,3]@bac = Conv(%x.1, %w)\n",
        &["can't run with `x.1` as bac", "put relayouts there"],
    ),
    (
        "a windowed letter that is split",
        Invariant::Axes,
        "  %x: f32[2,3,8]@a c/4 b c%4 = my::Op()
  %w: f32[5,3,2]@abc = const
  %y: f32[2,5,7]@abc = Conv(%x, %w)\n",
        &["splits axis 2; `s` must be whole"],
    ),
    (
        "indices torn from the axis that they replace",
        Invariant::Axes,
        "  %x: f32[2,3,4]@abc = input
  %i: i64[5] = input
  %y: f32[2,5,4]@acb = Gather(%x, %i)\n",
        &["can't run with"],
    ),
    (
        "a stale binding",
        Invariant::Axes,
        "  %a: f32[2,3,1]@abc = input\n  %w: f32[3,4]@ab = const\n  %y: f32[2,4]@ab = MatMul(%a, %w)\n",
        &["value `a` is f32[2,3,1], but its slot has 2 axes"],
    ),
    (
        "a slot that is read as it is",
        Invariant::Opaque,
        "  %x: f32[2] = input\n  %k: f32[2,3]@ba = const\n  %y: f32[2] = Whole(%x, %k)\n",
        &["value `k` is stored as ba"],
    ),
    (
        "a view that is stored otherwise",
        Invariant::View,
        "  %x: f32[2,3,4]@abc = input\n  %y: f32[6,4]@ba = Reshape(%x)\n",
        &["value `y` is stored as ba", "lie as ab"],
    ),
    (
        "a view that cannot be spelled",
        Invariant::View,
        "  %x: f32[1,20,2,2]@NCHW16c = my::Op()\n  %y: f32[4,5,4]@abc = Reshape(%x)\n",
        &["can't view `x` as stored (NCHW16c)", "row-major before the view"],
    ),
    (
        "an identity that moves",
        Invariant::View,
        "  %x: f32[2,3]@ab = input\n  %y: f32[2,3]@ba = Identity(%x)\n",
        &["value `y` is stored as ba"],
    ),
    (
        "a permutation of another rank",
        Invariant::View,
        "  %x: f32[2,3]@ab = input\n  %y: f32[2,3]@ba = Transpose(%x) {perm=[0,2,1]}\n",
        &["permutation [0, 2, 1]"],
    ),
    ("a view without operand", Invariant::View, "  %y: f32[2,3]@ab = Identity()\n", &["an operand and a result"]),
    (
        "an opaque node",
        Invariant::Opaque,
        "  %x: f32[2,3]@ab = input\n  %y: f32[2,3]@ba = my::Op(%x)\n",
        &["value `y` is stored as ba", "(no letters)"],
    ),
];

#[test]
fn every_problem_is_named_with_its_place_and_a_fix() {
    for (what, invariant, lines, fragments) in PROBLEMS {
        let violations = problems(&graph(lines));
        let found = violations
            .iter()
            .find(|v| v.invariant == *invariant && fragments.iter().all(|f| v.to_string().contains(f)));
        assert!(found.is_some(), "{what}: {}", texts(&violations));
        assert!(violations.iter().all(|v| !v.fix.is_empty()), "{what}");
    }
}

#[test]
fn a_value_crosses_a_border_in_one_layout() {
    let agreed = |inner: &str| {
        format!(
            "  %c: bool[] = input\n  %x: f32[2,3]@ab = input\n  %y: f32[2,3]@ba = relayout(%x)
  %z: f32[2,3]@ba = If(%c) {{else_branch=body, then_branch=body}}
    body e
      %y: f32[2,3]@ba = outer
      %u: f32[2,3]@ba = relayout(%y)
      output %u
    end
    body t
      %y: f32[2,3]@{inner} = outer
      output %y
    end
  %w: f32[2,3]@ab = relayout(%z)\n  output %w\n"
        )
    };
    let check = |inner: &str| {
        let mut g = graph(&agreed(inner));
        let holder = g.nodes().find(|&n| g.node(n).onnx() == Some("If")).unwrap();
        let form = relayout_ir::op::bind(&g, holder);
        g.set_form(holder, form);
        problems(&g)
    };
    assert!(check("ba").is_empty(), "{}", texts(&check("ba")));
    assert!(
        check("ab").iter().any(|v| v.to_string().contains("the other side of the border")),
        "{}",
        texts(&check("ab"))
    );
}

#[test]
fn every_problem_is_listed_and_not_only_the_first() {
    let g = graph(
        "  %x: f32[2,3]@ba = input
  %y: f32[2,3]@ab = my::Op(%x)
  %z: f32[2,3]@ab = If() {b=body}
    body b
      %k: f32[2,3]@ab = const<i8[1]>
      output %k
    end
  output %z\n",
    );
    let invariants: Vec<Invariant> = problems(&g).iter().map(|v| v.invariant).collect();
    assert_eq!(
        invariants,
        [Invariant::Pinned, Invariant::Pinned, Invariant::Opaque, Invariant::Constant, Invariant::Constant]
    );
}

#[test]
fn a_contract_says_how_the_caller_has_inputs_and_outputs() {
    let g = graph("  %x: f32[1,3,4,5]@NHWC = input\n  %y: f32[1,3,4,5]@NHWC = Relu(%x)\n  output %y\n");
    let nhwc: Layout = "NHWC".parse().unwrap();
    let contract: Contract = [("x", &nhwc), ("y", &nhwc)].into_iter().map(|(n, l)| (n.to_owned(), l.clone())).collect();
    assert!(verify_with(&g, &contract).is_ok());
    assert_eq!(problems(&g).len(), 2);
    let other = graph("  %x: f32[1,3,4,5]@NCHW = input\n  %y: f32[1,3,4,5]@NCHW = Relu(%x)\n  output %y\n");
    let violations = verify_with(&other, &contract).unwrap_err();
    assert!(violations.iter().all(|v| v.to_string().contains("the contract has it as NHWC")), "{}", texts(&violations));
}

#[test]
fn nodes_that_wait_for_each_other_are_named() {
    let mut g = graph("  %x: f32[2] = input\n  %y: f32[2] = Relu(%x)\n  %z: f32[2] = Relu(%y)\n  output %z\n");
    let id = |name: &str| g.by_name(name).unwrap();
    let (y, z) = (id("y"), id("z"));
    let reader = g.value(y).producer().0;
    let op = OpName { domain: String::new(), name: "Relu".to_owned(), overload: String::new() };
    let mut patch = Patch::new();
    patch.insert(Insert {
        node: Node::new(Op::Onnx(op), vec![Some(z)]),
        name: "w".to_owned(),
        ty: g.value(z).ty.clone(),
        layout: Layout::row_major(1),
        uses: vec![Use { node: reader, slot: 0 }],
        outputs: vec![],
        takes_name_of: None,
    });
    patch.apply(&mut g).unwrap();
    bind(&mut g);
    let violations = problems(&g);
    assert_eq!(violations.len(), 1, "{}", texts(&violations));
    assert_eq!(violations[0].invariant, Invariant::Acyclic);
    assert!(violations[0].problem.contains("Relu -> `y`, Relu -> `z`, Relu -> `w`"), "{}", violations[0]);
    assert!(g.to_string().contains("; not in order: the graph has a cycle"));
}

#[test]
fn an_output_from_elsewhere_is_reported_and_not_followed() {
    let big = graph("  %x: f32[2] = input\n  %y: f32[2] = Relu(%x)\n");
    let mut g = graph("  %x: f32[2] = input\n");
    g.add_output(big.by_name("y").unwrap());
    let violations = problems(&g);
    assert_eq!(violations.len(), 1, "{}", texts(&violations));
    assert_eq!(violations[0].invariant, Invariant::Outputs);
}

#[test]
fn an_input_node_must_be_a_graph_input() {
    let mut g = graph("  %x: f32[2] = input\n");
    let ty = g.value(g.by_name("x").unwrap()).ty.clone();
    g.add_single(Node::new(Op::Input { default: None }, vec![]), "stray".to_owned(), ty.clone()).unwrap();
    let x = g.by_name("x");
    g.add_single(Node::new(Op::Outer, vec![x]), "odd".to_owned(), ty).unwrap();
    let text = texts(&problems(&g));
    assert!(text.contains("value `stray` is made by an input node, but is not a graph input"), "{text}");
    assert!(text.contains("stands for one value"), "{text}");
}

/// A graph whose nodes are bound to the table of ops.
fn bound_to_the_table(lines: &str) -> Graph {
    let mut graph = parse(&format!("graph g opset=17\n{lines}")).unwrap();
    let nodes: Vec<NodeId> = graph.nodes().collect();
    for n in nodes {
        let form = relayout_ir::op::bind(&graph, n);
        graph.set_form(n, form);
    }
    graph
}

#[test]
fn the_signatures_of_the_table_accept_row_major_graphs() {
    let g = bound_to_the_table(
        "  %x: f32[1,8,6,6]@NCHW = input
  %w: f32[4,8,3,3]@OIHW = const
  %b: f32[4] = const
  %c: f32[1,4,4,4]@NCHW = Conv(%x, %w, %b)
  %r: f32[1,4,4,4]@NCHW = Relu(%c)
  %t: f32[1,4,4,4]@NCHW = Transpose(%r) {perm=[0,2,3,1]}
  %m: f32[4,5]@ab = const
  %y: f32[1,4,4,5]@NCHW = MatMul(%t, %m)
  %s: f32[1,4,4,5]@NCHW = Softmax(%y) {axis=3}
  %g: f32[1,4,1,1]@NCHW = GlobalAveragePool(%c)
  %k: f32[1,8,4,4]@NCHW = Concat(%c, %r) {axis=1}
  output %s
  output %g
  output %k\n",
    );
    let violations = problems(&g);
    assert!(violations.is_empty(), "{}", texts(&violations));
    let named = |op: &str| g.nodes().find(|&n| g.node(n).onnx() == Some(op)).unwrap();
    for op in ["Conv", "Relu", "MatMul", "Softmax", "Concat"] {
        assert!(matches!(g.node(named(op)).form, Form::Axes(_)), "{op}: {:?}", g.node(named(op)).form.opaque_reason());
    }
}

#[test]
fn a_relu_of_the_table_takes_any_order_and_a_convolution_only_onnx_order() {
    let relu = bound_to_the_table(
        "  %x: f32[1,8,6,6]@NCHW = input
  %x.1: f32[1,8,6,6]@NHWC = relayout(%x)
  %y: f32[1,8,6,6]@NHWC = Relu(%x.1)
  %z: f32[1,8,6,6]@NCHW = relayout(%y)
  output %z\n",
    );
    assert_eq!(texts(&problems(&relu)), "");
    let conv = bound_to_the_table(
        "  %x: f32[1,8,6,6]@NCHW = input
  %x.1: f32[1,8,6,6]@NHWC = relayout(%x)
  %w: f32[4,8,3,3]@OIHW = const
  %y: f32[1,4,4,4]@NHWC = Conv(%x.1, %w)
  %z: f32[1,4,4,4]@NCHW = relayout(%y)
  output %z\n",
    );
    let violations = problems(&conv);
    assert!(
        violations.iter().any(|v| v.invariant == Invariant::Axes && v.to_string().contains("Conv")),
        "{}",
        texts(&violations)
    );
}
