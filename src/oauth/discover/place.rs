//! URLs, taken apart for comparing but never put together otherwise than they came.

use http::Uri;

/// A URL as it came, in its parts.
#[derive(Debug)]
pub(super) struct Place<'u> {
    /// Scheme and authority, as they came.
    pub(super) start: &'u str,
    /// The path, as it came; may be empty.
    pub(super) path: &'u str,
    /// The query, as it came.
    pub(super) query: Option<&'u str>,
    /// Scheme, host and port, so that the same origin is the same.
    origin: (String, String, u16),
}

impl<'u> Place<'u> {
    /// `None` for what is no `http` or `https` URL, has a login or a fragment, or a path that readers may disagree on.
    pub(super) fn read(url: &'u str) -> Option<Self> {
        let parsed: Uri = url.parse().ok()?;
        let authority = parsed.authority()?;
        let scheme = parsed.scheme_str()?.to_ascii_lowercase();
        let port = match (authority.port_u16(), scheme.as_str()) {
            (Some(port), "http" | "https") => port,
            // A colon with nothing behind it, or with what is no port.
            _ if authority.as_str().len() != authority.host().len() => return None,
            (None, "https") => 443,
            (None, "http") => 80,
            _ => return None,
        };
        if url.contains(['#', '\\', '@']) {
            return None;
        }
        let (_, behind) = url.split_once("://")?;
        let end = url.len() - behind.len() + behind.find(['/', '?']).unwrap_or(behind.len());
        let (start, rest) = url.split_at_checked(end)?;
        let (path, query) = rest.split_once('?').map_or((rest, None), |(path, query)| (path, Some(query)));
        let dotted = path.split('/').any(|part| matches!(part.to_ascii_lowercase().replace("%2e", ".").as_str(), "." | ".."));
        if dotted {
            return None;
        }
        let host = authority.host().to_ascii_lowercase();
        Some(Self { start, path, query, origin: (scheme, host, port) })
    }

    /// Whether a token for this one is meant for that one, too: the same origin, and a path above it or the same.
    pub(super) fn holds(&self, other: &Self) -> bool {
        let (above, below) = (self.path_without_slash(), other.path_without_slash());
        let within = below.strip_prefix(above).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'));
        self.origin == other.origin && within && (self.query.is_none() || self.query == other.query)
    }

    /// The path without the slash at its end; empty for the root.
    pub(super) fn path_without_slash(&self) -> &'u str {
        self.path.strip_suffix('/').unwrap_or(self.path)
    }

    pub(super) fn without_query(&self) -> String {
        format!("{}{}", self.start, self.path)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_resource_holds_what_is_under_it() {
        let holds = |resource, mcp| Place::read(resource).is_some_and(|place| place.holds(&Place::read(mcp).unwrap()));
        for (resource, mcp) in [
            ("https://a.example/mcp", "https://a.example/mcp"),
            ("https://a.example/mcp", "https://a.example/mcp/x"),
            ("https://a.example/mcp", "https://a.example/mcp?x=y"),
            ("https://a.example/mcp/", "https://a.example/mcp"),
            ("https://a.example/mcp", "https://a.example/mcp/"),
            ("https://a.example", "https://a.example/mcp"),
            ("https://a.example/", "https://a.example"),
            ("https://A.Example:443/mcp", "https://a.example/mcp"),
            ("HTTPS://a.example/mcp", "https://a.example/mcp"),
            ("https://a.example/mcp?x=y", "https://a.example/mcp?x=y"),
            ("https://[::1]:80/mcp", "https://[::1]:80/mcp"),
        ] {
            assert!(holds(resource, mcp), "{resource} {mcp}");
        }
        for (resource, mcp) in [
            ("https://a.example/mc", "https://a.example/mcp"),
            ("https://a.example/mcp/x", "https://a.example/mcp"),
            ("https://a.example/MCP", "https://a.example/mcp"),
            ("http://a.example/mcp", "https://a.example/mcp"),
            ("https://a.example:444/mcp", "https://a.example/mcp"),
            ("https://b.example/mcp", "https://a.example/mcp"),
            ("https://a.example.b.example/mcp", "https://a.example/mcp"),
            ("https://a.example@b.example/mcp", "https://b.example/mcp"),
            ("https://a.example/mcp?x=y", "https://a.example/mcp"),
            ("https://a.example/mcp#x", "https://a.example/mcp"),
            ("https://a.example/mcp/..", "https://a.example/mcp/../x"),
            ("https://a.example/%2E%2e/mcp", "https://a.example/mcp"),
            ("https://a.example\\mcp", "https://a.example/mcp"),
            ("https://a.example:/mcp", "https://a.example/mcp"),
            ("https://a.example:99999/mcp", "https://a.example/mcp"),
            ("urn:x", "https://a.example/mcp"),
            ("ftp://a.example/mcp", "https://a.example/mcp"),
            ("", "https://a.example/mcp"),
        ] {
            assert!(
                Place::read(mcp).is_none_or(|mcp| !Place::read(resource).is_some_and(|place| place.holds(&mcp))),
                "{resource} {mcp}"
            );
        }
    }

    #[test]
    fn parts_are_as_they_came() {
        let place = Place::read("https://A.example:443/Mcp/?x=y?z").unwrap();
        assert_eq!((place.start, place.path, place.query), ("https://A.example:443", "/Mcp/", Some("x=y?z")));
        assert_eq!((place.path_without_slash(), place.without_query().as_str()), ("/Mcp", "https://A.example:443/Mcp/"));
        let bare = Place::read("https://a.example?x").unwrap();
        assert_eq!((bare.start, bare.path, bare.query), ("https://a.example", "", Some("x")));
    }
}
