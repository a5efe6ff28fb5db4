//! A folder and a name in sibling members, which the server joins: `{ "base": "/srv/app", "name":
//! "../x" }`.

use std::borrow::Cow;

use crate::message::{Value, ValueKind};

use super::pairs::plain;
use super::{look, names};

/// Maximum length of the folder and of a name, in bytes.
const FOLDER_BYTES: usize = 4096;
const NAME_BYTES: usize = 1024;
/// Maximum number of names of an object that are joined with its folder.
const MAX_NAMES: usize = 8;
/// Maximum number of parts of a path that is given as a list.
const MAX_SEGMENTS: usize = 64;
/// Names of members that contain a name in a folder. A member called a path may be the folder
/// instead.
const NAMES: [&str; 22] = [
    "name",
    "newname",
    "filename",
    "file",
    "relativepath",
    "relpath",
    "relative",
    "subpath",
    "suffix",
    "entry",
    "leaf",
    "basename",
    "filepath",
    "path",
    "targetname",
    "outputname",
    "asset",
    "names",
    "members",
    "entries",
    "files",
    "paths",
];
/// Names of lists of the parts of a path.
const SEGMENTS: [&str; 7] = [
    "segments",
    "pathsegments",
    "parts",
    "pathparts",
    "components",
    "pathcomponents",
    "path",
];
/// Folders in which a bare word also names a file.
const SYSTEM: [&str; 6] = ["etc", "root", "proc", "boot", "dev", "var/spool"];

/// Returns the names, and the paths that they form with the folder, if an object contains an
/// absolute folder and names in it.
pub(super) fn joined_paths<'j>(members: &[(Cow<'j, str>, Value<'j>)]) -> Vec<(Value<'j>, String)> {
    let text = |value: &Value<'j>| value.str().filter(|_| value.kind() == ValueKind::String);
    let fits = |key: &str| key.len() <= 32 && NAMES.contains(&plain(key).as_str());
    let is_base = |key: &str| names::is_folder(key) || names::is_base(key);
    let folder = |is: &dyn Fn(&str) -> bool| {
        let mut folders = members
            .iter()
            .filter(|(key, _)| is(key))
            .filter_map(|(key, value)| Some((key, text(value)?)));
        let fits =
            |text: &str| text.len() <= FOLDER_BYTES && (is_absolute(text) || is_system(text));
        folders.find(|(_, text)| fits(text) && !text.contains(['\n', '*']))
    };
    let found = folder(&is_base)
        .or_else(|| folder(&|key| matches!(plain(key).as_str(), "path" | "location")));
    let Some((folder_key, folder)) = found else {
        // `entries: [{ "name": "../x" }]`: the folder is given elsewhere.
        let climbing = members
            .iter()
            .filter_map(|(key, value)| Some((key, *value, text(value)?)))
            .filter(|(_, _, name)| {
                name.matches("../").count() > 1
                    || name.matches("..%").count() > 1 && look::is_path(name)
            })
            .filter(|(key, ..)| fits(key) && names::head(key) != names::Head::Path)
            .map(|(_, value, name)| (value, name.into_owned()));
        return climbing.take(MAX_NAMES).collect();
    };
    let names = members
        .iter()
        .filter(|(key, _)| key != folder_key && fits(key) && !is_base(key))
        .flat_map(|(_, value)| value.elements().take(MAX_NAMES).chain([*value]))
        .filter_map(|value| Some((value, text(&value)?)))
        .filter(|(_, name)| is_file_name(name, &folder));
    let path = |name: Cow<'_, str>| {
        if is_absolute(&name) {
            name.into_owned()
        } else {
            format!("{}/{name}", folder.trim_end_matches(['/', '\\']))
        }
    };
    names
        .take(MAX_NAMES)
        .map(|(value, name)| (value, path(name)))
        .collect()
}

