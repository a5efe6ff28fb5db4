//! The gate's own config, to which HTTP servers are added.

use std::collections::BTreeSet;
use std::io;
use std::path::{Path, PathBuf};

use toml_edit::{Document, Item};

use super::files::{read_if_exists, remove_if_exists, replace_file, sweep};
use super::move_record::MovedServer;
use super::server::{Header, UrlEntry};
use super::toml::quoted;
use crate::config::{self, AuditTo, is_name, is_secret_name};

/// The default address of a gate.
pub(in crate::cli) const ADDRESS: &str = "127.0.0.1:8800";

/// The gate's config, before and after the change.
pub(super) struct GateConfig {
    pub(super) path: PathBuf,
    /// `None` if the file does not exist.
    pub(super) old: Option<String>,
    pub(super) new: String,
    /// Files with secrets, to be written next to it.
    pub(super) secrets: Vec<(PathBuf, String)>,
    /// Environment variables required by the servers that were added; without them the gate does
    /// not start.
    pub(super) variables: BTreeSet<String>,
    /// The initial text of a new file.
    pub(super) base: Option<String>,
}

impl GateConfig {
    /// Reads the file, if there is one.
    ///
    /// # Errors
    /// The file cannot be read, or is not valid TOML.
    pub(super) fn read(path: &Path) -> io::Result<Self> {
        let path = std::path::absolute(path)?;
        let old = read_if_exists(&path)?;
        let new = old.clone().unwrap_or_default();
        Document::parse(new.as_str()).map_err(|error| {
            io::Error::other(format!(
                "`{}` is not valid TOML: {}\n  hint: `lychgate check` reports the location",
                path.display(),
                error.message()
            ))
        })?;
        Ok(Self {
            path,
            old,
            new,
            secrets: vec![],
            variables: BTreeSet::new(),
            base: None,
        })
    }

    /// Starts a new file; an existing one keeps its contents.
    pub(super) fn begin(&mut self, base: &str) {
        if self.old.is_none() && self.new.is_empty() {
            base.clone_into(&mut self.new);
            self.base = Some(base.to_owned());
        }
    }

    /// Empties a file that contains only its initial text.
    pub(super) fn clear_if_unused(&mut self, base: &str) {
        if self.new.trim() == base.trim() {
            self.new.clear();
        }
    }

    /// Returns the file of the audit log, if the config names one.
    pub(super) fn audit_file(&self) -> Option<PathBuf> {
        self.old.as_ref()?;
        match config::load_audit(&self.path).ok()?.to {
            Some(AuditTo::File(file)) => Some(file),
            _ => None,
        }
    }

    /// Returns the prefix of the gate's URLs.
    pub(super) fn base_url(&self) -> String {
        let root = Document::parse(self.new.as_str()).ok();
        let listen = |key: &str| {
            root.as_ref()
                .and_then(|root| Some(root.get("listen")?.get(key)?.as_str()?.to_owned()))
        };
        let address = listen("address").unwrap_or_else(|| ADDRESS.to_owned());
        let url = listen("public_url").unwrap_or_else(|| format!("http://{address}"));
        format!("{}/mcp/", url.trim_end_matches('/'))
    }

    /// Adds a server, unless it already exists under some name. Returns its name and the text that
    /// was added. `previous` is the record of an earlier addition, if there is one.
    pub(super) fn add(
        &mut self,
        requested_name: &str,
        url: &UrlEntry,
        previous: Option<&MovedServer>,
    ) -> (String, String) {
        let kind = if url.sse { "sse" } else { "http" };
        self.variables
            .extend(url.headers.iter().filter_map(|(_, header)| match header {
                Header::Variable(name) | Header::BearerVariable(name) => Some(name.clone()),
                Header::Text(_) => None,
            }));
        let own_secrets = previous
            .map(|kept| kept.secrets.clone())
            .unwrap_or_default();
        if let Some((name, block)) =
            previous.and_then(|kept| Some((kept.upstream.as_ref()?, &kept.block)))
        {
            let (table, secrets) = self.build_table(name, kind, url, &own_secrets);
            if block.trim_start() == table && self.upstream_url(name, kind) == Some(url.url.clone())
            {
                self.secrets.extend(secrets);
                return (name.clone(), block.clone());
            }
        }
        if let Some(existing) = self.find_upstream(kind, url) {
            return (existing, String::new());
        }
        let name = self.free_name(requested_name);
        let (table, secrets) = self.build_table(&name, kind, url, &own_secrets);
        self.secrets.extend(secrets);
        let gap = if self.new.is_empty() {
            ""
        } else if self.new.ends_with('\n') {
            "\n"
        } else {
            "\n\n"
        };
        let block = format!("{gap}{table}");
        self.new.push_str(&block);
        (name, block)
    }

