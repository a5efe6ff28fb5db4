//! Data that flows through a script: text as far as it is known, and its origin.

use std::ops::{BitOr, BitOrAssign};

/// The origin of a text, as far as it matters to rules. Spreads through pipes, variables and files.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Taint(u16);

impl Taint {
    /// Nothing suspicious is known.
    pub(super) const NONE: Self = Self(0);
    /// Fetched from another host.
    pub(super) const DOWNLOAD: Self = Self(1);
    /// Decoded from base64, hex and the like.
    pub(super) const DECODED: Self = Self(2);
    /// From a file that contains keys, passwords or tokens.
    pub(super) const CREDENTIAL: Self = Self(4);
    /// The process's environment.
    pub(super) const ENVIRONMENT: Self = Self(8);
    /// A whole home folder, shell histories, mail.
    pub(super) const PERSONAL: Self = Self(16);
    /// A live connection to another host.
    pub(super) const SOCKET: Self = Self(32);
    /// Too long to be read.
    pub(super) const UNREAD: Self = Self(64);
    /// An environment variable whose name shows that it contains a secret.
    pub(super) const SECRET_VARIABLE: Self = Self(128);

    /// Names of the taints in rule files.
    pub(super) const WORDS: [(&'static str, Self); 7] = [
        ("download", Self::DOWNLOAD),
        ("decoded", Self::DECODED),
        ("credential", Self::CREDENTIAL),
        ("environment", Self::ENVIRONMENT),
        ("personal", Self::PERSONAL),
        ("socket", Self::SOCKET),
        ("secret-variable", Self::SECRET_VARIABLE),
    ];

    pub(super) fn intersects(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }

    pub(super) fn without(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }
}

impl BitOr for Taint {
    type Output = Self;
    fn bitor(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

impl BitOrAssign for Taint {
    fn bitor_assign(&mut self, other: Self) {
        self.0 |= other.0;
    }
}

impl FromIterator<Self> for Taint {
    fn from_iter<T: IntoIterator<Item = Self>>(taints: T) -> Self {
        taints.into_iter().fold(Self::NONE, Self::bitor)
    }
}

/// Stand-in for the output of a command, if that is not known.
pub(in crate::detect) const UNKNOWN: &str = "$(…)";

/// A variable, the content of a file, or the data in a pipe.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Value {
    /// The items of a list; one for plain text, none for an empty value.
    pub(super) items: Vec<String>,
    /// Whether the items are the whole value. If not, they are at best a part of it.
    pub(super) known: bool,
    pub(super) taint: Taint,
}

impl Value {
    pub(super) fn list(items: Vec<String>) -> Self {
        Self {
            items,
            known: true,
            taint: Taint::NONE,
        }
    }

    pub(super) fn empty() -> Self {
        Self::list(Vec::new())
    }

    pub(super) fn text(text: impl Into<String>) -> Self {
        Self::list(vec![text.into()])
    }

    pub(super) fn unknown(taint: Taint) -> Self {
        Self {
            taint,
            ..Self::default()
        }
    }

    pub(super) fn with(mut self, taint: Taint) -> Self {
        self.taint |= taint;
        self
    }

    /// Returns the text, if it is known and not empty.
    pub(super) fn as_text(&self) -> Option<&str> {
        match self.items.as_slice() {
            [text] if self.known => Some(text),
            _ => None,
        }
    }

    /// Appends the output of the next command.
    pub(super) fn append(&mut self, next: Self) {
        self.taint |= next.taint;
        self.known &= next.known;
        if !self.known {
            self.items.clear();
            return;
        }
        match (self.items.first_mut(), next.items.into_iter().next()) {
            (Some(text), Some(more)) => text.push_str(&more),
            (None, Some(more)) => self.items.push(more),
            _ => {}
        }
    }
}

/// A word of a command after all expansions.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Field {
    pub(super) text: String,
    /// Whether a part of it was quoted.
    pub(super) quoted: bool,
    /// Whether it contains an unquoted `*`, `?` or `[`.
    pub(super) glob: bool,
    /// Whether it starts with a variable that nothing sets.
    pub(super) unset: bool,
    pub(super) taint: Taint,
}

impl Field {
    /// Reports whether the word is only a variable of unknown value.
    pub(super) fn is_variable(&self) -> bool {
        self.text.len() > 1
            && self.text.starts_with('$')
            && self.text != "$0"
            && !self.text.contains(['/', '('])
    }

    /// Reports whether nothing of the word is known: it is a variable, or the output of a command.
    pub(super) fn is_unknown(&self) -> bool {
        self.is_variable() || self.text == UNKNOWN
    }

    pub(super) fn plain(text: impl Into<String>) -> Self {
        Self {
            text: text.into(),
            ..Self::default()
        }
    }

    pub(super) fn with(mut self, taint: Taint) -> Self {
        self.taint |= taint;
        self
    }

    /// Returns the known value of the word.
    pub(super) fn value(&self) -> Value {
        Value::text(self.text.clone()).with(self.taint)
    }
}

/// Returns the taint of all words together.
pub(super) fn taint_of_fields(fields: &[Field]) -> Taint {
    fields.iter().map(|field| field.taint).collect()
}

/// Returns the words, separated by single spaces.
pub(super) fn join_words<'f>(fields: impl IntoIterator<Item = &'f Field>) -> String {
    let words: Vec<&str> = fields
        .into_iter()
        .map(|field| field.text.as_str())
        .collect();
    words.join(" ")
}
