//! Why a value lies as it does: what its producer can leave and its readers can read, and what every other layout would cost.

use super::decision::{Decision, some, total_bytes};
use crate::reasons::{why_made, why_wanted};
use relayout_ir::graph::ValueId;
use relayout_ir::layout::Layout;
use serde::{Deserialize, Serialize};

/// Everything about one value.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Why {
    /// The value.
    pub value: String,
    /// Element type and logical shape.
    pub ty: String,
    /// Bytes at the size hints.
    pub bytes: u64,
    /// Its moves are made at compile time, so its layout is free.
    pub constant: bool,
    /// Who leaves it, in which layout, and in which it could.
    pub producer: Side,
    /// Who reads it.
    pub readers: Vec<Side>,
    /// Why the producer leaves it so.
    pub why_made: String,
    /// Why the readers want it so.
    pub why_wanted: String,
    /// The layouts that it could have; the taken one among them.
    pub alternatives: Vec<Alternative>,
    /// Layouts that were asked for and not considered, because a value may have only so many candidates.
    pub dropped: Vec<String>,
    /// Nodes beside it some of whose choices were not considered, for the same reason.
    pub cut_short: Vec<String>,
    /// The cheapest way in which nothing moves the value itself, if there is one.
    pub cheapest: Option<String>,
}

/// A node on one side of a value.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Side {
    /// The node, or the graph output.
    pub node: String,
    /// The layout at this side.
    pub layout: String,
    /// Every layout that it has a rule or a kernel for.
    pub offers: Vec<String>,
}

/// One layout of a value.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Alternative {
    /// The layout.
    pub layout: String,
    /// The producer leaves it so.
    pub taken: bool,
    /// Which forms are missing for the value to lie in this layout and no other.
    pub missing: Vec<String>,
    /// What it costs beyond what was decided if the value lies in this layout only, all other nodes decided anew; `None` where
    /// that can't be.
    pub only_ns: Option<i64>,
    /// The same in bytes moved.
    pub only_bytes: Option<i64>,
    /// What it costs beyond what was decided if the producer leaves it so and readers may have copies, all other nodes decided
    /// anew; `None` where that can't be.
    pub left_ns: Option<i64>,
    /// The same in bytes moved.
    pub left_bytes: Option<i64>,
}

impl Decision<'_, '_> {
    /// Everything about a value of a graph.
    #[must_use]
    pub fn why(&self, s: usize, v: ValueId) -> Why {
        self.why_at(s, v, true)
    }

    /// The same without the price of each layout, which takes two solutions of the whole problem.
    #[must_use]
    pub fn why_unpriced(&self, s: usize, v: ValueId) -> Why {
        self.why_at(s, v, false)
    }

