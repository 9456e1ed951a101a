//! Binding a signature to a node: ranks and attributes turn letters and runs into atoms on axes.
//!
//! A bound form fits the node: every slot that has axes has as many as the value in it, so that a pass may index one by the
//! other. What does not fit (an unknown rank, more axes than a [`Slot`](crate::form::Slot) can number) is a reason, not an
//! error: the op is then opaque.

use super::alike::extents_agree;
use super::border::borders;
use super::infer::InferContext;
use super::matmul::distinct;
use super::read::{keeps_axes, reduced_by, takes_all};
use super::sig::{Item, Pattern, Place, Signature, Times, parse};
use super::{Axes, AxisSource, Case, OpDef, def_of, entries, normalize_axis};
use crate::dim::Dim;
use crate::form::{Atom, AtomId, Bound, Form, Renumber, Role, View};
use crate::graph::{Graph, Node, NodeId, Op, ValueId};
use std::collections::BTreeMap;

/// Most axes that one operand may have.
const MAX_RANK: usize = 255;

/// What a node means for layouts, from the table and the types of its operands.
pub fn bind(graph: &Graph, id: NodeId) -> Form {
    let node = graph.node(id);
    let Op::Onnx(name) = &node.op else {
        return Form::Opaque("not an ONNX op".to_owned());
    };
    if node.kept {
        return Form::Opaque("a rewrite failed here, so it is left as it is".to_owned());
    }
    if let Some(borders) = borders(graph, node) {
        return Form::Borders(borders);
    }
    match def_of(graph, id) {
        Some(_) if takes_all(graph, node) => Form::View(View::Same),
        Some(def) => match contradiction(graph, id, def) {
            Some(why) => Form::Opaque(why),
            None => agreeing(graph, node, bind_as(graph, id, def)),
        },
        None if entries().any(|def| def.domain == name.domain) => {
            Form::Opaque(format!("{name} of opset {} is not in the table of ops", node.opset))
        }
        None => match &node.letters {
            Some(letters) => bind_letters(graph, node, letters).map_or_else(Form::Opaque, |b| Form::Axes(Box::new(b))),
            None => Form::Opaque(format!("{name} is not in the table of ops: a function of the model, or a custom op")),
        },
    }
}

/// What a host says of its own op: a letter for each axis of each operand and result. The same letter is the same axis, whose
/// extent may differ between them. The host finds axes by their letters, so they are free; nothing else is claimed of them.
fn bind_letters(graph: &Graph, node: &Node, letters: &str) -> Result<Bound, String> {
    static HOST: Case = Case::new("letters of the host");
    let other = |c: &char| !(c.is_ascii_alphabetic() || c.is_whitespace() || [',', '_'].contains(c));
    let (operands, results) = letters.split_once("->").ok_or("its letters have no `->`")?;
    if let Some(c) = operands.chars().chain(results.chars()).find(other) {
        return Err(format!("its letters have the sign `{c}`"));
    }
    let count = |text: &str| text.split(',').count();
    if (count(operands), count(results)) != (node.inputs.len(), node.outputs.len()) {
        return Err("its letters are for another number of operands or results".to_owned());
    }
    let terms = operands.split(',').chain(results.split(',')).map(letters_of_term).collect::<Result<Vec<_>, _>>()?;
    // Letters that have no order common to all terms are axes of their own where they stand out of it.
    let axes = distinct(&terms.iter().map(|term| term.clone().unwrap_or_default()).collect::<Vec<_>>());
    let axis = |(c, copy): &(char, usize)| if *copy == 0 { format!("<{c}>~") } else { format!("<{c}{copy}>~") };
    let spelled = |(term, axes): (&Option<Vec<char>>, &Vec<(char, usize)>)| match term {
        None => "_".to_owned(),
        Some(_) => axes.iter().map(axis).collect::<Vec<_>>().join(" "),
    };
    let spelled: Vec<String> = terms.iter().zip(&axes).map(spelled).collect();
    let (operands, results) = spelled.split_at(node.inputs.len());
    bind_text(graph, node, &HOST, &format!("{} -> {}", operands.join(", "), results.join(", ")))
}

