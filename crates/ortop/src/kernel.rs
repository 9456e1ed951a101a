//! A node made ready, and its runs.

use std::cell::Cell;
use std::sync::{Arc, Mutex, PoisonError};

use crate::api::{Api, Node, Run};
use crate::contract::{Move, Planned};
use crate::error::Refusal;

/// Shapes that a node keeps plans for. Few nodes meet more in a while, and a plan is soon made.
const KEPT: usize = 16;

/// A node made ready.
pub(crate) struct NodeKernel {
    pub(crate) api: Api,
    /// As the file has it.
    pub(crate) name: String,
    movement: Move,
    plans: Plans,
}

impl NodeKernel {
    pub(crate) fn new(api: Api, node: &Node<'_>, name: String) -> Result<Self, Refusal> {
        let movement = Move::new(node.attributes()?)?;
        let made = Self { api, name, movement, plans: Plans::default() };
        // A shape that is known by now is planned now, and what does not fit is refused before anything runs.
        let (element, dims) = node.input()?;
        let dims: Option<Vec<usize>> = dims.iter().map(|&dim| usize::try_from(dim).ok()).collect();
        if let Some(dims) = dims.filter(|dims| !dims.is_empty()) {
            made.plans.get(&made.movement, &dims, element.bytes)?;
        }
        Ok(made)
    }

    pub(crate) fn run(&self, run: &Run<'_>) -> Result<(), Refusal> {
        let input = run.input()?;
        let planned = self.plans.get(&self.movement, &input.dims, input.element.bytes)?;
        let Planned { kernel, dims } = &*planned;
        let failed = Cell::new(None);
        let share = |calls: usize, work: &(dyn Fn() + Sync)| {
            if let Err(refusal) = run.share(calls, work) {
                failed.set(Some(refusal));
            }
        };
        run.with_buffers(&input, dims, |src, dst| kernel.run_shared_uninit(src, dst, &share))??;
        failed.take().map_or(Ok(()), Err)
    }
}

/// What a plan was made for: dims of the input, bytes of an element.
type Key = (Vec<usize>, usize);

/// Plans of the shapes met last, the newest first.
#[derive(Default)]
struct Plans(Mutex<Vec<(Key, Arc<Planned>)>>);

impl Plans {
    fn get(&self, movement: &Move, dims: &[usize], elem_bytes: usize) -> Result<Arc<Planned>, Refusal> {
        let find = |plans: &mut Vec<(Key, Arc<Planned>)>| {
            let at = plans.iter().position(|((shape, bytes), _)| shape == dims && *bytes == elem_bytes)?;
            plans[..=at].rotate_right(1);
            plans.first().map(|(_, planned)| Arc::clone(planned))
        };
        // No panic leaves the list half changed.
        let lock = || self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(planned) = find(&mut lock()) {
            return Ok(planned);
        }
        // Not under the lock: other runs go on meanwhile.
        let planned = Arc::new(movement.plan(dims, elem_bytes)?);
        let mut plans = lock();
        plans.truncate(KEPT - 1);
        plans.insert(0, ((dims.to_vec(), elem_bytes), Arc::clone(&planned)));
        Ok(planned)
    }
}

#[cfg(test)]
mod tests {
    use super::{KEPT, Plans};
    use crate::contract::{Attributes, Move};
    use std::sync::Arc;

    #[test]
    fn the_shapes_met_last_are_not_planned_again() {
        let movement = Move::new(Attributes { perm: Some(vec![1, 0]), ..Attributes::default() }).expect("one");
        let plans = Plans::default();
        let get = |rows: usize| plans.get(&movement, &[rows, 3], 4).expect("it fits");
        let (first, second) = (get(1), get(2));
        assert_eq!(first.dims, [3, 1]);
        for rows in 3..=KEPT {
            get(rows);
            assert!(Arc::ptr_eq(&get(1), &first));
        }
        get(KEPT + 1);
        assert!(Arc::ptr_eq(&get(1), &first));
        assert!(!Arc::ptr_eq(&get(2), &second));
        assert_eq!(plans.0.lock().expect("no panic").len(), KEPT);
        assert!(!Arc::ptr_eq(&plans.get(&movement, &[1, 3], 8).expect("it fits"), &first), "elements of another size");
    }
}
