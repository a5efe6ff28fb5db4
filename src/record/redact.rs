//! Redacts messages for display: keeps the shape of arguments and short texts, and nothing that is
//! or may be a secret.

use std::borrow::Cow;
use std::ops::Range;
use std::sync::LazyLock;

use regex::{Captures, Regex};
use sha2::{Digest, Sha256};

use crate::config::is_secret_name;
use crate::message::{Role, Step, Value, ValueKind, hex};

use super::escape::write_quoted;

/// Maximum length of a displayed string, in bytes.
pub(super) const MAX_TEXT_BYTES: usize = 512;
/// Maximum size of one message's arguments in the log, in bytes of JSON.
const MAX_ARGUMENTS_BYTES: usize = 8 << 10;
/// Minimum length of a masked text for which a digest is shown, in bytes: a shorter text could be
/// guessed from its digest.
const DIGEST_FROM_BYTES: usize = 16;
/// Number of bytes removed from the end of a text that was only partly searched, so that no part of
/// a secret remains there.
const TAIL_BYTES: usize = 64;

/// Maximum number of findings whose places are resolved individually.
const MAX_RESOLVED: usize = 32;

/// Patterns of secrets that are recognized by their context. Each alternative takes linear time,
/// since the engine does not backtrack.
const SECRETS: &str = r#"(?x)
    (?s:-----BEGIN\ [A-Z0-9\ ]{1,40}-----.*?(?:-----END\ [A-Z0-9\ ]{1,40}-----|\z))
  | (?i:\b(?:bearer|basic|digest|negotiate)\s+[A-Za-z0-9+/=._~-]{8,})
  | (?i:://[^\s/:@]{0,256}:[^\s/@]{1,256}@)
  | (?i:[a-z0-9_-]{0,40}(?:passw(?:or)?d|passphrase|pwd|secret|token|credential|api[_-]?key|access[_-]?key|private[_-]?key)
        [a-z0-9_-]{0,40}["']?\s*[:=]\s*["']?[^\s"'&;,]+)
  | (?i:--?(?:pass(?:word)?|token|secret|api-?key|auth)[\ =]+["']?[^\s"']+)
  | (?i:\bcookie["']?\s*[:=]\s*["']?[^\r\n"']+)
  | \b(?:gh[opsur]_|github_pat_|glpat-|xox[abeoprs]-|xapp-|sk-|pk_live_|sk_live_|rk_live_|npm_|hf_|pypi-|dop_v1_|SG\.|AIza|ya29\.|AKIA|ASIA)
    [A-Za-z0-9_.\-]{8,}
  | \beyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{4,}(?:\.[A-Za-z0-9_-]*)?
"#;

/// Runs of characters that may be a key or a digest; [`is_random`] decides on each.
const RUNS: &str = r"[A-Za-z0-9_+=-]{20,}";

/// Matches every text that one of the patterns above matches, and some others. Without their bounds
/// and word boundaries, it is compiled and searched in a fraction of their time and memory.
const SUSPECTS: &str = r#"(?x)
    -----BEGIN\x20
  | (?i:(?:bearer|basic|digest|negotiate)\s+[A-Za-z0-9+/=._~-]{8})
  | ://[^\s/:@]*:[^\s/@]+@
  | (?i:(?:passw(?:or)?d|passphrase|pwd|secret|token|credential|api[_-]?key|access[_-]?key|private[_-]?key)
        [a-z0-9_-]*["']?\s*[:=])
  | (?i:-(?:pass(?:word)?|token|secret|api-?key|auth)[\ =])
  | (?i:cookie["']?\s*[:=])
  | (?:gh[opsur]_|github_pat_|glpat-|xox[abeoprs]-|xapp-|sk-|pk_live_|sk_live_|rk_live_|npm_|hf_|pypi-|dop_v1_|SG\.|AIza|ya29\.|AKIA|ASIA)
    [A-Za-z0-9_.\-]{8}
  | eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{4}
  | [A-Za-z0-9_+=-]{20}
"#;

/// Maximum length of a text without `:`, `=`, `-` and blanks that is too short for each of the
/// patterns, in bytes.
const TOO_SHORT_BYTES: usize = 10;

/// Finds and masks secrets.
pub struct Redactor {
    /// The prefilter; most texts are searched by it only, and once.
    suspects: Regex,
    /// Compiled for the first suspect text, since that takes longer than the rest of the startup.
    patterns: LazyLock<Result<Patterns, regex::Error>>,
}

/// The patterns that are masked in a suspect text.
struct Patterns {
    secrets: Regex,
    runs: Regex,
}

impl Patterns {
    fn new() -> Result<Self, regex::Error> {
        Ok(Self {
            secrets: Regex::new(SECRETS)?,
            runs: Regex::new(RUNS)?,
        })
    }
}

/// A redacted value.
pub(super) struct RedactedJson {
    /// JSON on one line.
    pub(super) json: String,
    /// Number of values that were omitted because of the length.
    pub(super) left_out: usize,
}

impl Redactor {
    /// Returns the redactor shared by code that displays recorded content.
    pub fn shared() -> Option<&'static Self> {
        static SHARED: LazyLock<Option<Redactor>> = LazyLock::new(|| Redactor::new().ok());
        SHARED.as_ref()
    }

    /// Returns a value without its secrets and without the values at `places`; `at` is
    /// its own place.
    pub fn mask(&self, value: Value<'_>, at: &str, places: &[&str]) -> String {
        self.value(value, at, places).json
    }

    /// Compiles the patterns.
    ///
    /// # Errors
    /// Never, unless the patterns above are invalid.
    pub(super) fn new() -> Result<Self, regex::Error> {
        Ok(Self {
            suspects: Regex::new(SUSPECTS)?,
            patterns: LazyLock::new(Patterns::new),
        })
    }

    /// Returns a text without its secrets, cut to `limit` bytes.
    pub fn text<'t>(&self, text: &'t str, limit: usize) -> Cow<'t, str> {
        // Most names are such words, including `npm_install_package`. A token of 24 random letters
        // and digits consists of lower-case letters only once in a billion times.
        if text.len() <= limit.min(64)
            && text.bytes().all(|b| matches!(b, b'a'..=b'z' | b'_' | b'/'))
        {
            return Cow::Borrowed(text);
        }
        // Ids, codes and versions.
        if text.len() <= limit.min(TOO_SHORT_BYTES)
            && text
                .bytes()
                .all(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'/' | b'.'))
        {
            return Cow::Borrowed(text);
        }
        let window = head(text, limit.saturating_mul(2) + TAIL_BYTES);
        let is_whole = window.len() == text.len();
        let clean = if self.suspects.is_match(window) {
            self.clean(window)
        } else {
            Cow::Borrowed(window)
        };
        if is_whole && clean.len() <= limit {
            return clean;
        }
        let safe = if is_whole {
            clean.len()
        } else {
            clean.len().saturating_sub(TAIL_BYTES)
        };
        format!("{}… ({} bytes)", head(&clean, limit.min(safe)), text.len()).into()
    }

    fn clean<'t>(&self, text: &'t str) -> Cow<'t, str> {
        let Ok(patterns) = &*self.patterns else {
            return mask_text(text).into();
        };
        let clean = patterns
            .secrets
            .replace_all(text, |captures: &Captures<'_>| {
                mask_text(whole_match(captures))
            });
        let runs = patterns
            .runs
            .replace_all(&clean, |captures: &Captures<'_>| {
                let run = whole_match(captures);
                if is_random(run) {
                    mask_text(run)
                } else {
                    run.to_owned()
                }
            });
        match runs {
            Cow::Borrowed(_) => clean,
            Cow::Owned(runs) => Cow::Owned(runs),
        }
    }

    /// Returns a value with its shape kept and its strings shortened, without any string that is,
    /// may be or contains a secret, or that has a finding. `at` is the value's pointer from the
    /// message's root, `places` the pointers of findings.
    pub(super) fn value(&self, value: Value<'_>, at: &str, places: &[&str]) -> RedactedJson {
        let hidden_spans = finding_spans(value, at, places);
        let mut writer = Writer {
            out: String::new(),
            open: Vec::new(),
            left_out: 0,
        };
        let mut hidden_below: Option<usize> = None;
        value.walk(|path, value, role| {
            if role == Role::Key {
                return;
            }
            if writer.out.len() > MAX_ARGUMENTS_BYTES {
                writer.left_out += 1;
                return;
            }
            if hidden_below.is_some_and(|depth| path.len() <= depth) {
                hidden_below = None;
            }
            let key = match path.last() {
                Some(Step::Key(key)) => Some(key.as_ref()),
                _ => None,
            };
            let is_found = hidden_spans
                .iter()
                .any(|span| span.contains(&value.span().start));
            let hide = hidden_below.is_some() || is_found || key.is_some_and(is_secret_name);
            writer.place(
                path.len(),
                key.map(|key| self.key(key, is_found)).as_deref(),
            );
            match value.kind() {
                ValueKind::Object => writer.open('{', '}'),
                ValueKind::Array => writer.open('[', ']'),
                ValueKind::String => {
                    writer.string(&self.string(&value.str().unwrap_or_default(), hide))
                }
                ValueKind::Number if hide => writer.string(&mask_text(value.raw())),
                ValueKind::Number if value.raw().len() > 40 => {
                    writer.string(&format!("… ({} digits)", value.raw().len()))
                }
                _ => writer.out.push_str(value.raw()),
            }
            if hide
                && hidden_below.is_none()
                && matches!(value.kind(), ValueKind::Object | ValueKind::Array)
            {
                hidden_below = Some(path.len());
            }
        });
        writer.close()
    }

    fn string<'t>(&self, text: &'t str, hide: bool) -> Cow<'t, str> {
        if hide && !text.is_empty() {
            mask_text(text).into()
        } else {
            self.text(text, MAX_TEXT_BYTES)
        }
    }

    /// Returns a key for display. An ordinary name is shown, whatever was found at its place.
    fn key<'t>(&self, key: &'t str, is_found: bool) -> Cow<'t, str> {
        let ordinary = key.len() <= 64
            && key
                .bytes()
                .all(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-' | b'.' | b'$'));
        if is_found && !ordinary {
            mask_text(key).into()
        } else {
            self.text(key, 128)
        }
    }
}

