//! Division by a number that is known only when the kernel is started: a multiplication, an addition and a shift.
//!
//! For a divisor d of w bits and n below 2^(w-1): with s the least such that 2^s >= d, and m = floor(2^w (2^s - d) / d) + 1, the
//! quotient is (high(n m) + n) >> s, high being the upper w bits of the product. (Granlund and Montgomery, Division by Invariant
//! Integers using Multiplication, 1994, figure 4.1; with n below 2^(w-1) the addition cannot overflow.)

/// Multiplier and shift that divide by `divisor`, which is not 0, for dividends below 2^31 (`bits` 32) or 2^63 (`bits` 64).
pub(super) fn magic(divisor: u64, bits: u32) -> (u64, u32) {
    let divisor = u128::from(divisor.max(1));
    let shift = (divisor - 1).checked_ilog2().map_or(0, |log| log + 1);
    let multiplier = ((((1_u128 << shift) - divisor) << bits) / divisor) + 1;
    // For a power of two this is 1, which adds nothing to the high half.
    (multiplier as u64, shift)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::magic;

    fn quotient(n: u64, divisor: u64, bits: u32) -> u64 {
        let (multiplier, shift) = magic(divisor, bits);
        if bits == 32 {
            let (n, multiplier) = (n as u32, u32::try_from(multiplier).expect("fits the width"));
            let high = ((u64::from(n) * u64::from(multiplier)) >> 32) as u32;
            return u64::from((high + n) >> shift);
        }
        let high = ((u128::from(n) * u128::from(multiplier)) >> 64) as u64;
        (high + n) >> shift
    }

    #[test]
    fn quotients_are_exact_at_the_edges() {
        for bits in [32, 64] {
            let top = (1_u64 << (bits - 1)) - 1;
            let divisors = [1, 2, 3, 5, 7, 31, 32, 33, 641, 65_535, 65_536, 65_537, top / 2 + 1, top - 1, top];
            for divisor in divisors {
                let around =
                    (0..3).flat_map(|i| [divisor.saturating_sub(i), divisor + i, top - i, top / divisor * divisor]);
                for n in around.chain([0, 1, (top / divisor * divisor).saturating_sub(1)]).filter(|&n| n <= top) {
                    assert_eq!(quotient(n, divisor, bits), n / divisor, "{n} / {divisor} in {bits} bits");
                }
            }
        }
    }

    proptest! {
        #[test]
        fn quotients_are_exact(n in 0_u64..1 << 63, divisor in 1_u64..1 << 63, down in 0_u32..62) {
            let divisor = (divisor >> down).max(1);
            prop_assert_eq!(quotient(n, divisor, 64), n / divisor);
            let (n, divisor) = (n >> 32, (divisor >> 32).max(1));
            prop_assert_eq!(quotient(n, divisor, 32), n / divisor);
        }
    }
}
