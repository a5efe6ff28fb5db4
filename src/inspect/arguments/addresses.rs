//! The form of URLs and of hosts with a port.

/// Returns whether a text can only be a URL.
pub(super) fn is_url(text: &str) -> bool {
    let text = text.trim();
    // A git remote that runs its address as a command (git-remote-ext).
    if text.starts_with("ext::") {
        return true;
    }
    // A URL that is entirely percent-encoded: the receiver decodes it first.
    if let Some((scheme, rest)) = text.split_once('%')
        && ["http", "https", "ftp", "ws", "wss"]
            .iter()
            .any(|known| scheme.eq_ignore_ascii_case(known))
        && rest
            .get(..2)
            .is_some_and(|colon| colon.eq_ignore_ascii_case("3a"))
    {
        return !rest.contains(char::is_whitespace) && text.len() < 4096;
    }
    if has_split_scheme(text) {
        return true;
    }
    let Some((scheme, rest)) = text.split_once(':') else {
        return false;
    };
    let scheme_fits = scheme.len() > 1
        && scheme.len() < 20
        && scheme
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || matches!(b, b'+' | b'-' | b'.'))
        && scheme
            .as_bytes()
            .first()
            .is_some_and(u8::is_ascii_alphabetic);
    // Web clients accept any number of slashes, and schemes that wrap another URL.
    const ANY_SLASHES: [&str; 4] = ["http", "https", "ws", "wss"];
    const WRAPPERS: [&str; 5] = ["view-source", "jar", "feed", "url", "blob"];
    let lower = scheme.to_ascii_lowercase();
    // `git+http:` is `http:` for another program.
    let lower = lower.rsplit('+').next().unwrap_or(&lower);
    let host = || {
        rest.trim_start_matches(['/', '\\'])
            .contains(['.', ':', '/'])
            || rest.starts_with("localhost")
    };
    let start_fits = rest.starts_with("//")
        || ANY_SLASHES.contains(&lower) && host()
        || WRAPPERS.contains(&lower) && rest.contains(':');
    scheme_fits && start_fits && !rest.contains(char::is_whitespace) && text.len() < 4096
}

/// Returns whether tabs or line ends are within the scheme of a URL: `ht\ttp://x`. A web client
/// removes them (URL Standard, section 4.4).
fn has_split_scheme(text: &str) -> bool {
    const BYTES: usize = 16;
    let head = text
        .split("//")
        .next()
        .filter(|head| head.len() < BYTES.min(text.len()));
    head.is_some_and(|head| {
        head.contains(['\t', '\n', '\r'])
            && matches!(
                head.replace(['\t', '\n', '\r'], "")
                    .to_ascii_lowercase()
                    .as_str(),
                "http:" | "https:" | "ws:" | "wss:" | "ftp:"
            )
    })
}

/// Returns whether a text is a URL as defined by [`is_url`], or a host with a port, for names that
/// expect one.
pub(super) fn is_address(text: &str) -> bool {
    let text = text.trim();
    let host_port = || {
        let host = text.split('/').next().unwrap_or(text);
        let (name, port) = host.rsplit_once(':').unwrap_or((host, ""));
        // `../x` does not start with a host.
        let name_fits = !name.is_empty()
            && !name.starts_with('.')
            && name.bytes().all(|b| {
                b.is_ascii_alphanumeric()
                    || matches!(b, b'.' | b'-' | b'_' | b'[' | b']' | b':' | b'%')
            });
        name_fits
            && port.bytes().all(|b| b.is_ascii_digit())
            && (name.contains(['.', '[']) || name == "localhost" || port.len() > 1)
    };
    let relative = text.starts_with("//")
        && text
            .get(2..)
            .is_some_and(|host| host.contains('.') && !host.starts_with('/'));
    is_url(text)
        || (text.len() < 256 && !text.contains(char::is_whitespace) && (host_port() || relative))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_and_addresses_are_told_by_their_form() {
        for url in [
            "http://169.254.169.254/",
            "gopher://x",
            "ht\ttp://x/",
            "ext::sh -c id",
        ] {
            assert!(is_url(url), "{url}");
        }
        for text in ["note: //x", "see http://x", "a\tb: //x"] {
            assert!(!is_url(text), "{text}");
        }
        assert!(is_address("localhost:80") && is_address("10.0.0.1"));
        assert!(!is_address("main") && !is_address("a b"));
    }
}
