//! The kind of target that a request names, as far as it affects how its answer is inspected.

use super::{CallTarget, is_web_url, names_instruction_file, names_source_file};
use crate::message::Value;

/// Names of arguments that contain paths, in lower case and without separators.
const PATHS: [&str; 14] = [
    "path",
    "paths",
    "file",
    "files",
    "filename",
    "filepath",
    "filepaths",
    "absolutepath",
    "relativepath",
    "relativeworkspacepath",
    "targetfile",
    "repopath",
    "notebookpath",
    "inputpath",
];

/// Returns the kind of target that a request names.
pub(super) fn find_target(method: &str, params: Option<Value<'_>>) -> CallTarget {
    if method == "resources/read" {
        let uri = params.and_then(|params| params.get_str("uri"));
        // The last part of a web address is chosen by its host.
        let is_instruction_file =
            uri.is_some_and(|uri| !is_web_url(&uri) && names_instruction_file(&uri));
        return if is_instruction_file {
            CallTarget::InstructionFile
        } else {
            CallTarget::Other
        };
    }
    let Some(arguments) = params.and_then(|params| params.get("arguments")) else {
        return CallTarget::Other;
    };
    let mut target = CallTarget::Other;
    let mut only_instruction_files = None;
    for (name, value) in arguments.members() {
        if let Some(url) = value.str().filter(|text| is_web_url(text)) {
            if !names_source_file(&url) {
                return CallTarget::Web;
            }
            target = CallTarget::File;
            only_instruction_files = Some(false);
        }
        let letters = || {
            name.bytes()
                .filter(|byte| !matches!(byte, b'_' | b'-'))
                .map(|byte| byte.to_ascii_lowercase())
        };
        if PATHS.iter().any(|path| letters().eq(path.bytes())) {
            target = CallTarget::File;
            match value.str() {
                // A folder argument beside the file (`repo_path`) names no file.
                Some(path) if !names_file(&path) => {}
                Some(path) => {
                    only_instruction_files =
                        Some(only_instruction_files != Some(false) && names_instruction_file(&path))
                }
                None => only_instruction_files = Some(false),
            }
        }
    }
    if only_instruction_files == Some(true) {
        CallTarget::InstructionFile
    } else {
        target
    }
}

/// Reports whether the last part of a path has an extension, or consists of one: `.cursorrules`.
fn names_file(path: &str) -> bool {
    path.rsplit(['/', '\\'])
        .next()
        .is_some_and(|name| name.contains('.') && !matches!(name, "." | ".."))
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;
    use crate::message::{Json, ReadLimits};

    fn parse(method: &str, params: &str) -> CallTarget {
        let json = Json::parse(
            Bytes::copy_from_slice(params.as_bytes()),
            &ReadLimits::default(),
        )
        .unwrap();
        find_target(method, Some(json.root()))
    }

    fn of_call(arguments: &str) -> CallTarget {
        parse(
            "tools/call",
            &format!(r#"{{"name":"fetch","arguments":{arguments}}}"#),
        )
    }

    #[test]
    fn a_url_of_a_source_file_is_a_file() {
        assert_eq!(
            of_call(r#"{"url":"https://a.example/src/App.vue"}"#),
            CallTarget::File
        );
        assert_eq!(
            of_call(r#"{"url":"https://a.example/index.html"}"#),
            CallTarget::Web
        );
        assert_eq!(
            of_call(r#"{"url":"https://a.example/a.svg","referrer":"https://a.example/"}"#),
            CallTarget::Web
        );
        assert_eq!(of_call(r#"{"path":"index.html"}"#), CallTarget::File);
    }

    #[test]
    fn an_instruction_file_is_the_only_file_named() {
        assert_eq!(
            of_call(r#"{"path":"app/AGENTS.md"}"#),
            CallTarget::InstructionFile
        );
        assert_eq!(
            of_call(r#"{"repo_path":"/srv/app","file_path":".cursorrules"}"#),
            CallTarget::InstructionFile
        );
        assert_eq!(
            of_call(r#"{"path":"AGENTS.md","file":"notes.md"}"#),
            CallTarget::File
        );
        assert_eq!(
            of_call(r#"{"file":"notes.md","path":"AGENTS.md"}"#),
            CallTarget::File
        );
        assert_eq!(of_call(r#"{"paths":["AGENTS.md"]}"#), CallTarget::File);
        assert_eq!(
            of_call(r#"{"url":"https://a.example/AGENTS.md"}"#),
            CallTarget::File
        );
        assert_eq!(of_call(r#"{"query":"AGENTS.md"}"#), CallTarget::Other);
        assert_eq!(
            parse("resources/read", r#"{"uri":"file:///srv/app/AGENTS.md"}"#),
            CallTarget::InstructionFile
        );
        assert_eq!(
            parse("resources/read", r#"{"uri":"https://a.example/AGENTS.md"}"#),
            CallTarget::Other
        );
    }
}
