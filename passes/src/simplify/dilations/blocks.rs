//! How the axes of a value read those of an image that is cut into blocks: each axis is a list of digits, outermost first, and a digit
//! is an axis of the image, or which block of it, or which place in the block.

use relayout_ir::dim::Dim;
use relayout_ir::form::{Form, View};
use relayout_ir::graph::{Graph, Node, NodeId};
use relayout_ir::op::read::is_depth_first;
use std::collections::VecDeque;

/// What a digit counts of an axis of the image.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Part {
    /// All of it.
    Whole,
    /// Its blocks.
    Block,
    /// The places of a block.
    Place,
}

/// A digit: an axis of the image, and what it counts of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Digit {
    pub(super) axis: usize,
    pub(super) part: Part,
}

/// A value that holds each element of an image once.
#[derive(Clone, Debug)]
pub(super) struct Blocks {
    /// Extents of the image.
    pub(super) image: Vec<Dim>,
    /// Of each axis that is cut: places of a block, and the number of blocks.
    pub(super) cut: Vec<Option<(i64, Dim)>>,
    /// The digits of each axis of the value.
    pub(super) axes: Vec<Vec<Digit>>,
    /// The axis of the image, of one place, that the image itself does not have.
    pub(super) unit: Option<usize>,
}

impl Blocks {
    /// The image itself.
    pub(super) fn whole(image: &[Dim]) -> Blocks {
        let axes = (0..image.len()).map(|axis| vec![Digit { axis, part: Part::Whole }]).collect();
        Blocks { image: image.to_vec(), cut: vec![None; image.len()], axes, unit: None }
    }

    /// A signal, which is an image of one row: the axis of rows comes and goes on the way.
    pub(super) fn of_one_row(signal: &[Dim]) -> Blocks {
        let mut blocks = Blocks::whole(&[signal, &[Dim::ONE]].concat());
        let unit = blocks.axes.pop();
        if let Some(last) = blocks.axes.last_mut() {
            last.extend(unit.into_iter().flatten());
        }
        Blocks { unit: Some(signal.len()), ..blocks }
    }

    /// The result of a node that keeps every element of the value; `None` for other nodes, and where its axes can't be told.
    pub(super) fn after(self, graph: &Graph, n: NodeId) -> Option<Blocks> {
        let node = graph.node(n);
        let to = graph.value(node.result(0)?).ty.shape()?;
        match (&node.form, node.onnx()?) {
            (Form::View(View::Same), "Identity") => Some(self),
            (Form::View(View::Transpose(perm)), _) => self.permuted(perm),
            (Form::View(View::Reshape), _) => self.reshaped(to),
            (_, "SpaceToDepth") => self.blocked(block(node)?, is_depth_first(node), to),
            (_, "DepthToSpace") => self.unblocked(block(node)?, is_depth_first(node)),
            _ => None,
        }
    }

    fn extent(&self, digit: Digit) -> Option<Dim> {
        match (digit.part, &self.cut[digit.axis]) {
            (Part::Whole, _) => self.image.get(digit.axis).cloned(),
            (Part::Block, Some((_, blocks))) => Some(blocks.clone()),
            (Part::Place, Some((places, _))) => Some(Dim::from(*places)),
            _ => None,
        }
    }

    fn permuted(mut self, perm: &[usize]) -> Option<Blocks> {
        self.axes = perm.iter().map(|&axis| self.axes.get(axis).cloned()).collect::<Option<_>>()?;
        Some(self)
    }

    /// The only digit of an axis, which is a whole axis of the image.
    fn whole_axis(&self, axis: usize) -> Option<usize> {
        match self.axes.get(axis)?.as_slice() {
            [Digit { axis, part: Part::Whole }] if self.cut[*axis].is_none() => Some(*axis),
            _ => None,
        }
    }

    fn blocked(mut self, places: i64, depth_first: bool, to: &[Dim]) -> Option<Blocks> {
        let ([h, w], [_, _, rows, columns]) = ([self.whole_axis(2)?, self.whole_axis(3)?], to) else { return None };
        let mut channels = Vec::new();
        for (at, (axis, blocks)) in [(h, rows), (w, columns)].into_iter().enumerate() {
            self.cut[axis] = Some((places, blocks.clone()));
            self.axes[at + 2] = vec![Digit { axis, part: Part::Block }];
            channels.push(Digit { axis, part: Part::Place });
        }
        let at = if depth_first { 0 } else { self.axes[1].len() };
        self.axes[1].splice(at..at, channels);
        Some(self)
    }

