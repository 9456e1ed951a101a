//! Small random problems, and what they cost at least, by trying everything.

use proptest::prelude::*;
use relayout_solve::{Cost, Problem, SharedValue, Use, Var};

pub(crate) fn costs(units: &[u64]) -> Vec<Cost> {
    units.iter().copied().map(Cost::new).collect()
}

/// The least cost, and among assignments of that cost the fewest variables off state 0.
pub(crate) fn brute_force(problem: &Problem) -> (Cost, usize) {
    let domains: Vec<u32> = (0..problem.variables()).map(|v| problem.states(Var(v as u32)) as u32).collect();
    let mut assignment = vec![0; domains.len()];
    let mut best = (Cost::INFINITE, usize::MAX);
    loop {
        best = best.min((problem.cost(&assignment), changes(&assignment)));
        let Some(at) = (0..domains.len()).find(|&v| assignment[v] + 1 < domains[v]) else { return best };
        assignment[at] += 1;
        assignment[..at].fill(0);
    }
}

pub(crate) fn changes(assignment: &[u32]) -> usize {
    assignment.iter().filter(|&&state| state != 0).count()
}

/// A problem by its parts, so that proptest can shrink it.
#[derive(Clone, Debug)]
pub(crate) struct Parts {
    unary: Vec<Vec<u64>>,
    pairs: Vec<(usize, usize, Vec<u64>)>,
    values: Vec<ValueParts>,
}

#[derive(Clone, Debug)]
struct ValueParts {
    producer: usize,
    produces: Vec<u32>,
    /// 0: does not read; `l + 1`: wants layout `l`.
    uses: Vec<(usize, Vec<u32>)>,
    layouts: usize,
    moves: Vec<u64>,
}

impl Parts {
    /// Random lists are longer than needed: variables and layouts are taken modulo what there is.
    pub(crate) fn build(&self) -> Problem {
        let mut problem = Problem::new();
        let n = self.unary.len();
        let vars: Vec<Var> = (self.unary.iter().enumerate())
            .map(|(i, units)| problem.add_variable(format!("x{i}"), costs(units)).expect("has states"))
            .collect();
        let states = |v: usize| self.unary[v % n].len();
        for (a, b, table) in &self.pairs {
            let size = states(*a) * states(*b);
            let table = table.iter().copied().cycle().take(size).map(Cost::new).collect();
            problem.add_pair(vars[a % n], vars[b % n], table).expect("fits");
        }
        for value in &self.values {
            let layouts = value.layouts as u32;
            let wanted = |&want: &u32| (want % (layouts + 1)).checked_sub(1);
            let read = |(v, wants): &(usize, Vec<u32>)| Use {
                var: vars[v % n],
                wants: wants.iter().cycle().take(states(*v)).map(wanted).collect(),
            };
            let value = SharedValue {
                name: "t".into(),
                producer: vars[value.producer % n],
                produces: value.produces.iter().cycle().take(states(value.producer)).map(|l| l % layouts).collect(),
                uses: value.uses.iter().map(read).collect(),
                layouts: value.layouts,
                moves: value.moves.iter().copied().cycle().take(value.layouts * value.layouts).map(Cost::new).collect(),
            };
            problem.add_value(value).expect("fits");
        }
        problem
    }
}

/// Small prices, so that ties are common, and now and then one that cannot be paid.
fn price(infinite: u32) -> impl Strategy<Value = u64> {
    prop_oneof![20 => 0..12_u64, infinite => Just(u64::MAX)]
}

pub(crate) fn parts(
    vars: usize,
    states: std::ops::RangeInclusive<usize>,
    layouts: usize,
) -> impl Strategy<Value = Parts> {
    let unary = prop::collection::vec(prop::collection::vec(price(1), states), 1..=vars);
    let pairs = prop::collection::vec((0..vars, 0..vars, prop::collection::vec(price(3), 1..=16)), 0..=vars);
    let uses = prop::collection::vec((0..vars, prop::collection::vec(0..64_u32, 4)), 0..=5);
    let value = (0..vars, prop::collection::vec(0..64_u32, 4), uses, 1..=layouts, prop::collection::vec(price(1), 16));
    let value = value.prop_map(|(producer, produces, uses, layouts, moves)| ValueParts {
        producer,
        produces,
        uses,
        layouts,
        moves,
    });
    (unary, pairs, prop::collection::vec(value, 0..=vars)).prop_map(|(unary, pairs, values)| Parts {
        unary,
        pairs,
        values,
    })
}

