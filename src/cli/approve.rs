//! `lychgate approve`: lists the calls that wait for a person's yes, and answers.

use std::io::{self, Write};

use super::desk::{Desk, ask};
use super::trouble::Trouble;
use crate::config::Scope;
use crate::message::{Json, Value, quote};

/// Arguments of `lychgate approve`.
#[derive(clap::Args)]
#[command(after_help = "\
Without a question, or with `list`, tells which calls wait; with a question alone, shows that one. What each shows behind
bars is exactly what would be sent. A question that nobody answers before its deadline is answered with no.

It talks to the admin port with the token that the gate writes at start (`token_file` under `[approval]`), which only
the gate's own user can read. An agent that runs commands as that user can read it too, and could answer for you: run
the gate as another user where that matters.")]
pub(super) struct Args {
    /// The question, as the list names it; `list` for all
    #[arg(default_value = "list")]
    question: String,
    /// Yes, to this one call
    #[arg(long, group = "answer")]
    once: bool,
    /// Yes, whenever the same rules ask about the same tool in this session
    #[arg(long, group = "answer")]
    session: bool,
    /// Yes, to the same tool with the same arguments, until the gate ends
    #[arg(long, group = "answer")]
    call: bool,
    /// Yes, to the same tool with the same arguments, for good
    #[arg(long, group = "answer")]
    always: bool,
    /// No
    #[arg(long, group = "answer")]
    deny: bool,
    /// The list as one JSON document
    #[arg(long, conflicts_with = "answer")]
    json: bool,
    #[command(flatten)]
    desk: Desk,
}

/// Lists or answers; 0 if that went well (a list with nothing in it too), 1 if the answer does not count, 2 if the gate
/// cannot be asked.
pub(super) fn run(args: &Args, out: &mut dyn Write, err: &mut dyn Write) -> io::Result<u8> {
    match args.carry_out(out) {
        Ok(code) => Ok(code),
        Err(trouble) => trouble.told(err),
    }
}

impl Args {
    fn carry_out(&self, out: &mut dyn Write) -> Result<u8, Trouble> {
        let (address, token) = self.desk.place()?;
        let answer = match (self.once, self.session, self.call, self.always, self.deny) {
            (true, ..) => Some(Some(Scope::Once)),
            (_, true, ..) => Some(Some(Scope::Session)),
            (_, _, true, ..) => Some(Some(Scope::Call)),
            (_, _, _, true, _) => Some(Some(Scope::Always)),
            (_, _, _, _, true) => Some(None),
            _ => None,
        };
        let Some(answer) = answer else {
            let listed = ask(address, &token, "GET", "/approvals", "")?;
            if self.json {
                writeln!(out, "{}", listed.root().raw())?;
                return Ok(0);
            }
            return self.list(&listed, out);
        };
        if self.question == "list" || !self.question.bytes().all(|b| b.is_ascii_alphanumeric()) {
            return Err(Trouble::Told(2, "name the question to answer, as `lychgate approve list` does".into()));
        }
        let by = std::env::var("USER").unwrap_or_default();
        let body = match answer {
            Some(scope) => format!(r#"{{"decision":"approve","scope":"{}","by":{}}}"#, scope.name(), quote(&by)),
            None => format!(r#"{{"decision":"deny","by":{}}}"#, quote(&by)),
        };
        ask(address, &token, "POST", &format!("/approvals/{}", self.question), &body)?;
        let told = answer.map_or("refused".to_owned(), |scope| format!("allowed ({})", scope.name()));
        writeln!(out, "{}: {told}", self.question)?;
        Ok(0)
    }

    fn list(&self, listed: &Json, out: &mut dyn Write) -> Result<u8, Trouble> {
        let text = |of: Value<'_>, key: &str| of.get(key).and_then(|value| value.str()).unwrap_or_default().into_owned();
        let all = self.question == "list";
        let meant: Vec<Value<'_>> = listed.root().elements().filter(|of| all || text(*of, "id") == self.question).collect();
        if meant.is_empty() && all {
            writeln!(out, "nothing waits")?;
        } else if meant.is_empty() {
            return Err(Trouble::Told(1, format!("no question `{}` is open", self.question)));
        }
        for of in meant {
            let id = text(of, "id");
            let left = of.get("seconds_left").map_or("0", |left| left.raw());
            let waiting =
                if of.get("waiting").is_some_and(|waiting| waiting.raw() == "true") { "waits" } else { "will try again" };
            writeln!(
                out,
                "{id}  {} calls `{}` of `{}`; it {waiting}; {left} s left",
                text(of, "agent"),
                text(of, "tool"),
                text(of, "upstream")
            )?;
            let rules: Vec<String> = of
                .get("rules")
                .into_iter()
                .flat_map(|rules| rules.elements())
                .map(|rule| rule.str().unwrap_or_default().into())
                .collect();
            writeln!(out, "  {} ({}, {}). {}", text(of, "title"), rules.join(", "), text(of, "severity"), text(of, "why"))?;
            for line in text(of, "shown").lines() {
                writeln!(out, "  {line}")?;
            }
            let scopes = of.get("scopes").into_iter().flat_map(|scopes| scopes.elements());
            let flags: Vec<String> = scopes.map(|scope| format!("--{}", scope.str().unwrap_or_default())).collect();
            writeln!(out, "  lychgate approve {id} {} | --deny\n", flags.join(" | "))?;
        }
        Ok(0)
    }
}
