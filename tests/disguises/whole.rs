//! Disguises of a whole script: it is encoded, quoted, stored or passed on, and finally run.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

use super::Disguise;
use super::random::Random;

/// Makes a disguise of a text into which the encoded script is inserted.
macro_rules! inserted {
    ($text:literal, $encode:ident) => {
        |s, _| Some(format!($text, $encode(s)))
    };
}

pub(crate) const DISGUISES: [(&str, Disguise); 46] = [
    ("base64", inserted!("echo {} | base64 -d | sh", base64)),
    (
        "base64 --decode",
        inserted!("base64 --decode <<< {} | bash", base64),
    ),
    (
        "base64 in eval",
        inserted!("eval \"$(echo '{}' | base64 -d)\"", base64),
    ),
    (
        "base64 in sh -c",
        inserted!("bash -c \"$(printf %s '{}' | base64 -di)\"", base64),
    ),
    (
        "openssl",
        inserted!("echo {} | openssl base64 -d -A | sh", base64),
    ),
    (
        "python base64",
        inserted!(
            "python3 -c \"import os,base64;os.system(base64.b64decode('{}').decode())\"",
            base64
        ),
    ),
    ("base32", inserted!("echo {} | base32 -d | bash", base32)),
    ("xxd", inserted!("echo {} | xxd -r -p | sh", plain_hex)),
    ("printf hex", inserted!("printf '{}' | sh", hex_escapes)),
    ("printf octal", inserted!("sh -c \"$(printf '{}')\"", octal)),
    ("echo -e", inserted!("echo -e '{}' | bash", hex_escapes)),
    ("ansi-c hex", inserted!("eval $'{}'", hex_escapes)),
    ("ansi-c octal", inserted!("bash -c $'{}'", octal)),
    ("ansi-c unicode", |s, _| {
        s.is_ascii().then(|| {
            format!(
                "eval $'{}'",
                s.bytes().map(|b| format!("\\u{b:04x}")).collect::<String>()
            )
        })
    }),
    ("rev", |s, _| {
        one_line(s).map(|s| {
            format!(
                "echo {} | rev | sh",
                quoted(&s.chars().rev().collect::<String>())
            )
        })
    }),
    ("rot13", |s, _| {
        Some(format!(
            "echo {} | tr 'A-Za-z' 'N-ZA-Mn-za-m' | sh",
            quoted(&rot13(s))
        ))
    }),
    ("tr letters", |s, _| {
        (!s.contains(['Q', '^'])).then(|| {
            format!(
                "printf %s {} | tr 'Q^' 'r ' | bash",
                quoted(&s.replace('r', "Q").replace(' ', "^"))
            )
        })
    }),
    ("sed", |s, _| {
        (!s.contains('@'))
            .then(|| format!("echo {} | sed 's/@/e/g' | sh", quoted(&s.replace('e', "@"))))
    }),
    ("eval", inserted!("eval {}", quoted)),
    ("sh -c", inserted!("sh -c {}", quoted)),
    ("sudo", inserted!("sudo -n -u root bash -c {}", quoted)),
    ("env", inserted!("env -i PATH=/bin A=b sh -c {}", quoted)),
    (
        "nohup",
        inserted!("nohup bash -c {} >/dev/null 2>&1 &", quoted),
    ),
    (
        "timeout",
        inserted!("timeout -k 1 10s nice -n 5 sh -c {}", quoted),
    ),
    ("here-document", |s, _| {
        Some(format!("bash <<'END_OF_IT'\n{s}\nEND_OF_IT\n"))
    }),
    ("here-string", inserted!("sh <<< {}", quoted)),
    ("echo to sh", |s, _| {
        (!s.contains('\\')).then(|| format!("echo {} | sh", quoted(s)))
    }),
    ("source", inserted!("source <(printf '%s\\n' {})", quoted)),
    ("bash <()", |s, _| {
        (!s.contains('\\')).then(|| format!("bash <(echo {})", quoted(s)))
    }),
    ("variable", inserted!("c={}; eval \"$c\"", quoted)),
    ("two variables", |s, random| {
        let cut = border(s, random);
        Some(format!(
            "a={}\nb={}\nsh -c \"$a$b\"",
            quoted(&s[..cut]),
            quoted(&s[cut..])
        ))
    }),
    ("array", |s, random| {
        let cut = border(s, random);
        Some(format!(
            "p=({} {}); eval \"${{p[0]}}${{p[1]}}\"",
            quoted(&s[..cut]),
            quoted(&s[cut..])
        ))
    }),
    (
        "printf -v",
        inserted!("printf -v c '%s' {}; bash -c \"$c\"", quoted),
    ),
    ("read", |s, _| {
        one_line(s)
            .filter(|s| !s.contains('\\'))
            .map(|s| format!("read -r c <<< {}; eval \"$c\"", quoted(s)))
    }),
    ("while read", |s, _| {
        one_line(s).map(|s| format!("while read -r l; do eval \"$l\"; done <<< {}", quoted(s)))
    }),
    ("positional", inserted!("set -- {}; eval \"$1\"", quoted)),
    ("sh -c $1", inserted!("bash -c 'eval \"$1\"' x {}", quoted)),
    ("function", |s, _| Some(format!("f() {{\n{s}\n}}\nf"))),
    ("alias", |s, _| {
        one_line(s).map(|s| format!("shopt -s expand_aliases\nalias zz={}\nzz", quoted(s)))
    }),
    ("trap", inserted!("trap {} EXIT; exit 0", quoted)),
    ("xargs", |s, _| {
        one_line(s).map(|s| format!("printf '%s\\0' {} | xargs -0 sh -c", quoted(s)))
    }),
    (
        "find -exec",
        inserted!("find . -maxdepth 0 -exec sh -c {} \\;", quoted),
    ),
    ("python", |s, _| {
        Some(format!(
            "python3 -c {}",
            quoted(&format!("import os; os.system({s:?})"))
        ))
    }),
    ("perl", |s, _| {
        (!s.contains(['$', '@', '\\']))
            .then(|| format!("perl -e {}", quoted(&format!("system({s:?});"))))
    }),
    ("written and run", |s, _| {
        Some(format!(
            "cat > /tmp/.x.sh <<'END_OF_FILE'\n{s}\nEND_OF_FILE\nchmod +x /tmp/.x.sh && /tmp/.x.sh"
        ))
    }),
    ("tee and run", |s, _| {
        (!s.contains('\\')).then(|| {
            format!(
                "echo {} | tee /tmp/y.sh >/dev/null; sh /tmp/y.sh",
                quoted(s)
            )
        })
    }),
];

