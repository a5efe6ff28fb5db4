//! Files that one script writes and another runs.

use std::fmt;

use zeroize::Zeroizing;

use super::compiled::SOURCES;
use super::facts::Facts;
use super::paths;
use super::reader::Reader;
use super::value::{Taint, Value};

/// Maximum length of content that is kept, in bytes: more could not be read as one script either. A
/// longer file counts as unreadable when it is run.
const CONTENT_BYTES: usize = 128 << 10;

/// Files that earlier calls of a session wrote, for a script that runs one of them.
pub trait WrittenFiles {
    /// Returns the content of the file at `path`, as named by the script.
    fn content(&self, path: &str) -> Option<&Content>;

    /// Returns the folder in which an earlier call left the session's shell, if that is the root, a
    /// home or the like.
    fn folder(&self) -> Option<&str>;
}

/// A file that a script writes.
#[derive(Clone, Debug)]
pub struct WrittenFile {
    /// The path as named by the script, from the folder that it changed to.
    pub path: String,
    /// What is known of the content.
    pub content: Content,
    /// Whether the content is added to earlier content, which is not known.
    pub appends: bool,
}

/// The content of a file that the current script wrote.
#[derive(Clone, Debug)]
pub(super) struct FileState {
    value: Value,
    appends: bool,
}

impl FileState {
    pub(super) fn into_written_file(self, path: String) -> WrittenFile {
        WrittenFile {
            path,
            content: Content::of_value(&self.value),
            appends: self.appends,
        }
    }
}

/// The content of a file, as far as it is known, and its origin. Wiped when dropped; `Debug` does
/// not show it.
#[derive(Clone, Default)]
pub struct Content {
    text: Option<Zeroizing<String>>,
    taint: Taint,
}

impl Content {
    /// Creates content from a text that is written.
    pub fn new(text: &str) -> Self {
        if text.len() > CONTENT_BYTES {
            return Self {
                text: None,
                taint: Taint::UNREAD,
            };
        }
        Self {
            text: Some(Zeroizing::new(text.to_owned())),
            taint: Taint::NONE,
        }
    }

    /// Creates content that was fetched from another host and is not known.
    pub fn downloaded() -> Self {
        Self {
            text: None,
            taint: Taint::DOWNLOAD,
        }
    }

    /// Returns the content followed by more.
    #[must_use]
    pub fn concat(&self, next: &Self) -> Self {
        let taint = self.taint | next.taint;
        match (&self.text, &next.text) {
            (Some(text), Some(next)) => {
                let joined = Self::new(&Zeroizing::new([text.as_str(), next.as_str()].join("\n")));
                Self {
                    taint: joined.taint | taint,
                    ..joined
                }
            }
            (Some(text), None) | (None, Some(text)) => Self {
                text: Some(text.clone()),
                taint,
            },
            (None, None) => Self { text: None, taint },
        }
    }

    /// Reports whether nothing at all is known of the content.
    pub fn is_unknown(&self) -> bool {
        self.text.is_none() && self.taint == Taint::NONE
    }

    /// Returns the number of bytes that are kept.
    pub fn stored_bytes(&self) -> usize {
        self.text.as_ref().map_or(0, |text| text.len())
    }

    pub(super) fn of_value(value: &Value) -> Self {
        let text = value.as_text().map(Self::new).unwrap_or_default();
        Self {
            taint: text.taint | value.taint,
            ..text
        }
    }

    pub(super) fn value(&self) -> Value {
        self.text
            .as_ref()
            .map_or(Value::unknown(Taint::NONE), |text| {
                Value::text(text.as_str())
            })
            .with(self.taint)
    }
}

impl fmt::Debug for Content {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Content({} bytes)", self.stored_bytes())
    }
}

