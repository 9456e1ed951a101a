//! placeholder
/// x
pub fn markdown() -> String { String::new() }
