//! What a verified token says.

use std::fmt;
use std::sync::Arc;

use crate::message::{Json, Value, ValueKind};
use crate::oauth::Scopes;

/// Maximum number of values of one claim, and of scopes.
const MOST_VALUES: usize = 500;

/// What a token says whose signature, issuer, audience and times are in order.
#[derive(Clone)]
pub struct Claims {
    pub(super) json: Arc<Json>,
    pub(super) expires_unix: u64,
}

impl Claims {
    /// Whom it is about (`sub`).
    pub fn subject(&self) -> Option<String> {
        self.text("sub")
    }

    /// The client that it was given to: `client_id` (RFC 9068), else `azp`.
    pub fn client(&self) -> Option<String> {
        self.text("client_id").or_else(|| self.text("azp"))
    }

    /// What it may do: `scope`, words with spaces between (RFC 9068), else `scp`, the same or a list.
    pub fn scopes(&self) -> Scopes {
        let said = self
            .json
            .root()
            .get("scope")
            .or_else(|| self.json.root().get("scp"));
        let words = said.map(strings).unwrap_or_default();
        Scopes(
            words
                .iter()
                .flat_map(|words| words.split_ascii_whitespace())
                .take(MOST_VALUES)
                .map(str::to_owned)
                .collect(),
        )
    }

    /// Its own name (`jti`).
    pub fn id(&self) -> Option<String> {
        self.text("jti")
    }

    /// When it is over, in seconds since 1970 (`exp`).
    pub fn expires_unix(&self) -> u64 {
        self.expires_unix
    }

    /// A claim that is one string. A name that begins with `/` is a JSON pointer (RFC 6901), for a claim within a claim.
    pub fn text(&self, name: &str) -> Option<String> {
        self.find(name)?.str().map(std::borrow::Cow::into_owned)
    }

    /// The strings of a claim: one, or a list; what else there is in a list is left out.
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

/// The strings of a value that is one, or a list.
pub(super) fn strings(value: Value<'_>) -> Vec<String> {
    match value.kind() {
        ValueKind::Array => value
            .elements()
            .filter_map(|each| each.str())
            .take(MOST_VALUES)
            .map(Into::into)
            .collect(),
        _ => value.str().map(Into::into).into_iter().collect(),
    }
}
