//! Prepares the built-in rules at build time, so that the gate starts fast. The output is: the
//! prepared regexes and keywords, which `src/detect/prepared` reads; the words that are searched
//! for, which `src/detect/search/vocabulary.rs` reads; the parsed rule files without their cases,
//! which `src/document.rs` reads; and the lists of these files.

use std::collections::{BTreeMap, HashMap};
use std::error::Error;
use std::path::{Path, PathBuf};
use std::{env, fs};

use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// The part of the crate that determines what is searched for in place of a regex.
#[allow(
    dead_code,
    unused_imports,
    unreachable_pub,
    reason = "the rest of these modules is for the gateway"
)]
mod detect {
    pub(crate) mod prepared {
        mod regexes;

        pub(crate) use crate::document::bytes::{Reader, Writer};
        pub(crate) use regexes::{Use, hash};
    }

    pub(crate) mod search {
        mod alternatives;
        mod class;
        mod entry;
        mod filter;
        mod folded;
        mod grams;
        mod grouped;
        pub(crate) mod hir;
        mod keywords;
        mod literals;
        mod lower_case;
        mod parse;
        mod short_words;
        mod word_list;
        mod words;

        pub(crate) use class::Class;
        pub(crate) use keywords::Keywords;
        pub(crate) use literals::{Branch, branches_of, write_branches};
        pub(crate) use parse::parse;
        pub(crate) use word_list::Vocabulary;
        pub(crate) use words::Words;
    }

    pub(crate) mod secret {
        pub(crate) mod begin;
        mod class;
    }
}

/// The part of the crate that writes the parsed files.
#[allow(dead_code, reason = "the rest is for the gateway")]
mod document {
    pub(crate) mod bytes;
    pub(crate) mod prepared;
}

/// The part of the crate that expands the named fragments of rule files, and that computes the
/// digest of what a rule looks for.
mod rules {
    pub(crate) mod content;
    pub(crate) mod fragments;
}

use detect::prepared::{Use, Writer, hash};
use detect::search::{self, Branch, Class, Keywords, Vocabulary, Words};
use detect::secret::begin::ShapeStart;
use document::prepared::Texts;
use rules::{content, fragments};

/// Keys of regexes that are searched for by their literals.
const BY_LITERALS: [&str; 2] = ["any", "raw"];

/// The prepared record of each text, by the text's hash; empty if only the text's validity is
/// recorded.
type Prepared = BTreeMap<u64, Vec<u8>>;

/// The regexes of all rules and their keywords, collected while the files are read.
#[derive(Default)]
struct Searched {
    regexes: BTreeMap<String, Vec<Branch>>,
    /// The regexes as the compiler takes them.
    hirs: Prepared,
    keywords: BTreeMap<String, Keywords>,
    /// The words of rules that look in the same places, by these places.
    words: BTreeMap<String, Numbered>,
}

/// Distinct words, numbered in the order in which they were added.
#[derive(Default)]
struct Numbered {
    in_order: Vec<Vec<u8>>,
    numbers: HashMap<Vec<u8>, u32>,
}

impl Numbered {
    fn add(&mut self, word: &[u8]) {
        self.numbers.entry(word.to_owned()).or_insert_with(|| {
            self.in_order.push(word.to_owned());
            u32::try_from(self.in_order.len() - 1).unwrap_or(u32::MAX)
        });
    }

