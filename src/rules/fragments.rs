//! Named fragments of regexes: a rule file's `[define]`, and `{name}` in its regexes.
//!
//! A word class that several regexes share is written once. Each `{name}` is replaced by the
//! fragment in a group, `(?:…)`, before any regex is parsed: the expanded regex is what is
//! compiled, searched for and digested. The build script expands the built-in files with the same
//! code. A quantifier (`{0,3}`) never begins with a letter, so it is never mistaken for a name.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::ops::Range;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// Maximum nesting depth of fragments.
const DEPTH: usize = 8;
/// Maximum length, in bytes, of a fragment name and of text in braces that is parsed as one.
const NAME_BYTES: usize = 64;
/// Maximum length of an expanded regex, in bytes.
const BYTES: usize = 64 << 10;
/// Names that regex syntax itself defines for `\b{…}`.
const BOUNDARIES: [&str; 4] = ["start", "end", "start-half", "end-half"];
/// Replaces a regex that cannot be expanded: its fault is reported once, and the file is rejected.
const STAND_IN: &str = "unexpanded";
/// Kinds whose `any` contains regexes.
const KINDS: [&str; 2] = ["pattern", "signal"];
/// Keys of a clause for commands whose values are regexes.
const COMMAND_KEYS: [&str; 5] = ["argument", "content", "line", "raw", "unless"];

/// A fault in a fragment or in a reference to one.
#[derive(Debug, PartialEq)]
pub(crate) struct FragmentFault {
    /// The location in the file, in bytes.
    pub(crate) span: Range<usize>,
    pub(crate) message: String,
    pub(crate) hint: String,
}

/// Expands the references in the regexes of a rule file. `text` is the file.
pub(crate) fn expand(root: &mut DeTable<'_>, text: &str) -> Vec<FragmentFault> {
    let mut fragments = Fragments {
        by_name: BTreeMap::new(),
        text,
        faults: Vec::new(),
    };
    fragments.read(root.get("define"));
    for rule in items(root.get_mut("rule")) {
        let Some(rule) = table(rule) else { continue };
        fragments.expand_all(rule.get_mut("unless"));
        let Some(find) = rule.get_mut("find").and_then(table) else {
            continue;
        };
        for kind in KINDS {
            fragments.expand_all(
                find.get_mut(kind)
                    .and_then(table)
                    .and_then(|kind| kind.get_mut("any")),
            );
        }
        let Some(command) = find.get_mut("command").and_then(table) else {
            continue;
        };
        fragments.expand_clause(command);
        items(command.get_mut("any"))
            .filter_map(table)
            .for_each(|clause| fragments.expand_clause(clause));
    }
    fragments.report_unused();
    fragments.faults
}

struct Fragments<'t> {
    by_name: BTreeMap<String, Fragment>,
    text: &'t str,
    faults: Vec<FragmentFault>,
}

struct Fragment {
    source: String,
    span: Range<usize>,
    state: State,
    is_used: bool,
}

#[derive(Clone)]
enum State {
    New,
    /// Being expanded: a reference to the fragment from here is a cycle.
    Expanding,
    Expanded(String),
    /// Already reported.
    Faulty,
}