/// The letters of one operand or result; `None` for `_`.
fn letters_of_term(term: &str) -> Result<Option<Vec<char>>, String> {
    let term = term.trim();
    if term == "_" {
        return Ok(None);
    }
    let twice = term.chars().enumerate().find(|(i, c)| term.chars().take(*i).any(|other| other == *c));
    match twice {
        Some((_, c)) => Err(format!("its letters have `{c}` twice in one operand or result")),
        None if term.contains('_') => Err("its letters have `_` beside others".to_owned()),
        None => Ok(Some(term.chars().collect())),
    }
}

/// A form of letters, if the extents of the node are such that it has them.
fn agreeing(graph: &Graph, node: &Node, form: Form) -> Form {
    match &form {
        Form::Axes(bound) => extents_agree(graph, node, bound).map_or_else(Form::Opaque, |()| form),
        _ => form,
    }
}

/// Why a node can't be as it is typed. Nothing is known of what it makes, so no layout passes through it: what a file declares for it
/// would not hold for the node that is written in its place.
fn contradiction(graph: &Graph, id: NodeId, def: &OpDef) -> Option<String> {
    let mut context = InferContext { graph, node: graph.node(id), unknowns: &mut 0 };
    (def.infer)(&mut context).err()
}

/// What a node would mean for layouts if this were its entry, whatever the table says of it.
pub fn bind_as(graph: &Graph, id: NodeId, def: &'static OpDef) -> Form {
    let node = graph.node(id);
    match &def.axes {
        Axes::Opaque(why) => Form::Opaque((*why).to_owned()),
        Axes::View(_, view) => view(graph, node).map_or_else(Form::Opaque, Form::View),
        Axes::Spelled(case, spell) => spell(graph, node)
            .and_then(|text| bind_text(graph, node, case, &text))
            .map_or_else(Form::Opaque, |bound| Form::Axes(Box::new(bound))),
        Axes::Sig(cases) => {
            let mut reasons: Vec<String> = Vec::new();
            for case in *cases {
                match bind_case(graph, node, case) {
                    Ok(bound) => return Form::Axes(Box::new(bound)),
                    Err(why) if reasons.contains(&why) => {}
                    Err(why) => reasons.push(why),
                }
            }
            Form::Opaque(reasons.join("; "))
        }
    }
}

fn bind_case(graph: &Graph, node: &Node, case: &'static Case) -> Result<Bound, String> {
    bind_text(graph, node, case, case.sig)
}

fn bind_text(graph: &Graph, node: &Node, case: &'static Case, text: &str) -> Result<Bound, String> {
    let signature = parse(text)?;
    let ranks = operand_ranks(graph, node, &signature)?;
    if let Some(when) = case.when {
        when(graph, node)?;
    }
    lists_are_lists(graph, node, case)?;
    let axis = axis_value(graph, node, case.axis, ranks.iter().copied().flatten().next())?;
    let mut binder = Binder { runs: BTreeMap::new(), axis };
    for (pattern, rank) in patterns(&signature.operands, node.inputs.len()).zip(&ranks) {
        if let (Some(pattern), Some(rank)) = (pattern, rank) {
            binder.measure(pattern, *rank)?;
        }
    }
    for (pattern, v) in patterns(&signature.results, node.outputs.len()).zip(&node.outputs) {
        if let (Some(pattern), Some(v)) = (pattern.filter(|p| !p.whole), v) {
            binder.measure_produced(pattern, rank_of(graph, *v)?);
        }
    }
    binder.bound(graph, node, case, &signature, &ranks)
}

/// Refuses a node where an operand that should list an entry per axis is known to be no list: its entries could not be put in order.
fn lists_are_lists(graph: &Graph, node: &Node, case: &Case) -> Result<(), String> {
    for what in case.renumber {
        let (Renumber::PerAxisInput(slot, _) | Renumber::TrailingInput(slot)) = *what else { continue };
        let rank = node.operand(slot).and_then(|v| graph.value(v).ty.rank());
        if let Some(rank) = rank.filter(|rank| *rank != 1) {
            return Err(format!("operand {slot} has rank {rank} and is not a list"));
        }
    }
    Ok(())
}

/// The pattern of each slot, the repeated one as often as needed; `None` past the end.
fn patterns<'p, 's>(side: &'p [Pattern<'s>], slots: usize) -> impl Iterator<Item = Option<&'p Pattern<'s>>> {
    (0..slots).map(|i| {
        side.get(i).or_else(|| match side.last()?.times {
            Times::Repeated(n) => side.get(side.len() - n + (i - side.len()) % n),
            _ => None,
        })
    })
}

