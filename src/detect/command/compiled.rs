//! Sources of compiled languages (Go, Rust, C, Java, C# and the like) that are compiled and run:
//! the files that their calls delete and write, and the programs that they start.

use super::code_flow::Flow;
use super::code_lex::{COMPILED, Language};
use super::code_names::last_part;
use super::reader::Reader;
use super::term::Term;
use super::value::Taint;
use crate::text::quick::WordSet;

/// Extensions of source files.
pub(super) const SOURCES: [&str; 22] = [
    ".go", ".rs", ".c", ".cc", ".cpp", ".cxx", ".java", ".cs", ".csx", ".kt", ".kts", ".swift",
    ".zig", ".nim", ".d", ".m", ".scala", ".cr", ".hs", ".f90", ".pas", ".v",
];
/// Calls that delete a folder and everything in it.
static DELETE_TREE: WordSet = WordSet::new(
    "RemoveAll deleteRecursively remove_all deleteDirectory deleteTree deleteTreeAbsolute \
     deleteRecursive deleteSync removeDir removeItem removeItemAtPath rmdirRecurse \
     removeDirectoryRecursive removePathForcibly forceDelete cleanDirectory rm_rf",
);
/// Calls that delete one file.
static DELETE: WordSet =
    WordSet::new("Remove Unlink DeleteFile deleteIfExists remove_file deleteFile removeFile");
/// Names of deleting calls that collections and routers also use.
const COMMON: [&str; 8] = [
    "remove", "delete", "unlink", "rm", "rmdir", "Remove", "Delete", "Unlink",
];
/// Modules and classes that work on files.
static FILES: WordSet =
    WordSet::new("os fs io std unix syscall posix sys File Files Directory filesystem");
/// Calls that walk through a folder, and calls that delete the files found there.
static WALKS: WordSet = WordSet::new("listFiles Walk WalkDir walk walkFileTree nftw ftw fts_open");
static WALK_DELETIONS: WordSet = WordSet::new(
    ".deleteRecursively() os.Remove( Files.delete File::delete File.delete .delete() remove( \
     unlink( rmdir( remove_file(",
);
/// Calls that only wrap a path, or return the same text.
static WRAPS: WordSet = WordSet::new(
    "of new from File Path PathBuf DirectoryInfo FileInfo URL path to_string to_owned into as_str \
     as_ref as_path c_str clone unwrap expect toFile toPath toString toAbsolutePath getPath map \
     filter sorted stream String string",
);
/// Variables and properties that contain the home folder.
const HOMES: [&str; 3] = ["HOME", "user.home", "USERPROFILE"];

impl Reader<'_> {
    /// Reads the source code of a program that is run: texts that it may pass to a shell, and calls
    /// that change files.
    pub(super) fn read_source_code(&mut self, text: &str) {
        self.read_rare_code(text);
        self.evaluate_code(COMPILED, text, Taint::NONE);
    }
}

