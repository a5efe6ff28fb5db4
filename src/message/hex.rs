//! Encodes bytes as lowercase hexadecimal digits, and decodes them.

/// Encodes bytes as two digits each.
pub fn hex(bytes: &[u8]) -> String {
    let digits = bytes.iter().flat_map(|byte| [byte >> 4, byte & 15]);
    digits
        .filter_map(|digit| char::from_digit(digit.into(), 16))
        .collect()
}

/// Decodes exactly `2 * N` digits.
pub fn unhex<const N: usize>(text: &str) -> Option<[u8; N]> {
    let digit = |byte: u8| match byte {
        b'0'..=b'9' => Some(byte - b'0'),
        b'a'..=b'f' => Some(byte - b'a' + 10),
        _ => None,
    };
    let mut out = [0; N];
    if text.len() != N * 2 {
        return None;
    }
    for (byte, pair) in out.iter_mut().zip(text.as_bytes().chunks_exact(2)) {
        let [high, low] = pair else { return None };
        *byte = digit(*high)? << 4 | digit(*low)?;
    }
    Some(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digits_are_read_back() {
        let bytes = [0, 9, 10, 0x9f, 0xff];
        assert_eq!(hex(&bytes), "00090a9fff");
        assert_eq!(unhex(&hex(&bytes)), Some(bytes));
        for malformed in ["", "0", "000", "0G", "FF", "é"] {
            assert_eq!(unhex::<1>(malformed), None, "{malformed}");
        }
    }
}
