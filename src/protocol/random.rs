//! Random bytes for ids, fetched from the operating system in blocks: a system call for each id
//! would cost more than the id itself.

use std::cell::RefCell;
use std::mem;

use ring::rand::{SecureRandom, SystemRandom};

/// Number of bytes fetched at a time.
const BLOCK_BYTES: usize = 640;

struct Block {
    bytes: [u8; BLOCK_BYTES],
    /// Number of bytes that have not been handed out yet.
    left: usize,
}

thread_local! {
    static BLOCK: RefCell<Block> = const { RefCell::new(Block { bytes: [0; BLOCK_BYTES], left: 0 }) };
}

/// Returns random bytes that are handed out only once; `None` if the system has none.
pub(super) fn bytes<const N: usize>() -> Option<[u8; N]> {
    BLOCK.with_borrow_mut(Block::take)
}

/// Returns a secret of 244 random bits.
pub fn secret() -> String {
    format!(
        "{}{}",
        uuid::Uuid::new_v4().simple(),
        uuid::Uuid::new_v4().simple()
    )
}

impl Block {
    fn take<const N: usize>(&mut self) -> Option<[u8; N]> {
        if self.left < N {
            self.left = 0;
            SystemRandom::new().fill(&mut self.bytes).ok()?;
            self.left = BLOCK_BYTES;
        }
        let (rest, last) = self.bytes.get_mut(..self.left)?.split_last_chunk_mut()?;
        self.left = rest.len();
        // Bytes that were handed out are overwritten.
        Some(mem::replace(last, [0; N]))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn no_bytes_are_handed_out_twice() {
        let all: HashSet<[u8; 10]> = (0..1000).map(|_| bytes().unwrap()).collect();
        assert_eq!(all.len(), 1000);
        assert!(
            all.iter().all(|bytes| *bytes != [0; 10]),
            "nothing that was handed out before"
        );
        let odd: HashSet<[u8; 7]> = (0..1000).map(|_| bytes().unwrap()).collect();
        assert_eq!(odd.len(), 1000);
    }

    #[test]
    fn what_was_handed_out_is_wiped() {
        let mut block = Block {
            bytes: [0; BLOCK_BYTES],
            left: 0,
        };
        block.take::<10>().unwrap();
        assert_eq!(
            (&block.bytes[BLOCK_BYTES - 10..], block.left),
            (&[0; 10][..], BLOCK_BYTES - 10)
        );
    }
}
