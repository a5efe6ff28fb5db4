//! How a definition differs from the pinned one.

use std::collections::HashSet;

use super::prose::{self, Prose};
use super::schema;
use super::{Content, Kind};
use crate::config::ChangeClass;
use crate::detect::{Place, Surface};
use crate::message::{Role, Value, ValueKind};
use crate::rules::RuleSet;
use crate::text::Text;

/// Maximum length of a new title that is a cosmetic change, in bytes.
const TITLE_BYTES: usize = 100;

/// One place where two definitions differ: the path to it, and the values there.
pub(super) struct Difference<'d> {
    pub(super) path: Vec<String>,
    pub(super) old: Option<Value<'d>>,
    pub(super) new: Option<Value<'d>>,
}

/// Returns the classes of a change, most severe first; none if nothing has changed.
pub(super) fn classes(
    kind: Kind,
    old: &Content,
    new: &Content,
    rules: &RuleSet,
) -> Vec<ChangeClass> {
    let (Some(old), Some(new)) = (old.json(), new.json()) else {
        return vec![ChangeClass::Other];
    };
    let differences = differences(old.root(), new.root());
    let added: HashSet<&str> = differences
        .iter()
        .filter_map(|difference| schema::added_parameter(kind, difference))
        .collect();
    let mut cosmetic = false;
    let mut wider = false;
    let mut other = false;
    for difference in &differences {
        match () {
            () if is_cosmetic(difference) => cosmetic = true,
            () if schema::is_wider(kind, difference, &added) => wider = true,
            () => other = true,
        }
    }
    let prose = Prose::new(&differences);
    let name = new.root().get_str("name").unwrap_or_default();
    let severe = [
        (
            ChangeClass::NewSecretLikeParameter,
            schema::asks_for_secrets(kind, &differences),
        ),
        (
            ChangeClass::NewImperativeText,
            prose.is_imperative() || finds_more(&name, &differences, rules),
        ),
        (
            ChangeClass::CapabilityGrown,
            prose.is_capable() || weakens_hints(old.root(), new.root()),
        ),
    ];
    let mut classes: Vec<ChangeClass> = severe
        .iter()
        .filter(|(_, applies)| *applies)
        .map(|(class, _)| *class)
        .collect();
    if classes.is_empty() && other {
        classes.push(ChangeClass::Other);
    }
    classes.extend(wider.then_some(ChangeClass::WiderInput));
    classes.extend(cosmetic.then_some(ChangeClass::Cosmetic));
    classes
}

/// Returns the places where two values differ, as deep as both have the same shape.
fn differences<'d>(old: Value<'d>, new: Value<'d>) -> Vec<Difference<'d>> {
    let mut out = Vec::new();
    let mut open = vec![Difference {
        path: Vec::new(),
        old: Some(old),
        new: Some(new),
    }];
    while let Some(Difference { path, old, new }) = open.pop() {
        let (Some(a), Some(b)) = (old, new) else {
            out.push(Difference { path, old, new });
            continue;
        };
        // Both are canonical: equal values are written the same.
        if a.raw() == b.raw() {
            continue;
        }
        let child_path = |key: String| path.iter().cloned().chain([key]).collect::<Vec<String>>();
        match (a.kind(), b.kind()) {
            (ValueKind::Object, ValueKind::Object) => {
                // Members are sorted by name: one pass finds those that both have.
                let mut olds = a.members().peekable();
                let mut news = b.members().peekable();
                loop {
                    let order = match (olds.peek(), news.peek()) {
                        (None, None) => break,
                        (Some(_), None) => std::cmp::Ordering::Less,
                        (None, Some(_)) => std::cmp::Ordering::Greater,
                        (Some((a, _)), Some((b, _))) => a.cmp(b),
                    };
                    let old = if order.is_le() { olds.next() } else { None };
                    let new = if order.is_ge() { news.next() } else { None };
                    let key = old
                        .as_ref()
                        .or(new.as_ref())
                        .map(|(key, _)| key.to_string())
                        .unwrap_or_default();
                    open.push(Difference {
                        path: child_path(key),
                        old: old.map(|(_, v)| v),
                        new: new.map(|(_, v)| v),
                    });
                }
            }
            (ValueKind::Array, ValueKind::Array) if holds_objects(a) && holds_objects(b) => {
                let element_name =
                    |of: Value<'_>| of.get("name").and_then(|name| name.str().map(String::from));
                let (olds, news): (Vec<_>, Vec<_>) =
                    (a.elements().collect(), b.elements().collect());
                let by_name = olds
                    .iter()
                    .chain(&news)
                    .all(|element| element_name(*element).is_some());
                let key = |index: usize, of: Value<'_>| {
                    element_name(of)
                        .filter(|_| by_name)
                        .unwrap_or_else(|| index.to_string())
                };
                let mut olds: std::collections::BTreeMap<String, Value<'d>> = olds
                    .into_iter()
                    .enumerate()
                    .map(|(index, element)| (key(index, element), element))
                    .collect();
                for (index, element) in news.into_iter().enumerate() {
                    let key = key(index, element);
                    let old = olds.remove(&key);
                    open.push(Difference {
                        path: child_path(key),
                        old,
                        new: Some(element),
                    });
                }
                open.extend(olds.into_iter().map(|(key, old)| Difference {
                    path: child_path(key),
                    old: Some(old),
                    new: None,
                }));
            }
            _ => out.push(Difference { path, old, new }),
        }
    }
    out
}