    /// Returns a server's table in the gate's config, and the files with its secrets. `own_files`
    /// are the files that it had before.
    fn build_table(
        &self,
        name: &str,
        kind: &str,
        url: &UrlEntry,
        own_files: &[PathBuf],
    ) -> (String, Vec<(PathBuf, String)>) {
        let mut members = vec![format!("url = {}", quoted(&url.url))];
        let mut headers = vec![];
        let mut secrets = vec![];
        for (header, value) in &url.headers {
            match value {
                Header::BearerVariable(variable) => {
                    members.push(format!("bearer = {{ env = {} }}", quoted(variable)))
                }
                Header::Variable(variable) => headers.push(format!(
                    "{} = {{ env = {} }}",
                    quoted(header),
                    quoted(variable)
                )),
                Header::Text(text) if is_secret_name(header) => {
                    let file = self.secret_file(name, header, &secrets, own_files);
                    headers.push(format!(
                        "{} = {{ file = {} }}",
                        quoted(header),
                        quoted(&file.display().to_string())
                    ));
                    secrets.push((file, format!("{text}\n")));
                }
                Header::Text(text) => {
                    headers.push(format!("{} = {}", quoted(header), quoted(text)))
                }
            }
        }
        if !headers.is_empty() {
            members.push(format!("headers = {{ {} }}", headers.join(", ")));
        }
        (
            format!("[upstream.{name}]\n{kind} = {{ {} }}\n", members.join(", ")),
            secrets,
        )
    }

    /// Reports whether there is anything to write.
    pub(super) fn is_changed(&self) -> bool {
        self.old.as_deref().unwrap_or_default() != self.new
    }

    /// Writes the new config, secrets first. A config that would be empty is removed.
    ///
    /// # Errors
    /// The file cannot be written, or has changed since it was read.
    pub(super) fn write(&self) -> io::Result<()> {
        if Self::read(&self.path)?.old != self.old {
            return Err(io::Error::other(format!(
                "`{}` was changed in the meantime\n  hint: try again",
                self.path.display()
            )));
        }
        self.secrets
            .iter()
            .try_for_each(|(path, secret)| replace_file(path, secret.as_bytes(), Some(0o600)))?;
        match self.is_changed() {
            true if self.new.trim().is_empty() => remove_if_exists(&self.path),
            true => replace_file(&self.path, self.new.as_bytes(), None),
            false => {
                sweep(&self.path);
                Ok(())
            }
        }
    }

    /// Removes the text that was added. Returns false if it is no longer there in the same form.
    pub(super) fn remove(&mut self, block: &str) -> bool {
        // The blank line before it may be gone if it is now the first table.
        let found = [block, block.trim_start()]
            .into_iter()
            .find(|block| !block.is_empty() && self.new.matches(block).count() == 1);
        if let Some(block) = found {
            self.new = self.new.replacen(block, "", 1);
        }
        found.is_some()
    }

    /// Reports whether there is an upstream with this name.
    pub(super) fn has(&self, name: &str) -> bool {
        let root = Document::parse(self.new.as_str()).ok();
        root.is_some_and(|root| root.get("upstream").and_then(|all| all.get(name)).is_some())
    }

    /// Returns the URL of an upstream.
    fn upstream_url(&self, name: &str, kind: &str) -> Option<String> {
        let root = Document::parse(self.new.as_str()).ok()?;
        Some(
            root.get("upstream")?
                .get(name)?
                .get(kind)?
                .get("url")?
                .as_str()?
                .to_owned(),
        )
    }

    /// Returns an upstream that has exactly this URL and no other settings: headers, tokens,
    /// certificates and logins of a transport authenticate as somebody, and must not be lent to
    /// another client.
    fn find_upstream(&self, kind: &str, url: &UrlEntry) -> Option<String> {
        let root = Document::parse(self.new.as_str()).ok()?;
        let upstreams = root.get("upstream")?.as_table_like()?;
        let has_same_url = |item: &Item| {
            let http = item.get(kind).and_then(Item::as_table_like);
            http.is_some_and(|http| {
                http.len() == 1 && http.get("url").and_then(Item::as_str) == Some(&url.url)
            })
        };
        let found = upstreams
            .iter()
            .find(|(_, item)| has_same_url(item))
            .map(|(name, _)| name.to_owned());
        found.filter(|_| url.headers.is_empty())
    }

    fn free_name(&self, requested_name: &str) -> String {
        let base_name = sanitize_name(requested_name, 48);
        let numbered = (2..=9999).map(|number| format!("{base_name}-{number}"));
        std::iter::once(base_name.clone())
            .chain(numbered)
            .find(|name| !self.has(name))
            .unwrap_or(base_name)
    }

    /// Returns the file for a header of a server: one that already belongs to the server, or one
    /// that does not exist yet.
    fn secret_file(
        &self,
        name: &str,
        header: &str,
        reserved: &[(PathBuf, String)],
        own_files: &[PathBuf],
    ) -> PathBuf {
        let header: String = header
            .to_ascii_lowercase()
            .chars()
            .filter(|c| c.is_ascii_alphanumeric() || *c == '-')
            .collect();
        let folder = self.path.parent().unwrap_or(Path::new(".")).join("secrets");
        let plain = folder.join(format!("{name}-{header}"));
        let numbered = (2..=9999).map(|number| folder.join(format!("{name}-{header}-{number}")));
        let is_taken = |path: &PathBuf| {
            self.secrets
                .iter()
                .chain(reserved)
                .any(|(taken, _)| taken == path)
        };
        let is_free = |path: &PathBuf| {
            !is_taken(path) && (own_files.contains(path) || path.symlink_metadata().is_err())
        };
        std::iter::once(plain.clone())
            .chain(numbered)
            .find(is_free)
            .unwrap_or(plain)
    }
}

