//! Formats numbers and digests as ASCII digits. Each audit line has a dozen of them, and `std::fmt`
//! takes several times as long.

use super::chain::Sha;

const DECIMALS: usize = 20;

/// A whole number in decimal digits.
pub(super) struct Decimal {
    digits: [u8; DECIMALS],
    from: usize,
}

impl Decimal {
    pub(super) fn new(number: u64) -> Self {
        let mut decimal = Self {
            digits: [b'0'; DECIMALS],
            from: DECIMALS,
        };
        let mut rest = number;
        for digit in decimal.digits.iter_mut().rev() {
            *digit += u8::try_from(rest % 10).unwrap_or(0);
            decimal.from -= 1;
            rest /= 10;
            if rest == 0 {
                break;
            }
        }
        decimal
    }

    pub(super) fn as_bytes(&self) -> &[u8] {
        self.digits.get(self.from..).unwrap_or_default()
    }

    pub(super) fn as_str(&self) -> &str {
        std::str::from_utf8(self.as_bytes()).unwrap_or_default()
    }
}

/// A digest in lower-case hexadecimal digits.
pub(super) struct Hex([u8; 64]);

impl Hex {
    pub(super) fn new(sha: &Sha) -> Self {
        let digit = |nibble: u8| {
            if nibble < 10 {
                b'0' + nibble
            } else {
                b'a' - 10 + nibble
            }
        };
        let mut digits = [0; 64];
        for ([high, low], byte) in digits.as_chunks_mut().0.iter_mut().zip(sha) {
            (*high, *low) = (digit(byte >> 4), digit(byte & 15));
        }
        Self(digits)
    }

    pub(super) fn as_str(&self) -> &str {
        std::str::from_utf8(&self.0).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digits_are_those_of_fmt() {
        for number in [0, 7, 10, 999, 1000, 1_234_567_890, u64::MAX - 1, u64::MAX] {
            assert_eq!(Decimal::new(number).as_str(), number.to_string());
        }
        let sha: Sha = std::array::from_fn(|n| u8::try_from(n * 8 + n % 3).unwrap());
        let expected: String = sha.iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(Hex::new(&sha).as_str(), expected);
        assert_eq!(Hex::new(&[0xff; 32]).as_str(), "f".repeat(64));
    }
}
