//! What of a node's operands and results is numbered alike: the one answer to "who else has these channels in this order".
//!
//! It follows from the letters of the signature. An axis that is spelled by groups and channels in a group, `(g co)`, is that of the
//! channels where there is one group, and that of the groups where each has one channel. In between, the channels of one group can't be
//! told from those of another by a letter, so nothing is alike.

use super::read::group;
use crate::dim::Dim;
use crate::form::{AtomId, Bound, Renumber, Role, Slot};
use crate::graph::{Graph, Node};

/// The axes of a node that are numbered as one of them is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Alike {
    /// The others, operands first. What has one element for all is not among them.
    pub places: Vec<(Slot, usize)>,
    /// Whether no result has such an axis: the node adds up over it, or looks something up.
    pub contracted: bool,
}

/// The axes that are numbered as this one: if it is put in another order, they have to be as well, and the node then computes the same,
/// in that order. `None` if the node knows indices of the axis by their numbers, or an operand may that the signature gives no axes.
pub fn alike(graph: &Graph, node: &Node, bound: &Bound, slot: Slot, axis: usize) -> Option<Alike> {
    let letters = Letters { node, bound };
    let count = extent(graph, node, slot, axis)?;
    let wanted = letters.letter(*bound.axes(slot)?.get(axis)?, &count)?;
    if bound.substitute.is_some() || !unread(graph, node, bound, &count) {
        return None;
    }
    let mut alike = Alike { places: Vec::new(), contracted: true };
    for at in bound.slots() {
        if node.value_at(at).is_none() {
            continue;
        }
        for (other, &atom) in bound.axes(at)?.iter().enumerate() {
            let own = extent(graph, node, at, other)?;
            match letters.letter(atom, &own) {
                Some(letter) if letter == wanted => {}
                None if letters.digits(atom).is_some_and(|digits| digits.contains(&wanted)) => return None,
                _ => continue,
            }
            if !matches!(bound.atoms.get(usize::from(atom))?.role, Role::Carried | Role::Contracted) {
                return None;
            }
            alike.contracted &= matches!(at, Slot::In(_));
            match at {
                _ if (at, other) == (slot, axis) => {}
                Slot::In(_) if own.is_one() => {}
                _ if own != count => return None,
                _ => alike.places.push((at, other)),
            }
        }
    }
    Some(alike)
}

/// Why the extents of operands and results contradict each other, if they do: a letter has one extent, and data have as many channels as
/// the weights of all groups read.
///
/// # Errors
/// The axes that differ.
pub fn extents_agree(graph: &Graph, node: &Node, bound: &Bound) -> Result<(), String> {
    let letters = Letters { node, bound };
    let mut known: Vec<(&str, i64)> = Vec::new();
    let grouped: Vec<&str> = letters.all().filter_map(|atom| letters.digits(atom)?.get(1).copied()).collect();
    for at in bound.slots() {
        let shape = node.value_at(at).and_then(|v| graph.value(v).ty.shape());
        for (&atom, extent) in bound.axes(at).into_iter().flatten().zip(shape.into_iter().flatten()) {
            let Some(extent) = extent.as_const() else { continue };
            let Some((letter, extent)) = letters.share(atom, extent)? else { continue };
            if extent == 1 && !grouped.contains(&letter) {
                continue;
            }
            match known.iter().find(|(other, _)| *other == letter) {
                Some((_, other)) if *other != extent => {
                    return Err(format!("has both {other} and {extent} of what its signature calls `{letter}`"));
                }
                Some(_) => {}
                None => known.push((letter, extent)),
            }
        }
    }
    Ok(())
}

fn extent(graph: &Graph, node: &Node, slot: Slot, axis: usize) -> Option<Dim> {
    graph.value(node.value_at(slot)?).ty.shape()?.get(axis).cloned()
}