impl Fragments<'_> {
    fn read(&mut self, define: Option<&Spanned<DeValue<'_>>>) {
        let Some(define) = define else { return };
        let DeValue::Table(table) = define.get_ref() else {
            return self.add_fault(
                define.span(),
                "`define` must be a table",
                "write `[define]`, and below it `name = '''…'''`",
            );
        };
        for (name, value) in table {
            let DeValue::String(source) = value.get_ref() else {
                self.add_fault(
                    value.span(),
                    format!("the fragment `{}` must be a string", name.get_ref()),
                    "a regex in '''…'''",
                );
                continue;
            };
            if !is_name(name.get_ref()) {
                let hint = "a name has up to 64 lower-case letters and digits joined by hyphens, begins with a letter, and is \
                            not `start`, `end`, `start-half` or `end-half`";
                self.add_fault(
                    name.span(),
                    format!("`{}` is not a valid fragment name", name.get_ref()),
                    hint,
                );
                continue;
            }
            let fragment = Fragment {
                source: source.to_string(),
                span: value.span(),
                state: State::New,
                is_used: false,
            };
            self.by_name.insert(name.get_ref().to_string(), fragment);
        }
        let names: Vec<String> = self.by_name.keys().cloned().collect();
        names.iter().for_each(|name| self.resolve(name, 1));
    }

    /// Expands a fragment, at most once.
    fn resolve(&mut self, name: &str, depth: usize) {
        let Some(fragment) = self
            .by_name
            .get_mut(name)
            .filter(|fragment| matches!(fragment.state, State::New))
        else {
            return;
        };
        fragment.state = State::Expanding;
        let source = fragment.source.clone();
        let span = fragment.span.clone();
        let expanded = self
            .expand_regex(&source, &span, depth)
            .filter(|regex| self.is_regex(name, regex, &span));
        if let Some(fragment) = self.by_name.get_mut(name) {
            fragment.state = expanded.map_or(State::Faulty, State::Expanded);
        }
    }

    /// Returns whether a fragment is a regex on its own: inside its group, it must not close a
    /// group that it has not opened.
    fn is_regex(&mut self, name: &str, regex: &str, span: &Range<usize>) -> bool {
        let wrong = regex_syntax::ast::parse::Parser::new()
            .parse(regex)
            .err()
            .map(|error| error.kind().to_string());
        let wrong = wrong.or_else(|| regex.is_empty().then(|| "it is empty".to_owned()));
        if let Some(wrong) = &wrong {
            self.add_fault(
                span.clone(),
                format!("the fragment `{name}` is not a regex: {wrong}"),
                "it must be a regex of its own",
            );
        }
        wrong.is_none()
    }

    /// Expands the regexes of a clause for commands.
    fn expand_clause(&mut self, clause: &mut DeTable<'_>) {
        for key in COMMAND_KEYS {
            self.expand_all(clause.get_mut(key));
        }
    }

    fn expand_all(&mut self, regexes: Option<&mut Spanned<DeValue<'_>>>) {
        for regex in items(regexes) {
            let span = regex.span();
            let DeValue::String(source) = regex.get_mut() else {
                continue;
            };
            match self.expand_regex(source, &span, 0) {
                Some(expanded) if expanded != **source => *source = Cow::Owned(expanded),
                Some(_) => {}
                None => *source = Cow::Borrowed(STAND_IN),
            }
        }
    }

    /// Returns a regex with the fragments that it references inserted. `None` if it cannot be
    /// expanded, in which case a fault is recorded.
    fn expand_regex(&mut self, source: &str, span: &Range<usize>, depth: usize) -> Option<String> {
        let mut expanded = String::new();
        let mut is_complete = true;
        let mut from = 0;
        for reference in references(source) {
            let name = source.get(reference.start + 1..reference.end - 1)?;
            expanded.push_str(source.get(from..reference.start)?);
            match self.fragment(name, span, depth) {
                Some(fragment) => expanded.extend(["(?:", &fragment, ")"]),
                None => is_complete = false,
            }
            from = reference.end;
            if expanded.len() > BYTES {
                let message = format!("the regex is longer than {BYTES} bytes with its fragments");
                self.add_fault(self.place(name, span), message, "write several regexes");
                return None;
            }
        }
        expanded.push_str(source.get(from..)?);
        is_complete.then_some(expanded)
    }

    fn fragment(&mut self, name: &str, span: &Range<usize>, depth: usize) -> Option<String> {
        if depth > DEPTH {
            self.add_fault(
                self.place(name, span),
                format!("fragments are nested more than {DEPTH} deep"),
                "write out the innermost",
            );
            return None;
        }
        self.resolve(name, depth + 1);
        let Some(fragment) = self.by_name.get_mut(name) else {
            let names: Vec<String> = self
                .by_name
                .keys()
                .map(|name| format!("`{name}`"))
                .collect();
            let known = if names.is_empty() {
                "none".to_owned()
            } else {
                names.join(", ")
            };
            let hint = format!("fragments of this file: {known}; escape a literal brace as `\\{{`");
            self.add_fault(
                self.place(name, span),
                format!("no fragment `{name}` is defined"),
                &hint,
            );
            return None;
        };
        fragment.is_used = true;
        match fragment.state.clone() {
            State::Expanded(text) => Some(text),
            State::New | State::Faulty => None,
            State::Expanding => {
                self.add_fault(
                    self.place(name, span),
                    format!("the fragment `{name}` refers to itself"),
                    "fragments must not be recursive",
                );
                None
            }
        }
    }

    fn report_unused(&mut self) {
        let unused: Vec<_> = self
            .by_name
            .iter()
            .filter(|(_, fragment)| !fragment.is_used)
            .collect();
        let unused: Vec<_> = unused
            .into_iter()
            .map(|(name, fragment)| (name.clone(), fragment.span.clone()))
            .collect();
        for (name, span) in unused {
            self.add_fault(
                span,
                format!("nothing refers to the fragment `{name}`"),
                "write `{name}` in a regex, or delete it",
            );
        }
    }

    /// Returns the location of a reference to a name within the string at `span`.
    fn place(&self, name: &str, span: &Range<usize>) -> Range<usize> {
        let within = self
            .text
            .get(span.clone())
            .and_then(|text| text.find(&format!("{{{name}}}")))
            .unwrap_or_default();
        span.start + within..span.end
    }

    fn add_fault(&mut self, span: Range<usize>, message: impl Into<String>, hint: &str) {
        self.faults.push(FragmentFault {
            span,
            message: message.into(),
            hint: hint.to_owned(),
        });
    }
}