fn operand_ranks(graph: &Graph, node: &Node, signature: &Signature<'_>) -> Result<Vec<Option<usize>>, String> {
    let required = signature.operands.iter().filter(|p| p.times == Times::Once).count();
    if node.inputs.len() < required {
        return Err(format!("has {} operands, needs {required}", node.inputs.len()));
    }
    patterns(&signature.operands, node.inputs.len())
        .zip(&node.inputs)
        .map(|(pattern, input)| match (pattern, input) {
            (None, Some(_)) => Err("has more operands than its signature".to_owned()),
            (Some(p), None) if p.times == Times::Once => Err("lacks an operand".to_owned()),
            (None | Some(_), None) => Ok(None),
            (Some(p), Some(_)) if p.whole => Ok(None),
            (Some(_), Some(v)) => rank_of(graph, *v).map(Some),
        })
        .collect()
}

fn rank_of(graph: &Graph, v: ValueId) -> Result<usize, String> {
    let value = graph.value(v);
    match value.ty.rank() {
        None => Err(format!("the rank of `{}` is not known", value.name)),
        Some(rank) if rank > MAX_RANK => Err(format!("`{}` has more than {MAX_RANK} axes", value.name)),
        Some(rank) => Ok(rank),
    }
}

fn axis_value(graph: &Graph, node: &Node, source: AxisSource, rank: Option<usize>) -> Result<Option<usize>, String> {
    let axis = match source {
        AxisSource::None => return Ok(None),
        AxisSource::Attr(name, default) | AxisSource::ResultAttr(name, default) => node.int(name).unwrap_or(default),
        AxisSource::Input(slot) => known_axis(graph, node, slot)?.ok_or("the axis is computed at run time")?,
        AxisSource::InputOr(slot, default) => known_axis(graph, node, slot)?.unwrap_or(default),
        AxisSource::LastExtent(slot) => {
            let shape = node.operand(slot).and_then(|v| graph.value(v).ty.shape());
            let last = shape.and_then(<[Dim]>::last).and_then(Dim::as_const);
            last.ok_or("the number of axes that it addresses is not known")?
        }
    };
    let rank =
        rank.ok_or("has no operand whose axes are known")? + usize::from(matches!(source, AxisSource::ResultAttr(..)));
    // One past the end is a place too: it says that the second run is empty.
    if axis == rank as i64 {
        return Ok(Some(rank));
    }
    normalize_axis(axis, rank).map(Some).ok_or_else(|| format!("axis {axis} is out of range for rank {rank}"))
}

/// The axis that an operand holds; `None` if it is left out.
fn known_axis(graph: &Graph, node: &Node, slot: usize) -> Result<Option<i64>, String> {
    let Some(v) = node.operand(slot) else { return Ok(None) };
    let first = graph.value(v).contents.as_ref().and_then(|c| c.first());
    first.and_then(Dim::as_const).map(Some).ok_or_else(|| "the axis is computed at run time".to_owned())
}

/// Length of a run, and whether it is settled rather than the longest seen so far.
#[derive(Clone, Copy)]
struct Length {
    axes: usize,
    settled: bool,
}

struct Binder<'s> {
    runs: BTreeMap<&'s str, Length>,
    axis: Option<usize>,
}

impl<'s> Binder<'s> {
    /// Learns run lengths from an operand of this rank.
    fn measure(&mut self, pattern: &Pattern<'s>, rank: usize) -> Result<(), String> {
        let misfit = || format!("an operand of rank {rank} does not fit its signature");
        let left = rank.checked_sub(pattern.singles()).ok_or_else(misfit)?;
        let runs: Vec<&'s str> = pattern.runs().collect();
        match runs[..] {
            [] if left == 0 => Ok(()),
            [run] => match self.runs.get_mut(run) {
                Some(length) if length.settled && left > length.axes => Err(misfit()),
                Some(length) => {
                    length.axes = length.axes.max(left);
                    Ok(())
                }
                None => {
                    self.runs.insert(run, Length { axes: left, settled: false });
                    Ok(())
                }
            },
            [first, second] => {
                let settled = |run: &str| self.runs.get(run).filter(|l| l.settled).map(|l| l.axes);
                let at = match (settled(first), settled(second)) {
                    (Some(at), _) => at,
                    (None, Some(rest)) => left.checked_sub(rest).ok_or_else(misfit)?,
                    // The axis counts what stands before the first run too.
                    (None, None) => {
                        let axis = self.axis.ok_or("its axis is not known")?;
                        axis.checked_sub(pattern.before_runs()).ok_or_else(misfit)?
                    }
                };
                let rest = left.checked_sub(at).ok_or_else(misfit)?;
                self.settle(first, at)?;
                self.settle(second, rest)
            }
            _ => Err(misfit()),
        }
    }

