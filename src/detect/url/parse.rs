//! Parses a URL in every way that a common client might: finds each host that one of them would
//! connect to.
//!
//! Clients disagree about backslashes, several `@`, `@` after `?` or `#`, missing slashes, tabs and
//! percent signs in hosts (WHATWG URL, RFC 3986, and the behavior of libraries). Every text that
//! one of them treats as the host is judged.

use super::fold;
use crate::text::quick::WordSet;

/// Maximum length of a text that is read; clients accept no longer URL.
const URL_BYTES: usize = 64 << 10;
/// Maximum number of hosts of one URL; more are a trick in themselves.
const TARGETS: usize = 16;
/// Schemes that may precede another one: `view-source:http://…`.
static WRAPPERS: WordSet =
    WordSet::new("view-source url jar feed blob filesystem netdoc cache wyciwyg uri");
/// Schemes that are followed by a host, however many slashes there are.
const SPECIAL: [&str; 5] = ["http", "https", "ws", "wss", "ftp"];
/// Schemes without a host.
static HOSTLESS: WordSet =
    WordSet::new("mailto tel sms data javascript vbscript about urn cid mid magnet news file geo");

/// The parts of a URL.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct ParsedUrl {
    /// In lower case, outermost first; empty if the text has none.
    pub(super) schemes: Vec<String>,
    pub(super) targets: Vec<UrlHost>,
    /// The part from the first `/`, `\`, `?` or `#` after the host.
    pub(super) path_and_query: String,
    /// Whether there were more hosts than are examined, or the text was longer than is read.
    pub(super) truncated: bool,
}

/// A host that some client would connect to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct UrlHost {
    /// In lower case, decoded, without brackets and trailing dots.
    pub(super) host: String,
    pub(super) port: Option<u16>,
    /// How it was found.
    pub(super) origin: HostOrigin,
    /// Whether it is disguised: percent signs, full-width or circled characters, characters that
    /// clients drop.
    pub(super) odd: bool,
}

/// How a host was found in a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum HostOrigin {
    /// By a client that is misled: after an `@` in the path, or before an `@`.
    Trick,
    /// At the start of a text without a scheme.
    Start,
    /// As the standards define it.
    Standard,
}

/// Parses a text as a URL. Returns `None` if it cannot be one.
pub(super) fn parse(text: &str) -> Option<ParsedUrl> {
    let text = text.trim_matches(|c: char| c.is_whitespace() || c.is_control());
    if text.is_empty() {
        return None;
    }
    if text.len() > URL_BYTES {
        return Some(ParsedUrl {
            truncated: true,
            ..ParsedUrl::default()
        });
    }
    let (folded, mut odd) = fold::fold(text);
    let mut parsed = ParsedUrl::default();
    let mut remaining: &str = &folded;
    while let Some((scheme, rest)) = scheme(remaining) {
        parsed.schemes.push(scheme.clone());
        // The part after `!/` is inside the archive.
        remaining = if scheme == "jar" {
            rest.split("!/").next().unwrap_or(rest)
        } else {
            rest
        };
        if !WRAPPERS.contains(&scheme.as_str()) || parsed.schemes.len() >= 4 {
            break;
        }
        remaining = remaining.trim_start_matches(['/', '\\']);
    }
    let last = parsed.schemes.last().map_or("", String::as_str);
    let slashes = remaining.len() - remaining.trim_start_matches(['/', '\\']).len();
    let origin = match last {
        "" if slashes >= 2 => HostOrigin::Standard,
        "" if slashes == 0 && !remaining.starts_with(['?', '#', '.']) => HostOrigin::Start,
        "" => return Some(parsed),
        scheme if HOSTLESS.contains(&scheme) => {
            parsed.path_and_query = remaining.to_owned();
            return Some(parsed);
        }
        scheme if is_special(scheme) => {
            odd |= slashes != 2 || remaining.starts_with('\\');
            HostOrigin::Standard
        }
        _ if slashes >= 2 => HostOrigin::Standard,
        _ => {
            parsed.path_and_query = remaining.to_owned();
            return Some(parsed);
        }
    };
    let authority = remaining.trim_start_matches(['/', '\\']);
    parsed.add_hosts(authority, origin, odd);
    let end = authority
        .find(['/', '\\', '?', '#'])
        .unwrap_or(authority.len());
    parsed.path_and_query = authority.get(end..).unwrap_or_default().to_owned();
    Some(parsed)
}

