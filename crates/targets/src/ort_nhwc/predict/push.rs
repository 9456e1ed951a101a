//! How ONNX Runtime moves Transposes down a graph: node by node, each through one op if that leaves fewer axes to move before it.

use super::net::{N, Net, Node, V};
use super::order::{inverse, is_identity, then, to_first, to_last, with, without};
use rustc_hash::FxHashSet;

/// What the runtime does at this time.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rules {
    pub(super) when: When,
    /// Transposes move through Reshapes that split axes, and through Gathers of one element.
    pub(super) splits: bool,
    /// They move through Reshapes between rows and columns and one axis.
    pub(super) flattens: bool,
}

/// When the graph is looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum When {
    /// Before nodes are assigned to a provider.
    Loaded,
    /// After those of the provider were put between Transposes: these are moved as far as they go.
    Wrapped,
}

/// What an op does when the order of its operands changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// Results change with all operands.
    All,
    /// Results change with operand 0.
    First,
    /// As `All`, and operands of fewer axes get more.
    Broadcast,
    Softmax,
    Reduce,
    Squeeze,
    Unsqueeze,
    /// An element of an axis, which goes.
    Pick,
    Transpose,
    Reshape,
    Shape,
}

/// What an op of this name does; `None` where no Transpose passes.
fn kind(op: &str) -> Option<Kind> {
    Some(match op {
        "Cast" | "Exp" | "Gelu" | "Identity" | "LeakyRelu" | "Log" | "Reciprocal" | "Relu" | "Sigmoid" | "Sqrt"
        | "Tanh" | "Abs" | "Not" | "Ceil" | "Floor" | "Neg" | "Erf" | "HardSigmoid" | "Round" | "IsInf" | "IsNaN"
        | "Selu" | "Shrink" | "Sign" | "Softplus" | "Softsign" | "ThresholdedRelu" | "Celu" | "HardSwish" | "Elu"
        | "Sin" | "Cos" | "Tan" | "Sinh" | "Cosh" | "Asin" | "Acos" | "Atan" | "Asinh" | "Acosh" | "Atanh"
        | "Concat" => Kind::All,
        "Clip" | "CastLike" | "Split" | "Pad" | "Slice" | "Tile" | "QuantizeLinear" | "DequantizeLinear" => Kind::First,
        "Add" | "Max" | "Min" | "Mul" | "Sub" | "Div" | "And" | "Or" | "Xor" | "Mod" | "PRelu" | "BitShift"
        | "Equal" | "Greater" | "Less" | "GreaterOrEqual" | "LessOrEqual" | "Mean" | "Sum" | "Pow" | "Where" => {
            Kind::Broadcast
        }
        "Softmax" | "Hardmax" | "LogSoftmax" => Kind::Softmax,
        "ArgMin" | "ArgMax" | "ReduceLogSum" | "ReduceLogSumExp" | "ReduceMax" | "ReduceMean" | "ReduceMin"
        | "ReduceProd" | "ReduceSum" | "ReduceSumSquare" | "ReduceL1" | "ReduceL2" => Kind::Reduce,
        "Squeeze" => Kind::Squeeze,
        "Unsqueeze" => Kind::Unsqueeze,
        "Transpose" => Kind::Transpose,
        "Reshape" => Kind::Reshape,
        "Shape" => Kind::Shape,
        _ => return None,
    })
}

/// Whether Transposes of its operands become Transposes of its results.
fn passes_on(kind: Kind) -> bool {
    !matches!(kind, Kind::Transpose | Kind::Reshape | Kind::Shape)
}

/// Moves Transposes down.
pub(super) fn push(net: &mut Net, rules: Rules) {
    let order = net.order();
    let leading = leading(net, &order);
    for n in order {
        for slot in 0..net.nodes[n].ins.len() {
            if net.nodes[n].gone {
                break;
            }
            let Some(t) = net.nodes[n].ins[slot].and_then(|v| net.turned(v)) else { continue };
            if through(net, t, n, slot, rules, &leading) {
                break;
            }
        }
    }
    fold(net);
}

