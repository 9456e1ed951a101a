//! Attributes that a file says though the standard has the same without them. Other tools write all of them out.

use crate::files::model::Attr;

/// Numbers that are the default of every op of the standard that has an attribute of this name.
const NUMBERS: &[(&str, i64)] = &[
    ("allowzero", 0),
    ("batch_dims", 0),
    ("center_point_box", 0),
    ("detect_negative", 1),
    ("detect_positive", 1),
    ("exclusive", 0),
    ("input_forget", 0),
    ("keepdims", 1),
    ("largest", 1),
    ("layout", 0),
    ("linear_before_reset", 0),
    ("noop_with_empty_axes", 0),
    ("reverse", 0),
    ("saturate", 1),
    ("select_last_index", 0),
    ("sorted", 1),
    ("start", 0),
];

/// Whether an attribute of an op of the standard says what holds without it.
pub(crate) fn is_default(name: &str, attr: &Attr) -> bool {
    match attr {
        Attr::Int(value) => NUMBERS.contains(&(name, *value)),
        Attr::Text(text) => name == "direction" && text == b"forward",
        _ => false,
    }
}
