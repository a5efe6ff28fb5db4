//! Symbolic links and bind mounts that a script creates and then uses as paths: `ln -s ~ x; rm -rf
//! x/`.

use std::rc::Rc;

use super::paths;
use super::reader::Reader;
use super::value::Field;

/// Maximum number of links in one script that are followed.
const MAX_LINKS: usize = 64;

impl Reader<'_> {
    /// Records the link that `ln -s` or `mount --bind` creates.
    pub(super) fn note_link(&mut self, program: &str, arguments: &[Field]) {
        let has_option = |short: char, long: &str| {
            arguments
                .iter()
                .any(|field| match field.text.strip_prefix("--") {
                    Some(name) => name == long,
                    None => field
                        .text
                        .strip_prefix('-')
                        .is_some_and(|flags| flags.contains(short)),
                })
        };
        let binds = || {
            arguments
                .iter()
                .any(|field| matches!(field.text.as_str(), "bind" | "rbind"))
        };
        let creates_link = match program {
            "ln" | "gln" => has_option('s', "symbolic"),
            "mount" => {
                has_option('B', "bind")
                    || has_option('R', "rbind")
                    || has_option('o', "options") && binds()
            }
            _ => false,
        };
        if !creates_link || self.links.len() >= MAX_LINKS {
            return;
        }
        let options = ["bind", "rbind"];
        let mut operands = arguments
            .iter()
            .map(|field| field.text.as_str())
            .filter(|text| !text.starts_with('-') && !options.contains(text));
        let Some(target) = operands.next() else {
            return;
        };
        let last = target
            .trim_end_matches('/')
            .rsplit('/')
            .next()
            .unwrap_or(target);
        let name = match operands.next() {
            Some(name) if program != "mount" && (name.ends_with('/') || name == ".") => {
                format!("{name}/{last}")
            }
            Some(name) => name.to_owned(),
            None => last.to_owned(),
        };
        let Some(target) = paths::normal(target, self.folder.as_deref()) else {
            return;
        };
        if target.starts_with(['/', '~']) {
            self.links.push((self.file_key(&name), target));
        }
    }

    /// Returns the words of a command with paths through links replaced by the paths that they lead
    /// to.
    pub(super) fn resolve_links(&self, fields: Rc<[Field]>) -> Rc<[Field]> {
        let enters = fields
            .first()
            .is_some_and(|first| matches!(first.text.as_str(), "cd" | "pushd" | "chdir"));
        let resolved = |field: &Field| {
            // To most programs, a bare name refers to the link itself.
            if field.text.starts_with('-') || !(enters || field.text.contains('/')) {
                return None;
            }
            let key = self.file_key(&field.text);
            let (rest, target) = self.links.iter().rev().find_map(|(name, target)| {
                let rest = key.strip_prefix(name.as_str())?;
                let behind = rest.starts_with('/')
                    || rest.is_empty() && (enters || field.text.ends_with('/'));
                behind.then_some((rest, target))
            })?;
            let text = match format!("{}{rest}", target.trim_end_matches('/')) {
                text if text.is_empty() => "/".to_owned(),
                text => text,
            };
            Some(Field {
                text,
                ..field.clone()
            })
        };
        if !fields.iter().skip(1).any(|field| resolved(field).is_some()) {
            return fields;
        }
        fields
            .iter()
            .enumerate()
            .map(|(at, field)| {
                if at == 0 { None } else { resolved(field) }.unwrap_or_else(|| field.clone())
            })
            .collect()
    }
}
