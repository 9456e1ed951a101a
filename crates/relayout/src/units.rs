//! Bytes and times as reports, pages and messages write them.

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