fn holds_objects(list: Value<'_>) -> bool {
    list.elements()
        .all(|element| element.kind() == ValueKind::Object)
}

/// Returns whether only the appearance differs.
fn is_cosmetic(difference: &Difference<'_>) -> bool {
    let Difference { path, old, new } = difference;
    let text = |value: &Option<Value<'_>>| {
        value
            .and_then(|value| value.str())
            .unwrap_or_default()
            .into_owned()
    };
    let strings = [old, new]
        .iter()
        .all(|value| value.is_none_or(|value| value.kind() == ValueKind::String));
    let last = path.last().map(String::as_str).unwrap_or_default();
    let keyword = schema::is_keyword(path);
    let old = text(old);
    let new = text(new);
    match last {
        _ if !strings || !keyword => false,
        // A new title may be anything short that gives no orders, which is checked elsewhere.
        "title" => {
            (new.len() <= TITLE_BYTES && prose::is_short_prose(&new))
                || prose::same_words(&old, &new)
        }
        "description" | "$comment" | "instructions" => prose::same_words(&old, &new),
        _ => false,
    }
}

/// Returns whether the inbound rules find something in a string of the new definition that they do
/// not find in the old one.
fn finds_more(name: &str, differences: &[Difference<'_>], rules: &RuleSet) -> bool {
    let matching_rules = |text: &str, role: Role| {
        let place = Place {
            surface: Surface::Definition,
            method: Some("tools/list"),
            tool: Some(name),
            role,
            ..Place::default()
        };
        let mut matches = Vec::new();
        rules.scan(&Text::new(text), &place, &mut matches);
        matches
            .into_iter()
            .map(|found| found.rule)
            .collect::<HashSet<usize>>()
    };
    differences.iter().any(|Difference { old, new, .. }| {
        let mut old_rules: HashSet<usize> = HashSet::new();
        old.iter().for_each(|old| {
            old.strings(|_, text| old_rules.extend(matching_rules(&text.value, text.role)))
        });
        let mut has_more = false;
        new.iter().for_each(|new| {
            new.strings(|_, text| {
                has_more |= !matching_rules(&text.value, text.role).is_subset(&old_rules)
            })
        });
        has_more
    })
}

/// Returns whether a tool's hints promise less than before: it is no longer read-only, may be
/// destructive, or may interact with external entities (2025-11-25, `ToolAnnotations`, with the
/// defaults given there).
fn weakens_hints(old: Value<'_>, new: Value<'_>) -> bool {
    let hint_value = |of: Value<'_>, hint: &str, default: bool| {
        of.at(&["annotations", hint])
            .map_or(default, |value| value.raw() == "true")
    };
    let is_raised = |hint: &str| !hint_value(old, hint, true) && hint_value(new, hint, true);
    let writes = !hint_value(new, "readOnlyHint", false);
    (writes && (hint_value(old, "readOnlyHint", false) || is_raised("destructiveHint")))
        || is_raised("openWorldHint")
}
