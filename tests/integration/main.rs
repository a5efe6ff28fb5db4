//! Tests the behavior that the gate promises with real listeners: a gate in this process, scripted
//! servers behind it, agents in front of it.
//!
//! - `access`: tools, prompts and resources that a caller may not use are not listed and are
//!   answered as unknown; tokens from the file are valid as long as the file contains them
//! - `actions`: rule and policy choose what is done about a finding; the rest of an answer stays
//!   usable and valid
//! - `approval`, `approval_ways`: a call that requires approval waits for it, whichever way the
//!   user is asked, and is then sent unchanged or not at all
//! - `audit`: each judged message has one complete line without secrets; if the log is required and
//!   cannot be written, no message passes
//! - `authority`: the login server of the other tests fails as they request
//! - `binaries`: text in images, PDF and archives is judged, their content is checked against the
//!   declared type, and content that is not inspected is recorded as such
//! - `budgets`: tool calls stay within their rates, numbers and sizes, and a refusal says when to
//!   retry
//! - `bypasses`: every row of the page that lists what is caught and what is not is true
//! - `challenges`: a server that requires a login cannot pass text to the model as if it came from
//!   the gate
//! - `classifier`: an external classifier is asked within its limits, its scores count, it is
//!   named, and a failure is handled as the policy says
//! - `connections`: idle and silent connections and those that guess tokens end, and keep out no
//!   agent and no probe
//! - `demo`, `wrap`, `wrap_ask`: both verbs as whole programs; lines that wait for approval
//! - `doctor`: faults of an installation are found in time and reported with their fixes, and no
//!   secret is shown
//! - `drain`: open calls finish, no new ones begin, no child process is left
//! - `eras`: headers agree with the body, batches and methods are those of the revision, unreadable
//!   bodies get the right code
//! - `evidence`: no call passes without its audit line: killed under load, with a full disk, in a
//!   folder that cannot be written
//! - `files`: content that a call writes to a file is judged when a later call of the session runs
//!   it
//! - `framing`: no byte of a server's framing reaches an agent; an answer reaches it only as the
//!   answer to an open request
//! - `flow`: quarantined content does not leave again, untrusted and private content only as the
//!   policy says
//! - `in_flight`: the bytes of requests and answers are reserved before they are read, for all
//!   agents together and for each
//! - `init`: a first config is valid, private, shown before it is written, and replaces no other
//!   unless forced
//! - `keep_alive`: silent event streams get comments, and silent calls get a stream where this
//!   changes nothing else
//! - `leaks`: agents' tokens reach no server, servers' tokens no agent, and neither any log,
//!   metric, page, error or answer
//! - `limits`: each limit is answered clearly and counted
//! - `listener`: `Host`, `Origin`, tokens; credentials, cookies and forwarding headers are not
//!   passed on; without agents the gate does not start off loopback
//! - `logins`: a person logs in at a server once, in their own browser, and the gate renews the
//!   login for everyone from then on
//! - `login_verbs`: a person logs in and out at the command line, with a browser on this machine,
//!   on another one, or on another device
//! - `metrics`: the counters of every rule begin at zero; events are counted; `/readyz` reports the
//!   actual state
//! - `mistakes`: common mistakes of users are answered with the cause and the fix
//! - `oauth_faults`: a login survives races, lost and unusual answers, a kill and clocks that jump;
//!   one that has ended is reported once
//! - `options`: every key of the sample config has a test that shows its effect, with the key and
//!   without it
//! - `otlp`: audit lines, spans and metrics reach a collector complete and without secrets; no call
//!   waits for it
//! - `paging`: the rest of a long result is read in parts that the gate serves, to its own agent
//!   and session only
//! - `pins`: definitions stay as first seen until a person approves a change; listening clients are
//!   notified
//! - `places`: calls stay in the roots, and symbolic links are followed for a child process; access
//!   to internal hosts requires the policy's permission
//! - `process_output`: the output of a stdio server beside the protocol is shown to operators,
//!   masked, and to agents where the policy passes it
//! - `prove`: a tested gate reports what it catches, what not and why; without a token it cannot be
//!   tested
//! - `quarantine`: content that would steer the model is withheld, reported and named; the rest
//!   stays byte for byte; limits; HTML
//! - `redaction`: secrets and personal data are removed from results where a policy requires it,
//!   and JSON stays valid
//! - `refusal`: a message that must not reach a server does not, and its sender gets an answer in
//!   the form of its protocol
//! - `reload`: edited rules take effect without dropping a call, invalid ones do not, weaker ones
//!   are reported as such
//! - `replay`: a candidate that switches protection off is reported, and a test that covers nothing
//!   does not pass
//! - `returned_memory`: memory that a peak of long messages took is returned to the system
//! - `scan`: a scan of a poisoned server finds it on any transport, reports it safely, and calls no
//!   tool
//! - `schema`: calls are checked against the server's schemas and the operator's overlays, which
//!   agents see in lists
//! - `secrets`: a secret does not leave, however it is encoded, and is shown nowhere
//! - `sessions`: a session belongs to its agent alone; streams resume; two agents never share a
//!   child process
//! - `stall`: expensive answers of one server delay neither calls to another nor probes; slow
//!   judgements are counted
//! - `stdio`: exact arguments, named variables only, timeouts, restarts with a pause, whole process
//!   groups ended
//! - `streams`: nothing is held back; a client that disconnects is handled as its revision
//!   specifies
//! - `surfaces`: an injected order reaches no agent, in any place of a message and across messages
//!   of a stream, and the audit log names the place
//! - `tls`: TLS and HTTP/2 on both sides, a private authority, client certificates
//! - `tool_visibility`: the console hides and shows a tool with one key of the config, and reports
//!   where it cannot
//! - `transparency`: harmless messages arrive byte for byte, both ways, on every transport, in both
//!   eras
//! - `upstreams`: the fault of one upstream affects no other and is named, an open port does not
//!   count as up, reloads add, change and remove upstreams
//! - `vouched`: tokens of issuers: signed, valid and for this gate; metadata and challenges;
//!   sessions of one user
//! - `wiring`: `install` and `service` as whole programs: what they write is started, named, logged
//!   and undone
//!
//! `cargo test --test integration` runs all of them, `cargo test --test integration reload::` those
//! of one file.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::string_slice,
    reason = "a test may panic"
)]
#![allow(
    clippy::disallowed_types,
    reason = "tests read JSON as others do, with another reader than the gate's"
)]

