//! `lychgate init`: creates a config file.

use std::collections::BTreeSet;
use std::io::{self, IsTerminal, Write};
use std::path::{Path, PathBuf};

use super::config_file::{ConfigArg, user_file};
use super::confirm::{self, confirm, require_terminal};
use super::exit::{Exit, error, fault_text};
use super::install::files::replace_file;
use super::install::{ADDRESS, new_config, quoted};
use super::run::claude_command;
use crate::config::{self, is_name};
use crate::seal::state_folder;

/// Maximum length of an answer on the terminal, in bytes; terminals do not pass longer lines.
const MAX_ANSWER_BYTES: u64 = 4096;

/// Arguments of `lychgate init`.
#[derive(clap::Args)]
#[command(after_help = "\
Without an upstream it prompts for one. The file is shown and validated before
it is written. The gateway listens on the loopback address, with an audit log and
pins in the state folder, and an admin port; deploy/lychgate.toml documents every
option.

Examples:
  lychgate init --upstream docs=https://mcp.example.com/mcp
  lychgate init --stdio files -- npx -y @modelcontextprotocol/server-filesystem ~/notes

Exit codes: 0 written; 1 not written; 2 error.")]
pub(super) struct Args {
    /// Name and URL of an MCP server over HTTP; may be repeated
    #[arg(long = "upstream", value_name = "NAME=URL", value_parser = http_upstream)]
    upstreams: Vec<Upstream>,
    /// Name of an MCP server that is started by the command after `--`
    #[arg(long, value_name = "NAME", value_parser = upstream_name, requires = "command")]
    stdio: Option<String>,
    /// The config file to write [default: $LYCHGATE_CONFIG, or ~/.config/lychgate/lychgate.toml]
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Replace the file if it exists
    #[arg(long)]
    force: bool,
    /// Write without asking
    #[arg(long, short)]
    yes: bool,
    /// The command of `--stdio` and its arguments
    #[arg(last = true, value_name = "COMMAND", requires = "stdio")]
    command: Vec<String>,
}

/// An upstream to write into the config.
#[derive(Clone, Debug, PartialEq)]
struct Upstream {
    name: String,
    transport: Transport,
}

#[derive(Clone, Debug, PartialEq)]
enum Transport {
    Http(String),
    Stdio(Vec<String>),
}

impl Args {
    /// Writes the file; exit code 0 if it is written, 1 if not, 2 on errors.
    pub(super) fn run(&self, out: &mut dyn Write, err: &mut dyn Write) -> Result<u8, Exit> {
        let unknown =
            || error("the home folder is unknown\n  hint: set `HOME`, or pass --config FILE");
        let path = self
            .config
            .clone()
            .or_else(|| ConfigArg::default().named_file())
            .or_else(user_file)
            .ok_or_else(unknown)?;
        let path = std::path::absolute(&path).map_err(error)?;
        let state = state_folder()
            .ok_or_else(|| error("the state folder is unknown\n  hint: set `HOME`"))?;
        self.require_free(&path)?;
        let upstreams = self.upstreams(err)?;
        let text = config_text(&state, &upstreams);
        config::load_edited(&path, &text).map_err(|faults| {
            error(format!(
                "the config would not be valid:\n{}",
                fault_text(&faults)
            ))
        })?;
        writeln!(out, "To be added to `{}`:\n\n{text}", path.display())?;
        out.flush()?;
        require_terminal(self.yes, "write it")?;
        if !self.yes && !confirm("Write this? [y/N] ", err)? {
            writeln!(err, "Nothing was written.")?;
            return Ok(1);
        }
        self.require_free(&path)?;
        replace_file(&path, text.as_bytes(), None).map_err(|failed| {
            error(format!("the config cannot be written: {failed}\n  hint: pass another file with --config FILE"))
        })?;
        let default_config = ConfigArg::default()
            .find_if_any()
            .and_then(|found| std::path::absolute(found).ok());
        let option = if default_config.as_ref() == Some(&path) {
            String::new()
        } else {
            format!(" --config {}", path.display())
        };
        writeln!(
            out,
            "Written to `{}`. Next:\n\n  lychgate check{option}\n  lychgate run{option}",
            path.display()
        )?;
        for upstream in &upstreams {
            writeln!(
                out,
                "  {}",
                claude_command(&upstream.name, &format!("http://{ADDRESS}"), false)
            )?;
        }
        Ok(0)
    }

