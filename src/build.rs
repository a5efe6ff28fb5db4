//! Prepares the built-in rules for a fast start: `src/detect/prepared` reads what is written here of their regexes, and
//! `src/rules/builtin.rs` their files without cases.

use std::collections::BTreeMap;
use std::error::Error;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::{env, fs};

use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// The part of the crate that says what is searched for in place of a regex.
#[allow(dead_code, unused_imports, unreachable_pub, reason = "the rest of these modules is for the gateway")]
mod detect {
    pub(crate) mod prepared {
        mod bytes;

        pub(crate) use bytes::{Reader, Use, Writer, hash};
    }

    pub(crate) mod search {
        mod folded;
        mod grams;
        mod literals;
        mod parse;
        mod word_list;

        pub(crate) use literals::write_branches;
        pub(crate) use parse::parse;
    }

    pub(crate) mod secret {
        pub(crate) mod begin;
        mod class;
    }
}

/// The part that expands the named fragments of rule files.
mod rules {
    pub(crate) mod fragments;
}

use detect::prepared::{Use, Writer, hash};
use detect::search;
use detect::secret::begin::Begin;
use rules::fragments;

/// Keys of regexes that are searched for by their literals.
const BY_LITERALS: [&str; 2] = ["any", "raw"];

/// What is prepared of each regex, by its hash. Nothing, if only its validity is known.
type Prepared = BTreeMap<u64, Vec<u8>>;

fn main() -> Result<(), Box<dyn Error>> {
    for input in
        ["rules", "src/build.rs", "src/detect/prepared", "src/detect/search", "src/detect/secret", "src/rules/fragments.rs"]
    {
        println!("cargo::rerun-if-changed={input}");
    }
    let mut prepared = Prepared::new();
    let mut without = Vec::new();
    for file in rule_files(Path::new("rules"))? {
        let text = fs::read_to_string(&file)?;
        let mut rules = DeTable::parse(&text)?;
        without.push((file.display().to_string(), without_cases(&text, rules.get_ref())));
        // A mistake is reported when the file is loaded.
        fragments::expand(rules.get_mut(), &text);
        for rule in rules.get_ref().get("rule").and_then(|rules| rules.get_ref().as_array()).into_iter().flatten() {
            add("find", rule.get_ref().get("find"), &mut prepared);
            add("unless", rule.get_ref().get("unless"), &mut prepared);
        }
    }
    without.sort();
    let out = env::var_os("OUT_DIR").ok_or("no OUT_DIR")?;
    fs::write(Path::new(&out).join("prepared.bin"), table(&prepared))?;
    fs::write(Path::new(&out).join("without_cases.rs"), format!("&{without:?}"))?;
    Ok(())
}

/// The text of a rule file with the cases of its rules left out. Each line stays where it is.
fn without_cases(text: &str, file: &DeTable<'_>) -> String {
    let rules = file.get("rule").and_then(|rules| rules.get_ref().as_array()).into_iter().flatten();
    let entries = rules.filter_map(|rule| rule.get_ref().as_table()).flatten();
    let cases = entries.filter(|(key, _)| matches!(key.get_ref().as_ref(), "catches" | "spares"));
    let mut spans: Vec<_> = cases.map(|(key, value)| key.span().start..value.span().end).collect();
    spans.sort_by_key(|span| span.start);
    let part = |span: Range<usize>| text.get(span).unwrap_or_default();
    let (mut without, mut from) = (String::new(), 0);
    for span in spans {
        without += part(from..span.start);
        without.extend(part(span.clone()).matches('\n'));
        from = span.end;
    }
    without + part(from..text.len())
}

fn rule_files(folder: &Path) -> Result<Vec<PathBuf>, Box<dyn Error>> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            files.extend(rule_files(&path)?);
        } else if path.extension().is_some_and(|extension| extension == "toml") {
            files.push(path);
        }
    }
    Ok(files)
}

/// Adds each string below `key` that is a regex.
fn add(key: &str, value: Option<&Spanned<DeValue<'_>>>, prepared: &mut Prepared) {
    match value.map(Spanned::get_ref) {
        Some(DeValue::String(source)) => add_regex(source, BY_LITERALS.contains(&key), prepared),
        Some(DeValue::Array(values)) => values.iter().for_each(|value| add(key, Some(value), prepared)),
        Some(DeValue::Table(shapes)) if key == "shapes" => shapes.values().for_each(|shape| add_shape(shape.get_ref(), prepared)),
        Some(DeValue::Table(table)) => table.iter().for_each(|(key, value)| add(key.get_ref(), Some(value), prepared)),
        _ => {}
    }
}

fn add_regex(source: &str, by_literals: bool, prepared: &mut Prepared) {
    if search::parse(source).is_err() {
        return;
    }
    let known = prepared.entry(hash(Use::Search, source)).or_default();
    if by_literals && known.is_empty() {
        let mut record = Writer::default();
        if search::write_branches(source, &mut record).is_ok() {
            *known = record.0;
        }
    }
}

/// Adds the shape of a secret: `NAME = 'REGEX'` or `NAME = { shape = 'REGEX', … }`.
fn add_shape(shape: &DeValue<'_>, prepared: &mut Prepared) {
    let Some(source) = shape.as_str().or_else(|| shape.get("shape")?.get_ref().as_str()) else { return };
    let used = if shape.get("near").is_some() { Use::Value } else { Use::Shape };
    if let Ok(begin) = Begin::new(source, used) {
        let mut record = Writer::default();
        begin.write(&mut record);
        prepared.insert(hash(used, source), record.0);
    }
}

/// The table as `src/detect/prepared/mod.rs` says.
fn table(prepared: &Prepared) -> Vec<u8> {
    let mut table = Writer::default();
    table.number(prepared.len());
    prepared.keys().for_each(|hash| table.long(*hash));
    let mut end = table.0.len() + 4 * prepared.len();
    for record in prepared.values() {
        table.number(if record.is_empty() { 0 } else { end });
        end += record.len();
    }
    table.0.extend(prepared.values().flatten());
    table.0
}
