//! The format of the lock file: one table for each pinned definition, in the order of their names,
//! so that a change of one definition changes only a few lines.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::Arc;

use crate::config::ChangeClass;
use crate::document::{self, Fault, Table};
use crate::inspect::definitions::{Content, Key, Kind, PendingDefinition, Pin, Pins};

const HEAD: &str = "\
# What MCP servers say of their tools, prompts and resources, as lychgate first saw it or as it was approved. Keep it in
# version control; `lychgate pins` lists, compares, approves and resets. `held` waits for `lychgate pins approve`.
format = 1
";
const REPAIR_HINT: &str = "bring the file back from version control, or drop the pin with `lychgate pins reset` from a file that reads";

/// The pins of every upstream.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Lock(BTreeMap<Box<str>, Arc<Pins>>);

impl Lock {
    /// Parses a lock file. `file` is its name in faults.
    ///
    /// # Errors
    /// All faults, with line and column.
    pub fn read(file: &str, text: &str) -> Result<Self, Vec<Fault>> {
        if text.trim().is_empty() {
            return Ok(Self::default());
        }
        document::read(file, text, |root| {
            let mut lock = Self::default();
            root.integer("format", 1..=1);
            for table in root.tables("pin") {
                if let Some((upstream, key, pin)) = read_pin(&table) {
                    let pins = lock.upstream_mut(&upstream);
                    if pins.get(&key).is_some() {
                        table.fault(
                            format!("`{}` is pinned twice", key.name),
                            Some("leave one of them"),
                        );
                    }
                    pins.insert(key, pin);
                }
                table.finish();
            }
            root.finish();
            Some(lock)
        })
    }

    /// Returns the text of the file.
    pub fn to_text(&self) -> String {
        let mut out = HEAD.to_owned();
        for (upstream, pins) in &self.0 {
            for (key, pin) in pins.iter() {
                let upstream = basic_string(upstream);
                let kind = key.kind.name();
                let name = basic_string(&key.name);
                // Writing to a `String` cannot fail.
                let _infallible = write!(
                    out,
                    "\n[[pin]]\nupstream = {upstream}\nkind = \"{kind}\"\nname = {name}\n"
                );
                if let Some(content) = &pin.content {
                    write_definition(&mut out, "", content);
                }
                if let Some(held) = &pin.pending {
                    let classes: Vec<String> = held
                        .classes
                        .iter()
                        .map(|class| format!("\"{}\"", class.name()))
                        .collect();
                    let _infallible = writeln!(out, "held = [{}]", classes.join(", "));
                    write_definition(&mut out, "held_", &held.content);
                }
            }
        }
        out
    }

    /// Returns the pins of one upstream.
    pub fn for_upstream(&self, upstream: &str) -> Arc<Pins> {
        self.0.get(upstream).cloned().unwrap_or_default()
    }

    /// Returns the pins of one upstream, to be changed.
    pub fn upstream_mut(&mut self, upstream: &str) -> &mut Pins {
        Arc::make_mut(self.0.entry(upstream.into()).or_default())
    }

    /// Returns the pins of all upstreams, in order.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Arc<Pins>)> {
        self.0.iter().map(|(name, pins)| (&**name, pins))
    }
}

fn read_pin(table: &Table<'_>) -> Option<(String, Key, Pin)> {
    let hint = "each pin has `upstream`, `kind`, `name`, `sha256` and `definition`";
    let upstream = table.required("upstream", hint);
    table.require("kind", hint);
    let kind = table.choice("kind", &Kind::WORDS);
    let name = table.required("name", hint);
    let kind = kind?;
    let content = if table.has("definition") || !table.has("held") {
        read_content(table, "", kind)
    } else {
        None
    };
    let held = if table.has("held") {
        let classes = table.strings("held").into_iter().filter_map(|word| {
            table.find(&word, &ChangeClass::WORDS, || {
                format!("no such class: `{}`", word.value)
            })
        });
        let classes = classes.collect();
        read_content(table, "held_", kind).map(|content| PendingDefinition { content, classes })
    } else {
        None
    };
    Some((
        upstream?.value,
        Key {
            kind,
            name: name?.value.into(),
        },
        Pin {
            content,
            pending: held,
        },
    ))
}

