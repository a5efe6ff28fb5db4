//! The literals and bytes that a match of a secret's shape can begin with.

use regex_syntax::ParserBuilder;
use regex_syntax::hir::Hir;
use regex_syntax::hir::literal::{ExtractKind, Extractor};

use super::class::Class;
use crate::detect::prepared::{Reader, Use, Writer};

/// Minimum length of a literal that a shape may begin with, in bytes: shorter ones occur
/// everywhere.
const LITERAL_BYTES: usize = 3;
/// Maximum length of a literal that is searched for, in bytes.
const LONGEST_LITERAL_BYTES: usize = 16;
/// Maximum number of literals of one shape.
const LITERALS: usize = 64;
/// Maximum number of literals that are generated to find the bytes that can follow them.
const FOLLOWERS: usize = 512;
/// The literals that are searched for in place of a shape.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct ShapeStart {
    /// Literals that a match can begin with, in lower case and without joints. Empty if the shape
    /// is not searched for by literals.
    pub(super) literals: Vec<String>,
    /// Maximum length of a match, in bytes.
    pub(super) longest: usize,
    /// The bytes that can follow a literal, or that can begin a match if there are no literals.
    pub(super) next: ByteSet,
}

/// A set of bytes, with one bit for each.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct ByteSet([u64; 4]);

impl ByteSet {
    pub(super) fn contains(&self, byte: u8) -> bool {
        self.0
            .get(usize::from(byte >> 6))
            .is_none_or(|bits| bits >> (byte & 63) & 1 == 1)
    }
}

impl From<[bool; 256]> for ByteSet {
    fn from(members: [bool; 256]) -> Self {
        let (parts, _) = members.as_chunks::<64>();
        let mut set = [0; 4];
        for (bits, part) in set.iter_mut().zip(parts) {
            *bits = part
                .iter()
                .rev()
                .fold(0, |bits, member| bits << 1 | u64::from(*member));
        }
        Self(set)
    }
}

impl ShapeStart {
    /// Extracts the data of a regex. A [`Use::Value`] has no literals.
    ///
    /// # Errors
    /// Returns the reason why the regex is invalid.
    pub(crate) fn new(source: &str, usage: Use) -> Result<Self, String> {
        let hir = parse(source)?;
        if hir
            .properties()
            .minimum_len()
            .is_none_or(|least| least == 0)
        {
            return Err("the regex matches the empty text".into());
        }
        let literals = if matches!(usage, Use::Shape) {
            literals(&hir).unwrap_or_default()
        } else {
            Vec::new()
        };
        let longest = hir.properties().maximum_len().unwrap_or(usize::MAX);
        let next = if literals.is_empty() {
            first_bytes(&hir)
        } else {
            following_bytes(&hir, &literals)
        }
        .into();
        Ok(Self {
            literals,
            longest,
            next,
        })
    }

    #[allow(dead_code, reason = "the build writes what the gateway reads")]
    pub(crate) fn write(&self, out: &mut Writer) {
        out.length((self.longest != usize::MAX).then_some(self.longest));
        self.next.0.iter().for_each(|bits| out.long(*bits));
        out.texts(&self.literals);
    }

    pub(super) fn read(mut record: Reader<'_>) -> Option<Self> {
        let longest = record.length()?.unwrap_or(usize::MAX);
        let next = ByteSet([
            record.long()?,
            record.long()?,
            record.long()?,
            record.long()?,
        ]);
        let literals = record
            .texts()?
            .into_iter()
            .map(|text| String::from_utf8(text.to_vec()).ok())
            .collect::<Option<_>>()?;
        Some(Self {
            literals,
            longest,
            next,
        })
    }
}

pub(super) fn parse(source: &str) -> Result<Hir, String> {
    let mut parser = ParserBuilder::new();
    parser.unicode(false).utf8(false).nest_limit(32);
    parser.build().parse(source).map_err(|error| {
        let text = error.to_string();
        format!(
            "bad regex: {}",
            text.lines()
                .last()
                .unwrap_or(&text)
                .trim_start_matches("error: ")
        )
    })
}

