//! Filters by themselves: where a convolution makes filters that the input makes too, in another order, or of channels that lie elsewhere.
//!
//! A filter is a sum of products over the channels that it reads. Sums have no order, and weights of zero take nothing, so a filter is
//! the set of its channels with their weights, its bias, and how its windows go. Two filters that are the same set are the same. A
//! convolution of the result whose filters the input makes is those, each in its place, and zeros for filters of zeros.
//!
//! A convolution over volumes makes one such filter for each window along an axis, of the slices that the window holds.

use super::brought::of_one;
use crate::files::model::width;
use crate::lemmas::halves::{FLOAT, HALF};
use crate::terms::arg::is_finite;
use crate::terms::filters::{Number, Reading, Steps, Sum, Way, is_zero};
use crate::terms::lane::Lane;
use crate::terms::lanes::{Place, lanes, places, roots};
use crate::terms::slots::{Fill, filled, joined};
use crate::terms::state::Terms;
use crate::terms::value::{Source, Value};
use crate::terms::view::{Digit, View};
use crate::terms::windows::{Convolution, Windows};
use crate::terms::{routed, view};
use bytes::Bytes;
use rustc_hash::FxHashSet;
use std::hash::{BuildHasher, Hash, Hasher};
use std::rc::Rc;

/// Most channels of filters that are looked at, each with its weights.
const MOST: i64 = 1 << 28;

/// Most channels and filters of single images that are looked at in one check: a recurrent network that is written out has as many
/// products as steps.
const MOST_OF_IMAGES: i64 = 1 << 20;

/// Lanes of a filter that are looked at first. Which ones is drawn when the check starts.
const SAMPLES: usize = 16;

/// A filter that makes zeros, or the set that it is.
#[derive(Debug)]
enum Filter {
    Zero,
    Sum(Sum),
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
    let candidates = candidates(terms, mine);
    [false, true].into_iter().filter(|_| !candidates.is_empty()).find_map(|images| {
        let reading = mine.reading(terms, Way { images, axis: None })?;
        if !look_through(terms, &candidates, &reading, images) {
            return None;
        }
        let known = |filter: Filter| match filter {
            Filter::Zero => Some(None),
            Filter::Sum(sum) => terms.filters.known.get(&sum).cloned().map(Some),
        };
        let all: Option<Vec<Option<Lane>>> = mine.sums(terms, &reading)?.into_iter().map(known).collect();
        put_together(terms, mine, &all?, reading.images, images)
    })
}

/// Convolutions of the input that go as this one does, without the windows along an axis, and whose channels may be its.
fn candidates(terms: &mut Terms, mine: &Convolution) -> Vec<(usize, Option<usize>)> {
    for number in terms.filters.roots.len()..terms.filters.made.len() {
        let roots = roots(terms, &terms.filters.made[number].0.x);
        terms.filters.roots.push(roots);
    }
    let own = roots(terms, &mine.x);
    let made = terms.filters.made.iter().zip(&terms.filters.roots).enumerate();
    let shares = made.filter(|(_, (_, roots))| !roots.is_disjoint(&own));
    shares.flat_map(|(number, (made, _))| mine.ways(&made.0).into_iter().map(move |axis| (number, axis))).collect()
}

/// Notes the filters of those candidates that read a lane that this reads. Whether there are any.
fn look_through(terms: &mut Terms, candidates: &[(usize, Option<usize>)], reading: &Reading, images: bool) -> bool {
    let own: FxHashSet<u32> = reading.lanes().collect();
    let mut any = false;
    for &(number, axis) in candidates {
        let made = Rc::clone(&terms.filters.made[number]);
        let way = Way { images, axis };
        let read = match terms.filters.read.get(&(number, way)) {
            Some(read) => read.clone(),
            None => made.0.reading(terms, way).map(Rc::new),
        };
        terms.filters.read.insert((number, way), read.clone());
        let Some(read) = read.filter(|read| read.lanes().any(|lane| own.contains(&lane))) else { continue };
        any = true;
        if terms.filters.seen.insert((number, way)) {
            look_at(terms, &made, &read, way);
        }
    }
    any
}

