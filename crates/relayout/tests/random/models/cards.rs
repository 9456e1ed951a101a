//! What is dealt to random models so that none of the ops of the table stays rare: a card is a case of an op, or a family of steps.
//!
//! A goal is a row of the histogram with the cards that raise it. A deck deals the cards of the goals that are furthest behind for
//! the operator sets that are left to reach them in, each time another of a goal's cards. It looks at nothing but what the
//! models before counted, so that the same seed deals the same.

use crate::dice::Dice;
use crate::models::absent;
use crate::models::graft::graft;
use crate::models::histogram::{Histogram, SEGMENTS, SPELLINGS, entry_row, opset_row, segment_row, spelling_row};
use crate::models::ops::{DEALT, FEATURED};
use crate::models::sketch::{Id, MOST_FACTORS, Sketch, element_type};
use crate::op_cases::{self, case::Case};
use relayout::ir::op::{OpDef, WRITTEN_OPSET, entries};
use relayout_onnx::proto::tensor_proto::DataType;
use relayout_verify::{Data, Level, ModelSource, run};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

/// The oldest operator set that ONNX Runtime has kernels for.
pub(crate) const OLDEST: i64 = 7;

/// Most cards of one model.
const HAND: usize = 20;

/// What a model is dealt.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Card {
    /// A case of an op, by its number.
    Case(usize),
    /// A family of [`DEALT`], by its number.
    Family(usize),
    /// A family of [`FEATURED`], by its number.
    Featured(usize),
}

impl Card {
    /// Adds what it stands for; the last value that it made.
    pub(crate) fn play(self, s: &mut Sketch, dice: &mut Dice<'_>) -> Option<Id> {
        match self {
            Card::Case(at) => graft(s, dice, cases().get(at)?, &made(at, s.opset)?),
            Card::Family(at) => (DEALT.get(at)?.2)(s, dice),
            Card::Featured(at) => (FEATURED.get(at)?.1)(s, dice),
        }
    }
}

pub(crate) fn cases() -> &'static [Case] {
    static CASES: OnceLock<Vec<Case>> = OnceLock::new();
    CASES.get_or_init(op_cases::all)
}

/// A result of a case.
#[derive(Clone, Debug)]
pub(crate) struct Made {
    pub(crate) dtype: DataType,
    pub(crate) shape: Vec<i64>,
    /// The largest magnitude of its elements.
    largest: f64,
}

impl Made {
    /// As how many factors it counts; more than are allowed where an element is not finite, so that no op reads it.
    pub(crate) fn factors(&self) -> u32 {
        if self.largest < 1e3 { 1 + self.largest.max(1.0).log2() as u32 } else { MOST_FACTORS + 1 }
    }
}

/// What ONNX Runtime makes of a case; `None` if it has no kernel at this operator set.
pub(crate) fn made(case: usize, opset: i64) -> Option<Arc<[Made]>> {
    type Known = BTreeMap<(usize, i64), Option<Arc<[Made]>>>;
    static KNOWN: Mutex<Known> = Mutex::new(Known::new());
    if let Some(known) = KNOWN.lock().unwrap_or_else(PoisonError::into_inner).get(&(case, opset)) {
        return known.clone();
    }
    let found = cases().get(case).and_then(|case| {
        let bytes = prost::Message::encode_to_vec(&case.model(if case.domain.is_empty() { opset } else { 1 }));
        let results = run(crate::common::runtime(), ModelSource::Bytes(&bytes), &case.feeds(), Level::Disabled).ok()?;
        let one = |t: &relayout_verify::Tensor| Made {
            dtype: element_type(t.data()),
            shape: t.shape().to_vec(),
            largest: match t.data() {
                Data::F32(v) => {
                    v.iter().fold(0.0, |most, &x| if x.is_finite() { most.max(f64::from(x.abs())) } else { f64::MAX })
                }
                _ => 0.0,
            },
        };
        Some(results.iter().map(one).collect())
    });
    KNOWN.lock().unwrap_or_else(PoisonError::into_inner).insert((case, opset), found.clone());
    found
}

/// A row of the histogram, with the cards that raise it and the operator sets in which each does.
struct Goal {
    row: String,
    cards: Vec<(Card, (i64, i64))>,
}

impl Goal {
    fn new(row: String, cards: impl IntoIterator<Item = (Card, (i64, i64))>) -> Goal {
        let cards = cards.into_iter().map(|(card, (a, b))| (card, (a.max(OLDEST), b.min(WRITTEN_OPSET))));
        Goal { row, cards: cards.filter(|(_, (a, b))| a <= b).collect() }
    }

    /// In how many operator sets it has a card.
    fn span(&self) -> usize {
        (OLDEST..=WRITTEN_OPSET).filter(|v| self.cards.iter().any(|(_, (a, b))| (a..=b).contains(&v))).count()
    }

