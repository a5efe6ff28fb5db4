//! Parses `find.secret`.

use std::sync::Arc;

use super::check::Check;
use super::shape::Shape;
use super::sieve::LONGEST;
use crate::document::Table;

/// Settings of a rule of this kind: shapes, or one of the other ways to recognize a secret.
#[derive(Clone, Debug, Default)]
pub struct Spec {
    /// Shapes, in the order of their names.
    pub shapes: Vec<Arc<Shape>>,
    /// Whether to find values by the names that they are assigned to.
    pub named: bool,
    /// Whether to find the operator's own secrets.
    pub guarded: bool,
    /// Whether to find values that another server sent.
    pub from_other_server: bool,
    /// Whether to find values that are returned to the server that sent them.
    pub returned: bool,
    /// Whether to find encoded data in the names of hosts.
    pub host_label: bool,
    /// Whether to report compressed data that is too large to be unpacked.
    pub unread: bool,
}

impl Spec {
    /// Compiles the regexes, which otherwise happens when a text first needs them.
    ///
    /// # Errors
    /// Returns the bound that a regex exceeds.
    pub fn compile(&self) -> Result<(), String> {
        self.shapes.iter().try_for_each(|shape| {
            shape
                .compile()
                .map_err(|error| format!("`{}`: {error}", shape.name))
        })
    }
}

type Set = fn(&mut Spec);

/// Values of `find.secret.is`.
const WAYS: [(&str, Set); 6] = [
    ("named", |spec| spec.named = true),
    ("own", |spec| spec.guarded = true),
    ("elsewhere", |spec| spec.from_other_server = true),
    ("returned", |spec| spec.returned = true),
    ("host-label", |spec| spec.host_label = true),
    ("unread", |spec| spec.unread = true),
];

/// Parses a `find.secret` table.
pub(super) fn read(table: &Table<'_>) -> Option<Spec> {
    let mut spec = Spec::default();
    let way = table.choice("is", &WAYS);
    if let Some(way) = way {
        way(&mut spec);
    }
    let mut valid = true;
    if let Some(shapes) = table.table("shapes") {
        let mut names = shapes.keys();
        names.sort_by(|a, b| a.value.cmp(&b.value));
        for name in names {
            match shape(&shapes, &name.value) {
                Ok(shape) => spec.shapes.push(Arc::new(shape)),
                Err(message) => {
                    valid = false;
                    if let Some(message) = message {
                        shapes.fault_at_key(
                            &name.value,
                            format!("`{}`: {message}", name.value),
                            None,
                        );
                    }
                }
            }
        }
        shapes.finish();
    }
    table.finish();
    if way.is_none() && spec.shapes.is_empty() && !table.has("is") && valid {
        table.fault(
            "no shape",
            Some("write `[rule.find.secret.shapes]` with `NAME = 'REGEX'`, or `is = \"named\"`"),
        );
        valid = false;
    }
    valid.then_some(spec)
}

/// Parses a shape, written as `NAME = 'REGEX'` or `NAME = { shape = 'REGEX', check = "…", near =
/// […] }`. The error is `None` if the fault has already been reported.
fn shape(shapes: &Table<'_>, name: &str) -> Result<Shape, Option<String>> {
    if !shapes.is_table(name) {
        let source = shapes.string(name).ok_or(None)?;
        return Shape::new(name, &source.value, Check::default(), Vec::new()).map_err(Some);
    }
    let table = shapes.table(name).ok_or(None)?;
    let source = table.required("shape", "a regular expression, best written in '…'");
    let check = if table.has("check") {
        table.choice("check", &Check::WORDS).ok_or(None)?
    } else {
        Check::default()
    };
    let near: Vec<String> = table
        .strings("near")
        .into_iter()
        .map(|word| word.value.to_lowercase())
        .collect();
    table.finish();
    if near.iter().any(|word| !(3..=LONGEST).contains(&word.len())) {
        return Err(Some(format!(
            "a word of `near` has 3 to {LONGEST} characters"
        )));
    }
    Shape::new(name, &source.ok_or(None)?.value, check, near).map_err(Some)
}
