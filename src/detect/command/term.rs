//! The values of expressions in code and PowerShell, and the results of calls that join, cut,
//! reverse or decode texts.

use super::simulate;
use super::value::Taint;

/// Maximum number of items in one list.
const MAX_ITEMS: usize = 1_024;
/// Maximum length of a text that is produced, in bytes.
const MAX_TEXT: usize = 256 * 1024;
/// Stand-in for a part of a path that is not known, as a shell's variable.
const UNKNOWN_NAME: &str = "$_";

/// The value of an expression, as far as it is known.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Term {
    /// The text, or the texts of the items; none if the value is unknown.
    pub(super) items: Vec<String>,
    /// Whether the value is a list.
    pub(super) list: bool,
    /// The name of the value, if it can be called: `os.system`, `net.webclient`.
    pub(super) name: String,
    pub(super) taint: Taint,
}

impl Term {
    pub(super) fn text(text: impl Into<String>) -> Self {
        Self {
            items: vec![text.into()],
            ..Self::default()
        }
    }

    pub(super) fn list(items: Vec<String>) -> Self {
        Self {
            items,
            list: true,
            ..Self::default()
        }
    }

    pub(super) fn named(name: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            ..Self::default()
        }
    }

    pub(super) fn unknown(taint: Taint) -> Self {
        Self {
            taint,
            ..Self::default()
        }
    }

    pub(super) fn with(mut self, taint: Taint) -> Self {
        self.taint |= taint;
        self
    }

    /// Returns the same value under a name.
    pub(super) fn with_name(self, name: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            ..self
        }
    }

    /// Returns the same value under the name of one of its members.
    pub(super) fn member(self, member: &str) -> Self {
        // In Python, the parents of a path end at the root, and its anchor is the root.
        if matches!(member, "parents" | "anchor") {
            return Self::text("/");
        }
        let name = format!("{}.{member}", self.name);
        self.with_name(name)
    }

    /// Returns the first text; empty if the value is unknown.
    pub(super) fn first(&self) -> &str {
        self.items.first().map_or("", String::as_str)
    }

    pub(super) fn is_known(&self) -> bool {
        !self.items.is_empty()
    }

    /// Returns the number of bytes of all items.
    pub(super) fn size(&self) -> usize {
        self.items.iter().map(|item| item.len() + 8).sum()
    }

    fn number(&self) -> Option<i64> {
        parse_number(self.first())
    }

    /// Returns `self + more`: numbers are added, lists and texts joined.
    pub(super) fn plus(mut self, more: Self) -> Self {
        self.taint |= more.taint;
        // A list without items may be a value that is not known.
        if self.list && (self.is_known() || more.list) {
            self.items.extend(more.items);
            self.items.truncate(MAX_ITEMS);
            return self;
        }
        match (self.number(), more.number()) {
            (Some(a), Some(b)) if a.abs() < 1 << 40 && b.abs() < 1 << 40 => {
                self.items = vec![(a + b).to_string()]
            }
            _ => {
                let added = if more.list {
                    more.items.join(" ")
                } else {
                    more.first().to_owned()
                };
                match self.items.first_mut() {
                    // A folder with an unknown name in it is not that folder.
                    Some(text) if added.is_empty() && !more.is_known() && text.ends_with('/') => {
                        text.push_str(UNKNOWN_NAME);
                    }
                    Some(text) if text.len() + added.len() <= MAX_TEXT => text.push_str(&added),
                    Some(_) => {}
                    // If the text is unknown, only its end is known.
                    None if added.starts_with('/') => {
                        self.items.push(format!("{UNKNOWN_NAME}{added}"));
                    }
                    None => self
                        .items
                        .extend(Some(added).filter(|added| !added.is_empty())),
                }
            }
        }
        self.name.clear();
        self
    }

    /// Returns `self / more`, as paths are joined.
    pub(super) fn join_path(mut self, more: Self) -> Self {
        self.taint |= more.taint;
        for part in more.items {
            match self.items.first_mut() {
                Some(text) if part.starts_with('/') => *text = part,
                Some(text) if text.len() + part.len() < MAX_TEXT => {
                    if !text.is_empty() && !text.ends_with(['/', '\\']) {
                        text.push('/');
                    }
                    text.push_str(&part);
                }
                _ => {}
            }
        }
        self
    }

    /// Returns `self[index]`: one item or letter, a range, or (`::-1`) the reverse.
    pub(super) fn at(self, index: &[String]) -> Self {
        let chars: Vec<String> = if self.list {
            self.items
        } else {
            self.items.concat().chars().map(String::from).collect()
        };
        let length = chars.len() as i64;
        let mut picked = Vec::new();
        for position in index.iter().take(MAX_ITEMS) {
            let Some(n) = parse_number(position) else {
                return Self::unknown(self.taint);
            };
            let n = if n < 0 { length + n } else { n };
            picked.extend(usize::try_from(n).ok().and_then(|n| chars.get(n)).cloned());
        }
        let list = picked.len() > 1;
        Self {
            items: picked,
            list,
            ..Self::unknown(self.taint)
        }
    }

    pub(super) fn reverse(mut self) -> Self {
        if self.list {
            self.items.reverse();
        } else if let Some(text) = self.items.first_mut() {
            *text = text.chars().rev().collect();
        }
        self
    }

    /// Converts numbers to the letters that they encode.
    pub(super) fn into_letters(mut self) -> Self {
        for item in &mut self.items {
            if let Some(letter) = parse_number(item)
                .and_then(|n| u32::try_from(n).ok())
                .and_then(char::from_u32)
                && item.len() > 1
            {
                *item = letter.into();
            }
        }
        self
    }

    /// Joins the items to one text.
    pub(super) fn join(self, by: &str) -> Self {
        let mut text = self.items.join(by);
        if text.len() > MAX_TEXT {
            text.clear();
        }
        let items = if self.items.is_empty() {
            Vec::new()
        } else {
            vec![text]
        };
        Self {
            items,
            ..Self::unknown(self.taint)
        }
    }

    pub(super) fn replace(mut self, pattern: &str, by: &str) -> Self {
        if !pattern.is_empty() && by.len() <= 64 {
            for item in &mut self.items {
                if item.len() <= 65_536 {
                    *item = item.replace(pattern, by);
                }
            }
        }
        self
    }

    /// Fills in `{0}{1}`, `{}` and `%s`.
    pub(super) fn fill_in(self, values: &[String]) -> Self {
        let mut out = String::new();
        let mut next = 0;
        let text = self.items.into_iter().next().unwrap_or_default();
        let mut rest = text.as_str();
        while let Some(at) = rest.find(['{', '%']) {
            out.push_str(rest.get(..at).unwrap_or_default());
            let tail = rest.get(at..).unwrap_or_default();
            let (value, used) = match (tail.find('}'), tail.get(1..2)) {
                (Some(end), _) if tail.starts_with('{') && end <= 12 => {
                    let inner = tail.get(1..end).unwrap_or_default();
                    let digits = inner.split([':', ',', '!']).next().unwrap_or_default();
                    let n = digits.parse().unwrap_or_else(|_| {
                        next += 1;
                        next - 1
                    });
                    (values.get(n).map(String::as_str), end + 1)
                }
                (_, Some("s" | "d" | "q" | "v")) if tail.starts_with('%') => {
                    next += 1;
                    (values.get(next - 1).map(String::as_str), 2)
                }
                _ => (tail.get(..1), 1),
            };
            out.push_str(value.unwrap_or_default());
            rest = tail.get(used..).unwrap_or_default();
            if out.len() > MAX_TEXT {
                return Self::unknown(self.taint);
            }
        }
        out.push_str(rest);
        Self::text(out).with(self.taint)
    }
}