    /// A card for this operator set, another one for another `turn`.
    fn card(&self, opset: i64, turn: usize) -> Option<Card> {
        let fitting: Vec<Card> =
            self.cards.iter().filter(|(_, (a, b))| (*a..=*b).contains(&opset)).map(|c| c.0).collect();
        let mut turned = (0..fitting.len()).map(|i| fitting[(i + turn) % fitting.len()]);
        turned.find(|card| match card {
            Card::Case(at) => made(*at, opset).is_some(),
            Card::Family(_) | Card::Featured(_) => true,
        })
    }
}

fn within(a: (i64, i64), b: (i64, i64)) -> (i64, i64) {
    (a.0.max(b.0), a.1.min(b.1))
}

fn of_entry(def: &OpDef) -> Goal {
    let own = (0..).zip(cases()).filter(|(_, c)| (c.domain, c.op) == (def.domain, def.name));
    let everywhere = (OLDEST, WRITTEN_OPSET);
    let range = |c: &Case| if def.domain.is_empty() { within(c.opsets, def.opsets) } else { everywhere };
    let families = (0..).zip(DEALT).filter(|(_, (op, ..))| def.domain.is_empty() && *op == def.name);
    let families = families.map(|(i, (_, first, _))| (Card::Family(i), within((*first, WRITTEN_OPSET), def.opsets)));
    Goal::new(entry_row(def), own.map(|(i, c)| (Card::Case(i), range(c))).chain(families))
}

fn goals() -> Vec<Goal> {
    let entries = entries().filter(|def| absent::reason(def).is_none()).map(of_entry);
    let spellings = SPELLINGS.iter().flat_map(|spelling| {
        [true, false].map(|old| {
            let own = (0..).zip(cases()).filter(|(_, c)| c.domain.is_empty() && c.op == spelling.op);
            let spelled = own.filter(|(_, c)| {
                let attr = c.attrs.iter().any(|a| a.name.as_deref() == Some(spelling.attr));
                let operand = c.operands.get(spelling.slot).is_some_and(Option::is_some);
                if old { attr } else { operand && !attr }
            });
            Goal::new(spelling_row(spelling, old), spelled.map(|(i, c)| (Card::Case(i), c.opsets)))
        })
    });
    let everywhere = (OLDEST, WRITTEN_OPSET);
    let segments = SEGMENTS.iter().map(|op| {
        let own = (0..).zip(FEATURED).filter(|(_, (of, _))| of == op);
        Goal::new(segment_row(op), own.map(|(i, _)| (Card::Featured(i), everywhere)))
    });
    entries.chain(spellings).chain(segments).collect()
}

/// Deals until every goal was counted so many times.
pub(crate) struct Deck {
    goals: Vec<(usize, Goal)>,
    least: usize,
    turn: usize,
}

impl Deck {
    pub(crate) fn new(least: usize, seed: u64) -> Deck {
        Deck { goals: goals().into_iter().map(|g| (g.span(), g)).collect(), least, turn: seed as usize % 1009 }
    }

    /// One that deals for these rows alone, every time.
    pub(crate) fn only(rows: &[String], seed: u64) -> Deck {
        let mut deck = Deck::new(1 << 20, seed);
        deck.goals.retain(|(_, goal)| rows.contains(&goal.row));
        deck
    }

    /// The rows that it deals for.
    pub(crate) fn rows(&self) -> impl Iterator<Item = &str> {
        self.goals.iter().map(|(_, goal)| goal.row.as_str())
    }

    /// The operator set and the cards of the next model, by what was counted so far.
    pub(crate) fn deal(&mut self, counted: &Histogram) -> (i64, Vec<Card>) {
        self.turn += 1;
        let versions = (OLDEST + WRITTEN_OPSET) as usize;
        let behind = |v: &i64| (counted.count(&opset_row(*v)), (*v as usize * 7 + self.turn * 3) % versions);
        let opset = (OLDEST..=WRITTEN_OPSET).min_by_key(behind).unwrap_or(WRITTEN_OPSET);
        let n = self.goals.len();
        // What is missing per operator set that can bring it, in thousandths.
        let mut open: Vec<(usize, usize, usize)> = Vec::new();
        for (i, (span, goal)) in self.goals.iter().enumerate() {
            let missing = self.least.saturating_sub(counted.count(&goal.row));
            if missing > 0 && goal.cards.iter().any(|(_, (a, b))| (*a..=*b).contains(&opset)) {
                open.push((missing * 1000 / span.max(&1), (i * 31 + self.turn * 17) % n, i));
            }
        }
        open.sort_unstable_by(|a, b| b.cmp(a));
        let mut hand = Vec::new();
        for (_, _, i) in open {
            let (span, goal) = &self.goals[i];
            let copies = if *span <= 2 { 2 } else { 1 };
            let turn = counted.count(&goal.row) + self.turn;
            hand.extend((0..copies).filter_map(|k| goal.card(opset, turn + k)));
            if hand.len() >= HAND {
                break;
            }
        }
        (opset, hand)
    }
}
