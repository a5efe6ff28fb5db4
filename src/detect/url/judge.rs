//! The facts about one URL in its place.

use std::net::IpAddr;

use super::address::{self, WrittenAddress};
use super::carried;
use super::fold;
use super::hosts::{HostDecision, HostPattern, Hosts};
use super::lookup::{Resolution, is_resolvable};
use super::names;
use super::parse::{HostOrigin, ParsedUrl, UrlHost, parse};
use crate::detect::command::UNKNOWN;
use crate::detect::{Place, path, work};
use crate::reach::{self, Reach};
use crate::text::quick::WordSet;

/// Maximum depth to which URLs inside URLs are followed.
const DEPTH: usize = 2;
/// Schemes whose hosts are resolved as names. In others (`s3://bucket`), a name without a dot is
/// not a host.
const RESOLVED_SCHEMES: [&str; 5] = ["http", "https", "ws", "wss", "ftp"];
/// Parameters with the URL that a browser is sent back to, which on a developer's machine is that
/// machine.
static RETURN_PARAMETERS: WordSet = WordSet::new(
    "redirect_uri redirect_uris redirect_url redirecturi redirecturl callback callback_url \
     return_to return_url returnurl post_logout_redirect_uri post_logout_redirect_uris \
     success_url cancel_url allowed_origins cors_origins web_origins allowed_callback_urls \
     logout_url logout_urls allowed_logout_urls signout_url callback_urls return_urls \
     allowed_return_urls allowed_redirect_uris allowed_redirect_urls acs_url \
     assertion_consumer_service_url entity_id sp_entity_id audience initiate_login_uri slo_url \
     homepage_url homepage website_url",
);
/// The URLs of the servers that an OpenAPI document describes.
const DESCRIBED_SERVERS: &str = "servers.url";
/// Ends of the names of documents, which no server computes.
static DOCUMENTS: WordSet =
    WordSet::new("md mdx markdown rst adoc asciidoc txt org ipynb yaml yml toml tex");
/// Parameters that often hold a host instead of a URL.
static HOST_PARAMETERS: WordSet = WordSet::new(
    "url uri u host target dest destination domain server proxy site feed endpoint addr",
);

enum_with_names! {
    /// The place of a URL. Named as in rule files.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub(super) enum UrlOrigin {
        /// In an argument that is a URL.
        Argument = "argument",
        /// In a command or in code.
        Command = "command",
    }
}

/// An internal destination of a URL.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct InternalDestination {
    pub(super) reach: Reach,
    /// Whether it is spelled so that a simple check would miss it.
    pub(super) odd: bool,
    /// Whether it was reached by a name that was resolved.
    pub(super) resolved: bool,
}

/// The facts about one URL.
#[derive(Clone, Debug)]
pub(super) struct UrlFacts {
    pub(super) destinations: Vec<InternalDestination>,
    pub(super) schemes: Vec<String>,
    /// Number of bytes of opaque data that it carries.
    pub(super) opaque_bytes: usize,
    /// The policy denies one of its hosts.
    pub(super) denied: bool,
    /// The name of one of its hosts could not be resolved.
    pub(super) unresolved: bool,
    /// One of its hosts looks like another one.
    pub(super) homograph: bool,
    hosts: Vec<(String, Option<u16>)>,
    origin: UrlOrigin,
    /// It was too long to be read.
    too_much: bool,
}

impl UrlFacts {
    /// Examines an argument that is a URL.
    pub(super) fn argument(text: &str, place: &Place<'_>) -> Self {
        let mut facts = Self::new(UrlOrigin::Argument);
        // A server calls the address that is registered with it for events.
        let is_hook = place.tool.is_some_and(registers_hook);
        let returns = !is_hook && place.outbound().argument.is_some_and(is_return);
        facts.examine(text, place, 0, HostOrigin::Trick, returns);
        if is_document(text) {
            // The policy may still deny the host that a client would make of its first part, and a
            // name that leads inside is one.
            facts.destinations.retain(|inside| inside.resolved);
            facts.unresolved = false;
        }
        // The whole URL is escaped: its receiver decodes the escapes first.
        if !text.contains("://") && text.contains("%3") {
            facts.examine(
                &fold::decode_percent(text),
                place,
                0,
                HostOrigin::Standard,
                returns,
            );
        }
        // A line end within an address starts a header of the request: the host is the part before
        // it.
        if let Some((line, _)) = text.trim().split_once(['\r', '\n']) {
            facts.examine(line, place, 0, HostOrigin::Trick, returns);
        }
        if !is_active_content(text) {
            facts.schemes.retain(|scheme| scheme != "data");
        }
        // A `file:` URL within the roots is not an escape through a browser.
        if facts.schemes.iter().any(|scheme| scheme == "file") && path::is_inside(text, place) {
            facts.schemes.retain(|scheme| scheme != "file");
        }
        facts
    }

