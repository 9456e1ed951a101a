//! The text form: what it looks like, that it is read back, and what it answers to text that is no graph.

use relayout_ir::attr::Attr;
use relayout_ir::constant::{Constant, Repack};
use relayout_ir::dim::Dim;
use relayout_ir::dtype::DType;
use relayout_ir::graph::{Graph, Node, Op, OpName};
use relayout_ir::layout::Layout;
use relayout_ir::text::{GraphJson, PrintOptions, parse, print};
use relayout_ir::types::Type;

fn onnx(name: &str) -> Op {
    Op::Onnx(OpName { domain: String::new(), name: name.to_owned(), overload: String::new() })
}

fn f32s(dims: &[i64]) -> Type {
    Type::tensor(DType::F32, dims.iter().map(|&d| Dim::from(d)).collect())
}

/// The stem of a network, channels-last behind a relayout.
fn stem() -> Graph {
    let mut g = Graph::new("stem");
    let x = g.add_input("x", f32s(&[1, 3, 224, 224])).unwrap();
    let mut weight = Constant::missing(DType::F32, vec![64, 3, 7, 7], String::new());
    weight.pending = None;
    let w = g.add_constant("w", weight).unwrap();
    let mut conv = Node::new(onnx("Conv"), vec![Some(x), Some(w), None]);
    conv.opset = 17;
    conv.rank = 1;
    conv.attrs.insert("strides".to_owned(), Attr::Ints(vec![2, 2]));
    conv.attrs.insert("pads".to_owned(), Attr::Ints(vec![3, 3, 3, 3]));
    let y = g.add_single(conv, "y".to_owned(), f32s(&[1, 64, 112, 112])).unwrap();
    *g.value_mut(y).layout = "NHWC".parse().unwrap();
    let mut relayout = Node::new(Op::Relayout, vec![Some(y)]);
    relayout.rank = 2;
    let back = g.add_single(relayout, "y.1".to_owned(), f32s(&[1, 64, 112, 112])).unwrap();
    g.add_output(back);
    g
}

#[track_caller]
fn round_trip(text: &str) -> Graph {
    let graph = parse(text).unwrap_or_else(|e| panic!("{e}\n{text}"));
    assert_eq!(graph.to_string(), text);
    graph
}

#[test]
fn a_graph_is_printed_one_node_a_line() {
    let g = stem();
    let options = PrintOptions::default()
        .with_header("target", "ort-cpu")
        .with_comment(&|g, n| matches!(g.node(n).op, Op::Relayout).then(|| "3211264 B, rows 64 B".to_owned()))
        .with_footer("relayouts 1");
    let text = "\
graph stem opset=17 target=ort-cpu
  %x: f32[1,3,224,224]@NCHW = input
  %w: f32[64,3,7,7]@OIHW = const ; 37632 B, missing
  %y: f32[1,64,112,112]@NHWC = Conv(%x, %w, _) {pads=[3,3,3,3], strides=[2,2]}
  %y.1: f32[1,64,112,112]@NCHW = relayout(%y) ; 3211264 B, rows 64 B
  output %y.1
; relayouts 1
";
    assert_eq!(print(&g, &options), text);
    assert_eq!(print(&parse(text).unwrap(), &options), text);
}