/// Returns the text in single quotes for a shell.
pub(crate) fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', "'\\''"))
}

fn one_line(text: &str) -> Option<&str> {
    (!text.contains(['\n', '\r', '#'])).then_some(text)
}

/// Returns a random position between two characters.
fn border(text: &str, random: &mut Random) -> usize {
    let borders: Vec<usize> = text.char_indices().map(|(at, _)| at).skip(1).collect();
    if borders.is_empty() {
        text.len()
    } else {
        *random.pick(&borders)
    }
}

fn base64(text: &str) -> String {
    STANDARD.encode(text)
}

fn plain_hex(text: &str) -> String {
    text.bytes().map(|b| format!("{b:02x}")).collect()
}

fn hex_escapes(text: &str) -> String {
    text.bytes().map(|b| format!("\\x{b:02x}")).collect()
}

fn octal(text: &str) -> String {
    text.bytes().map(|b| format!("\\{b:03o}")).collect()
}

fn rot13(text: &str) -> String {
    let turn = |c: char, first: u8| char::from((c as u8 - first + 13) % 26 + first);
    text.chars()
        .map(|c| {
            if c.is_ascii_lowercase() {
                turn(c, b'a')
            } else if c.is_ascii_uppercase() {
                turn(c, b'A')
            } else {
                c
            }
        })
        .collect()
}

/// RFC 4648, section 6.
fn base32(text: &str) -> String {
    let mut out = String::new();
    for chunk in text.as_bytes().chunks(5) {
        let mut group = [0; 5];
        group[..chunk.len()].copy_from_slice(chunk);
        let bits = group.iter().fold(0u64, |bits, b| bits << 8 | u64::from(*b));
        let letters = (chunk.len() * 8).div_ceil(5);
        for n in 0..8 {
            let value = (bits >> (35 - 5 * n) & 31) as u8;
            out.push(if n < letters {
                char::from(if value < 26 {
                    b'A' + value
                } else {
                    b'2' + value - 26
                })
            } else {
                '='
            });
        }
    }
    out
}
