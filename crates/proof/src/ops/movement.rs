//! Ops that keep every element: they only change the index map.

use super::{Call, Results, axes_of, axis_of, one};
use crate::files::model::Attr;
use crate::terms::value::{Value, count_of};
use crate::terms::view::{Digit, normal};

pub(super) fn run(call: &mut Call<'_>) -> Option<Results> {
    Some(match call.op {
        "Identity" => call.need(0).and_then(one),
        "Dropout" => dropout(call),
        "Transpose" => transpose(call),
        "Reshape" => reshape(call),
        "Flatten" => flatten(call),
        "Squeeze" => squeeze(call),
        "Unsqueeze" => unsqueeze(call),
        "Expand" => expand(call),
        "Tile" => tile(call),
        "DepthToSpace" => depth_to_space(call),
        "SpaceToDepth" => space_to_depth(call),
        "Shape" => shape(call),
        "Size" => call.need(0).and_then(|x| one(Value::ints(&[], &[x.count()]))),
        "Constant" => constant(call),
        _ => return None,
    })
}

fn done(value: Option<Value>) -> Results {
    one(value.ok_or("its shapes do not fit")?)
}

/// To other extents.
pub(super) fn to_shape(call: &mut Call<'_>, x: &Value, to: &[i64]) -> Results {
    if to.iter().any(|d| *d < 0) || count_of(to) != Ok(x.count()) {
        if let Ok(count) = count_of(to) {
            call.terms.miscount(x.count(), count);
        }
        return Err(format!("{:?} can't have shape {to:?}", x.shape()));
    }
    done(call.terms.moved(x, to))
}

fn dropout(call: &mut Call<'_>) -> Results {
    call.single()?;
    let trains = call.known(2)?.is_some_and(|t| t.iter().any(|v| *v != 0));
    if trains || call.opset < 7 {
        return Err("it is in training".to_owned());
    }
    call.need(0).and_then(one)
}

fn transpose(call: &mut Call<'_>) -> Results {
    let x = call.need(0)?;
    let order = match call.ints("perm") {
        Some(perm) => axes_of(&perm, x.rank())?,
        None => (0..x.rank()).rev().collect(),
    };
    done(x.permuted(&order))
}

fn reshape(call: &mut Call<'_>) -> Results {
    let x = call.need(0)?;
    let wanted = call.extents("shape", 1)?.ok_or("no shape is given")?;
    let keeps_zero = call.int("allowzero", 0) != 0;
    let from = x.shape();
    let mut to = Vec::new();
    for (axis, &extent) in wanted.iter().enumerate() {
        let copied = || from.get(axis).copied().ok_or("a dim is copied that the operand has not");
        to.push(if extent == 0 && !keeps_zero { copied()? } else { extent });
    }
    if let Some(free) = to.iter().position(|d| *d == -1) {
        let others: Vec<i64> = to.iter().enumerate().filter(|(axis, _)| *axis != free).map(|(_, &d)| d).collect();
        let rest = count_of(&others)?;
        if rest == 0 || x.count() % rest != 0 {
            if free == 0 {
                call.terms.miscount(from.iter().skip(1).product(), rest);
            }
            return Err(format!("{from:?} can't have shape {wanted:?}"));
        }
        to[free] = x.count() / rest;
    }
    to_shape(call, &x, &to)
}

fn flatten(call: &mut Call<'_>) -> Results {
    let x = call.need(0)?;
    let axis = call.int("axis", 1);
    let axis = if axis < 0 { axis + x.rank() as i64 } else { axis } as usize;
    let shape = x.shape();
    let (outer, inner) = shape.split_at_checked(axis).ok_or("its axis is beyond the rank")?;
    to_shape(call, &x, &[outer.iter().product(), inner.iter().product()])
}

fn squeeze(call: &mut Call<'_>) -> Results {
    let x = call.need(0)?;
    let shape = x.shape();
    let gone = match call.list("axes", 1)? {
        Some(axes) if axes.is_empty() && (shape.contains(&1) || call.terms.has_open(&x)) => {
            return Err("the checker does not know an empty list of axes, which runtimes take for none".to_owned());
        }
        Some(axes) => axes_of(&axes, x.rank())?,
        None if call.terms.has_open(&x) => return Err("nobody knows which of its axes have one place".to_owned()),
        None => (0..x.rank()).filter(|&axis| shape[axis] == 1).collect(),
    };
    if let Some(&axis) = gone.iter().find(|&&axis| shape[axis] != 1) {
        call.terms.fixes(&x, axis, 1);
        return Err(format!("axes {gone:?} of {shape:?} are not all 1"));
    }
    let to: Vec<i64> = (0..x.rank()).filter(|axis| !gone.contains(axis)).map(|axis| shape[axis]).collect();
    done(x.reshaped(&to))
}

fn unsqueeze(call: &mut Call<'_>) -> Results {
    let x = call.need(0)?;
    let axes = call.list("axes", 1)?.ok_or("no axes are given")?;
    let rank = x.rank() + axes.len();
    let new = axes_of(&axes, rank)?;
    let mut old = x.shape().into_iter();
    let to: Vec<i64> = (0..rank).map(|axis| if new.contains(&axis) { 1 } else { old.next().unwrap_or(1) }).collect();
    done(x.reshaped(&to))
}

