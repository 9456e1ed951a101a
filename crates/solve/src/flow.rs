//! Minimum cut by push-relabel over adjacency lists: highest label first, global relabelling, gaps.
//!
//! The two terminals are no nodes: each node carries the surplus of what it may take from the source over what it may give to
//! the sink, so a problem with a unary cost on every variable has no arcs for them. A surplus moves along residual arcs that
//! lead one label down, labels being lower bounds of the distance to the sink, and cancels out against the deficit where it
//! arrives. What cannot reach the sink is left where it is: the cut needs the preflow only, so no flow is sent back. Taking the
//! highest label first joins surpluses on their way; augmenting paths would send the tie-break's one unit for each variable
//! of a long chain by itself, which is quadratic.
//!
//! Of the minimum cuts the one with the fewest nodes on the sink's side is returned.
//!
//! Capacities are at most twice [`Weight::INFINITE`], and a flow of that or more means that every cut is forbidden. Surpluses
//! saturate, which is harmless: one that large is more than all finite capacities together can carry away.

use super::weight::Weight;

/// An arc and its capacity left; the arc back is at `twin`.
#[derive(Clone, Copy, Debug)]
struct Arc {
    to: u32,
    twin: u32,
    left: i128,
}

/// A graph under construction.
#[derive(Debug, Default)]
pub(super) struct FlowGraph {
    /// Positive: capacity from the source; negative: capacity to the sink.
    surplus: Vec<i128>,
    arcs: Vec<(u32, u32, i128, i128)>,
}

/// A minimum cut.
#[derive(Debug)]
pub(super) struct Cut {
    /// Its capacity, which is that of the maximum flow.
    pub(super) flow: Weight,
    /// For each node whether it lies on the sink's side.
    pub(super) sink_side: Vec<bool>,
}

const FAR: u32 = u32::MAX;

impl FlowGraph {
    pub(super) fn add_node(&mut self) -> usize {
        self.surplus.push(0);
        self.surplus.len() - 1
    }

    /// Changes by `amount` what is paid if `node` lies on the sink's side, relative to the source's side.
    pub(super) fn add_surplus(&mut self, node: usize, amount: i128) {
        self.surplus[node] += amount;
    }

    /// What [`FlowGraph::add_surplus`] has come to, for each node.
    pub(super) fn surplus(&self) -> &[i128] {
        &self.surplus
    }

    /// An arc of `capacity`, paid if `from` is on the source's side and `to` on the sink's, and one of `back` the other way.
    pub(super) fn add_arc(&mut self, from: usize, to: usize, capacity: i128, back: i128) {
        if from != to && (capacity > 0 || back > 0) {
            self.arcs.push((from as u32, to as u32, capacity, back));
        }
    }

    pub(super) fn minimum_cut(self) -> Cut {
        PushRelabel::new(self).run()
    }
}

/// The residual graph, arcs grouped by their tail, with the nodes that have a surplus in a list for each label.
struct PushRelabel {
    surplus: Vec<i128>,
    /// Where the arcs of each node begin; one entry more than nodes.
    first: Vec<u32>,
    arcs: Vec<Arc>,
    /// Lower bound of the distance to a node with a deficit; `FAR` if there is no way.
    label: Vec<u32>,
    /// How many nodes have each label.
    count: Vec<u32>,
    /// The next arc of each node to try.
    current: Vec<u32>,
    /// The first node with a surplus for each label, and the one after each node; `FAR` ends a list.
    head: Vec<u32>,
    next: Vec<u32>,
    highest: usize,
    flow: i128,
    /// Arcs looked at since the labels were last exact.
    work: usize,
}

impl PushRelabel {
    fn new(graph: FlowGraph) -> Self {
        let n = graph.surplus.len();
        let mut first = vec![0_u32; n + 1];
        for &(from, to, ..) in &graph.arcs {
            first[from as usize + 1] += 1;
            first[to as usize + 1] += 1;
        }
        for node in 0..n {
            first[node + 1] += first[node];
        }
        let mut next = first.clone();
        let mut arcs = vec![Arc { to: 0, twin: 0, left: 0 }; graph.arcs.len() * 2];
        for (from, to, capacity, back) in graph.arcs {
            let (there, home) = (next[from as usize], next[to as usize]);
            next[from as usize] += 1;
            next[to as usize] += 1;
            arcs[there as usize] = Arc { to, twin: home, left: capacity };
            arcs[home as usize] = Arc { to: from, twin: there, left: back };
        }
        let (label, current, head, count) = (vec![FAR; n], vec![0; n], vec![FAR; n + 1], vec![0; n + 1]);
        next.truncate(n);
        let surplus = graph.surplus;
        Self { surplus, first, arcs, label, count, current, head, next, highest: 0, flow: 0, work: 0 }
    }

    fn run(mut self) -> Cut {
        self.relabel_all();
        let patience = 2 * (self.label.len() + self.arcs.len());
        while let Some(node) = self.take_highest() {
            self.discharge(node);
            if self.work > patience {
                self.relabel_all();
            }
        }
        self.relabel_all();
        let sink_side = self.label.iter().map(|&label| label != FAR).collect();
        Cut { flow: Weight::from_raw(self.flow), sink_side }
    }

