//! Sums of products: each element of the result is the sum, over the places that are summed over, of an element of one operand
//! times one of the other.

use super::{floats, operand, spread};
use crate::Tensor;
use crate::shuffle::{broadcast, places, strides};
use relayout_ir::dim::element_count;
use relayout_ir::graph::{Graph, Node};
use relayout_ir::op::float_or_default;
use relayout_ir::op::read::{Window, group, windows};

/// An op that is one.
#[derive(Clone, Debug)]
pub(crate) enum Product {
    /// Of matrices, the last two axes of each operand.
    Matrices,
    /// Of two matrices, turned or not; both factors; and a third operand.
    Gemm { turned: [bool; 2], alpha: f64, beta: f64 },
    /// A convolution of so many groups, and its windows.
    Conv { groups: usize, windows: Vec<Window> },
    /// The letters of each operand and of the result.
    Einsum { operands: Vec<Vec<char>>, result: Vec<char> },
}

/// Where the elements of an operand are that a sum reads: strides along the axes of the result, and along those that are summed.
struct Side {
    numbers: Vec<f64>,
    result: Vec<i64>,
    summed: Vec<i64>,
}

impl Product {
    pub(super) fn recognize(graph: &Graph, node: &Node) -> Option<Product> {
        Some(match node.onnx()? {
            "MatMul" => Product::Matrices,
            // Before opset 7 the third operand broadcast by an attribute.
            "Gemm" if node.opset >= 7 => Product::Gemm {
                turned: [node.flag("transA"), node.flag("transB")],
                alpha: float_or_default(node, "alpha")?.into(),
                beta: float_or_default(node, "beta")?.into(),
            },
            "Conv" => {
                let windows = windows(graph, node).ok()?;
                let known = |w: &Window| w.kernel.is_some() && w.padding().is_some_and(|(a, b)| a >= 0 && b >= 0);
                let groups = usize::try_from(group(node).ok()?).ok()?;
                windows.iter().all(known).then_some(Product::Conv { groups, windows })?
            }
            "Einsum" => einsum(node.str("equation")?)?,
            _ => return None,
        })
    }

    /// How many products each element of the result is the sum of.
    pub(super) fn summands(&self, operands: &[&[usize]]) -> Option<u64> {
        let (a, b) = (*operands.first()?, operands.get(1).copied());
        let count = match self {
            Product::Matrices => *a.last()?,
            Product::Gemm { turned, .. } => *a.get(usize::from(!turned[0]))?,
            Product::Conv { .. } => b?.get(1..)?.iter().product(),
            Product::Einsum { operands: letters, result } => einsum_summands(letters, result, operands)?,
        };
        Some(count as u64)
    }

    pub(super) fn run(&self, operands: &[&Tensor], dims: &[usize]) -> Result<Vec<f64>, String> {
        match self {
            Product::Matrices => matrices(operand(operands, 0)?, operand(operands, 1)?),
            Product::Gemm { turned, alpha, beta } => {
                let (a, b) = (operand(operands, 0)?, operand(operands, 1)?);
                let mut y = gemm(a, b, *turned, dims)?;
                for y in &mut y {
                    *y *= alpha;
                }
                if let Some(c) = operands.get(2) {
                    for (y, c) in y.iter_mut().zip(spread(c, dims)?) {
                        *y += beta * c;
                    }
                }
                Ok(y)
            }
            Product::Conv { groups, windows } => conv(operands, *groups, windows, dims),
            Product::Einsum { operands: letters, result } => {
                let shapes: Vec<&[usize]> = operands.iter().map(|t| t.dims.as_slice()).collect();
                let over = summed(letters, result);
                let extents: Option<Vec<usize>> = over.iter().map(|&c| extent(letters, &shapes, c)).collect();
                let side = |i: usize| -> Result<Side, String> {
                    let x = operand(operands, i)?;
                    let own = strides(&x.dims);
                    let along = |c: &char| letters[i].iter().position(|l| l == c).map_or(0, |at| own[at]);
                    let (result, summed) = (result.iter().map(along).collect(), over.iter().map(along).collect());
                    Ok(Side { numbers: floats(x)?, result, summed })
                };
                let other = if letters.len() > 1 { side(1)? } else { one(dims.len(), over.len()) };
                sums(dims, &extents.ok_or("a letter has no extent")?, &side(0)?, &other)
            }
        }
    }
}

/// A factor of 1 everywhere.
fn one(result: usize, summed: usize) -> Side {
    Side { numbers: vec![1.0], result: vec![0; result], summed: vec![0; summed] }
}

