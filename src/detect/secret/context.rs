//! Values found by context: the value assigned to a name that suggests a secret, in any notation.

use std::ops::Range;

use super::check::{is_password, is_uuid};
use super::class::Class;
use super::decode;
use super::name::{NamedValue, classify_name};
use super::random::{CharStats, is_standin, surprise};
use super::reference::{in_address, is_example, is_reference};
use crate::text::quick::WordSet;

/// Maximum length of a value that is examined, in bytes.
const VALUE_BYTES: usize = 512;
/// Maximum length of a name, in bytes.
const NAME_BYTES: usize = 96;
/// Maximum distance from a name to the beginning of its value, in bytes.
const GAP_BYTES: usize = 48;

/// The connection between a name and its value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Link {
    /// A sign: `=`, `:`, `=>`, the end of a tag.
    Sign,
    /// The value is the next word of a command line, or the word after the name of an
    /// authentication scheme.
    Next,
    /// Words: "the key is".
    Words,
}

/// A name and the value that is assigned to it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Assignment {
    pub(super) name: Range<usize>,
    pub(super) value: Range<usize>,
    pub(super) link: Link,
}

/// Returns the name that contains the word of `length` bytes that ends at `last`. Returns `None` if
/// the search skipped characters within the word, since these are not part of a name.
pub(super) fn name_around(text: &str, last: usize, length: usize) -> Option<Range<usize>> {
    let bytes = text.as_bytes();
    let at = (last + 1).checked_sub(length)?..last + 1;
    if bytes
        .get(at.clone())?
        .iter()
        .any(|byte| Class::from_byte(*byte).is_joint())
    {
        return None;
    }
    let in_name = |byte: u8| {
        byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.') || byte >= 0x80
    };
    let before = bytes.get(at.start.saturating_sub(NAME_BYTES)..at.start)?;
    let start = at.start
        - before
            .iter()
            .rev()
            .take_while(|byte| in_name(**byte))
            .count();
    let after = bytes.get(at.end..bytes.len().min(at.end + NAME_BYTES))?;
    let end = at.end + after.iter().take_while(|byte| in_name(**byte)).count();
    Some(start..end)
}

/// Returns the value assigned to a name.
pub(super) fn assignment(text: &str, name: Range<usize>) -> Option<Assignment> {
    let option = text.as_bytes().get(name.start) == Some(&b'-');
    let (value, link) = value(text, name.end, option)?;
    Some(Assignment { name, value, link })
}

fn value(text: &str, end: usize, option: bool) -> Option<(Range<usize>, Link)> {
    let bytes = text.as_bytes();
    let skip = |from: usize, skipped: &[u8], limit: usize| {
        from + bytes
            .get(from..)
            .unwrap_or_default()
            .iter()
            .take(limit)
            .take_while(|byte| skipped.contains(byte))
            .count()
    };
    let mut at = skip(end, b"\"'`\\])*", 6);
    let after_blanks = skip(at, b" \t", 16);
    let link = match bytes.get(after_blanks..).unwrap_or_default() {
        [b'=' | b':' | b'|', ..] | [b'-', b'>', ..] => Link::Sign,
        [b'>', ..] if after_blanks == at => Link::Sign,
        [b'\n' | b'\r' | b',', ..] => match value_beside(text, after_blanks) {
            None if at > end && bytes.get(after_blanks) == Some(&b',') => Link::Sign,
            found => return found,
        },
        // A word that begins like an option is the next option.
        [b'-', ..] if option && after_blanks > at => return None,
        _ if option && after_blanks > at => Link::Next,
        _ if after_blanks > at => return value_after_words(text, after_blanks),
        _ => return None,
    };
    at = skip(after_blanks, b"=:>|,- \t", 8);
    let value = value_run(text, at)?;
    if is_scheme(text.get(value.clone())?) {
        return Some((value_run(text, skip(value.end, b" \t", 4))?, Link::Next));
    }
    Some((value, link))
}

/// Returns the run of characters at `at` that may be a value, without the quotes and brackets
/// before it.
fn value_run(text: &str, at: usize) -> Option<Range<usize>> {
    let bytes = text.as_bytes();
    let opening = bytes
        .get(at..)?
        .iter()
        .take(6)
        .take_while(|byte| matches!(byte, b'"' | b'\'' | b'`' | b'\\' | b'(' | b'['))
        .count();
    let start = at + opening;
    let quoted = opening > 0
        && bytes
            .get(start - 1)
            .is_some_and(|byte| matches!(byte, b'"' | b'\'' | b'`'));
    let is_end = |byte: &u8| match byte {
        b'"' | b'\'' | b'`' | b'\\' | b'\n' | b'\r' => true,
        b' ' | b'\t' | b'<' | b'>' | b',' | b';' | b'&' | b'|' | b')' | b']' | b'}' => !quoted,
        _ => false,
    };
    let length = bytes
        .get(start..)?
        .iter()
        .take(VALUE_BYTES)
        .take_while(|byte| !is_end(byte))
        .count();
    let value = text.get(start..start + length)?;
    let value = value.trim_end_matches(['.', ',', ':', ';']);
    (!value.is_empty()).then_some(start..start + value.len())
}