/// The meaning of a call: the known call that it equals, the value that it returns, or the command
/// that it runs.
pub(super) enum CallMeaning {
    Call(&'static str),
    Value(Term),
    Command(Term),
}

/// The name of the value with which a program is started: `Command::new("rm")`.
const BUILDER: &str = "builder";

/// Returns the meaning of a call in a compiled language, or in a rarely used one.
pub(super) fn call_meaning(
    language: Language,
    callee: &Term,
    arguments: &[Term],
    flow: &Flow,
) -> Option<CallMeaning> {
    if !matches!(language, Language::Compiled | Language::Other) {
        return None;
    }
    let last = last_part(&callee.name);
    // Maps and routers have methods of the same names.
    if language == Language::Compiled
        && COMMON.contains(&last)
        && !callee.is_known()
        && !is_of_files(&callee.name, last)
    {
        return Some(CallMeaning::Value(Term::default()));
    }
    if DELETE_TREE.contains(&last) {
        return Some(CallMeaning::Call("rmtree"));
    }
    if DELETE.contains(&last) {
        return Some(CallMeaning::Call("unlink"));
    }
    let first = arguments.first();
    let known_first = || {
        let known = first.filter(|term| term.is_known());
        known.cloned().map(CallMeaning::Value)
    };
    let home = || Some(CallMeaning::Value(Term::text("~")));
    if language != Language::Compiled {
        // R: `unlink(path.expand("~"), recursive = TRUE)`.
        return match last {
            "unlink" if arguments.len() > 1 => Some(CallMeaning::Call("rmtree")),
            "expand" | "expanduser" | "normalizePath" => known_first(),
            _ => None,
        };
    }
    let words = || {
        let items = arguments.iter().flat_map(|term| &term.items);
        let items = callee.items.iter().chain(items).take(256);
        Term::list(items.cloned().collect()).with_name(BUILDER)
    };
    let builds = callee
        .name
        .strip_prefix(BUILDER)
        .is_some_and(|rest| rest.starts_with('.'));
    let has_known_path = || callee.is_known() || first.is_some_and(Term::is_known);
    match last {
        _ if flow.deletes_in_walk && WALKS.contains(&last) && has_known_path() => {
            Some(CallMeaning::Call("rmtree"))
        }
        "new" if callee.name.contains("Command") => Some(CallMeaning::Value(words())),
        "arg" | "args" if builds => Some(CallMeaning::Value(words())),
        "spawn" | "status" | "output" | "exec" if builds => Some(CallMeaning::Command(words())),
        "ProcessBuilder" | "CommandContext" => Some(CallMeaning::Call("spawn")),
        "Start" if callee.name.contains("Process") => {
            Some(CallMeaning::Command(Term::text(words().items.join(" "))))
        }
        "Delete" => Some(CallMeaning::Call(
            if arguments.len() > usize::from(!callee.is_known()) {
                "rmtree"
            } else {
                "unlink"
            },
        )),
        "WriteFile" | "WriteAllText" | "WriteAllBytes" | "writeString" => {
            Some(CallMeaning::Call("writeFile"))
        }
        "Rename" => Some(CallMeaning::Call("rename")),
        "Chmod" => Some(CallMeaning::Call("chmod")),
        "UserHomeDir" | "home_dir" => home(),
        "getenv" | "Getenv" | "var" | "getProperty" | "GetEnvironmentVariable"
            if first.is_some_and(|name| HOMES.contains(&name.first())) =>
        {
            home()
        }
        "GetFolderPath" if first.is_some_and(|folder| folder.name.ends_with("UserProfile")) => {
            home()
        }
        _ if WRAPS.contains(&last) && callee.is_known() => {
            Some(CallMeaning::Value(callee.clone().with_name("")))
        }
        _ if (WRAPS.contains(&last) || callee.name == "Paths.get") && arguments.len() == 1 => {
            known_first()
        }
        _ => None,
    }
}

/// Reports whether a call is that of a plain function, or of a module or class that works on files.
fn is_of_files(name: &str, last: &str) -> bool {
    let before = name
        .strip_suffix(last)
        .unwrap_or_default()
        .trim_end_matches(['.', ':']);
    before.is_empty() || FILES.contains(&last_part(before))
}

/// Reports whether code walks through a folder and deletes the files that it finds.
pub(super) fn deletes_in_walk(code: &str) -> bool {
    WALKS.iter().any(|name| code.contains(name))
        && WALK_DELETIONS.iter().any(|name| code.contains(name))
}

/// Reports whether the line after the line end at `at` begins with a dot.
pub(super) fn continues_on_next_line(code: &[u8], at: usize) -> bool {
    let rest = code.get(at..).unwrap_or_default();
    let next = rest
        .iter()
        .take(64)
        .find(|byte| !byte.is_ascii_whitespace());
    next == Some(&b'.')
}

/// Returns the index after the quoted character at `at`. A single quote alone belongs to a
/// lifetime, or is part of a number.
pub(super) fn behind_character(code: &str, at: usize) -> usize {
    let rest = code.get(at + 1..).unwrap_or_default();
    let inside = match rest.strip_prefix('\\') {
        Some(escaped) => escaped
            .bytes()
            .take(12)
            .skip(1)
            .position(|b| b == b'\'')
            .map(|end| end + 2),
        None => rest.chars().next().map(char::len_utf8),
    };
    inside
        .filter(|inside| rest.as_bytes().get(*inside) == Some(&b'\''))
        .map_or(at + 1, |inside| at + inside + 2)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn characters_are_told_from_lifetimes() {
        for (code, end) in [
            ("'a' x", 3),
            ("'\\n'", 4),
            ("'\\''", 4),
            ("'é'", 4),
            ("'a T", 1),
            ("'", 1),
            ("'\\u{1F}'", 8),
        ] {
            assert_eq!(behind_character(code, 0), end, "{code}");
        }
    }

    #[test]
    fn calls_on_files_are_told_from_those_on_maps() {
        for (name, last) in [
            ("os.Remove", "Remove"),
            ("remove", "remove"),
            ("std::fs::remove", "remove"),
            ("System.IO.File.Delete", "Delete"),
        ] {
            assert!(is_of_files(name, last), "{name}");
        }
        for (name, last) in [
            ("mux.Delete", "Delete"),
            ("m.remove", "remove"),
            ("cache.Remove", "Remove"),
        ] {
            assert!(!is_of_files(name, last), "{name}");
        }
    }

    #[test]
    fn a_method_on_the_next_line_goes_on() {
        assert!(
            continues_on_next_line(b"\n  .sorted()", 0)
                && !continues_on_next_line(b"\nx.y()", 0)
                && !continues_on_next_line(b"\n", 0)
        );
    }
}
