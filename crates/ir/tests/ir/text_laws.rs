//! The law of the text form, over random graphs: what is printed is read back and printed alike.

use proptest::prelude::*;
use relayout_ir::attr::Attr;
use relayout_ir::constant::{Constant, Repack};
use relayout_ir::dim::Dim;
use relayout_ir::dtype::DType;
use relayout_ir::graph::{Graph, Node, Op, OpName, ValueId};
use relayout_ir::layout::{Factor, Layout};
use relayout_ir::text::{GraphJson, PrintOptions, parse, print};
use relayout_ir::types::{TensorType, Type};

#[derive(Clone, Debug)]
struct Recipe {
    name: String,
    nodes: Vec<Step>,
    outputs: Vec<usize>,
}

#[derive(Clone, Debug)]
struct Step {
    kind: Kind,
    results: Vec<Option<(String, Type, Layout)>>,
    operands: Vec<Option<usize>>,
    rank: u32,
}

#[derive(Clone, Debug)]
enum Kind {
    Input,
    Overridable(Constant),
    Constant(Constant),
    Outer,
    Relayout,
    Onnx { name: OpName, opset: i64, attrs: Vec<(String, Attr)>, bodies: Vec<(String, Recipe)> },
}

fn name() -> impl Strategy<Value = String> {
    prop_oneof![4 => "[a-z0-9_./:-]{1,4}", 1 => any::<String>(), 1 => "[ -~]{0,4}", 1 => "(input|const|end|_|\\(\\))"]
}

fn dtype() -> impl Strategy<Value = DType> {
    prop::sample::select(DType::ALL)
}

fn dim() -> impl Strategy<Value = Dim> {
    prop_oneof![
        4 => (0i64..70).prop_map(Dim::from),
        1 => name().prop_map(|s| Dim::symbol(&s)),
        1 => (0u32..9).prop_map(Dim::unknown),
        1 => (0u32..9).prop_map(Dim::unknown_number),
        1 => (name(), 2i64..5, -3i64..4).prop_map(|(s, k, c)| {
            let sum = Dim::symbol(&s).checked_mul(&Dim::from(k)).unwrap().checked_add(&Dim::from(c)).unwrap();
            sum.floor_div(k + 1).unwrap()
        }),
    ]
}

fn layout(rank: usize) -> impl Strategy<Value = Layout> {
    let order: Vec<usize> = (0..rank).collect();
    (Just(order).prop_shuffle(), prop::option::of((0..rank.max(1), 2u64..9))).prop_map(move |(order, block)| {
        let plain = Layout::permutation(&order).unwrap();
        let Some((axis, by)) = block.filter(|(axis, _)| *axis < rank) else { return plain };
        let mut factors: Vec<Factor> = plain.factors().to_vec();
        factors.iter_mut().filter(|f| usize::from(f.axis) == axis).for_each(|f| f.div = by);
        factors.push(Factor::inner(axis as u8, 1, by));
        Layout::new(rank, factors, []).unwrap()
    })
}

fn typed() -> impl Strategy<Value = (Type, Layout)> {
    prop_oneof![
        1 => Just((Type::Unknown, Layout::row_major(0))),
        1 => name().prop_map(|what| (Type::Other(what), Layout::row_major(0))),
        1 => prop::option::of(dtype())
            .prop_map(|dtype| (Type::Tensor(TensorType { dtype, shape: None }), Layout::row_major(0))),
        8 => (0usize..6).prop_flat_map(|rank| (prop::option::weighted(0.9, dtype()), prop::collection::vec(dim(), rank), layout(rank)))
            .prop_map(|(dtype, dims, layout)| (Type::Tensor(TensorType { dtype, shape: Some(dims) }), layout)),
    ]
}

