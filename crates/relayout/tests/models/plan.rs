//! Plans in an embedder's ids, and the examples for embedders.

use relayout::builder::NewOp;
use relayout::ir::attr::Attr;
use relayout::ir::constant::Constant;
use relayout::ir::dim::Dim;
use relayout::ir::dtype::DType;
use relayout::ir::graph::{Graph, Node, Op, OpName, ValueId};
use relayout::ir::layout::Layout;
use relayout::ir::types::Type;
use relayout::plan::{Action, GraphPlan, Ids, ListPlan, NodePlan, PlanError};
use relayout::targets::{Block, OrtCpu};
use relayout::{Error, GraphBuilder, Options, Report, Size, Target, optimize_graph, plan_graph, target};

#[path = "../../examples/embed.rs"]
mod embed;
#[path = "../../examples/foreign_ir.rs"]
mod foreign_ir;

/// A graph whose values are called by their names, and its nodes by that of their result.
struct Named {
    builder: GraphBuilder,
    ids: Ids<String, String>,
}

type Plan = GraphPlan<String, String>;

impl Named {
    fn new() -> Named {
        Named { builder: GraphBuilder::new("g"), ids: Ids::new() }
    }

    fn input(&mut self, name: &str, dims: &[i64]) -> ValueId {
        let v = self.builder.input(name, DType::F32, dims.iter().map(|&d| Dim::from(d))).unwrap();
        self.ids.value(v, name.to_owned());
        v
    }

    fn floats(&mut self, name: &str, dims: &[i64]) -> ValueId {
        let count = usize::try_from(dims.iter().product::<i64>()).unwrap();
        let constant = Constant::inline(DType::F32, dims.to_vec(), vec![0u8; count * 4].into());
        let v = self.builder.constant(name, constant).unwrap();
        self.ids.value(v, name.to_owned());
        v
    }

    fn ints(&mut self, name: &str, values: &[i64]) -> ValueId {
        let v = self.builder.constant(name, Constant::ints(values)).unwrap();
        self.ids.value(v, name.to_owned());
        v
    }

    fn op(&mut self, op: &str, name: &str, inputs: &[ValueId], attrs: &[(&'static str, Attr)]) -> ValueId {
        let v = self.builder.op(op, name, inputs, attrs.iter().cloned()).unwrap();
        self.ids.value(v, name.to_owned());
        self.ids.node(self.builder.producer(v), name.to_owned());
        v
    }

    fn transpose(&mut self, name: &str, x: ValueId, perm: [i64; 4]) -> ValueId {
        self.op("Transpose", name, &[x], &[("perm", Attr::Ints(perm.to_vec()))])
    }

    fn plan(mut self, outputs: &[ValueId], options: &Options) -> (Plan, Report) {
        for &v in outputs {
            self.builder.output(v).unwrap();
        }
        let target = target("onnx").unwrap();
        plan_graph(&self.builder.finish(), &self.ids, target.as_ref(), options).unwrap_or_else(|e| panic!("{e}"))
    }
}

fn node<'p>(plan: &'p Plan, name: &str) -> &'p NodePlan<String, String> {
    plan.nodes.iter().find(|n| n.node == name).unwrap_or_else(|| panic!("no node {name}"))
}

fn layout(text: &str) -> Layout {
    text.parse().unwrap()
}

/// Channels-last outside, a Relu and what is between in the middle, channels-first: all may stay channels-last.
fn around(middle: impl FnOnce(&mut Named, ValueId) -> ValueId) -> Plan {
    let mut g = Named::new();
    let x = g.input("x", &[2, 4, 5, 3]);
    let first = g.transpose("first", x, [0, 3, 1, 2]);
    let inner = middle(&mut g, first);
    let last = g.transpose("last", inner, [0, 2, 3, 1]);
    let (plan, report) = g.plan(&[last], &Options::default());
    assert!(plan.changed && report.changed && report.after.nodes == 0, "{}", report.explain());
    assert_eq!((&node(&plan, "first").action, &node(&plan, "last").action), (&Action::Alias, &Action::Alias));
    plan
}

