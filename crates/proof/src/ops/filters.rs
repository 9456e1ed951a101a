//! Filters by themselves: where a convolution makes filters that the input makes too, in another order, or of channels that lie elsewhere.
//!
//! A filter is a sum of products over the channels that it reads. Sums have no order, and weights of zero take nothing, so a filter is
//! the set of its channels with their weights, its bias, and how its windows go. Two filters that are the same set are the same. A
//! convolution of the result whose filters the input makes is those, each in its place, and zeros for filters of zeros.
//!
//! A convolution over volumes makes one such filter for each window along an axis, of the slices that the window holds.

use super::window::Windows;
use crate::lanes::{Lane, Place, lanes, places};
use crate::model::width;
use crate::slots::{Fill, filled, joined};
use crate::term::Terms;
use crate::value::{Source, Value};
use crate::view::{Digit, View};
use crate::{routed, view};
use rustc_hash::FxHashMap;
use std::rc::Rc;

/// A convolution: [N, C, spatial] with constant weights [M, C / group, window].
#[derive(Clone, Debug)]
pub(super) struct Convolution {
    pub(super) x: Value,
    pub(super) w: Value,
    pub(super) bias: Option<Value>,
    pub(super) group: i64,
    pub(super) windows: Windows,
}

/// What a filter is, as a digest.
type Sum = [u64; 2];

/// How the windows of a convolution go, whether each image counts by itself, and the spatial axis whose windows do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Way {
    images: bool,
    axis: Option<usize>,
}

/// Convolutions of the input, and which filters they make.
#[derive(Debug, Default)]
pub(crate) struct Filters {
    made: Vec<Rc<(Convolution, Value)>>,
    /// What was looked through.
    seen: FxHashMap<(usize, Way), ()>,
    /// Numbers of lanes.
    numbers: FxHashMap<Lane, u32>,
    /// The lane of the result that is the filter.
    known: FxHashMap<Sum, Lane>,
}

/// Filters of one convolution: `None` for one that is zero.
struct Sums {
    list: Vec<Option<Sum>>,
    images: i64,
}

/// Notes a convolution of the input.
pub(super) fn note(terms: &mut Terms, convolution: &Convolution, y: &Value) {
    if convolution.is_known() {
        terms.filters.made.push(Rc::new((convolution.clone(), y.clone())));
    }
}

/// A convolution of the result whose filters the input makes.
pub(super) fn found(terms: &mut Terms, mine: &Convolution) -> Option<Value> {
    if !mine.is_known() {
        return None;
    }
    [false, true].into_iter().find_map(|images| {
        let sums = mine.sums(terms, Way { images, axis: None })?;
        let candidates: Vec<_> = terms.filters.made.iter().cloned().enumerate().collect();
        for (number, made) in candidates {
            for axis in mine.ways(&made.0) {
                look_through(terms, number, &made, Way { images, axis });
            }
        }
        let all: Option<Vec<Option<Lane>>> = sums
            .list
            .iter()
            .map(|sum| sum.map_or(Some(None), |sum| terms.filters.known.get(&sum).cloned().map(Some)))
            .collect();
        put_together(terms, mine, &all?, sums.images, images)
    })
}

/// Notes each filter of a convolution of the input.
fn look_through(terms: &mut Terms, number: usize, made: &(Convolution, Value), way: Way) {
    if terms.filters.seen.insert((number, way), ()).is_some() {
        return;
    }
    let (convolution, y) = made;
    let mut axes = if way.images { vec![0] } else { Vec::new() };
    axes.extend(way.axis.map(|axis| axis + 2));
    axes.push(1);
    let (Some(sums), Some(lanes)) = (convolution.sums(terms, way), lanes(terms, y, &axes)) else { return };
    if sums.list.len() != lanes.len() {
        return;
    }
    for (sum, lane) in sums.list.into_iter().zip(lanes) {
        if let Some(sum) = sum {
            terms.filters.known.entry(sum).or_insert(lane);
        }
    }
}

impl Convolution {
    fn is_known(&self) -> bool {
        let floats = self.x.dtype == 1 && self.w.dtype == 1 && self.bias.as_ref().is_none_or(|bias| bias.dtype == 1);
        floats && !self.x.is_constant() && self.w.is_constant() && self.bias.as_ref().is_none_or(Value::is_constant)
    }

    /// The axes of another convolution without whose windows it goes as this one does; none of them if it does with all.
    fn ways(&self, other: &Convolution) -> Vec<Option<usize>> {
        let (mine, theirs) = (&self.windows, &other.windows);
        if mine == theirs {
            return vec![None];
        }
        let without = |&axis: &usize| {
            let mut less = theirs.clone();
            less.without_axis(axis);
            less == *mine
        };
        let more = theirs.kernel.len() == mine.kernel.len() + 1;
        (0..theirs.kernel.len()).filter(|_| more).filter(without).map(Some).collect()
    }