    fn number_of(&self) -> impl Fn(&[u8]) -> Option<u32> {
        |word| self.numbers.get(word).copied()
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    for input in [
        "rules",
        "src/build.rs",
        "src/detect/prepared",
        "src/detect/search",
        "src/detect/secret",
        "src/document",
        "src/rules/content.rs",
        "src/rules/fragments.rs",
    ] {
        println!("cargo::rerun-if-changed={input}");
    }
    let out = PathBuf::from(env::var_os("OUT_DIR").ok_or("no OUT_DIR")?);
    let (mut prepared, mut searched) = (Prepared::new(), Searched::default());
    let (mut files, mut texts) = (Writer::default(), Texts::default());
    let rule_files = rule_files(Path::new("rules"))?;
    for file in &rule_files {
        let text = fs::read_to_string(file)?;
        let mut rules = DeTable::parse(&text)?;
        // Errors are reported when the gate loads the file.
        fragments::expand(rules.get_mut(), &text);
        for rule in rules
            .get_ref()
            .get("rule")
            .and_then(|rules| rules.get_ref().as_array())
            .into_iter()
            .flatten()
        {
            let mut add =
                |key: &str| add(key, rule.get_ref().get(key), &mut prepared, &mut searched);
            add("find");
            add("unless");
            searched.add_words(rules.get_ref(), rule.get_ref());
        }
        add_digests(rules.get_mut());
        leave_out(rules.get_mut());
        let mut content = Writer::default();
        document::prepared::write(rules.get_ref(), &places(&text), &mut texts, &mut content)
            .map_err(|kind| format!("{}: {kind}", file.display()))?;
        files.text(file.display().to_string().as_bytes());
        files.text(&content.0);
    }
    fs::write(
        out.join("prepared_words.bin"),
        searched.write(&mut prepared),
    )?;
    fs::write(out.join("prepared.bin"), table(&prepared, &searched.hirs))?;
    fs::write(out.join("prepared_files.bin"), files.0)?;
    let is_of_programs = |file: &&PathBuf| file.starts_with("rules/programs");
    let (programs, rules): (Vec<_>, Vec<_>) = rule_files.iter().partition(is_of_programs);
    fs::write(out.join("rule_files.rs"), list("FILES", &rules))?;
    fs::write(
        out.join("program_files.rs"),
        list("PROGRAM_FILES", &programs),
    )?;
    fs::write(out.join("prepared_texts.txt"), texts.all)?;
    Ok(())
}

/// Adds to each rule the digest of what it looks for.
fn add_digests(file: &mut DeTable<'_>) {
    let Some(DeValue::Array(rules)) = file.get_mut("rule").map(Spanned::get_mut) else {
        return;
    };
    for rule in rules.iter_mut() {
        if let DeValue::Table(rule) = rule.get_mut() {
            let digest = DeValue::String(content::digest(rule).into());
            rule.insert(
                Spanned::new(0..0, "digest".into()),
                Spanned::new(0..0, digest),
            );
        }
    }
}

/// Removes the fragments, which are already expanded, and all cases.
fn leave_out(file: &mut DeTable<'_>) {
    file.remove("define");
    for key in ["rule", "program"] {
        let Some(DeValue::Array(entries)) = file.get_mut(key).map(Spanned::get_mut) else {
            continue;
        };
        for entry in entries.iter_mut() {
            if let DeValue::Table(entry) = entry.get_mut() {
                entry.remove("catches");
                entry.remove("spares");
            }
        }
    }
}

/// Returns a function from a byte offset of `text` to its line and column, both counted from 1.
fn places(text: &str) -> impl Fn(usize) -> (usize, usize) {
    let starts: Vec<usize> = [0]
        .into_iter()
        .chain(text.match_indices('\n').map(|(at, _)| at + 1))
        .collect();
    move |at| {
        let line = starts.partition_point(|start| *start <= at);
        let start = starts.get(line - 1).copied().unwrap_or_default();
        (
            line,
            text.get(start..at).unwrap_or_default().chars().count() + 1,
        )
    }
}

fn rule_files(folder: &Path) -> Result<Vec<PathBuf>, Box<dyn Error>> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            files.extend(rule_files(&path)?);
        } else if path
            .extension()
            .is_some_and(|extension| extension == "toml")
        {
            files.push(path);
        }
    }
    // The order of the entries of a folder differs between machines; a build must not.
    files.sort();
    Ok(files)
}

/// Returns the source of a list of files, each with its name and its text.
fn list(name: &str, files: &[&PathBuf]) -> String {
    let entries: String = files
        .iter()
        .map(|file| {
            let file = file.display();
            format!("({file:?}, include_str!(concat!(env!(\"CARGO_MANIFEST_DIR\"), \"/{file}\"))),")
        })
        .collect();
    format!("pub static {name}: &[(&str, &str)] = &[{entries}];")
}

/// Adds each string below `key` that is a regex.
fn add(
    key: &str,
    value: Option<&Spanned<DeValue<'_>>>,
    prepared: &mut Prepared,
    searched: &mut Searched,
) {
    match value.map(Spanned::get_ref) {
        Some(DeValue::String(source)) => {
            add_regex(source, BY_LITERALS.contains(&key), prepared, searched);
            // The words of such a regex are searched for in any case.
            if let Some(source) = source.strip_prefix("(?i)").filter(|_| key == "raw") {
                add_regex(source, true, prepared, searched);
            }
        }
        Some(DeValue::Array(values)) => values
            .iter()
            .for_each(|value| add(key, Some(value), prepared, searched)),
        Some(DeValue::Table(shapes)) if key == "shapes" => shapes
            .values()
            .for_each(|shape| add_shape(shape.get_ref(), prepared)),
        Some(DeValue::Table(table)) => {
            table
                .iter()
                .for_each(|(key, value)| add(key.get_ref(), Some(value), prepared, searched));
        }
        _ => {}
    }
}

fn add_regex(source: &str, by_literals: bool, prepared: &mut Prepared, searched: &mut Searched) {
    if search::parse(source).is_err() {
        return;
    }
    prepared.entry(hash(Use::Search, source)).or_default();
    if by_literals
        && !searched.regexes.contains_key(source)
        && let Ok(branches) = search::branches_of(source)
    {
        searched.regexes.insert(source.to_owned(), branches);
        if let Some(hir) = search::hir::in_lower_case(source) {
            let mut record = Writer::default();
            search::hir::write(&hir, &mut record);
            let key = hash(Use::LowerCase, source);
            searched.hirs.insert(key, record.0);
        }
    }
}