fn read_content(table: &Table<'_>, prefix: &str, kind: Kind) -> Option<Content> {
    let key = format!("{prefix}definition");
    let digest = format!("{prefix}sha256");
    let text = table.required(&key, "the definition as JSON")?;
    let digest = table.required(&digest, "the SHA-256 of the definition")?;
    match Content::read(&text.value, kind) {
        Ok(content) if content.digest() == digest.value => Some(content),
        Ok(_) => {
            table.fault_at(
                &digest.place,
                format!(
                    "`{}` is not that of the definition: it was changed",
                    digest.value
                ),
                Some(REPAIR_HINT),
            );
            None
        }
        Err(error) => {
            table.fault_at(
                &text.place,
                format!("`{key}` cannot be read: {error}"),
                Some(REPAIR_HINT),
            );
            None
        }
    }
}

fn write_definition(out: &mut String, prefix: &str, content: &Content) {
    // No literal of TOML can contain three quotes, and JSON has another way to write one.
    let text = content.pretty().replace("'''", "''\\u0027");
    let _infallible = write!(
        out,
        "{prefix}sha256 = \"{}\"\n{prefix}definition = '''\n{text}\n'''\n",
        content.digest()
    );
}

/// Returns a basic string of TOML in which every character is visible.
fn basic_string(text: &str) -> String {
    let mut out = String::from("\"");
    for c in text.chars() {
        match c {
            '"' | '\\' => out.extend(['\\', c]),
            ' '..='~' => out.push(c),
            c if c.is_alphanumeric() => out.push(c),
            c => {
                let _infallible = write!(out, "\\U{:08x}", u32::from(c));
            }
        }
    }
    out.push('"');
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    const TOOL: &str = r#"{"name":"a","description":"It's '''quoted''' \u202e and \"so\"","inputSchema":{"type":"object"}}"#;

    fn lock() -> Lock {
        let content = Content::read(TOOL, Kind::Tool).unwrap();
        let other = Content::read(r#"{"name":"a","description":"You must."}"#, Kind::Tool).unwrap();
        let mut lock = Lock::default();
        let held = PendingDefinition {
            content: other.clone(),
            classes: vec![ChangeClass::NewImperativeText, ChangeClass::Cosmetic],
        };
        let key = |name: &str| Key {
            kind: Kind::Tool,
            name: name.into(),
        };
        lock.upstream_mut("up").insert(
            key("a"),
            Pin {
                content: Some(content.clone()),
                pending: Some(held.clone()),
            },
        );
        lock.upstream_mut("up").insert(
            key("b\"\u{200b}ü"),
            Pin {
                content: None,
                pending: Some(held),
            },
        );
        lock.upstream_mut("ab").insert(
            Key {
                kind: Kind::Prompt,
                name: "p".into(),
            },
            Pin {
                content: Some(other),
                pending: None,
            },
        );
        lock
    }

    #[test]
    fn what_is_written_reads_back_the_same() {
        let text = lock().to_text();
        let parsed = Lock::read("l", &text).unwrap();
        assert_eq!((parsed.to_text(), &parsed), (text.clone(), &lock()));
        assert!(
            text.find("upstream = \"ab\"") < text.find("upstream = \"up\"")
                && !text.contains('\u{202e}'),
            "{text}"
        );
        assert_eq!(Lock::read("l", "").unwrap(), Lock::default());
    }

    #[test]
    fn what_is_wrong_is_told_with_its_place() {
        let text = lock().to_text();
        let faults = |text: &str| {
            Lock::read("l", text)
                .unwrap_err()
                .iter()
                .map(ToString::to_string)
                .collect::<Vec<_>>()
                .join("\n")
        };
        let changed = text.replacen("You must.", "You may.", 1);
        assert!(
            faults(&changed).starts_with("l:9:10: `")
                && faults(&changed).contains("it was changed"),
            "{}",
            faults(&changed)
        );
        let conflict = text.replacen("[[pin]]", "<<<<<<< HEAD\n[[pin]]", 1);
        assert!(
            faults(&conflict).starts_with("l:5:"),
            "{}",
            faults(&conflict)
        );
        let twice = format!("{text}{}", text.split_once("\n\n").unwrap().1);
        assert!(
            faults(&twice).contains("is pinned twice"),
            "{}",
            faults(&twice)
        );
        assert!(faults("format = 1\n[[pin]]\nkind = \"tul\"\n").contains("did you mean `tool`?"));
    }
}