/// Returns the replacement for a masked text. It contains enough to see that two texts are the
/// same.
pub(super) fn mask_text(text: &str) -> String {
    if text.len() < DIGEST_FROM_BYTES {
        return "[redacted]".to_owned();
    }
    format!(
        "[redacted sha256:{}]",
        hex(Sha256::digest(text.as_bytes()).get(..8).unwrap_or_default())
    )
}

/// Returns the longest prefix of a text that fits into `limit` bytes.
pub(super) fn head(text: &str, limit: usize) -> &str {
    text.get(..text.floor_char_boundary(limit))
        .unwrap_or_default()
}

fn whole_match<'t>(captures: &Captures<'t>) -> &'t str {
    captures.get(0).map_or("", |found| found.as_str())
}

/// Returns the byte ranges of findings within the value at `at`. If there are too many places to
/// resolve, or one does not exist, returns that of the whole value.
fn finding_spans(value: Value<'_>, at: &str, places: &[&str]) -> Vec<Range<usize>> {
    let is_prefix = |outer: &str, inner: &str| {
        inner
            .strip_prefix(outer)
            .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    };
    let mut spans = Vec::new();
    for place in places
        .iter()
        .filter(|found| is_prefix(found, at) || is_prefix(at, found))
    {
        let span = if spans.len() < MAX_RESOLVED {
            resolve_pointer(value, place.strip_prefix(at).unwrap_or_default())
        } else {
            None
        };
        let Some(span) = span else {
            return vec![value.span()];
        };
        spans.push(span);
    }
    spans
}