    /// Rejects a path that is in use, unless `--force` is given. A dangling symbolic link counts as
    /// in use.
    fn require_free(&self, path: &Path) -> Result<(), Exit> {
        match path.symlink_metadata() {
            Err(failure)
                if matches!(
                    failure.kind(),
                    io::ErrorKind::NotFound | io::ErrorKind::NotADirectory
                ) =>
            {
                Ok(())
            }
            _ if self.force => Ok(()),
            _ => {
                let hint = "pass --force to replace it, or --config FILE to write another";
                Err(error(format!(
                    "`{}` already exists\n  hint: {hint}",
                    path.display()
                )))
            }
        }
    }

    /// Returns the servers given by the flags, or the one entered on the terminal.
    fn upstreams(&self, err: &mut dyn Write) -> Result<Vec<Upstream>, Exit> {
        let stdio = self.stdio.clone().map(|name| {
            let command = self.command.clone();
            Upstream {
                name,
                transport: Transport::Stdio(command),
            }
        });
        let mut upstreams: Vec<Upstream> = self.upstreams.iter().cloned().chain(stdio).collect();
        if upstreams.is_empty() {
            if !io::stdin().is_terminal() {
                let hint = "pass `--yes` with `--upstream NAME=URL` or `--stdio NAME -- COMMAND ARGUMENTS`";
                return Err(error(format!(
                    "not a terminal, and no upstream is configured\n  hint: {hint}"
                )));
            }
            upstreams.push(ask_upstream(&mut |question| {
                confirm::ask(question, MAX_ANSWER_BYTES, err)
            })?);
        }
        let mut names = BTreeSet::new();
        if let Some(duplicate) = upstreams
            .iter()
            .find(|upstream| !names.insert(&upstream.name))
        {
            return Err(error(format!(
                "two upstreams are named `{}`",
                duplicate.name
            )));
        }
        for upstream in &mut upstreams {
            if let Transport::Stdio(command) = &mut upstream.transport
                && let Some(program) = command
                    .first_mut()
                    .filter(|program| program.contains('/') && !program.starts_with("~/"))
            {
                // Paths in the config are relative to the folder of the config file.
                *program = std::path::absolute(&*program)
                    .map_err(error)?
                    .display()
                    .to_string();
            }
        }
        Ok(upstreams)
    }
}

fn upstream_name(name: &str) -> Result<String, String> {
    let rule = "a name has 1 to 64 of the characters a-z, 0-9, `-` and `_`";
    if is_name(name) {
        Ok(name.to_owned())
    } else {
        Err(rule.to_owned())
    }
}

fn http_upstream(argument: &str) -> Result<Upstream, String> {
    let (name, url) = argument
        .split_once('=')
        .ok_or("write NAME=URL, as in docs=https://mcp.example.com/mcp")?;
    Ok(Upstream {
        name: upstream_name(name)?,
        transport: Transport::Http(url.to_owned()),
    })
}

fn parse_transport(answer: &str) -> Result<Transport, String> {
    if answer.starts_with("http://") || answer.starts_with("https://") {
        return Ok(Transport::Http(answer.to_owned()));
    }
    // The command is not run by a shell, so quotes would reach the server literally.
    if answer.contains(['\'', '"', '\\']) {
        return Err(
            "quotes are not supported here: run `lychgate init --stdio NAME -- COMMAND ARGUMENTS`"
                .to_owned(),
        );
    }
    let command: Vec<String> = answer.split_whitespace().map(str::to_owned).collect();
    if command.is_empty() {
        Err("a URL or a command is required".to_owned())
    } else {
        Ok(Transport::Stdio(command))
    }
}

/// Asks for a server until both answers are valid.
fn ask_upstream(ask: &mut dyn FnMut(&str) -> io::Result<Option<String>>) -> Result<Upstream, Exit> {
    let name = ask_for(
        "Name of the MCP server, as in `files`: ",
        upstream_name,
        ask,
    )?;
    let transport = ask_for(
        "Its URL, or the command that starts it: ",
        parse_transport,
        ask,
    )?;
    Ok(Upstream { name, transport })
}

fn ask_for<T>(
    question: &str,
    parse: fn(&str) -> Result<T, String>,
    ask: &mut dyn FnMut(&str) -> io::Result<Option<String>>,
) -> Result<T, Exit> {
    let mut prompt = question.to_owned();
    loop {
        let answer =
            ask(&prompt).map_err(|failed| error(format!("the answer cannot be read: {failed}")))?;
        let answer = answer.ok_or_else(|| Exit::Code(1, "\nNothing was written.".to_owned()))?;
        match parse(&answer) {
            Ok(value) => return Ok(value),
            Err(why) => prompt = format!("{why}\n{question}"),
        }
    }
}