/// Returns the result of calling `method` (lower case) on `on` with `arguments`, if the call only
/// produces texts.
pub(super) fn call(method: &str, on: Option<&Term>, arguments: &[Term]) -> Option<Term> {
    let nothing = Term::default();
    let receiver = on.filter(|on| on.is_known() || on.taint != Taint::NONE);
    // The object of a method, or the first argument of a function.
    let subject = || receiver.or(arguments.first()).cloned().unwrap_or_default();
    let rest = if receiver.is_some() {
        arguments
    } else {
        arguments.get(1..).unwrap_or_default()
    };
    let arg = |n: usize| rest.get(n).unwrap_or(&nothing);
    let result = match method {
        "join" | "implode" => match (receiver, arguments) {
            (Some(on), []) => on.clone().join(""),
            (Some(on), [by]) if on.list => on.clone().join(by.first()),
            (Some(by), [items]) if items.list => items.clone().join(by.first()),
            (_, [by, items]) if items.list => items.clone().join(by.first()),
            (_, [items, by]) if items.list => items.clone().join(by.first()),
            (_, [by, items @ ..]) => {
                Term::list(items.iter().flat_map(|t| t.items.clone()).collect())
                    .with(by.taint | taint_of_terms(items))
                    .join(by.first())
            }
            _ => return None,
        },
        "concat" => rest.iter().cloned().fold(subject(), Term::plus),
        "split" | "explode" | "tochararray" | "chars" => {
            let (text, by) = match (receiver, arguments) {
                (None, [by, text, ..]) if method == "explode" => {
                    (text.clone(), by.first().to_owned())
                }
                _ => (subject(), arg(0).first().to_owned()),
            };
            let full_text = text.items.concat();
            let items: Vec<String> = match by.as_str() {
                "" if method == "split" && arguments.is_empty() => {
                    full_text.split_whitespace().map(String::from).collect()
                }
                "" => full_text.chars().map(String::from).collect(),
                by => full_text.split(by).map(String::from).collect(),
            };
            Term::list(items.into_iter().take(MAX_ITEMS).collect()).with(text.taint)
        }
        "reverse" | "reversed" | "strrev" => subject().reverse(),
        "replace" | "replaceall" | "gsub" | "sub" | "str_replace" | "translate" => {
            match (receiver, arguments) {
                (None, [pattern, by, text, ..]) => {
                    text.clone().replace(pattern.first(), by.first())
                }
                (Some(on), [pattern, by, ..]) => on.clone().replace(pattern.first(), by.first()),
                (Some(on), [pattern]) => on.clone().replace(pattern.first(), ""),
                _ => return None,
            }
        }
        "lower" | "tolower" | "tolowercase" | "downcase" | "strtolower" | "lc" | "casefold"
        | "tolowerinvariant" => subject().map_items(|item| item.to_lowercase()),
        "upper" | "toupper" | "touppercase" | "upcase" | "strtoupper" | "uc" => {
            subject().map_items(|item| item.to_uppercase())
        }
        "swapcase" => subject().map_items(swap_case),
        "trim" | "strip" | "trimstart" | "trimend" | "lstrip" | "rstrip" | "chomp" => {
            let marks: Vec<char> = arg(0).items.concat().chars().collect();
            let cut = |c: char| {
                if marks.is_empty() {
                    c.is_whitespace()
                } else {
                    marks.contains(&c)
                }
            };
            subject().map_items(|item| item.trim_matches(cut).to_owned())
        }
        "substring" | "substr" | "slice" | "remove" if receiver.is_some() || method != "remove" => {
            let text: Vec<char> = subject().items.concat().chars().collect();
            let start = usize::try_from(arg(0).number()?).unwrap_or(0);
            let count = arg(1).number().and_then(|n| usize::try_from(n).ok());
            let part: String = if method == "remove" {
                let end = count.map_or(text.len(), |n| start.saturating_add(n));
                text.iter()
                    .enumerate()
                    .filter(|(at, _)| *at < start || *at >= end)
                    .map(|(_, c)| c)
                    .collect()
            } else {
                text.iter()
                    .skip(start)
                    .take(count.unwrap_or(usize::MAX))
                    .collect()
            };
            Term::text(part).with(subject().taint)
        }
        "insert" if receiver.is_some() => {
            let text = subject().items.concat();
            let at = usize::try_from(arg(0).number()?)
                .ok()
                .and_then(|n| text.char_indices().nth(n))
                .map_or(text.len(), |c| c.0);
            let (before, after) = text.split_at_checked(at)?;
            Term::text(format!("{before}{}{after}", arg(1).first())).with(subject().taint)
        }
        "format" | "sprintf" => {
            let values: Vec<String> = rest.iter().flat_map(|t| t.items.clone()).collect();
            subject().fill_in(&values).with(taint_of_terms(rest))
        }
        "chr" | "unichr" | "char" | "fromcharcode" | "fromcodepoint" => Term::list(
            arguments
                .iter()
                .flat_map(|t| t.clone().into_letters().items)
                .collect(),
        )
        .join(""),
        "bytes" | "bytearray" => {
            let subject = subject();
            if subject.list {
                subject.into_letters().join("")
            } else {
                subject
            }
        }
        "fromhex" | "unhexlify" | "hex2bin" | "fromhexstring" => {
            decode_items(subject(), simulate::hex_text)
        }
        "pack" => decode_items(arguments.get(1)?.clone(), simulate::hex_text),
        "b64decode" | "atob" | "base64_decode" | "decode_base64" | "decode64"
        | "strict_decode64" | "urlsafe_decode64" | "urlsafe_b64decode" | "decodebytes"
        | "a2b_base64" | "decodestring" | "frombase64string" | "standard_b64decode"
        | "b64_decode" => decode_items(subject(), simulate::base64_text),
        "decode" | "from" | "encode" => {
            let encoding = arguments
                .iter()
                .rev()
                .map(Term::first)
                .find(|how| !how.is_empty())
                .unwrap_or_default();
            match encoding
                .to_ascii_lowercase()
                .replace(['-', '_'], "")
                .as_str()
            {
                "rot13" => decode_items(subject(), |text| Some(rot13(text))),
                "hex" | "hexcodec" => decode_items(subject(), simulate::hex_text),
                "base64" | "base64url" | "base64codec" => {
                    decode_items(subject(), simulate::base64_text)
                }
                _ => subject(),
            }
        }
        "str_rot13" | "rot13" => decode_items(subject(), |text| Some(rot13(text))),
        "decompress" | "gzinflate" | "gzuncompress" | "inflate" | "gunzipsync" => {
            Term::unknown(subject().taint | Taint::DECODED)
        }
        "tostring" | "str" | "string" | "text" | "expanduser" | "expandvars" | "realpath"
        | "abspath" | "resolve" | "list" | "tuple" | "iter" | "getstring" | "getbytes"
        | "expand_path" | "normpath" | "fspath" | "flat" | "rawurldecode" | "unescape"
        | "unquote" | "urldecode" | "decodeuricomponent" | "path" | "purepath" | "posixpath"
        | "scalar" | "to_s" | "valueof" | "freeze" | "dup" | "quote" | "as_posix" | "absolute"
        | "utf8" | "readtoend" | "sorted" => subject(),
        "home" | "homedir" | "gethome" => Term::text("~"),
        _ => return None,
    };
    Some(result)
}