/// Returns the audit log of a gate whose config names none.
pub(super) fn default_audit_file(state: &Path) -> PathBuf {
    state.join("audit.jsonl")
}

/// Returns the initial text of a new config that `verb` writes, with the files of the gate in the
/// folder `state`.
pub(in crate::cli) fn new_config(verb: &str, state: &Path) -> String {
    let quoted = |path: PathBuf| quoted(&path.display().to_string());
    format!(
        "# The gate's config, written by `lychgate {verb}`. To validate it: lychgate check --config FILE\n\n\
         # Console, metrics and approvals, for this machine only.\n[admin]\naddress = \"127.0.0.1:8801\"\n\n\
         [audit]\nfile = {}\n\n[pins]\nfile = {}\n",
        quoted(default_audit_file(state)),
        quoted(state.join("lychgate.lock")),
    )
}

/// Converts a name to a valid one for the gate's config, with a maximum number of characters.
pub(super) fn sanitize_name(name: &str, characters: usize) -> String {
    let result: String = name
        .to_ascii_lowercase()
        .chars()
        .map(|c| {
            if c.is_ascii_alphanumeric() || matches!(c, '_' | '-') {
                c
            } else {
                '-'
            }
        })
        .take(characters)
        .collect();
    if is_name(&result) {
        result
    } else {
        "server".to_owned()
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn url(url: &str, headers: Vec<(String, Header)>) -> UrlEntry {
        UrlEntry {
            url: url.to_owned(),
            url_span: 0..0,
            sse: false,
            headers,
            headers_spans: vec![],
        }
    }

    #[test]
    fn servers_are_added_once_and_taken_back_without_a_trace() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("lychgate.toml");
        for old in [
            "",
            "# mine\n[listen]\naddress = \"127.0.0.1:9000\"",
            "[upstream.docs]\nhttp = { url = \"https://other/mcp\" }\n",
        ] {
            fs::write(&path, old).unwrap();
            let mut gate = GateConfig::read(&path).unwrap();
            let secret = vec![(
                "Authorization".to_owned(),
                Header::Text("Bearer s3cr3t".into()),
            )];
            let (first, one) = gate.add("docs", &url("https://a/mcp", vec![]), None);
            let (again, nothing) = gate.add("Docs", &url("https://a/mcp", vec![]), None);
            let (second, two) = gate.add("My Server!", &url("https://b/mcp", secret), None);
            assert_eq!(
                first,
                if old.contains("docs") {
                    "docs-2"
                } else {
                    "docs"
                }
            );
            assert_eq!((again, nothing.as_str()), (first, ""));
            assert_eq!(second, "my-server-");
            assert!(
                !gate.new.contains("s3cr3t") && gate.secrets[0].1.contains("s3cr3t"),
                "{}",
                gate.new
            );
            assert!(Document::parse(gate.new.as_str()).is_ok(), "{}", gate.new);
            assert!(gate.remove(&two) && gate.remove(&one) && !gate.remove(&one));
            assert_eq!(gate.new, old);
        }
    }

    #[test]
    fn credentials_of_one_client_are_not_lent_to_another() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("lychgate.toml");
        for own in [
            "headers = { Authorization = \"Bearer x\" }",
            "bearer = { env = \"T\" }",
            "client_cert = [\"a\", \"b\"]",
            "oauth = { client_id = \"c\" }",
        ] {
            let old = format!("[upstream.a]\nhttp = {{ url = \"https://a/mcp\", {own} }}\n");
            fs::write(&path, &old).unwrap();
            let mut gate = GateConfig::read(&path).unwrap();
            let (name, block) = gate.add("a", &url("https://a/mcp", vec![]), None);
            assert_eq!(
                (name.as_str(), block.contains("https://a/mcp")),
                ("a-2", true),
                "{own}"
            );
            // One without any of these is shared, even if it is not the first with this URL.
            assert_eq!(
                gate.add("b", &url("https://a/mcp", vec![]), None),
                ("a-2".to_owned(), String::new()),
                "{own}"
            );
        }
    }

    #[test]
    fn the_address_is_the_configs() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("lychgate.toml");
        let base_url = || GateConfig::read(&path).unwrap().base_url();
        assert_eq!(base_url(), "http://127.0.0.1:8800/mcp/");
        fs::write(&path, "[listen]\naddress = \"127.0.0.1:9000\"\n").unwrap();
        assert_eq!(base_url(), "http://127.0.0.1:9000/mcp/");
        fs::write(&path, "[listen]\npublic_url = \"https://gate.example/\"\n").unwrap();
        assert_eq!(base_url(), "https://gate.example/mcp/");
    }
}
