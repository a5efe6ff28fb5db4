//! Addresses, hosts and URLs as pieces.

use std::collections::HashSet;
use std::net::Ipv4Addr;
use std::sync::LazyLock;

use super::piece::{FoundPiece, Look, Piece, emit, offset};

/// Maximum length of a URL that is examined, in bytes.
const URL_BYTES: usize = 512;
/// Maximum length of a host name, in bytes (RFC 1035, 2.3.4).
const HOST_BYTES: usize = 253;
/// Maximum number of prefixes of a URL, and of suffixes of a host, that are compared.
const CUTS: usize = 16;
/// Minimum length of the part of a URL after the host, if the host is a common one.
const PATH_BYTES: usize = 4;

/// Hosts and paths that occur in too many texts to be distinctive.
static COMMON: LazyLock<HashSet<&'static str>> = LazyLock::new(|| {
    let lines = include_str!("common.txt").lines().map(str::trim);
    lines
        .filter(|line| !line.is_empty() && !line.starts_with('#'))
        .collect()
});

/// Top-level labels by which a name without a scheme or `@` is taken for a host. Those that are
/// also file extensions are left out.
const LAST: [&str; 60] = [
    "com", "net", "org", "edu", "gov", "mil", "int", "info", "biz", "io", "co", "ai", "dev", "app",
    "xyz", "top", "site", "online", "club", "shop", "store", "tech", "cloud", "link", "click",
    "live", "page", "space", "website", "example", "test", "invalid", "onion", "internal", "de",
    "uk", "fr", "nl", "ch", "at", "it", "es", "eu", "ru", "cn", "jp", "kr", "br", "au", "ca", "us",
    "se", "no", "fi", "dk", "cz", "tk", "me", "cc", "to",
];

/// Reports whether a host or a path is a common one.
pub(super) fn is_common(text: &str) -> bool {
    COMMON.contains(text)
}