/// Returns the path that a list of its parts forms: `["..", "..", "etc", "shadow"]`.
pub(super) fn segments(name: &str, elements: &[Value<'_>]) -> Option<String> {
    let parts: Vec<Cow<'_, str>> = elements.iter().map_while(Value::str).collect();
    let is_part =
        |part: &Cow<'_, str>| part.len() <= NAME_BYTES && !part.contains(['/', '\n', ' ']);
    let is_path = (2..=MAX_SEGMENTS).contains(&parts.len())
        && parts.len() == elements.len()
        && SEGMENTS.contains(&plain(name).as_str())
        && parts.iter().all(is_part);
    is_path.then(|| parts.join("/"))
}

/// Returns whether a text names a file in a folder: a bare word does so only in system folders and
/// hidden ones.
fn is_file_name(name: &str, folder: &str) -> bool {
    let has_path_sign = name.contains(['/', '\\', '.', '%'])
        && !name.contains("://")
        && (!is_absolute(name) || look::is_path(name));
    let last = folder
        .trim_end_matches(['/', '\\'])
        .rsplit(['/', '\\'])
        .next()
        .unwrap_or(folder);
    let is_open = || last.starts_with('.') || is_system(folder);
    !name.is_empty()
        && name.len() <= NAME_BYTES
        && !name.contains([' ', '\n', '\t'])
        && (has_path_sign || is_open())
}

/// Returns whether a folder is a system folder or inside one, with any number of slashes and dots:
/// `//etc`, `/./etc`.
fn is_system(folder: &str) -> bool {
    let parts: Vec<&str> = folder
        .split('/')
        .filter(|part| !matches!(*part, "" | "."))
        .take(3)
        .collect();
    folder.starts_with('/')
        && SYSTEM
            .iter()
            .any(|system| parts.starts_with(&system.split('/').collect::<Vec<_>>()))
}

fn is_absolute(text: &str) -> bool {
    let drive =
        matches!(text.as_bytes(), [letter, b':', b'/' | b'\\', ..] if letter.is_ascii_alphabetic());
    text.starts_with('/') && !text.starts_with("//")
        || text == "~"
        || text.starts_with("~/")
        || drive
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::{Json, ReadLimits};

    fn path(object: &str) -> Option<String> {
        let json = Json::parse(object.to_owned().into(), &ReadLimits::default()).unwrap();
        let members: Vec<_> = json.root().members().collect();
        joined_paths(&members).pop().map(|(_, path)| path)
    }

    #[test]
    fn a_folder_and_a_name_make_a_path() {
        for (object, wanted) in [
            (
                r#""base":"/srv/app","name":"../../etc/x""#,
                "/srv/app/../../etc/x",
            ),
            (
                r#""name":".ssh/id_rsa","dir":"/home/ada/""#,
                "/home/ada/.ssh/id_rsa",
            ),
            (r#""directory":"/etc","file":"shadow""#, "/etc/shadow"),
            (
                r#""path":"/home/ada/.ssh","filename":"authorized_keys""#,
                "/home/ada/.ssh/authorized_keys",
            ),
            (
                r#""root":"~","path":".aws/credentials""#,
                "~/.aws/credentials",
            ),
            (
                r#""folder":"/srv/app","relative_path":"a/../../../x""#,
                "/srv/app/a/../../../x",
            ),
            (r#""base":"/srv/app","name":"/etc/shadow""#, "/etc/shadow"),
            (
                r#""directory":"/etc","name":"a.b","file":"shadow""#,
                "/etc/shadow",
            ),
            (r#""dir":"/./etc","file":"shadow""#, "/./etc/shadow"),
            (
                r#""name":"../../root/.ssh/authorized_keys","data":"x""#,
                "../../root/.ssh/authorized_keys",
            ),
            (r#""dir":"//etc/","file":"shadow""#, "//etc/shadow"),
            (r#""cwd":"C:\\work","file":"..\\..\\x""#, r"C:\work/..\..\x"),
        ] {
            let path = path(&format!("{{{object}}}"));
            assert_eq!(path.as_deref(), Some(wanted), "{object}");
        }
    }

    #[test]
    fn parts_form_a_path() {
        let joined = |name: &str, list: &str| {
            let json = Json::parse(list.to_owned().into(), &ReadLimits::default()).unwrap();
            let elements: Vec<Value<'_>> = json.root().elements().collect();
            segments(name, &elements)
        };
        let parts = r#"["..", "..", "etc", "shadow"]"#;
        assert_eq!(
            joined("segments", parts).as_deref(),
            Some("../../etc/shadow")
        );
        assert_eq!(joined("words", parts), None);
        assert_eq!(joined("parts", r#"["a b", "c"]"#), None);
        assert_eq!(joined("parts", r#"["a", 7]"#), None);
    }

    #[test]
    fn other_members_are_not_joined() {
        for object in [
            r#"{"base":"main","name":"../x"}"#,
            r#"{"directory":"/srv/app","name":"cookies"}"#,
            r#"{"directory":"/srv/app","name":"Fix the login. Then rest"}"#,
            r#"{"base":"https://a.example/v1","path":"../x"}"#,
            r#"{"directory":"/srv/app","name":"https://a.example/x"}"#,
            r#"{"path":"/srv/app/a.txt"}"#,
            r#"{"dir":"src","file":"a.txt"}"#,
            r#"{"directory":"/srv/app","name":7}"#,
            r#"{"directory":"/etcetera","name":"cookies"}"#,
            r#"{"prefix":"//cdn","name":"a.js"}"#,
            r#"{"root":"/srv/app","name":"/api/users"}"#,
        ] {
            assert_eq!(path(object), None, "{object}");
        }
    }
}
