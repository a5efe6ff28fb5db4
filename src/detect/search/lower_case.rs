//! Regexes whose letters match in either case, converted to lower case together with the texts in
//! which they are searched for.
//!
//! A letter in either case is a class for a regex: parsing it takes six times as long, the compiled
//! program has twice the size (of Cyrillic letters, five times), and alternatives do not share their
//! beginnings. A regex in lower case for a text in lower case has none of these costs.

use std::ops::RangeInclusive;

use regex_syntax::ast::{Ast, ClassSet, ClassSetItem, ClassSetRange, ClassSetUnion, Flag, Flags};
use regex_syntax::ast::{
    FlagsItemKind, HexLiteralKind, Literal, LiteralKind, parse::ParserBuilder,
};
use regex_syntax::hir::Hir;
use regex_syntax::hir::translate::TranslatorBuilder;

use super::parse::NESTING;

/// Maximum number of characters of a range that are converted one by one.
const RANGE_CHARS: u32 = 1024;
/// Writings of East Asia, which have no case. Not all characters without case, because the list
/// only saves time.
const CASELESS: [RangeInclusive<char>; 2] = ['\u{2e80}'..='\u{a63f}', '\u{ac00}'..='\u{d7ff}'];

/// Parses a regex that is searched for in a text in lower case. Returns `None` if it is invalid, or
/// depends on the case of the text.
pub(super) fn parse(source: &str) -> Option<Hir> {
    let mut parser = ParserBuilder::new();
    let mut ast = parser.nest_limit(NESTING).build().parse(source).ok()?;
    lower(&mut ast)?;
    let mut translator = TranslatorBuilder::new();
    translator.unicode(false).utf8(false);
    translator.build().translate(source, &ast).ok()
}

/// Returns the text in lower case, each character at its place. A character whose lower case has
/// another length stays as it is.
pub(super) fn lower_text(text: &str) -> Vec<u8> {
    let mut lower = text.as_bytes().to_ascii_lowercase();
    if text.is_ascii() {
        return lower;
    }
    let letters = text
        .char_indices()
        .filter(|(_, c)| !c.is_ascii() && !is_caseless(*c, *c));
    for (at, c) in letters {
        let lower_c = lower_char(c);
        if lower_c != c
            && let Some(place) = lower.get_mut(at..at + c.len_utf8())
        {
            lower_c.encode_utf8(place);
        }
    }
    lower
}

fn lower_char(c: char) -> char {
    if c.is_ascii() {
        return c.to_ascii_lowercase();
    }
    // At the end of a Greek word, the letter has another form.
    if c == 'ς' {
        return 'σ';
    }
    let mut lower = c.to_lowercase();
    match (lower.next(), lower.next()) {
        (Some(lower), None) if lower.len_utf8() == c.len_utf8() => lower,
        _ => c,
    }
}

fn is_caseless(first: char, last: char) -> bool {
    CASELESS
        .iter()
        .any(|writing| writing.contains(&first) && writing.contains(&last))
}

/// Converts a regex to lower case. Returns `None` if it depends on the case of the text.
fn lower(ast: &mut Ast) -> Option<()> {
    match ast {
        Ast::Empty(_) | Ast::Dot(_) | Ast::Assertion(_) | Ast::ClassPerl(_) => Some(()),
        Ast::Flags(set) => ignores_case(&set.flags),
        Ast::Literal(literal) => lower_literal(literal),
        Ast::ClassUnicode(_) => None,
        Ast::ClassBracketed(class) => match &mut class.kind {
            ClassSet::Item(item) => lower_item(item),
            ClassSet::BinaryOp(_) => None,
        },
        Ast::Repetition(repetition) => lower(&mut repetition.ast),
        Ast::Group(group) => {
            group.flags().map_or(Some(()), ignores_case)?;
            lower(&mut group.ast)
        }
        Ast::Alternation(alternation) => alternation.asts.iter_mut().try_for_each(lower),
        Ast::Concat(concat) => concat.asts.iter_mut().try_for_each(lower),
    }
}

/// Returns `None` if flags of a regex say something about case.
fn ignores_case(flags: &Flags) -> Option<()> {
    let says_case = flags
        .items
        .iter()
        .any(|item| item.kind == FlagsItemKind::Flag(Flag::CaseInsensitive));
    (!says_case).then_some(())
}

