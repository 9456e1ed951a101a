//! Standard ops on stored operands: name and function of a call.

use super::body::{Body, Face, reference};
use super::digits::{bare, rearrange};
use super::spell::{Letters, spell};
use super::table::{self, Entry, Slot};
use super::{DialectError, FIRST_OPSET, canonical_weight};
use crate::proto::FunctionProto;
use relayout_ir::layout::Layout;
use std::fmt::Write as _;

/// How one operand or result of a call is stored.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[allow(clippy::large_enum_variant, reason = "a handful of short-lived values, and callers write them in lists")]
pub enum Operand {
    /// The call does not have it.
    Absent,
    /// As ONNX has it: its axes in their own order, or a list or scalar that is read as it is.
    Plain,
    /// With one dim per digit of this layout, outermost first. The slot maps of the layout say how many slots an axis has and
    /// nothing else: functions compute on slots.
    Stored(Layout),
}

impl Operand {
    fn layout(&self) -> Option<&Layout> {
        match self {
            Operand::Stored(layout) => Some(layout),
            _ => None,
        }
    }
}

/// A standard op whose operands and results are stored in other layouts than ONNX's: one function of the dialect.
///
/// ```
/// use relayout_onnx::dialect::{DialectOp, Operand::{Plain, Stored}};
/// let (nhwc, ohwi) = ("NHWC".parse().unwrap(), "OHWI".parse().unwrap());
/// let conv = DialectOp::new("Conv", 17, &[Stored(nhwc), Stored(ohwi), Plain], &[Stored("NHWC".parse().unwrap())]).unwrap();
/// assert_eq!(conv.name(), "Conv2d_NHWC_B");
/// assert_eq!(conv.function().node.iter().map(|n| n.op_type()).collect::<Vec<_>>(), ["Transpose", "Transpose", "Conv", "Transpose"]);
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct DialectOp {
    op: String,
    opset: i64,
    /// One per slot of the table, so that trailing absent ones are there too; no row-major layout and no slot map is left.
    ins: Vec<Operand>,
    outs: Vec<Operand>,
    name: String,
}

impl DialectOp {
    /// The form of `op` for these operands and results, one entry per slot of the op (slots at the end may be left out: they
    /// are absent). `opset` is the operator set of the standard domain that the model imports.
    ///
    /// # Errors
    /// [`DialectError`]: an op or a slot that the dialect does not have, a layout of a wrong rank, or nothing to do.
    pub fn new(op: &str, opset: i64, ins: &[Operand], outs: &[Operand]) -> Result<DialectOp, DialectError> {
        let entry = table::entry(op, opset).ok_or_else(|| unknown(op, opset))?;
        if opset < FIRST_OPSET {
            return Err(DialectError::OpsetTooOld { function: op.to_owned(), needs: FIRST_OPSET, opset });
        }
        let ins = slots(entry, opset, entry.inputs, ins)?;
        let outs = slots(entry, opset, entry.outputs, outs)?;
        let rank = rank(entry, &ins, &outs)?;
        let stored = |o: &Operand| matches!(o, Operand::Stored(layout) if !layout.is_row_major());
        if !ins.iter().chain(&outs).any(stored) {
            return Err(DialectError::Plain { op: op.to_owned() });
        }
        if features(entry) && rank.is_none() {
            let why = "no operand or result says how many axes there are; say how operand 0 is stored".to_owned();
            return Err(DialectError::Slots { op: op.to_owned(), opset, why });
        }
        let plain = |o: Operand| match o {
            Operand::Stored(layout) if layout.is_row_major() => Operand::Plain,
            other => other,
        };
        let ins: Vec<Operand> = ins.into_iter().map(plain).collect();
        let outs: Vec<Operand> = outs.into_iter().map(plain).collect();
        let name = name(entry, rank, &ins, &outs)?;
        Ok(DialectOp { op: op.to_owned(), opset, ins, outs, name })
    }

    /// Name of the function in the domain, the `op_type` of a call. Two forms of one operator set have the same name only if
    /// their functions are the same.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The standard op.
    pub fn op(&self) -> &str {
        &self.op
    }