impl ParsedUrl {
    fn add_hosts(&mut self, text: &str, origin: HostOrigin, odd: bool) {
        let until = |stops: &[char]| {
            text.get(..text.find(stops).unwrap_or(text.len()))
                .unwrap_or_default()
        };
        let strict = until(&['/', '\\', '?', '#']);
        self.add(strict.rsplit('@').next().unwrap_or(strict), origin, odd);
        // In RFC 3986, a backslash does not end the host.
        let lenient = until(&['/', '?', '#']);
        if lenient.len() != strict.len() {
            self.add(lenient.rsplit('@').next().unwrap_or(lenient), origin, odd);
        }
        // Some clients take the part before the first `@`, or after one where no user info is
        // allowed.
        let before = strict.split('@').next().unwrap_or(strict);
        self.add(
            before.split_whitespace().next().unwrap_or(before),
            HostOrigin::Trick,
            odd,
        );
        for (at, _) in text.match_indices(['@', '\\']).take(4 * TARGETS) {
            let after = text.get(at + 1..).unwrap_or_default();
            self.add(
                after
                    .split(['/', '\\', '?', '#', '@', '&', ' ', ';', ','])
                    .next()
                    .unwrap_or(after),
                HostOrigin::Trick,
                odd,
            );
        }
    }

    /// Adds the target of `host` or `host:port`.
    fn add(&mut self, text: &str, origin: HostOrigin, odd: bool) {
        // A line end in a host starts a header of the request.
        let lower = text.to_ascii_lowercase();
        let end = ["%0d", "%0a"]
            .iter()
            .filter_map(|line_end| lower.find(line_end))
            .min()
            .unwrap_or(text.len());
        let decoded = fold::decode_percent(text.get(..end).unwrap_or(text));
        let odd = odd || decoded != text;
        let lower = decoded.to_lowercase();
        // The decoded text may contain an `@` or a slash of its own.
        let lower = lower
            .split(['/', '\\', '?', '#', '\r', '\n'])
            .next()
            .unwrap_or(&lower);
        let lower = lower.rsplit('@').next().unwrap_or(lower).trim();
        // `::1:80` without brackets: some clients read a port after the address.
        if let Some((before, after)) = lower.rsplit_once(':')
            && before.contains(':')
            && !lower.contains('[')
            && before.parse::<std::net::Ipv6Addr>().is_ok()
        {
            self.add_target(before, after.parse().ok(), origin, odd);
        }
        let (host, port) = split_port(lower);
        self.add_target(host, port, origin, odd);
    }

    fn add_target(&mut self, host: &str, port: Option<u16>, origin: HostOrigin, odd: bool) {
        let bare = host.trim_end_matches('.');
        if bare.is_empty()
            || self
                .targets
                .iter()
                .any(|other| other.host == bare && other.origin >= origin)
        {
            return;
        }
        if self.targets.len() >= TARGETS {
            self.truncated = true;
            return;
        }
        self.targets.push(UrlHost {
            host: bare.to_owned(),
            port,
            origin,
            odd,
        });
    }
}

/// Reports whether a host follows a scheme however many slashes there are: `git+http:` is `http:`
/// for another program.
fn is_special(scheme: &str) -> bool {
    let last = scheme.rsplit('+').next().unwrap_or(scheme);
    SPECIAL.contains(&last)
}

/// Splits `host:port`, `[v6]:port` or a bare IPv6 address into host and port.
fn split_port(text: &str) -> (&str, Option<u16>) {
    if let Some(inner) = text.strip_prefix('[') {
        return match inner.split_once(']') {
            Some((host, rest)) => (
                host,
                rest.strip_prefix(':').and_then(|port| port.parse().ok()),
            ),
            None => (inner, None),
        };
    }
    let address = text.split('%').next().unwrap_or(text);
    if address.parse::<std::net::Ipv6Addr>().is_ok() {
        return (text, None);
    }
    match text.split_once(':') {
        Some((host, rest)) => (
            host,
            rest.split(':').next().and_then(|port| port.parse().ok()),
        ),
        None => (text, None),
    }
}

