//! The file that weights are kept in, all numbers little-endian: `lychgate weights 1\n`; a name, padded with blanks to 16
//! bytes; bias and scale (64 bits each) in points times 2^16; how many weights (32 bits); the hashes (32 bits), ascending;
//! the weights (8 bits, signed); SHA-256 of all before.

use sha2::{Digest, Sha256};

use super::{Model, place};
use crate::message::hex;

/// Largest file of weights, in bytes.
pub const FILE_BYTES: usize = 1 << 20;

const MAGIC: &[u8] = b"lychgate weights 1\n";
const NAME_BYTES: usize = 16;
const DIGEST_BYTES: usize = 32;
/// Bytes of the digest that are part of the version.
const SHOWN_BYTES: usize = 6;
/// Most points of one weight, or of none, times 2^16.
const MOST: i64 = 1000 << super::FRACTION;

impl Model {
    /// Reads a file of weights.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn read(bytes: &[u8]) -> Result<Self, String> {
        if bytes.len() > FILE_BYTES {
            return Err(format!("larger than {FILE_BYTES} bytes"));
        }
        let (body, digest) = bytes.split_last_chunk::<DIGEST_BYTES>().ok_or("not a file of weights: too short")?;
        let rest = body.strip_prefix(MAGIC).ok_or("not a file of weights, or one of another format")?;
        if Sha256::digest(body).as_slice() != digest {
            return Err("damaged: its digest is another".into());
        }
        let short = "shorter than it says";
        let (name, rest) = rest.split_first_chunk::<NAME_BYTES>().ok_or(short)?;
        let (bias, rest) = rest.split_first_chunk::<8>().ok_or(short)?;
        let (scale, rest) = rest.split_first_chunk::<8>().ok_or(short)?;
        let (count, rest) = rest.split_first_chunk::<4>().ok_or(short)?;
        let (bias, scale) = (i64::from_le_bytes(*bias), i64::from_le_bytes(*scale));
        if !(-MOST..=0).contains(&bias) || !(0..=MOST).contains(&scale) {
            return Err("its bias or its scale is out of bounds".into());
        }
        let count = usize::try_from(u32::from_le_bytes(*count)).map_err(|_| short)?;
        if count == 0 || rest.len() != count.saturating_mul(5) {
            return Err("it does not hold as many weights as it says".into());
        }
        let (hashes, weights) = rest.split_at_checked(count.saturating_mul(4)).ok_or(short)?;
        let (hashes, _) = hashes.as_chunks::<4>();
        let hashes: Vec<u32> = hashes.iter().map(|hash| u32::from_le_bytes(*hash)).collect();
        if hashes.first() == Some(&0) || !hashes.is_sorted_by(|one, other| one < other) {
            return Err("its hashes are not in order".into());
        }
        let name = std::str::from_utf8(name).map_err(|_| "its name is not UTF-8")?.trim_end();
        let mut model = Self { name: version(name, digest), bias, scale, keys: Vec::new(), weights: Vec::new() };
        model.fill(&hashes, weights);
        Ok(model)
    }

    fn fill(&mut self, hashes: &[u32], weights: &[u8]) {
        let places = hashes.len().saturating_mul(4) / 3 + 1;
        let places = places.next_power_of_two();
        (self.keys, self.weights) = (vec![0; places], vec![0; places]);
        for (hash, weight) in hashes.iter().zip(weights) {
            let mut at = place(*hash) & (places - 1);
            while self.keys.get(at).is_some_and(|key| *key != 0) {
                at = (at + 1) & (places - 1);
            }
            if let (Some(key), Some(kept)) = (self.keys.get_mut(at), self.weights.get_mut(at)) {
                (*key, *kept) = (*hash, i8::from_le_bytes([*weight]));
            }
        }
    }
}

fn version(name: &str, digest: &[u8; DIGEST_BYTES]) -> String {
    format!("{name}/{}", hex(digest.get(..SHOWN_BYTES).unwrap_or_default()))
}
