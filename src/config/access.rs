//! Who may use what: `[access.NAME]`.

/// What some of the callers may use. What several tables say of one caller adds up as [`crate::protocol::Access`] has it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AccessConfig {
    /// Its name, for the audit log.
    pub name: String,
    /// The agents it is for, as globs: `agents`.
    pub agents: Vec<String>,
    /// The users it is for: `users`.
    pub users: Vec<String>,
    /// The groups it is for: `groups`.
    pub groups: Vec<String>,
    /// What may be used; `None` for all of its kind: `allow_upstreams` and so on.
    pub allow: Lists<Option<Vec<String>>>,
    /// Denials, which override allowances: `deny_upstreams` and so on.
    pub deny: Lists<Vec<String>>,
    /// Whether only tools may be called that only read: `read_only`.
    pub read_only: bool,
    /// Tools that are read-only; overrides their annotations: `reading_tools`.
    pub reading_tools: Vec<String>,
    /// Tools that are not read-only; overrides their annotations: `writing_tools`.
    pub writing_tools: Vec<String>,
    /// Upstreams whose `readOnlyHint` is trusted: `trust_annotations`. Default: none.
    pub trust_annotations: Vec<String>,
}

/// One of something for each kind of thing that can be used. All but upstreams are named `UPSTREAM/NAME`, as globs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Lists<T> {
    /// Upstreams, by name.
    pub upstreams: T,
    /// Tools, by name.
    pub tools: T,
    /// Prompts, by name.
    pub prompts: T,
    /// Resources and their templates, by address.
    pub resources: T,
}