    /// The filters in the order of images, windows along the axis, and filters.
    fn sums(&self, terms: &mut Terms, way: Way) -> Option<Sums> {
        let mut order: Vec<usize> = (0..self.w.rank()).collect();
        let mut axes = if way.images { vec![0] } else { Vec::new() };
        let mut windows = self.windows.clone();
        let (mut frames, mut steps) = (1, Steps::ONE);
        if let Some(axis) = way.axis {
            order.remove(axis + 2);
            order.insert(2, axis + 2);
            axes.push(axis + 2);
            frames = self.x.shape()[axis + 2];
            steps = Steps::of(&windows, axis, frames)?;
            windows.without_axis(axis);
        }
        axes.push(1);
        let found = places(terms, &self.x, &axes)?;
        let numbers = numbered(terms, found);
        let images = if way.images { self.x.shape()[0] } else { 1 };
        let mut tag = windows.encoded();
        tag.extend(format!(" {:?} {}", windows.kernel, way.images).into_bytes());
        let rest = (0..self.x.rank()).filter(|axis| !axes.contains(axis)).map(|axis| view::extent(&self.x.view[axis]));
        rest.for_each(|extent| tag.extend(extent.to_le_bytes()));
        let weights = self.w.permuted(&order)?.elements()?;
        let (m, per) = (self.w.shape()[0], self.w.shape()[1]);
        let size = usize::try_from(windows.kernel.iter().product::<i64>()).ok()? * width(self.w.dtype)?;
        let biases = self.bias.as_ref().map(Value::elements);
        let biases = match biases {
            Some(list) => list?,
            None => vec![0; usize::try_from(m).ok()? * 4].into(),
        };
        let source = Reading { tag, numbers, weights, biases, size, per, frames, channels: self.x.shape()[1] };
        let mut list = Vec::new();
        for image in 0..images {
            for window in 0..steps.count {
                for filter in 0..m {
                    let first = filter / (m / self.group) * per;
                    list.push(source.sum(terms, &steps, (image, window, filter, first))?);
                }
            }
        }
        Some(Sums { list, images })
    }
}

/// Windows along one axis.
struct Steps {
    count: i64,
    kernel: i64,
    stride: i64,
    dilation: i64,
    before: i64,
}

impl Steps {
    const ONE: Steps = Steps { count: 1, kernel: 1, stride: 1, dilation: 1, before: 0 };

    fn of(windows: &Windows, axis: usize, extent: i64) -> Option<Steps> {
        let room = extent + windows.padding(axis) - windows.reach(axis);
        let (kernel, stride, dilation) = (windows.kernel[axis], windows.strides[axis], windows.dilations[axis]);
        (room >= 0 && !windows.ceil).then(|| Steps {
            count: room / stride + 1,
            kernel,
            stride,
            dilation,
            before: windows.pads[axis],
        })
    }
}

/// What the filters of a convolution read. `numbers` are by image, frame and channel.
struct Reading {
    tag: Vec<u8>,
    numbers: Vec<Number>,
    weights: bytes::Bytes,
    biases: bytes::Bytes,
    /// Bytes of the weights of one channel.
    size: usize,
    per: i64,
    frames: i64,
    channels: i64,
}

/// A lane by its number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Number {
    Zero,
    Unknown,
    Lane(u32),
}

fn numbered(terms: &mut Terms, places: Vec<Place>) -> Vec<Number> {
    let number = |place| match place {
        Place::Zero => Number::Zero,
        Place::Unknown => Number::Unknown,
        Place::Lane(lane) => {
            let next = terms.filters.numbers.len() as u32;
            Number::Lane(*terms.filters.numbers.entry(lane).or_insert(next))
        }
    };
    places.into_iter().map(number).collect()
}

impl Reading {
    /// The sum of one filter; `Some(None)` if it is zero, `None` if it reads what nobody knows.
    fn sum(
        &self,
        terms: &Terms,
        steps: &Steps,
        (image, window, filter, first): (i64, i64, i64, i64),
    ) -> Option<Option<Sum>> {
        let mut read: Vec<(u32, &[u8])> = Vec::new();
        for step in 0..steps.kernel {
            let frame = window * steps.stride + step * steps.dilation - steps.before;
            if !(0..self.frames).contains(&frame) {
                continue;
            }
            for channel in 0..self.per {
                let at = ((filter * self.per + channel) * steps.kernel + step) as usize * self.size;
                let weights = self.weights.get(at..at + self.size)?;
                let place = (image * self.frames + frame) * self.channels + first + channel;
                match self.numbers.get(usize::try_from(place).ok()?)? {
                    _ if weights.iter().all(|b| *b == 0) => {}
                    Number::Zero => {}
                    Number::Unknown => return None,
                    Number::Lane(number) => read.push((*number, weights)),
                }
            }
        }
        read.sort_unstable();
        let bias = self.biases.get(filter as usize * 4..filter as usize * 4 + 4)?;
        if read.is_empty() && bias.iter().all(|b| *b == 0) {
            return Some(None);
        }
        let mut bytes = self.tag.clone();
        bytes.extend(bias);
        for (number, weights) in read {
            bytes.extend(number.to_le_bytes());
            bytes.extend(weights);
        }
        Some(Some(terms.digested(&bytes)))
    }
}

