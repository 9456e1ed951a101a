//! Bytes, times and counts as reports, pages and messages write them.

use std::time::Duration;

/// Bytes with a unit: whole below 10,000, then kB (1,000 bytes), from a million on MB, with one digit.
///
/// ```
/// assert_eq!(relayout::units::bytes(1_179_600), "1.2 MB");
/// ```
#[must_use]
pub fn bytes(n: u64) -> String {
    match n {
        0..10_000 => format!("{n} B"),
        10_000..1_000_000 => format!("{:.1} kB", n as f64 / 1e3),
        _ => format!("{:.1} MB", n as f64 / 1e6),
    }
}

/// Nanoseconds with a unit: ns below 1,000, then us, from a million on ms, with one digit.
#[must_use]
pub fn time(ns: u64) -> String {
    match ns {
        0..1000 => format!("{ns} ns"),
        1000..1_000_000 => format!("{:.1} us", ns as f64 / 1e3),
        _ => format!("{:.1} ms", ns as f64 / 1e6),
    }
}

/// How long something took, as [`time`] writes it.
#[must_use]
pub fn elapsed(took: Duration) -> String {
    time(u64::try_from(took.as_nanos()).unwrap_or(u64::MAX))
}

/// Numbers of elements: whole below 100,000, then in millions with one digit.
#[must_use]
pub fn elements(n: u64) -> String {
    if n < 100_000 { format!("{n} elements") } else { format!("{:.1} M elements", n as f64 / 1e6) }
}

/// A difference of bytes with its sign, as [`bytes`] writes them.
pub(crate) fn signed_bytes(n: i64) -> String {
    format!("{}{}", if n < 0 { '-' } else { '+' }, bytes(n.unsigned_abs()))
}

/// A difference of nanoseconds with its sign, as [`time`] writes them.
pub(crate) fn signed_time(ns: i64) -> String {
    format!("{}{}", if ns < 0 { '-' } else { '+' }, time(ns.unsigned_abs()))
}
