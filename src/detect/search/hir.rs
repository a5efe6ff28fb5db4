//! Regexes as the compiler takes them, written by the build: parsing would take longer than
//! compiling what the parser returns.

use regex_syntax::hir::{
    Capture, Class, ClassBytes, ClassBytesRange, ClassUnicode, ClassUnicodeRange, Hir, HirKind,
    Look, Repetition,
};

use super::{alternatives, lower_case, parse};
use crate::detect::prepared::{Reader, Writer};

/// Returns a regex that is searched for in a text in lower case, as the compiler takes it. Returns
/// `None` if the regex is invalid, or depends on the case of the text.
pub(crate) fn in_lower_case(source: &str) -> Option<Hir> {
    lower_case::parse(source).map(rewrite)
}

/// Rewrites a parsed regex for an automaton.
pub(super) fn rewrite(hir: Hir) -> Hir {
    alternatives::share_beginnings(parse::pool_gaps(hir))
}

/// Writes a regex.
#[allow(dead_code, reason = "the build writes what the gateway reads")]
pub(crate) fn write(hir: &Hir, out: &mut Writer) {
    let mut begin = |tag: Tag| out.0.push(tag as u8);
    match hir.kind() {
        HirKind::Empty => begin(Tag::Empty),
        HirKind::Literal(literal) => {
            begin(Tag::Literal);
            out.text(&literal.0);
        }
        HirKind::Class(Class::Bytes(class)) => {
            begin(Tag::Bytes);
            out.number(class.ranges().len());
            let ranges = class.ranges().iter();
            out.0
                .extend(ranges.flat_map(|range| [range.start(), range.end()]));
        }
        HirKind::Class(Class::Unicode(class)) => {
            begin(Tag::Unicode);
            let ranges = class.ranges().iter();
            let bounds: Vec<u32> = ranges
                .flat_map(|range| [range.start().into(), range.end().into()])
                .collect();
            out.numbers(&bounds);
        }
        HirKind::Look(look) => {
            begin(Tag::Look);
            out.number(look.as_repr() as usize);
        }
        HirKind::Repetition(repetition) => {
            begin(Tag::Repetition);
            out.number(repetition.min as usize);
            out.length(repetition.max.map(|max| max as usize));
            out.flag(repetition.greedy);
            write(&repetition.sub, out);
        }
        HirKind::Capture(capture) => {
            begin(Tag::Group);
            write(&capture.sub, out);
        }
        HirKind::Concat(parts) => {
            begin(Tag::Concat);
            write_all(parts, out);
        }
        HirKind::Alternation(parts) => {
            begin(Tag::Alternation);
            write_all(parts, out);
        }
    }
}

fn write_all(parts: &[Hir], out: &mut Writer) {
    out.number(parts.len());
    parts.iter().for_each(|part| write(part, out));
}

/// Reads a regex that [`write`] has written.
pub(super) fn read(from: &mut Reader<'_>) -> Option<Hir> {
    let [tag] = from.bytes(1)? else { return None };
    let hir = match Tag::ALL.get(usize::from(*tag))? {
        Tag::Empty => Hir::empty(),
        Tag::Literal => Hir::literal(from.text()?),
        Tag::Bytes => {
            let count = from.number()? as usize;
            let (ranges, _) = from.bytes(count.checked_mul(2)?)?.as_chunks();
            let ranges = ranges
                .iter()
                .map(|[start, end]| ClassBytesRange::new(*start, *end));
            Hir::class(Class::Bytes(ClassBytes::new(ranges)))
        }
        Tag::Unicode => {
            let (ranges, _) = from.numbers()?.as_chunks();
            let character = |bytes: &[u8; 4]| char::from_u32(u32::from_le_bytes(*bytes));
            let ranges = ranges.iter().map(|[start, end]| {
                Some(ClassUnicodeRange::new(character(start)?, character(end)?))
            });
            let ranges: Option<Vec<_>> = ranges.collect();
            Hir::class(Class::Unicode(ClassUnicode::new(ranges?)))
        }
        Tag::Look => Hir::look(Look::from_repr(from.number()?)?),
        Tag::Repetition => Hir::repetition(Repetition {
            min: from.number()?,
            max: from.length()?.and_then(|max| u32::try_from(max).ok()),
            greedy: from.flag()?,
            sub: Box::new(read(from)?),
        }),
        Tag::Group => Hir::capture(Capture {
            index: 1,
            name: None,
            sub: Box::new(read(from)?),
        }),
        Tag::Concat => Hir::concat(read_all(from)?),
        Tag::Alternation => Hir::alternation(read_all(from)?),
    };
    Some(hir)
}

fn read_all(from: &mut Reader<'_>) -> Option<Vec<Hir>> {
    (0..from.number()?).map(|_| read(from)).collect()
}

/// The kind of a part of a regex.
#[derive(Clone, Copy)]
enum Tag {
    Empty,
    Literal,
    Bytes,
    Unicode,
    Look,
    Repetition,
    Group,
    Concat,
    Alternation,
}

impl Tag {
    const ALL: [Self; 9] = [
        Self::Empty,
        Self::Literal,
        Self::Bytes,
        Self::Unicode,
        Self::Look,
        Self::Repetition,
        Self::Group,
        Self::Concat,
        Self::Alternation,
    ];
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_read_is_what_was_written() {
        for source in [
            "a",
            r"\b(?:reads?|reading\s+to|send)\b[^.\n]{0,40}?(?:keys|the (?:list|text)|tests)$",
            "(?u:[а-я]{2,}|é|[日月])+?x*",
            r"(?:|a|ab)c{3}\w",
        ] {
            let hir = in_lower_case(source).unwrap();
            let mut out = Writer::default();
            write(&hir, &mut out);
            let mut reader = Reader(&out.0);
            assert_eq!(read(&mut reader), Some(hir), "{source}");
            assert!(reader.0.is_empty(), "{source}");
            let mut cut = Reader(out.0.get(..out.0.len() - 1).unwrap());
            assert_eq!(read(&mut cut), None, "{source}");
        }
    }
}