/// Returns the byte range of the value that a JSON pointer (RFC 6901) refers to.
fn resolve_pointer(from: Value<'_>, pointer: &str) -> Option<Range<usize>> {
    let steps = pointer.split('/').skip(1);
    let end = steps
        .into_iter()
        .try_fold(from, |value, step| match value.kind() {
            ValueKind::Object => value.get(&step.replace("~1", "/").replace("~0", "~")),
            ValueKind::Array => value.elements().nth(step.parse().ok()?),
            _ => None,
        });
    end.map(|value| value.span())
}

/// Reports whether a run of letters and digits looks random: long hexadecimal, or mixed in a way
/// that words are not.
fn is_random(run: &str) -> bool {
    let count = |class: fn(&u8) -> bool| run.bytes().filter(class).count();
    let lower = count(u8::is_ascii_lowercase);
    let upper = count(u8::is_ascii_uppercase);
    let digits = count(u8::is_ascii_digit);
    if run.len() >= 32 && run.bytes().all(|b| b.is_ascii_hexdigit()) {
        return digits > 0 && digits < run.len();
    }
    lower > 0 && upper > 0 && digits > 0 && entropy(run) > 3.5
}

/// Returns the bits per character (Shannon entropy).
fn entropy(run: &str) -> f64 {
    let mut counts = [0u32; 256];
    for byte in run.bytes() {
        if let Some(count) = counts.get_mut(usize::from(byte)) {
            *count += 1;
        }
    }
    let total = run.len() as f64;
    counts
        .iter()
        .filter(|count| **count > 0)
        .map(|count| f64::from(*count) / total)
        .map(|share| -share * share.log2())
        .sum()
}

/// Writes JSON from the values of a walk.
struct Writer {
    out: String,
    /// For each open object or array: the closing character, and whether it is still empty.
    open: Vec<(char, bool)>,
    left_out: usize,
}

impl Writer {
    /// Moves to the next value, at this depth, and writes its key if it has one.
    fn place(&mut self, depth: usize, key: Option<&str>) {
        while self.open.len() > depth {
            self.out.extend(self.open.pop().map(|(close, _)| close));
        }
        if self
            .open
            .last_mut()
            .is_some_and(|(_, empty)| !std::mem::replace(empty, false))
        {
            self.out.push(',');
        }
        if let Some(key) = key {
            write_quoted(key, &mut self.out);
            self.out.push(':');
        }
    }

    fn open(&mut self, open: char, close: char) {
        self.out.push(open);
        self.open.push((close, true));
    }

    fn string(&mut self, text: &str) {
        write_quoted(text, &mut self.out);
    }

    fn close(mut self) -> RedactedJson {
        while let Some((close, _)) = self.open.pop() {
            self.out.push(close);
        }
        RedactedJson {
            json: self.out,
            left_out: self.left_out,
        }
    }
}

#[cfg(test)]
mod tests;