/// Notes each filter of a convolution of the input.
fn look_at(terms: &mut Terms, (convolution, y): &(Convolution, Value), reading: &Reading, way: Way) {
    let (Some(sums), Some(lanes)) = (convolution.sums(terms, reading), lanes(terms, y, &way.axes())) else { return };
    if sums.len() != lanes.len() {
        return;
    }
    for (sum, lane) in sums.into_iter().zip(lanes) {
        if let Filter::Sum(sum) = sum {
            terms.filters.known.entry(sum).or_insert(lane);
        }
    }
}

impl Way {
    /// The axes whose places count one by one: images, the spatial axis, and channels.
    fn axes(self) -> Vec<usize> {
        let images = self.images.then_some(0);
        images.into_iter().chain(self.axis.map(|axis| axis + 2)).chain([1]).collect()
    }
}

impl Convolution {
    fn is_known(&self) -> bool {
        let dtype = self.x.dtype;
        let alike = self.w.dtype == dtype && self.bias.as_ref().is_none_or(|bias| bias.dtype == dtype);
        let floats = alike && matches!(dtype, FLOAT | HALF);
        floats && !self.x.is_constant() && self.w.is_constant() && self.bias.as_ref().is_none_or(Value::is_constant)
    }

    /// The axes of another convolution without whose windows it goes as this one does, over as many places; none of them if it does
    /// with all.
    fn ways(&self, other: &Convolution) -> Vec<Option<usize>> {
        let (mine, theirs) = (&self.windows, &other.windows);
        let (own, extents) = (&self.x.shape()[2..], &other.x.shape()[2..]);
        if mine == theirs {
            return if own == extents { vec![None] } else { Vec::new() };
        }
        let without = |&axis: &usize| {
            let mut less = theirs.clone();
            less.without_axis(axis);
            let others = (0..extents.len()).filter(|&other| other != axis).map(|other| extents[other]);
            less == *mine && others.eq(own.iter().copied())
        };
        let more = theirs.kernel.len() == mine.kernel.len() + 1;
        (0..theirs.kernel.len()).filter(|_| more).filter(without).map(Some).collect()
    }

    /// What it reads.
    fn reading(&self, terms: &mut Terms, way: Way) -> Option<Reading> {
        let mut windows = self.windows.clone();
        let (shape, axes) = (self.x.shape(), way.axes());
        let (mut frames, mut steps) = (1, Steps::ONE);
        if let Some(axis) = way.axis {
            frames = shape[axis + 2];
            steps = Steps::recognize(&windows, axis, frames)?;
            windows.without_axis(axis);
        }
        if way.images {
            let of_images =
                shape[0].checked_mul(self.w.shape()[0].max(shape[1]))?.checked_add(terms.filters.of_images)?;
            terms.filters.of_images = Some(of_images).filter(|of_images| *of_images <= MOST_OF_IMAGES)?;
        }
        let numbers = numbered(terms, places(terms, &self.x, &axes)?);
        let mut tag = windows.encoded();
        tag.extend(format!(" {:?} {} {}", windows.kernel, way.images, self.x.dtype).into_bytes());
        let rest = (0..shape.len()).filter(|axis| !axes.contains(axis)).map(|axis| shape[axis]);
        rest.for_each(|extent| tag.extend(extent.to_le_bytes()));
        let images = if way.images { shape[0] } else { 1 };
        Some(Reading { tag: tag.into(), numbers, steps, axis: way.axis, images, frames, channels: shape[1] })
    }

