//! Compact names: one string without spaces, as people, oneDNN, TVM and MegEngine write it.
//!
//! Grammar: a letter alone is the outermost digit of its axis, a number and a letter a block (`16c`), in storage order.
//! Blocks of one axis come coarse before fine, as oneDNN has them. So `NCHW16c` (TVM), `aBcd16b` and `nChw16c` (oneDNN,
//! which marks blocked axes by capitals) and `NCHW2n4c` are all read the same way, whatever the case. MegEngine puts
//! the number last: `NHCWc4`, `CHWN4`, `NCHW32`; a number without a letter is a block of C.

use super::LayoutError;
use super::parse::{Word, error, number};

/// MegEngine's names of CPU layouts, where the digit of the block is doubled.
const DOUBLED: &[(&str, &str)] = &[("NCHW44", "NCHW4c"), ("NCHW88", "NCHW8c")];

pub(super) fn compact_words(text: &str) -> Result<Vec<Word>, LayoutError> {
    let spelled = DOUBLED.iter().find(|(name, _)| *name == text).map_or(text, |(_, spelled)| spelled);
    let mut tokens: Vec<(String, Option<u64>)> = Vec::new();
    let mut rest = spelled;
    while !rest.is_empty() {
        let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
        let (block, after) = rest.split_at(digits);
        let block = if block.is_empty() {
            None
        } else {
            Some(number(block).ok_or_else(|| error(text, "a block is too large"))?)
        };
        let Some(letter) = after.chars().next() else {
            trailing_block(text, &mut tokens, block)?;
            break;
        };
        if !letter.is_ascii_alphabetic() {
            return Err(error(text, format!("`{letter}` is not an axis; write letters, and blocks as in NCHW16c")));
        }
        tokens.push((letter.to_ascii_uppercase().to_string(), block));
        rest = &after[letter.len_utf8()..];
    }
    if tokens.is_empty() {
        return Err(error(text, "is empty; write NCHW, or `scalar` for rank 0"));
    }
    words(text, tokens)
}

/// A number at the end: the block of the letter before it if that is the axis' second mention (`NHCWc4`), else of C.
fn trailing_block(text: &str, tokens: &mut Vec<(String, Option<u64>)>, block: Option<u64>) -> Result<(), LayoutError> {
    let repeated = match tokens.split_last() {
        Some(((name, None), before)) => before.iter().any(|(have, _)| have == name),
        _ => false,
    };
    match tokens.last_mut() {
        Some(last) if repeated => {
            last.1 = block;
            return Ok(());
        }
        _ => {}
    }
    if !tokens.iter().any(|(name, _)| name == "C") {
        return Err(error(text, "ends in a block without an axis; write it as in NCHW16c"));
    }
    tokens.push(("C".to_owned(), block));
    Ok(())
}

fn words(text: &str, tokens: Vec<(String, Option<u64>)>) -> Result<Vec<Word>, LayoutError> {
    let mut words: Vec<Word> = Vec::with_capacity(tokens.len());
    for (name, modulo) in tokens {
        words.push(Word { name, div: 1, modulo, segments: Vec::new() });
    }
    // From the finest block outwards: each digit spans what the later ones of its axis hold.
    for at in (0..words.len()).rev() {
        let mut finer = words.iter().enumerate().filter(|(other, word)| {
            word.name == words[at].name && word.modulo.is_some() && (words[at].modulo.is_none() || *other > at)
        });
        let div = finer.try_fold(1u64, |div, (_, word)| div.checked_mul(word.modulo.unwrap_or(1)));
        words[at].div = div.ok_or_else(|| error(text, "a block is too large"))?;
    }
    Ok(words)
}
