//! Values that only refer to a secret (an address in a vault, a path, a member of a configuration),
//! and passwords in examples.

use std::ops::Range;

use super::check::is_uuid;
use super::name::{NamedValue, classify_name};
use super::random::{CharStats, surprise};
use crate::text::quick::WordSet;

/// Prefixes of references to secrets: variables, paths, and addresses in secret stores of several
/// vendors.
static STARTS: WordSet = WordSet::new(
    "$ % @ ~ ./ ../ { env. env: process. os. secrets. vault: op:// arn: ref+ file: http: https: \
     sha256: sha512- sha1- sha384- projects/ resolve: secretsmanager: ssm: aws-ssm: aws-sm: \
     gcp-sm: gcp-secret: gcpsm: azkv: akv: keyvault: azurekv: doppler: infisical: bws: keychain: \
     keyring: credstash: sops: var. module.",
);
/// Prefixes of addresses whose own parts are called secrets:
/// `arn:aws:secretsmanager:…:secret:prod/db`.
static ADDRESSES: WordSet = WordSet::new(
    "arn:aws op:// vault: ref+ projects/ resolve: sm:// akv:// secretsmanager: ssm: gcp-sm: \
     keyvault: doppler: urn:",
);
/// Maximum length of the part of an address before a name in it, in bytes.
const ADDRESS_BYTES: usize = 256;
/// Folders with which names in a secret store begin: `prod/db-Ab1Cd2`.
static STORE_FOLDERS: WordSet = WordSet::new(
    "prod production staging stage dev development test qa secret secrets kv app apps shared",
);
/// Upper limit for the randomness of a name in a store, in bits.
const STORE_NAME: f32 = 12.0;
/// Maximum distance between a value and the words before it that mark it as an example: in bytes,
/// and in lines.
const EXAMPLE_BYTES: usize = 240;
const EXAMPLE_LINES: usize = 4;
/// Words in a heading or comment that mark an example.
static EXAMPLE_WORDS: WordSet = WordSet::new(
    "example examples sample samples placeholder placeholders dummy fake fictitious made-up \
     illustration illustrative",
);

/// Reports whether a value refers to a secret, or is obviously something else: a path, a call, a
/// member, an address.
pub(super) fn is_reference(value: &str, stats: &CharStats) -> bool {
    STARTS.iter().any(|start| value.starts_with(start))
        || value.contains("://")
        || value.contains(['(', '*', '?']) && value.len() < 24 && stats.digits == 0
        || stats.digits + stats.other == value.len()
        || is_path(value)
        || is_member(value)
        || is_call(value)
        || value
            .split_once('@')
            .is_some_and(|(_, host)| host.contains('.'))
}

fn is_path(value: &str) -> bool {
    let parts = value.split('/');
    let in_store = |(folder, name): (&str, &str)| {
        STORE_FOLDERS.contains(&folder) && surprise(name) < STORE_NAME
    };
    value.starts_with('/') && value.matches('/').count() > 1 && parts.clone().count() <= 12
        || parts.clone().count() > 2
            && parts.filter(|part| surprise(part) > 4.0).count() * 3 < value.split('/').count()
        || value.split_once('/').is_some_and(in_store)
}

/// Reports whether a value is a member of a member, as in code and configurations:
/// `random_password.db1.result`.
fn is_member(value: &str) -> bool {
    value.split('.').count() > 2 && value.split('.').all(is_name)
}

/// Reports whether a value begins with a call or an element, as in code: `make_key(32)`,
/// `Salt::new(key)`, `rows[0]`. One capitalized word with a bracket may be a password.
fn is_call(value: &str) -> bool {
    let value = value.trim_start_matches('[');
    let Some(end) = value.find(['(', '[']) else {
        return false;
    };
    let path = value.get(..end).unwrap_or_default();
    let is_of_code = path.contains(['_', '.']) || path.starts_with(char::is_lowercase);
    path.contains("::") || is_of_code && path.split('.').all(is_name)
}

/// Reports whether a part of a value is a name, as in code.
fn is_name(part: &str) -> bool {
    part.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && part
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'[' | b']'))
        && surprise(part) < 6.0
}

/// Reports whether a name is part of the address of a secret, so that the text after it refers to a
/// secret.
pub(super) fn in_address(text: &str, name: &Range<usize>) -> bool {
    let bytes = text.as_bytes();
    if !matches!(bytes.get(name.end), Some(b':' | b'/')) {
        return false;
    }
    let before = bytes
        .get(name.start.saturating_sub(ADDRESS_BYTES)..name.start)
        .unwrap_or_default();
    let belongs = |byte: &&u8| {
        byte.is_ascii_alphanumeric()
            || matches!(byte, b':' | b'/' | b'-' | b'_' | b'.' | b'+' | b'*')
    };
    let length = before.iter().rev().take_while(belongs).count();
    let address = text.get(name.start - length..name.end).unwrap_or_default();
    let address = address.trim_start_matches([':', '/', '-', '.', '+', '*']);
    ADDRESSES.iter().any(|start| address.starts_with(start))
}

