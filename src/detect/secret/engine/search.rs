//! Searches one string for secrets, including the data encoded in it.

use std::ops::Range;

use super::Secrets;
use crate::detect::secret::budget::{
    Budget, CHECK_BYTES, EVALUATION_PASSES, REVERSAL_COST, TRY_BYTES, Unpacking,
};
use crate::detect::secret::check::is_single_value;
use crate::detect::secret::context::{
    Assignment, Link, assignment, is_assigned_secret, is_secret, name_around,
};
use crate::detect::secret::decode;
use crate::detect::secret::escape;
use crate::detect::secret::host_label;
use crate::detect::secret::mirror;
use crate::detect::secret::name::is_unrelated;
use crate::detect::secret::pieces::{self, begins_word, literal_start};
use crate::detect::secret::separated;
use crate::detect::secret::shape::REACH;
use crate::detect::secret::sieve::{Meaning, ScanItem};
use crate::detect::{Match, Place};
use crate::message::Direction;
use crate::text::Facts;

/// Maximum depth of nested encodings that are decoded.
const DEPTH: usize = 3;
/// Number of positions within a run of characters, besides its beginning, at which a shape without
/// literals is tried.
const TRIES: usize = 4;
/// Maximum number of spans reported for one text; beyond it, the finding is for the whole text.
const SPANS: usize = 64;
/// Maximum length of a secret that is assembled from pieces or read backwards, in bytes; keys of
/// several lines may be longer.
const ASSEMBLED_BYTES: usize = 512;

/// Maps a range of a reading to the range of the current string that it comes from.
pub(super) type Locate<'l> = &'l dyn Fn(Range<usize>) -> Option<Range<usize>>;

/// A search of one string.
pub(super) struct Search<'s> {
    secrets: &'s Secrets,
    place: &'s Place<'s>,
    matches: &'s mut Vec<Match>,
    matches_before: usize,
    budget: Budget,
    unpacking: Unpacking<'s>,
    /// Texts that were decoded and are to be scanned.
    pending: Vec<View>,
    /// Positions where pieces begin, in a text that is assembled from the strings of a call.
    seams: Vec<usize>,
}

/// A text to scan, and where it comes from.
struct View {
    text: String,
    /// The part of the current text that this is another reading of.
    origin: Range<usize>,
    reading: &'static str,
    depth: usize,
}

impl<'s> Search<'s> {
    pub(super) fn new(
        secrets: &'s Secrets,
        place: &'s Place<'s>,
        length: usize,
        matches: &'s mut Vec<Match>,
    ) -> Self {
        let budget = Budget::for_text(length);
        let unpacking = Unpacking::new(place.budget);
        Self {
            secrets,
            place,
            matches_before: matches.len(),
            matches,
            budget,
            unpacking,
            pending: Vec::new(),
            seams: Vec::new(),
        }
    }

    /// Scans a text and the data encoded in it. `locate` maps a range of the text to one of the
    /// current string.
    pub(super) fn scan_reading(
        &mut self,
        text: &str,
        facts: &Facts,
        reading: &'static str,
        locate: Locate<'_>,
    ) {
        self.scan_view(text, facts, reading, 0, &|span| span, locate);
        if self.place.direction() == Direction::Outbound {
            if let Some(rule) = self.secrets.host_label {
                for span in host_label::encoded_labels(text) {
                    self.report(rule, locate(span), reading, "");
                }
            }
            let spelled_out = separated::separated_passages(text)
                .into_iter()
                .map(|passage| (passage, "separated", DEPTH));
            let labels = separated::label_passages(text)
                .into_iter()
                .map(|passage| (passage, "labels", DEPTH - 1));
            for ((span, joined), reading, depth) in spelled_out.chain(labels) {
                if self.take_budget(joined.len() * 2).is_some() {
                    let facts = Facts::new(&joined);
                    self.scan_view(&joined, &facts, reading, depth, &|_| span.clone(), locate);
                }
            }
        }
        while let Some(View {
            text,
            origin,
            reading,
            depth,
        }) = self.pending.pop().filter(|_| !self.budget.is_exhausted())
        {
            let facts = Facts::new(&text);
            self.scan_view(&text, &facts, reading, depth, &|_| origin.clone(), locate);
            let plain = decode::fold_lookalikes(&text, &facts)
                .filter(|_| depth < DEPTH && self.take_budget(text.len() * 2).is_some());
            self.pending.extend(plain.map(|text| View {
                text,
                origin,
                reading,
                depth: depth + 1,
            }));
        }
        self.pending.clear();
    }

