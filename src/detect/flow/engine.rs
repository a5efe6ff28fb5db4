//! Searches outgoing text for data that came in.

use super::compact_text::CompactText;
use super::net::with_signs;
use super::piece::{FoundPiece, Look, Piece, folded, pieces};
use super::session::{FlowContext, sayable};
use super::spec::{Destination, Spec};
use super::taint_store::{TaintReason, TaintState};
use crate::detect::secret::unescape;
use crate::detect::{Detector, Match, Place, Surface};
use crate::message::{Direction, Role};
use crate::text::Text;

/// Maximum length in bytes of an argument whose phrases are remembered as the agent's own while no
/// recognizable piece has come in yet.
const PHRASED_BYTES: usize = 512;

/// Maximum number of pieces of an argument that are looked up in the tool's schema; all others
/// count as not found there.
const SCHEMA_ASKS: usize = 64;

/// All flow rules of a set.
#[derive(Debug)]
pub(super) struct Flows {
    carries: Vec<(usize, TaintReason, Destination, Vec<Piece>)>,
    completes: Vec<(usize, bool)>,
}

impl Flows {
    pub(super) fn new(rules: &[(usize, &Spec)]) -> Self {
        let mut carries = Vec::new();
        let mut completes = Vec::new();
        for (rule, spec) in rules {
            match spec {
                Spec::Carries { from, to, pieces } => {
                    carries.push((*rule, *from, *to, pieces.clone()))
                }
                Spec::Completes { guessed } => completes.push((*rule, *guessed)),
            }
        }
        Self { carries, completes }
    }
}

impl Detector for Flows {
    fn scan(&self, text: &Text<'_>, place: &Place<'_>, found: &mut Vec<Match>) {
        let Some(here) = place.flow.filter(|_| concerns(place)) else {
            return;
        };
        let plain = text.plain();
        let lower = folded(plain);
        let empty = here.session.traces.look(TaintState::is_empty);
        let says = sayable(plain);
        if empty && !says {
            return;
        }
        let before = found.len();
        let mut search = Search {
            flows: self,
            here,
            found,
            before,
            schema: None,
            asks: SCHEMA_ASKS,
        };
        let same = lower.len() == plain.len();
        here.session.traces.look(|kept| {
            let look = match (empty, plain.len() <= PHRASED_BYTES) {
                (true, true) => Look::All,
                (true, false) => Look::References,
                (false, _) => Look::Compare,
            };
            pieces(&lower, look, &mut |piece| {
                if says && kept.label(piece.hash).is_none() {
                    here.session.note_said(piece.hash);
                }
                if !empty {
                    let span = Some(piece.span.clone())
                        .filter(|_| same)
                        .map(|span| text.locate(span));
                    search.weigh(kept, &piece, "plain", span);
                }
            });
            if empty {
                return;
            }
            if let Some(signs) = with_signs(&lower) {
                search.through(kept, &signs, "spelt", None);
            }
            if let Some(opened) = unescape(plain) {
                search.through(kept, &opened, "unescaped", None);
            }
            for reading in text.readings() {
                search.through(
                    kept,
                    &reading.text,
                    reading.path,
                    Some(reading.span.clone()),
                );
            }
            for opened in place
                .outbound()
                .script
                .into_iter()
                .flat_map(|script| script.texts())
            {
                search.through(kept, opened, "script", None);
            }
            if kept.has_quarantined() {
                search.squeezed(kept, plain, text);
            }
        });
    }

    fn scan_call(&self, place: &Place<'_>, found: &mut Vec<Match>) {
        let Some(here) = place.flow.filter(|_| !self.completes.is_empty()) else {
            return;
        };
        let (told, guessed, servers, since) = here.completes();
        for (rule, by_guess) in &self.completes {
            if if *by_guess { guessed } else { told } {
                here.session.came_from(*rule, servers.clone(), since);
                found.push(Match {
                    rule: *rule,
                    span: None,
                    reading: "session",
                });
            }
        }
    }
}

/// Reports whether a string is one that a server acts on.
fn concerns(place: &Place<'_>) -> bool {
    let asks = || {
        let methods = [
            "resources/read",
            "resources/subscribe",
            "prompts/get",
            "completion/complete",
        ];
        place.method.is_some_and(|method| methods.contains(&method))
    };
    place.direction() == Direction::Outbound
        && place.role == Role::Value
        && match place.surface {
            Surface::Arguments | Surface::Answer => true,
            Surface::Params => asks(),
            _ => false,
        }
}

