//! `lychgate inspect`: judges messages from a file like the gate does.

mod shape;

use std::borrow::Cow;
use std::fs::File;
use std::io::{self, BufRead, BufReader, BufWriter, Read, Write};
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Instant;

use bytes::Bytes;

use super::config_file::ConfigArg;
use super::exit::fault_text;
use crate::config::{self, PolicyConfig};
use crate::detect::AccessScope;
use crate::detect::path::{Links, Roots};
use crate::inspect::{Coverage, Finding, InspectContext, Inspection, Policy, Verdict};
use crate::message::{Direction, Json, Message, ReadLimits, Value, ValueKind, quote, splice};
use crate::protocol::{AgentName, AuditId, Context, Era, UpstreamName, headers};
use crate::rules::{Action, Library};

/// What to judge, and by which policy.
#[derive(clap::Args)]
pub(super) struct Args {
    /// Direction of the messages
    #[arg(long, value_enum)]
    direction: JudgeDirection,
    #[command(flatten)]
    config: ConfigArg,
    /// Policy of the config file
    #[arg(long, default_value = "default")]
    policy: String,
    /// Apply the suppressions of this upstream
    #[arg(long, value_name = "NAME")]
    upstream: Option<String>,
    /// Read one message, call or text per line, and write one verdict per line. A text may name the
    /// call that returned it: `{"text": …, "tool_name": …, "arguments": {…}}`
    #[arg(long)]
    jsonl: bool,
    /// Add the byte range and length of each match to its finding
    #[arg(long, requires = "jsonl")]
    spans: bool,
    /// Input file; `-` is standard input
    file: PathBuf,
}

#[derive(Clone, Copy, clap::ValueEnum)]
enum JudgeDirection {
    Inbound,
    Outbound,
}

/// Judges the messages; exit code 0 if all pass unmodified, 1 if not, 2 if they cannot be judged.
#[allow(clippy::print_stderr, reason = "a verb tells its errors there")]
pub(super) fn run(args: &Args) -> ExitCode {
    match judge(args, &mut BufWriter::new(io::stdout().lock())) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::from(1),
        Err(message) => {
            eprintln!("error: {message}");
            ExitCode::from(2)
        }
    }
}

struct Judge {
    policy: Policy,
    limits: ReadLimits,
    direction: Direction,
    context: Context,
    spans: bool,
}

fn judge(args: &Args, out: &mut impl Write) -> Result<bool, String> {
    let config = args
        .config
        .find_if_any()
        .as_deref()
        .map(config::load_policies)
        .transpose()
        .map_err(fault_text)?
        .unwrap_or_default();
    let default = PolicyConfig::default();
    let policy = match config.policies.get(&args.policy) {
        Some(policy) => policy,
        None if args.policy == "default" => &default,
        None => return Err(format!("the config has no policy `{}`", args.policy)),
    };
    let library = Library::load(policy.builtin, &policy.rules).map_err(fault_text)?;
    let base_policy = Policy::new(&args.policy, policy, &library).map_err(fault_text)?;
    let inspector = Judge {
        policy: args
            .upstream
            .as_deref()
            .map_or_else(|| base_policy.clone(), |upstream| base_policy.at(upstream)),
        limits: config.limits.read.clone(),
        direction: match args.direction {
            JudgeDirection::Inbound => Direction::Inbound,
            JudgeDirection::Outbound => Direction::Outbound,
        },
        context: Context {
            requests: Arc::from([]),
            ..Context::new(
                AgentName("inspect".into()),
                UpstreamName("inspect".into()),
                Era::Modern,
            )
        },
        spans: args.spans,
    };
    let input: Box<dyn Read> = if args.file.as_os_str() == "-" {
        Box::new(io::stdin().lock())
    } else {
        Box::new(
            File::open(&args.file).map_err(|error| format!("{}: {error}", args.file.display()))?,
        )
    };
    let mut lines = Lines {
        input: BufReader::new(input),
        limit: inspector.limits.message_bytes,
    };
    if !args.jsonl {
        let text = lines.read_rest().map_err(|error| error.to_string())?;
        return inspector.judge_message(text, out);
    }
    let mut all_pass = true;
    let mut number = 0;
    while let Some(line) = lines
        .next()
        .map_err(|error| format!("line {}: {error}", number + 1))?
    {
        number += 1;
        if !line.iter().all(u8::is_ascii_whitespace) {
            all_pass &= inspector
                .judge_line(line, out)
                .map_err(|message| format!("line {number}: {message}"))?;
        }
    }
    out.flush().map_err(|error| error.to_string())?;
    Ok(all_pass)
}

/// The lines of a file, each limited by `message_bytes`.
struct Lines {
    input: BufReader<Box<dyn Read>>,
    limit: usize,
}