/// The values from which ops that pass Transposes on lead to a Transpose.
fn leading(net: &Net, order: &[N]) -> FxHashSet<V> {
    let mut leading = FxHashSet::default();
    for &n in order.iter().rev() {
        let node = &net.nodes[n];
        if node.op == "Transpose" {
            leading.extend(node.ins.first().copied().flatten());
        } else if kind_of(node).is_some_and(passes_on) && node.outs.iter().any(|v| leading.contains(v)) {
            leading.extend(taken(net, n));
        }
    }
    leading
}

fn kind_of(node: &Node) -> Option<Kind> {
    if node.op == "Gather" && node.picks {
        return Some(Kind::Pick);
    }
    if node.wrapped { None } else { kind(&node.op) }
}

/// The operands that change together.
fn slots(net: &Net, n: N) -> Vec<usize> {
    let node = &net.nodes[n];
    let scalar =
        |slot: &usize| node.ins[*slot].is_some_and(|v| net.values[v].shape.as_ref().is_some_and(Vec::is_empty));
    match kind_of(node) {
        Some(Kind::All) => (0..node.ins.len()).collect(),
        Some(Kind::Broadcast) => (0..node.ins.len()).filter(|slot| !scalar(slot)).collect(),
        _ => vec![0],
    }
}

fn taken(net: &Net, n: N) -> Vec<V> {
    slots(net, n).into_iter().filter_map(|slot| net.nodes[n].ins[slot]).collect()
}

/// Axes of more than one element.
fn rank(net: &Net, v: V) -> i64 {
    let count = |shape: &Vec<u64>| shape.iter().filter(|&&d| d != 1).count();
    net.values[v].shape.as_ref().map_or(5, |shape| i64::try_from(count(shape)).unwrap_or(5))
}

/// Moves a Transpose through one of its readers, if that pays.
fn through(net: &mut Net, t: N, n: N, slot: usize, rules: Rules, leading: &FxHashSet<V>) -> bool {
    let Some(kind) = kind_of(&net.nodes[n]) else { return false };
    let slots = slots(net, n);
    if !slots.contains(&slot) || kind == Kind::Pick && !rules.splits {
        return false;
    }
    let perm = net.nodes[t].perm.clone();
    let channels = perm == to_first(perm.len()) || perm == to_last(perm.len());
    let always = kind == Kind::Transpose || rules.when == When::Wrapped && channels && net.nodes[n].op != "Concat";
    if !always && cost(net, n, &perm, &slots, kind, leading) >= 0 {
        return false;
    }
    match kind {
        Kind::All | Kind::First => both(net, n, &perm, &slots),
        Kind::Broadcast => widen(net, n, perm.len(), &slots) && both(net, n, &perm, &slots),
        Kind::Softmax => keeps_sides(&net.nodes[n], &perm) && both(net, n, &perm, &slots),
        Kind::Reduce => reduce(net, n, &perm),
        Kind::Squeeze | Kind::Pick => narrow(net, n, &perm, without),
        Kind::Unsqueeze => narrow(net, n, &perm, with),
        Kind::Shape => shape(net, n, &perm),
        Kind::Transpose => {
            let second = net.nodes[n].perm.clone();
            second.len() == perm.len() && merge(net, t, n, &second)
        }
        Kind::Reshape => reshape(net, t, n, &perm, rules, leading),
    }
}

/// The axes that are moved before the op and after it, now and then: less than zero where there are fewer then.
fn cost(net: &Net, n: N, perm: &[usize], slots: &[usize], kind: Kind, leading: &FxHashSet<V>) -> i64 {
    let node = &net.nodes[n];
    let before: i64 = slots.iter().filter_map(|&slot| node.ins[slot]).map(|v| moving(net, v, perm)).sum();
    let leads = node.outs.iter().any(|v| leading.contains(v));
    if before < 0 && passes_on(kind) && !leads {
        return before + node.outs.iter().map(|&v| rank(net, v)).max().unwrap_or(0);
    }
    before
}