    /// Learns the length of a run that stands in results only from a result of this rank.
    fn measure_produced(&mut self, pattern: &Pattern<'s>, rank: usize) {
        let produced: Vec<&'s str> = pattern.runs().filter(|run| !self.runs.contains_key(run)).collect();
        if let [run] = produced[..] {
            let others = pattern.singles() + pattern.runs().map(|run| self.length(run)).sum::<usize>();
            self.runs.insert(run, Length { axes: rank.saturating_sub(others), settled: true });
        }
    }

    fn settle(&mut self, run: &'s str, axes: usize) -> Result<(), String> {
        let length = self.runs.entry(run).or_insert(Length { axes, settled: true });
        length.settled = true;
        (length.axes == axes).then_some(()).ok_or_else(|| "has operands of unequal rank".to_owned())
    }

    fn length(&self, run: &str) -> usize {
        self.runs.get(run).map_or(0, |l| l.axes)
    }

    fn bound(
        &self,
        graph: &Graph,
        node: &Node,
        case: &'static Case,
        signature: &Signature<'s>,
        ranks: &[Option<usize>],
    ) -> Result<Bound, String> {
        let mut atoms = Atoms::default();
        let (mut operands, mut aligned) = (Vec::new(), Vec::new());
        for (pattern, rank) in patterns(&signature.operands, node.inputs.len()).zip(ranks) {
            let axes = match (pattern, rank) {
                (Some(p), Some(rank)) => Some((self.axes(p, Some(*rank), &mut atoms)?, self.is_short(p, *rank))),
                _ => None,
            };
            aligned.push(axes.as_ref().is_some_and(|(_, short)| *short));
            operands.push(axes.map(|(axes, _)| axes));
        }
        let first = operands.first().cloned().flatten().unwrap_or_default();
        let reduced = match &case.reduce {
            Some(reduce) => {
                let axes = reduced_by(graph, node, reduce, first.len())?;
                axes.ok_or("the reduced axes are computed at run time")?.into_iter().map(|i| first[i]).collect()
            }
            None => Vec::new(),
        };
        if let Some(whole) = case.whole {
            let whole = whole(graph, node, first.len());
            whole.into_iter().filter_map(|i| first.get(i)).for_each(|&a| atoms.mark(a, Role::Whole));
        }
        let results = self.results(graph, node, signature, &reduced, &mut atoms)?;
        let substitute = self.substitute(signature, &mut atoms);
        let (renumber, text) = (case.renumber.to_vec(), case.sig);
        let orders = case.orders.and_then(|orders| orders(graph, node, first.len()));
        let mut bound = Bound { atoms: Vec::new(), operands, results, aligned, substitute, orders, renumber, text };
        bound.atoms = atoms.finish(&bound, &reduced);
        in_onnx_order(&mut bound);
        Ok(bound)
    }

    fn results(
        &self,
        graph: &Graph,
        node: &Node,
        signature: &Signature<'s>,
        reduced: &[AtomId],
        atoms: &mut Atoms,
    ) -> Result<Vec<Option<Vec<AtomId>>>, String> {
        let keep = keeps_axes(node);
        let mut results = Vec::new();
        for (pattern, output) in patterns(&signature.results, node.outputs.len()).zip(&node.outputs) {
            let (Some(pattern), Some(v)) = (pattern.filter(|p| !p.whole), output) else {
                results.push(None);
                continue;
            };
            let mut axes = self.axes(pattern, None, atoms)?;
            if !keep {
                axes.retain(|a| !reduced.contains(a));
            }
            if rank_of(graph, *v)? != axes.len() {
                return Err(format!("the rank of `{}` does not fit its signature", graph.value(*v).name));
            }
            results.push(Some(axes));
        }
        Ok(results)
    }

