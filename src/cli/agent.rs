//! `lychgate agent`: creates, lists and revokes agent tokens.

use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use clap::Subcommand;
use ring::rand::{SecureRandom, SystemRandom};
use sha2::{Digest, Sha256};

use super::config_file::ConfigArg;
use super::exit::Exit;
use super::format_count;
use crate::config::{self, AgentToken, is_name};
use crate::document::Fault;
use crate::seal::{lock_folder, read_text, replace_file};

/// The prefix of tokens, by which people and secret scanners recognize them.
const PREFIX: &str = "lychgate_";
/// Size of the random part of a token, in bytes.
const RANDOM_BYTES: usize = 32;
/// Length of the checksum of a token, in characters.
const CHECKSUM_CHARACTERS: usize = 6;
const MAX_FILE_BYTES: u64 = 1 << 20;

/// Arguments of `lychgate agent`.
#[derive(clap::Args)]
#[command(after_help = "\
The agents file is set by `file` under `[agents]`. It holds hashes only: a token is
shown once, when it is created. A running gateway applies changes within two
seconds.

Examples:
  lychgate agent add ci
  lychgate agent revoke ci --token 9b74c989")]
pub(super) struct Args {
    #[command(subcommand)]
    verb: Verb,
    #[command(flatten)]
    config: ConfigArg,
    /// Agents file; defaults to that of the config
    #[arg(long, value_name = "FILE", global = true)]
    file: Option<PathBuf>,
}

#[derive(Subcommand)]
enum Verb {
    /// Create a token for an agent and show it once; an agent may have several
    Add {
        /// Agent name, as recorded in the audit log
        name: String,
    },
    /// List agents and the prefixes of their token hashes
    List {
        /// Print one JSON document
        #[arg(long)]
        json: bool,
    },
    /// Revoke an agent's tokens
    Revoke {
        /// The agent
        name: String,
        /// Revoke only the token with this hash prefix
        #[arg(long, value_name = "ID")]
        token: Option<String>,
    },
}

/// Runs the command; exit code 0 on success, 1 if there was nothing to revoke, 2 if the file cannot
/// be used.
pub(super) fn run(args: &Args, out: &mut dyn Write, err: &mut dyn Write) -> io::Result<u8> {
    let outcome = args.file().and_then(|file| match &args.verb {
        Verb::Add { name } => add(&file, name),
        Verb::List { json } => {
            read(&file).map(|tokens| (0, format_list(&tokens, *json), String::new()))
        }
        Verb::Revoke { name, token } => revoke(&file, name, token.as_deref()),
    });
    match outcome {
        Ok((code, data, notice)) => {
            out.write_all(data.as_bytes())?;
            err.write_all(notice.as_bytes())?;
            Ok(code)
        }
        Err(faults) => Exit::from(faults).report(err),
    }
}

/// An exit code, the text for standard output, and the text for standard error.
type Output = (u8, String, String);

impl Args {
    fn file(&self) -> Result<PathBuf, Vec<Fault>> {
        if let Some(file) = &self.file {
            return Ok(file.clone());
        }
        let config = self.config.find()?;
        config::load_agents(&config)?.file.ok_or_else(|| {
            let hint = "add `[agents]` with `file = \"agents.toml\"` to it, or pass `--file FILE`";
            let name = config.display().to_string();
            vec![Fault::of_file(
                name,
                "the config names no agents file",
                Some(hint),
            )]
        })
    }
}

fn add(file: &Path, name: &str) -> Result<Output, Vec<Fault>> {
    if !is_name(name) {
        let hint = "a name has 1 to 64 of the characters `a` to `z`, `0` to `9`, `_` and `-`";
        return Err(vec![Fault::of_file(
            "NAME",
            format!("invalid agent name `{}`", name.escape_debug()),
            Some(hint),
        )]);
    }
    let token = make_token().map_err(|error| fault(file, &error))?;
    let sha256 = Sha256::digest(token.as_bytes()).into();
    let created = humantime::format_rfc3339_seconds(SystemTime::now()).to_string();
    update_file(file, |tokens| {
        tokens.push(AgentToken {
            agent: name.to_owned(),
            sha256,
            created,
        })
    })?;
    let notice = format!("Token for `{name}`. It is shown only once; only its hash is stored.\n");
    Ok((0, format!("{token}\n"), notice))
}

fn revoke(file: &Path, name: &str, id: Option<&str>) -> Result<Output, Vec<Fault>> {
    let is_revoked =
        |token: &AgentToken| token.agent == name && id.is_none_or(|id| token.id() == id);
    let mut count = 0;
    update_file(file, |stored| {
        count = stored.iter().filter(|token| is_revoked(token)).count();
        stored.retain(|token| !is_revoked(token));
    })?;
    let notice = match count {
        0 => format!("no such token in `{}`\n", file.display()),
        _ => format!("revoked {} of `{name}`\n", format_count(count, "token")),
    };
    Ok((u8::from(count == 0), String::new(), notice))
}

fn format_list(tokens: &[AgentToken], as_json: bool) -> String {
    if as_json {
        let agents: Vec<_> =
            tokens.iter().map(|token| serde_json::json!({ "agent": token.agent, "id": token.id(), "made": token.created })).collect();
        return format!("{}\n", serde_json::Value::from(agents));
    }
    let mut lines: Vec<String> = tokens
        .iter()
        .map(|token| format!("{}  {}  {}\n", token.agent, token.id(), token.created))
        .collect();
    lines.sort();
    lines.concat()
}