/// Each element of the result.
fn sums(dims: &[usize], over: &[usize], a: &Side, b: &Side) -> Result<Vec<f64>, String> {
    let all = |dims: &[usize], strides: &[i64]| -> Result<Vec<usize>, String> {
        let mut list = Vec::new();
        places(dims, 0, strides, |place| {
            list.push(usize::try_from(place).map_err(|_| "a place is before the first".to_owned())?);
            Ok(())
        })?;
        Ok(list)
    };
    let (in_a, in_b) = (all(over, &a.summed)?, all(over, &b.summed)?);
    let (of_a, of_b) = (all(dims, &a.result)?, all(dims, &b.result)?);
    let get =
        |side: &Side, at: usize| side.numbers.get(at).copied().ok_or_else(|| format!("element {at} is not there"));
    let mut y = Vec::with_capacity(of_a.len());
    for (&from_a, &from_b) in of_a.iter().zip(&of_b) {
        let mut sum = 0.0;
        for (&i, &j) in in_a.iter().zip(&in_b) {
            sum += get(a, from_a + i)? * get(b, from_b + j)?;
        }
        y.push(sum);
    }
    Ok(y)
}

/// A vector is a row on the left and a column on the right; the axis that it lacks is not in the result.
fn matrices(a: &Tensor, b: &Tensor) -> Result<Vec<f64>, String> {
    let row = if a.dims.len() == 1 { vec![1, a.dims[0]] } else { a.dims.clone() };
    let column = if b.dims.len() == 1 { vec![b.dims[0], 1] } else { b.dims.clone() };
    let ([batch_a @ .., m, k], [batch_b @ .., depth, n]) = (row.as_slice(), column.as_slice()) else {
        return Err("a number is not a matrix".to_owned());
    };
    if k != depth {
        return Err(format!("{k} columns are not {depth} rows"));
    }
    let rank = batch_a.len().max(batch_b.len());
    let at = |batch: &[usize], i: usize| (i + batch.len()).checked_sub(rank).map_or(1, |i| batch[i]);
    let joint = |i| if at(batch_a, i) == 1 { at(batch_b, i) } else { at(batch_a, i) };
    let batch: Vec<usize> = (0..rank).map(joint).collect();
    let side = |x: &Tensor, own: &[usize], dims: &[usize], turns: [i64; 2], summed: i64| -> Result<Side, String> {
        let matrix: usize = dims[dims.len() - 2..].iter().product();
        let mut result: Vec<i64> = broadcast(own, &batch)?.into_iter().map(|s| s * matrix as i64).collect();
        result.extend(turns);
        Ok(Side { numbers: floats(x)?, result, summed: vec![summed] })
    };
    let left = side(a, batch_a, &row, [*k as i64, 0], 1)?;
    let right = side(b, batch_b, &column, [0, 1], *n as i64)?;
    sums(&[batch.as_slice(), &[*m, *n]].concat(), &[*k], &left, &right)
}

fn gemm(a: &Tensor, b: &Tensor, turned: [bool; 2], dims: &[usize]) -> Result<Vec<f64>, String> {
    let (&[rows, columns], &[m, n]) = (a.dims.as_slice(), dims) else { return Err("they are not matrices".to_owned()) };
    let [width, depth] = [*b.dims.last().ok_or("a number is not a matrix")?, if turned[0] { rows } else { columns }];
    let [down, along] = if turned[0] { [1, columns as i64] } else { [columns as i64, 1] };
    let left = Side { numbers: floats(a)?, result: vec![down, 0], summed: vec![along] };
    let [down, along] = if turned[1] { [1, width as i64] } else { [width as i64, 1] };
    let right = Side { numbers: floats(b)?, result: vec![0, along], summed: vec![down] };
    sums(&[m, n], &[depth], &left, &right)
}

