//! Searches outgoing text for data that came in.

use super::compact_text::CompactText;
use super::net::restore_signs;
use super::piece::{FoundPiece, Look, Piece, fold_text, pieces};
use super::session::{FlowContext, is_recordable};
use super::spec::{Destination, Spec};
use super::taint_store::{TaintReason, TaintState};
use crate::detect::secret::unescape;
use crate::detect::{Detector, Match, Place, Surface};
use crate::message::{Direction, Role};
use crate::text::Text;

/// Maximum length in bytes of an argument whose phrases are remembered as the agent's own while no
/// recognizable piece has come in yet.
const PHRASE_TEXT_BYTES: usize = 512;

/// Maximum number of pieces of an argument that are looked up in the tool's schema; all others
/// count as not found there.
const SCHEMA_LOOKUPS: usize = 64;

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
    fn scan(&self, text: &Text<'_>, place: &Place<'_>, matches: &mut Vec<Match>) {
        let Some(context) = place.flow.filter(|_| is_relevant(place)) else {
            return;
        };
        let plain = text.plain();
        let lower = fold_text(plain);
        let empty = context.session.store.with_state(TaintState::is_empty);
        let recordable = is_recordable(plain);
        if empty && !recordable {
            return;
        }
        let matches_before = matches.len();
        let mut search = Search {
            flows: self,
            context,
            matches,
            matches_before,
            schema: None,
            schema_lookups: SCHEMA_LOOKUPS,
        };
        let same = lower.len() == plain.len();
        context.session.store.with_state(|state| {
            let look = match (empty, plain.len() <= PHRASE_TEXT_BYTES) {
                (true, true) => Look::All,
                (true, false) => Look::References,
                (false, _) => Look::Compare,
            };
            pieces(&lower, look, &mut |piece| {
                if recordable && state.label(piece.hash).is_none() {
                    context.session.record_agent_piece(piece.hash);
                }
                if !empty {
                    let span = Some(piece.span.clone())
                        .filter(|_| same)
                        .map(|span| text.locate(span));
                    search.match_piece(state, &piece, "plain", span);
                }
            });
            if empty {
                return;
            }
            if let Some(signs) = restore_signs(&lower) {
                search.compare_reading(state, &signs, "spelt", None);
            }
            if let Some(opened) = unescape(plain) {
                search.compare_reading(state, &opened, "unescaped", None);
            }
            for reading in text.readings() {
                search.compare_reading(
                    state,
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
                search.compare_reading(state, opened, "script", None);
            }
            if state.has_quarantined() {
                search.compare_compact(state, plain, text);
            }
        });
    }

    fn scan_call(&self, place: &Place<'_>, matches: &mut Vec<Match>) {
        let Some(context) = place.flow.filter(|_| !self.completes.is_empty()) else {
            return;
        };
        let (declared, guessed, servers, since) = context.check_completion();
        for (rule, by_guess) in &self.completes {
            if if *by_guess { guessed } else { declared } {
                context.session.record_source(*rule, servers.clone(), since);
                matches.push(Match::new(*rule, None, "session"));
            }
        }
    }
}

/// Reports whether a string is one that a server acts on.
fn is_relevant(place: &Place<'_>) -> bool {
    let is_server_query = || {
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
            Surface::Params => is_server_query(),
            _ => false,
        }
}

/// A search of one string.
struct Search<'s, 'h> {
    flows: &'s Flows,
    context: FlowContext<'h>,
    matches: &'s mut Vec<Match>,
    matches_before: usize,
    /// The tool's schema in lower case, once it was needed, and the number of lookups left.
    schema: Option<String>,
    schema_lookups: usize,
}

impl Search<'_, '_> {
    /// Compares another reading of the string, or of the part of it at `span`.
    fn compare_reading(
        &mut self,
        state: &TaintState,
        text: &str,
        reading: &'static str,
        span: Option<std::ops::Range<usize>>,
    ) {
        pieces(&fold_text(text), Look::Compare, &mut |piece| {
            self.match_piece(state, &piece, reading, span.clone())
        });
    }

    /// Searches for quarantined pieces that are inside words, split by white space, or encoded.
    fn compare_compact(&mut self, state: &TaintState, plain: &str, text: &Text<'_>) {
        for compact in CompactText::case_variants(plain) {
            state
                .fingerprints()
                .find(compact.text.as_bytes(), |span, owner| {
                    let Some(((hash, piece), encoded)) = state.owner(owner) else {
                        return;
                    };
                    let Some(place) = compact.locate(&span) else {
                        return;
                    };
                    if !encoded && !stands_alone(plain, &place) {
                        return;
                    }
                    let written = compact
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
                    self.match_piece(state, &piece, reading, Some(text.locate(place)));
                });
        }
    }

    /// Reports whether the tool's own schema contains a piece.
    fn is_in_schema(&mut self, piece: &str) -> bool {
        let Some(schema) = self
            .context
            .schema
            .filter(|_| !piece.is_empty() && self.schema_lookups > 0)
        else {
            return false;
        };
        self.schema_lookups -= 1;
        let lower = self.schema.get_or_insert_with(|| schema.to_lowercase());
        memchr::memmem::find(lower.as_bytes(), piece.as_bytes()).is_some()
    }

    /// Adds a match for each rule that a piece matches.
    fn match_piece(
        &mut self,
        state: &TaintState,
        piece: &FoundPiece<'_>,
        reading: &'static str,
        span: Option<std::ops::Range<usize>>,
    ) {
        let Some(label) = state.label(piece.hash) else {
            return;
        };
        let server = self.context.session.server;
        let outward = self.context.declared.outward;
        for (rule, from, to, piece_kinds) in &self.flows.carries {
            let servers = label.servers(*from);
            if servers.is_empty() || !piece_kinds.is_empty() && !piece_kinds.contains(&piece.piece)
            {
                continue;
            }
            let goes_back = servers.contains(server) && !outward;
            let destination_fits = match to {
                Destination::Anywhere => true,
                Destination::Elsewhere => !goes_back,
                Destination::Back => goes_back,
                Destination::Outward => outward,
            };
            let reported = self.matches.get(self.matches_before..).unwrap_or_default();
            if !destination_fits || reported.iter().any(|earlier| earlier.rule == *rule) {
                continue;
            }
            // A piece that the same server sent openly may go back to it: for example, an agent
            // opens a result that a search returned.
            let is_reopening = *from == TaintReason::Quarantined
                && piece.piece.is_reference()
                && !self.context.declared.untrusted
                && state.is_clean(piece.hash, server);
            if !is_reopening && !self.is_in_schema(piece.text) {
                self.context
                    .session
                    .record_source(*rule, servers.numbers(), label.since());
                self.matches.push(Match::new(*rule, span.clone(), reading));
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
