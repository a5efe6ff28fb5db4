//! The claims of a verified token.

use std::fmt;
use std::sync::Arc;

use crate::message::{Json, Value, ValueKind};
use crate::oauth::Scopes;

/// Maximum number of values of one claim, and of scopes.
const MOST_VALUES: usize = 500;

/// The claims of a token whose signature, issuer, audience and times are valid.
#[derive(Clone)]
pub struct Claims {
    pub(super) json: Arc<Json>,
    pub(super) expires_unix: u64,
}

impl Claims {
    /// Returns the subject of the token (`sub`).
    pub fn subject(&self) -> Option<String> {
        self.text("sub")
    }

    /// Returns the client that the token was issued to: `client_id` (RFC 9068), otherwise `azp`.
    pub fn client(&self) -> Option<String> {
        self.text("client_id").or_else(|| self.text("azp"))
    }

    /// Returns the scopes of the token: `scope`, words separated by spaces (RFC 9068), otherwise
    /// `scp`, in the same form or as a list.
    pub fn scopes(&self) -> Scopes {
        let claim = self
            .json
            .root()
            .get("scope")
            .or_else(|| self.json.root().get("scp"));
        let words = claim.map(strings).unwrap_or_default();
        Scopes(
            words
                .iter()
                .flat_map(|words| words.split_ascii_whitespace())
                .take(MOST_VALUES)
                .map(str::to_owned)
                .collect(),
        )
    }

    /// Returns the id of the token (`jti`).
    pub fn id(&self) -> Option<String> {
        self.text("jti")
    }

    /// Returns when the token expires, in seconds since 1970 (`exp`).
    pub fn expires_unix(&self) -> u64 {
        self.expires_unix
    }

    /// Returns a claim that is a single string. A name that begins with `/` is a JSON pointer (RFC
    /// 6901), for a nested claim.
    pub fn text(&self, name: &str) -> Option<String> {
        self.find(name)?.str().map(std::borrow::Cow::into_owned)
    }

    /// Returns the strings of a claim that is a string or a list; other elements of a list are left
    /// out.
    pub fn texts(&self, name: &str) -> Vec<String> {
        self.find(name).map(strings).unwrap_or_default()
    }

    fn find(&self, name: &str) -> Option<Value<'_>> {
        match name.strip_prefix('/') {
            Some(pointer) => pointer
                .split('/')
                .try_fold(self.json.root(), |value, step| {
                    value.get(&step.replace("~1", "/").replace("~0", "~"))
                }),
            None => self.json.root().get(name),
        }
    }
}

impl fmt::Debug for Claims {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Claims")
            .field("expires_unix", &self.expires_unix)
            .finish_non_exhaustive()
    }
}

/// Returns the strings of a value that is a string or a list.
pub(super) fn strings(value: Value<'_>) -> Vec<String> {
    match value.kind() {
        ValueKind::Array => value
            .elements()
            .filter_map(|element| element.str())
            .take(MOST_VALUES)
            .map(Into::into)
            .collect(),
        _ => value.str().map(Into::into).into_iter().collect(),
    }
}