/// Whether nothing that the signature gives no axes may have an entry for each of so many channels.
fn unread(graph: &Graph, node: &Node, bound: &Bound, channels: &Dim) -> bool {
    let told = |slot: usize| {
        let tells = |what: &Renumber| match *what {
            Renumber::AxisInput(at)
            | Renumber::AxisInputOr(at, _)
            | Renumber::AxesInput(at, _)
            | Renumber::PerAxisInput(at, _)
            | Renumber::TrailingInput(at) => at == slot,
            _ => false,
        };
        bound.renumber.iter().any(tells)
    };
    let other = |v| {
        let shape = graph.value(v).ty.shape();
        shape.is_some_and(|shape| {
            let known = shape.iter().all(|d| d.as_const().is_some()) && channels.as_const().is_some();
            let product = Dim::product(shape);
            shape.iter().all(Dim::is_one) || known && !shape.contains(channels) && product.as_ref() != Some(channels)
        })
    };
    let ins = node.inputs.iter().enumerate().filter_map(|(i, v)| Some((i, (*v)?)));
    let outs = node.outputs.iter().enumerate().filter_map(|(i, v)| Some((i, (*v)?)));
    let mut whole_ins = ins.filter(|(i, _)| bound.axes(Slot::In(*i)).is_none());
    let mut whole_outs = outs.filter(|(i, _)| bound.axes(Slot::Out(*i)).is_none());
    whole_ins.all(|(slot, v)| told(slot) || other(v)) && whole_outs.all(|(_, v)| other(v))
}

/// The letters of a node, its groups known.
struct Letters<'n> {
    node: &'n Node,
    bound: &'n Bound,
}

impl<'n> Letters<'n> {
    fn all(&self) -> impl Iterator<Item = AtomId> + use<> {
        (0..self.bound.atoms.len()).filter_map(|atom| AtomId::try_from(atom).ok())
    }

