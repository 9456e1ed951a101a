//! What a random model is made from. Numbers shrink towards 0, which every choice reads as its simplest option.

use crate::dice::Dice;
use crate::models::cards::Card;
use crate::models::ops;
use crate::models::sketch::{Id, Sketch};
use proptest::prelude::*;

/// A random model.
#[derive(Clone, Debug)]
pub(crate) struct Recipe {
    /// Operator set.
    pub(crate) opset: i64,
    /// IR version 3, where initializers are inputs too; only below opset 10.
    pub(crate) old_ir: bool,
    /// Symbolic dims of the first input: which axis (0 is drawn most), and its extent in the run. None: all are numbers.
    pub(crate) symbols: Vec<(u16, i64)>,
    /// Shapes of the inputs.
    pub(crate) inputs: Vec<Vec<i64>>,
    /// How the graph grows.
    pub(crate) steps: Vec<Step>,
    /// Which values become outputs beside those that nobody reads.
    pub(crate) outputs: Vec<u16>,
}

/// One op or a few.
#[derive(Clone, Debug)]
pub(crate) struct Step {
    /// Which family, or the card that was dealt.
    pub(crate) kind: Kind,
    /// Its choices, in the order in which they are made.
    pub(crate) choices: Vec<u16>,
}

/// What a step adds.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Kind {
    /// A family that is drawn, by a number.
    Drawn(u16),
    /// What was dealt.
    Dealt(Card),
}

impl Step {
    /// Adds what it stands for; the last value that it made.
    pub(crate) fn play(&self, s: &mut Sketch, dice: &mut Dice<'_>) -> Option<Id> {
        match self.kind {
            Kind::Drawn(number) => ops::family(number)(s, dice),
            Kind::Dealt(card) => card.play(s, dice),
        }
    }
}

fn extent() -> impl Strategy<Value = i64> {
    prop_oneof![3 => Just(2i64), 3 => Just(3), 2 => Just(1), 2 => Just(4), 1 => Just(5), 1 => Just(7)]
}

fn small() -> impl Strategy<Value = i64> {
    prop_oneof![2 => Just(2i64), 1 => Just(3), 2 => Just(1)]
}

fn shape() -> impl Strategy<Value = Vec<i64>> {
    prop_oneof![
        10 => prop::collection::vec(extent(), 4),
        4 => prop::collection::vec(extent(), 3),
        2 => prop::collection::vec(extent(), 2),
        2 => prop::collection::vec(small(), 5),
        2 => prop::collection::vec(small(), 6),
        2 => prop::collection::vec(extent(), 1),
        1 => Just(vec![]),
    ]
}

fn choices() -> impl Strategy<Value = Vec<u16>> {
    prop::collection::vec(any::<u16>(), 0..14)
}

fn drawn() -> impl Strategy<Value = Step> {
    (any::<u16>(), choices()).prop_map(|(number, choices)| Step { kind: Kind::Drawn(number), choices })
}

/// A card that was dealt; it shrinks to no step.
fn dealt(card: Card) -> impl Strategy<Value = Option<Step>> {
    let step = choices().prop_map(move |choices| Step { kind: Kind::Dealt(card), choices });
    (prop::bool::weighted(1.0), step).prop_map(|(kept, step)| kept.then_some(step))
}

/// The steps that are drawn, with those that are dealt evenly among them.
fn mixed(drawn: Vec<Step>, dealt: Vec<Option<Step>>) -> Vec<Step> {
    let (n, cards) = (drawn.len(), dealt.len());
    let mut placed: Vec<(usize, Step)> = (0..).zip(drawn).map(|(i, step)| (i * 2 * cards.max(1), step)).collect();
    let cards = (0..).zip(dealt).filter_map(|(i, step)| Some(((i * 2 + 1) * n, step?)));
    placed.extend(cards);
    placed.sort_by_key(|(place, _)| *place);
    placed.into_iter().map(|(_, step)| step).collect()
}

/// Random models of this operator set: what was dealt, and 3 to 11 steps that are drawn.
pub(crate) fn recipes(opset: i64, hand: Vec<Card>) -> impl Strategy<Value = Recipe> {
    (
        any::<bool>(),
        prop_oneof![
            2 => Just(vec![]),
            2 => prop::collection::vec((Just(0u16), 1i64..4), 1),
            2 => prop::collection::vec((any::<u16>(), 1i64..6), 1..4),
        ],
        prop::collection::vec(shape(), 1..3),
        prop::collection::vec(drawn(), 3..12),
        hand.into_iter().map(dealt).collect::<Vec<_>>(),
        prop::collection::vec(any::<u16>(), 0..3),
    )
        .prop_map(move |(old, symbols, inputs, drawn, dealt, outputs)| Recipe {
            opset,
            old_ir: old && opset < 10,
            symbols,
            inputs,
            steps: mixed(drawn, dealt),
            outputs,
        })
}