    /// The filters in the order of images, windows along the axis, and filters.
    fn sums(&self, terms: &Terms, reading: &Reading) -> Option<Vec<Filter>> {
        let mut order: Vec<usize> = (0..self.w.rank()).collect();
        if let Some(axis) = reading.axis {
            order.remove(axis + 2);
            order.insert(2, axis + 2);
        }
        let (m, per) = (self.w.shape()[0], self.w.shape()[1]);
        let of_bias = width(self.w.dtype)?;
        let biases = match &self.bias {
            Some(bias) => bias.elements()?,
            None => vec![0; usize::try_from(m).ok()? * of_bias].into(),
        };
        let all = [reading.images, reading.steps.count, m, per, reading.steps.kernel];
        all.iter().try_fold(1_i64, |all, count| all.checked_mul(*count)).filter(|all| *all <= MOST)?;
        let weights = self.w.permuted(&order)?.elements()?;
        // Zeros take nothing from weights that are finite.
        if !is_finite(&self.w) {
            return None;
        }
        let cells = usize::try_from(m * per * reading.steps.kernel).ok()?;
        let samples = std::array::from_fn(|sample| terms.filters.drawn.hash_one(sample) as usize);
        let size = weights.len().checked_div(cells).filter(|size| *size > 0)?;
        let bytes = size * cells / usize::try_from(m).ok()?;
        let whole = |filter: &[u8]| filter.chunks_exact(size).all(|cell| !is_zero(cell));
        let whole = weights.chunks_exact(bytes).map(whole).collect();
        let numbers = Numbers { weights, biases, of_bias, size, bytes, whole, per, samples };
        let own = usize::try_from(m / self.group).ok()?;
        let (mut list, mut scratch) = (Vec::new(), Vec::new());
        for image in 0..reading.images {
            for window in 0..reading.steps.count {
                for group in 0..self.group {
                    let cells = reading.cells(&numbers, [image, window, group * per])?;
                    for filter in group as usize * own..(group as usize + 1) * own {
                        list.push(reading.sum(terms, (&numbers, &mut scratch), &cells, filter)?);
                    }
                }
            }
        }
        Some(list)
    }
}

impl Steps {
    const ONE: Steps = Steps { count: 1, kernel: 1, stride: 1, dilation: 1, before: 0 };