/// The axes that are moved if a value is read in the order from which `perm` leads here.
fn moving(net: &Net, v: V, perm: &[usize]) -> i64 {
    if net.values[v].constant {
        return 0;
    }
    let behind_units = net.values[v].maker.filter(|&m| net.nodes[m].op == "DequantizeLinear");
    let v_from = behind_units.and_then(|m| net.nodes[m].ins[0]).filter(|&x| net.turned(x).is_some()).unwrap_or(v);
    match net.turned(v_from) {
        Some(t) if net.nodes[t].perm == perm && is_passable(net, v_from) => -rank(net, v),
        Some(_) => 0,
        None => rank(net, v),
    }
}

/// Whether all readers of a value let a Transpose pass.
fn is_passable(net: &Net, v: V) -> bool {
    !net.values[v].left && net.readers(v).iter().all(|&n| kind_of(&net.nodes[n]).is_some())
}

/// Operands are read as they were before `perm`, and it stands behind the results.
fn both(net: &mut Net, n: N, perm: &[usize], slots: &[usize]) -> bool {
    for &slot in slots {
        turn(net, n, slot, &inverse(perm));
    }
    for slot in 0..net.nodes[n].outs.len() {
        net.transpose_result(n, slot, perm);
    }
    if let Some(axes) = &mut net.nodes[n].axes {
        for axis in axes {
            *axis = perm.get(*axis).copied().unwrap_or(*axis);
        }
    }
    true
}

/// Has an operand read in another order: by the Transpose before it going, by one that is there, or by a new one.
pub(super) fn turn(net: &mut Net, n: N, slot: usize, perm: &[usize]) {
    let Some(x) = net.nodes[n].ins[slot] else { return };
    if net.values[x].constant {
        let shape = net.values[x].shape.clone();
        let same = shape.as_ref().is_none_or(|shape| shape.len() != perm.len());
        let turned = if same { shape } else { shape.and_then(|shape| super::order::apply(perm, &shape)) };
        let own = net.value(turned, true);
        net.set(n, slot, Some(own));
        return;
    }
    let behind = net.values[x].maker.filter(|&m| net.nodes[m].op == "DequantizeLinear" && net.readers(x).len() == 1);
    if let Some(unit) = behind
        && let Some(t) = net.nodes[unit].ins[0].and_then(|q| net.turned(q))
        && net.nodes[t].perm == inverse(perm)
    {
        let (q, y) = (net.nodes[t].ins[0], net.nodes[unit].outs[0]);
        net.set(unit, 0, q);
        net.values[y].shape = q.and_then(|q| net.values[q].shape.clone());
        net.remove_unread(t);
        return;
    }
    net.set(n, slot, None);
    let read = match net.turned(x) {
        Some(t) if net.nodes[t].perm.len() == perm.len() => {
            let (base, whole) = (net.nodes[t].ins[0], then(&net.nodes[t].perm, perm));
            let read = base.map(|base| if is_identity(&whole) { base } else { net.transpose(base, &whole) });
            net.remove_unread(t);
            read
        }
        _ => {
            let same = |m: &&N| net.nodes[**m].op == "Transpose" && net.nodes[**m].perm == perm;
            let there = net.readers(x).iter().find(same).map(|&m| net.nodes[m].outs[0]);
            Some(there.unwrap_or_else(|| net.transpose(x, perm)))
        }
    };
    net.set(n, slot, read);
}

/// Gives operands of fewer axes more of one element.
fn widen(net: &mut Net, n: N, rank: usize, slots: &[usize]) -> bool {
    let shape = |net: &Net, slot: usize| net.nodes[n].ins[slot].map(|v| net.values[v].shape.clone());
    let shapes: Vec<_> = slots.iter().filter_map(|&slot| shape(net, slot)).collect();
    if shapes.iter().any(|shape| shape.as_ref().is_none_or(|shape| shape.len() > rank)) {
        return false;
    }
    for &slot in slots {
        let Some(x) = net.nodes[n].ins[slot] else { continue };
        let Some(shape) = net.values[x].shape.clone().filter(|shape| shape.len() < rank) else { continue };
        let axes: Vec<usize> = (0..rank - shape.len()).collect();
        let wide = vec![1; axes.len()].into_iter().chain(shape).collect();
        let own = net.value(Some(wide), net.values[x].constant);
        net.values[own].unknown = net.values[x].unknown.behind_another_axis();
        net.values[own].half = net.values[x].half;
        if !net.values[x].constant {
            let node = Node { op: "Unsqueeze".to_owned(), axes: Some(axes), ..Node::default() };
            let unsqueeze = net.add(node, vec![Some(x)], vec![own]);
            if let Some(t) = net.turned(x) {
                let perm = net.nodes[t].perm.clone();
                narrow(net, unsqueeze, &perm, with);
            }
        }
        net.set(n, slot, Some(own));
    }
    true
}

