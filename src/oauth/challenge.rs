//! The `WWW-Authenticate` challenge with which a server requires a login (RFC 9110, section 11.6.1;
//! RFC 6750, section 3; RFC 9728, section 5.1).

use http::{HeaderMap, header};

use super::{Scopes, bounds};

/// The content of the `Bearer` challenge; empty if there is none.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Challenge {
    /// The URL of the resource's metadata, as received. Whether it may be fetched is decided
    /// elsewhere.
    pub resource_metadata: Option<String>,
    /// The scopes that a token must have.
    pub scope: Option<Scopes>,
    /// Why the token that was sent is not accepted, as a code (RFC 6750, section 3.1).
    pub error: Option<String>,
}

/// Parses all challenges of all header lines. Of several for `Bearer`, returns the first that names
/// metadata, otherwise the first.
pub fn parse(headers: &HeaderMap) -> Challenge {
    let lines = headers
        .get_all(header::WWW_AUTHENTICATE)
        .iter()
        .map(http::HeaderValue::as_bytes);
    let mut best = None;
    for parsed in lines.flat_map(|line| {
        Reader {
            rest: line,
            challenges: Vec::new(),
        }
        .parse_challenges()
    }) {
        if !parsed.is_bearer {
            continue;
        }
        let challenge = parsed.into_challenge();
        if challenge.resource_metadata.is_some() {
            return challenge;
        }
        best.get_or_insert(challenge);
    }
    best.unwrap_or_default()
}

/// One challenge while it is parsed.
#[derive(Default)]
struct ParsedChallenge {
    is_bearer: bool,
    resource_metadata: Parameter,
    scope: Parameter,
    error: Parameter,
}

/// A parameter of a challenge. One that occurs twice is ignored (RFC 9110, section 11.2: it must
/// occur only once).
#[derive(Default)]
enum Parameter {
    #[default]
    Absent,
    Once(String),
    Repeated,
}

impl Parameter {
    fn add_value(&mut self, value: String) {
        *self = if matches!(self, Self::Absent) {
            Self::Once(value)
        } else {
            Self::Repeated
        };
    }

    fn into_single_value(self) -> Option<String> {
        if let Self::Once(value) = self {
            Some(value)
        } else {
            None
        }
    }
}

impl ParsedChallenge {
    fn set_parameter(&mut self, name: &[u8], value: String) {
        for (expected, parameter) in [
            ("resource_metadata", &mut self.resource_metadata),
            ("scope", &mut self.scope),
            ("error", &mut self.error),
        ] {
            if name.eq_ignore_ascii_case(expected.as_bytes()) {
                return parameter.add_value(value);
            }
        }
    }

    fn into_challenge(self) -> Challenge {
        Challenge {
            resource_metadata: self
                .resource_metadata
                .into_single_value()
                .filter(|url| bounds::is_url(url)),
            scope: self
                .scope
                .into_single_value()
                .map(|scope| bounds::valid_scopes(scope.split(' ')))
                .filter(|scopes| !scopes.0.is_empty()),
            error: self
                .error
                .into_single_value()
                .and_then(bounds::known_error_code),
        }
    }
}

/// Parses one line from left to right, reading each byte a bounded number of times.
struct Reader<'h> {
    rest: &'h [u8],
    challenges: Vec<ParsedChallenge>,
}

impl<'h> Reader<'h> {
    fn parse_challenges(mut self) -> Vec<ParsedChallenge> {
        loop {
            self.skip(|b| is_space(b) || b == b',');
            if self.rest.is_empty() {
                return self.challenges;
            }
            let word = self.take(is_token);
            if word.is_empty() {
                // Neither a challenge nor a parameter begins like this: continue after the next
                // comma.
                self.skip(|b| b != b',');
                continue;
            }
            let spaces = self.take(is_space).len();
            if self.rest.first() == Some(&b'=') {
                self.read_parameter(word);
                continue;
            }
            self.challenges.push(ParsedChallenge {
                is_bearer: word.eq_ignore_ascii_case(b"bearer"),
                ..ParsedChallenge::default()
            });
            if spaces > 0 {
                self.skip_token68();
            }
        }
    }