/// Two states, which stand for the two layouts; no pair tables: what peers solve as a minimum cut.
pub(crate) fn two_layouts(vars: usize) -> impl Strategy<Value = Parts> {
    let unary = prop::collection::vec(prop::collection::vec(price(2), 2), 1..=vars);
    let uses = prop::collection::vec((0..vars, Just(vec![1, 2])), 0..=6);
    let value = (0..vars, uses, prop::collection::vec(price(0), 4)).prop_map(|(producer, uses, moves)| ValueParts {
        producer,
        produces: vec![0, 1],
        uses,
        layouts: 2,
        moves,
    });
    (unary, prop::collection::vec(value, 0..=vars)).prop_map(|(unary, values)| Parts {
        unary,
        pairs: Vec::new(),
        values,
    })
}

/// A reader whose last state a table of the variable with itself forbids: the two that are left may want the same layout.
pub(crate) fn forbidden() -> impl Strategy<Value = Parts> {
    let table = prop::collection::vec(0..4_u64, 6);
    let wants = || prop::collection::vec(0..3_u32, 4);
    let moves = prop::collection::vec(0..4_u64, 4);
    (table, wants(), wants(), moves).prop_map(|(table, first, second, moves)| {
        let forbidden = (0..9).map(|at| if at == 8 { u64::MAX } else { 0 }).collect();
        let uses = vec![(1, first), (2, second)];
        let value = ValueParts { producer: 0, produces: vec![0], uses, layouts: 2, moves };
        let unary = vec![vec![0], vec![0; 3], vec![0; 2]];
        Parts { unary, pairs: vec![(1, 1, forbidden), (1, 2, table)], values: vec![value] }
    })
}

/// Every pair of five variables is linked, so that little can be pruned and tables get large.
pub(crate) fn dense() -> impl Strategy<Value = Parts> {
    let unary = prop::collection::vec(prop::collection::vec(price(0), 3), 5);
    let table = prop::collection::vec(price(1), 9);
    (unary, prop::collection::vec(table, 10)).prop_map(|(unary, tables)| {
        let ends = (0..5).flat_map(|a| (0..a).map(move |b| (a, b)));
        Parts { unary, pairs: ends.zip(tables).map(|((a, b), table)| (a, b, table)).collect(), values: Vec::new() }
    })
}

/// A value with so many layouts that the sets of them cannot be told apart one by one: every state wants its own.
pub(crate) fn many_layouts() -> impl Strategy<Value = Problem> {
    let unary = prop::collection::vec(prop::collection::vec(0..9_u64, 4), 5);
    let moves = prop::collection::vec(0..12_u64, 256);
    let wants = prop::collection::vec(prop::collection::vec(0..16_u32, 4), 4);
    (unary, moves, wants).prop_map(|(unary, moves, wants)| {
        let mut problem = Problem::new();
        for units in &unary {
            problem.add_variable("x", costs(units)).expect("has states");
        }
        let read = |(i, wants): (usize, &Vec<u32>)| Use {
            var: Var(i as u32 + 1),
            wants: wants.iter().enumerate().map(|(s, w)| Some((4 * i as u32 + s as u32 + w / 12) % 16)).collect(),
        };
        let uses = wants.iter().enumerate().map(read).collect();
        let (name, produces) = ("t".to_owned(), vec![0, 5, 10, 15]);
        let value = SharedValue { name, producer: Var(0), produces, uses, layouts: 16, moves: costs(&moves) };
        problem.add_value(value).expect("fits");
        problem
    })
}

/// An operator: for each way to run it what that costs, the layout of its result and those of its two operands.
type Operator = Vec<(u64, u32, u32, u32)>;

