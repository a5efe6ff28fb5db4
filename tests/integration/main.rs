//! Each promise of the gate, tried with real listeners: a gate in this process, scripted servers behind it, agents in
//! front of it.
//!
//! | file | proves |
//! | --- | --- |
//! | `access` | what may not be used is not listed and reads as unknown; tokens of the file count as long as they stand there |
//! | `actions` | what is done about a finding is the choice of rule and policy; the rest of an answer stays usable and valid |
//! | `approval`, `approval_ways` | what needs a person's yes waits for it, on every way to ask, and goes on unchanged or not at all |
//! | `audit` | one line for each judged message, with everything in it and no secret; no audit, no traffic |
//! | `authority` | the server that tests log in at goes wrong as told |
//! | `binaries` | text in images, PDF and archives is judged, their types are held to what they say, what is not read is said |
//! | `budgets` | calls of tools keep to their rates, numbers and sizes, and are told when to come back |
//! | `bypasses` | the page that says what is caught and what is not is true, row by row |
//! | `challenges` | a server that wants a login says nothing to the model in the gate's own voice |
//! | `classifier` | an external classifier is asked within bounds, heeded, named, and missed as the policy says |
//! | `connections` | idle, silent and guessing connections end, and keep no agent and no probe out |
//! | `demo`, `wrap`, `wrap_ask` | both verbs as whole programs; what waits for a yes among lines |
//! | `doctor` | faults of an installation are found in time, with their fixes, and no secret is shown
//! | `drain` | open calls finish, new ones do not begin, no child is left |
//! | `eras` | headers agree with the body, batches and methods are those of the revision, unreadable bodies get the right code |
//! | `evidence` | no call goes by without its line: killed under load, out of room, in a folder that cannot be written |
//! | `files` | what a call writes to a file is judged when a later call of the session runs it |
//! | `framing` | no byte of a server's framing reaches an agent; an answer reaches it only as the answer to an open request |
//! | `flow` | what was quarantined does not go out again, what is untrusted or private only as the policy says |
//! | `in_flight` | bytes of requests and answers are reserved before they are read, for all agents and for each |
//! | `init` | a first config is valid, private, shown before it is written, and replaces no other unless forced |
//! | `keep_alive` | silent event streams get comments, and silent calls a stream where nothing else changes by it |
//! | `leaks` | agents' tokens reach no server, servers' no agent, and neither any log, metric, page, error or answer |
//! | `limits` | each limit answers clearly and is counted |
//! | `listener` | `Host`, `Origin`, tokens; credentials, cookies and forwarding headers end here; no start off loopback without agents |
//! | `logins` | a server's login is made by a person once, in their own browser, and renewed for all from then on |
//! | `login_verbs` | a person logs in and out at the command line, with a browser here, elsewhere, or on another device |
//! | `metrics` | every rule counts from zero; what happens is counted; `/readyz` is honest |
//! | `mistakes` | common mistakes of users are answered with the cause and the fix |
//! | `oauth_faults` | a login outlives races, lost and odd answers, a kill and clocks that jump; what is over is said once |
//! | `options` | every key of the sample config has a test that shows what it changes, both ways |
//! | `otlp` | audit lines, spans and metrics reach a collector whole, with nothing secret; no call waits for it |
//! | `paging` | what is too long is read on in parts that the gate serves, to its own agent and session only |
//! | `pins` | definitions stay what they were when first seen, until a person approves; who listens is told |
//! | `places` | calls stay in the roots, links followed for a child; hosts inside need the policy's leave |
//! | `process_output` | what a stdio server prints is shown to operators, masked, and to agents where the policy passes it |
//! | `prove` | a gate that is tried says what it catches, what not and why; whoever has no token cannot try it
//! | `quarantine` | what would steer the model is withheld, told and named; the rest stays, byte for byte; caps; HTML |
//! | `redaction` | secrets and data of people are taken out of results where a policy wants that, and JSON stays JSON |
//! | `refusal` | what must not reach a server does not, and its sender is answered in its own terms |
//! | `reload` | edited rules take force without dropping a call, bad ones do not, weaker ones are told as such |
//! | `replay` | a candidate that switches protection off is told, and a test of nothing is no success |
//! | `returned_memory` | memory that a peak of long messages took goes back to the system |
//! | `scan` | a look at a poisoned server on any transport finds it out, tells it safely, and calls nothing
//! | `schema` | calls are held to the server's schemas and to the operator's overlays, which agents read in lists |
//! | `secrets` | what is a secret does not leave, in whichever dress, and is shown nowhere |
//! | `sessions` | a session is its agent's alone; streams resume; two agents never share a child |
//! | `stall` | expensive answers of one server hold up neither calls to another nor probes; slow judgements are counted |
//! | `stdio` | exact argv, named variables only, timeouts, restarts with a pause, whole process groups ended |
//! | `streams` | nothing is held back; whoever goes away is missed as its revision lays down |
//! | `surfaces` | an order reaches no agent, in whichever of all places and across messages of a stream, and the audit names it |
//! | `tls` | TLS and HTTP/2 on both sides, own authority, client certificates |
//! | `tool_visibility` | the console hides and shows a tool by one key of the config, and says where it cannot |
//! | `transparency` | what is harmless arrives byte for byte, both ways, on every transport, in both eras |
//! | `upstreams` | one upstream's fault is its own and named, an open port is not up, reloads add, change and remove upstreams |
//! | `vouched` | tokens of issuers: signed, valid and for this gate; metadata and challenges; sessions of one user |
//! | `wiring` | `install` and `service` as whole programs: what they write starts, is named, logged and taken back |
//!
//! `cargo test --test integration` runs them, `cargo test --test integration reload::` one file.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::string_slice,
    reason = "a test may panic"
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

/// Not a test but the child process of others: see [`child::StdioServer`].
#[test]
fn stdio_child() {
    child::be_a_child();
}
