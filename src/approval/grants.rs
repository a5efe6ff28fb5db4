//! Approvals that are valid for more than one call.

use std::collections::HashMap;
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};

use parking_lot::Mutex;

use crate::config::Scope;
use crate::inspect::{EVERY_USE, FIRST_USE, FIRST_WRITE};
use crate::message::{Json, ReadLimits, quote};
use crate::protocol::{Holder, SessionId, UpstreamName};
use crate::rules::RuleId;
use crate::seal::replace_file;

use super::ApprovalRequest;
use super::digest::CallDigest;

/// Maximum number of stored grants of each kind; for sessions, the oldest is evicted.
const MAX_GRANTS: usize = 4096;
/// Maximum number of bytes read from the file of grants.
const FILE_BYTES: u64 = 8 << 20;

/// The grants in effect.
pub(super) struct Grants {
    table: Mutex<GrantTable>,
    file: Option<PathBuf>,
    /// How long a session grant lasts: with MCP sessions, and without.
    lifetimes: (Duration, Duration),
}

#[derive(Default)]
struct GrantTable {
    sessions: HashMap<SessionGrant, Instant>,
    calls: HashMap<CallDigest, Vec<RuleId>>,
    always: HashMap<CallDigest, StoredGrant>,
    /// Approved calls to which the server responded with a question: they pass one more time.
    rounds: HashMap<CallDigest, (Vec<RuleId>, Instant)>,
}

/// Calls of one tool that match one rule, in one session.
#[derive(Clone, PartialEq, Eq, Hash)]
struct SessionGrant {
    holder: Holder,
    upstream: UpstreamName,
    session: Option<SessionId>,
    rule: RuleId,
    /// Empty if the grant covers any tool.
    tool: Box<str>,
}

/// A permanent approval as stored in the file.
#[derive(Clone)]
struct StoredGrant {
    agent: String,
    upstream: String,
    tool: String,
    rules: Vec<RuleId>,
    at: String,
}

impl Grants {
    /// Loads the grants of the file, if there is one.
    ///
    /// # Errors
    /// The file exists and cannot be read.
    pub(super) fn new(file: Option<PathBuf>, lifetimes: (Duration, Duration)) -> io::Result<Self> {
        let always = file.as_deref().map(load).transpose()?.unwrap_or_default();
        Ok(Self {
            table: Mutex::new(GrantTable {
                always,
                ..GrantTable::default()
            }),
            file,
            lifetimes,
        })
    }

    /// Returns the widest scope of the earlier approvals that cover every rule of the request;
    /// `None` if a rule is not covered.
    pub(super) fn covering_scope(&self, request: &ApprovalRequest) -> Option<Scope> {
        let mut table = self.table.lock();
        let now = Instant::now();
        table.sessions.retain(|_, until| *until > now);
        table.rounds.retain(|_, (_, until)| *until > now);
        let covers_all =
            |rules: &Vec<RuleId>| request.rules.iter().all(|rule| rules.contains(rule));
        if table
            .rounds
            .get(&request.digest)
            .is_some_and(|(rules, _)| covers_all(rules))
        {
            table.rounds.remove(&request.digest);
            return Some(Scope::Once);
        }
        let is_covered =
            |rules: Option<&Vec<RuleId>>, rule| rules.is_some_and(|rules| rules.contains(rule));
        let mut widest = None;
        for rule in &request.rules {
            let digest = &request.digest;
            let scope = if rule.as_str() == EVERY_USE {
                return None;
            } else if is_covered(table.always.get(digest).map(|grant| &grant.rules), rule) {
                Scope::Always
            } else if is_covered(table.calls.get(digest), rule) {
                Scope::Call
            } else if table.sessions.contains_key(&in_session(request, rule)) {
                Scope::Session
            } else {
                return None;
            };
            widest = widest.max(Some(scope));
        }
        widest
    }

    /// Allows the same call once more.
    pub(super) fn next_round(&self, request: &ApprovalRequest, until: Instant) {
        let mut table = self.table.lock();
        if table.rounds.len() < MAX_GRANTS {
            table
                .rounds
                .insert(request.digest, (request.rules.clone(), until));
        }
    }