/// Operators that read what earlier ones made. A way to run one mixes layouts as it likes, a value has any number of readers,
/// there and back have their own prices, and now and then a conversion goes by way of others.
pub(crate) fn operators() -> impl Strategy<Value = Problem> {
    let way = (price(1), 0..4_u32, 0..4_u32, 0..4_u32);
    let operator = (prop::collection::vec(way, 1..=3), any::<prop::sample::Index>(), any::<prop::sample::Index>());
    let moves = prop::collection::vec(price(1), 16);
    let values = prop::collection::vec((operator, moves), 2..=7);
    (values, 2..=4_usize, any::<bool>()).prop_map(|(values, layouts, closed)| {
        let mut problem = Problem::new();
        let operators: Vec<&Operator> = values.iter().map(|((ways, ..), _)| ways).collect();
        for ways in &operators {
            let costs = ways.iter().map(|way| Cost::new(way.0)).collect();
            problem.add_variable("op", costs).expect("has states");
        }
        let within = |layout: u32| layout % layouts as u32;
        // The operand of operator `at`: one of those before it.
        let reads = |at: usize, from: usize, of: fn(&(u64, u32, u32, u32)) -> u32, index: &prop::sample::Index| {
            let wants = operators[at].iter().map(|way| Some(within(of(way)))).collect();
            (at > 0 && index.index(at) == from).then_some(Use { var: Var(at as u32), wants })
        };
        for (from, (_, moves)) in values.iter().enumerate() {
            let operands = |(at, ((_, first, second), _)): (usize, &((Operator, _, _), _))| {
                [reads(at, from, |way| way.2, first), reads(at, from, |way| way.3, second)]
            };
            let mut value = SharedValue {
                name: format!("t{from}"),
                producer: Var(from as u32),
                produces: operators[from].iter().map(|way| within(way.1)).collect(),
                uses: values.iter().enumerate().flat_map(operands).flatten().collect(),
                layouts,
                moves: moves.iter().copied().take(layouts * layouts).map(Cost::new).collect(),
            };
            if closed {
                close_moves(&mut value);
            }
            problem.add_value(value).expect("fits");
        }
        problem
    })
}

/// Replaces every price of a conversion by that of the cheapest route.
fn close_moves(value: &mut SharedValue) {
    let n = value.layouts;
    for (via, from, to) in (0..n).flat_map(|via| (0..n).flat_map(move |from| (0..n).map(move |to| (via, from, to)))) {
        let route = value.moves[from * n + via] + value.moves[via * n + to];
        value.moves[from * n + to] = route.min(value.moves[from * n + to]);
    }
}

/// A block of a DenseNet: layer `i` reads a Concat of what all layers before it made, in one layout. Prices are scattered, and
/// there and back differ.
pub(crate) fn dense_block(layers: usize, layouts: usize) -> Problem {
    let mut problem = Problem::new();
    let mut seed = 1_u64;
    let mut some = |end: u64| {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        Cost::new((seed >> 33) % end)
    };
    let mut variable = |name: String, most: u64| {
        let costs = (0..layouts).map(|_| some(most)).collect();
        problem.add_variable(name, costs).expect("has states")
    };
    let made: Vec<Var> = (0..layers).map(|i| variable(format!("layer {i}"), 200)).collect();
    let joined: Vec<Var> = (1..layers).map(|i| variable(format!("concat {i}"), 20)).collect();
    let each: Vec<u32> = (0..layouts as u32).collect();
    let read = |&var: &Var| Use { var, wants: each.iter().copied().map(Some).collect() };
    let mut value = |producer, uses| {
        let moves = (0..layouts * layouts).map(|_| some(100)).collect();
        let name = format!("what {producer} made");
        problem.add_value(SharedValue { name, producer, produces: each.clone(), uses, layouts, moves }).expect("fits");
    };
    for (i, &layer) in made.iter().enumerate() {
        value(layer, joined[i.min(layers - 1)..].iter().map(read).collect());
    }
    for (i, &concat) in joined.iter().enumerate() {
        value(concat, vec![read(&made[i + 1])]);
    }
    problem
}
