//! Assignments of texts, lists and list elements.

use super::lex::{ITEM, Word};
use super::reader::{CommandContext, Reader};
use super::value::{Taint, UNKNOWN, Value};

/// Maximum number of list items that are set individually.
const MAX_ITEMS: usize = 256;

impl Reader<'_> {
    pub(super) fn read_assignment(
        &mut self,
        word: &Word,
        name: String,
        appends: bool,
        context: &mut CommandContext,
    ) {
        let field = self.expand_single(word);
        let (target, text) = field.text.split_once('=').unwrap_or((&field.text, ""));
        context.environment.push((name.clone(), text.to_owned()));
        if let Some((_, index)) = target.trim_end_matches('+').split_once('[') {
            let index = index.trim_end_matches(']').to_owned();
            let value = Value {
                known: !text.contains(UNKNOWN),
                ..Value::text(text).with(field.taint)
            };
            return self.assign_element(&name, &index, value);
        }
        self.assign_word(&name, text, appends, field.taint);
    }

    /// Sets a variable to the value after its `=`: a text, or the items of `(…)`.
    pub(super) fn assign_word(&mut self, name: &str, text: &str, appends: bool, taint: Taint) {
        let list = text.contains(ITEM);
        let mut items = Vec::new();
        for item in text.split(ITEM).filter(|item| !list || !item.is_empty()) {
            // `([x]=a [y]=b)`
            let element = item
                .strip_prefix('[')
                .and_then(|item| item.split_once("]="))
                .filter(|_| list);
            if let Some((index, item)) = element {
                self.assign(&format!("{name}[{index}]"), Value::text(item).with(taint));
            }
            items.push(element.map_or(item, |(_, item)| item).to_owned());
        }
        let mut value = Value {
            items,
            known: !text.contains(UNKNOWN),
            taint,
        };
        if appends && let Some(before) = self.variables.get(name) {
            let mut sum = before.clone();
            if list {
                sum.items.retain(|item| !item.is_empty());
                sum.items.append(&mut value.items);
                sum.known &= value.known;
                sum.taint |= value.taint;
            } else {
                sum.append(value);
            }
            value = sum;
        }
        self.assign(name, value);
    }

    /// Sets an element: `a[1]=x`, or `a[key]=x`.
    fn assign_element(&mut self, name: &str, index: &str, value: Value) {
        if let Ok(at) = index.parse::<usize>() {
            let mut list = self
                .variables
                .get(name)
                .cloned()
                .unwrap_or_else(Value::empty);
            if at <= list.items.len() && at < MAX_ITEMS {
                let item = value.items.concat();
                match list.items.get_mut(at) {
                    Some(place) => *place = item,
                    None => list.items.push(item),
                }
                list.known &= value.known;
                list.taint |= value.taint;
            }
            return self.assign(name, list);
        }
        self.assign(&format!("{name}[{index}]"), value);
    }
}