#[test]
fn what_is_printed_is_read_back() {
    round_trip("graph \"\"\n");
    round_trip("graph \"a \\\"b\\\"\\n\"\n  %\"x y\": f32[3] = input\n  output %\"x y\"\n");
    round_trip("graph g\n  %a:: f32 = input\n".replace("f32 =", "f32[*] =").as_str());
    round_trip(
        "graph g opset=17
  %c: bool[] = input
  %k: i64[2] = input(default [4,-5])
  %d: f32[N,`a]b`,(H+1)//2]@abc = input(default<f32[1,2,3]>) ; 24 B
  %e: ?[*] = input
  %f: <seq(tensor(float))> = input
  %s: str[2] = const
  %three: i32[] = const 3
  %sum: ? = Add(%s, %three) opset 6
  %l: f32[2,3]@ba = const ; 24 B, stored as @ba
  %m: f32[6,1]@ab = const ; 24 B, missing, stored as [2,3]@ba
  %g: f32[2,3]@ab, _, %h: f16[2] = ai.foo::Bar:v1(%l, _, %m, _) {a=-1, b=1.0, c=\"q\\\"\", d=[1.5,inf], e=[\"\",b\"\\xff\"], f=$outer, g=tensor<u8[2, 3]>}
  () = \"const\"(%c)
  _ = my.domain::Op(%e, %f, %d)
  %r: f32[2,3]@ab = If(%c) {else_branch=body, then_branch=body}
    body else_graph
      %k: i64[2] = outer
      %z: f32[2,3]@ab = Cast(%k) {to=1}
      output %z
    end
    body then_graph
      %z: f32[2,3]@ab = Loop(_, _) {bodies=bodies<2>}
        body a
        end
        body \"b c\"
          %k: i64[2] = const [1,2]
          output %k
        end
      output %z
    end
  output %r
  output %r
",
    );
}

#[test]
fn an_operator_set_in_the_header_is_that_of_every_onnx_node() {
    let g = round_trip(
        "graph g opset=17\n  %x: f32[2] = input\n  %y: f32[2] = Relu(%x)\n  %z: f32[2] = com.microsoft::Gelu(%y)\n  %w: f32[2] = Relu(%z) opset 6\n",
    );
    let opset = |name: &str| g.node(g.value(g.by_name(name).unwrap()).producer().0).opset;
    // One node of each version: the newer one is taken for the common one.
    assert_eq!((opset("y"), opset("z"), opset("w")), (17, 1, 6));
}

#[test]
fn bodies_capture_what_they_name() {
    let g = parse("graph g\n  %c: bool[] = input\n  %x: f32[2] = input\n  %y: f32[2] = If(%c) {then_branch=body}\n    body b\n      %x: f32[2] = outer\n      output %x\n    end\n").unwrap();
    let node = g.node(g.value(g.by_name("y").unwrap()).producer().0);
    assert_eq!(node.captures, vec![g.by_name("x").unwrap()]);
    assert_eq!(g.uses(g.by_name("x").unwrap()).len(), 1);
}

#[test]
fn constants_keep_what_their_line_says() {
    let g = parse("graph g\n  %s: i8[2] = const [-1,7]\n  %l: f32[2,3]@ba = const ; 24 B, missing, stored as @ba\n  %w: f32[1] = const ; 4 B\n").unwrap();
    let constant = |name: &str| g.constant(g.by_name(name).unwrap()).unwrap();
    assert_eq!(constant("s").to_ints(2), Some(vec![-1, 7]));
    assert_eq!(
        constant("l").pending,
        Some(Box::new(Repack { extents: vec![2, 3], to: Layout::permutation(&[1, 0]).unwrap() }))
    );
    assert_eq!(constant("l").dims, vec![3, 2]);
    assert!(!constant("l").source.is_available());
    assert!(constant("w").source.is_available());
    assert!(constant("w").source.bytes().unwrap_err().contains("`w`"));
}

#[test]
fn errors_say_where_and_what() {
    let cases: &[(&str, (usize, usize), &str)] = &[
        ("", (1, 1), "expected `graph`"),
        ("graph", (1, 1), "expected `graph`"),
        ("graph g\n  %x: f32[2] = input\n  %y: f32[2] = Relu(%z)\n", (3, 22), "no line above makes a value `z`"),
        ("graph g\n  %x: q32[2] = input\n", (2, 7), "`q32` is not an element type"),
        ("graph g\n  %x: f32[N = input\n", (2, 11), "dimension"),
        ("graph g\n  %x: f32[2]@NCHQ = input\n", (2, 14), "NCHQ"),
        ("graph g\n  %x: f32[2] = input\n  %x: f32[2] = input\n", (3, 3), "`x` is defined twice"),
        ("graph g\n  %x: f32[N] = const\n", (2, 21), "extents that are numbers"),
        ("graph g\n  %x: i64[2] = const [1]\n", (2, 21), "1 elements do not fill"),
        ("graph g\n  %x: u8[1] = const [256]\n", (2, 20), "256 does not fit u8"),
        ("graph g\n  %x: f32[1] = const [1]\n", (2, 21), "elements of type f32"),
        ("graph g\n  %x: f32[1] = Foo() {a=[1,1.0]}\n", (2, 25), "not a mixture"),
        ("graph g\n  %x: f32[1] = Foo() {a=99999999999999999999}\n", (2, 25), "neither a 64-bit integer"),
        ("graph g\n  %x: f32[1] = Foo() {a=1, a=2}\n", (2, 28), "given twice"),
        ("graph g\n  %x: f32[1] = Foo() {a=<nonsense>}\n", (2, 25), "not a kind of attribute"),
        ("graph g\n  %x: f32[1] = If() {a=body}\n", (3, 1), "expected `body`"),
        ("graph g\n  %x: f32[1] = If() {a=body}\n    body b\n", (4, 1), "no `end`"),
        ("graph g\n  %x: f32[1] = Foo() extra\n", (2, 22), "extra"),
        ("graph g\n  hello\n", (2, 3), "expected a line such as"),
        ("graph \"g\n", (1, 7), "not closed"),
        ("graph g\n  %x: f32[1], %y: f32[1] = input\n", (2, 3), "exactly one result"),
    ];
    let mut wrong = Vec::new();
    for (text, place, message) in cases {
        let e = parse(text).expect_err(text);
        if !e.message.contains(message) || (e.line, e.column) != *place {
            wrong.push(format!("{text:?}: {e}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn deep_nesting_is_refused_and_not_followed() {
    let mut text = "graph g\n".to_owned();
    for _ in 0..100_000 {
        text.push_str("() = If() {a=body}\nbody b\n");
    }
    assert!(parse(&text).unwrap_err().message.contains("nested"));
}

#[test]
fn layouts_with_blocks_and_slot_maps_are_read_back() {
    let g = round_trip(
        "graph g
  %x: f32[1,116,7,7]@N C[58:64,58:64]/16 H W C%16 = input
  %y: f32[1,20,7,7]@NCHW16c, %z: f32[20]@a/16 a%16 = my::Op(%x)
  %w: f32[32,16,3,3]@OIHW16i16o = const ; 18432 B
  %v: f32[1,32,7,7]@NCHW = Conv(%x, %w)
",
    );
    assert!(g.value(g.by_name("x").unwrap()).layout.slot_map(1).is_some());
    assert_eq!(g.value(g.by_name("z").unwrap()).layout.rank(), 1);
}

#[test]
fn json_names_values_and_is_read_back() {
    let json = serde_json::to_value(GraphJson::from(&stem())).unwrap();
    assert_eq!(json["schema"], 1);
    assert_eq!(json["inputs"], serde_json::json!(["x"]));
    assert_eq!(json["nodes"][2]["op"]["name"], "Conv");
    assert_eq!(json["nodes"][2]["inputs"], serde_json::json!(["x", "w", null]));
    assert_eq!(json["nodes"][2]["attrs"]["strides"], serde_json::json!({"kind": "ints", "value": [2, 2]}));
    assert_eq!(json["values"][2]["layout"], "NHWC");
    assert_eq!(json["nodes"][1]["op"]["missing"], true);
    let back: GraphJson = serde_json::from_value(json).unwrap();
    assert_eq!(back, GraphJson::from(&stem()));
}

#[test]
fn json_keeps_bodies_apart_and_floats_that_json_lacks() {
    let g = parse("graph g\n  %y: f32[N]@a/2 a%2 = If() {a=inf, b=0.1, t=body}\n    body b\n      %c: i64[1] = const [5]\n      output %c\n    end\n").unwrap();
    let json = serde_json::to_value(GraphJson::from(&g)).unwrap();
    assert_eq!(json["nodes"][0]["attrs"]["a"]["value"], "inf");
    assert!(serde_json::to_string(&GraphJson::from(&g)).unwrap().contains(r#""b":{"kind":"float","value":0.1}"#));
    assert_eq!(json["nodes"][0]["bodies"]["t"][0]["nodes"][0]["op"]["elements"], serde_json::json!([5]));
    assert_eq!(json["values"][0]["shape"], serde_json::json!(["N"]));
    assert!(Layout::row_major(1) != g.value(g.by_name("y").unwrap()).layout);
}