/// The convolution from lanes of what the input makes, by image and filter.
fn put_together(
    terms: &mut Terms,
    mine: &Convolution,
    all: &[Option<Lane>],
    images: i64,
    apart: bool,
) -> Option<Value> {
    let filters = mine.w.shape()[0];
    let zero = |filter: i64| (0..images).all(|image| all[(image * filters + filter) as usize].is_none());
    let real: Vec<i64> = (0..filters).filter(|filter| !zero(*filter)).collect();
    let kept = (0..images).flat_map(|image| real.iter().map(move |filter| (image * filters + filter) as usize));
    let list: Vec<&Lane> = kept.map(|at| all[at].as_ref()).collect::<Option<_>>()?;
    let first = *list.first()?;
    if list.iter().any(|lane| lane.term != first.term || lane.rest != first.rest) {
        return None;
    }
    let y = match digits(terms, &list) {
        Some(digits) => {
            let mut view: View = vec![digits];
            let (images_view, spatial) = if apart { (Vec::new(), 0) } else { (first.rest.first()?.clone(), 1) };
            view.extend(first.rest[spatial..].iter().cloned());
            let mut shape = view::shape(&view);
            let whole = value(terms, first.term, view);
            shape.splice(..1, [images, real.len() as i64]);
            let mut y = whole.reshaped(&shape)?;
            if !apart {
                y.view[0] = images_view;
            }
            y
        }
        None if apart => return None,
        None => in_order(terms, first, &list)?,
    };
    let runs = joined(real.iter().map(|filter| (*filter, 1)));
    filled(terms, &y, 1, &runs, filters, Fill::Zero)
}

fn value(terms: &Terms, term: u32, view: View) -> Value {
    Value { source: Source::Term(term), view, dtype: terms.get(term).dtype }
}

/// Lanes that are all places of some axes, as digits of these.
fn digits(terms: &Terms, list: &[&Lane]) -> Option<Vec<Digit>> {
    let mut at: Vec<&[i64]> = list.iter().map(|lane| lane.at.as_slice()).collect();
    let mut found = Vec::new();
    while at.len() > 1 {
        let step: Vec<i64> = at[1].iter().zip(at[0]).map(|(b, a)| b - a).collect();
        let mut axes = (0..step.len()).filter(|&axis| step[axis] != 0);
        let (Some(axis), None) = (axes.next(), axes.next()) else { return None };
        let next = |pair: &[&[i64]]| pair[1].iter().zip(pair[0]).map(|(b, a)| b - a).eq(step.iter().copied());
        let run = 1 + at.windows(2).take_while(|pair| next(pair)).count();
        let rows = at.chunks(run).all(|row| row.len() == run && row.windows(2).all(next));
        if !rows || step[axis] < 1 {
            return None;
        }
        found.push(Digit { axis: axis as u32, extent: run as i64, stride: step[axis] });
        at = at.iter().step_by(run).copied().collect();
    }
    found.reverse();
    let found = view::normal(found);
    let base = &terms.get(list[0].term).base;
    let whole = |axis: usize| {
        let own = found.iter().filter(|digit| digit.axis as usize == axis);
        let count: i64 = own.map(|digit| digit.extent).product();
        count == base[axis] || (count == 1 && is_read(&list[0].rest, axis))
    };
    (list[0].at.iter().all(|at| *at == 0) && (0..base.len()).all(whole)).then_some(found)
}

fn is_read(view: &View, axis: usize) -> bool {
    view.iter().flatten().any(|digit| digit.axis as usize == axis)
}

/// Lanes of one axis in another order.
fn in_order(terms: &mut Terms, first: &Lane, list: &[&Lane]) -> Option<Value> {
    let base = terms.get(first.term).base.clone();
    let mut moving = (0..base.len()).filter(|&axis| list.iter().any(|lane| lane.at[axis] != 0));
    let (Some(axis), None) = (moving.next(), moving.next()) else { return None };
    if !(0..base.len()).all(|other| other == axis || is_read(&first.rest, other)) {
        return None;
    }
    let mut view: View = vec![vec![Digit { axis: axis as u32, extent: base[axis], stride: 1 }]];
    view.splice(..0, [first.rest.first()?.clone()]);
    view.extend(first.rest[1..].iter().cloned());
    let whole = value(terms, first.term, view);
    let told: Vec<i64> = list.iter().map(|lane| lane.at[axis]).collect();
    routed::reordered(terms, &whole, 1, &told)
}
