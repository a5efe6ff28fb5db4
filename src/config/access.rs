//! Which callers may use what: `[access.NAME]`.

/// What a set of callers may use. [`crate::protocol::Access`] defines how several tables for one
/// caller are combined.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AccessConfig {
    /// The name of the table, for the audit log.
    pub name: String,
    /// The agents that the table applies to, as globs: `agents`.
    pub agents: Vec<String>,
    /// The users that the table applies to: `users`.
    pub users: Vec<String>,
    /// The groups that the table applies to: `groups`.
    pub groups: Vec<String>,
    /// What may be used; `None` for everything of a kind: `allow_upstreams` and so on.
    pub allow: Lists<Option<Vec<String>>>,
    /// Denials, which override allowances: `deny_upstreams` and so on.
    pub deny: Lists<Vec<String>>,
    /// Whether only read-only tools may be called: `read_only`.
    pub read_only: bool,
    /// Tools that are read-only; overrides their annotations: `reading_tools`.
    pub reading_tools: Vec<String>,
    /// Tools that are not read-only; overrides their annotations: `writing_tools`.
    pub writing_tools: Vec<String>,
    /// Upstreams whose `readOnlyHint` is trusted: `trust_annotations`. Default: none.
    pub trust_annotations: Vec<String>,
}

/// One value for each kind of thing that can be used. All kinds except upstreams are named
/// `UPSTREAM/NAME`, as globs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Lists<T> {
    /// Upstreams, by name.
    pub upstreams: T,
    /// Tools, by name.
    pub tools: T,
    /// Prompts, by name.
    pub prompts: T,
    /// Resources and resource templates, by URI.
    pub resources: T,
}
