//! How terms are made of operands, whatever axes these have.

use crate::terms::align::{Aligned, Class, align, classes, term_of};
use crate::terms::arg::{Acted, Arg, Op, constant_digit};
use crate::terms::state::Terms;
use crate::terms::value::{Source, Value};
use crate::terms::view::{self, Digit, View, normal};
use crate::terms::{flat, routed, slots};

impl Terms {
    /// The operand as it is, in its own logical order.
    pub(crate) fn plain(&mut self, value: Option<&Value>) -> Option<Arg> {
        let Some(value) = value else { return Some(Arg::Absent) };
        Some(match value.source {
            Source::Term(term) => Arg::View { term, view: value.view.clone() },
            Source::Opaque(term) => Arg::Opaque(term),
            Source::Constant { .. } => {
                // Of one number that is repeated as often as the shape says.
                let all = if self.has_open(value) { value.splat()?.all()? } else { value.all()? };
                let elements = self.constants.number(all);
                Arg::Constant { dtype: value.dtype, axes: Vec::new(), own: value.shape(), elements }
            }
        })
    }

    /// An operand over common axes, with digits of its own behind them.
    fn arg(&mut self, value: &Value, operand: usize, aligned: &Aligned, own: &[Digit]) -> Option<Arg> {
        if let Some(term) = term_of(value) {
            return Some(Arg::Term { term, reads: aligned.reads[operand].clone(), own: own.to_vec() });
        }
        let (axes, dims) = &aligned.constants[operand];
        if own.iter().any(|digit| self.is_open(digit.extent)) {
            return None;
        }
        let digits = dims.iter().map(|&(extent, stride)| constant_digit(extent, stride));
        let elements = self.constants.number(value.listed(digits.chain(own.iter().copied()))?);
        let own = if own.is_empty() { Vec::new() } else { vec![view::extent(own)] };
        Some(Arg::Constant { dtype: value.dtype, axes: axes.clone(), own, elements })
    }

    /// The value with other extents.
    pub(crate) fn moved(&mut self, x: &Value, to: &[i64]) -> Option<Value> {
        // Whole axes may do where parts of them are in the way.
        let bare = x.reshaped(&[x.count()]).and_then(|one| flat::without(self, &one));
        // What comes of them does not depend on which axes were counted as one before.
        let anew = |terms: &mut Terms, bare: &Value| bare.reshaped(to).or_else(|| flat::regrouped(terms, bare, to));
        if let Some(y) = bare.as_ref().and_then(|bare| anew(self, bare)) {
            return Some(y);
        }
        if let Some(y) = x.reshaped(to) {
            return Some(flat::without(self, &y).unwrap_or(y));
        }
        flat::regrouped(self, bare.as_ref().unwrap_or(x), to)
    }

    /// The same where axes are cut through a `flat`: the op runs before it.
    fn each_joined(
        &mut self,
        op: &Op<'_>,
        shape: &[i64],
        operands: &[(&Value, View)],
        together: &[usize],
        dropped: bool,
    ) -> Option<Value> {
        let (range, to, values) = flat::joined(self, shape, operands)?;
        if together.iter().any(|axis| range.contains(axis)) {
            return None;
        }
        let operands: Vec<(&Value, View)> = values.iter().map(|v| (v, v.view.clone())).collect();
        let less = range.len() - 1;
        let together: Vec<usize> =
            together.iter().map(|&axis| if axis >= range.end { axis - less } else { axis }).collect();
        let made = self.each(op, &to, &operands, &together, dropped)?;
        let cut = flat::cut_again(&made, &range, shape);
        self.moved(&made, &cut)
    }

    /// An op that treats all indices alike but along the axes `together`, whose indices it takes as a set. They are gone from the
    /// result if `dropped`. `shape` is that of the operands together; each view has its rank.
    pub(crate) fn each(
        &mut self,
        op: &Op<'_>,
        shape: &[i64],
        operands: &[(&Value, View)],
        together: &[usize],
        dropped: bool,
    ) -> Option<Value> {
        // The axes of a sum of products are more than those of any value.
        shape.iter().try_fold(1_i64, |count, extent| count.checked_mul(*extent))?;
        if let Some(made) = self.each_joined(op, shape, operands, together, dropped) {
            return Some(made);
        }
        if let Some(made) = flat::each(self, op, shape, operands, together, dropped) {
            return Some(made);
        }
        if let Some(made) = slots::each(self, op, shape, operands, together, dropped) {
            return Some(made);
        }
        if let Some(made) = routed::each(self, op, shape, operands, together, dropped) {
            return Some(made);
        }
        let mut operands: Vec<(Value, View)> = operands.iter().map(|(v, view)| ((*v).clone(), view.clone())).collect();
        for (value, view) in &mut operands {
            if let Some(one) = value.splat().filter(|_| value.count() > 1) {
                (*value, *view) = (one, vec![Vec::new(); shape.len()]);
            }
        }
        if op.name.commutes() {
            // The order of terms is the same in both graphs. Constants are last, so that they don't lay the result.
            operands.sort_by_key(|(value, _)| term_of(value).unwrap_or(u32::MAX));
        }
        let operands: Vec<(&Value, View)> = operands.iter().map(|(v, view)| (v, view.clone())).collect();
        let class = classes(shape.len(), together);
        let aligned = align(shape, &operands, &class, true)?;
        let mut term = op.term();
        for (at, (value, _)) in operands.iter().enumerate() {
            term.args.push(self.arg(value, at, &aligned, &[])?);
        }
        term.over.clone_from(&aligned.extents);
        term.class.clone_from(&aligned.class);
        let keeps: Vec<bool> = aligned.class.iter().map(|class| !dropped || *class == Class::Alike).collect();
        let (base, number) = kept(&aligned.extents, &keeps);
        term.base = base;
        let axis = |(at, axis): (usize, &Vec<Digit>)| {
            let gone = dropped && together.contains(&at);
            axis.iter().filter(|_| !gone).map(|d| renumbered(*d, &number)).collect()
        };
        let view = aligned.axes.iter().enumerate().map(axis).collect();
        Some(Value { source: Source::Term(self.intern(term)), view, dtype: op.dtype })
    }

