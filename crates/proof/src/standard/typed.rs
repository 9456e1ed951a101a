//! Which types of elements operands may have, by opset: what a runtime holds a file to before it loads it. `types.txt` is data that
//! `tools/make_operators.py` takes from the schemas of the standard and of ONNX Runtime.

use crate::standard::schema::Table;
use std::sync::LazyLock;

/// What an operand may be.
#[derive(Clone, Copy)]
enum Operand {
    Any,
    /// One of these types, bit by bit.
    OneOf(u64),
    /// The type of the operand with this number.
    Like(usize),
}

struct OperandTypes {
    operands: Vec<Operand>,
    /// Whether the last operand stands for all that follow.
    many: bool,
}

static TYPES: LazyLock<Table<OperandTypes>> = LazyLock::new(|| Table::read(include_str!("types.txt"), form));

fn form(words: &[&'static str]) -> OperandTypes {
    let operands = words.first().copied().unwrap_or("-");
    let many = operands.ends_with('*');
    OperandTypes { operands: operands.trim_end_matches('*').split(',').map(operand).collect(), many }
}

fn operand(word: &str) -> Operand {
    let one = |letter: u8| 1_u64 << (letter.wrapping_sub(b'a') & 63);
    match word.strip_prefix('=') {
        Some(number) => number.parse().map_or(Operand::Any, Operand::Like),
        None if word == "-" => Operand::Any,
        None => Operand::OneOf(word.bytes().fold(0, |all, letter| all | one(letter))),
    }
}

/// Why operands of these types of elements are none of an operator; `None` if they may be. `None` among them is an operand that is
/// absent, and 0 a type that the checker does not know, of which nothing is said.
pub(crate) fn fault(domain: &str, op: &str, opset: i64, dtypes: &[Option<u8>]) -> Option<String> {
    let form = TYPES.form(domain, op, opset)?;
    let dtype = |at: usize| dtypes.get(at)?.filter(|dtype| *dtype != 0);
    let last = form.operands.len().checked_sub(1)?;
    let right = |at: &usize| {
        let Some(own) = dtype(*at) else { return true };
        let repeated = form.many && *at >= last;
        match form.operands.get(if repeated { last } else { *at }) {
            Some(Operand::OneOf(types)) => {
                let first = if repeated { dtype(last) } else { None };
                types.checked_shr(u32::from(own) - 1).is_some_and(|types| types & 1 == 1)
                    && first.is_none_or(|first| first == own)
            }
            Some(Operand::Like(other)) => dtype(*other).is_none_or(|other| other == own),
            Some(Operand::Any) | None => true,
        }
    };
    let at = (0..dtypes.len()).find(|at| !right(at))?;
    Some(format!("operand {at} has a type of elements that opset {opset} does not let it have"))
}
