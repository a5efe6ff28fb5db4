//! Data that a command sends to another host.

use super::env_secrets;
use super::facts::{Facts, NamedPath, taint_of};
use super::traits::Traits;
use super::value::{Taint, taint_of_fields};

impl Facts {
    /// Records the taint of the data that the command sends.
    pub(super) fn note_sending(&mut self) {
        self.note_sent();
        self.sends = self.sends.without(Taint::SOCKET | Taint::SECRET_VARIABLE);
        if env_secrets::exposes_secret(self) {
            self.sends |= Taint::SECRET_VARIABLE;
        }
    }

    fn note_sent(&mut self) {
        let program = self.program.as_str();
        if self.traits.has(Traits::SENDS_INPUT) {
            // `openssl` works on files, except for its client.
            let posts = program == "openssl"
                && self
                    .arguments()
                    .first()
                    .is_some_and(|f| f.text == "s_client")
                || !matches!(program, "curl" | "openssl")
                || self.arguments().iter().any(|f| {
                    f.text == "-"
                        || f.text.ends_with("@-")
                        || f.text.ends_with("<-")
                        || f.text == "."
                });
            let listens = self.arguments().iter().any(|f| f.text.starts_with("-l"));
            if posts && !listens {
                self.sends |= self.stdin;
            }
            // Values that `$(…)` inserted into an address or a body.
            self.sends |= taint_of_fields(self.arguments());
        }
        if matches!(
            program,
            "wget" | "dig" | "nslookup" | "host" | "ping" | "drill" | "http" | "xh"
        ) {
            self.sends |= taint_of_fields(self.arguments());
        }
        self.sends |= self.sent_files().map(taint_of).collect();
    }

    /// Returns the files that the command sends to another host.
    fn sent_files(&self) -> impl Iterator<Item = &NamedPath> {
        let sends = self.sends_files();
        let keeps = matches!(self.program.as_str(), "curl" | "wget");
        self.reads
            .iter()
            .chain(&self.paths)
            .filter(move |file| sends && !(keeps && self.writes.contains(file)))
    }

    /// Returns the names of files that the command sends to another host, as written: `data` of `-F
    /// f=@data`. Not all of them are files.
    pub(super) fn sent_names(&self) -> impl Iterator<Item = &str> {
        let arguments = if self.sends_files() {
            self.arguments()
        } else {
            &[]
        };
        arguments
            .iter()
            .filter_map(|argument| argument.text.rsplit(['@', '<', '=']).next())
    }

    /// Reports whether the command sends files to another host.
    fn sends_files(&self) -> bool {
        let program = self.program.as_str();
        if !self.traits.has(Traits::SENDS_FILES) {
            return false;
        }
        if matches!(program, "curl" | "wget") {
            return self.arguments().iter().any(|f| sends_file(&f.text));
        }
        let is_remote = |text: &str| {
            text.contains("://")
                || text.split_once(':').is_some_and(|(host, path)| {
                    host.len() > 1 && !host.contains('/') && !path.starts_with('\\')
                })
        };
        match program {
            "croc" | "wormhole" | "transfer" | "lftp" | "tftp" | "ftp" => true,
            "scp" | "rsync" | "sftp" | "rclone" | "aws" | "gsutil" => {
                let target = self.operands().last();
                target.is_some_and(|f| f.text.contains(':'))
                    && self.operands().any(|f| is_remote(&f.text))
            }
            _ => self.operands().any(|f| is_remote(&f.text)),
        }
    }
}

/// Reports whether an argument of `curl` or `wget` makes it send a file.
fn sends_file(text: &str) -> bool {
    text.contains('@')
        || text.contains("=<")
        || text.starts_with("-T")
        || text.starts_with("--upload")
        || text.starts_with("--post-file")
        || text.starts_with("--body-file")
        || text.starts_with("--data")
}