    /// Examines an argument that is a path, or an address in its place. Files are covered by the
    /// rules for paths.
    pub(super) fn path(text: &str, place: &Place<'_>) -> Self {
        let mut facts = Self::new(UrlOrigin::Argument);
        if text.contains("://") || text.contains(":\\\\") {
            facts.examine(text, place, 0, HostOrigin::Standard, false);
            facts.schemes.retain(|scheme| scheme != "file");
        }
        facts
    }

    /// Examines a word of a command.
    pub(super) fn command(text: &str, place: &Place<'_>) -> Self {
        let mut facts = Self::new(UrlOrigin::Command);
        // In such a word, the number that a loop counts up follows the last dot.
        if text.ends_with('.') {
            return facts;
        }
        // A word of a command ends at white space; a longer one is a text that contains a URL.
        let word = text.split_whitespace().next().unwrap_or("");
        // The placeholder for an unknown value is not a disguise, and not the name of a host
        // either.
        facts.examine(
            &word.replace(UNKNOWN, "$()"),
            place,
            0,
            HostOrigin::Trick,
            false,
        );
        facts
    }

    /// Returns the facts for a command with more URLs than can be judged.
    pub(super) fn too_many() -> Self {
        let mut facts = Self::new(UrlOrigin::Command);
        facts.give_up();
        facts
    }

    fn give_up(&mut self) {
        self.too_much = true;
        self.destinations.push(InternalDestination {
            reach: Reach::Metadata,
            odd: true,
            resolved: false,
        });
    }

    fn new(origin: UrlOrigin) -> Self {
        let destinations = Vec::new();
        let schemes = Vec::new();
        let hosts = Vec::new();
        Self {
            destinations,
            schemes,
            opaque_bytes: 0,
            denied: false,
            unresolved: false,
            homograph: false,
            hosts,
            origin,
            too_much: false,
        }
    }

    pub(super) fn is_from(&self, origin: UrlOrigin) -> bool {
        self.origin == origin
    }

    /// Reports whether one of its hosts is among `patterns`.
    pub(super) fn has_host_among(&self, patterns: &[HostPattern]) -> bool {
        let fits_any = |(host, port): &(String, Option<u16>)| {
            let address = host.parse::<IpAddr>().ok();
            patterns
                .iter()
                .any(|pattern| pattern.fits(host, address, *port))
        };
        !patterns.is_empty() && self.hosts.iter().any(fits_any)
    }

