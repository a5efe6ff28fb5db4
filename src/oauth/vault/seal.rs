//! One sealed file of the vault: a login as JSON, sealed for the file of its name.

use std::io::{self, Write};

use serde::Serialize;
use serde::de::DeserializeOwned;
use zeroize::Zeroizing;

use crate::seal::{self, Key, OVERHEAD_BYTES, Purpose, UnsealError};

/// Maximum length of a file, in bytes.
pub(super) const FILE_BYTES: usize = 256 << 10;

const LOGIN: Purpose = Purpose {
    mark: *b"lgv",
    label: b"lychgate vault: key of a file",
};

/// Seals the content for the file of this name.
///
/// # Errors
/// Fails if the content is too long, or if the system has no random numbers.
pub(super) fn seal<T: Serialize>(key: &Key, name: &str, content: &T) -> io::Result<Vec<u8>> {
    // Allocated at full capacity: a buffer that grows leaves copies of secrets behind.
    let mut length = ByteCounter(0);
    serde_json::to_writer(&mut length, content)?;
    if length.0 + OVERHEAD_BYTES > FILE_BYTES {
        return Err(io::Error::other(format!(
            "it would be longer than {FILE_BYTES} bytes"
        )));
    }
    let mut text = Zeroizing::new(Vec::with_capacity(length.0));
    serde_json::to_writer(&mut *text, content)?;
    seal::seal(key, LOGIN, name.as_bytes(), text)
}

/// Opens the file of this name with the first of these keys that fits. The bytes are consumed and
/// erased from memory.
///
/// # Errors
/// Fails if none of the keys fits, or if the file is not as it was written.
pub(super) fn open<T: DeserializeOwned>(
    keys: &[Key],
    name: &str,
    file: Vec<u8>,
) -> Result<T, UnsealError> {
    if file.len() > FILE_BYTES {
        return Err(UnsealError::TooLong);
    }
    let text = seal::open(keys, LOGIN, name.as_bytes(), file)?;
    serde_json::from_slice(&text).map_err(|_| UnsealError::Damaged)
}

/// Counts the bytes that are written.
struct ByteCounter(usize);

impl Write for ByteCounter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0 += bytes.len();
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
