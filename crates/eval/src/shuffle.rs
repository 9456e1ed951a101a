//! Picking elements of row-major tensors: what Transpose, Expand, Slice, Gather, Concat and Where have in common.

/// Row-major strides of these extents, in elements.
pub(super) fn strides(dims: &[usize]) -> Vec<i64> {
    let mut strides = vec![1i64; dims.len()];
    for i in (1..dims.len()).rev() {
        strides[i - 1] = strides[i].saturating_mul(dims[i] as i64);
    }
    strides
}

/// Strides with which a tensor of these extents is read as one of extents `to`, broadcast from the last axis on.
///
/// # Errors
/// If it does not broadcast.
pub(super) fn broadcast(dims: &[usize], to: &[usize]) -> Result<Vec<i64>, String> {
    let own = strides(dims);
    let skip = to.len().checked_sub(dims.len()).ok_or("an operand has more axes than the result")?;
    (0..to.len())
        .map(|axis| match axis.checked_sub(skip) {
            None => Ok(0),
            Some(i) if dims[i] == to[axis] => Ok(own[i]),
            Some(i) if dims[i] == 1 => Ok(0),
            Some(i) => Err(format!("extent {} does not broadcast to {}", dims[i], to[axis])),
        })
        .collect()
}

/// Calls `visit` with the source place of every element of a tensor of extents `dims` that is read with these strides from
/// place `start` on.
///
/// # Errors
/// What `visit` says.
pub(super) fn places(
    dims: &[usize],
    start: i64,
    strides: &[i64],
    mut visit: impl FnMut(i64) -> Result<(), String>,
) -> Result<(), String> {
    if dims.contains(&0) {
        return Ok(());
    }
    let Some((&inner, outer)) = dims.split_last() else { return visit(start) };
    let step = strides.last().copied().unwrap_or(0);
    let mut index = vec![0usize; outer.len()];
    let mut place = start;
    loop {
        for i in 0..inner as i64 {
            visit(place + i * step)?;
        }
        let mut axis = outer.len();
        loop {
            let Some(next) = axis.checked_sub(1) else { return Ok(()) };
            axis = next;
            index[axis] += 1;
            place += strides[axis];
            if index[axis] < outer[axis] {
                break;
            }
            place -= strides[axis] * outer[axis] as i64;
            index[axis] = 0;
        }
    }
}

/// The elements of `source` at these places.
///
/// # Errors
/// If one is not there.
pub(super) fn pick(
    source: &[u8],
    width: usize,
    dims: &[usize],
    start: i64,
    strides: &[i64],
) -> Result<Vec<u8>, String> {
    let count = dims.iter().try_fold(width, |n, &d| n.checked_mul(d)).ok_or("the result is too large")?;
    let mut out = Vec::with_capacity(count);
    places(dims, start, strides, |place| {
        out.extend_from_slice(element(source, width, place)?);
        Ok(())
    })?;
    Ok(out)
}

/// One element.
///
/// # Errors
/// If it is not there.
pub(super) fn element(source: &[u8], width: usize, place: i64) -> Result<&[u8], String> {
    let missing = || format!("element {place} is not there");
    let from = usize::try_from(place).ok().and_then(|p| p.checked_mul(width)).ok_or_else(missing)?;
    source.get(from..from + width).ok_or_else(missing)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_transpose_and_a_reversed_slice_are_strides() {
        let x: Vec<u8> = (0..6).collect();
        assert_eq!(pick(&x, 1, &[3, 2], 0, &[1, 3]), Ok(vec![0, 3, 1, 4, 2, 5]));
        assert_eq!(pick(&x, 1, &[2, 2], 2, &[3, -1]), Ok(vec![2, 1, 5, 4]));
        assert_eq!(pick(&x, 1, &[0, 2], 9, &[1, 1]), Ok(vec![]));
        assert!(pick(&x, 1, &[7], 0, &[1]).is_err());
    }

    #[test]
    fn operands_broadcast_from_the_last_axis_on() {
        assert_eq!(broadcast(&[3, 1], &[2, 3, 4]), Ok(vec![0, 1, 0]));
        assert_eq!(broadcast(&[], &[2]), Ok(vec![0]));
        assert!(broadcast(&[3], &[2]).is_err());
        assert!(broadcast(&[2, 2], &[2]).is_err());
    }
}