fn constant() -> impl Strategy<Value = Constant> {
    let ints = prop::collection::vec(any::<i64>(), 0..20).prop_map(|v| Constant::ints(&v));
    let small =
        (prop::sample::select(vec![DType::I8, DType::U8, DType::I16, DType::U64, DType::Bool]), any::<[u8; 16]>())
            .prop_map(|(dtype, bytes)| {
                let elems = 128 / i64::from(dtype.bits().unwrap());
                Constant::inline(dtype, vec![elems / 2, 2], bytes.to_vec().into())
            });
    let other = (dtype(), prop::collection::vec(-1i64..9, 0..5), any::<bool>(), any::<bool>())
        .prop_flat_map(|(dtype, dims, there, implied)| {
            let order: Vec<usize> = (0..dims.len()).collect();
            (Just((dtype, dims, there, implied)), prop::option::of(Just(order).prop_shuffle()))
        })
        .prop_map(|((dtype, dims, there, implied), perm)| {
            let mut c = if there {
                Constant::inline(dtype, dims.clone(), bytes::Bytes::new())
            } else {
                Constant::missing(dtype, dims.clone(), "stripped".to_owned())
            };
            c.pending = perm.map(|perm| {
                let mut extents = dims.clone();
                for (&place, &dim) in perm.iter().zip(&dims) {
                    extents[place] = if implied { dim } else { dim + 1 };
                }
                Box::new(Repack { extents, to: Layout::permutation(&perm).unwrap() })
            });
            c
        });
    prop_oneof![
        ints,
        small,
        other,
        any::<i32>().prop_map(|i| Constant::inline(DType::I32, vec![], i.to_le_bytes().to_vec().into()))
    ]
}

fn attr() -> impl Strategy<Value = Attr> {
    let string = prop_oneof![any::<String>().prop_map(String::into_bytes), prop::collection::vec(any::<u8>(), 0..5)];
    prop_oneof![
        any::<f32>().prop_map(Attr::Float),
        any::<i64>().prop_map(Attr::Int),
        string.clone().prop_map(|s| Attr::String(s.into())),
        prop::collection::vec(any::<f32>(), 0..3).prop_map(Attr::Floats),
        prop::collection::vec(any::<i64>(), 0..3).prop_map(Attr::Ints),
        prop::collection::vec(string, 0..3).prop_map(|v| Attr::Strings(v.into_iter().map(Into::into).collect())),
        constant().prop_map(Attr::Tensor),
        name().prop_map(Attr::Ref),
        Just(Attr::Other("sparse tensor")),
    ]
}

fn op_name() -> impl Strategy<Value = OpName> {
    let part =
        || prop_oneof![6 => "[A-Z][a-z0-9_.]{0,4}", 1 => "(input|const|outer|relayout|end)", 1 => any::<String>()];
    (prop_oneof![Just(String::new()), part()], part(), prop_oneof![3 => Just(String::new()), 1 => part()])
        .prop_map(|(domain, name, overload)| OpName { domain, name, overload })
}

fn step(bodies: BoxedStrategy<Vec<(String, Recipe)>>) -> impl Strategy<Value = Step> {
    let call =
        (op_name(), prop_oneof![Just(17i64), Just(1), 0i64..20], prop::collection::vec((name(), attr()), 0..4), bodies)
            .prop_map(|(name, opset, attrs, bodies)| Kind::Onnx { name, opset, attrs, bodies });
    let kind = prop_oneof![
        1 => Just(Kind::Input),
        1 => constant().prop_map(Kind::Overridable),
        2 => constant().prop_map(Kind::Constant),
        1 => Just(Kind::Outer),
        1 => Just(Kind::Relayout),
        5 => call,
    ];
    let result = prop::option::weighted(0.9, (name(), typed()).prop_map(|(n, (ty, l))| (n, ty, l)));
    let operands = prop::collection::vec(prop::option::weighted(0.9, 0usize..100), 0..4);
    (kind, prop::collection::vec(result, 0..4), operands, 0u32..6).prop_map(|(kind, results, operands, rank)| Step {
        kind,
        results,
        operands,
        rank,
    })
}

fn recipe(depth: usize) -> BoxedStrategy<Recipe> {
    let bodies: BoxedStrategy<Vec<(String, Recipe)>> = if depth == 0 {
        Just(Vec::new()).boxed()
    } else {
        prop_oneof![3 => Just(Vec::new()), 1 => prop::collection::vec((name(), recipe(depth - 1)), 1..3)].boxed()
    };
    (name(), prop::collection::vec(step(bodies), 0..8), prop::collection::vec(0usize..100, 0..3))
        .prop_map(|(name, nodes, outputs)| Recipe { name, nodes, outputs })
        .boxed()
}

