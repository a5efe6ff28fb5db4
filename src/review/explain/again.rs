//! A call that was refused without being judged, for it was just like earlier ones.

use serde::Serialize;

use crate::record::entry::member;
use crate::text::visible;

use super::Entry;

/// A call that was refused just like earlier ones. Texts in it are harmless to show.
#[derive(Clone, Debug, Serialize)]
pub struct RepeatedRefusal {
    /// The line's id.
    pub audit: String,
    /// `refused_again`.
    pub event: String,
    pub time: String,
    pub agent: String,
    pub user: Option<String>,
    /// At which server.
    pub upstream: String,
    pub tool: String,
    /// The rule that refused the earlier ones.
    pub rule: String,
    /// How often by then.
    pub times: Option<u64>,
    /// The last call of this tool before it that was judged and refused by this rule, if the log has it.
    pub earlier: Option<String>,
}

/// What a line of event `refused_again` tells, with the line that says why.
pub fn repeated(entry: &Entry, earlier: Option<&Entry>) -> RepeatedRefusal {
    let text = |name: &str| entry.text(name).map(|text| visible(&text));
    RepeatedRefusal {
        audit: text(member::audit::NAME).unwrap_or_default(),
        event: visible(&entry.event()),
        time: text(member::time::NAME).unwrap_or_default(),
        agent: text(member::agent::NAME).unwrap_or_default(),
        user: text(member::user::NAME),
        upstream: text(member::upstream::NAME).unwrap_or_default(),
        tool: text(member::tool::NAME).unwrap_or_default(),
        rule: text(member::rule::NAME).unwrap_or_default(),
        times: entry.get(member::times),
        earlier: earlier
            .and_then(|earlier| earlier.get(member::audit))
            .map(|id| visible(&id)),
    }
}

/// Whether a line is of a judged call of the same tool, by the same agent, that the same rule refused.
pub fn may_be_earlier(line: &Entry, entry: &Entry) -> bool {
    let same = [
        member::agent::NAME,
        member::user::NAME,
        member::upstream::NAME,
        member::tool::NAME,
        member::rule::NAME,
    ];
    line.event() == "judged"
        && line.get(member::direction).as_deref() == Some("outbound")
        && line.get(member::verdict).as_deref() == Some("block")
        && same.iter().all(|name| line.text(name) == entry.text(name))
}