    fn unblocked(mut self, places: i64, depth_first: bool) -> Option<Blocks> {
        let channels = self.axes.get_mut(1)?;
        let from = if depth_first { 0 } else { channels.len().checked_sub(2)? };
        if channels.len() < 2 || self.axes.len() != 4 {
            return None;
        }
        let taken: Vec<Digit> = self.axes[1].drain(from..from + 2).collect();
        for (at, digit) in taken.into_iter().enumerate() {
            if self.extent(digit)?.as_const() != Some(places) {
                return None;
            }
            self.axes[at + 2].push(digit);
        }
        Some(self)
    }

    /// The same elements under other extents: axes join, and split into blocks and places where the extents are those of an axis of
    /// the image. Digits of one place may stand anywhere, and stand where there is an axis for them.
    fn reshaped(mut self, to: &[Dim]) -> Option<Blocks> {
        let all: Vec<Digit> = std::mem::take(&mut self.axes).into_iter().flatten().collect();
        let (mut single, mut left): (VecDeque<Digit>, VecDeque<Digit>) =
            all.into_iter().partition(|digit| self.extent(*digit).is_some_and(|extent| extent.is_one()));
        for (at, extent) in to.iter().enumerate() {
            let list = self.taken(&mut left, extent, to.get(at + 1))?;
            self.axes.push(list);
        }
        for (digits, _) in self.axes.iter_mut().zip(to).filter(|(_, extent)| extent.is_one()) {
            digits.extend(single.pop_front());
        }
        self.axes.first_mut()?.extend(single);
        left.is_empty().then_some(self)
    }

    /// The digits of an axis of this extent, in front of one of extent `next`.
    fn taken(&mut self, left: &mut VecDeque<Digit>, extent: &Dim, next: Option<&Dim>) -> Option<Vec<Digit>> {
        let (mut list, mut have) = (Vec::new(), Dim::ONE);
        while have != *extent {
            let digit = left.pop_front()?;
            let own = self.extent(digit)?;
            let cuts = list.is_empty() && digit.part == Part::Whole && self.cut[digit.axis].is_none();
            let places = next.and_then(Dim::as_const).filter(|places| cuts && *places > 1 && own != *extent);
            if let Some(places) = places.filter(|&places| extent.checked_mul(&Dim::from(places)).as_ref() == Some(&own))
            {
                self.cut[digit.axis] = Some((places, extent.clone()));
                left.push_front(Digit { part: Part::Place, ..digit });
                return Some(vec![Digit { part: Part::Block, ..digit }]);
            }
            have = have.checked_mul(&own)?;
            list.push(digit);
        }
        Some(list)
    }

    /// Which axis of the image each axis is, if each is a whole one.
    pub(super) fn joined(&self) -> Option<Vec<usize>> {
        let axis = |digits: &Vec<Digit>| {
            let mut own = digits.iter().filter(|digit| Some(digit.axis) != self.unit);
            match (own.next()?, own.next(), own.next()) {
                (Digit { axis, part: Part::Whole }, None, None) => Some(*axis),
                (Digit { axis, part: Part::Block }, Some(Digit { axis: same, part: Part::Place }), None)
                    if axis == same =>
                {
                    Some(*axis)
                }
                _ => None,
            }
        };
        let mut order: Vec<usize> = self.axes.iter().map(axis).collect::<Option<_>>()?;
        order.extend(self.unit.filter(|&unit| self.image.get(unit).is_some_and(Dim::is_one)));
        (order.len() == self.image.len()).then_some(order)
    }

    /// Which axis of the image each axis is that a convolution reads, if it reads the places of blocks as a batch.
    pub(super) fn batched(&self) -> Option<Vec<usize>> {
        let batch: Vec<usize> = self.axes.first()?.iter().filter(|d| d.part == Part::Whole).map(|d| d.axis).collect();
        let places: Vec<usize> = self.axes[0].iter().filter(|d| d.part == Part::Place).map(|d| d.axis).collect();
        let [batch] = batch.as_slice() else { return None };
        let mut order = vec![*batch, self.whole_axis(1)?];
        for digits in self.axes.get(2..)? {
            match digits.as_slice() {
                [Digit { axis, part: Part::Whole }] => order.push(*axis),
                [Digit { axis, part: Part::Block }] if places.contains(axis) => order.push(*axis),
                _ => return None,
            }
        }
        let cut = self.cut.iter().filter(|cut| cut.is_some()).count();
        let all = self.axes[0].len() == places.len() + 1 && places.len() == cut && order.len() == self.image.len();
        (all && cut > 0).then_some(order)
    }
}

fn block(node: &Node) -> Option<i64> {
    node.int("blocksize").filter(|places| *places > 1)
}