fn is_name(name: &str) -> bool {
    let is_word = |word: &str| {
        !word.is_empty()
            && word
                .bytes()
                .all(|b| b.is_ascii_lowercase() || b.is_ascii_digit())
    };
    name.len() <= NAME_BYTES
        && name.starts_with(|c: char| c.is_ascii_lowercase())
        && name.split('-').all(is_word)
        && !BOUNDARIES.contains(&name)
}

fn table<'v, 'i>(value: &'v mut Spanned<DeValue<'i>>) -> Option<&'v mut DeTable<'i>> {
    match value.get_mut() {
        DeValue::Table(table) => Some(table),
        _ => None,
    }
}

fn items<'v, 'i>(
    value: Option<&'v mut Spanned<DeValue<'i>>>,
) -> impl Iterator<Item = &'v mut Spanned<DeValue<'i>>> {
    match value.map(Spanned::get_mut) {
        Some(DeValue::Array(items)) => items.iter_mut(),
        _ => [].iter_mut(),
    }
}

/// Returns the locations of references to fragments in a regex, braces included: not in a class,
/// not after a backslash, not in `\p{…}` and similar escapes.
fn references(source: &str) -> Vec<Range<usize>> {
    let bytes = source.as_bytes();
    let mut ranges = Vec::new();
    let mut classes = 0_usize;
    let mut at = 0;
    while let Some(b) = bytes.get(at) {
        match b {
            b'\\' => at = escape_end(source, at),
            b'[' => {
                classes += 1;
                at += 1;
                at += usize::from(bytes.get(at) == Some(&b'^'));
                // As the first character of a class, `]` is literal.
                at += usize::from(bytes.get(at) == Some(&b']'));
            }
            b']' => {
                classes = classes.saturating_sub(1);
                at += 1;
            }
            b'{' if classes == 0 && bytes.get(at + 1).is_some_and(u8::is_ascii_alphabetic) => {
                let end = braced_text(source, at).map(|name| at + 2 + name.len());
                ranges.extend(end.map(|end| at..end));
                at = end.unwrap_or(at + 1);
            }
            _ => at += 1,
        }
    }
    ranges
}

/// Returns the position after an escape that begins at `at`.
fn escape_end(source: &str, at: usize) -> usize {
    let after = at + 2;
    let Some(braced) = braced_text(source, after) else {
        return after;
    };
    match source.as_bytes().get(at + 1) {
        Some(b'p' | b'P' | b'x' | b'u' | b'U') => after + 2 + braced.len(),
        Some(b'b' | b'B') if BOUNDARIES.contains(&braced) => after + 2 + braced.len(),
        _ => after,
    }
}