    /// Parses the rest of a parameter after its name.
    fn read_parameter(&mut self, name: &[u8]) {
        self.rest = self.rest.get(1..).unwrap_or_default();
        self.skip(is_space);
        let value = match self.rest.first() {
            Some(b'"') => self.read_quoted(),
            _ => Some(self.take(is_token).to_vec()),
        };
        let value = value.and_then(|value| String::from_utf8(value).ok());
        if let (Some(value), Some(challenge)) = (value, self.challenges.last_mut()) {
            challenge.set_parameter(name, value);
        }
    }

    /// Returns a quoted string without its quotes and escapes. If it has no end, returns `None` and
    /// skips the rest of the line.
    fn read_quoted(&mut self) -> Option<Vec<u8>> {
        let mut value = Vec::new();
        let mut bytes = self.rest.iter().enumerate().skip(1);
        while let Some((at, byte)) = bytes.next() {
            match byte {
                b'"' => {
                    self.rest = self.rest.get(at + 1..).unwrap_or_default();
                    return Some(value);
                }
                b'\\' => value.push(*bytes.next()?.1),
                byte => value.push(*byte),
            }
        }
        self.rest = &[];
        None
    }

    /// Skips a token68, which a scheme may have in place of parameters, if there is one here.
    fn skip_token68(&mut self) {
        let start = self.rest;
        self.skip(|b| b.is_ascii_alphanumeric() || b"-._~+/".contains(&b));
        self.skip(|b| b == b'=');
        let end = self.rest;
        self.skip(is_space);
        let at_end = matches!(self.rest.first(), None | Some(b','));
        self.rest = if at_end { end } else { start };
    }

    fn take(&mut self, predicate: impl Fn(u8) -> bool) -> &'h [u8] {
        let end = self
            .rest
            .iter()
            .position(|b| !predicate(*b))
            .unwrap_or(self.rest.len());
        let (prefix, rest) = self.rest.split_at(end);
        self.rest = rest;
        prefix
    }

    fn skip(&mut self, predicate: impl Fn(u8) -> bool) {
        self.take(predicate);
    }
}

fn is_space(b: u8) -> bool {
    matches!(b, b' ' | b'\t')
}