/// A search of one string.
struct Search<'s, 'h> {
    flows: &'s Flows,
    here: FlowContext<'h>,
    found: &'s mut Vec<Match>,
    before: usize,
    /// The tool's schema in lower case, once it was needed, and the number of lookups left.
    schema: Option<String>,
    asks: usize,
}

impl Search<'_, '_> {
    /// Compares another reading of the string, or of the part of it at `span`.
    fn through(
        &mut self,
        kept: &TaintState,
        text: &str,
        reading: &'static str,
        span: Option<std::ops::Range<usize>>,
    ) {
        pieces(&folded(text), Look::Compare, &mut |piece| {
            self.weigh(kept, &piece, reading, span.clone())
        });
    }

    /// Searches for quarantined pieces that are inside words, split by white space, or encoded.
    fn squeezed(&mut self, kept: &TaintState, plain: &str, text: &Text<'_>) {
        for squeezed in CompactText::both(plain) {
            kept.prints().find(squeezed.text.as_bytes(), |span, owner| {
                let Some(((hash, piece), encoded)) = kept.owner(owner) else {
                    return;
                };
                let Some(place) = squeezed.locate(&span) else {
                    return;
                };
                if !encoded && !stands_alone(plain, &place) {
                    return;
                }
                let written = squeezed
                    .text
                    .get(span.clone())
                    .filter(|_| !encoded)
                    .unwrap_or_default()
                    .to_lowercase();
                let piece = FoundPiece {
                    piece,
                    hash,
                    text: &written,
                    span,
                };
                let reading = if encoded { "encoded" } else { "squeezed" };
                self.weigh(kept, &piece, reading, Some(text.locate(place)));
            });
        }
    }

    /// Reports whether the tool's own schema contains a piece.
    fn is_of_schema(&mut self, piece: &str) -> bool {
        let Some(schema) = self
            .here
            .schema
            .filter(|_| !piece.is_empty() && self.asks > 0)
        else {
            return false;
        };
        self.asks -= 1;
        let lower = self.schema.get_or_insert_with(|| schema.to_lowercase());
        memchr::memmem::find(lower.as_bytes(), piece.as_bytes()).is_some()
    }

    /// Adds a match for each rule that a piece matches.
    fn weigh(
        &mut self,
        kept: &TaintState,
        piece: &FoundPiece<'_>,
        reading: &'static str,
        span: Option<std::ops::Range<usize>>,
    ) {
        let Some(mark) = kept.label(piece.hash) else {
            return;
        };
        let server = self.here.session.server;
        let outward = self.here.declared.outward;
        for (rule, from, to, wanted) in &self.flows.carries {
            let servers = mark.servers(*from);
            if servers.is_empty() || !wanted.is_empty() && !wanted.contains(&piece.piece) {
                continue;
            }
            let back = servers.has(server) && !outward;
            let goes = match to {
                Destination::Anywhere => true,
                Destination::Elsewhere => !back,
                Destination::Back => back,
                Destination::Outward => outward,
            };
            let known = self.found.get(self.before..).unwrap_or_default();
            if !goes || known.iter().any(|found| found.rule == *rule) {
                continue;
            }
            // A piece that the same server sent openly may go back to it: for example, an agent
            // opens a result that a search returned.
            let opened = *from == TaintReason::Quarantined
                && piece.piece.is_reference()
                && !self.here.declared.untrusted
                && kept.is_clean(piece.hash, server);
            if !opened && !self.is_of_schema(piece.text) {
                self.here
                    .session
                    .came_from(*rule, servers.numbers(), mark.since());
                self.found.push(Match {
                    rule: *rule,
                    span: span.clone(),
                    reading,
                });
            }
        }
    }
}

/// Reports whether the text at `span` is not part of a longer word.
fn stands_alone(text: &str, span: &std::ops::Range<usize>) -> bool {
    let before = text
        .get(..span.start)
        .and_then(|before| before.chars().next_back());
    let after = text.get(span.end..).and_then(|after| after.chars().next());
    !before.is_some_and(char::is_alphanumeric) && !after.is_some_and(char::is_alphanumeric)
}