/// Returns the text between a brace at `at` and the brace that closes it. `None` if there is no
/// closing brace within [`NAME_BYTES`], so that many braces cost linear time.
fn braced_text(source: &str, at: usize) -> Option<&str> {
    let inside = source.as_bytes().get(at..)?.strip_prefix(b"{")?;
    let length = inside
        .iter()
        .take(NAME_BYTES + 1)
        .position(|b| *b == b'}')?;
    source.get(at + 1..at + 1 + length)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn first<'d, 't>(list: &'d DeValue<'t>) -> &'d DeValue<'t> {
        list.as_array().unwrap().first().unwrap().get_ref()
    }

    fn expanded(define: &str, regex: &str) -> Result<String, Vec<String>> {
        let file =
            format!("[define]\n{define}\n[[rule]]\nfind.signal = {{ any = ['''{regex}'''] }}\n");
        let mut root = DeTable::parse(&file).unwrap();
        let faults = expand(root.get_mut(), &file);
        if !faults.is_empty() {
            return Err(faults.into_iter().map(|fault| fault.message).collect());
        }
        let rule = first(root.get_ref().get("rule").unwrap().get_ref());
        let any = rule
            .get("find")
            .and_then(|find| find.get_ref().get("signal"))
            .and_then(|kind| kind.get_ref().get("any"));
        Ok(first(any.unwrap().get_ref()).as_str().unwrap().to_owned())
    }

    #[test]
    fn regexes_of_clauses_for_commands_are_expanded() {
        let file = "[define]\nplace = 'prod|live'\n[[rule]]\nfind.command = { any = [\n\
                    { program = ['rm'], line = ['-{place}$'] }, { raw = ['x {place}'] } ] }\n\
                    [[rule]]\nfind.command = { unless = ['{place}'] }\n";
        let mut root = DeTable::parse(file).unwrap();
        assert_eq!(expand(root.get_mut(), file), []);
        let text = format!("{:?}", root.get_ref());
        assert_contains!(
            text,
            "-(?:prod|live)$",
            "x (?:prod|live)",
            "\"(?:prod|live)\""
        );
    }

    #[test]
    fn a_name_becomes_a_group() {
        let define = "verb = '''drop|leave'''\nall = '''{verb}\\s+{object}'''\nobject = \"rules?\"";
        for (define, regex, with_groups) in [
            (define, r"\b{all}+", r"\b(?:(?:drop|leave)\s+(?:rules?))+"),
            ("verb = 'a'", r"{verb}\s{verb}{2}", r"(?:a)\s(?:a){2}"),
            ("verb = 'a'", r"\\{verb}é", r"\\(?:a)é"),
        ] {
            assert_eq!(
                expanded(define, regex).as_deref(),
                Ok(with_groups),
                "{regex}"
            );
        }
    }

    #[test]
    fn what_regexes_mean_by_braces_stays() {
        for own in [
            r"a{3}",
            r"a{0,3}",
            r"a{2,}?",
            r"\{verb\}",
            r"\{verb}",
            r"[{verb}]",
            r"[^]{verb}]",
            r"[a[{b}]{c}]",
            r"\p{Greek}",
            r"\x{1F}",
            r"\u{e9}",
            r"\b{start}",
            r"\b{end-half}",
            r"\PN",
        ] {
            let regex = expanded("verb = 'x'", &format!("{own}{{verb}}"));
            assert_eq!(regex, Ok(format!("{own}(?:x)")), "{own}");
        }
        let alone = |regex: &str| expanded("verb = 'x'", &format!("{{verb}}{regex}"));
        assert_eq!(alone("{verb").as_deref(), Ok("(?:x){verb"));
        assert_eq!(alone("{,3}").as_deref(), Ok("(?:x){,3}"));
    }

    #[test]
    fn faults_are_noted() {
        let of = |define: &str, regex: &str| expanded(define, regex).unwrap_err().join("; ");
        let no_regex = "the fragment `a` is not a regex: ";
        for (define, regex, faults) in [
            ("a = 'x'", "{a}{b}", "no fragment `b` is defined"),
            (
                "a = 'x'",
                "{a}{A}{c}",
                "no fragment `A` is defined; no fragment `c` is defined",
            ),
            ("a = 'x'", "b", "nothing refers to the fragment `a`"),
            (
                "a = '{b}'\nb = '{a}'",
                "{a}",
                "the fragment `a` refers to itself",
            ),
            ("a = '{a}'", "{a}", "the fragment `a` refers to itself"),
            ("a = 'x)|(y'", "({a})", &format!("{no_regex}unopened group")),
            ("a = ''", "{a}b", &format!("{no_regex}it is empty")),
            ("a = 1", "b", "the fragment `a` must be a string"),
        ] {
            assert_eq!(of(define, regex), faults, "{define} {regex}");
        }
        for name in ["a_b", "A", "1a", "a--b", "end"] {
            let faults = of(&format!("{name} = 'x'"), "b");
            assert!(faults.contains("is not a valid fragment name"), "{name}");
        }
    }

    #[test]
    fn names_are_bounded_and_many_braces_cost_linear_time() {
        let longest = "a".repeat(NAME_BYTES);
        assert_eq!(
            references(&format!("{{{longest}}}{{{longest}a}}{{b}}")),
            [0..NAME_BYTES + 2, 2 * NAME_BYTES + 5..2 * NAME_BYTES + 8]
        );
        let before = std::time::Instant::now();
        for open in [r"\x{", "{a", r"\b{", "{a{"] {
            assert!(references(&open.repeat(60_000)).is_empty(), "{open}");
        }
        let took = before.elapsed();
        assert!(took < std::time::Duration::from_secs(5), "{took:?}");
    }

    #[test]
    fn depth_and_length_are_bounded() {
        // Each fragment refers to the one before it, a number of times.
        let links = |count: usize, first: &str, times: usize| {
            let link = |n: usize| match n.checked_sub(1) {
                None => format!("a0 = '{first}'\n"),
                Some(before) => format!("a{n} = '{}'\n", format!("{{a{before}}}").repeat(times)),
            };
            let define: String = (0..count).map(link).collect();
            expanded(&define, &format!("{{a{}}}", count - 1))
        };
        assert!(links(DEPTH, "x", 1).is_ok());
        let doubled = |count| links(count, &"x".repeat(1000), 8);
        assert!(doubled(2).is_ok());
        assert_eq!(
            doubled(6).unwrap_err(),
            [format!(
                "the regex is longer than {BYTES} bytes with its fragments"
            )]
        );
    }
}