    /// Whether the one run of this operand is shorter here than elsewhere: it is aligned at its end and broadcast.
    fn is_short(&self, pattern: &Pattern<'s>, rank: usize) -> bool {
        let mut runs = pattern.runs();
        match (runs.next(), runs.next()) {
            (Some(run), None) => rank.saturating_sub(pattern.singles()) < self.length(run),
            _ => false,
        }
    }

    /// Atoms of each axis of one operand; a shorter run is aligned at its end.
    fn axes(&self, pattern: &Pattern<'s>, rank: Option<usize>, atoms: &mut Atoms) -> Result<Vec<AtomId>, String> {
        let own = match rank {
            Some(rank) if pattern.runs().count() == 1 => Some(rank.saturating_sub(pattern.singles())),
            _ => None,
        };
        let mut axes = Vec::new();
        for Item { place, role } in &pattern.items {
            match place {
                Place::Single(letter) => axes.push(atoms.get(letter, true, *role)?),
                Place::Digits(letters) => axes.push(atoms.get(&format!("({letters})"), true, *role)?),
                Place::Named(letter) | Place::Lettered(letter) => axes.push(atoms.get(letter, false, *role)?),
                Place::Run { letter, pinned, .. } => {
                    let length = self.length(letter);
                    for k in length - own.unwrap_or(length).min(length)..length {
                        axes.push(atoms.get(&format!("{letter}{k}"), *pinned, *role)?);
                    }
                }
            }
        }
        if axes.len() > MAX_RANK {
            return Err(format!("more than {MAX_RANK} axes"));
        }
        Ok(axes)
    }

    fn substitute(&self, signature: &Signature<'s>, atoms: &mut Atoms) -> Option<(AtomId, Vec<AtomId>)> {
        let (run, of) = signature.operands.iter().flat_map(|p| &p.items).find_map(|i| match i.place {
            Place::Run { letter, replaces: Some(of), .. } => Some((letter, of)),
            _ => None,
        })?;
        let of = atoms.get(of, false, None).ok()?;
        let run = (0..self.length(run)).map(|k| atoms.get(&format!("{run}{k}"), false, None).ok());
        Some((of, run.collect::<Option<_>>()?))
    }
}

#[derive(Default)]
struct Atoms {
    names: Vec<String>,
    pinned: Vec<bool>,
    roles: Vec<Option<Role>>,
}

impl Atoms {
    fn get(&mut self, name: &str, pinned: bool, role: Option<Role>) -> Result<AtomId, String> {
        let i = self.names.iter().position(|n| n == name).unwrap_or_else(|| {
            self.names.push(name.to_owned());
            self.pinned.push(false);
            self.roles.push(None);
            self.names.len() - 1
        });
        self.pinned[i] |= pinned;
        self.roles[i] = self.roles[i].or(role);
        AtomId::try_from(i).map_err(|_| "has too many axes".to_owned())
    }

    fn mark(&mut self, a: AtomId, role: Role) {
        if let Some(slot) = self.roles.get_mut(usize::from(a)) {
            *slot = Some(role);
        }
    }

    fn finish(self, bound: &Bound, reduced: &[AtomId]) -> Vec<Atom> {
        let within = |slots: &[Option<Vec<AtomId>>], a: AtomId| slots.iter().flatten().any(|axes| axes.contains(&a));
        let mut atoms = Vec::with_capacity(self.names.len());
        for (i, ((name, pinned), marked)) in self.names.into_iter().zip(self.pinned).zip(self.roles).enumerate() {
            let a = i as AtomId;
            let role = match (within(&bound.operands, a), within(&bound.results, a)) {
                (true, true) if !reduced.contains(&a) => Role::Carried,
                (true, _) => Role::Contracted,
                (false, _) => Role::Produced,
            };
            atoms.push(Atom { name, role: marked.unwrap_or(role), pinned });
        }
        atoms
    }
}