    /// Scans a text, and adds what is decoded from it to the pending texts.
    fn scan_view(
        &mut self,
        text: &str,
        facts: &Facts,
        reading: &'static str,
        depth: usize,
        origin: &dyn Fn(Range<usize>) -> Range<usize>,
        locate: Locate<'_>,
    ) {
        let secrets = self.secrets;
        let mut mirrored = false;
        let mut decoded_end = 0;
        let mut named_end = 0;
        let mut last_named: Option<(Option<Range<usize>>, Option<Assignment>)> = None;
        let report = |search: &mut Self, rule: usize, span: Range<usize>, secret: &str| {
            search.report(rule, locate(origin(span)), reading, secret);
        };
        secrets.sieve.scan(text, facts.code_runs(), |item| {
            match item {
                ScanItem::Run { start, end } if depth < DEPTH && start >= decoded_end => {
                    mirrored |= mirror::is_reversed_base64(text, start);
                    if let Some((rule, span, secret)) = self.match_loose(text, start..end) {
                        report(self, rule, span, &secret);
                    }
                    let decoded = self.take_budget(end - start).and_then(|()| {
                        decode::decode(text, start, end, self.unpacking.available(&self.budget))
                    });
                    let Some(decoded) = decoded else { return true };
                    self.unpacking
                        .spend(decoded.unpacked_bytes, decoded.truncated);
                    if self.take_budget(decoded.text.len() * 2).is_none() {
                        return false;
                    }
                    decoded_end = decoded.end;
                    if let (true, Some(rule)) = (decoded.truncated, secrets.unread) {
                        report(self, rule, start..end, "");
                    }
                    let origin = origin(start..decoded.end);
                    self.pending.push(View {
                        text: decoded.text,
                        origin,
                        reading: decoded.reading,
                        depth: depth + 1,
                    });
                }
                ScanItem::Run { .. } => {}
                ScanItem::Literal {
                    last,
                    length,
                    meanings,
                } => {
                    let mut reported_end = named_end;
                    let mut looked_up = false;
                    for meaning in meanings {
                        match *meaning {
                            Meaning::Shape(index) => {
                                if let Some((rule, span, secret)) =
                                    self.match_forward(text, index, last, length)
                                {
                                    report(self, rule, span, &secret);
                                }
                            }
                            Meaning::Reversed(index) => {
                                if let Some((rule, span, secret)) =
                                    self.match_backward(text, index, last, length)
                                {
                                    report(self, rule, span, &secret);
                                }
                            }
                            Meaning::Mirrored => mirrored = true,
                            Meaning::Name | Meaning::Near(_) if last < named_end => {}
                            Meaning::Name | Meaning::Near(_) => {
                                // One name can contain many words, and one word can belong to many
                                // shapes: look the value up only once.
                                if !looked_up {
                                    looked_up = true;
                                    let name = name_around(text, last, length);
                                    if last_named.as_ref().is_none_or(|(known, _)| *known != name) {
                                        let find_assignment = |name| {
                                            self.take_budget(CHECK_BYTES)
                                                .and_then(|()| assignment(text, name))
                                        };
                                        let value = name.clone().and_then(find_assignment);
                                        last_named = Some((name, value));
                                    }
                                }
                                let Some((_, Some(named_value))) = &last_named else {
                                    continue;
                                };
                                let shape_index = if let Meaning::Near(index) = meaning {
                                    Some(*index)
                                } else {
                                    None
                                };
                                if let Some(rule) =
                                    self.rule_for_named(text, named_value, shape_index)
                                {
                                    reported_end = named_value.value.end;
                                    let secret =
                                        text.get(named_value.value.clone()).unwrap_or_default();
                                    report(self, rule, named_value.value.clone(), secret);
                                }
                            }
                        }
                    }
                    named_end = reported_end;
                }
            }
            !self.budget.is_exhausted()
        });
        if let (Some(rule), Some(scope)) = (secrets.guarded, self.place.scope) {
            scope
                .guarded_values
                .find(text, |span| report(self, rule, span, ""));
        }
        let session_secrets = self
            .place
            .session_secrets
            .filter(|_| self.place.direction() == Direction::Outbound);
        if let (Some(rule), Some(session_secrets)) = (secrets.from_other_server, session_secrets) {
            session_secrets.find_from_others(text, |span| report(self, rule, span, ""));
        }
        if mirrored
            && depth < DEPTH
            && reading != "reversed"
            && self.take_budget(text.len() * 2).is_some()
        {
            let (text, origin) = (mirror::reverse(text), origin(0..text.len()));
            self.pending.push(View {
                text,
                origin,
                reading: "reversed",
                depth: depth + 1,
            });
        }
        if depth < DEPTH
            && escape::has_escapes(text, facts)
            && self.take_budget(text.len() * 2).is_some()
        {
            let whole = origin(0..text.len());
            self.pending.extend(escape::unescape(text).map(|text| View {
                text,
                origin: whole,
                reading: "unescaped",
                depth: depth + 1,
            }));
        }
    }