/// Returns the config text, with the files of the gate in the folder `state`.
fn config_text(state: &Path, upstreams: &[Upstream]) -> String {
    let mut text = new_config("init", state);
    text.push_str(&format!(
        "\n# Agents connect to http://{ADDRESS}/mcp/NAME.\n[listen]\naddress = \"{ADDRESS}\"\n"
    ));
    for Upstream { name, transport } in upstreams {
        text.push_str(&match transport {
            Transport::Http(url) => format!("\n[upstream.{name}]\nhttp = {{ url = {} }}\n", quoted(url)),
            Transport::Stdio(command) => {
                let command: Vec<String> = command.iter().map(|word| quoted(word)).collect();
                format!(
                    "\n[upstream.{name}]\n# The first start may download the server.\ninitialize_timeout_seconds = 60\n\n\
                     [upstream.{name}.stdio]\ncommand = [{}]\n\
                     # The server gets only these variables of the gate's environment.\nenv = [\"PATH\", \"HOME\"]\n",
                    command.join(", ")
                )
            }
        });
    }
    text
}

#[cfg(test)]
mod tests {
    use crate::config::Transport as Configured;

    use super::*;

    fn answered(answers: &[&str]) -> (Result<Upstream, Exit>, Vec<String>) {
        let mut questions = vec![];
        let mut answers = answers.iter();
        let upstream = ask_upstream(&mut |question| {
            questions.push(question.to_owned());
            Ok(answers.next().map(|answer| (*answer).to_owned()))
        });
        (upstream, questions)
    }

    #[test]
    fn what_is_written_loads_with_a_log_pins_and_loopback_only() {
        let folder = tempfile::tempdir().unwrap();
        let upstreams = [
            http_upstream("docs=https://example.org/mcp?a=b").unwrap(),
            Upstream {
                name: "files".into(),
                transport: Transport::Stdio(vec!["npx".into(), "a \"b\"\\".into()]),
            },
        ];
        let text = config_text(folder.path(), &upstreams);
        let path = folder.path().join("lychgate.toml");
        std::fs::write(&path, &text).unwrap();
        let config = config::load(&path).unwrap();
        assert!(config.listen.address.ip().is_loopback());
        assert!(config.admin.address.unwrap().ip().is_loopback() && config.admin.has_console());
        assert_eq!(
            config.audit.to,
            Some(config::AuditTo::File(folder.path().join("audit.jsonl")))
        );
        assert_eq!(config.pins.file, Some(folder.path().join("lychgate.lock")));
        assert!(
            matches!(&config.upstreams["docs"].transport, Configured::Http(http) if http.url == "https://example.org/mcp?a=b")
        );
        assert!(
            matches!(&config.upstreams["files"].transport, Configured::Stdio(stdio) if stdio.command == ["npx", "a \"b\"\\"])
        );
    }

    #[test]
    fn answers_are_asked_again_until_they_are_valid() {
        let (upstream, questions) =
            answered(&["My Files", "files", "", "sh -c 'a b'", "npx  -y server"]);
        let command = vec!["npx".to_owned(), "-y".to_owned(), "server".to_owned()];
        assert_eq!(
            upstream.ok(),
            Some(Upstream {
                name: "files".into(),
                transport: Transport::Stdio(command)
            })
        );
        assert_eq!(questions.len(), 5);
        assert!(
            questions[1].starts_with("a name has ") && questions[4].contains("--stdio NAME --"),
            "{questions:?}"
        );
        let (upstream, _) = answered(&["docs", "https://example.org/mcp"]);
        assert_eq!(
            upstream.ok().unwrap().transport,
            Transport::Http("https://example.org/mcp".into())
        );
        let (upstream, _) = answered(&["docs"]);
        assert!(matches!(upstream, Err(Exit::Code(1, _))), "the input ended");
    }

    #[test]
    fn an_upstream_flag_needs_a_valid_name_and_a_url() {
        assert!(http_upstream("https://example.org/mcp").is_err());
        assert_contains!(
            http_upstream("Docs=https://example.org/mcp").unwrap_err(),
            "a-z"
        );
    }
}