    /// An op of one operand that acts along some axes, where the order of indices matters, and treats all others alike.
    pub(crate) fn along(&mut self, op: &Op<'_>, value: &Value, acted: &[Acted]) -> Option<Value> {
        let shape = value.shape();
        // No axis differs from call to call that is made of one which does not.
        if acted.iter().any(|a| self.is_open(a.out) && !self.is_open(shape[a.axis])) {
            return None;
        }
        let class = classes(shape.len(), &acted.iter().map(|a| a.axis).collect::<Vec<_>>());
        let aligned = align(&shape, &[(value, value.view.clone())], &class, false)?;
        let mut term = op.term();
        term.args.push(self.arg(value, 0, &aligned, &[])?);
        let mut acted: Vec<&Acted> = acted.iter().collect();
        acted.sort_by_key(|a| aligned.axes[a.axis].iter().map(|d| (d.axis, -d.stride)).min());
        term.along = acted.iter().map(|a| (aligned.axes[a.axis].clone(), a.told.clone())).collect();
        let keeps: Vec<bool> = aligned.class.iter().map(|class| *class == Class::Alike).collect();
        let (mut base, number) = kept(&aligned.extents, &keeps);
        let mut view: View =
            aligned.axes.iter().map(|axis| axis.iter().map(|d| renumbered(*d, &number)).collect()).collect();
        for a in acted {
            let digit = Digit { axis: base.len() as u32, extent: a.out, stride: 1 };
            view[a.axis] = normal([digit]);
            if a.out != 1 {
                base.push(a.out);
            }
        }
        term.over = aligned.extents;
        term.class = aligned.class;
        term.base = base;
        Some(Value { source: Source::Term(self.intern(term)), view, dtype: op.dtype })
    }

    /// The operands one behind the other along an axis.
    pub(crate) fn joined(&mut self, op: &Op<'_>, values: &[&Value], axis: usize) -> Option<Value> {
        let mut shape = values.first()?.shape();
        let parts = values.iter().map(|value| Some(view::extent(value.view.get(axis)?))).collect::<Option<Vec<_>>>()?;
        let total = self.sum_of(&parts, 0)?;
        *shape.get_mut(axis)? = 1;
        let cut = |value: &Value| {
            let mut view = value.view.clone();
            view[axis].clear();
            view
        };
        let operands: Vec<(&Value, View)> = values.iter().map(|v| (*v, cut(v))).collect();
        if operands.iter().any(|(_, view)| view::shape(view) != shape) {
            return None;
        }
        let aligned = align(&shape, &operands, &classes(shape.len(), &[]), true)?;
        let mut term = op.term();
        for (at, value) in values.iter().enumerate() {
            term.args.push(self.arg(value, at, &aligned, &value.view[axis])?);
            term.attrs.extend(view::extent(&value.view[axis]).to_le_bytes());
        }
        term.over.clone_from(&aligned.extents);
        let mut view = aligned.axes;
        let mut base = aligned.extents;
        view[axis] = normal([Digit { axis: base.len() as u32, extent: total, stride: 1 }]);
        if total != 1 {
            base.push(total);
        }
        term.base = base;
        Some(Value { source: Source::Term(self.intern(term)), view, dtype: op.dtype })
    }

    /// An op that reads its operands in their own order of axes. `results` has shape and element type of each.
    pub(crate) fn placed(
        &mut self,
        op: &Op<'_>,
        operands: &[Option<&Value>],
        results: &[(Vec<i64>, u8)],
    ) -> Option<Vec<Value>> {
        let args: Vec<Arg> = operands.iter().map(|value| self.plain(*value)).collect::<Option<_>>()?;
        let mut values = Vec::new();
        for (at, (shape, dtype)) in results.iter().enumerate() {
            if shape.iter().any(|d| *d <= 0) {
                return None;
            }
            let mut term = Op { dtype: *dtype, ..*op }.term();
            term.args.clone_from(&args);
            term.attrs.push(at as u8);
            let (base, view) = view::identity(shape);
            term.base = base;
            values.push(Value { source: Source::Term(self.intern(term)), view, dtype: *dtype });
        }
        Some(values)
    }
}

/// Axes that stay, and the new number of each.
fn kept(extents: &[i64], keeps: &[bool]) -> (Vec<i64>, Vec<u32>) {
    let mut base = Vec::new();
    let number = keeps.iter().zip(extents).map(|(keep, extent)| {
        if *keep {
            base.push(*extent);
        }
        (base.len() as u32).saturating_sub(1)
    });
    let number = number.collect();
    (base, number)
}

fn renumbered(digit: Digit, number: &[u32]) -> Digit {
    Digit { axis: number.get(digit.axis as usize).copied().unwrap_or(digit.axis), ..digit }
}