/// Finds the value in `name: X` next to `value: Y`, as in lists of variables.
fn value_beside(text: &str, at: usize) -> Option<(Range<usize>, Link)> {
    let window = text.get(at..)?.get(..GAP_BYTES).unwrap_or(text.get(at..)?);
    let word = window.to_ascii_lowercase().find("value")?;
    let between = window.get(..word)?;
    if !between.bytes().all(|byte| {
        matches!(
            byte,
            b' ' | b'\t' | b'\r' | b'\n' | b',' | b'"' | b'\'' | b'\\' | b'n'
        )
    }) {
        return None;
    }
    let bytes = text.as_bytes();
    let from = at + word + "value".len();
    let signs = bytes
        .get(from..)?
        .iter()
        .take(8)
        .take_while(|byte| matches!(byte, b'"' | b'\'' | b'\\' | b' ' | b':' | b'='))
        .count();
    Some((value_run(text, from + signs)?, Link::Sign))
}

/// Finds a value that a few words introduce: "the key for staging is …".
fn value_after_words(text: &str, at: usize) -> Option<(Range<usize>, Link)> {
    let mut from = at;
    let bytes = text.as_bytes();
    while from < at + GAP_BYTES {
        let value = value_run(text, from)?;
        let word = text.get(value.clone())?;
        if word.bytes().any(|byte| byte.is_ascii_digit()) && word.len() >= 8 {
            // The value in `docker secret ls -f id=…` belongs to another name.
            return (!word.trim_end_matches('=').contains('=')).then_some((value, Link::Words));
        }
        if !word
            .bytes()
            .all(|byte| byte.is_ascii_alphabetic() || matches!(byte, b'-' | b'/'))
        {
            return None;
        }
        let gap = bytes
            .get(value.end..)?
            .iter()
            .take(6)
            .take_while(|byte| matches!(byte, b' ' | b':' | b'=' | b'"' | b'\'' | b'`' | b'\t'))
            .count();
        if gap == 0 {
            return None;
        }
        from = value.end + gap;
    }
    None
}

/// Reports whether a word is the name of an authentication scheme, as before the credentials in an
/// `Authorization` header.
fn is_scheme(word: &str) -> bool {
    [
        "bearer",
        "basic",
        "token",
        "apikey",
        "digest",
        "bot",
        "negotiate",
        "key",
        "splunk",
    ]
    .iter()
    .any(|scheme| word.eq_ignore_ascii_case(scheme))
}

/// Reports whether a value in a text is a secret by its name, as written or decoded. A value in the
/// address of a secret or in an example is not.
pub(super) fn is_assigned_secret(text: &str, assignment: &Assignment) -> bool {
    let (Some(name), Some(value)) = (
        text.get(assignment.name.clone()),
        text.get(assignment.value.clone()),
    ) else {
        return false;
    };
    let decoded = || decode::decode(value, 0, value.len(), 0).map(|result| result.text);
    let secret = is_secret(name, value, assignment.link)
        || decoded().is_some_and(|text| is_secret(name, text.trim(), assignment.link));
    secret && !in_address(text, &assignment.name) && !is_example(text, &assignment.name, value)
}

/// Reports whether a value with this name is a secret.
pub(super) fn is_secret(name: &str, value: &str, link: Link) -> bool {
    if value.len() < 8 {
        return false;
    }
    // The cheap checks come first: most values are words.
    let stats = CharStats::new(value);
    let mixed = stats.lower + stats.upper > 0 && stats.digits > 0;
    let bits: f32 = value
        .split(['-', '.', '_', '/', ':', '+', '='])
        .map(|part| surprise(part).max(0.0))
        .sum();
    if !mixed && bits < 9.0 {
        return false;
    }
    let Some(kind) = classify_name(name) else {
        return false;
    };
    let identifier = is_uuid(value);
    if identifier
        && (link == Link::Sign && names_credential(name)
            || link == Link::Next && name.eq_ignore_ascii_case("authorization"))
    {
        return true;
    }
    if identifier || is_standin(value) || is_reference(value, &stats) {
        return false;
    }
    let long_hex = stats.is_random_hex()
        && value.len()
            >= if kind == NamedValue::PossibleKey {
                usize::MAX
            } else {
                16
            };
    match (kind, link) {
        (NamedValue::Password, Link::Sign | Link::Next) => {
            is_password(value)
                && !value.contains(' ')
                && (long_hex || mixed && (stats.kinds() >= 3 || bits >= 4.0) || bits >= 9.0)
        }
        (NamedValue::Password, Link::Words) => {
            is_password(value) && stats.kinds() >= 3 && value.len() >= 10 && bits >= 4.0
        }
        (NamedValue::Key, Link::Sign | Link::Next) => {
            long_hex
                || value.len() >= 12 && mixed && bits >= 6.0
                || value.len() >= 16 && bits >= 14.0
        }
        (NamedValue::Key, Link::Words) => {
            long_hex && value.len() >= 32 || value.len() >= 16 && mixed && bits >= 9.0
        }
        (NamedValue::PossibleKey, _) => {
            value.len() >= 20 && mixed && !stats.hex && stats.kinds() >= 3 && bits >= 10.0
        }
    }
}

