//! Data that a command sends to another host.

use super::env_secrets;
use super::facts::{Facts, taint_of};
use super::traits::Traits;
use super::value::Taint;

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
            self.sends |= self
                .arguments()
                .iter()
                .fold(Taint::NONE, |taint, f| taint | f.taint);
        }
        if matches!(
            program,
            "wget" | "dig" | "nslookup" | "host" | "ping" | "drill" | "http" | "xh"
        ) {
            self.sends |= self
                .arguments()
                .iter()
                .fold(Taint::NONE, |taint, f| taint | f.taint);
        }
        if !self.traits.has(Traits::SENDS_FILES) {
            return;
        }
        let remote = matches!(
            program,
            "curl" | "wget" | "croc" | "wormhole" | "transfer" | "lftp" | "tftp" | "ftp"
        ) || self.operands().any(|f| {
            f.text.contains("://")
                || f.text.split_once(':').is_some_and(|(host, path)| {
                    host.len() > 1 && !host.contains('/') && !path.starts_with('\\')
                })
        });
        if remote {
            let last = self
                .operands()
                .last()
                .map(|f| f.text.clone())
                .unwrap_or_default();
            let fetches = matches!(
                program,
                "scp" | "rsync" | "sftp" | "rclone" | "aws" | "gsutil"
            ) && !(last.contains("://") || last.contains(':'));
            if !fetches {
                let mut taint = Taint::NONE;
                for named_path in self.reads.iter().chain(&self.paths) {
                    let posted = !matches!(program, "curl" | "wget")
                        || self.arguments().iter().any(|f| sends_file(&f.text))
                            && !self.writes.contains(named_path);
                    if posted {
                        taint |= taint_of(named_path);
                    }
                }
                self.sends |= taint;
            }
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