/// Renumbers the atoms so that ascending order is an order in which every slot is stored as ONNX has it: a topological sort
/// of "comes before in some slot".
fn in_onnx_order(bound: &mut Bound) {
    let n = bound.atoms.len();
    let mut after = successors(bound);
    let mut degree = vec![0usize; n];
    for &b in after.iter().flatten() {
        degree[b] += 1;
    }
    let mut place: Vec<Option<AtomId>> = vec![None; n];
    for next in 0..n {
        let mut open = (0..n).filter(|&a| place[a].is_none());
        // On a cycle (never for the table's signatures) the first atom left goes next; `allows` then refuses what is wrong.
        let Some(a) = open.clone().find(|&a| degree[a] == 0).or_else(|| open.next()) else { break };
        place[a] = Some(next as AtomId);
        for b in std::mem::take(&mut after[a]) {
            degree[b] = degree[b].saturating_sub(1);
        }
    }
    let new = |a: AtomId| place[usize::from(a)].unwrap_or(a);
    for a in bound.operands.iter_mut().chain(&mut bound.results).flatten().flatten() {
        *a = new(*a);
    }
    if let Some((of, atoms)) = &mut bound.substitute {
        *of = new(*of);
        for a in atoms {
            *a = new(*a);
        }
    }
    let mut atoms: Vec<(AtomId, Atom)> =
        bound.atoms.drain(..).enumerate().map(|(i, a)| (new(i as AtomId), a)).collect();
    atoms.sort_by_key(|(i, _)| *i);
    bound.atoms = atoms.into_iter().map(|(_, a)| a).collect();
}

/// For each atom, those that follow it directly in some slot.
fn successors(bound: &Bound) -> Vec<Vec<usize>> {
    let mut after: Vec<Vec<usize>> = vec![Vec::new(); bound.atoms.len()];
    for axes in bound.operands.iter().chain(&bound.results).flatten() {
        for pair in axes.windows(2) {
            after[usize::from(pair[0])].push(usize::from(pair[1]));
        }
    }
    if let Some((of, atoms)) = &bound.substitute {
        let mut before = usize::from(*of);
        for &a in atoms {
            after[before].push(usize::from(a));
            before = usize::from(a);
        }
        // What stands around the replaced axis in the operand stands around its substitutes.
        let operand = bound.operands.first().and_then(Option::as_ref);
        if let Some(next) = operand.and_then(|axes| axes.iter().skip_while(|a| *a != of).nth(1)) {
            after[before].push(usize::from(*next));
        }
    }
    after
}

#[cfg(test)]
mod tests {
    use super::super::LAST_OPSET;
    use super::*;
    use crate::constant::Constant;
    use crate::dtype::DType;
    use crate::form::Slot;
    use crate::graph::OpName;
    use crate::types::Type;

    fn cases() -> impl Iterator<Item = (&'static OpDef, &'static Case)> {
        entries().flat_map(|def| match def.axes {
            Axes::Sig(cases) => cases.iter().map(|case| (def, case)).collect(),
            _ => Vec::new(),
        })
    }