/// Returns the literals that a match can begin with, or `None` if they are too short or too many.
fn literals(hir: &Hir) -> Option<Vec<String>> {
    let mut extractor = Extractor::new();
    extractor
        .kind(ExtractKind::Prefix)
        .limit_literal_len(LONGEST_LITERAL_BYTES)
        .limit_total(LITERALS);
    let mut seq = extractor.extract(hir);
    seq.keep_first_bytes(LONGEST_LITERAL_BYTES);
    let mut out: Vec<String> = Vec::new();
    for literal in seq.literals()? {
        let whole: Vec<u8> = literal
            .as_bytes()
            .iter()
            .copied()
            .take_while(|byte| !Class::from_byte(*byte).is_joint())
            .map(|byte| byte.to_ascii_lowercase())
            .collect();
        let text = String::from_utf8(whole)
            .ok()
            .filter(|text| text.len() >= LITERAL_BYTES)?;
        if !out.contains(&text) {
            out.push(text);
        }
    }
    (!out.is_empty()).then_some(out)
}

/// Returns the bytes that a match may begin with; all bytes if they cannot be determined.
fn first_bytes(hir: &Hir) -> [bool; 256] {
    let mut extractor = Extractor::new();
    extractor
        .kind(ExtractKind::Prefix)
        .limit_class(256)
        .limit_total(FOLLOWERS)
        .limit_literal_len(1);
    let mut seq = extractor.extract(hir);
    seq.keep_first_bytes(1);
    let mut first = [false; 256];
    for literal in seq.literals().unwrap_or_default() {
        let Some(flag) = literal
            .as_bytes()
            .first()
            .and_then(|byte| first.get_mut(usize::from(*byte)))
        else {
            return [true; 256];
        };
        *flag = true;
    }
    if seq.literals().is_none_or(<[_]>::is_empty) {
        [true; 256]
    } else {
        first
    }
}

/// Returns the bytes that may follow one of the literals; all bytes if they cannot be determined.
fn following_bytes(hir: &Hir, literals: &[String]) -> [bool; 256] {
    let mut extractor = Extractor::new();
    extractor
        .kind(ExtractKind::Prefix)
        .limit_class(128)
        .limit_total(FOLLOWERS)
        .limit_literal_len(LONGEST_LITERAL_BYTES + 1);
    let seq = extractor.extract(hir);
    let mut next = [false; 256];
    for text in seq
        .literals()
        .unwrap_or_default()
        .iter()
        .map(|literal| literal.as_bytes())
    {
        let begins = |literal: &&String| {
            text.get(..literal.len())
                .is_some_and(|start| start.eq_ignore_ascii_case(literal.as_bytes()))
        };
        let mut is_matched = false;
        for literal in literals.iter().filter(begins) {
            let follower = text
                .get(literal.len())
                .filter(|byte| !Class::from_byte(**byte).is_joint());
            let Some(flag) = follower.and_then(|byte| next.get_mut(usize::from(*byte))) else {
                return [true; 256];
            };
            (*flag, is_matched) = (true, true);
        }
        if !is_matched {
            return [true; 256];
        }
    }
    if seq.literals().is_none_or(<[_]>::is_empty) {
        [true; 256]
    } else {
        next
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::detect::prepared;
    use crate::rules::{Find, Library};

    #[test]
    fn the_built_in_shapes_are_prepared_as_they_would_be_read() {
        let library = Library::builtin();
        let mut tried = 0;
        for rule in library.rules() {
            let Find::Secret(spec) = rule.find.as_ref() else {
                continue;
            };
            for shape in &spec.shapes {
                let used = shape.usage();
                let prepared = prepared::record(used, shape.source()).and_then(ShapeStart::read);
                assert_eq!(
                    prepared,
                    ShapeStart::new(shape.source(), used).ok(),
                    "{}",
                    shape.name
                );
                tried += 1;
            }
        }
        assert!(tried > 100, "only {tried} shapes");
    }
}
