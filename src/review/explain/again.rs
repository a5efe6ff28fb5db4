//! Calls that were refused without being judged because they repeated earlier ones.

use serde::Serialize;

use crate::record::entry::member;
use crate::text::escape_invisible;

use super::Entry;

/// A call that was refused because it repeated earlier ones. Its texts are safe to display.
#[derive(Clone, Debug, Serialize)]
pub struct RepeatedRefusal {
    /// The audit id of the line.
    pub audit: String,
    /// `refused_again`.
    pub event: String,
    pub time: String,
    pub agent: String,
    pub user: Option<String>,
    pub upstream: String,
    pub tool: String,
    /// The rule that refused the earlier ones.
    pub rule: String,
    /// The number of refusals up to then.
    pub times: Option<u64>,
    /// The last earlier call of this tool that this rule judged and refused, if the log contains
    /// it.
    pub earlier: Option<String>,
}

/// Describes a line with the event `refused_again`, together with the earlier line that has the
/// reason.
pub fn describe_repeated(entry: &Entry, earlier: Option<&Entry>) -> RepeatedRefusal {
    let text = |name: &str| entry.text(name).map(|text| escape_invisible(&text));
    RepeatedRefusal {
        audit: text(member::audit::NAME).unwrap_or_default(),
        event: escape_invisible(&entry.event()),
        time: text(member::time::NAME).unwrap_or_default(),
        agent: text(member::agent::NAME).unwrap_or_default(),
        user: text(member::user::NAME),
        upstream: text(member::upstream::NAME).unwrap_or_default(),
        tool: text(member::tool::NAME).unwrap_or_default(),
        rule: text(member::rule::NAME).unwrap_or_default(),
        times: entry.get(member::times),
        earlier: earlier
            .and_then(|earlier| earlier.get(member::audit))
            .map(|id| escape_invisible(&id)),
    }
}

/// Reports whether `line` is a judged call of the same tool by the same agent that the same rule
/// refused.
pub fn may_be_earlier(line: &Entry, entry: &Entry) -> bool {
    let same_members = [
        member::agent::NAME,
        member::user::NAME,
        member::upstream::NAME,
        member::tool::NAME,
        member::rule::NAME,
    ];
    line.event() == "judged"
        && line.get(member::direction).as_deref() == Some("outbound")
        && line.get(member::verdict).as_deref() == Some("block")
        && same_members
            .iter()
            .all(|name| line.text(name) == entry.text(name))
}