mod access;
mod actions;
mod agent;
mod agent_texts;
mod approval;
mod approval_ways;
mod audit;
mod authority;
mod binaries;
mod budgets;
mod bypasses;
mod challenges;
mod child;
mod classifier;
mod connections;
mod console;
mod demo;
mod doctor;
mod drain;
mod eras;
mod evidence;
mod explain;
mod files;
mod flow;
mod framing;
mod harness;
mod in_flight;
mod init;
mod keep_alive;
mod kept;
mod leaks;
mod limits;
mod lines;
mod listener;
mod login_verbs;
mod logins;
mod metrics;
mod mistakes;
mod notify;
mod oauth_faults;
mod options;
mod otlp;
mod paging;
mod pins;
mod places;
mod process_output;
mod prove;
mod quarantine;
mod redaction;
mod refusal;
mod reload;
mod replay;
mod returned_memory;
mod scan;
mod schema;
mod secrets;
mod servers;
mod sessions;
mod sigma;
mod stall;
mod stdio;
mod streams;
mod suppress;
mod surfaces;
mod tls;
mod tool_visibility;
mod transparency;
mod upstreams;
mod vouched;
mod wiring;
mod wrap;
mod wrap_ask;

/// Not a test, but the child process of other tests: see [`child::StdioServer`].
#[test]
fn stdio_child() {
    child::be_a_child();
}