fn conv(operands: &[&Tensor], groups: usize, windows: &[Window], dims: &[usize]) -> Result<Vec<f64>, String> {
    let (x, w) = (operand(operands, 0)?, operand(operands, 1)?);
    let (&[images, channels, ..], &[filters, depth, ..]) = (x.dims.as_slice(), w.dims.as_slice()) else {
        return Err("it has no channels".to_owned());
    };
    if x.dims.len() != windows.len() + 2 || w.dims.len() != x.dims.len() || dims.len() != x.dims.len() {
        return Err("the windows are not those of the image".to_owned());
    }
    if groups == 0 || !filters.is_multiple_of(groups) || depth.checked_mul(groups) != Some(channels) {
        return Err(format!("{channels} channels and {filters} filters are not those of {groups} groups"));
    }
    let (numbers, padded) = framed(x, windows)?;
    let (of_x, of_w, each) = (strides(&padded), strides(&w.dims), filters / groups);
    let along = |number: fn(&Window) -> i64| windows.iter().zip(&of_x[2..]).map(move |(w, s)| number(w) * s);
    let mut result = vec![of_x[0], depth as i64 * of_x[1], 0];
    result.extend(along(|w| w.stride));
    let read = [of_x[1]].into_iter().chain(along(|w| w.dilation)).collect();
    let left = Side { numbers, result, summed: read };
    let mut result = vec![0, each as i64 * of_w[0], of_w[0]];
    result.resize(3 + windows.len(), 0);
    let right = Side { numbers: floats(w)?, result, summed: of_w[1..].to_vec() };
    let grouped: Vec<usize> = [images, groups, each].into_iter().chain(dims[2..].iter().copied()).collect();
    let mut y = sums(&grouped, &w.dims[1..], &left, &right)?;
    if let Some(bias) = operands.get(2) {
        let (bias, pixels) = (floats(bias)?, dims[2..].iter().product::<usize>().max(1));
        for (i, y) in y.iter_mut().enumerate() {
            *y += bias.get(i / pixels % filters).ok_or("a filter has no bias")?;
        }
    }
    Ok(y)
}

/// An image with zeros around it, and its extents.
fn framed(x: &Tensor, windows: &[Window]) -> Result<(Vec<f64>, Vec<usize>), String> {
    let mut dims = x.dims.clone();
    let mut before = vec![0; 2];
    for (window, extent) in windows.iter().zip(dims.iter_mut().skip(2)) {
        let (first, last) = window.padding().ok_or("the padding is not known")?;
        before.push(first);
        *extent += usize::try_from(first + last).map_err(|_| "an image is cut".to_owned())?;
    }
    let size = element_count(dims.iter().map(|&d| d as u64)).and_then(|n| usize::try_from(n).ok());
    let size = size.ok_or("the image is too large")?;
    let own = strides(&dims);
    let start = before.iter().zip(&own).map(|(before, stride)| before * stride).sum();
    let (mut out, mut numbers) = (vec![0.0; size], floats(x)?.into_iter());
    places(&x.dims, start, &own, |place| {
        let at = usize::try_from(place).ok().and_then(|at| out.get_mut(at)).ok_or("a pixel is outside")?;
        *at = numbers.next().ok_or("the image is too short")?;
        Ok(())
    })?;
    Ok((out, dims))
}

/// An equation of one or two operands, each letter at most once in each, and all of the result in one of them.
fn einsum(equation: &str) -> Option<Product> {
    let plain: String = equation.chars().filter(|c| !c.is_whitespace()).collect();
    let (from, to) = plain.split_once("->")?;
    let letters = |text: &str| -> Option<Vec<char>> {
        let list: Vec<char> = text.chars().collect();
        let once = list.iter().enumerate().all(|(i, c)| c.is_ascii_alphabetic() && !list[..i].contains(c));
        once.then_some(list)
    };
    let operands: Vec<Vec<char>> = from.split(',').map(letters).collect::<Option<_>>()?;
    let result = letters(to)?;
    let known = result.iter().all(|c| operands.iter().any(|list| list.contains(c)));
    (known && operands.len() <= 2).then_some(Product::Einsum { operands, result })
}

/// Letters that are not in the result.
fn summed(operands: &[Vec<char>], result: &[char]) -> Vec<char> {
    let mut list: Vec<char> = Vec::new();
    for &c in operands.iter().flatten() {
        if !result.contains(&c) && !list.contains(&c) {
            list.push(c);
        }
    }
    list
}

/// How many places are summed over; `None` if a letter has several extents.
fn einsum_summands(letters: &[Vec<char>], result: &[char], operands: &[&[usize]]) -> Option<usize> {
    let fits = |(list, dims): (&Vec<char>, &&[usize])| {
        let same = |(&c, &d)| extent(letters, operands, c) == Some(d);
        list.len() == dims.len() && list.iter().zip(*dims).all(same)
    };
    if letters.len() != operands.len() || !letters.iter().zip(operands).all(fits) {
        return None;
    }
    summed(letters, result).into_iter().try_fold(1, |n: usize, c| n.checked_mul(extent(letters, operands, c)?))
}

fn extent(letters: &[Vec<char>], operands: &[&[usize]], c: char) -> Option<usize> {
    let along = |(list, dims): (&Vec<char>, &&[usize])| dims.get(list.iter().position(|&l| l == c)?).copied();
    letters.iter().zip(operands).find_map(along)
}