    /// Returns the reading by which it was found.
    pub(super) fn reading(&self) -> &'static str {
        match self.origin {
            _ if self.too_much => work::URL,
            UrlOrigin::Argument => "url",
            UrlOrigin::Command => "command-url",
        }
    }

    /// Examines a URL; `least` is the required certainty that a host is a host, `returns` means
    /// that a browser is sent back to it.
    fn examine(
        &mut self,
        text: &str,
        place: &Place<'_>,
        depth: usize,
        least: HostOrigin,
        returns: bool,
    ) {
        let Some(parsed) = parse(text) else { return };
        if parsed.truncated {
            self.give_up();
        }
        for target in parsed
            .targets
            .iter()
            .filter(|target| target.origin >= least)
        {
            self.examine_host(target, &parsed, place, depth, returns);
        }
        self.schemes.extend(parsed.schemes.iter().cloned());
        if depth < DEPTH {
            self.examine_nested(&parsed, place, depth);
        }
        if depth == 0 {
            self.opaque_bytes = carried::opaque_bytes(&parsed);
        }
    }

    fn examine_host(
        &mut self,
        target: &UrlHost,
        parsed: &ParsedUrl,
        place: &Place<'_>,
        depth: usize,
        returns: bool,
    ) {
        let is_certain = target.origin == HostOrigin::Standard;
        let empty = Hosts::default();
        let hosts = place.scope.map_or(&empty, |ground| &ground.hosts);
        let addresses = address::written_addresses(&target.host);
        if is_certain || target.origin == HostOrigin::Start {
            let decide = |host: &str| hosts.decide(place.tool, host, target.port);
            let plain = addresses
                .first()
                .filter(|_| addresses.len() == 1)
                .map(|written| written.address.to_string());
            match decide(plain.as_deref().unwrap_or(&target.host)) {
                // A policy that allows a host does not allow disguising it.
                HostDecision::Allowed
                    if !target.odd && addresses.iter().all(|written| !written.odd) =>
                {
                    return;
                }
                HostDecision::Denied if is_certain || depth == 0 && target.host.contains('.') => {
                    self.denied = true
                }
                _ => {}
            }
            self.hosts.push((target.host.clone(), target.port));
            self.homograph |= is_certain && carried::looks_like_another(&target.host);
        }
        let number = target.host.bytes().all(|b| b.is_ascii_digit());
        if number && !is_certain && target.host.len() < 9 {
            return;
        }
        let by_address = addresses.iter().filter_map(|written: &WrittenAddress| {
            Some((reach::reach(written.address)?, written.odd))
        });
        let name = addresses.is_empty() && !target.host.contains(':');
        let by_name = names::reach(&target.host)
            .filter(|_| name)
            .map(|reach| (reach, false));
        let scheme = parsed.schemes.last().map_or("", String::as_str);
        let is_resolved_scheme = scheme.is_empty() || RESOLVED_SCHEMES.contains(&scheme);
        let label = !target.host.contains(['.', ':']) && addresses.is_empty();
        let bare = label
            && !returns
            && is_resolved_scheme
            && depth == 0
            && is_label(&target.host)
            && match target.origin {
                HostOrigin::Standard => true,
                HostOrigin::Start => target.port.is_some(),
                HostOrigin::Trick => false,
            };
        let by_label = bare.then_some((Reach::InternalName, false));
        for (reach, odd) in by_address.chain(by_name).chain(by_label) {
            let is_internal_name = reach == Reach::InternalName;
            let is_host = !is_internal_name
                || is_resolved_scheme && depth == 0 && target.origin != HostOrigin::Trick;
            // `metadata` is a word, and a host only where a host is required.
            let is_word = reach == Reach::Metadata && label && !is_certain && target.port.is_none();
            let is_tolerated = self.origin == UrlOrigin::Command
                && !odd
                && !target.odd
                && reach < Reach::LinkLocal;
            if !is_host
                || is_word
                || is_tolerated && target.origin == HostOrigin::Trick
                || returns && reach == Reach::Loopback && !odd
            {
                continue;
            }
            let odd = odd
                || target.odd
                || target.origin == HostOrigin::Trick
                || reach == Reach::WildcardDns;
            self.destinations.push(InternalDestination {
                reach,
                odd,
                resolved: false,
            });
        }
        if name && target.origin != HostOrigin::Trick {
            let stands_for_host = depth == 0
                && is_resolved_scheme
                && (is_certain || self.origin == UrlOrigin::Argument);
            self.resolve(target, place, returns, stands_for_host);
        }
    }

    /// Follows a name to its addresses, if names are resolved. A text that is taken for a host only
    /// because of its place may be something else: only a name that `stands_for_host` counts as
    /// unresolved if it does not exist.
    fn resolve(
        &mut self,
        target: &UrlHost,
        place: &Place<'_>,
        returns: bool,
        stands_for_host: bool,
    ) {
        let Some(lookup) = place.outbound().lookup else {
            return;
        };
        if !is_resolvable(&target.host)
            || names::reach(&target.host).is_some_and(|reach| reach >= Reach::Loopback)
        {
            return;
        }
        let addresses = match lookup.resolution(&target.host) {
            Resolution::Pending => return,
            Resolution::Unresolved => {
                self.unresolved |= stands_for_host;
                return;
            }
            Resolution::Addresses(addresses) => addresses,
        };
        for address in addresses {
            let decision = place.scope.map(|ground| {
                ground
                    .hosts
                    .decide(place.tool, &address.to_string(), target.port)
            });
            match (decision, reach::reach(*address)) {
                (Some(HostDecision::Allowed), _) => {}
                (Some(HostDecision::Denied), _) => self.denied = true,
                (_, Some(Reach::Loopback)) if returns => {}
                (_, Some(reach)) => self.destinations.push(InternalDestination {
                    reach,
                    odd: false,
                    resolved: true,
                }),
                (_, None) => {}
            }
        }
    }

    /// Examines URLs in parameters and in the path of a URL: the server that is called may request
    /// them.
    fn examine_nested(&mut self, parsed: &ParsedUrl, place: &Place<'_>, depth: usize) {
        let (path, query) = parsed
            .path_and_query
            .split_once('?')
            .unwrap_or((&parsed.path_and_query, ""));
        let lower = path.to_ascii_lowercase();
        for (at, _) in lower.match_indices(":/").take(4) {
            let start = lower
                .get(..at)
                .and_then(|before| before.rfind(|c: char| !c.is_ascii_alphanumeric()))
                .map_or(0, |at| at + 1);
            if at > start
                && let Some(inner) = path.get(start..)
            {
                self.examine(inner, place, depth + 1, HostOrigin::Standard, false);
            }
        }
        for pair in query.split(['&', ';', '#', '?']).take(64) {
            let (name, value) = pair.split_once('=').unwrap_or(("", pair));
            let value = fold::decode_percent(value);
            let name = fold::decode_percent(name).to_ascii_lowercase();
            let is_url = value.contains(":/")
                || value.starts_with("//")
                || value.starts_with("\\\\")
                || value.contains(":\\\\");
            let returns = RETURN_PARAMETERS.contains(&name.as_str());
            if is_url {
                self.examine(&value, place, depth + 1, HostOrigin::Standard, returns);
            } else if HOST_PARAMETERS.contains(&name.as_str()) && value.contains(['.', ':']) {
                self.examine(&value, place, depth + 1, HostOrigin::Start, returns);
            }
        }
    }
}