/// Creates a token: prefix, random part and checksum.
fn make_token() -> io::Result<String> {
    let mut bytes = [0; RANDOM_BYTES];
    SystemRandom::new()
        .fill(&mut bytes)
        .map_err(|_| io::Error::other("the system's random number generator failed"))?;
    let random_part = URL_SAFE_NO_PAD.encode(bytes);
    let checksum = URL_SAFE_NO_PAD.encode(Sha256::digest(random_part.as_bytes()));
    Ok(format!(
        "{PREFIX}{random_part}{}",
        checksum.get(..CHECKSUM_CHARACTERS).unwrap_or_default()
    ))
}

fn read(file: &Path) -> Result<Vec<AgentToken>, Vec<Fault>> {
    let text = read_text(file, MAX_FILE_BYTES).map_err(|error| fault(file, &error))?;
    let Some(text) = text else {
        return Ok(Vec::new());
    };
    AgentToken::read_all(&file.display().to_string(), &text)
}

/// Reads the file, changes it and replaces it, while other processes are locked out.
fn update_file(file: &Path, change: impl FnOnce(&mut Vec<AgentToken>)) -> Result<(), Vec<Fault>> {
    let _lock = lock_folder(file).map_err(|error| fault(file, &error))?;
    let mut tokens = read(file)?;
    let before = tokens.clone();
    change(&mut tokens);
    if tokens == before {
        return Ok(());
    }
    let text = AgentToken::to_text(&tokens);
    if text.len() as u64 > MAX_FILE_BYTES {
        return Err(fault(
            file,
            &io::Error::other("too many tokens: revoke unused ones"),
        ));
    }
    replace_file(file, text.as_bytes(), 0o600).map_err(|error| fault(file, &error))
}

fn fault(file: &Path, error: &io::Error) -> Vec<Fault> {
    vec![Fault::of_file(
        file.display().to_string(),
        error.to_string(),
        Some("it is set by `file` under `[agents]`"),
    )]
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::MetadataExt;

    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        args: Args,
    }

    fn run_line(folder: &Path, line: &str) -> (u8, String, String) {
        let config = folder.join("gate.toml");
        let words = ["agent", "--config", config.to_str().unwrap()]
            .into_iter()
            .chain(line.split(' '));
        let mut out = Vec::new();
        let mut err = Vec::new();
        let code = run(&Line::parse_from(words).args, &mut out, &mut err).unwrap();
        (
            code,
            String::from_utf8(out).unwrap(),
            String::from_utf8(err).unwrap(),
        )
    }

    #[test]
    fn tokens_are_made_listed_and_taken_back() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(
            folder.path().join("gate.toml"),
            "[agents]\nfile = \"agents.toml\"\n",
        )
        .unwrap();
        let file = folder.path().join("agents.toml");
        let (code, output, _) = run_line(folder.path(), "add ci");
        let token = output.trim();
        assert_eq!(
            (code, token.len(), token.starts_with("lychgate_")),
            (0, PREFIX.len() + 43 + CHECKSUM_CHARACTERS, true)
        );
        let (chance, check) = token.strip_prefix(PREFIX).unwrap().split_at(43);
        assert!(
            URL_SAFE_NO_PAD
                .encode(Sha256::digest(chance))
                .starts_with(check)
        );
        let text = fs::read_to_string(&file).unwrap();
        assert!(!text.contains(chance) && !text.contains(check), "{text}");
        assert_eq!(fs::metadata(&file).unwrap().mode() & 0o777, 0o600);
        let second = run_line(folder.path(), "add ci").1;
        run_line(folder.path(), "add ann");
        assert_ne!(second.trim(), token);
        let hash: [u8; 32] = Sha256::digest(token.as_bytes()).into();
        let all = read(&file).unwrap();
        assert_eq!((all.len(), all[0].sha256), (3, hash));
        let (_, list, _) = run_line(folder.path(), "list");
        let agents: Vec<&str> = list
            .lines()
            .map(|line| line.split(' ').next().unwrap())
            .collect();
        assert_eq!(agents, ["ann", "ci", "ci"]);
        let json: serde_json::Value =
            serde_json::from_str(&run_line(folder.path(), "list --json").1).unwrap();
        assert_eq!(
            (
                json.as_array().unwrap().len(),
                json[0]["id"].as_str().unwrap()
            ),
            (3, &*all[0].id())
        );
        assert_eq!(
            run_line(folder.path(), &format!("revoke ci --token {}", all[0].id())).0,
            0
        );
        assert_eq!(read(&file).unwrap(), all[1..]);
        assert_eq!(
            run_line(folder.path(), "revoke ci").2,
            "revoked 1 token of `ci`\n"
        );
        assert_eq!(run_line(folder.path(), "revoke ci").0, 1);
        assert_eq!(read(&file).unwrap(), all[2..]);
    }

    #[test]
    fn many_at_once_lose_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("agents.toml");
        std::thread::scope(|scope| {
            for number in 0..8 {
                let file = &file;
                scope.spawn(move || add(file, &format!("agent-{number}")).unwrap());
            }
        });
        assert_eq!(read(&file).unwrap().len(), 8);
    }

    #[test]
    fn what_is_wrong_is_said() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("gate.toml"), "").unwrap();
        let (code, _, output) = run_line(folder.path(), "add ci");
        assert!(code == 2 && output.contains("[agents]"), "{output}");
        fs::write(
            folder.path().join("gate.toml"),
            "[agents]\nfile = \"agents.toml\"\n",
        )
        .unwrap();
        assert_contains!(
            run_line(folder.path(), "add Not/a/name").2,
            "invalid agent name"
        );
        fs::write(folder.path().join("agents.toml"), "[[token]]\nagent = 1\n").unwrap();
        assert_eq!(
            run_line(folder.path(), "add ci").0,
            2,
            "a file that cannot be read is not written over"
        );
    }
}
