//! `lychgate approve`: lists the calls that wait for approval, and answers them.

use std::io::Write;

use super::admin_client::{AdminClient, send_request};
use super::exit::{Exit, usage_error};
use crate::config::Scope;
use crate::message::{Json, Value, quote};

/// Arguments of `lychgate approve`.
#[derive(clap::Args)]
#[command(after_help = "\
Without a request id, or with `list`, lists pending requests; with an id alone,
shows that request. Text after a bar is exactly what would be sent. A request
that is not answered before its deadline is denied.

Requires the token that the gateway writes at start (`token_file` under
`[approval]`), readable only by the gateway's user. An agent that runs commands
as that user can read it too, and could approve its own requests: if that
matters, run the gateway as a different user.

Examples:
  lychgate approve
  lychgate approve 3f9c --once")]
pub(super) struct Args {
    /// Request id, as listed; `list` shows all
    #[arg(default_value = "list")]
    question: String,
    /// Approve this call once
    #[arg(long, group = "answer")]
    once: bool,
    /// Approve the same tool for the same rules in this session
    #[arg(long, group = "answer")]
    session: bool,
    /// Approve the same tool with the same arguments until the gateway stops
    #[arg(long, group = "answer")]
    call: bool,
    /// Approve the same tool with the same arguments permanently
    #[arg(long, group = "answer")]
    always: bool,
    /// Deny the request
    #[arg(long, group = "answer")]
    deny: bool,
    /// Print the list as one JSON document
    #[arg(long, conflicts_with = "answer")]
    json: bool,
    #[command(flatten)]
    desk: AdminClient,
}

impl Args {
    /// Lists or answers approval requests; exit code 0 on success (an empty list included), 1 if the
    /// answer does not take effect, 2 if the gate cannot be reached.
    pub(super) fn run(&self, out: &mut dyn Write, _err: &mut dyn Write) -> Result<u8, Exit> {
        let (address, token) = self.desk.target()?;
        let answer = match (self.once, self.session, self.call, self.always, self.deny) {
            (true, ..) => Some(Some(Scope::Once)),
            (_, true, ..) => Some(Some(Scope::Session)),
            (_, _, true, ..) => Some(Some(Scope::Call)),
            (_, _, _, true, _) => Some(Some(Scope::Always)),
            (_, _, _, _, true) => Some(None),
            _ => None,
        };
        let Some(answer) = answer else {
            let listing = send_request(address, &token, "GET", "/approvals", "")?;
            if self.json {
                writeln!(out, "{}", listing.root().raw())?;
                return Ok(0);
            }
            return self.list(&listing, out);
        };
        if self.question == "list" || !self.question.bytes().all(|b| b.is_ascii_alphanumeric()) {
            return Err(usage_error(
                "pass the id of a request, as listed by `lychgate approve list`",
            ));
        }
        let by = std::env::var("USER").unwrap_or_default();
        let body = match answer {
            Some(scope) => format!(
                r#"{{"decision":"approve","scope":"{}","by":{}}}"#,
                scope.name(),
                quote(&by)
            ),
            None => format!(r#"{{"decision":"deny","by":{}}}"#, quote(&by)),
        };
        send_request(
            address,
            &token,
            "POST",
            &format!("/approvals/{}", self.question),
            &body,
        )?;
        let decision_text = answer.map_or("refused".to_owned(), |scope| {
            format!("approved ({})", scope.name())
        });
        writeln!(out, "{}: {decision_text}", self.question)?;
        Ok(0)
    }

    fn list(&self, listing: &Json, out: &mut dyn Write) -> Result<u8, Exit> {
        let text = |item: Value<'_>, key: &str| item.get_str(key).unwrap_or_default().into_owned();
        let all = self.question == "list";
        let selected: Vec<Value<'_>> = listing
            .root()
            .elements()
            .filter(|item| all || text(*item, "id") == self.question)
            .collect();
        if selected.is_empty() && all {
            writeln!(out, "no pending requests")?;
        } else if selected.is_empty() {
            return Err(Exit::Code(
                1,
                format!("no pending request `{}`", self.question),
            ));
        }
        for item in selected {
            let id = text(item, "id");
            let remaining = item.get("seconds_left").map_or("0", |left| left.raw());
            let status = if item
                .get("waiting")
                .is_some_and(|waiting| waiting.raw() == "true")
            {
                "waits"
            } else {
                "will try again"
            };
            writeln!(
                out,
                "{id}  {} calls `{}` of `{}`; it {status}; {remaining} s left",
                text(item, "agent"),
                text(item, "tool"),
                text(item, "upstream")
            )?;
            let rules: Vec<String> = item
                .get("rules")
                .into_iter()
                .flat_map(|rules| rules.elements())
                .map(|rule| rule.str().unwrap_or_default().into())
                .collect();
            writeln!(
                out,
                "  {} ({}, {}). {}",
                text(item, "title"),
                rules.join(", "),
                text(item, "severity"),
                text(item, "why")
            )?;
            for line in text(item, "shown").lines() {
                writeln!(out, "  {line}")?;
            }
            let scopes = item
                .get("scopes")
                .into_iter()
                .flat_map(|scopes| scopes.elements());
            let flags: Vec<String> = scopes
                .map(|scope| format!("--{}", scope.str().unwrap_or_default()))
                .collect();
            writeln!(
                out,
                "  lychgate approve {id} {} | --deny\n",
                flags.join(" | ")
            )?;
        }
        Ok(0)
    }
}