fn lower_literal(literal: &mut Literal) -> Option<()> {
    if is_byte(literal) {
        return None;
    }
    literal.c = lower_char(literal.c);
    Some(())
}

/// Reports whether a literal may be a byte of a character and not a character.
fn is_byte(literal: &Literal) -> bool {
    literal.kind == LiteralKind::HexFixed(HexLiteralKind::X) && !literal.c.is_ascii()
}

fn lower_item(item: &mut ClassSetItem) -> Option<()> {
    match item {
        ClassSetItem::Empty(_) | ClassSetItem::Perl(_) => Some(()),
        ClassSetItem::Literal(literal) => lower_literal(literal),
        ClassSetItem::Range(range) => {
            let lowered = lower_range(range)?;
            if !lowered.is_empty() {
                let mut union = ClassSetUnion {
                    span: range.span,
                    items: lowered,
                };
                union.push(ClassSetItem::Range(range.clone()));
                *item = union.into_item();
            }
            Some(())
        }
        ClassSetItem::Ascii(_) | ClassSetItem::Unicode(_) => None,
        ClassSetItem::Bracketed(class) => match &mut class.kind {
            ClassSet::Item(item) => lower_item(item),
            ClassSet::BinaryOp(_) => None,
        },
        ClassSetItem::Union(union) => union.items.iter_mut().try_for_each(lower_item),
    }
}

/// Returns the letters in lower case that belong to a range because it contains them in upper case.
fn lower_range(range: &ClassSetRange) -> Option<Vec<ClassSetItem>> {
    let (first, last) = (range.start.c, range.end.c);
    if is_caseless(first, last) {
        return Some(Vec::new());
    }
    let chars = u32::from(last).saturating_sub(u32::from(first));
    if is_byte(&range.start) || is_byte(&range.end) || chars > RANGE_CHARS {
        return None;
    }
    let letter = |c: char| {
        ClassSetItem::Literal(Literal {
            span: range.span,
            kind: LiteralKind::Verbatim,
            c: lower_char(c),
        })
    };
    let capitals = (first..=last).filter(|c| lower_char(*c) != *c);
    Some(capitals.map(letter).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_found(source: &str, text: &str) -> bool {
        let hir = parse(source).unwrap();
        let regex = regex_automata::meta::Builder::new()
            .build_from_hir(&hir)
            .unwrap();
        regex.is_match(&lower_text(text))
    }

    #[test]
    fn letters_match_in_either_case() {
        for (source, text) in [
            ("Straße", "STRAßE"),
            ("[A-F]{3}", "abC"),
            ("[@-Z]{3}", "x@Y"),
            ("[x-z]{3}", "XYZ"),
            ("(?u:[А-Я]{3})", "дДЯ"),
            ("(?u:забудь)", "ЗАБУДЬ"),
            ("ΛΌΓΟΣ", "λόγος"),
            (r"(?u:\bÉTÉ\b)", "été"),
            ("(?u:忽略[一-龥])", "忽略之"),
            (r"\x41b", "AB"),
        ] {
            assert!(is_found(source, text), "{source} in {text}");
        }
    }

    #[test]
    fn what_a_class_excludes_it_excludes_in_either_case() {
        for (source, text) in [
            ("^[^a]$", "A"),
            ("^[^A]$", "a"),
            ("^[^A-Z]$", "q"),
            ("(?u:^[^А-Я]$)", "д"),
        ] {
            assert!(!is_found(source, text), "{source} in {text}");
        }
    }

    #[test]
    fn what_depends_on_case_or_on_single_bytes_is_not_converted() {
        for source in [
            "(?-i:A)b",
            "(?-i)ab",
            r"[a-z&&[^A]]",
            "[[:upper:]]",
            r"\xc3",
            r"[\x80-\xff]",
            "(unclosed",
        ] {
            assert!(parse(source).is_none(), "{source}");
        }
    }

    #[test]
    fn characters_stay_at_their_places() {
        let text = "İSTANBUL ẞ Ⱥ \u{212a} ΣΑΣ Ж 忽 ǅ";
        let lower = String::from_utf8(lower_text(text)).unwrap();
        assert_eq!(lower, "İstanbul ẞ Ⱥ \u{212a} σασ ж 忽 ǆ");
    }
}
