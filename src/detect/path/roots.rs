//! Folders that a call's paths must stay in, and what is known of the file system they are on.

use std::collections::HashMap;

/// Folders that paths must stay in. Without any, nothing is outside.
#[derive(Clone, Debug, Default)]
pub struct Roots {
    /// Absolute, `/` between components, none at the end.
    folders: Vec<String>,
    home: Option<String>,
    base: Option<String>,
    links: Links,
}

/// What is known of symbolic links.
#[derive(Clone, Debug, Default)]
pub enum Links {
    /// Nothing: the paths are on another machine.
    #[default]
    Unknown,
    /// These, and no others: from the link's absolute path to its target as written.
    Given(HashMap<String, String>),
    /// The file system of this machine is asked.
    Machine,
}

impl Roots {
    /// Roots at these absolute folders (`/srv/data`, `C:\work`).
    pub fn new(folders: impl IntoIterator<Item = String>, links: Links) -> Self {
        let folders = folders.into_iter().map(|folder| plain(&folder)).collect();
        let links = match links {
            Links::Given(links) => Links::Given(links.into_iter().map(|(link, target)| (plain(&link), target)).collect()),
            other => other,
        };
        Self { folders, home: None, base: None, links }
    }

    /// Knows the home folder of whoever opens the paths: what `~` stands for.
    pub fn with_home(self, home: Option<String>) -> Self {
        Self { home: home.map(|home| plain(&home)), ..self }
    }

    /// Knows the folder that relative paths start at. Without it they start at each root.
    pub fn with_base(self, base: Option<String>) -> Self {
        Self { base: base.map(|base| plain(&base)), ..self }
    }

    /// Whether anything is outside at all.
    pub fn is_set(&self) -> bool {
        !self.folders.is_empty()
    }

    /// The folders.
    pub fn folders(&self) -> &[String] {
        &self.folders
    }

    /// What `~` stands for, if known.
    pub fn home(&self) -> Option<&str> {
        self.home.as_deref()
    }

    /// Where relative paths may start.
    pub fn bases(&self) -> &[String] {
        self.base.as_ref().map_or(self.folders.as_slice(), std::slice::from_ref)
    }

    /// What is known of links.
    pub fn links(&self) -> &Links {
        &self.links
    }
}

/// A folder with `/` between its components and none at its end.
fn plain(folder: &str) -> String {
    let drive = folder.get(1..2) == Some(":") && folder.starts_with(|c: char| c.is_ascii_alphabetic());
    let folder = if drive || folder.starts_with("\\\\") { folder.replace('\\', "/") } else { folder.to_owned() };
    let mut out = String::with_capacity(folder.len());
    for part in folder.split('/').filter(|part| !part.is_empty() && *part != ".") {
        if !(drive && out.is_empty()) {
            out.push('/');
        }
        out.push_str(part);
    }
    out
}
