//! Option parsing. Short options can be combined in one word, and the last one can take a value, attached or as the next word
//! (`-fsSLo f`, `-qO/tmp/x`, `--output=f`).

use super::value::Field;
use super::wrappers;

/// Short options that take a value, by program, beside those of programs that download and of wrappers.
static VALUED: [(&[&str], &str); 21] = [
    (&["useradd", "adduser"], "bcdefgGkKpRsuZ"),
    (&["usermod"], "cdefgGlpRsuvVwWZ"),
    (&["groupadd", "groupmod"], "gKnpR"),
    (&["userdel", "passwd", "chage"], "RniwxEIMWm"),
    (&["docker", "podman", "nerdctl"], "aceghlmpuvw"),
    (&["pip", "pip3", "uv"], "icreft"),
    (&["iptables", "ip6tables"], "tAIDRPNEjspdmio"),
    (&["crontab"], "u"),
    (&["pkill", "pgrep"], "uUgGPtsFd"),
    (&["killall"], "usoyZ"),
    (&["mount"], "otLUO"),
    (&["install"], "mogtS"),
    (&["tar", "gtar", "bsdtar"], "fCXTbIFgKLNV"),
    (&["sed", "gsed"], "efl"),
    (&["ssh"], "BbcDEeFIiJLlmOopQRSWw"),
    (&["scp", "sftp"], "cDFiJloPSX"),
    (&["nc", "ncat", "netcat"], "pwsIiqXxecCmgG"),
    (&["rsync"], "efBTM"),
    (&["git"], "Ccumx"),
    (&["systemctl"], "tHMpnos"),
    (&["kubectl", "oc", "helm"], "nfolcs"),
];

/// The option syntax of a program that downloads, and the options that select the output file.
struct Grammar {
    programs: &'static [&'static str],
    /// Short options that take a value.
    valued: &'static str,
    /// Long options that take a value as the next word. Others take it behind `=` only.
    valued_long: &'static [&'static str],
    /// Options whose value is the file that is written.
    output: &'static [&'static str],
    /// Options whose value is the folder that it is written to.
    folder: &'static [&'static str],
    /// Options that save under the last path segment of the URL; `None` if that is the default.
    saves: Option<&'static [&'static str]>,
}

static GRAMMARS: [Grammar; 6] = [
    Grammar {
        programs: &["curl", "curlie"],
        valued: "AbcCdDeEFHKmoPQrtTuUwxXyYz",
        valued_long: &[
            "output",
            "output-dir",
            "config",
            "data",
            "data-ascii",
            "data-binary",
            "data-raw",
            "data-urlencode",
            "json",
            "form",
            "form-string",
            "header",
            "proxy-header",
            "user",
            "user-agent",
            "referer",
            "cookie",
            "oauth2-bearer",
            "aws-sigv4",
            "proxy-user",
            "request",
            "url",
            "url-query",
            "upload-file",
            "write-out",
            "cert",
            "key",
            "cacert",
        ],
        output: &["o", "output"],
        folder: &["output-dir"],
        saves: Some(&["O", "remote-name", "remote-name-all", "J", "remote-header-name"]),
    },
    Grammar {
        programs: &["wget", "wget2"],
        // `-nv`, `-nc`, `-nd`: the letter behind `n` belongs to it.
        valued: "OPoaiBtTwQUelDRXIAn",
        valued_long: &[
            "output-document",
            "directory-prefix",
            "header",
            "post-data",
            "body-data",
            "user",
            "password",
            "http-user",
            "http-password",
            "user-agent",
            "referer",
        ],
        output: &["O", "output-document"],
        folder: &["P", "directory-prefix"],
        saves: None,
    },
    Grammar {
        programs: &["aria2c"],
        valued: "odxsjkimTl",
        valued_long: &["out", "dir", "header"],
        output: &["o", "out"],
        folder: &["d", "dir"],
        saves: None,
    },
    Grammar {
        programs: &["axel", "fetch", "saldl"],
        valued: "onsHUT",
        valued_long: &["output", "header"],
        output: &["o", "output"],
        folder: &[],
        saves: None,
    },
    Grammar {
        programs: &["http", "https", "httpie", "xh"],
        valued: "oapA",
        valued_long: &["output", "auth"],
        output: &["o", "output"],
        folder: &[],
        saves: Some(&["d", "download"]),
    },
    Grammar {
        programs: &["lftpget", "ncftpget", "snarf", "httrack"],
        valued: "",
        valued_long: &[],
        output: &[],
        folder: &[],
        saves: None,
    },
];