/// Returns the letters and digits of a name, in lower case.
fn letters(name: &str) -> impl Iterator<Item = u8> {
    name.bytes()
        .filter(u8::is_ascii_alphanumeric)
        .map(|byte| byte.to_ascii_lowercase())
}

/// Reports whether an argument names a URL that a browser is sent back to, which no server fetches.
fn is_return(argument: &str) -> bool {
    if argument == DESCRIBED_SERVERS {
        return true;
    }
    let last = argument.rsplit('.').next().unwrap_or(argument);
    last.len() <= 64
        && RETURN_PARAMETERS
            .iter()
            .any(|name| letters(name).eq(letters(last)))
}

/// Reports whether an address without a scheme is a relative path to a document (RFC 3986, section
/// 4.2), rather than a host and a path: `docs.local/readme.md`.
fn is_document(text: &str) -> bool {
    let (path, _) = text.split_once('#').unwrap_or((text, ""));
    let Some((folder, rest)) = path.split_once('/') else {
        return false;
    };
    let end = rest
        .rsplit('/')
        .next()
        .and_then(|name| name.rsplit_once('.'));
    let is_named = end.is_some_and(|(name, end)| !name.is_empty() && DOCUMENTS.contains(&end));
    let is_word = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    is_named
        && folder.starts_with(|c: char| c.is_ascii_alphanumeric())
        && path.chars().all(|c| is_word(c) || c == '/')
        && names::reach(folder) != Some(Reach::Metadata)
        && folder.matches('.').count() < 3
        && !folder.starts_with("127.")
}

/// Reports whether a tool registers an address to which events are sent, or sends a request itself.
fn registers_hook(tool: &str) -> bool {
    let tool = tool.to_ascii_lowercase();
    ["hook", "subscri", "notif", "fetch", "request"]
        .iter()
        .any(|word| tool.contains(word))
}

/// Reports whether a `data:` URL contains something that a browser runs, rather than an image or a
/// file (RFC 2397).
fn is_active_content(text: &str) -> bool {
    let kind = text
        .trim_start()
        .get(5..)
        .and_then(|rest| rest.split([';', ',']).next())
        .unwrap_or("")
        .trim()
        .to_ascii_lowercase();
    ["html", "svg", "xml", "script", "pdf"]
        .iter()
        .any(|word| kind.contains(word))
}

/// Reports whether a name may be that of a host: a template placeholder or a sentence is not.
fn is_label(host: &str) -> bool {
    !host.is_empty()
        && host.len() <= 63
        && host
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_'))
}
