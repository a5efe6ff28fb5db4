//! The regexes of a rule, compiled when a text first calls for them.

use std::fmt;
use std::sync::{Arc, OnceLock};

use regex_automata::meta;

use super::regex;

/// The regexes of a rule, as one. Clones share the compiled form.
#[derive(Clone)]
pub(super) struct Lazy(Arc<Inner>);

struct Inner {
    sources: Vec<String>,
    compiled: OnceLock<Option<meta::Regex>>,
}

impl Lazy {
    pub(super) fn new(sources: Vec<String>) -> Self {
        Self(Arc::new(Inner { sources, compiled: OnceLock::new() }))
    }

    /// The compiled regex. `None` if it cannot be had.
    pub(super) fn get(&self) -> Option<&meta::Regex> {
        self.0.compiled.get_or_init(|| regex::compile_any(&self.0.sources).ok()).as_ref()
    }
}

impl fmt::Debug for Lazy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.0.sources)
    }
}