/// An argument as its program reads it.
#[derive(Debug, PartialEq)]
pub(super) enum Argument<'f> {
    /// An option without its hyphens, and the value that it takes.
    Option(&'f str, Option<&'f str>),
    Operand(&'f str),
}

/// The arguments of a program that downloads, in order; nothing for other programs.
pub(super) fn parse<'f>(program: &str, arguments: &'f [Field]) -> Vec<Argument<'f>> {
    let Some(grammar) = grammar(program) else { return Vec::new() };
    let mut parsed = Vec::with_capacity(arguments.len());
    let mut words = arguments.iter().map(|field| field.text.as_str());
    while let Some(word) = words.next() {
        if let Some(long) = word.strip_prefix("--").filter(|long| !long.is_empty()) {
            parsed.push(match long.split_once('=') {
                Some((name, value)) => Argument::Option(name, Some(value)),
                None if grammar.valued_long.contains(&long) => Argument::Option(long, words.next()),
                None => Argument::Option(long, None),
            });
            continue;
        }
        let Some(short) = word.strip_prefix('-').filter(|short| !short.is_empty()) else {
            parsed.push(Argument::Operand(word));
            continue;
        };
        for (at, letter) in short.char_indices() {
            let end = at + letter.len_utf8();
            let name = short.get(at..end).unwrap_or_default();
            if grammar.valued.contains(letter) {
                let joined = short.get(end..).filter(|rest| !rest.is_empty());
                parsed.push(Argument::Option(name, joined.or_else(|| words.next())));
                break;
            }
            parsed.push(Argument::Option(name, None));
        }
    }
    parsed
}

/// Program and arguments with every option in a word of its own, its value in the next: `useradd -ou0 x` is `useradd -o -u 0 x`.
/// `None` where that is how they stand, or where nothing is known of the program's options.
pub(super) fn spread(program: &str, arguments: &[Field]) -> Option<String> {
    let listed = || VALUED.iter().find(|(names, _)| names.contains(&program)).map(|(_, valued)| *valued);
    let valued = grammar(program).map(|grammar| grammar.valued).or_else(listed).or_else(|| wrappers::valued_options(program))?;
    let mut out = program.to_owned();
    let mut changed = false;
    let mut options = true;
    for field in arguments {
        let text = field.text.as_str();
        options &= text != "--";
        let cluster = text
            .strip_prefix('-')
            .filter(|rest| options && rest.len() > 1 && !rest.starts_with('-') && !rest.bytes().all(|b| b.is_ascii_digit()));
        let long = text.strip_prefix("--").filter(|_| options).and_then(|option| option.split_once('='));
        if let Some((name, value)) = long {
            changed = true;
            out.extend([" --", name, " ", value]);
            continue;
        }
        let Some(cluster) = cluster else {
            out.extend([" ", text]);
            continue;
        };
        for (at, letter) in cluster.char_indices() {
            out.push_str(if at > 0 && !letter.is_ascii_alphanumeric() { " " } else { " -" });
            let end = at + letter.len_utf8();
            let value = cluster.get(end..).unwrap_or_default();
            if !letter.is_ascii_alphanumeric() {
                out.push_str(cluster.get(at..).unwrap_or_default());
                break;
            }
            out.push(letter);
            if valued.contains(letter) {
                if !value.is_empty() {
                    out.push(' ');
                    out.push_str(value.trim_start_matches('='));
                }
                break;
            }
        }
        changed = true;
    }
    changed.then_some(out)
}

fn grammar(program: &str) -> Option<&'static Grammar> {
    GRAMMARS.iter().find(|grammar| grammar.programs.contains(&program))
}