impl Reader<'_> {
    /// Keeps the output of a process substitution or a write under a name, and returns the name.
    pub(super) fn keep_stream(&mut self, value: Value) -> String {
        let name = format!("/dev/fd/{}", 63 + self.files.len());
        self.keep_file(&name, value);
        name
    }

    pub(super) fn keep_file(&mut self, name: &str, value: Value) {
        self.insert(name, value, false);
    }

    /// Appends content to a file. What is known of either part remains known.
    pub(super) fn append_file(&mut self, name: &str, value: Value) {
        let Some(before) = self.file_content(name) else {
            return self.insert(name, value, true);
        };
        let appends = self
            .files
            .get(&self.file_key(name))
            .is_some_and(|file| file.appends);
        let taint = before.taint | value.taint;
        let parts: Vec<&str> = [&before, &value]
            .into_iter()
            .filter_map(Value::as_text)
            .collect();
        let combined = if parts.is_empty() {
            Value::unknown(taint)
        } else {
            Value::text(parts.concat()).with(taint)
        };
        self.spend_bytes(combined.as_text().map_or(0, str::len));
        self.insert(name, combined, appends);
    }

    fn insert(&mut self, name: &str, value: Value, appends: bool) {
        if self.files.len() < 256 {
            let file = FileState { value, appends };
            self.files.insert(self.file_key(name), file);
        }
    }

    /// Returns the same name for a file regardless of the folder from which the script names it.
    pub(super) fn file_key(&self, name: &str) -> String {
        // The folder of the process itself.
        let name = name.strip_prefix("/proc/self/cwd/").unwrap_or(name);
        let folder = self
            .folder
            .as_deref()
            .or(self.location.relative_folder.as_deref());
        let key = if name.starts_with("/dev/") {
            None
        } else {
            paths::normal(name, folder)
        };
        key.filter(|key| !key.is_empty())
            .unwrap_or_else(|| name.trim_start_matches("./").to_owned())
    }

    /// Returns the content of a file, if an earlier command or call wrote it.
    pub(super) fn file_content(&self, name: &str) -> Option<Value> {
        if self.files.is_empty() && self.script_context.written_files.is_none() {
            return None;
        }
        let key = self.file_key(name);
        let stored = self.files.get(&key).map(|file| file.value.clone());
        stored.or_else(|| {
            let earlier_files = self.script_context.written_files?;
            Some(
                earlier_files
                    .content(&key)
                    .or_else(|| earlier_files.content(name))?
                    .value(),
            )
        })
    }

    /// Records the text that a command writes to a system file or to a user's settings.
    pub(super) fn note_written(&mut self, facts: &mut Facts) {
        const PLACES: [&str; 5] = ["/etc/", "/usr/", "/lib/", "/var/", "~/."];
        let system_paths = facts.writes.iter().filter(|named_path| {
            PLACES
                .iter()
                .any(|place| named_path.path.starts_with(place))
        });
        let text = system_paths.take(4).find_map(|named_path| {
            self.file_content(&named_path.path)?
                .as_text()
                .map(str::to_owned)
        });
        self.spend_bytes(text.as_ref().map_or(0, String::len));
        facts.written_content = text;
    }

    /// Reports the content that code writes to a file as a command that writes it.
    pub(super) fn note_written_by_code(&mut self, path: &str) {
        let mut facts = Facts {
            program: "tee".to_owned(),
            ..Facts::default()
        };
        facts.redirect_write(path, self.folder.as_deref());
        self.note_written(&mut facts);
        if facts.written_content.is_some() {
            self.facts.push(facts);
        }
    }

    /// Returns the sources of compiled languages that this script wrote.
    pub(super) fn source_files(&self) -> Vec<Value> {
        let mut sources: Vec<_> = self
            .files
            .iter()
            .filter(|(name, _)| SOURCES.iter().any(|end| name.ends_with(end)))
            .collect();
        sources.sort_by_key(|(name, _)| name.as_str());
        sources
            .into_iter()
            .take(16)
            .map(|(_, file)| file.value.clone())
            .collect()
    }

    /// Returns the content of a file that is run. A file that is too long to be read may contain
    /// anything, so the script is unreadable.
    pub(super) fn file_to_run(&mut self, name: &str) -> Option<Value> {
        let value = self.file_content(name);
        if value
            .as_ref()
            .is_some_and(|value| value.taint.intersects(Taint::UNREAD))
        {
            self.give_up();
        }
        value
    }
}