    /// Pays for a detailed check. If the budget does not cover it, reports a match of the rule for
    /// unread content.
    fn take_budget(&mut self, bytes: usize) -> Option<()> {
        let granted = self.budget.take(bytes.max(CHECK_BYTES));
        if let (None, Some(rule)) = (granted, self.secrets.unread) {
            self.report(rule, None, "unread", "");
        }
        granted
    }

    /// Finds a match of a shape whose literal ends at `last`, either as written or assembled from
    /// pieces.
    fn match_forward(
        &mut self,
        text: &str,
        index: u32,
        last: usize,
        length: usize,
    ) -> Option<(usize, Range<usize>, String)> {
        let (rule, shape) = self.secrets.shapes.get(index as usize)?;
        let (start, contiguous) = literal_start(text, last, length)?;
        if !begins_word(text, start) && !self.seams.contains(&start) {
            return None;
        }
        if !shape.may_continue(text, last + 1) {
            return None;
        }
        self.take_budget(shape.cost(text, start))?;
        if contiguous
            && let Some(hit) = shape.match_at(text, start, length, &|at| self.seams.contains(&at))
        {
            return Some((*rule, hit.span, text.get(hit.secret)?.to_owned()));
        }
        let max_length = if shape.is_long() {
            REACH
        } else {
            ASSEMBLED_BYTES.min(shape.longest().saturating_add(1))
        };
        let assembled = pieces::assemble(text.get(start..)?, max_length)?;
        self.take_budget(assembled.cost())?;
        let hit = shape.match_at(&assembled.text, 0, length, &|at| assembled.has_seam_at(at))?;
        let secret = assembled.text.get(hit.secret)?;
        let is_single = shape.is_long() || is_single_value(secret.get(length.min(secret.len())..)?);
        (is_single && assembled.has_seam_before(hit.span.end)).then(|| {
            (
                *rule,
                start..start + assembled.original_end(hit.span.end),
                secret.to_owned(),
            )
        })
    }

    /// Finds a match of a shape without literals that begins at the start of a run of characters,
    /// or at the start of the longer run that this is part of.
    fn match_loose(
        &mut self,
        text: &str,
        run: Range<usize>,
    ) -> Option<(usize, Range<usize>, String)> {
        let part = text
            .get(run.clone())
            .filter(|part| part.len() <= ASSEMBLED_BYTES)?;
        let part = part.get(..CHECK_BYTES).unwrap_or(part);
        self.take_budget(CHECK_BYTES)?;
        if !is_single_value(part) {
            return None;
        }
        let before = text
            .as_bytes()
            .get(run.start.saturating_sub(ASSEMBLED_BYTES)..run.start)?;
        let belongs = |byte: &u8| {
            byte.is_ascii_alphanumeric()
                || matches!(byte, b'.' | b':' | b'-' | b'_' | b'|' | b'~' | b'/')
        };
        let run_start = run.start - before.iter().rev().take_while(|byte| belongs(byte)).count();
        let preceding = text
            .as_bytes()
            .get(run_start..run.start)?
            .iter()
            .enumerate()
            .rev();
        let parts = preceding
            .filter(|(_, byte)| !byte.is_ascii_alphanumeric())
            .map(|(at, _)| run_start + at + 1);
        let starts = std::iter::once(run_start).chain(parts.take(TRIES));
        for start in starts {
            let Some(byte) = text.as_bytes().get(start) else {
                continue;
            };
            let shapes = self
                .secrets
                .loose
                .iter()
                .filter_map(|index| self.secrets.shapes.get(*index));
            for (rule, shape) in shapes.filter(|(_, shape)| shape.begins_with(*byte)) {
                self.take_budget(TRY_BYTES)?;
                if let Some(hit) = shape.match_at(text, start, 0, &|_| false) {
                    return Some((*rule, hit.span, text.get(hit.secret)?.to_owned()));
                }
            }
        }
        None
    }