/// The files that a program that downloads writes to.
pub(super) fn saved_files(program: &str, arguments: &[Field]) -> Vec<String> {
    let Some(grammar) = grammar(program) else { return Vec::new() };
    let parsed = parse(program, arguments);
    let value = |names: &[&str]| {
        parsed.iter().find_map(|argument| match argument {
            Argument::Option(name, Some(value)) if names.contains(name) => Some(*value),
            _ => None,
        })
    };
    let given =
        |names: &[&str]| parsed.iter().any(|argument| matches!(argument, Argument::Option(name, _) if names.contains(name)));
    let folder = value(grammar.folder);
    let within = |name: &str| match folder.filter(|_| !name.starts_with(['/', '~'])) {
        Some(folder) => format!("{}/{name}", folder.trim_end_matches('/')),
        None => name.to_owned(),
    };
    let mut files: Vec<String> = parsed
        .iter()
        .filter_map(|argument| match argument {
            Argument::Option(name, Some(value)) if grammar.output.contains(name) => Some(*value),
            _ => None,
        })
        .map(within)
        .collect();
    let by_url = match grammar.saves {
        Some(options) => given(options),
        None => files.is_empty(),
    };
    if by_url {
        let urls = parsed.iter().filter_map(|argument| match argument {
            Argument::Operand(url) | Argument::Option("url", Some(url)) => Some(*url),
            Argument::Option(..) => None,
        });
        for name in urls.filter_map(|url| url.rsplit_once('/')).map(|(_, name)| name).filter(|name| !name.is_empty()) {
            files.push(within(name));
            // Some programs keep the query in the file name.
            if let Some((plain, _)) = name.split_once(['?', '#']).filter(|(plain, _)| !plain.is_empty()) {
                files.push(within(plain));
            }
        }
    }
    files.retain(|file| !matches!(file.as_str(), "-" | "/dev/null" | "/dev/stdout" | "/dev/fd/1"));
    files
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fields(line: &str) -> Vec<Field> {
        line.split(' ').map(Field::plain).collect()
    }

    #[test]
    fn options_are_spread() {
        for (line, spread_out) in [
            ("useradd -mou 0 x", Some("useradd -m -o -u 0 x")),
            ("useradd -oMu0 x", Some("useradd -o -M -u 0 x")),
            ("docker run -itv /:/h x", Some("docker run -i -t -v /:/h x")),
            ("docker run --volume=/:/h x", Some("docker run --volume /:/h x")),
            ("pkill -9u root", Some("pkill -9 -u root")),
            ("sudo -Hu root id", Some("sudo -H -u root id")),
            ("useradd -m x", None),
            ("useradd -m -- -ou", None),
            ("unknown -abc", None),
        ] {
            let all = fields(line);
            assert_eq!(spread(&all[0].text, &all[1..]).as_deref(), spread_out, "{line}");
        }
    }

    #[test]
    fn short_options_share_a_word_and_take_a_value() {
        for (line, files) in [
            ("curl -fsSLo f https://a.example/x", "f"),
            ("curl -Lo/tmp/f https://a.example/x", "/tmp/f"),
            ("curl --output=f https://a.example/x", "f"),
            ("curl -sO https://a.example/x.sh?v=1", "x.sh?v=1 x.sh"),
            ("curl -JLO https://a.example/x.sh", "x.sh"),
            ("curl --output-dir /tmp -O https://a.example/x.sh", "/tmp/x.sh"),
            ("curl -sS https://a.example/x.sh", ""),
            ("curl -so /dev/null https://a.example/x.sh", ""),
            ("curl -H O https://a.example/x.sh", ""),
            ("wget -P /tmp https://a.example/x.sh", "/tmp/x.sh"),
            ("wget -nv -qP/tmp/ https://a.example/x.sh", "/tmp/x.sh"),
            ("wget -qO /tmp/f https://a.example/x.sh", "/tmp/f"),
            ("wget -qO- https://a.example/x.sh", ""),
            ("wget --directory-prefix=d https://a.example/x.sh", "d/x.sh"),
            ("wget https://a.example/", ""),
            ("aria2c -d /tmp -o f https://a.example/x", "/tmp/f"),
            ("xh -d https://a.example/x.sh", "x.sh"),
            ("ls -o f", ""),
        ] {
            let all = fields(line);
            assert_eq!(saved_files(&all[0].text, &all[1..]).join(" "), files, "{line}");
        }
    }
}