impl Lines {
    fn next(&mut self) -> io::Result<Option<Bytes>> {
        let mut line = Vec::new();
        // JSON escapes can make a line several times as long as its text.
        let max_bytes = self.limit.saturating_mul(6);
        self.input
            .by_ref()
            .take(max_bytes as u64 + 1)
            .read_until(b'\n', &mut line)?;
        if line.len() > max_bytes {
            return Err(io::Error::other("exceeds the limit `message_bytes`"));
        }
        Ok((!line.is_empty()).then(|| line.into()))
    }

    fn read_rest(&mut self) -> io::Result<Bytes> {
        let mut bytes = Vec::new();
        self.input
            .by_ref()
            .take(self.limit as u64 + 1)
            .read_to_end(&mut bytes)?;
        Ok(bytes.into())
    }
}

impl Judge {
    /// Judges one message and prints a report.
    fn judge_message(&self, bytes: Bytes, out: &mut impl Write) -> Result<bool, String> {
        let message = Message::parse(bytes, &self.limits).map_err(|error| error.to_string())?;
        let inspection = self
            .policy
            .inspect_alone(self.direction, &message, &self.context);
        let mut report = format!("verdict: {}\n", inspection.verdict.name());
        for finding in &inspection.findings {
            report.push_str(&format!(
                "  {} {} ({}) at {}: {}\n    reading {}, {} bytes, sha256 {}\n",
                finding.action.name(),
                finding.rule,
                finding.severity.name(),
                if finding.at.is_empty() {
                    "/"
                } else {
                    &finding.at
                },
                finding.title,
                finding.reading,
                finding.evidence.length,
                finding.evidence.sha256
            ));
            if let Some(suppressed) = &finding.suppressed {
                let suppression = &suppressed.suppression;
                report.push_str(&format!(
                    "    suppressed until {} (otherwise `{}`): {}\n",
                    suppression.until.text,
                    suppressed.action.name(),
                    suppression.reason
                ));
            }
        }
        let Coverage {
            strings,
            bytes,
            readings,
            uninspected,
            ..
        } = &inspection.coverage;
        report.push_str(&format!(
            "coverage: {}: {strings} strings, {bytes} bytes\n",
            inspection.coverage.name()
        ));
        if !readings.is_empty() {
            let names: Vec<&str> = readings.iter().copied().collect();
            report.push_str(&format!("  also read unmodified: {}\n", names.join(", ")));
        }
        for part in uninspected {
            report.push_str(&format!(
                "  not inspected: {} ({}, {} bytes)\n",
                part.at,
                part.reason.name(),
                part.bytes
            ));
        }
        match &inspection.verdict {
            Verdict::Pass => {}
            Verdict::Rewrite(edits) => {
                let edited = splice(message.bytes(), edits.clone()).ok_or("the edits overlap")?;
                report.push_str(&format!("becomes: {}\n", String::from_utf8_lossy(&edited)));
            }
            Verdict::Ask(questions) => {
                for question in questions {
                    report.push_str(&format!(
                        "approval required by `{}`: {}. {}\n",
                        question.rule(),
                        question.title,
                        question.why
                    ));
                }
            }
            Verdict::Block(refusals) => {
                for refusal in refusals {
                    report.push_str(&format!(
                        "refused by `{}`: {}. {}\n",
                        refusal.rule, refusal.title, refusal.why
                    ));
                }
            }
        }
        out.write_all(report.as_bytes())
            .and_then(|()| out.flush())
            .map_err(|error| error.to_string())?;
        Ok(matches!(inspection.verdict, Verdict::Pass))
    }

