//! URLs, split for comparison but never normalized.

use http::Uri;

use super::WELL_KNOWN;

/// A URL as received, in its parts.
#[derive(Debug)]
pub(super) struct UrlParts<'u> {
    /// Scheme and authority, as received.
    pub(super) origin: &'u str,
    /// The path, as received; may be empty.
    pub(super) path: &'u str,
    /// The query, as received.
    pub(super) query: Option<&'u str>,
}

impl<'u> UrlParts<'u> {
    /// Returns `None` for anything but `http` and `https` URLs, for URLs with credentials or a
    /// fragment, and for paths that parsers interpret differently.
    pub(super) fn read(url: &'u str) -> Option<Self> {
        let parsed: Uri = url.parse().ok()?;
        let authority = parsed.authority()?;
        let scheme = parsed.scheme_str()?.to_ascii_lowercase();
        match (authority.port_u16(), scheme.as_str()) {
            (Some(_), "http" | "https") => {}
            (None, "http" | "https") if authority.as_str().len() == authority.host().len() => {}
            // Another scheme, or a colon that is followed by nothing or by something that is not a
            // port.
            _ => return None,
        }
        if url.contains(['#', '\\', '@']) {
            return None;
        }
        let (_, after_scheme) = url.split_once("://")?;
        let end = url.len() - after_scheme.len()
            + after_scheme.find(['/', '?']).unwrap_or(after_scheme.len());
        let (origin, rest) = url.split_at_checked(end)?;
        let (path, query) = rest
            .split_once('?')
            .map_or((rest, None), |(path, query)| (path, Some(query)));
        let has_dot_segment = path.split('/').any(|part| {
            matches!(
                part.to_ascii_lowercase().replace("%2e", ".").as_str(),
                "." | ".."
            )
        });
        if has_dot_segment {
            return None;
        }
        Some(Self {
            origin,
            path,
            query,
        })
    }

    /// Reports whether this is the resource that the metadata at `url` must be for, compared
    /// literally (RFC 9728, section 3.3): the URL of the server, apart from its query; or a URL
    /// above it, if the metadata is at the well-known URL of exactly that one, as with servers that
    /// describe their whole origin there.
    pub(super) fn is_resource_of(&self, mcp: &Self, url: &str) -> bool {
        let prefix = self.path_without_slash();
        let mcp_path = mcp.path_without_slash();
        let is_prefix = mcp_path
            .strip_prefix(prefix)
            .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'));
        let same_query = self.query.is_none() || self.query == mcp.query;
        self.origin == mcp.origin
            && same_query
            && (self.path == mcp.path || is_prefix && self.metadata_url() == url)
    }

    /// Returns the URL of this resource's metadata (RFC 9728, section 3.1).
    pub(super) fn metadata_url(&self) -> String {
        format!("{}{WELL_KNOWN}{}", self.origin, self.path_without_slash())
    }

    /// Returns the path without a trailing slash; empty for the root.
    pub(super) fn path_without_slash(&self) -> &'u str {
        self.path.strip_suffix('/').unwrap_or(self.path)
    }

    pub(super) fn without_query(&self) -> String {
        format!("{}{}", self.origin, self.path)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_resource_is_compared_letter_by_letter() {
        const ROOT: &str = "https://a.example/.well-known/oauth-protected-resource";
        let path = format!("{ROOT}/mcp");
        let is = |resource: &str, mcp: &str, url: &str| {
            UrlParts::read(resource)
                .is_some_and(|place| place.is_resource_of(&UrlParts::read(mcp).unwrap(), url))
        };
        for (resource, mcp, url) in [
            (
                "https://a.example/mcp",
                "https://a.example/mcp",
                path.as_str(),
            ),
            (
                "https://a.example/mcp",
                "https://a.example/mcp",
                "https://a.example/meta",
            ),
            ("https://a.example/mcp", "https://a.example/mcp?x=y", &path),
            (
                "https://a.example/mcp?x=y",
                "https://a.example/mcp?x=y",
                &path,
            ),
            ("https://a.example/mcp/", "https://a.example/mcp", &path),
            ("https://a.example", "https://a.example/mcp", ROOT),
            ("https://a.example/", "https://a.example/mcp", ROOT),
            ("https://a.example/mcp", "https://a.example/mcp/x", &path),
            ("https://[::1]:80/mcp", "https://[::1]:80/mcp", ""),
        ] {
            assert!(is(resource, mcp, url), "{resource} {mcp} {url}");
        }
        for (resource, mcp, url) in [
            // Above the server, and the metadata is not at its own well-known URL.
            ("https://a.example", "https://a.example/mcp", path.as_str()),
            (
                "https://a.example",
                "https://a.example/mcp",
                "https://a.example/tenant/meta",
            ),
            (
                "https://a.example/mcp/",
                "https://a.example/mcp",
                "https://a.example/meta",
            ),
            // The same origin or path, spelled differently, and other paths and schemes.
            ("https://A.example/mcp", "https://a.example/mcp", &path),
            ("https://a.example:443/mcp", "https://a.example/mcp", &path),
            ("HTTPS://a.example/mcp", "https://a.example/mcp", &path),
            ("https://a.example/mc%70", "https://a.example/mcp", &path),
            ("https://a.example/MCP", "https://a.example/mcp", &path),
            ("https://a.example/mc", "https://a.example/mcp", &path),
            ("https://a.example/mcp/x", "https://a.example/mcp", &path),
            ("http://a.example/mcp", "https://a.example/mcp", &path),
            ("https://a.example:444/mcp", "https://a.example/mcp", &path),
            ("https://b.example/mcp", "https://a.example/mcp", &path),
            (
                "https://a.example.b.example/mcp",
                "https://a.example/mcp",
                &path,
            ),
            (
                "https://a.example@b.example/mcp",
                "https://b.example/mcp",
                &path,
            ),
            ("https://a.example/mcp?x=y", "https://a.example/mcp", &path),
            ("https://a.example/mcp#x", "https://a.example/mcp", &path),
            (
                "https://a.example/%2E%2e/mcp",
                "https://a.example/mcp",
                &path,
            ),
            ("https://a.example\\mcp", "https://a.example/mcp", &path),
            ("https://a.example:/mcp", "https://a.example/mcp", &path),
            (
                "https://a.example:99999/mcp",
                "https://a.example/mcp",
                &path,
            ),
            ("urn:x", "https://a.example/mcp", &path),
            ("ftp://a.example/mcp", "https://a.example/mcp", &path),
            ("", "https://a.example/mcp", &path),
        ] {
            assert!(!is(resource, mcp, url), "{resource} {mcp} {url}");
        }
        assert!(UrlParts::read("https://a.example/mcp/../x").is_none());
    }

    #[test]
    fn parts_are_as_they_came() {
        let place = UrlParts::read("https://A.example:443/Mcp/?x=y?z").unwrap();
        assert_eq!(
            (place.origin, place.path, place.query),
            ("https://A.example:443", "/Mcp/", Some("x=y?z"))
        );
        assert_eq!(
            (place.path_without_slash(), place.without_query().as_str()),
            ("/Mcp", "https://A.example:443/Mcp/")
        );
        let bare = UrlParts::read("https://a.example?x").unwrap();
        assert_eq!(
            (bare.origin, bare.path, bare.query),
            ("https://a.example", "", Some("x"))
        );
    }
}
