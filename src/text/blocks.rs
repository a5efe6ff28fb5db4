//! Blocks of 64 bytes of a text, and masks with one bit for each byte of a block.
//!
//! In prose, a word ends about every five bytes, so a branch for each byte would often be
//! mispredicted. Each byte is therefore tested without a branch, in loops of fixed length that the
//! compiler turns into vector code, and only set bits are visited.

/// Number of bytes in a block.
pub(crate) const BLOCK: usize = 64;
/// One block of a text. The last block of a text is padded with zeros.
pub(crate) type Block = [u8; BLOCK];

/// Returns the first block of `bytes`.
#[inline]
pub(crate) fn first(bytes: &[u8]) -> Block {
    bytes.first_chunk().copied().unwrap_or_else(|| {
        let mut last = [0; BLOCK];
        last.iter_mut()
            .zip(bytes)
            .for_each(|(to, byte)| *to = *byte);
        last
    })
}

/// Returns all blocks of a text, in order.
#[inline]
pub(crate) fn all(bytes: &[u8]) -> impl Iterator<Item = Block> {
    bytes.chunks(BLOCK).map(first)
}

/// Returns a mask with the bits of the bytes of a kind set.
#[inline]
pub(crate) fn mask(block: &Block, of_kind: impl Fn(u8) -> bool) -> u64 {
    let mut flags = [0; BLOCK];
    flags
        .iter_mut()
        .zip(block)
        .for_each(|(flag, byte)| *flag = u8::from(of_kind(*byte)));
    // Eight flags become eight bits by one multiplication.
    let bits =
        |flags: &[u8; 8]| u64::from_le_bytes(*flags).wrapping_mul(0x0102_0408_1020_4080) >> 56;
    flags
        .as_chunks()
        .0
        .iter()
        .enumerate()
        .fold(0, |mask, (nth, flags)| mask | bits(flags) << (nth * 8))
}

/// Returns the byte that follows each byte of a block; zero for the last one.
#[inline]
pub(crate) fn followers(block: &Block) -> Block {
    let mut followers = *block;
    followers.copy_within(1.., 0);
    if let Some(last) = followers.last_mut() {
        *last = 0;
    }
    followers
}

/// Counts the bytes of a kind.
#[inline]
pub(crate) fn count(block: &Block, of_kind: impl Fn(u8) -> bool) -> u8 {
    block
        .iter()
        .fold(0, |sum, byte| sum + u8::from(of_kind(*byte)))
}

/// Reports whether a byte is of a kind.
#[inline]
pub(crate) fn any(block: &Block, of_kind: impl Fn(u8) -> bool) -> bool {
    block.iter().fold(false, |any, byte| any | of_kind(*byte))
}

/// Returns a mask of all bits below `bit`.
#[inline]
pub(crate) const fn below(bit: u32) -> u64 {
    if bit < u64::BITS {
        (1 << bit) - 1
    } else {
        u64::MAX
    }
}

/// Iterates over the set bits of a mask, from the lowest.
#[inline]
pub(crate) fn bits(mut mask: u64) -> impl Iterator<Item = u32> + Clone {
    std::iter::from_fn(move || {
        let bit = mask.trailing_zeros();
        mask &= mask.wrapping_sub(1);
        (bit < u64::BITS).then_some(bit)
    })
}

/// Iterates over the set bits of two masks in step, as long as the first has bits: the starts and
/// the ends of runs.
#[inline]
pub(crate) fn pairs(mut starts: u64, mut ends: u64) -> impl Iterator<Item = (u32, u32)> + Clone {
    std::iter::from_fn(move || {
        let pair = (starts.trailing_zeros(), ends.trailing_zeros());
        starts &= starts.wrapping_sub(1);
        ends &= ends.wrapping_sub(1);
        (pair.0 < u64::BITS).then_some(pair)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn masks_have_a_bit_for_each_byte_of_a_kind() {
        let text: Vec<u8> = (0..=255).chain(0..77).collect();
        for of_kind in [u8::is_ascii_digit, u8::is_ascii_uppercase, u8::is_ascii] {
            let masks: Vec<u64> = all(&text)
                .map(|block| mask(&block, |byte| of_kind(&byte) && byte != 0))
                .collect();
            let set = masks
                .iter()
                .enumerate()
                .flat_map(|(nth, mask)| bits(*mask).map(move |bit| nth * BLOCK + bit as usize));
            let expected = (0..text.len()).filter(|at| {
                text.get(*at)
                    .is_some_and(|byte| of_kind(byte) && *byte != 0)
            });
            assert!(set.eq(expected));
        }
        let block = first(b"a1b2");
        assert_eq!(count(&block, |byte| byte.is_ascii_digit()), 2);
        assert!(any(&block, |byte| byte == b'b') && !any(&block, |byte| byte == b'c'));
        assert_eq!((below(0), below(3), below(64)), (0, 7, u64::MAX));
    }
}