/// The graph of a recipe; steps that would define a name twice are left out.
fn build(recipe: &Recipe) -> Graph {
    let mut g = Graph::new(recipe.name.clone());
    let mut made: Vec<ValueId> = Vec::new();
    let pick = |made: &[ValueId], i: usize| (!made.is_empty()).then(|| made[i % made.len().max(1)]);
    for step in &recipe.nodes {
        let first = step.results.iter().flatten().next().cloned();
        let single = |g: &mut Graph, add: &dyn Fn(&mut Graph, String, Type) -> Option<ValueId>| {
            let (name, ty, layout) = first.clone()?;
            let v = add(g, name, ty.clone())?;
            *g.value_mut(v).ty = ty;
            *g.value_mut(v).layout = layout;
            Some(v)
        };
        let node = |op: Op| {
            let inputs = step.operands.iter().map(|o| o.and_then(|i| pick(&made, i))).collect();
            let mut node = Node::new(op, inputs);
            node.rank = step.rank;
            node
        };
        match &step.kind {
            Kind::Input => made.extend(single(&mut g, &|g, n, t| g.add_input(n, t).ok())),
            Kind::Overridable(c) => made.extend(single(&mut g, &|g, n, t| g.add_overridable(n, t, c.clone()).ok())),
            Kind::Constant(c) => made.extend(single(&mut g, &|g, n, _| g.add_constant(n, c.clone()).ok())),
            Kind::Outer => {
                let outer = Node { inputs: vec![], ..node(Op::Outer) };
                add(&mut g, outer, &step.results, &mut made);
            }
            Kind::Relayout => {
                let relayout = node(Op::Relayout);
                add(&mut g, relayout, &step.results, &mut made);
            }
            Kind::Onnx { name, opset, attrs, bodies } => {
                let mut call = node(Op::Onnx(name.clone()));
                call.opset = *opset;
                call.attrs.extend(attrs.iter().cloned());
                for (name, body) in bodies {
                    let body = build(body);
                    let outer = body.nodes().filter(|n| matches!(body.node(*n).op, Op::Outer));
                    let names = outer.flat_map(|n| body.node(n).outputs.iter().flatten());
                    call.captures.extend(names.filter_map(|&v| g.by_name(&body.value(v).name)));
                    let previous = call.attrs.insert(name.clone(), Attr::Graph(Box::new(body)));
                    if previous.is_some_and(|attr| !attr.bodies().is_empty()) {
                        call.captures.clear();
                    }
                }
                add(&mut g, call, &step.results, &mut made);
            }
        }
    }
    for &i in &recipe.outputs {
        if let Some(v) = pick(&made, i) {
            g.add_output(v);
        }
    }
    g
}

fn add(g: &mut Graph, node: Node, results: &[Option<(String, Type, Layout)>], made: &mut Vec<ValueId>) {
    let named = results.iter().map(|r| r.as_ref().map(|(n, t, _)| (n.clone(), t.clone()))).collect();
    let Ok(n) = g.add(node, named) else { return };
    for (v, result) in g.node(n).outputs.clone().into_iter().zip(results) {
        if let (Some(v), Some((_, _, layout))) = (v, result) {
            *g.value_mut(v).layout = layout.clone();
            made.push(v);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 512, ..ProptestConfig::default() })]

    #[test]
    fn every_printed_graph_is_read_back(recipe in recipe(2), opsets in any::<bool>()) {
        let graph = build(&recipe);
        let options = if opsets { PrintOptions::default() } else { PrintOptions::default().without_opsets() };
        let text = print(&graph, &options);
        let back = parse(&text);
        prop_assert!(back.is_ok(), "{}\n{text}", back.unwrap_err());
        let back = back.unwrap();
        prop_assert_eq!(print(&back, &options), text);
        prop_assert_eq!(back.node_count(), graph.node_count());
        prop_assert_eq!(back.inputs().len(), graph.inputs().len());
    }

    #[test]
    fn json_of_every_graph_is_read_back(recipe in recipe(1)) {
        let json = GraphJson::from(&build(&recipe));
        let text = serde_json::to_string(&json).unwrap();
        let back: GraphJson = serde_json::from_str(&text).unwrap();
        prop_assert_eq!(serde_json::to_string(&back).unwrap(), text);
    }

    #[test]
    fn no_text_makes_the_parser_panic(text in "(graph g\n)?([%_()a-z0-9:@<>\\[\\]{}\"`=, ;\n]|const|input|f32|body|end|output|\\\\u)*") {
        let _ = parse(&text);
    }

    #[test]
    fn no_damage_makes_the_parser_panic(recipe in recipe(1), at in any::<prop::sample::Index>(), with in "\\PC?") {
        let text = build(&recipe).to_string();
        let chars: Vec<char> = text.chars().collect();
        let at = at.index(chars.len());
        let damaged: String = chars[..at].iter().copied().chain(with.chars()).chain(chars[at + 1..].iter().copied()).collect();
        if let Err(e) = parse(&damaged) {
            prop_assert!(e.line >= 1 && e.column >= 1);
        }
    }
}