    fn recognize(windows: &Windows, axis: usize, extent: i64) -> Option<Steps> {
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

/// The constants of a convolution.
struct Numbers {
    weights: Bytes,
    biases: Bytes,
    /// Bytes of one bias.
    of_bias: usize,
    /// Bytes of the weights of one channel.
    size: usize,
    /// Bytes of the weights of one filter.
    bytes: usize,
    /// By filter: whether no channel has weights of zeros only.
    whole: Vec<bool>,
    /// Channels that a filter reads.
    per: i64,
    /// Lanes of a filter that are looked at first, whatever their number.
    samples: [usize; SAMPLES],
}

/// What the filters of a group read of one window: lanes by their numbers, and where the weights of each begin in a filter.
struct Cells {
    /// In ascending order.
    read: Rc<[(u32, usize)]>,
    /// Where the weights begin of what nobody knows.
    unknown: Vec<usize>,
    /// Whether a lane is there twice.
    twice: bool,
}

fn numbered(terms: &mut Terms, places: Vec<Place>) -> Vec<Number> {
    let number = |place| match place {
        Place::Zero => Number::Zero,
        Place::Unknown => Number::Unknown,
        Place::Lane(lane) => Number::Lane(terms.filters.number(lane)),
    };
    places.into_iter().map(number).collect()
}

impl Reading {
    /// Every lane that is read.
    fn lanes(&self) -> impl Iterator<Item = u32> {
        self.numbers.iter().filter_map(|number| match number {
            Number::Lane(lane) => Some(*lane),
            _ => None,
        })
    }

    /// What all filters of a group read of one window.
    fn cells(&self, numbers: &Numbers, [image, window, first]: [i64; 3]) -> Option<Cells> {
        let Steps { kernel, stride, dilation, before, .. } = self.steps;
        let (mut read, mut unknown) = (Vec::new(), Vec::new());
        for step in 0..kernel {
            let frame = window * stride + step * dilation - before;
            if !(0..self.frames).contains(&frame) {
                continue;
            }
            for channel in 0..numbers.per {
                let at = (channel * kernel + step) as usize * numbers.size;
                let place = (image * self.frames + frame) * self.channels + first + channel;
                match self.numbers.get(usize::try_from(place).ok()?)? {
                    Number::Zero => {}
                    Number::Unknown => unknown.push(at),
                    Number::Lane(number) => read.push((*number, at)),
                }
            }
        }
        read.sort_unstable();
        let twice = read.windows(2).any(|pair| pair[0].0 == pair[1].0);
        Some(Cells { read: read.into(), unknown, twice })
    }

    /// What one filter is; `None` if it reads what nobody knows. `taken` is room for the lanes of which it takes anything.
    fn sum(
        &self,
        terms: &Terms,
        (numbers, taken): (&Numbers, &mut Vec<(u32, usize)>),
        cells: &Cells,
        filter: usize,
    ) -> Option<Filter> {
        let base = filter * numbers.bytes;
        let (size, weights) = (numbers.size, numbers.weights.clone());
        let cell = |at: usize| &weights[base + at..][..size];
        if cells.unknown.iter().any(|&at| !is_zero(cell(at))) {
            return None;
        }
        taken.clear();
        taken.extend(cells.read.iter().copied().filter(|&(_, at)| numbers.whole[filter] || !is_zero(cell(at))));
        let read = if cells.twice {
            // A lane that is read twice has weights in an order of their own.
            taken.sort_unstable_by(|a, b| a.0.cmp(&b.0).then_with(|| cell(a.1).cmp(cell(b.1))));
            taken.as_slice().into()
        } else {
            Rc::clone(&cells.read)
        };
        let bias = numbers.biases.chunks_exact(numbers.of_bias).nth(filter)?;
        if taken.is_empty() && is_zero(bias) {
            return Some(Filter::Zero);
        }
        let mut hasher = terms.filters.drawn.build_hasher();
        (&self.tag, bias, taken.len()).hash(&mut hasher);
        let count = taken.len().min(SAMPLES);
        for (lane, at) in numbers.samples[..count].iter().map(|drawn| taken[drawn % taken.len()]) {
            hasher.write_u32(lane);
            hasher.write(cell(at));
        }
        let hash = hasher.finish();
        let bias = bias.into();
        Some(Filter::Sum(Sum { hash, tag: Rc::clone(&self.tag), bias, read, base, weights, size }))
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
    let y = match at_one_place(terms, &list).filter(|_| !apart) {
        Some(y) => y,
        None => in_their_places(terms, &list, [images, real.len() as i64], apart)?,
    };
    let runs = joined(real.iter().map(|filter| (*filter, 1)));
    filled(terms, &y, 1, &runs, filters, Fill::Zero)
}

/// Lanes of one place of some axes, such as a frame of a volume, which differ along one other axis.
fn at_one_place(terms: &mut Terms, list: &[&Lane]) -> Option<Value> {
    let first = *list.first()?;
    let base = terms.get(first.term).base.clone();
    let free = (0..base.len()).filter(|&axis| !is_read(&first.rest, axis));
    let (moving, still): (Vec<usize>, Vec<usize>) =
        free.partition(|&axis| list.iter().any(|lane| lane.at[axis] != first.at[axis]));
    let ([channels], false) = (moving.as_slice(), still.is_empty()) else { return None };
    let differ = |lane: &&Lane| lane.at.iter().enumerate().any(|(axis, at)| is_read(&first.rest, axis) && *at != 0);
    (!list.iter().any(differ)).then_some(())?;
    let mut x = value(terms, first.term, view::identity(&base).1);
    for &axis in &still {
        // A part of what a convolution makes may be one of less padding, which is none of the input.
        x = routed::indices(terms, &x, axis, &[first.at[axis]])?;
    }
    let told: Vec<i64> = list.iter().map(|lane| lane.at[*channels]).collect();
    let x = routed::reordered(terms, &x, *channels, &told)?;
    let mut seen = first.rest.clone();
    seen.insert(1, vec![Digit { axis: *channels as u32, extent: told.len() as i64, stride: 1 }]);
    Some(Value { view: view::composed(&seen, &x.view)?, ..x })
}

/// Lanes that are all of some axes, or one axis in another order.
fn in_their_places(terms: &mut Terms, list: &[&Lane], wide: [i64; 2], apart: bool) -> Option<Value> {
    let first = *list.first()?;
    Some(match digits(terms, list) {
        Some(digits) => {
            let mut view: View = vec![digits];
            let (images_view, spatial) = if apart { (Vec::new(), 0) } else { (first.rest.first()?.clone(), 1) };
            view.extend(first.rest[spatial..].iter().cloned());
            let mut shape = view::shape(&view);
            let whole = value(terms, first.term, view);
            shape.splice(..1, wide);
            let mut y = whole.reshaped(&shape)?;
            if !apart {
                y.view[0] = images_view;
            }
            y
        }
        None if apart => return None,
        None => match in_order(terms, first, list) {
            Some(y) => y,
            None => of_one(terms, list, 1)?,
        },
    })
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

/// Whether an axis of a term is among those that a view reads.
pub(super) fn is_read(view: &View, axis: usize) -> bool {
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