impl Term {
    fn map_items(mut self, change: impl Fn(&str) -> String) -> Self {
        for item in &mut self.items {
            *item = change(item);
        }
        self
    }
}

fn decode_items(term: Term, decode: impl Fn(&str) -> Option<String>) -> Term {
    let items: Vec<String> = decode(&term.items.concat())
        .filter(|text| !text.is_empty())
        .into_iter()
        .collect();
    Term {
        items,
        ..Term::unknown(term.taint | Taint::DECODED)
    }
}

/// Returns the taint of all values together.
pub(super) fn taint_of_terms(terms: &[Term]) -> Taint {
    terms.iter().map(|term| term.taint).collect()
}

/// Returns a text with upper-case letters of ASCII in lower case, and the reverse.
pub(super) fn swap_case(text: &str) -> String {
    let swap = |c: char| match c.is_ascii_lowercase() {
        true => c.to_ascii_uppercase(),
        false => c.to_ascii_lowercase(),
    };
    text.chars().map(swap).collect()
}

fn rot13(text: &str) -> String {
    let turn = |c: char, first: u8| char::from(first + (c as u8 - first + 13) % 26);
    text.chars()
        .map(|c| match c {
            'a'..='z' => turn(c, b'a'),
            'A'..='Z' => turn(c, b'A'),
            c => c,
        })
        .collect()
}

/// Parses a decimal, hexadecimal (`0x72`) or octal (`0o162`) number.
pub(super) fn parse_number(text: &str) -> Option<i64> {
    let (sign, digits) = text
        .trim()
        .strip_prefix('-')
        .map_or((1, text.trim()), |rest| (-1, rest));
    let value = if let Some(hex) = digits
        .strip_prefix("0x")
        .or_else(|| digits.strip_prefix("0X"))
    {
        i64::from_str_radix(hex, 16).ok()?
    } else if let Some(octal) = digits.strip_prefix("0o") {
        i64::from_str_radix(octal, 8).ok()?
    } else if digits.bytes().all(|b| b.is_ascii_digit()) {
        digits.parse().ok()?
    } else {
        return None;
    };
    Some(sign * value)
}