/// Before version 13 the axes before `axis` are rows: none may change sides.
fn keeps_sides(node: &Node, perm: &[usize]) -> bool {
    let axis = node.axes.as_ref().and_then(|axes| axes.first().copied()).unwrap_or(1);
    node.opset >= 13 || perm.iter().enumerate().all(|(i, &from)| (i < axis) == (from < axis))
}

fn reduce(net: &mut Net, n: N, perm: &[usize]) -> bool {
    let all: Vec<usize> = (0..perm.len()).collect();
    let axes = net.nodes[n].axes.clone().unwrap_or(all);
    if net.nodes[n].keeps {
        return both(net, n, perm, &[0]);
    }
    let now: Vec<usize> = axes.iter().map(|&axis| perm.get(axis).copied().unwrap_or(axis)).collect();
    let after = without(&now, perm);
    behind(net, n, perm, &after, now)
}

/// The rank of results is another one than that of operands.
fn narrow(net: &mut Net, n: N, perm: &[usize], of: fn(&[usize], &[usize]) -> Vec<usize>) -> bool {
    let Some(axes) = net.nodes[n].axes.clone() else { return false };
    let removes = net.nodes[n].op != "Unsqueeze";
    let now = if removes { axes.iter().map(|&a| perm.get(a).copied().unwrap_or(a)).collect() } else { axes };
    let after = of(&now, perm);
    behind(net, n, perm, &after, now)
}

fn behind(net: &mut Net, n: N, perm: &[usize], after: &[usize], axes: Vec<usize>) -> bool {
    turn(net, n, 0, &inverse(perm));
    if !is_identity(after) {
        for slot in 0..net.nodes[n].outs.len() {
            net.transpose_result(n, slot, after);
        }
    }
    net.nodes[n].axes = Some(axes);
    true
}

fn shape(net: &mut Net, n: N, perm: &[usize]) -> bool {
    turn(net, n, 0, &inverse(perm));
    true
}

/// A Transpose, or a Reshape that is one, behind a Transpose: both become one, or none.
fn merge(net: &mut Net, t: N, n: N, second: &[usize]) -> bool {
    let whole = then(&net.nodes[t].perm, second);
    let Some(base) = net.nodes[t].ins[0] else { return false };
    if is_identity(&whole) {
        let y = net.nodes[n].outs[0];
        for reader in net.readers(y).to_vec() {
            for slot in 0..net.nodes[reader].ins.len() {
                if net.nodes[reader].ins[slot] == Some(y) {
                    net.set(reader, slot, Some(base));
                }
            }
        }
        net.values[base].left |= net.values[y].left;
        net.remove(n);
    } else {
        "Transpose".clone_into(&mut net.nodes[n].op);
        net.nodes[n].perm = whole;
        net.set(n, 0, Some(base));
    }
    net.remove_unread(t);
    true
}

fn reshape(net: &mut Net, t: N, n: N, perm: &[usize], rules: Rules, leading: &FxHashSet<V>) -> bool {
    let (Some(x), y) = (net.nodes[n].ins[0], net.nodes[n].outs[0]) else { return false };
    let (Some(from), Some(to)) = (net.values[x].shape.clone(), net.values[y].shape.clone()) else { return false };
    let flattened = spatial(perm, &from, &to).filter(|_| rules.flattens && leading.contains(&y));
    if let Some(after) = flattened.filter(|_| rules.when == When::Wrapped) {
        turn(net, n, 0, &inverse(perm));
        net.transpose_result(n, 0, &inverse(&after));
        return true;
    }
    if let Some(second) = same_axes(&from, &to) {
        return merge(net, t, n, &second);
    }
    let Some(parts) = split_axes(&from, &to).filter(|_| rules.splits && leading.contains(&y)) else { return false };
    turn(net, n, 0, &inverse(perm));
    net.transpose_result(n, 0, &spread(perm, &parts));
    true
}

