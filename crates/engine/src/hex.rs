//! Bytes as hexadecimal text.

/// Two digits for each byte.
pub fn encode(bytes: &[u8]) -> String {
    let digit = |nibble: u8| char::from(b"0123456789abcdef"[usize::from(nibble)]);
    bytes.iter().flat_map(|byte| [digit(byte >> 4), digit(byte & 0xf)]).collect()
}

/// The bytes of a text that has two digits for each; `None` for any other text.
pub fn decode<const N: usize>(text: &str) -> Option<[u8; N]> {
    let (pairs, []) = text.as_bytes().as_chunks::<2>() else { return None };
    let byte = |[high, low]: [u8; 2]| {
        let digit = |digit: u8| char::from(digit).to_digit(16);
        Some((digit(high)? << 4 | digit(low)?) as u8)
    };
    let bytes: Option<Vec<u8>> = pairs.iter().copied().map(byte).collect();
    bytes?.try_into().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_byte_has_two_digits() {
        assert_eq!(encode(&[0x00, 0x0f, 0xa0, 0xff]), "000fa0ff");
        assert_eq!(encode(&[]), "");
    }

    #[test]
    fn digits_are_read_back_and_nothing_else_is() {
        assert_eq!(decode("000fA0ff"), Some([0x00, 0x0f, 0xa0, 0xff]));
        for wrong in ["000fa0f", "000fa0ff0", "000fa0fff0", "+00fa0ff", "000fa0f\u{e9}", ""] {
            assert_eq!(decode::<4>(wrong), None, "{wrong}");
        }
    }
}