    fn name(&self, atom: AtomId) -> &'n str {
        self.bound.atoms.get(usize::from(atom)).map_or("", |atom| &atom.name)
    }

    /// The digits that spell an axis, if several do.
    fn digits(&self, atom: AtomId) -> Option<Vec<&'n str>> {
        let digits = self.name(atom).strip_prefix('(')?.strip_suffix(')')?;
        Some(digits.split_whitespace().collect())
    }

    /// The groups and what there is of each, where an axis is spelled so.
    fn of_groups(&self, atom: AtomId) -> Option<(i64, &'n str)> {
        match self.digits(atom)?[..] {
            ["g", each] if !each.ends_with('~') => Some((group(self.node).ok()?, each)),
            _ => None,
        }
    }

    /// The one letter that numbers an axis of this extent.
    fn letter(&self, atom: AtomId, extent: &Dim) -> Option<&'n str> {
        if self.digits(atom).is_none() {
            return Some(self.name(atom));
        }
        match self.of_groups(atom)? {
            (1, each) => Some(each),
            (groups, _) if extent.as_const() == Some(groups) => Some("g"),
            _ => None,
        }
    }

    /// What an axis of this extent says of the extent of a letter; `None` where an operand may broadcast, a window or a cut changes it,
    /// or several letters that nobody knows spell it.
    fn share(&self, atom: AtomId, extent: i64) -> Result<Option<(&'n str, i64)>, String> {
        let role = self.bound.atoms.get(usize::from(atom)).map(|atom| atom.role);
        if !matches!(role, Some(Role::Carried | Role::Contracted)) {
            return Ok(None);
        }
        if self.digits(atom).is_none() {
            return Ok(Some((self.name(atom), extent)));
        }
        match self.of_groups(atom) {
            Some((groups, _)) if extent % groups != 0 => Err(format!("has {extent} channels in {groups} groups")),
            Some((groups, each)) => Ok(Some((each, extent / groups))),
            None => Ok(None),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::form::Form;
    use crate::op::bind;
    use crate::text::parse;

    /// What is alike at the place of the last node of this text, as `(slot, axis)`, results by `-1 - slot`.
    fn alike_at(text: &str, slot: Slot, axis: usize) -> Option<(Vec<(i64, usize)>, bool)> {
        let mut graph = parse(text).unwrap();
        let n = graph.order().unwrap().into_iter().rev().find(|&n| graph.node(n).onnx().is_some()).unwrap();
        let form = bind(&graph, n);
        graph.set_form(n, form);
        let Form::Axes(bound) = &graph.node(n).form else { return None };
        let found = alike(&graph, graph.node(n), bound, slot, axis)?;
        let number = |slot: Slot| match slot {
            Slot::In(i) => i as i64,
            Slot::Out(i) => -1 - i as i64,
        };
        Some((found.places.into_iter().map(|(slot, axis)| (number(slot), axis)).collect(), found.contracted))
    }

    fn convolution(op: &str, [x, w, b, y]: [&str; 4], group: i64) -> String {
        format!(
            "graph g opset=21\n  %x: f32[{x}] = input\n  %w: f32[{w}] = input\n  %b: f32[{b}] = input\n  \
             %y: f32[{y}] = {op}(%x, %w, %b) {{group={group}}}\n  output %y\n"
        )
    }

    #[test]
    fn channels_are_those_of_weights_and_bias_where_no_groups_part_them() {
        let plain = convolution("Conv", ["1,6,4,4", "8,6,1,1", "8", "1,8,4,4"], 1);
        assert_eq!(alike_at(&plain, Slot::In(0), 1), Some((vec![(1, 1)], true)));
        assert_eq!(alike_at(&plain, Slot::Out(0), 1), Some((vec![(1, 0), (2, 0)], false)));
        let each = convolution("Conv", ["1,6,4,4", "6,1,1,1", "6", "1,6,4,4"], 6);
        assert_eq!(alike_at(&each, Slot::In(0), 1), Some((vec![(1, 0), (2, 0), (-1, 1)], false)));
        let transposed = convolution("ConvTranspose", ["1,6,4,4", "6,8,1,1", "8", "1,8,4,4"], 1);
        assert_eq!(alike_at(&transposed, Slot::Out(0), 1), Some((vec![(1, 1), (2, 0)], false)));
        assert_eq!(alike_at(&transposed, Slot::In(0), 1), Some((vec![(1, 0)], true)));
        for op in ["Conv", "ConvTranspose"] {
            let groups = convolution(op, ["1,6,4,4", "6,2,1,1", "6", "1,6,4,4"], 3);
            assert_eq!(alike_at(&groups, Slot::In(0), 1), None, "{op}");
            assert_eq!(alike_at(&groups, Slot::Out(0), 1), None, "{op}");
        }
        // Two filters for each channel.
        let twice = convolution("Conv", ["1,6,4,4", "12,1,1,1", "12", "1,12,4,4"], 6);
        assert_eq!((alike_at(&twice, Slot::In(0), 1), alike_at(&twice, Slot::Out(0), 1)), (None, None));
    }

    #[test]
    fn an_operand_without_letters_may_have_a_number_for_each_channel() {
        let product = |zero: &str| {
            format!(
                "graph g opset=21\n  %x: u8[4,6] = input\n  %w: u8[6,8] = input\n  %a: u8[] = input\n  %b: u8[{zero}] = input\n  \
                 %y: i32[4,8] = MatMulInteger(%x, %w, %a, %b)\n  output %y\n"
            )
        };
        assert_eq!(alike_at(&product(""), Slot::Out(0), 1), Some((vec![(1, 1)], false)));
        assert_eq!(alike_at(&product("8"), Slot::Out(0), 1), None);
    }

    #[test]
    fn what_contradicts_itself_has_no_letters() {
        for (shapes, group) in [
            (["1,6,4,4", "8,6,1,1", "7", "1,8,4,4"], 1),
            (["1,6,4,4", "8,2,1,1", "8", "1,8,4,4"], 3),
            (["1,6,4,4", "9,3,1,1", "9", "1,9,4,4"], 3),
        ] {
            assert_eq!(alike_at(&convolution("Conv", shapes, group), Slot::In(0), 0), None, "{shapes:?}");
        }
    }
}