#[test]
fn the_examples_run_and_agree() {
    embed::main().unwrap();
    foreign_ir::main().unwrap();
    let outcome = foreign_ir::outcome().unwrap();
    assert_eq!(outcome.moves, (2, 1));
    assert_eq!(outcome.concatenations, (1, 0), "both convolutions write into the result");
    assert_eq!(outcome.results.0, outcome.results.1);
    assert!(outcome.results.0.iter().flatten().any(|x| *x != 0.0), "zeros would always agree");
    let kernels = outcome.plan.nodes.iter().filter(|n| matches!(n.action, Action::Kernel { .. })).count();
    assert_eq!((kernels, outcome.plan.relayouts.len(), outcome.plan.constants.len()), (3, 1, 4));
}

#[test]
fn axes_are_renumbered_in_attributes_and_lists() {
    let plan = around(|g, x| {
        let split = g.op("Softmax", "softmax", &[x], &[("axis", Attr::Int(2))]);
        let axes = g.ints("axes", &[1]);
        let mean = g.op("ReduceMean", "mean", &[split, axes], &[]);
        g.op("Mul", "product", &[split, mean], &[])
    });
    assert_eq!(format!("{:?}", node(&plan, "softmax").attributes), r#"{"axis": Int(1)}"#);
    assert_eq!(node(&plan, "mean").lists, [ListPlan::Values { slot: 1, values: vec![3] }]);
    let softmax = plan.values.iter().find(|v| v.value == "softmax").unwrap();
    assert_eq!((&softmax.layout, &softmax.shape), (&layout("NHWC"), &[2, 4, 5, 3].map(Dim::from).to_vec()));
    assert!(node(&plan, "product").operands.iter().flatten().all(|o| o.layout == layout("NHWC") && o.shape.is_none()));
}

/// Slots, offsets and strides of a node's windows.
fn windows(plan: &Plan, name: &str) -> Vec<(usize, i64, Vec<i64>)> {
    node(plan, name).windows.iter().map(|w| (w.slot, w.offset, w.strides.clone())).collect()
}

#[test]
fn parts_of_a_tensor_are_windows_of_its_storage() {
    let plan = around(|g, x| {
        let [starts, ends, axes, steps] =
            [("s", [2, 2]), ("e", [0, 4]), ("a", [1, 2]), ("t", [-1, 1])].map(|(name, list)| g.ints(name, &list));
        let cut = g.op("Slice", "cut", &[x, starts, ends, axes, steps], &[]);
        let other = g.op("Relu", "other", &[cut], &[]);
        g.op("Concat", "joined", &[other, cut], &[("axis", Attr::Int(-3))])
    });
    // Of [2,4,5,3] the rows 2 and 3 and the channels 2 and 1, backwards; all channels-last.
    assert_eq!(windows(&plan, "cut"), [(0, 2 * 15 + 2, vec![60, 15, 3, -1])]);
    assert_eq!(windows(&plan, "joined"), [(0, 0, vec![40, 20, 4, 1]), (1, 2, vec![40, 20, 4, 1])]);
    assert_eq!(windows(&plan, "other"), []);
}

#[test]
fn what_has_no_strides_or_no_size_is_no_window() {
    let mut g = Named::new();
    let x = g.builder.input("x", DType::F32, ["N".parse().unwrap(), Dim::from(4)]);
    let x = x.unwrap();
    g.ids.value(x, "x".to_owned());
    let joined = g.op("Concat", "joined", &[x, x], &[("axis", Attr::Int(1))]);
    let (plan, _) = g.plan(&[joined], &Options::default());
    assert_eq!(windows(&plan, "joined"), []);
}

#[test]
fn operands_aligned_at_their_end_are_given_a_shape_or_stored_otherwise() {
    let plan = around(|g, x| {
        let row = g.floats("row", &[5]);
        let x = g.op("Add", "rows", &[x, row], &[]);
        let column = g.floats("column", &[3, 4, 1]);
        g.op("Mul", "columns", &[x, column], &[])
    });
    let row = node(&plan, "rows").operands[1].clone().unwrap();
    assert_eq!((row.value.as_str(), row.shape), ("row", Some([1, 1, 5, 1].map(Dim::from).to_vec())));
    let column = &plan.constants[0];
    assert_eq!((column.value.as_str(), &column.extents, &column.to), ("column", &vec![3, 4, 1], &layout("bca")));
    assert_eq!(column.shape, [4, 1, 3].map(Dim::from));
    assert_eq!((column.users[0].node.as_str(), column.users[0].slot), ("columns", 1));
}

#[test]
fn a_view_of_a_constant_is_copied_at_compile_time() {
    let plan = around(|g, x| {
        let flat = g.floats("flat", &[60]);
        let shape = g.ints("shape", &[1, 3, 4, 5]);
        let image = g.op("Reshape", "image", &[flat, shape], &[]);
        g.op("Add", "sum", &[x, image], &[])
    });
    let copies: Vec<_> = plan.relayouts.iter().map(|r| (r.value.as_str(), r.constant, r.to.to_string())).collect();
    assert_eq!(copies, [("image", true, "NHWC".to_owned())]);
}

#[test]
fn a_value_wanted_two_ways_is_copied_once_and_the_contract_is_kept() {
    let mut g = Named::new();
    let x = g.input("x", &[2, 4, 5, 3]);
    let relu = g.op("Relu", "relu", &[x], &[]);
    let w = g.floats("w", &[3, 7]);
    let (a, b) = (g.op("MatMul", "a", &[relu, w], &[]), g.op("MatMul", "b", &[relu, w], &[]));
    let options = Options::default().input("x:NCHW->CHWN".parse().unwrap()).output("a:NCHW->NWHC".parse().unwrap());
    let (plan, report) = g.plan(&[a, b], &options);
    assert_eq!(report.io.len(), 2);
    let ends: Vec<String> =
        plan.outputs.iter().map(|o| format!("{} {:?}", o.value, o.layout.as_ref().unwrap())).collect();
    assert_eq!(ends, ["a NWHC", "b NCHW"]);
    let x = plan.values.iter().find(|v| v.value == "x").unwrap();
    assert_eq!((&x.layout, &x.shape), (&layout("CHWN"), &[4, 5, 3, 2].map(Dim::from).to_vec()));
    let copied: Vec<&str> = plan.relayouts.iter().map(|r| r.value.as_str()).collect();
    assert_eq!(copied.len(), 2, "{copied:?}");
    assert!(plan.relayouts.iter().any(|r| r.value == "a" && r.outputs == [0] && r.users.is_empty()));
}

#[test]
fn a_graph_with_nothing_to_gain_has_a_plan_that_says_so() {
    let mut g = Named::new();
    let x = g.input("x", &[2, 4, 5, 3]);
    let relu = g.op("Relu", "relu", &[x], &[]);
    let turned = g.transpose("turned", relu, [0, 2, 3, 1]);
    let (plan, report) = g.plan(&[turned], &Options::default());
    assert!(!plan.changed && !report.changed && plan.relayouts.is_empty() && plan.constants.is_empty());
    assert_eq!(node(&plan, "relu").action, Action::Keep);
    let to = layout("NCHW");
    assert!(matches!(&node(&plan, "turned").action, Action::Move { to: t, from } if **t == to && **from != to));
}

#[test]
fn a_plan_is_plain_data() {
    let plan = around(|g, x| g.op("Softmax", "softmax", &[x], &[("axis", Attr::Int(2))]));
    let text = serde_json::to_string(&plan).unwrap();
    assert_eq!(serde_json::from_str::<Plan>(&text).unwrap(), plan);
    assert!(text.contains(r#""layout":"NHWC""#) && text.contains(r#""kind":"alias""#), "{text}");
}

#[test]
fn what_no_plan_can_be_made_of_is_refused() {
    let refused = |graph: &Graph, ids: &Ids<String, String>, target: &dyn Target| {
        let error = plan_graph(graph, ids, target, &Options::default()).map(|_| ()).expect_err("there is no plan");
        assert!(matches!(error, Error::Plan(_)), "{error}");
        let Error::Plan(error) = error else { panic!("{error}") };
        error
    };
    let onnx = target("onnx").unwrap();
    let small = || {
        let mut g = Named::new();
        let x = g.input("x", &[2, 3]);
        let y = g.op("Relu", "y", &[x], &[]);
        g.builder.output(y).unwrap();
        (x, y, g)
    };
    let (x, y, g) = small();
    let mut ids = Ids::new();
    ids.value(x, "x".to_owned());
    let graph = g.builder.finish();
    let error = refused(&graph, &ids, onnx.as_ref()).to_string();
    assert!(error.contains("value `y` has no id"), "{error}");
    ids.value(y, "y".to_owned());
    let error = refused(&graph, &ids, onnx.as_ref()).to_string();
    assert!(error.contains("node Relu -> `y` has no id"), "{error}");

    ids.value(y, "x".to_owned());
    ids.node(graph.value(y).producer().0, "relu".to_owned());
    let error = refused(&graph, &ids, onnx.as_ref());
    let equal = PlanError::EqualIds { first: "value `x`".to_owned(), second: "value `y`".to_owned() };
    assert_eq!(error, equal);
    ids.value(y, "y".to_owned());
    plan_graph(&graph, &ids, onnx.as_ref(), &Options::default()).unwrap();
    let options = Options::default().dim("batch", Size::of(4));
    let error = plan_graph(&graph, &ids, onnx.as_ref(), &options).map(|_| ()).unwrap_err();
    assert!(matches!(&error, Error::UnknownDim { name, .. } if name == "batch"), "{error}");
    let error = optimize_graph(graph, onnx.as_ref(), &options).map(|_| ()).unwrap_err();
    assert!(matches!(&error, Error::UnknownDim { .. }), "{error}");

    let (_, _, g) = small();
    let error = refused(&g.builder.finish(), &g.ids, &OrtCpu::new(Block::B8).unwrap());
    assert!(matches!(error, PlanError::Target { .. }), "{error}");

    let (x, _, g) = small();
    let (mut graph, mut ids) = (g.builder.finish(), g.ids);
    let op = OpName { domain: String::new(), name: "If".to_owned(), overload: String::new() };
    let mut holder = Node::new(Op::Onnx(op), vec![Some(x)]);
    holder.attrs.insert("then_branch".to_owned(), Attr::Graph(Box::new(Graph::new("body"))));
    let held = graph.add_single(holder, "held".to_owned(), Type::Unknown).unwrap();
    ids.value(held, "held".to_owned());
    ids.node(graph.value(held).producer().0, "held".to_owned());
    let error = refused(&graph, &ids, onnx.as_ref());
    assert!(matches!(error, PlanError::Bodies { .. }), "{error}");
}

#[test]
fn constants_that_only_onnx_has_need_no_id() {
    let mut g = Named::new();
    let x = g.input("x", &[1, 4, 4, 8]);
    let turned = g.transpose("turned", x, [0, 3, 1, 2]);
    let shape = g.builder.constant("shape", Constant::ints(&[1, 8, 16])).unwrap();
    let y = g.op("Reshape", "y", &[turned, shape], &[]);
    let weights = Constant::inline(DType::F32, vec![8, 8, 1, 1], vec![0u8; 256].into());
    let weights = g.builder.constant("weights", weights).unwrap();
    let z = g.op("Conv", "z", &[turned, weights], &[]);
    let (plan, _) = g.plan(&[y, z], &Options::default());
    let operands = &node(&plan, "y").operands;
    assert!(operands[0].is_some() && operands[1].is_none(), "{operands:?}");
    assert!(plan.values.iter().all(|v| v.value != "shape" && v.value != "weights"), "{plan:?}");
}

#[test]
fn a_constant_that_is_stored_otherwise_needs_an_id() {
    let planned = |named: bool| {
        let mut g = Named::new();
        let x = g.input("x", &[2, 4, 5, 3]);
        let nchw = g.transpose("nchw", x, [0, 3, 1, 2]);
        let column = Constant::inline(DType::F32, vec![3, 4, 1], vec![0u8; 48].into());
        let column = g.builder.constant("column", column).unwrap();
        if named {
            g.ids.value(column, "column".to_owned());
        }
        let y = g.op("Mul", "columns", &[nchw, column], &[]);
        let back = g.transpose("nhwc", y, [0, 2, 3, 1]);
        g.builder.output(back).unwrap();
        plan_graph(&g.builder.finish(), &g.ids, target("onnx").unwrap().as_ref(), &Options::default())
    };
    let (plan, _) = planned(true).unwrap();
    assert!(!plan.constants.is_empty(), "{plan:?}");
    let error = planned(false).map(|_| ()).unwrap_err();
    assert!(matches!(&error, Error::Plan(PlanError::NoId { what }) if what == "value `column`"), "{error}");
}

/// An op that only its host knows, with the letters of its axes.
fn own(g: &mut Named, op: &str, name: &str, x: ValueId, letters: &str, dims: &[i64]) -> ValueId {
    let dims = dims.iter().map(|&d| Dim::from(d)).collect();
    let op =
        NewOp::of_domain("host", op).operand(x).letters(letters).typed_result(name, Type::tensor(DType::F32, dims));
    let v = g.builder.add(op).unwrap()[0];
    g.ids.value(v, name.to_owned());
    g.ids.node(g.builder.producer(v), name.to_owned());
    v
}

#[test]
fn layouts_pass_through_an_op_of_the_host_that_says_its_letters() {
    // A convolution of the host: other channels and other places, and weights that are no operand.
    let plan = around(|g, x| own(g, "Conv", "conv", x, "nchw -> nchw", &[2, 7, 2, 5]));
    let conv = node(&plan, "conv");
    assert_eq!(conv.action, Action::Keep);
    assert!(conv.attributes.is_empty() && conv.lists.is_empty());
    let value = plan.values.iter().find(|v| v.value == "conv").unwrap();
    assert_eq!(value.layout, layout("NHWC"));
    assert_eq!(value.shape, [2, 2, 5, 7].map(Dim::from));
}

#[test]
fn an_op_of_the_host_may_drop_axes_and_add_others() {
    let plan = around(|g, x| {
        let product = own(g, "Product", "product", x, "nchw -> nohw", &[2, 9, 4, 5]);
        own(g, "Again", "again", product, "abcd -> abcd", &[2, 9, 4, 5])
    });
    let value = plan.values.iter().find(|v| v.value == "again").unwrap();
    assert_eq!(value.layout, layout("NHWC"));
}

#[test]
fn letters_without_a_common_order_are_axes_of_their_own() {
    let mut g = Named::new();
    let x = g.input("x", &[2, 4, 5, 3]);
    let first = g.transpose("first", x, [0, 3, 1, 2]);
    let y = g.input("y", &[2, 3, 4, 6]);
    let dims = [2, 6, 5, 3].map(Dim::from).to_vec();
    let op = NewOp::of_domain("host", "Product").operand(first).operand(y).letters("bkmn, bkmd -> bdnk");
    let z = g.builder.add(op.typed_result("z", Type::tensor(DType::F32, dims))).unwrap()[0];
    g.ids.value(z, "z".to_owned());
    g.ids.node(g.builder.producer(z), "product".to_owned());
    let last = g.transpose("last", z, [0, 2, 3, 1]);
    let (plan, _) = g.plan(&[last], &Options::default());
    assert_eq!(node(&plan, "product").action, Action::Keep);
}

#[test]
fn letters_that_fit_no_operand_are_refused_and_those_who_take_another_graph_have_none() {
    let mut b = GraphBuilder::new("g");
    let x = b.input("x", DType::F32, [2.into(), 4.into()]).unwrap();
    for (letters, why) in [
        ("abc -> abc", "rank 2"),
        ("ab", "`->`"),
        ("ab, ab -> ab", "another number"),
        ("aa -> aa", "twice"),
        ("a! -> a!", "the sign `!`"),
        ("a_ -> ab", "beside others"),
    ] {
        let ty = Type::tensor(DType::F32, vec![2.into(), 4.into()]);
        let op = NewOp::of_domain("host", "Own").operand(x).letters(letters).typed_result("y", ty);
        let refused = b.add(op).unwrap_err().to_string();
        assert!(refused.contains(why), "{letters}: {refused}");
    }
    let mut g = Named::new();
    let x = g.input("x", &[2, 4, 5, 3]);
    let first = g.transpose("first", x, [0, 3, 1, 2]);
    let inner = own(&mut g, "Own", "own", first, "nchw -> nchw", &[2, 3, 4, 5]);
    let last = g.transpose("last", inner, [0, 2, 3, 1]);
    g.builder.output(last).unwrap();
    let target = target("onnx").unwrap();
    let (_, report) = optimize_graph(g.builder.finish(), target.as_ref(), &Options::default()).unwrap();
    assert!(!report.changed && report.after.nodes == 2, "{}", report.explain());
}
