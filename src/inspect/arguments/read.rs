//! How a string is read, determined by everything that is known about it.

use crate::detect::{Language, ReadAs};

use super::names::Head;
use super::tool::Runs;
use super::{Frame, addresses, forms, look};

/// Maximum length of a path, in bytes; longer texts, and those of several lines, are not paths.
const PATH_BYTES: usize = 8192;

impl Head {
    /// Combines what the name itself says with what the tool's definition says about the argument.
    /// A definition makes an unclear name more specific, and never a clear one less so.
    pub(super) fn refined_by(self, declared: Self) -> Self {
        match self {
            Self::Shell | Self::Code | Self::Sql | Self::Arguments => self,
            Self::Path | Self::Url if declared == Self::Text => self,
            _ => declared,
        }
    }
}

impl Frame<'_> {
    /// Returns whether a list here is a command, or a list of commands.
    pub(super) fn is_command(&self) -> bool {
        let tool = &self.scope.tool;
        match self.head {
            Head::Shell => self.pinned || (tool.runs != Runs::Mentions && !self.scope.stored),
            Head::Arguments => matches!(tool.runs, Runs::All | Runs::Some) && !self.scope.executes,
            Head::Unknown | Head::Loose => {
                tool.runs == Runs::All && !self.scope.executes && !self.scope.stored
            }
            // `steps: [["git", "add", "."], ["git", "push"]]`
            Head::Text => {
                self.listed
                    && matches!(tool.runs, Runs::All | Runs::Some)
                    && !self.scope.executes
                    && !self.scope.stored
            }
            _ => false,
        }
    }

    /// Returns whether JSON in a string here is read as if it were a part of the arguments.
    pub(super) fn reads_json(&self) -> bool {
        if self.covered || self.scope.stored {
            return false;
        }
        match self.head {
            Head::Text => false,
            Head::Loose | Head::Query => {
                let tool = &self.scope.tool;
                matches!(tool.runs, Runs::All | Runs::Some)
                    || (self.is_order && (tool.runs == Runs::Unknown || tool.files))
            }
            _ => true,
        }
    }

    /// Returns how the receiver reads a string at this place.
    pub(super) fn read_as(&self, text: &str) -> ReadAs {
        if self.covered {
            return ReadAs::Text;
        }
        if self.pinned {
            return match self.head {
                Head::Shell | Head::Arguments => ReadAs::Shell,
                Head::Code => {
                    look::read_code(self.scope.language.as_deref(), &self.scope.tool, text)
                }
                Head::Sql => ReadAs::Sql,
                Head::Path => ReadAs::Path,
                Head::Url => ReadAs::Url,
                _ => ReadAs::Text,
            };
        }
        let runs = self.scope.tool.runs;
        if self.scope.stored {
            return ReadAs::Text;
        }
        // What a tool only mentions is not run, whatever the argument is called; it may still be
        // looked up at a path or a URL.
        if runs == Runs::Mentions {
            return match self.head {
                Head::Path => read_path(text),
                Head::Url if forms::is_file(text) => ReadAs::Path,
                Head::Url => ReadAs::Url,
                Head::PathOrUrl => self.read_by_look(text),
                Head::Text if self.names_file(text) => ReadAs::Path,
                _ => ReadAs::Text,
            };
        }
        match self.head {
            Head::Shell if self.scope.tool.database && look::is_sql(text) => ReadAs::Sql,
            Head::Shell => self.read_executed(text),
            Head::Arguments => match runs {
                Runs::All | Runs::Some if !self.scope.executes => self.read_executed(text),
                _ => self.read_by_look(text),
            },
            Head::Code if runs == Runs::Nothing => ReadAs::Text,
            Head::Code => look::read_code(self.scope.language.as_deref(), &self.scope.tool, text),
            Head::Sql => ReadAs::Sql,
            Head::Query => self.read_query(text),
            Head::Path if self.is_elsewhere(text) => ReadAs::Text,
            Head::Path => read_path(text),
            Head::Url if forms::is_file(text) => ReadAs::Path,
            // The machine that runs the command is inside as a rule.
            Head::Url | Head::PathOrUrl
                if (self.scope.tool.connects || runs == Runs::All && self.scope.executes)
                    && !text.contains(['/', '\\']) =>
            {
                ReadAs::Text
            }
            Head::Url => ReadAs::Url,
            Head::PathOrUrl
                if addresses::is_address(text)
                    && (addresses::is_url(text) || !self.scope.tool.files) =>
            {
                ReadAs::Url
            }
            Head::PathOrUrl if self.scope.tool.files && text.contains(['/', '\\', '.', '~']) => {
                read_path(text)
            }
            // `{ language, source }`
            Head::PathOrUrl if self.is_code(text) => {
                look::read_code(self.scope.language.as_deref(), &self.scope.tool, text)
            }
            Head::PathOrUrl => self.read_by_look(text),
            Head::Loose => self.read_loose(text),
            Head::Formula => self.read_formula(text),
            // If nothing else is run, this is, if it can be.
            Head::Text
                if runs == Runs::All
                    && !self.scope.executes
                    && text.contains(' ')
                    && look::is_command(text) =>
            {
                ReadAs::Shell
            }
            Head::Text if self.names_file(text) => ReadAs::Path,
            Head::Text => ReadAs::Text,
            Head::Unknown => self.read_unknown(text),
        }
    }

    /// Returns whether a name climbs out of the folder next to it (`{ base, name }`), or is that of
    /// a file elsewhere.
    fn names_file(&self, text: &str) -> bool {
        let tool = &self.scope.tool;
        !text.contains(char::is_whitespace)
            && (climbs(text) && (self.scope.has_folder || tool.globs)
                || tool.files && (text.contains("..") || text.contains('%'))
                || tool.globs && look::is_path(text))
    }

    /// Returns whether a text here can only be code in the language of the tool, or in that of an
    /// argument next to it.
    fn is_code(&self, text: &str) -> bool {
        let tool = &self.scope.tool;
        let language = self.scope.language.as_deref();
        matches!(tool.runs, Runs::All | Runs::Some | Runs::Unknown)
            && (tool.language.is_some() || language.is_some_and(look::is_language))
            && text.contains(['\n', '(', ';'])
            && !addresses::is_url(text)
    }

    /// Returns whether a path here is a route, a step in a document or a path in a container rather
    /// than a file of this machine.
    fn is_elsewhere(&self, text: &str) -> bool {
        const FOLDERS: [&str; 6] = ["/etc/", "/root/", "/proc/", "/home/", "/run/", "/var/run/"];
        let plain = text.starts_with('/') && !addresses::is_url(text) && !climbs(text);
        let of_system = FOLDERS.iter().any(|folder| text.starts_with(folder));
        plain && (self.scope.in_container || self.scope.is_routed && !of_system)
    }

    /// Returns how something that is run is read: as a command, or as code in the language of the
    /// tool, of a sibling argument, or of its look.
    fn read_executed(&self, text: &str) -> ReadAs {
        match look::read_code(self.scope.language.as_deref(), &self.scope.tool, text) {
            // `go_test { command: "./run -v" }`: such a tool takes commands as well.
            ReadAs::Code(Language::Compiled)
                if self.head == Head::Shell && self.scope.language.is_none() =>
            {
                ReadAs::Shell
            }
            ReadAs::Code(language)
                if language != Language::PowerShell && !look::is_command(text) =>
            {
                ReadAs::Code(language)
            }
            ReadAs::Sql if look::is_sql(text) => ReadAs::Sql,
            _ => ReadAs::Shell,
        }
    }

    fn read_query(&self, text: &str) -> ReadAs {
        let tool = &self.scope.tool;
        if tool.database || (tool.queries && look::is_sql(text)) {
            return ReadAs::Sql;
        }
        match tool.runs {
            Runs::All if !self.scope.executes && look::is_sql(text) => ReadAs::Sql,
            Runs::All if !self.scope.executes && !look::is_prose(text) => self.read_executed(text),
            _ => ReadAs::Text,
        }
    }

    fn read_loose(&self, text: &str) -> ReadAs {
        match self.scope.tool.runs {
            Runs::All | Runs::Some if self.scope.executes => ReadAs::Text,
            Runs::All => self.read_executed(text),
            Runs::Some if !look::is_prose(text) => self.read_executed(text),
            Runs::Unknown if self.is_order => self.read_unknown(text),
            _ => ReadAs::Text,
        }
    }

    fn read_formula(&self, text: &str) -> ReadAs {
        let tool = &self.scope.tool;
        match tool.runs {
            Runs::Nothing if tool.language.is_none() => ReadAs::Text,
            Runs::Unknown => match look::guess_language(text) {
                code @ ReadAs::Code(_) => tool.language.unwrap_or(code),
                _ => tool.language.unwrap_or(ReadAs::Text),
            },
            _ => look::read_code(self.scope.language.as_deref(), tool, text),
        }
    }

    fn read_unknown(&self, text: &str) -> ReadAs {
        match self.scope.tool.runs {
            Runs::All | Runs::Some if self.scope.executes && look::is_command(text) => {
                ReadAs::Shell
            }
            Runs::All | Runs::Some if self.scope.executes => self.read_by_look(text),
            Runs::All => self.read_executed(text),
            Runs::Some if !look::is_prose(text) => self.read_executed(text),
            Runs::Unknown if look::is_command(text) => ReadAs::Shell,
            _ => self.read_by_look(text),
        }
    }

    /// Reads a text as a path or a URL if it can only be one.
    fn read_by_look(&self, text: &str) -> ReadAs {
        if look::is_path(text) {
            ReadAs::Path
        } else if addresses::is_url(text) {
            ReadAs::Url
        } else {
            ReadAs::Text
        }
    }
}

/// Returns whether a path contains a step to a parent folder.
fn climbs(text: &str) -> bool {
    text.starts_with("../")
        || text.starts_with("..\\")
        || text.contains("/../")
        || text.contains("\\..\\")
}

/// Reads a text as a path, unless it can only be the content of a file.
fn read_path(text: &str) -> ReadAs {
    if text.len() > PATH_BYTES || text.trim().lines().count() > 2 {
        ReadAs::Text
    } else {
        ReadAs::Path
    }
}