    fn why_at(&self, s: usize, v: ValueId, priced: bool) -> Why {
        let graph = self.scopes.graph(s);
        let (maker, slot) = graph.value(v).producer();
        let taken = self.plan.taken(self.scopes, s, v);
        let produced = taken.produced.clone().unwrap_or_else(|| Layout::row_major(0));
        let own = self.own(s);
        let layouts = own.layouts.get(v.index()).map_or(&[][..], |l| &l[..]);
        let offered = |wants: &[Option<u32>]| -> Vec<String> {
            let offered = |(_, l): &(usize, &Layout)| l.to_string();
            let all = layouts.iter().enumerate();
            all.filter(|(i, _)| wants.contains(&Some(*i as u32))).map(|pair| offered(&pair)).collect()
        };
        let shared = self.shared(s, v).map(|(_, value)| value);
        let makes: Vec<Option<u32>> = shared.map_or(vec![Some(0)], |v| v.produces.iter().map(|&l| Some(l)).collect());
        let row_major = vec![Some(0)];
        let reads = |i: usize| shared.and_then(|value| value.uses.get(i)).map_or(&row_major, |read| &read.wants);
        let mut wanted: Vec<Layout> = Vec::new();
        for &k in graph.output_places(v) {
            let copy = taken.copies.iter().find(|c| c.outputs.contains(&k));
            wanted.push(copy.map_or_else(|| produced.clone(), |c| c.layout.clone()));
        }
        wanted.extend(graph.uses(v).into_iter().map(|u| self.plan.wanted(self.scopes, s, u, v)));
        let readers = self.readers(s, v).into_iter().zip(wanted).enumerate();
        let near = graph.uses(v).into_iter().map(|u| u.node).chain([maker]);
        let mut cut_short: Vec<String> = near
            .filter(|n| self.is_op(s, *n) && own.cut_short.contains(&n.index()))
            .map(|n| graph.node(n).describe(graph))
            .collect();
        cut_short.dedup();
        let alternatives = self.alternatives(s, v, &produced, priced);
        Why {
            value: graph.value(v).name.clone(),
            ty: graph.value(v).ty.to_string(),
            bytes: self.hints.bytes(graph, v),
            constant: own.constant.get(v.index()).copied().unwrap_or(false),
            producer: Side {
                node: graph.node(maker).describe(graph),
                layout: produced.to_string(),
                offers: offered(&makes),
            },
            readers: readers
                .map(|(i, (node, layout))| Side { node, layout: layout.to_string(), offers: offered(reads(i)) })
                .collect(),
            why_made: why_made(graph, maker, slot),
            why_wanted: why_wanted(graph, v),
            cheapest: cheapest(&alternatives),
            alternatives,
            dropped: own.dropped.get(&v).into_iter().flatten().map(ToString::to_string).collect(),
            cut_short,
        }
    }

    fn alternatives(&self, s: usize, v: ValueId, produced: &Layout, priced: bool) -> Vec<Alternative> {
        let layouts = self.own(s).layouts.get(v.index()).map_or(&[][..], |l| &l[..]);
        let Some((_, value)) = self.shared(s, v) else { return Vec::new() };
        let base = self.posed.assignment(self.plan.chosen());
        let mut scratch = self.plan.clone();
        let bytes = total_bytes(&self.moves());
        let graph = self.scopes.graph(s);
        let maker = graph.node(graph.value(v).producer().0).describe(graph);
        let names = self.readers(s, v);
        let of = |(number, layout): (usize, &Layout)| {
            let number = number as u32;
            let makes = |state: usize| value.produces.get(state) == Some(&number);
            let mut missing = Vec::new();
            let can_be_left = !self.none(value.producer, &makes);
            if !can_be_left {
                missing.push(format!("no form of {maker} leaves it so"));
            }
            let left = self.posed.problem.clone().without(value.producer, |state| !makes(state));
            let mut only = left.clone();
            let mut lacking = Vec::new();
            for (read, name) in value.uses.iter().zip(&names) {
                let will_do =
                    |state: usize| read.wants.get(state).copied().flatten().is_none_or(|wanted| wanted == number);
                if self.none(read.var, &will_do) {
                    lacking.push(name.clone());
                }
                only = only.without(read.var, |state| !will_do(state));
            }
            if !lacking.is_empty() {
                missing.push(format!("no form of {} reads it so", some(&lacking)));
            }
            let mut price = |problem, possible: bool| {
                if priced && possible { self.price(&problem, &base, bytes, &mut scratch, None) } else { (None, None) }
            };
            let (only_ns, only_bytes) = price(only, missing.is_empty());
            let (left_ns, left_bytes) = price(left, can_be_left);
            if priced && only_ns.is_none() && missing.is_empty() {
                missing.push("the forms of the nodes around do not fit together in it".to_owned());
            }
            let taken = layout == produced;
            Alternative { layout: layout.to_string(), taken, missing, only_ns, only_bytes, left_ns, left_bytes }
        };
        layouts.iter().enumerate().map(of).collect()
    }
}

fn cheapest(alternatives: &[Alternative]) -> Option<String> {
    let best = alternatives.iter().filter_map(|a| Some((a.only_ns?, a))).min_by_key(|(ns, _)| *ns)?;
    let (ns, alternative) = best;
    Some(format!("{} everywhere, at {ns:+} ns and {:+} B", alternative.layout, alternative.only_bytes.unwrap_or(0)))
}