/// RFC 9110, section 5.6.2.
fn is_token(b: u8) -> bool {
    b.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&b)
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    fn read(lines: &[&str]) -> Challenge {
        let mut headers = HeaderMap::new();
        for line in lines {
            headers.append(
                header::WWW_AUTHENTICATE,
                HeaderValue::from_bytes(line.as_bytes()).unwrap(),
            );
        }
        parse(&headers)
    }

    fn metadata(line: &str) -> Option<String> {
        read(&[line]).resource_metadata
    }

    #[test]
    fn the_parameters_of_bearer() {
        let challenge = read(&[
            r#"Bearer error="invalid_token", resource_metadata="https://a.example/m", scope="files:read files:write""#,
        ]);
        assert_eq!(
            challenge.resource_metadata.as_deref(),
            Some("https://a.example/m")
        );
        assert_eq!(
            challenge.scope,
            Some(Scopes::parse("files:read files:write"))
        );
        assert_eq!(challenge.error.as_deref(), Some("invalid_token"));
    }

    #[test]
    fn every_way_to_write_them() {
        for line in [
            r#"Bearer resource_metadata="https://a.example/m""#,
            r#"bEARER Resource_Metadata = "https://a.example/m""#,
            r#"Bearer	resource_metadata	=	"https://a.example/m"	"#,
            r#", ,Bearer , ,resource_metadata="https://a.example/m",,"#,
            r#"Bearer realm="a, Bearer resource_metadata=\"https://evil.example\"", resource_metadata="https://a.example/m""#,
            r#"Bearer realm="\\", resource_metadata="https://a.example/m""#,
            r#"Bearer realm=a, resource_metadata="https:\//a.example/\m""#,
            r#"Basic realm="x", Bearer resource_metadata="https://a.example/m", Digest nonce="y""#,
            r#"Negotiate, Bearer resource_metadata="https://a.example/m""#,
            r#"Negotiate YWJj, Bearer resource_metadata="https://a.example/m""#,
            r#"Negotiate YWJj==  ,Bearer resource_metadata="https://a.example/m""#,
            r#"Bearer, Bearer scope=x, Bearer resource_metadata="https://a.example/m""#,
            r#"Bearer realm="x" resource_metadata="https://a.example/m""#,
            r#"Bearer realm="ü", resource_metadata="https://a.example/m""#,
            r#"Bearer ???, resource_metadata="https://a.example/m""#,
        ] {
            assert_eq!(
                metadata(line).as_deref(),
                Some("https://a.example/m"),
                "{line}"
            );
        }
    }

    #[test]
    fn what_is_another_schemes_or_in_doubt_is_not_taken() {
        for line in [
            "",
            "Bearer",
            "Bearer abc123==",
            r#"resource_metadata="https://evil.example""#,
            r#"Basic resource_metadata="https://evil.example""#,
            r#"Bearer, Basic resource_metadata="https://evil.example""#,
            r#"BearerX resource_metadata="https://evil.example""#,
            r#"Bearer realm="resource_metadata=https://evil.example""#,
            r#"Bearer xresource_metadata="https://evil.example""#,
            r#"Bearer resource_metadata="https://a.example", resource_metadata="https://b.example""#,
            r#"Bearer resource_metadata="https://a.example"#,
            r#"Bearer resource_metadata="https://a.example\"#,
            r#"Bearer resource_metadata="https://a.example/ b""#,
            r#"Bearer resource_metadata="""#,
            r#"Bearer resource_metadata="#,
            r#"Bearer resource_metadata"#,
        ] {
            assert_eq!(metadata(line), None, "{line}");
        }
        assert_eq!(
            metadata(&format!(
                "Bearer resource_metadata=\"https://a.example/{}\"",
                "x".repeat(3000)
            )),
            None
        );
    }

    #[test]
    fn several_lines() {
        let lines = [
            "Basic realm=\"x\"",
            "Bearer error=\"invalid_request\"",
            "Bearer error=\"invalid_token\", resource_metadata=\"https://a.example/m\"",
        ];
        let both = read(&lines);
        assert_eq!(
            (both.resource_metadata.as_deref(), both.error.as_deref()),
            (Some("https://a.example/m"), Some("invalid_token"))
        );
        let one = read(&lines[..2]);
        assert_eq!(
            (one.resource_metadata, one.error.as_deref()),
            (None, Some("invalid_request"))
        );
        // A parameter does not belong to the challenge of the line before.
        assert_eq!(
            read(&["Bearer", "resource_metadata=\"https://evil.example\""]),
            Challenge::default()
        );
    }

    #[test]
    fn scopes_and_codes_are_of_their_letters() {
        assert_eq!(
            read(&[r#"Bearer scope="a\"b c d\\e  f""#]).scope,
            Some(Scopes::parse("c f"))
        );
        assert_eq!(
            read(&["Bearer scope=one"]).scope,
            Some(Scopes::parse("one"))
        );
        assert_eq!(
            read(&["Bearer scope=\"\", error=\"<b>\""]),
            Challenge::default()
        );
        let many = (0..100_000)
            .map(|n| n.to_string())
            .collect::<Vec<_>>()
            .join(" ");
        assert!(
            read(&[&format!("Bearer scope=\"{many}\"")])
                .scope
                .unwrap()
                .0
                .len()
                <= 1000
        );
    }

    #[test]
    fn hostile_lines_cost_what_their_length_costs() {
        for piece in [
            "Bearer a ",
            "=",
            "\"",
            "a=\"\\",
            "a=",
            ",",
            "a ",
            "Bearer ,",
            "a=b,",
            "\\\"",
            "A====== x ",
        ] {
            let line = piece.repeat((1 << 20) / piece.len());
            let start = std::time::Instant::now();
            read(&[&line]);
            assert!(start.elapsed().as_secs() < 3, "{piece}");
        }
    }
}