    /// Stores an approval.
    ///
    /// # Errors
    /// A permanent approval cannot be written to the file; it is then valid until the gate stops.
    pub(super) fn add(&self, request: &ApprovalRequest, scope: Scope) -> io::Result<()> {
        let mut table = self.table.lock();
        for rule in &request.rules {
            // An approval of a first use also covers later ones.
            let first = [FIRST_WRITE, FIRST_USE].contains(&rule.as_str());
            if scope == Scope::Session || first {
                if table.sessions.len() >= MAX_GRANTS {
                    let oldest = table
                        .sessions
                        .iter()
                        .min_by_key(|(_, until)| **until)
                        .map(|(key, _)| key.clone());
                    oldest.map(|key| table.sessions.remove(&key));
                }
                let lifetime = if request.context.session.is_some() {
                    self.lifetimes.0
                } else {
                    self.lifetimes.1
                };
                table
                    .sessions
                    .insert(in_session(request, rule), Instant::now() + lifetime);
            }
        }
        let is_full = |len: usize, exists: bool| len >= MAX_GRANTS && !exists;
        if scope >= Scope::Call {
            if is_full(table.calls.len(), table.calls.contains_key(&request.digest)) {
                let evicted = table.calls.keys().next().copied();
                evicted.map(|key| table.calls.remove(&key));
            }
            table.calls.insert(request.digest, request.rules.clone());
        }
        let (Scope::Always, Some(file)) = (scope, &self.file) else {
            return Ok(());
        };
        if is_full(
            table.always.len(),
            table.always.contains_key(&request.digest),
        ) {
            return Err(io::Error::other(format!("it holds {MAX_GRANTS} already")));
        }
        let grant = StoredGrant {
            agent: request.context.agent.to_string(),
            upstream: request.context.upstream.to_string(),
            tool: request.tool.clone(),
            rules: request.rules.clone(),
            at: humantime::format_rfc3339_seconds(SystemTime::now()).to_string(),
        };
        table.always.insert(request.digest, grant);
        save(file, &table.always)
    }
}

fn in_session(request: &ApprovalRequest, rule: &RuleId) -> SessionGrant {
    SessionGrant {
        holder: request.context.holder(),
        upstream: request.context.upstream.clone(),
        session: request.context.session.clone(),
        rule: rule.clone(),
        tool: if rule.as_str() == FIRST_WRITE {
            "".into()
        } else {
            request.name.clone()
        },
    }
}

/// Reads the file: one JSON object per line. A line that cannot be parsed is an error, so that no
/// approval is silently dropped.
fn load(path: &Path) -> io::Result<HashMap<CallDigest, StoredGrant>> {
    let mut text = String::new();
    match File::open(path) {
        Ok(file) => file.take(FILE_BYTES).read_to_string(&mut text)?,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(HashMap::new()),
        Err(error) => return Err(error),
    };
    let mut out = HashMap::new();
    for (number, line) in (1..).zip(text.lines()) {
        let invalid_line = || {
            io::Error::other(format!(
                "line {number} is not a valid approval: repair or remove it"
            ))
        };
        let json = Json::parse(line.to_owned().into(), &ReadLimits::default())
            .map_err(|_| invalid_line())?;
        let text = |key: &str| json.root().get_str(key).map(|text| text.into_owned());
        let rules = json
            .root()
            .get("rules")
            .into_iter()
            .flat_map(|rules| rules.elements());
        let grant = StoredGrant {
            agent: text("agent").ok_or_else(invalid_line)?,
            upstream: text("upstream").ok_or_else(invalid_line)?,
            tool: text("tool").ok_or_else(invalid_line)?,
            rules: rules
                .filter_map(|rule| Some(RuleId::new(&rule.str()?)))
                .collect(),
            at: text("at").ok_or_else(invalid_line)?,
        };
        let digest = text("call")
            .as_deref()
            .and_then(CallDigest::from_hex)
            .ok_or_else(invalid_line)?;
        out.insert(digest, grant);
    }
    Ok(out)
}

/// Writes a new file next to the old one and renames it over it: a reader sees one or the other,
/// complete.
fn save(path: &Path, grants: &HashMap<CallDigest, StoredGrant>) -> io::Result<()> {
    let mut lines: Vec<String> = grants
        .iter()
        .map(|(digest, grant)| {
            let rules: Vec<String> = grant.rules.iter().map(|rule| quote(rule.as_str())).collect();
            format!(
                "{{\"at\":{},\"agent\":{},\"upstream\":{},\"tool\":{},\"rules\":[{}],\"call\":\"{}\"}}\n",
                quote(&grant.at),
                quote(&grant.agent),
                quote(&grant.upstream),
                quote(&grant.tool),
                rules.join(","),
                digest.hex()
            )
        })
        .collect();
    lines.sort();
    replace_file(path, lines.concat().as_bytes(), 0o600)
}