    /// Makes every label the distance itself, by breadth-first search from the deficits, and lists the surpluses anew.
    fn relabel_all(&mut self) {
        let n = self.label.len();
        self.work = 0;
        self.label.fill(FAR);
        self.count.fill(0);
        self.head.fill(FAR);
        self.highest = 0;
        self.current.copy_from_slice(&self.first[..n]);
        let mut queue: Vec<u32> = (0..n as u32).filter(|&node| self.surplus[node as usize] < 0).collect();
        for &node in &queue {
            self.label[node as usize] = 0;
        }
        let mut done = 0;
        while let Some(&node) = queue.get(done) {
            done += 1;
            let label = self.label[node as usize];
            self.count[label as usize] += 1;
            for at in self.first[node as usize]..self.first[node as usize + 1] {
                let Arc { to, twin, .. } = self.arcs[at as usize];
                if self.label[to as usize] == FAR && self.arcs[twin as usize].left > 0 {
                    self.label[to as usize] = label + 1;
                    queue.push(to);
                }
            }
        }
        for node in queue {
            if self.surplus[node as usize] > 0 {
                self.list(node);
            }
        }
    }

    fn list(&mut self, node: u32) {
        let label = self.label[node as usize] as usize;
        self.next[node as usize] = self.head[label];
        self.head[label] = node;
        self.highest = self.highest.max(label);
    }

    fn take_highest(&mut self) -> Option<u32> {
        loop {
            let node = *self.head.get(self.highest)?;
            if node != FAR {
                self.head[self.highest] = self.next[node as usize];
                return Some(node);
            }
            self.highest = self.highest.checked_sub(1)?;
        }
    }

    /// Moves the surplus of `node` on until none is left or the sink turns out to be out of reach.
    fn discharge(&mut self, node: u32) {
        let node = node as usize;
        while self.surplus[node] > 0 && self.label[node] != FAR {
            let at = self.current[node];
            if at == self.first[node + 1] {
                self.relabel(node);
                continue;
            }
            let Arc { to, twin, left } = self.arcs[at as usize];
            self.work += 1;
            let below = self.label[to as usize];
            if left <= 0 || below == FAR || below + 1 != self.label[node] {
                self.current[node] += 1;
                continue;
            }
            let amount = left.min(self.surplus[node]);
            self.arcs[at as usize].left -= amount;
            self.arcs[twin as usize].left += amount;
            self.surplus[node] -= amount;
            self.receive(to, amount);
        }
    }

    fn receive(&mut self, node: u32, amount: i128) {
        let before = self.surplus[node as usize];
        let after = before.saturating_add(amount);
        self.surplus[node as usize] = after;
        if before <= 0 {
            self.flow = self.flow.saturating_add(amount.min(-before));
            if after > 0 {
                self.list(node);
            }
        }
    }

    /// Raises `node` above its lowest residual neighbour. If it was the last of its label nothing links it to the sink.
    fn relabel(&mut self, node: usize) {
        let arcs = self.first[node]..self.first[node + 1];
        self.work += arcs.len();
        let old = self.label[node] as usize;
        self.count[old] -= 1;
        let lowest = arcs
            .map(|at| self.arcs[at as usize])
            .filter(|arc| arc.left > 0)
            .map(|arc| self.label[arc.to as usize])
            .min()
            .filter(|&lowest| self.count[old] > 0 && (lowest as usize) + 1 < self.label.len());
        self.label[node] = lowest.map_or(FAR, |lowest| lowest + 1);
        if let Some(lowest) = lowest {
            self.count[lowest as usize + 1] += 1;
            self.current[node] = self.first[node];
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{FlowGraph, Weight};

    fn cut(surplus: &[i128], arcs: &[(usize, usize, i128)]) -> (i128, Vec<bool>) {
        let mut graph = FlowGraph::default();
        for &amount in surplus {
            let node = graph.add_node();
            graph.add_surplus(node, amount);
        }
        for &(from, to, capacity) in arcs {
            graph.add_arc(from, to, capacity, 0);
        }
        let cut = graph.minimum_cut();
        (cut.flow.raw(), cut.sink_side)
    }

    #[test]
    fn the_cut_is_the_bottleneck_and_its_sink_side_is_smallest() {
        assert_eq!(cut(&[9, 0, -9], &[(0, 1, 4), (1, 2, 4)]), (4, vec![false, false, true]));
        assert_eq!(cut(&[9, 0, -9], &[(0, 1, 3), (1, 2, 4)]), (3, vec![false, true, true]));
    }

    #[test]
    fn flow_may_go_back_over_an_arc_it_used() {
        let arcs = [(0, 2, 1), (0, 3, 1), (1, 2, 1), (2, 3, 1), (2, 4, 1), (3, 5, 1)];
        assert_eq!(cut(&[2, 1, 0, 0, -1, -1], &arcs).0, 2);
    }

    #[test]
    fn a_forbidden_cut_has_infinite_flow() {
        let huge = Weight::INFINITE.raw();
        assert_eq!(cut(&[huge, -huge], &[(0, 1, huge)]).0, huge);
    }
}