    /// The operand slots that are inputs of the function, ascending. A call lists these and nothing else: an operand that is
    /// absent has no empty name in its place.
    pub fn inputs(&self) -> impl Iterator<Item = usize> + '_ {
        present(&self.ins)
    }

    /// The attributes that a call may have: all that the op has at this operator set. They mean what they mean on the op, in
    /// ONNX's order of axes.
    pub fn attributes(&self) -> impl Iterator<Item = &'static str> + use<> {
        let entry = table::entry(&self.op, self.opset);
        entry.into_iter().flat_map({
            let opset = self.opset;
            move |e| e.attributes_at(opset).map(|a| a.name)
        })
    }

    /// The function: unpacks stored operands to ONNX's order, runs the op, packs its results. An attribute that the call does
    /// not have is absent on the op too.
    pub fn function(&self) -> FunctionProto {
        let mut body = Body::new(self.opset);
        let (inputs, outputs) =
            table::entry(&self.op, self.opset).map_or((&[][..], &[][..]), |e| (e.inputs, e.outputs));
        let mut operands: Vec<String> = Vec::new();
        for (slot, operand) in inputs.iter().zip(&self.ins) {
            let x = slot.name.to_owned();
            operands.push(match operand {
                Operand::Absent => String::new(),
                Operand::Plain => x,
                // Both are layouts of one rank and one of them has no blocks, so their digits nest.
                Operand::Stored(from) => {
                    rearrange(&mut body, x.clone(), from, &Layout::row_major(from.rank())).unwrap_or(x)
                }
            });
        }
        while operands.last().is_some_and(String::is_empty) {
            operands.pop();
        }
        let operands: Vec<&str> = operands.iter().map(String::as_str).collect();
        let attributes = || table::entry(&self.op, self.opset).into_iter().flat_map(|e| e.attributes_at(self.opset));
        let y = body.node(&self.op, &operands, attributes().map(|a| reference(a.name, a.name, a.r#type)).collect());
        // Every op of the table has one result that may be stored.
        for (slot, result) in outputs.iter().zip(&self.outs).take(1) {
            let stored = match result {
                Operand::Stored(to) => rearrange(&mut body, y.clone(), &Layout::row_major(to.rank()), to),
                _ => None,
            };
            body.result(stored.as_deref().unwrap_or(&y), slot.name);
        }
        body.finish(Face {
            name: self.name.clone(),
            inputs: self.inputs().filter_map(|i| inputs.get(i)).map(|s| s.name.to_owned()).collect(),
            outputs: present(&self.outs).filter_map(|i| outputs.get(i)).map(|s| s.name.to_owned()).collect(),
            attributes: attributes().map(|a| a.name.to_owned()).collect(),
            doc: self.doc(inputs, outputs),
            opset: self.opset,
        })
    }

    fn doc(&self, inputs: &[Slot], outputs: &[Slot]) -> String {
        let sides = inputs.iter().zip(&self.ins).chain(outputs.iter().zip(&self.outs));
        let words: Vec<String> = sides
            .filter_map(|(slot, operand)| {
                let layout = operand.layout()?;
                Some(format!("{} stored as {}", slot.name, spell(layout, slot.letters?).ok()?))
            })
            .collect();
        format!("{} of ONNX with {}.", self.op, words.join(", "))
    }
}

fn present(slots: &[Operand]) -> impl Iterator<Item = usize> + '_ {
    slots.iter().enumerate().filter(|(_, o)| !matches!(o, Operand::Absent)).map(|(i, _)| i)
}

fn unknown(op: &str, opset: i64) -> DialectError {
    let hint = match table::opsets(op) {
        Some((first, last)) => format!(", only at opsets {first} to {last}"),
        None => "; store its operands as ONNX has them".to_owned(),
    };
    DialectError::UnknownOp { op: op.to_owned(), opset, hint }
}

/// One operand per slot of the table, without slot maps.
fn slots(entry: &Entry, opset: i64, have: &[Slot], given: &[Operand]) -> Result<Vec<Operand>, DialectError> {
    let wrong = |why: String| DialectError::Slots { op: entry.op.to_owned(), opset, why };
    if given.len() > have.len() && given.iter().skip(have.len()).any(|o| *o != Operand::Absent) {
        return Err(wrong(format!("{} slots are given, the dialect has forms of {} only", given.len(), have.len())));
    }
    let mut found = Vec::with_capacity(have.len());
    for (i, slot) in have.iter().enumerate() {
        found.push(match (given.get(i).unwrap_or(&Operand::Absent), slot.letters) {
            (Operand::Absent, _) if !slot.optional => return Err(wrong(format!("{} is absent", slot.name))),
            (Operand::Stored(layout), None) if !layout.is_row_major() => {
                return Err(wrong(format!("{} is read as it is and can't be stored as {layout}", slot.name)));
            }
            (Operand::Stored(layout), _) => Operand::Stored(bare(layout).ok_or_else(|| DialectError::Layout {
                layout: layout.to_string(),
                why: "its digits spell no axis".to_owned(),
            })?),
            (other, _) => other.clone(),
        });
    }
    Ok(found)
}

/// Whether operand 0 is features, whose layout is part of the name.
fn features(entry: &Entry) -> bool {
    entry.inputs.first().is_some_and(|slot| slot.letters == Some(Letters::Features))
}

/// The rank of operand 0, if its slots say it.
fn rank(entry: &Entry, ins: &[Operand], outs: &[Operand]) -> Result<Option<usize>, DialectError> {
    let all = entry.inputs.iter().zip(ins).chain(entry.outputs.iter().zip(outs));
    let shares = |slot: &Slot| match slot.letters {
        Some(Letters::Features | Letters::Weights | Letters::TransposedWeights) => true,
        // A grid has as many axes as what it is laid over.
        Some(Letters::Neutral) => features(entry),
        _ => false,
    };
    let mut known = None;
    for (slot, layout) in all.filter(|(slot, _)| shares(slot)).filter_map(|(slot, o)| Some((slot, o.layout()?))) {
        let found = layout.rank();
        let (least, most) = entry.ranks;
        let wanted = known.map_or_else(|| format!("{least} to {most}"), |rank: usize| rank.to_string());
        if known.is_some_and(|rank| rank != found) || found < least || found > most {
            let (op, slot) = (entry.op.to_owned(), slot.name.to_owned());
            return Err(DialectError::Rank { op, slot, layout: layout.to_string(), found, wanted });
        }
        known = Some(found);
    }
    Ok(known)
}

/// The name: the op with its number of spatial axes, the layout of operand 0, optional operands that are there, and every
/// layout that is not the usual one beside that of operand 0.
fn name(entry: &Entry, rank: Option<usize>, ins: &[Operand], outs: &[Operand]) -> Result<String, DialectError> {
    let mut name = entry.op.to_owned();
    let given = || ins.first().and_then(Operand::layout).cloned();
    let main = rank.map(|rank| given().unwrap_or_else(|| Layout::row_major(rank)));
    if let Some(main) = &main {
        if entry.dimensional {
            let _ = write!(name, "{}d", main.rank().saturating_sub(2));
        }
        let _ = write!(name, "_{}", spell(main, Letters::Features)?);
    }
    let named = usize::from(main.is_some());
    let sides = entry.inputs.iter().zip(ins).skip(named).chain(entry.outputs.iter().zip(outs));
    for (slot, operand) in sides.filter(|(_, operand)| **operand != Operand::Absent) {
        let spelling = unusual(entry, slot, operand, main.as_ref())?;
        if slot.optional || spelling.is_some() {
            let _ = write!(name, "_{}", slot.name);
        }
        if let Some(spelling) = spelling {
            let _ = write!(name, "_{spelling}");
        }
    }
    Ok(name)
}

/// The layout of an operand that is there, spelled, unless it is the usual one beside operand 0 stored as `main`.
fn unusual(
    entry: &Entry,
    slot: &Slot,
    operand: &Operand,
    main: Option<&Layout>,
) -> Result<Option<String>, DialectError> {
    let Some(letters) = slot.letters else { return Ok(None) };
    let usual = match letters {
        Letters::Features => main.cloned(),
        Letters::Weights | Letters::TransposedWeights => main.and_then(|main| canonical_weight(entry.op, main)),
        _ => None,
    };
    let usual = usual.filter(|layout| !layout.is_row_major());
    if operand.layout() == usual.as_ref() {
        return Ok(None);
    }
    // Only what follows operand 0 has a usual layout, and has its rank.
    let plain = || Layout::row_major(main.map_or(0, Layout::rank));
    spell(&operand.layout().cloned().unwrap_or_else(plain), letters).map(Some)
}