/// Passes the URLs with a scheme to `take`. Returns whether there is anything that looks like one.
pub(super) fn urls(
    run: &str,
    start: usize,
    look: Look,
    take: &mut dyn FnMut(FoundPiece<'_>),
) -> bool {
    let mut has_url = false;
    let mut rest = run;
    while let Some((before, after)) = rest.split_once("://") {
        rest = after;
        if !before.ends_with(|c: char| c.is_ascii_alphanumeric()) {
            continue;
        }
        has_url = true;
        // A URL within another URL is examined by itself.
        let part = after.split("://").next().unwrap_or(after);
        let at = start + offset(run, after);
        url(crate::text::cut(part, URL_BYTES), at, look, take);
    }
    has_url
}

/// Passes a URL, given without its scheme, to `take`.
fn url(text: &str, at: usize, look: Look, take: &mut dyn FnMut(FoundPiece<'_>)) {
    let end = text.find(['/', '?', '#', '\\']).unwrap_or(text.len());
    let authority = text.get(..end).unwrap_or_default();
    let from = authority.rfind('@').map_or(0, |at| at + 1);
    let Some(host_and_port) = authority.get(from..) else {
        return;
    };
    let name = host_and_port
        .split(':')
        .next()
        .unwrap_or(host_and_port)
        .trim_end_matches('.');
    if !is_host(name) {
        return;
    }
    host(name, at + from, look, take);
    let short = name.strip_prefix("www.").unwrap_or(name);
    let behind = text
        .get(end..)
        .unwrap_or_default()
        .trim_end_matches(['.', ',', '!', '*', '_', '/', ':', '&', '\\', '?', '=', '#']);
    let span = at..at + end + behind.len();
    if behind.len() < if is_common(short) { PATH_BYTES } else { 2 } {
        return;
    }
    let whole = format!("{short}{behind}");
    if look == Look::Compare {
        // A URL that came in may go out with something appended.
        let cuts = whole
            .match_indices(['/', '?', '&', '=', '#'])
            .map(|(cut, _)| cut)
            .filter(|cut| *cut > short.len());
        for cut in cuts.take(CUTS) {
            let part = whole.get(..cut).unwrap_or_default();
            emit(Piece::Url, part, span.clone(), take);
        }
    } else if let Some(cut) = whole.find('?').filter(|_| !is_common(short)) {
        let part = whole.get(..cut).unwrap_or_default().trim_end_matches('/');
        if part.len() > short.len() {
            emit(Piece::Url, part, span.clone(), take);
        }
    }
    emit(Piece::Url, &whole, span, take);
}

/// Passes e-mail addresses to `take`.
pub(super) fn addresses(run: &str, start: usize, look: Look, take: &mut dyn FnMut(FoundPiece<'_>)) {
    let bytes = run.as_bytes();
    for sign in memchr::memchr_iter(b'@', bytes) {
        let local = |byte: &&u8| {
            byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'+' | b'-' | b'~')
        };
        let domain = |byte: &&u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-');
        let before = bytes
            .get(..sign)
            .unwrap_or_default()
            .iter()
            .rev()
            .take_while(local)
            .count();
        let after = bytes
            .get(sign + 1..)
            .unwrap_or_default()
            .iter()
            .take_while(domain)
            .count();
        let from = sign - before;
        let to = sign + 1 + after;
        let Some(candidate) = run.get(from..to) else {
            continue;
        };
        let address = candidate.trim_matches(['.', '-', '+', '_', '~']);
        let Some((local, name)) = address.split_once('@') else {
            continue;
        };
        if local.is_empty() || !is_host(name) || local == "git" && is_common(name) {
            continue;
        }
        let from = from + candidate.find(address).unwrap_or(0);
        emit(
            Piece::Address,
            address,
            start + from..start + from + address.len(),
            take,
        );
        host(name, start + from + local.len() + 1, look, take);
    }
}

/// Passes hosts without a scheme, with the path that follows them, to `take`.
pub(super) fn hosts(run: &str, start: usize, look: Look, take: &mut dyn FnMut(FoundPiece<'_>)) {
    for part in
        run.split(|c: char| !(c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '/' | '_')))
    {
        let at = start + offset(run, part);
        let name = part
            .split('/')
            .next()
            .unwrap_or(part)
            .trim_matches(['.', '-']);
        let last = name.rsplit('.').next().unwrap_or_default();
        let numbers = last.bytes().all(|byte| byte.is_ascii_digit());
        if part.starts_with('/') || !is_host(name) || !numbers && !LAST.contains(&last) {
            continue;
        }
        url(part.trim_start_matches(['.', '-']), at, look, take);
    }
}

/// Replaces the signs in addresses that are spelled for people, `drop (at) host [dot] com`; `None`
/// if there are none. The text is in lower case.
pub(super) fn restore_signs(text: &str) -> Option<String> {
    let spellings = [
        "at)", "at]", "at}", "dot)", "dot]", "dot}", " dot ", "at )", "at ]",
    ];
    if !spellings
        .iter()
        .any(|sign| memchr::memmem::find(text.as_bytes(), sign.as_bytes()).is_some())
    {
        return None;
    }
    let has_bare_dot = memchr::memmem::find(text.as_bytes(), b" dot ").is_some();
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        let inner = rest
            .get(1..)
            .filter(|_| matches!(c, '(' | '[' | '{'))
            .map(str::trim_start);
        let bracketed = inner.and_then(|inner| {
            let (sign, after) = inner
                .strip_prefix("at")
                .map(|after| ('@', after))
                .or(inner.strip_prefix("dot").map(|after| ('.', after)))?;
            Some((sign, after.trim_start().strip_prefix([')', ']', '}'])?))
        });
        let bare_word = || {
            let (sign, after) = rest
                .strip_prefix(" at ")
                .map(|after| ('@', after))
                .or(rest.strip_prefix(" dot ").map(|after| ('.', after)))?;
            has_bare_dot.then_some((sign, after))
        };
        match bracketed.or_else(bare_word) {
            Some((sign, after)) => {
                out.truncate(out.trim_end().len());
                out.push(sign);
                rest = after.trim_start();
            }
            None => {
                out.push(c);
                rest = rest.get(c.len_utf8()..).unwrap_or_default();
            }
        }
    }
    Some(out)
}

/// Passes a host to `take`, by its name; for comparison, also by its suffixes.
fn host(name: &str, at: usize, look: Look, take: &mut dyn FnMut(FoundPiece<'_>)) {
    let name = name.strip_prefix("www.").unwrap_or(name);
    let span = at..at + name.len();
    let suffix_starts = name
        .match_indices('.')
        .map(|(dot, _)| dot + 1)
        .take(if look == Look::Compare { CUTS } else { 0 });
    for from in std::iter::once(0).chain(suffix_starts) {
        let suffix = name.get(from..).unwrap_or_default();
        if suffix.contains('.') && !is_common(suffix) {
            emit(Piece::Host, suffix, span.clone(), take);
        }
    }
}

/// Reports whether a name may be that of a host: labels joined by dots, the last one of letters; or
/// an IP address.
fn is_host(name: &str) -> bool {
    let label = |label: &str| {
        !label.is_empty()
            && label.len() <= 63
            && label
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_'))
    };
    let last = name.rsplit('.').next().unwrap_or_default();
    if name.len() > HOST_BYTES || !name.contains('.') {
        return false;
    }
    if last.bytes().all(|byte| byte.is_ascii_digit()) {
        return name
            .parse::<Ipv4Addr>()
            .is_ok_and(|address| !address.is_loopback() && !address.is_unspecified());
    }
    last.len() >= 2
        && !last.as_bytes().first().is_some_and(u8::is_ascii_digit)
        && name.split('.').all(label)
}