    /// Length of each run where the named axis is axis 1.
    fn lengths<'s>(signature: &Signature<'s>) -> BTreeMap<&'s str, usize> {
        let mut lengths = BTreeMap::new();
        for pattern in &signature.operands {
            if let [first, second] = pattern.runs().collect::<Vec<_>>()[..] {
                lengths.extend([(first, 1), (second, 2)]);
            }
        }
        for run in signature.operands.iter().chain(&signature.results).flat_map(Pattern::runs) {
            lengths.entry(run).or_insert(2);
        }
        lengths
    }

    fn value_type(pattern: &Pattern<'_>, lengths: &BTreeMap<&str, usize>) -> Type {
        let rank = pattern.singles() + pattern.runs().map(|r| lengths[r]).sum::<usize>();
        Type::tensor(DType::F32, (0..rank).map(|k| Dim::from(k as i64 + 2)).collect())
    }

    /// A node with every operand of the signature, those that repeat twice; `_` is the constant `[1]`.
    fn node_of(def: &OpDef, case: &'static Case) -> (Graph, NodeId) {
        let signature = parse(case.sig).unwrap();
        let lengths = lengths(&signature);
        let mut graph = Graph::new("g");
        let mut inputs = Vec::new();
        let group = match signature.operands.last().unwrap().times {
            Times::Repeated(n) => n,
            _ => 0,
        };
        for (i, pattern) in patterns(&signature.operands, signature.operands.len() + group).flatten().enumerate() {
            let name = format!("x{i}");
            let v = if pattern.whole {
                let v = graph.add_constant(name, Constant::ints(&[1])).unwrap();
                *graph.value_mut(v).contents = Some(vec![Dim::ONE]);
                v
            } else {
                let mut ty = value_type(pattern, &lengths);
                if let (AxisSource::LastExtent(slot), Type::Tensor(t)) = (case.axis, &mut ty) {
                    // As many as the first run is long.
                    t.shape.iter_mut().filter_map(|s| s.last_mut()).filter(|_| slot == i).for_each(|d| *d = Dim::ONE);
                }
                graph.add_input(name, ty).unwrap()
            };
            inputs.push(Some(v));
        }
        let op = OpName::new(def.domain, def.name);
        let mut node = Node::new(Op::Onnx(op), inputs);
        node.opset = def.opsets.1;
        node.attrs.insert("axis".into(), crate::attr::Attr::Int(1));
        let results = patterns(&signature.results, signature.results.len() + 1).flatten().enumerate();
        let results = results.map(|(i, p)| Some((format!("y{i}"), value_type(p, &lengths)))).collect();
        let id = graph.add(node, results).unwrap();
        (graph, id)
    }

    #[test]
    fn every_signature_parses_and_binds_in_onnx_order() {
        for (def, case) in cases() {
            let (graph, id) = node_of(def, case);
            // Conditions speak of one node's attributes; what is tested here is the text.
            let unconditional: &'static Case = Box::leak(Box::new(Case { when: None, ..*case }));
            let bound = bind_case(&graph, graph.node(id), unconditional)
                .unwrap_or_else(|why| panic!("{} `{}`: {why}", def.name, case.sig));
            let identity = bound.identity();
            assert!(bound.allows(&identity), "{} `{}`", def.name, case.sig);
            for slot in bound.slots() {
                let axes = bound.axes(slot).unwrap();
                let v = match slot {
                    Slot::In(i) => graph.node(id).inputs[i].unwrap(),
                    Slot::Out(i) => graph.node(id).outputs[i].unwrap(),
                };
                let rank = graph.value(v).ty.rank().unwrap();
                let in_order: Vec<usize> = (0..rank).collect();
                assert_eq!(bound.restrict(&identity, slot), Some(in_order), "{} `{}`", def.name, case.sig);
                let mut once = axes.to_vec();
                once.sort_unstable();
                once.dedup();
                assert_eq!(once.len(), axes.len(), "{} `{}` has a letter twice in one operand", def.name, case.sig);
            }
        }
    }

    #[test]
    fn what_is_renumbered_is_an_operand_that_is_read_as_it_is() {
        use Renumber::{AxesInput, AxisInput, PerAxisInput};
        for (def, case) in cases() {
            let signature = parse(case.sig).unwrap();
            for what in case.renumber {
                if let AxisInput(slot) | AxesInput(slot, _) | PerAxisInput(slot, _) = what {
                    assert!(signature.operands[*slot].whole, "{} `{}`", def.name, case.sig);
                }
            }
        }
    }

    #[test]
    fn a_named_axis_has_a_source_and_is_renumbered() {
        for (def, case) in cases() {
            let signature = parse(case.sig).unwrap();
            let items = || signature.operands.iter().flat_map(|p| &p.items);
            let splits = signature.operands.iter().any(|p| p.runs().count() == 2);
            let named = items().any(|i| matches!(i.place, Place::Named(_)));
            let told = !matches!(case.axis, AxisSource::None);
            assert_eq!(named || splits, told, "{} `{}`", def.name, case.sig);
            assert!(!named || !case.renumber.is_empty(), "{} `{}`", def.name, case.sig);
        }
    }

    #[test]
    fn versions_of_an_op_do_not_overlap() {
        let mut seen: BTreeMap<(&str, &str), Vec<(i64, i64)>> = BTreeMap::new();
        for def in entries() {
            assert!(1 <= def.opsets.0 && def.opsets.0 <= def.opsets.1 && def.opsets.1 <= LAST_OPSET, "{}", def.name);
            seen.entry((def.domain, def.name)).or_default().push(def.opsets);
        }
        for (op, mut ranges) in seen {
            ranges.sort_unstable();
            assert!(ranges.windows(2).all(|w| w[0].1 < w[1].0), "{op:?} {ranges:?}");
        }
    }
}
