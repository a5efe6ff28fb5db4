//! The last lines of an audit log, read from its end.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;

use super::entry::Entry;

/// Maximum number of bytes that are read.
const MAX_BYTES: u64 = 4 << 20;
/// Maximum number of lines that are returned.
const MAX_LINES: usize = 1000;

/// Returns the last lines of the log at this path, oldest first, without those of `lychgate prove`
/// and those that cannot be parsed. Rotated files are not read. The result is empty if the file
/// does not exist or is not a regular one.
///
/// # Errors
/// The file cannot be read.
pub fn recent_entries(path: &Path) -> io::Result<Vec<Entry>> {
    if !path.is_file() {
        return Ok(Vec::new());
    }
    let mut file = File::open(path)?;
    let start = file.metadata()?.len().saturating_sub(MAX_BYTES);
    file.seek(SeekFrom::Start(start))?;
    let mut bytes = Vec::new();
    file.take(MAX_BYTES).read_to_end(&mut bytes)?;
    let name: Arc<Path> = path.into();
    let lines = bytes
        .split(|byte| *byte == b'\n')
        .skip(usize::from(start > 0));
    let parsed = lines.filter_map(|line| Entry::read(Bytes::copy_from_slice(line), &name, 0).ok());
    let mut entries: Vec<Entry> = parsed.filter(|entry| !entry.is_of_prove()).collect();
    entries.drain(..entries.len().saturating_sub(MAX_LINES));
    Ok(entries)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_of_a_log_is_read_without_lines_of_prove() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("audit.jsonl");
        assert!(
            recent_entries(&path).unwrap().is_empty()
                && recent_entries(folder.path()).unwrap().is_empty()
        );
        let line = |number: u64| {
            format!(
                "{{\"event\":\"judged\",\"n\":{number},\"pad\":\"{}\"}}\n",
                "x".repeat(5000)
            )
        };
        let mut text: String = (0..2000).map(line).collect();
        text.push_str(
            "{\"event\":\"judged\",\"n\":2000,\"prove\":true}\nno line\n{\"event\":\"failed\",\"n\":2001}\n{\"event\":",
        );
        std::fs::write(&path, text).unwrap();
        let entries = recent_entries(&path).unwrap();
        let numbers: Vec<u64> = entries
            .iter()
            .map(|entry| entry.root().get("n").unwrap().raw().parse().unwrap())
            .collect();
        assert!(
            numbers.len() > 500 && numbers.len() <= MAX_LINES,
            "{}",
            numbers.len()
        );
        assert_eq!(
            (numbers[numbers.len() - 2], numbers[numbers.len() - 1]),
            (1999, 2001)
        );
        assert!(numbers.is_sorted());
    }
}
