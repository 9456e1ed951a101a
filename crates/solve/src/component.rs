//! The connected components of a network, renumbered, with living states only.

use super::network::{Layouts, Link, Network, Reader, Shared};
use petgraph::unionfind::UnionFind;

/// A connected part of the network, solved by itself.
#[derive(Debug)]
pub(super) struct Component {
    pub(super) network: Network,
    /// For each variable of `network` the variable of the whole that it is.
    pub(super) vars: Vec<usize>,
    /// For each variable of `network` the whole's state that each of its states is.
    pub(super) states: Vec<Vec<u32>>,
}

impl Component {
    /// The component's part of `whole`, an assignment of the unreduced network; `None` if it has a state that was pruned.
    pub(super) fn project(&self, whole: &[u32]) -> Option<Vec<u32>> {
        let local = |(&var, states): (&usize, &Vec<u32>)| states.binary_search(&whole[var]).ok().map(|at| at as u32);
        self.vars.iter().zip(&self.states).map(local).collect()
    }
}

/// The components of `network`, by their smallest variable, and the variables that no factor names. Variables for which
/// `gone` holds belong to neither.
pub(super) fn components(network: Network, gone: impl Fn(usize) -> bool) -> (Vec<Component>, Vec<usize>) {
    let (leader, is_alone) = groups(&network);
    let n = network.unary.len();
    let mut components: Vec<Component> = Vec::new();
    let mut alone = Vec::new();
    // The component of each group's leader, and where each variable went: its component and its index there.
    let mut led = vec![None; n];
    let mut place = vec![(usize::MAX, 0); n];
    for var in (0..n).filter(|&var| !gone(var)) {
        if is_alone[var] {
            alone.push(var);
            continue;
        }
        let at = *led[leader[var]].get_or_insert_with(|| {
            components.push(Component { network: Network::default(), vars: Vec::new(), states: Vec::new() });
            components.len() - 1
        });
        let component = &mut components[at];
        place[var] = (at, component.vars.len());
        component.vars.push(var);
        // A variable without a living state keeps its dead ones, and the component is infeasible.
        let mut states: Vec<u32> = network.alive(var).map(|state| state as u32).collect();
        if states.is_empty() {
            states = (0..network.unary[var].len() as u32).collect();
        }
        component.network.unary.push(states.iter().map(|&state| network.unary[var][state as usize]).collect());
        component.states.push(states);
    }
    distribute(network, &place, &mut components);
    (components, alone)
}

/// Moves the factors of `network` to the components of their variables.
fn distribute(network: Network, place: &[(usize, usize)], components: &mut [Component]) {
    let whole: Vec<usize> = network.unary.iter().map(Vec::len).collect();
    for link in network.links {
        let ((at, a), (_, b)) = (place[link.a], place[link.b]);
        let component = &mut components[at];
        let (rows, columns) = (&component.states[a], &component.states[b]);
        let entry = |row: u32, column: u32| link.table[row as usize * whole[link.b] + column as usize];
        let table = rows.iter().flat_map(|&row| columns.iter().map(move |&column| entry(row, column))).collect();
        component.network.links.push(Link { a, b, table });
    }
    for value in network.shared {
        let Some(first) = value.readers.first() else { continue };
        let component = &mut components[place[first.var].0];
        let keep = |states: &Vec<u32>, wants: &[Layouts]| states.iter().map(|&s| wants[s as usize]).collect();
        let reader = |reader: &Reader| {
            let var = place[reader.var].1;
            Reader { var, wants: keep(&component.states[var], &reader.wants) }
        };
        let readers = value.readers.iter().map(reader).collect();
        let producer = value.producer.map(|var| place[var].1);
        let price = match producer {
            Some(var) => component.states[var].iter().map(|&s| value.price[s as usize].clone()).collect(),
            None => value.price,
        };
        component.network.shared.push(Shared { producer, price, readers });
    }
    for component in components {
        charge_certain(&mut component.network);
    }
}

/// States that died late leave readers that always want the same; the solvers are for networks without any.
fn charge_certain(network: &mut Network) {
    let mut shared = std::mem::take(&mut network.shared);
    for value in &mut shared {
        let settled = network.charge_certain(value);
        let Some(reader) = value.readers.first() else { continue };
        network.unary[reader.var].iter_mut().for_each(|weight| *weight += settled);
    }
    network.shared = shared;
}

/// For each variable the one that its group is known by, and whether it has no factor but its own weights.
fn groups(network: &Network) -> (Vec<usize>, Vec<bool>) {
    let n = network.unary.len();
    let (mut sets, mut alone) = (UnionFind::new(n), vec![true; n]);
    let mut join = |a: usize, b: usize| {
        (alone[a], alone[b]) = (false, false);
        sets.union(a, b);
    };
    network.links.iter().for_each(|link| join(link.a, link.b));
    for value in &network.shared {
        let mut vars = value.readers.iter().map(|reader| reader.var).chain(value.producer);
        if let Some(first) = vars.next() {
            vars.for_each(|var| join(first, var));
        }
    }
    (sets.into_labeling(), alone)
}