/// Reports whether a password is an example in a document: the heading or comment above it says so,
/// and the password consists of words. Random values are never examples.
pub(super) fn is_example(text: &str, name: &Range<usize>, value: &str) -> bool {
    let password = text.get(name.clone()).and_then(classify_name) == Some(NamedValue::Password);
    let mut parts = value.split(|c: char| !c.is_ascii_alphanumeric());
    if !password
        || is_uuid(value)
        || !value.contains(|c: char| c.is_ascii_alphabetic())
        || parts.any(|part| surprise(part) >= 4.0)
    {
        return false;
    }
    let start = (name.start.saturating_sub(EXAMPLE_BYTES)..=name.start)
        .find(|at| text.is_char_boundary(*at))
        .unwrap_or(name.start);
    let before = text.get(start..name.start).unwrap_or_default();
    // The line of the name itself does not count: its host may be called `example`.
    let lines_above = before.rsplit('\n').skip(1).take(EXAMPLE_LINES);
    lines_above.map(str::trim).any(|line| {
        let comment = line.starts_with(['#', '/', '-', ';', '*', '>', '<', '"', '=']);
        (comment || line.ends_with(':')) && mentions_example(line)
    })
}

/// Reports whether a line contains one of the words, except in the names of hosts and files.
fn mentions_example(line: &str) -> bool {
    let words = line
        .split_whitespace()
        .map(|word| word.trim_matches(|c: char| !c.is_alphanumeric() && c != '.'));
    words
        .map(|word| word.trim_end_matches('.').to_ascii_lowercase())
        .any(|word| EXAMPLE_WORDS.contains(&word.as_str()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refers(value: &str) -> bool {
        is_reference(value, &CharStats::new(value))
    }

    #[test]
    fn references_are_told_from_values() {
        for value in [
            "arn:aws:secretsmanager:eu-west-1:123456789012:secret:prod/db-Ab1Cd2",
            "op://team/db1/password",
            "projects/p1/secrets/db1/versions/latest",
            "ssm:/prod/db1/password",
            "keyvault:db-password-2",
            "random_password.db1.result",
            "data.vault_generic_secret.db1.data",
            "prod/db-Ab1Cd2",
            "/run/secrets/db-password-1",
            "@Microsoft.KeyVault(SecretUri=https://v1.vault.azure.net/secrets/db)",
            "get_random_string(30)",
            "hkdf::Salt::new(hkdf::HKDF_SHA256",
            "this.auth.slice(p+1)",
            "arguments[4]",
            "[batch[-1]",
        ] {
            assert!(refers(value), "{value}");
        }
        for value in [
            "blue-Kettle7!",
            "TfU9e8bi1y1FRVSrVdj5",
            "prod/TfU9e8bi1y1FRVSrVdj5Bz",
            "blue.Kettle7",
            "q8Zt4.vNp2r.Kx7wD",
            "Kettle(2024)",
            "q8Zt4vNp2rKx7w(Df9y",
        ] {
            assert!(!refers(value), "{value}");
        }
    }

    #[test]
    fn parts_of_addresses_are_no_names() {
        let within = |text: &str| {
            let at = text.find("secret").unwrap();
            in_address(text, &(at..at + "secret".len()))
        };
        for text in [
            "X=arn:aws:sm:eu:1:secret:a",
            "{{resolve:secret:a}}",
            "'projects/p/secret:a'",
            "op://v/secret:a",
        ] {
            assert!(within(text), "{text}");
        }
        for text in [
            "secret:a",
            "https://x.example/secret=a",
            "arn:aws:x secret:a",
            "arn:aws:x,\"secret\":\"a\"",
        ] {
            assert!(!within(text), "{text}");
        }
    }

    #[test]
    fn examples_say_that_they_are() {
        let example = |text: &str| {
            let at = text.find("PASSWORD").unwrap();
            let value = text.rsplit('=').next().unwrap();
            is_example(text, &(at..at + "PASSWORD".len()), value)
        };
        for text in [
            "# Good password examples\nPASSWORD=Harbour-Light-2024!",
            "## Example\n\n```\nPASSWORD=blue-Kettle7",
            "# a placeholder, change it\nPASSWORD=blue-Kettle7",
            "For example:\n  PASSWORD=blue-Kettle7",
            "<!-- sample values -->\nUSER=me\nPASSWORD=blue-Kettle7",
        ] {
            assert!(example(text), "{text}");
        }
        for text in [
            "PASSWORD=blue-Kettle7",
            "# production\nPASSWORD=blue-Kettle7",
            "# Example\nPASSWORD=q8Zt4vNp2rKx",
            "# api.example\nPASSWORD=blue-Kettle7",
            "# example.com\nPASSWORD=blue-Kettle7",
            "an example\nPASSWORD=blue-Kettle7",
            "# example PASSWORD=blue-Kettle7",
            "# Example\nTOKEN=a\nPASSWORD=550e8400-e29b-41d4-a716-446655440000",
        ] {
            assert!(!example(text), "{text}");
        }
        let text = "# Example\nAPI_KEY=blue-Kettle7";
        assert!(
            !is_example(text, &(10..17), "blue-Kettle7"),
            "only passwords"
        );
    }
}