fn expand(call: &mut Call<'_>) -> Results {
    let x = call.need(0)?;
    let wanted = call.extents("", 1)?.ok_or("no shape is given")?;
    let mut to = x.shape();
    while to.len() < wanted.len() {
        to.insert(0, 1);
    }
    let behind = to.len() - wanted.len();
    for (have, want) in to[behind..].iter_mut().zip(&wanted) {
        if *have == 1 {
            *have = *want;
        } else if *want != 1 && want != have {
            return Err(format!("{:?} does not expand to {wanted:?}", x.shape()));
        }
    }
    if to.iter().any(|d| *d < 1) {
        return Err("its result is empty".to_owned());
    }
    done(x.expanded(&to))
}

fn tile(call: &mut Call<'_>) -> Results {
    let x = call.need(0)?;
    let repeats = call.extents("", 1)?.ok_or("no repeats are given")?;
    if repeats.len() != x.rank() || repeats.iter().any(|r| *r < 1) {
        return Err(format!("repeats {repeats:?} of {:?}", x.shape()));
    }
    count_of(&[x.shape(), repeats.clone()].concat())?;
    let axis =
        |(axis, &times): (&Vec<Digit>, &i64)| normal([Digit::repeat(times)].into_iter().chain(axis.iter().copied()));
    let view = x.view.iter().zip(&repeats).map(axis).collect();
    one(Value { view, ..x })
}

fn depth_to_space(call: &mut Call<'_>) -> Results {
    let x = call.need(0)?;
    let b = call.int("blocksize", 0);
    let &[n, c, h, w] = x.shape().as_slice() else { return Err("its rank is not 4".to_owned()) };
    let inner = b.checked_mul(b).and_then(|places| c.checked_div(places)).ok_or("its block is no extent")?;
    let columns_first = match call.text("mode").as_deref() {
        None | Some("DCR") => false,
        Some("CRD") => true,
        Some(other) => return Err(format!("the checker does not know mode {other}")),
    };
    let (split, order) = if columns_first {
        ([n, inner, b, b, h, w], [0, 1, 4, 2, 5, 3])
    } else {
        ([n, b, b, inner, h, w], [0, 3, 4, 1, 5, 2])
    };
    let split = call.terms.moved(&x, &split).and_then(|v| v.permuted(&order));
    done(split.and_then(|v| call.terms.moved(&v, &[n, inner, h * b, w * b])))
}

fn space_to_depth(call: &mut Call<'_>) -> Results {
    let x = call.need(0)?;
    let b = call.int("blocksize", 0);
    let &[n, c, h, w] = x.shape().as_slice() else { return Err("its rank is not 4".to_owned()) };
    if b < 1 {
        return Err("its block is below 1".to_owned());
    }
    if h % b != 0 || w % b != 0 {
        return Err("its shapes do not fit".to_owned());
    }
    // Which of the two opset 28 lets a node say.
    let order = match call.text("mode").as_deref() {
        None | Some("DCR") => [0, 3, 5, 1, 2, 4],
        Some("CRD") => [0, 1, 3, 5, 2, 4],
        Some(mode) => return Err(format!("its mode is {mode}")),
    };
    let split = call.terms.moved(&x, &[n, c, h / b, b, w / b, b]).and_then(|v| v.permuted(&order));
    done(split.and_then(|v| call.terms.moved(&v, &[n, c * b * b, h / b, w / b])))
}

fn shape(call: &mut Call<'_>) -> Results {
    let shape = call.need(0)?.shape();
    let rank = shape.len() as i64;
    let place = |n: i64| (if n < 0 { n + rank } else { n }).clamp(0, rank) as usize;
    let (start, end) = (place(call.int("start", 0)), place(call.int("end", rank)));
    let part = shape.get(start..end.max(start)).unwrap_or_default();
    one(Value::ints(&[part.len() as i64], part))
}

fn constant(call: &mut Call<'_>) -> Results {
    let found = call.attrs.iter().find_map(|(name, attr)| match (name.as_str(), attr) {
        ("value", Attr::Tensor(tensor)) => Some(Value::of_tensor(tensor)),
        ("value_int", Attr::Int(n)) => Some(Value::ints(&[], &[*n])),
        ("value_ints", Attr::Ints(n)) => Some(Value::ints(&[n.len() as i64], n)),
        ("value_float", Attr::Float(f)) => Some(floats(&[], &[*f])),
        ("value_floats", Attr::Floats(f)) => Some(floats(&[f.len() as i64], f)),
        _ => None,
    });
    one(found.ok_or("the checker does not read this kind of constant")?)
}

fn floats(shape: &[i64], values: &[f32]) -> Value {
    let data: Vec<u8> = values.iter().flat_map(|v| v.to_le_bytes()).collect();
    Value::constant(1, shape, data.into())
}

/// The axis of an attribute.
pub(super) fn axis(call: &Call<'_>, default: i64, rank: usize) -> Result<usize, String> {
    axis_of(call.int("axis", default), rank)
}