    /// Finds a match of a shape whose literal, reversed, ends at `last`.
    fn match_backward(
        &mut self,
        text: &str,
        index: u32,
        last: usize,
        length: usize,
    ) -> Option<(usize, Range<usize>, String)> {
        let (rule, shape) = self.secrets.shapes.get(index as usize)?;
        let (_, contiguous) = literal_start(text, last, length)?;
        if !contiguous
            || text
                .as_bytes()
                .get(last + 1)
                .is_some_and(u8::is_ascii_alphanumeric)
        {
            return None;
        }
        let max_length = if shape.is_long() {
            REACH
        } else {
            ASSEMBLED_BYTES
        };
        let from = (last + 1).saturating_sub(max_length);
        let from = (from..=last).find(|at| text.is_char_boundary(*at))?;
        let part = text.get(from..=last)?;
        // A key of one line contains no white space.
        let part = if shape.is_long() {
            part
        } else {
            part.rsplit(|c: char| c.is_ascii_whitespace()).next()?
        };
        self.take_budget(part.len() * REVERSAL_COST)?;
        let reversed: String = part.chars().rev().collect();
        let hit = shape.match_at(&reversed, 0, length, &|_| false)?;
        Some((
            *rule,
            (last + 1).checked_sub(hit.span.end)?..last + 1,
            reversed.get(hit.secret)?.to_owned(),
        ))
    }

    /// Returns the rule by which a named value is a secret.
    fn rule_for_named(
        &mut self,
        text: &str,
        assignment: &Assignment,
        shape_index: Option<u32>,
    ) -> Option<usize> {
        let name = text.get(assignment.name.clone())?;
        let value = text.get(assignment.value.clone())?;
        self.take_budget(value.len() * EVALUATION_PASSES)?;
        if let Some((rule, shape)) =
            shape_index.and_then(|index| self.secrets.shapes.get(index as usize))
        {
            let between = text
                .get(assignment.name.end..assignment.value.start)
                .unwrap_or_default()
                .to_ascii_lowercase();
            let is_meant = assignment.link != Link::Words
                || ["key", "token", "secret", "pass", "cred"]
                    .iter()
                    .any(|word| between.contains(word));
            return (is_meant && !is_unrelated(name) && shape.matches_whole(value))
                .then_some(*rule);
        }
        is_assigned_secret(text, assignment).then_some(self.secrets.named?)
    }

    /// Checks a value under the name of the argument that it belongs to.
    pub(super) fn check_argument(
        &mut self,
        name: &str,
        text: &str,
        locate: impl Fn(Range<usize>) -> Option<Range<usize>>,
    ) {
        let name = name.rsplit('.').next().unwrap_or(name);
        let value = text.trim();
        if value.len() > ASSEMBLED_BYTES || value.contains(char::is_whitespace) {
            return;
        }
        if let (true, Some(rule)) = (is_secret(name, value, Link::Sign), self.secrets.named) {
            self.report(rule, locate(0..text.len()), "argument", value);
        }
    }

    pub(super) fn scan_assembled(&mut self, joined: &pieces::AssembledText) {
        let before = self.matches.len();
        // Keep only findings that no piece contains by itself, and those for the joined text as a
        // whole.
        self.seams = joined.piece_starts();
        let facts = Facts::new(&joined.text);
        self.scan_view(
            &joined.text,
            &facts,
            "joined",
            DEPTH - 1,
            &|span| span,
            &Some,
        );
        let mut index = 0;
        self.matches.retain_mut(|found| {
            index += 1;
            if index <= before {
                return true;
            }
            let crosses = found
                .span
                .as_ref()
                .is_none_or(|span| joined.has_seam_within(span));
            found.span = None;
            crosses
        });
        self.seams.clear();
        while let Some(View {
            text,
            origin,
            reading,
            depth,
        }) = self.pending.pop()
        {
            if joined.has_seam_within(&origin) {
                self.scan_view(
                    &text,
                    &Facts::new(&text),
                    reading,
                    depth,
                    &|_| origin.clone(),
                    &|_| None,
                );
            }
        }
    }

    fn report(
        &mut self,
        mut rule: usize,
        span: Option<Range<usize>>,
        reading: &'static str,
        secret: &str,
    ) {
        match (self.place.session_secrets, self.place.direction()) {
            (Some(session_secrets), Direction::Inbound) if !secret.is_empty() => {
                session_secrets.record(secret)
            }
            (Some(session_secrets), Direction::Outbound)
                if session_secrets.is_from_this_server(secret) =>
            {
                rule = self.secrets.returned.unwrap_or(rule)
            }
            _ => {}
        }
        let reported = self.matches.get(self.matches_before..).unwrap_or_default();
        let span = span.filter(|_| reported.len() < SPANS);
        if !reported
            .iter()
            .any(|earlier| earlier.rule == rule && earlier.span == span)
        {
            self.matches.push(Match::new(rule, span, reading));
        }
    }
}