/// Returns the scheme in lower case and the rest. `host:8080` has none.
fn scheme(text: &str) -> Option<(String, &str)> {
    let (scheme, rest) = text.split_once(':')?;
    let scheme = scheme.trim_end();
    let is_valid = scheme.len() <= 32
        && scheme.starts_with(|c: char| c.is_ascii_alphabetic())
        && scheme
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || matches!(b, b'+' | b'-' | b'.'));
    let port = rest.bytes().take_while(u8::is_ascii_digit).count();
    let is_port = rest
        .as_bytes()
        .get(port)
        .is_none_or(|b| matches!(b, b'/' | b'?' | b'#'));
    if !is_valid
        || (port > 0
            && port <= 5
            && is_port
            && !SPECIAL.contains(&scheme.to_ascii_lowercase().as_str()))
    {
        return None;
    }
    // One letter is a drive; a name with a dot is a host.
    if scheme.len() < 2 || (scheme.contains('.') && !rest.starts_with('/')) {
        return None;
    }
    Some((scheme.to_ascii_lowercase(), rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hosts(text: &str) -> Vec<String> {
        parse(text)
            .unwrap()
            .targets
            .into_iter()
            .map(|target| target.host)
            .collect()
    }

    #[test]
    fn what_standards_say_comes_first() {
        for (text, host, port) in [
            ("https://example.com/a?b#c", "example.com", None),
            ("HTTPS://Example.COM:8443", "example.com", Some(8443)),
            ("https://user:pass@github.com/a.git", "github.com", None),
            ("http://[2606:4700::1111]:80/", "2606:4700::1111", Some(80)),
            ("//cdn.example.com/x.js", "cdn.example.com", None),
            ("localhost:8080/admin", "localhost", Some(8080)),
            ("127.0.0.1:80", "127.0.0.1", Some(80)),
            ("example.com./x", "example.com", None),
            ("http:/127.0.0.1", "127.0.0.1", None),
            ("http:\\\\127.0.0.1\\x", "127.0.0.1", None),
            ("http:////127.0.0.1", "127.0.0.1", None),
            ("http:127.0.0.1", "127.0.0.1", None),
            ("ht\ttp://127.0.0.1", "127.0.0.1", None),
            ("http://１２７.０.０.１/", "127.0.0.1", None),
            ("http://127。0。0。1/", "127.0.0.1", None),
            ("http://%31%32%37.0.0.1/", "127.0.0.1", None),
            ("view-source:http://127.0.0.1/", "127.0.0.1", None),
            ("git+http:/127.0.0.1/x.git", "127.0.0.1", None),
            ("http://::1:80/", "::1", Some(80)),
            ("gopher://127.0.0.1:6379/_x", "127.0.0.1", Some(6379)),
        ] {
            let parsed = parse(text).unwrap();
            let first = parsed
                .targets
                .first()
                .unwrap_or_else(|| panic!("{text}: {parsed:?}"));
            assert_eq!(
                (first.host.as_str(), first.port),
                (host, port),
                "{text}: {parsed:?}"
            );
        }
    }

    #[test]
    fn every_host_that_some_client_takes_is_found() {
        for text in [
            "http://evil.example\\@127.0.0.1/",
            "http://evil.example#@127.0.0.1/",
            "http://evil.example?@127.0.0.1/",
            "http://127.0.0.1@evil.example/",
            "http://1.1.1.1 &@2.2.2.2# @127.0.0.1/",
            "http://evil.example:80\\@127.0.0.1:80/",
            "http://evil.example%2f@127.0.0.1/",
            "http://127.0.0.1\\@evil.example/",
            "http://evil.example/@127.0.0.1/",
            "http://foo@127.0.0.1:80@evil.example/",
        ] {
            assert!(
                hosts(text).iter().any(|host| host == "127.0.0.1"),
                "{text}: {:?}",
                hosts(text)
            );
        }
    }

    #[test]
    fn what_names_no_host_has_none() {
        for text in [
            "/api/v1/items",
            "#anchor",
            "?q=1",
            "mailto:a@b.example",
            "data:image/png;base64,AAAA",
            "about:blank",
            "../x",
        ] {
            assert!(hosts(text).is_empty(), "{text}: {:?}", hosts(text));
        }
        assert!(parse(" \t").is_none());
        assert!(
            parse(&format!("http://{}", "a".repeat(URL_BYTES)))
                .unwrap()
                .truncated
        );
        assert!(
            parse(&format!("http://{}x", "a@".repeat(500)))
                .unwrap()
                .targets
                .len()
                <= TARGETS
        );
    }
}