/// For each axis that a Reshape reads, how many it makes of it, if it only splits axes.
fn split_axes(from: &[u64], to: &[u64]) -> Option<Vec<usize>> {
    let mut rest = to.iter().copied().peekable();
    let mut parts = Vec::with_capacity(from.len());
    for &extent in from {
        let (mut product, mut count) = (rest.next()?, 1);
        while product < extent {
            product = product.checked_mul(rest.next()?)?;
            count += 1;
        }
        if product != extent {
            return None;
        }
        parts.push(count);
    }
    rest.peek().is_none().then_some(parts)
}

/// The order of axes each of which is now so many.
fn spread(perm: &[usize], parts: &[usize]) -> Vec<usize> {
    // `parts` are those of the axes in the order in which they stand behind the Transpose.
    let place = inverse(perm);
    let before: Vec<usize> = place.iter().map(|&at| parts.get(at).copied().unwrap_or(1)).collect();
    let start = |axis: usize| before.iter().take(axis).sum::<usize>();
    perm.iter()
        .flat_map(|&axis| (0..before.get(axis).copied().unwrap_or(1)).map(move |i| (axis, i)))
        .map(|(axis, i)| start(axis) + i)
        .collect()
}

/// The order of the result of a Reshape of rows and columns only, if it is read in the order from which `perm` leads here.
fn spatial(perm: &[usize], from: &[u64], to: &[u64]) -> Option<Vec<usize>> {
    let rank = from.len();
    let batch = from.first() == to.first();
    let first = batch && from.get(1).is_some_and(|c| to.get(1) == Some(c));
    let last = batch && from.last() == to.last();
    match rank {
        3 if perm == [0, 2, 1] && first => Some(to_last(to.len())),
        3 if perm == [0, 2, 1] && last => Some(to_first(to.len())),
        4 if perm == to_last(4) && last => Some(to_first(to.len())),
        4 if perm == to_first(4) && first => Some(to_last(to.len())),
        _ => None,
    }
}

/// The order of axes that a Reshape makes which only moves axes of one element.
fn same_axes(from: &[u64], to: &[u64]) -> Option<Vec<usize>> {
    if from.len() != to.len() {
        return None;
    }
    let mut used = vec![false; from.len()];
    let mut perm = Vec::with_capacity(to.len());
    for &wanted in to {
        let mut at = 0;
        loop {
            let &extent = from.get(at)?;
            if !used[at] && extent == wanted {
                break;
            }
            if !used[at] && extent != 1 && wanted != 1 {
                return None;
            }
            at += 1;
        }
        used[at] = true;
        perm.push(at);
    }
    Some(perm)
}

/// Transposes that nobody reads, or of constants, go; of two that are alike one does.
fn fold(net: &mut Net) {
    for n in net.order() {
        if net.nodes[n].op != "Transpose" || net.nodes[n].gone {
            continue;
        }
        net.remove_unread(n);
        let Some(x) = net.nodes[n].ins[0] else { continue };
        let alike = |m: &&N| **m < n && net.nodes[**m].op == "Transpose" && net.nodes[**m].perm == net.nodes[n].perm;
        let twin = net.readers(x).iter().find(alike).map(|&m| net.nodes[m].outs[0]);
        let y = net.nodes[n].outs[0];
        if let Some(twin) = twin.filter(|_| !net.values[y].left) {
            for reader in net.readers(y).to_vec() {
                for slot in 0..net.nodes[reader].ins.len() {
                    if net.nodes[reader].ins[slot] == Some(y) {
                        net.set(reader, slot, Some(twin));
                    }
                }
            }
            net.remove(n);
        }
    }
}