    /// Judges one line and writes its verdict as JSON.
    fn judge_line(&self, line: Bytes, out: &mut impl Write) -> Result<bool, String> {
        let limits = limits_for(&line, &self.limits);
        let json = Json::parse(line.clone(), &limits).map_err(|error| error.to_string())?;
        let root = json.root();
        let id = root.get("id").map_or("null", |id| id.raw());
        let policy = match read_roots(root) {
            Some(roots) => Cow::Owned(self.policy.with_ground(AccessScope {
                roots,
                ..self.policy.ground().clone()
            })),
            None => Cow::Borrowed(&self.policy),
        };
        let (bytes, at) = shape::build_message(root, line, self.direction)?;
        let parse = |bytes: Bytes| {
            let limits = limits_for(&bytes, &limits);
            Message::parse(bytes, &limits).map_err(|error| error.to_string())
        };
        let message = parse(bytes)?;
        let call = match self.direction {
            Direction::Inbound => shape::call_of_text(root)?.map(parse).transpose()?,
            Direction::Outbound => None,
        };
        let context = match &call {
            Some(call) => Cow::Owned(Context {
                requests: headers::requests(call).into(),
                ..self.context.clone()
            }),
            None => Cow::Borrowed(&self.context),
        };
        let inspect_context = InspectContext {
            trace: self.spans,
            ..InspectContext::default()
        };
        let start = Instant::now();
        let inspection = policy.inspect(
            self.direction,
            &message,
            &context,
            AuditId::generate(),
            &inspect_context,
        );
        let micros = start.elapsed().as_nanos() as f64 / 1000.0;
        let text = self.received_text(&message, &inspection, at, &limits)?;
        let flagged = inspection
            .findings
            .iter()
            .any(|finding| finding.action > Action::Strip);
        let findings: Vec<String> = inspection
            .findings
            .iter()
            .map(|finding| format_finding(finding, self.spans))
            .collect();
        writeln!(
            out,
            r#"{{"id":{id},"verdict":"{}","flagged":{flagged},"coverage":"{}","findings":[{}],"text":{text},"us":{micros:.1}}}"#,
            inspection.verdict.name(),
            inspection.coverage.name(),
            findings.join(",")
        )
        .map_err(|error| error.to_string())?;
        Ok(matches!(inspection.verdict, Verdict::Pass))
    }

    /// Returns what the receiver gets as a JSON value: the text, or the entire message.
    fn received_text(
        &self,
        message: &Message,
        inspection: &Inspection,
        at: &[&str],
        limits: &ReadLimits,
    ) -> Result<String, String> {
        let bytes = match &inspection.verdict {
            Verdict::Pass => message.bytes().clone(),
            Verdict::Rewrite(edits) => {
                splice(message.bytes(), edits.clone()).ok_or("the edits overlap")?
            }
            Verdict::Ask(_) | Verdict::Block(_) => return Ok("null".into()),
        };
        let limits = limits_for(&bytes, limits);
        let json = Json::parse(bytes, &limits).map_err(|error| error.to_string())?;
        let [first, second] = at else {
            return Ok(quote(json.root().raw()));
        };
        let list = json
            .root()
            .at(&["result", first])
            .and_then(|list| list.elements().next());
        Ok(list
            .and_then(|item| item.get(second))
            .map_or("null".into(), |text| text.raw().to_owned()))
    }
}

/// Returns the roots that a line defines for its call: `allowed_roots`, a list of folders, and
/// `fs_links`, their symbolic links, as an object from link to target or as a list of pairs.
fn read_roots(line: Value<'_>) -> Option<Roots> {
    let text = |value: Value<'_>| value.str().map(Cow::into_owned);
    let folders = line
        .get("allowed_roots")
        .filter(|folders| folders.kind() == ValueKind::Array)?;
    let pair = |pair: Value<'_>| {
        let endpoint =
            |names: [&str; 4]| names.iter().find_map(|name| pair.get(name)).and_then(text);
        let mut elements = pair.elements().filter_map(text);
        let link = elements
            .next()
            .or_else(|| endpoint(["link", "path", "from", "name"]))?;
        Some((
            link,
            elements
                .next()
                .or_else(|| endpoint(["target", "to", "dest", "destination"]))?,
        ))
    };
    let links = line.get("fs_links").map(|links| {
        let from_object = links
            .members()
            .filter_map(|(link, target)| Some((link.into_owned(), text(target)?)));
        from_object
            .chain(links.elements().filter_map(pair))
            .collect()
    });
    Some(Roots::new(
        folders.elements().filter_map(text),
        links.map_or(Links::Unknown, Links::Map),
    ))
}

fn format_finding(finding: &Finding, spans: bool) -> String {
    let span = if spans {
        format_span(finding)
    } else {
        String::new()
    };
    format!(
        r#"{{"rule":{},"severity":"{}","action":"{}","surface":"{}","at":{},"reading":"{}"{span}}}"#,
        quote(finding.rule.as_str()),
        finding.severity.name(),
        finding.action.name(),
        finding.surface.name(),
        quote(&finding.at),
        finding.reading
    )
}

/// Formats the range of a match in the reading in which it was found (`null` for all of it), and
/// its length.
fn format_span(finding: &Finding) -> String {
    let span = finding
        .trace
        .as_deref()
        .and_then(|trace| trace.span.as_ref());
    let span = span.map_or_else(
        || "null".to_owned(),
        |span| format!("[{},{}]", span.start, span.end),
    );
    format!(r#","span":{span},"length":{}"#, finding.evidence.length)
}

/// Returns the limits for a message that may be as long as it is.
fn limits_for(message: &Bytes, limits: &ReadLimits) -> ReadLimits {
    ReadLimits {
        message_bytes: message.len(),
        ..limits.clone()
    }
}

#[cfg(test)]
mod tests;