/// Reports whether a name can only be that of a credential: several services issue keys that are
/// UUIDs.
fn names_credential(name: &str) -> bool {
    static ENDS: WordSet = WordSet::new(
        "apikey apitoken apisecret authtoken authkey accesstoken accesskey secretkey clientsecret \
         privatekey subscriptionkey licensekey licencekey adminsecret appsecret sharedsecret \
         signingsecret signingkey webhooksecret bearertoken servertoken personaltoken \
         refreshtoken password",
    );
    let plain: String = name
        .chars()
        .rev()
        .take(32)
        .filter(char::is_ascii_alphanumeric)
        .map(|c| c.to_ascii_lowercase())
        .collect();
    let plain: String = plain.chars().rev().collect();
    ENDS.iter().any(|end| plain.ends_with(end))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn assigned_value(text: &str) -> Option<String> {
        let at = [
            "pass", "key", "token", "secret", "auth", "PASS", "TOKEN", "KEY", "SECRET", "Auth",
            "Token",
        ]
        .iter()
        .find_map(|root| text.find(root).map(|at| at..at + root.len()))?;
        let given = assignment(text, name_around(text, at.end - 1, at.len())?)?;
        let value = text.get(given.value).unwrap();
        is_secret(text.get(given.name).unwrap(), value, given.link).then(|| value.to_owned())
    }

    #[test]
    fn every_notation_of_a_value() {
        const VALUE: &str = "TfU9e8bi1y1FRVSrVdj5Bziy6C9H";
        for text in [
            "API_TOKEN=%",
            "api_token: %",
            "\"apiToken\": \"%\"",
            "{\\\"token\\\":\\\"%\\\"}",
            "--token %",
            "--token=%",
            "'token' => '%'",
            "export TOKEN='%'",
            "<token>%</token>",
            "here is the key: % use it",
            "the token for staging is %",
            "config[\"secret\"] = \"%\"",
            "Authorization: Bearer %",
            "- name: DB_TOKEN\n  value: %",
            "{\"name\":\"API_TOKEN\",\"value\":\"%\"}",
            "set(\"api_token\", \"%\")",
            "| token | % |",
            "https://x.example/?token=%&a=1",
            "token := `%`",
        ] {
            assert_eq!(
                assigned_value(&text.replace('%', VALUE)).as_deref(),
                Some(VALUE),
                "{text}"
            );
        }
        assert_eq!(
            assigned_value("DB_PASSWORD=blue-Kettle7!").as_deref(),
            Some("blue-Kettle7!")
        );
    }

    #[test]
    fn what_only_names_or_points_is_left_alone() {
        for text in [
            "TOKEN=$GITHUB_TOKEN",
            "password = getPassword()",
            "token: process.env.TOKEN1",
            "api_key: your-api-key",
            "cache_key: d2672adecf1a1a51a60d4864e204168e6bfb1173",
            "token_count=8502",
            "max_tokens=4096",
            "password: ********",
            "the token is 550e8400-e29b-41d4-a716-446655440000",
            "SECRET_FILE=/run/secrets/db1",
            "secret: /run/secrets/db-password-1",
            "auth = HTTPBasicAuth(user, name)",
            "key: value",
            "the key to success is practice",
            "password: str | None = None",
            "token: Option<String>",
            "const token = await getToken2(x)",
            "secretName: my-app-tls-2024",
            "docker run -v \"$PWD:/pwd0/aXb1\" app",
            "sudo cryptenroll --password --fido2-device=auto",
            "docker secret ls -f id=6697bflskwj1998km1gnnjr38q5io6",
        ] {
            assert_eq!(assigned_value(text), None, "{text}");
        }
    }
}