impl Searched {
    /// Adds the words of a rule with phrases to those of the other rules that look in the same
    /// places.
    fn add_words(&mut self, file: &DeTable<'_>, rule: &DeValue<'_>) {
        let text = |table: &DeTable<'_>, key: &str| {
            table
                .get(key)
                .and_then(|value| value.get_ref().as_str())
                .map(str::to_owned)
        };
        let find = |kind: &str| rule.get("find")?.get_ref().get(kind);
        let Some(phrase) = find("pattern")
            .or_else(|| find("signal"))
            .map(Spanned::get_ref)
        else {
            return;
        };
        // Signals in different places add up, so they are looked for everywhere.
        let only = rule
            .get("only")
            .or_else(|| file.get("only"))
            .filter(|_| find("pattern").is_some());
        let places = only
            .and_then(|only| only.get_ref().get("surfaces"))
            .map_or_else(Vec::new, |places| strings(places.get_ref()));
        let is_around_anchors =
            find("signal").is_some_and(|signal| class_of(signal.get_ref()) == Class::Other);
        let direction = text(file, "direction");
        let key = format!("{direction:?} {places:?} {is_around_anchors}");
        let words = self.words.entry(key).or_default();
        let keywords = phrase
            .get("keywords")
            .map_or_else(Vec::new, |keywords| strings(keywords.get_ref()));
        let keywords = self
            .keywords
            .entry(keywords.join("\n"))
            .or_insert_with(|| Keywords::new(&keywords));
        for source in phrase
            .get("any")
            .map_or_else(Vec::new, |any| strings(any.get_ref()))
        {
            let branches = self.regexes.get(source).into_iter().flatten();
            branches
                .flat_map(|branch| branch.words(keywords).iter())
                .for_each(|word| words.add(word));
        }
    }

    /// Writes the regexes and keywords to the table and returns the vocabularies.
    fn write(&self, prepared: &mut Prepared) -> Vec<u8> {
        let numbers: Vec<_> = self.words.values().map(Numbered::number_of).collect();
        let vocabularies: Vec<Vocabulary<'_>> = numbers
            .iter()
            .map(|number_of| number_of as _)
            .enumerate()
            .collect();
        for (source, branches) in &self.regexes {
            let mut record = Writer::default();
            search::write_branches(branches, &vocabularies, &mut record);
            prepared.insert(hash(Use::Search, source), record.0);
        }
        for (source, keywords) in &self.keywords {
            let mut record = Writer::default();
            keywords.write(&vocabularies, &mut record);
            prepared.insert(hash(Use::Keywords, source), record.0);
        }
        let mut all = Writer::default();
        for words in self.words.values() {
            let mut record = Writer::default();
            Words::new(&words.in_order.iter().map(Vec::as_slice).collect::<Vec<_>>())
                .write(&mut record);
            all.text(&record.0);
        }
        all.0
    }
}

/// Returns the class of a phrase. One that counts `against` a sum has no weight.
fn class_of(signal: &DeValue<'_>) -> Class {
    let value = |key| signal.get(key).map(Spanned::get_ref);
    let weight = value("weight").and_then(|weight| weight.as_integer()?.to_string().parse().ok());
    let orders_command = value("orders_command").and_then(DeValue::as_bool);
    Class::of_signal(weight.unwrap_or(0), orders_command.unwrap_or(false))
}

/// Returns the strings of a list.
fn strings<'v>(list: &'v DeValue<'_>) -> Vec<&'v str> {
    list.as_array()
        .into_iter()
        .flatten()
        .filter_map(|value| value.get_ref().as_str())
        .collect()
}

/// Adds the shape of a secret: `NAME = 'REGEX'` or `NAME = { shape = 'REGEX', … }`.
fn add_shape(shape: &DeValue<'_>, prepared: &mut Prepared) {
    let Some(source) = shape
        .as_str()
        .or_else(|| shape.get("shape")?.get_ref().as_str())
    else {
        return;
    };
    let used = if shape.get("near").is_some() {
        Use::Value
    } else {
        Use::Shape
    };
    if let Ok(begin) = ShapeStart::new(source, used) {
        let mut record = Writer::default();
        begin.write(&mut record);
        prepared.insert(hash(used, source), record.0);
    }
}

/// Returns the table in the format that `src/detect/prepared.rs` describes. The parsed regexes come
/// last: a start reads all other records, and should not load the pages of these.
fn table(prepared: &Prepared, hirs: &Prepared) -> Vec<u8> {
    let records = || prepared.iter().chain(hirs);
    let mut end = 4 + (8 + 4) * records().count();
    let mut places = BTreeMap::new();
    for (hash, record) in records() {
        places.insert(*hash, if record.is_empty() { 0 } else { end });
        end += record.len();
    }
    let mut table = Writer::default();
    table.number(places.len());
    places.keys().for_each(|hash| table.long(*hash));
    places.values().for_each(|place| table.number(*place));
    table.0.extend(records().flat_map(|(_, record)| record));
    table.0
}
