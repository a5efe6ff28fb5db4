//! Searches one string for secrets, including the data encoded in it.

use std::ops::Range;

use super::Secrets;
use crate::detect::secret::budget::{Budget, LOOK_BYTES, MOVED, TRY_BYTES, Unpacking, WEIGHED};
use crate::detect::secret::check::belongs_together;
use crate::detect::secret::context::{
    Assignment, Link, assignment, is_given_secret, is_secret, name_around,
};
use crate::detect::secret::decode;
use crate::detect::secret::escape;
use crate::detect::secret::mirror;
use crate::detect::secret::name::is_of_something_else;
use crate::detect::secret::pieces::{self, begins, start};
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
const JOINED_BYTES: usize = 512;

/// Maps a range of a reading to the range of the current string that it comes from.
pub(super) type Locate<'l> = &'l dyn Fn(Range<usize>) -> Option<Range<usize>>;

/// A search of one string.
pub(super) struct Search<'s> {
    secrets: &'s Secrets,
    place: &'s Place<'s>,
    found: &'s mut Vec<Match>,
    before: usize,
    budget: Budget,
    unpacking: Unpacking<'s>,
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
        found: &'s mut Vec<Match>,
    ) -> Self {
        let budget = Budget::for_length(length);
        let unpacking = Unpacking::new(place.budget);
        Self {
            secrets,
            place,
            before: found.len(),
            found,
            budget,
            unpacking,
            seams: Vec::new(),
        }
    }

    /// Scans a text and the data encoded in it. `locate` maps a range of the text to one of the
    /// current string.
    pub(super) fn through(
        &mut self,
        text: &str,
        facts: &Facts,
        reading: &'static str,
        locate: Locate<'_>,
    ) {
        let mut open = Vec::new();
        self.look((text, facts), reading, 0, &|span| span, locate, &mut open);
        if self.place.direction() == Direction::Outbound {
            let spelt = separated::separated(text)
                .into_iter()
                .map(|found| (found, "separated", DEPTH));
            let labels = separated::labels(text)
                .into_iter()
                .map(|found| (found, "labels", DEPTH - 1));
            for ((span, joined), reading, depth) in spelt.chain(labels) {
                if self.afford(joined.len() * 2).is_some() {
                    self.look(
                        (&joined, &Facts::new(&joined)),
                        reading,
                        depth,
                        &|_| span.clone(),
                        locate,
                        &mut open,
                    );
                }
            }
        }
        while let Some(View {
            text,
            origin,
            reading,
            depth,
        }) = open.pop().filter(|_| !self.budget.is_spent())
        {
            let facts = Facts::new(&text);
            self.look(
                (&text, &facts),
                reading,
                depth,
                &|_| origin.clone(),
                locate,
                &mut open,
            );
            let plain = decode::folded(&text, &facts)
                .filter(|_| depth < DEPTH && self.afford(text.len() * 2).is_some());
            open.extend(plain.map(|text| View {
                text,
                origin,
                reading,
                depth: depth + 1,
            }));
        }
    }

    fn look(
        &mut self,
        (text, facts): (&str, &Facts),
        reading: &'static str,
        depth: usize,
        origin: &dyn Fn(Range<usize>) -> Range<usize>,
        locate: Locate<'_>,
        open: &mut Vec<View>,
    ) {
        let secrets = self.secrets;
        let mut mirrored = false;
        let mut opened_to = 0;
        let mut named_to = 0;
        let mut known: Option<(Option<Range<usize>>, Option<Assignment>)> = None;
        let tell = |search: &mut Self, rule: usize, span: Range<usize>, secret: &str| {
            search.tell(rule, locate(origin(span)), reading, secret);
        };
        secrets.sieve.pass(text, facts.code_runs(), |met| {
            match met {
                ScanItem::Run { start, end } if depth < DEPTH && start >= opened_to => {
                    mirrored |= mirror::ends_first(text, start);
                    if let Some((rule, span, secret)) = self.loose(text, start..end) {
                        tell(self, rule, span, &secret);
                    }
                    let opened = self.afford(end - start).and_then(|()| {
                        decode::open(text, start, end, self.unpacking.room(&self.budget))
                    });
                    let Some(opened) = opened else { return true };
                    self.unpacking.spend(opened.inflated, opened.cut);
                    if self.afford(opened.text.len() * 2).is_none() {
                        return false;
                    }
                    opened_to = opened.end;
                    if let (true, Some(rule)) = (opened.cut, secrets.unread) {
                        tell(self, rule, start..end, "");
                    }
                    let origin = origin(start..opened.end);
                    open.push(View {
                        text: opened.text,
                        origin,
                        reading: opened.reading,
                        depth: depth + 1,
                    });
                }
                ScanItem::Run { .. } => {}
                ScanItem::Literal {
                    last,
                    length,
                    meanings,
                } => {
                    let mut told_to = named_to;
                    let mut named = false;
                    for meaning in meanings {
                        match *meaning {
                            Meaning::Shape(index) => {
                                if let Some((rule, span, secret)) =
                                    self.forwards(text, index, last, length)
                                {
                                    tell(self, rule, span, &secret);
                                }
                            }
                            Meaning::Backwards(index) => {
                                if let Some((rule, span, secret)) =
                                    self.backwards(text, index, last, length)
                                {
                                    tell(self, rule, span, &secret);
                                }
                            }
                            Meaning::Mirrored => mirrored = true,
                            Meaning::Name | Meaning::Near(_) if last < named_to => {}
                            Meaning::Name | Meaning::Near(_) => {
                                // One name can contain many words, and one word can belong to many
                                // shapes: look the value up only once.
                                if !named {
                                    named = true;
                                    let name = name_around(text, last, length);
                                    if known.as_ref().is_none_or(|(known, _)| *known != name) {
                                        let given = |name| {
                                            self.afford(LOOK_BYTES)
                                                .and_then(|()| assignment(text, name))
                                        };
                                        let value = name.clone().and_then(given);
                                        known = Some((name, value));
                                    }
                                }
                                let Some((_, Some(given))) = &known else {
                                    continue;
                                };
                                let near = if let Meaning::Near(index) = meaning {
                                    Some(*index)
                                } else {
                                    None
                                };
                                if let Some(rule) = self.weigh(text, given, near) {
                                    told_to = given.value.end;
                                    let secret = text.get(given.value.clone()).unwrap_or_default();
                                    tell(self, rule, given.value.clone(), secret);
                                }
                            }
                        }
                    }
                    named_to = told_to;
                }
            }
            !self.budget.is_spent()
        });
        if let (Some(rule), Some(ground)) = (secrets.own, self.place.ground) {
            ground.own.find(text, |span| tell(self, rule, span, ""));
        }
        let seen = self
            .place
            .seen
            .filter(|_| self.place.direction() == Direction::Outbound);
        if let (Some(rule), Some(seen)) = (secrets.elsewhere, seen) {
            seen.tell_elsewhere(text, |span| tell(self, rule, span, ""));
        }
        if mirrored
            && depth < DEPTH
            && reading != "reversed"
            && self.afford(text.len() * 2).is_some()
        {
            let (text, origin) = (mirror::reversed(text), origin(0..text.len()));
            open.push(View {
                text,
                origin,
                reading: "reversed",
                depth: depth + 1,
            });
        }
        if depth < DEPTH
            && escape::has_escapes(text, facts)
            && self.afford(text.len() * 2).is_some()
        {
            let whole = origin(0..text.len());
            open.extend(escape::unescape(text).map(|text| View {
                text,
                origin: whole,
                reading: "unescaped",
                depth: depth + 1,
            }));
        }
    }

    /// Pays for a detailed check. If the budget does not cover it, reports a match of the rule for
    /// unread content.
    fn afford(&mut self, bytes: usize) -> Option<()> {
        let paid = self.budget.take(bytes.max(LOOK_BYTES));
        if let (None, Some(rule)) = (paid, self.secrets.unread) {
            self.tell(rule, None, "unread", "");
        }
        paid
    }

    /// Finds a match of a shape whose literal ends at `last`, either as written or assembled from
    /// pieces.
    fn forwards(
        &mut self,
        text: &str,
        index: u32,
        last: usize,
        length: usize,
    ) -> Option<(usize, Range<usize>, String)> {
        let (rule, shape) = self.secrets.shapes.get(index as usize)?;
        let (start, contiguous) = start(text, last, length)?;
        if !begins(text, start) && !self.seams.contains(&start) {
            return None;
        }
        if !shape.goes_on(text, last + 1) {
            return None;
        }
        self.afford(shape.cost(text, start))?;
        if contiguous
            && let Some(hit) = shape.at(text, start, length, &|at| self.seams.contains(&at))
        {
            return Some((*rule, hit.span, text.get(hit.secret)?.to_owned()));
        }
        let most = if shape.long() {
            REACH
        } else {
            JOINED_BYTES.min(shape.longest().saturating_add(1))
        };
        let joined = pieces::squeeze(text.get(start..)?, most)?;
        self.afford(joined.cost())?;
        let hit = shape.at(&joined.text, 0, length, &|at| joined.begins(at))?;
        let secret = joined.text.get(hit.secret)?;
        let whole = shape.long() || belongs_together(secret.get(length.min(secret.len())..)?);
        (whole && joined.crossed(hit.span.end)).then(|| {
            (
                *rule,
                start..start + joined.end_of(hit.span.end),
                secret.to_owned(),
            )
        })
    }

    /// Finds a match of a shape without literals that begins at the start of a run of characters,
    /// or at the start of the longer run that this is part of.
    fn loose(&mut self, text: &str, run: Range<usize>) -> Option<(usize, Range<usize>, String)> {
        let part = text
            .get(run.clone())
            .filter(|part| part.len() <= JOINED_BYTES)?;
        let part = part.get(..LOOK_BYTES).unwrap_or(part);
        self.afford(LOOK_BYTES)?;
        if !belongs_together(part) {
            return None;
        }
        let before = text
            .as_bytes()
            .get(run.start.saturating_sub(JOINED_BYTES)..run.start)?;
        let belongs = |byte: &u8| {
            byte.is_ascii_alphanumeric()
                || matches!(byte, b'.' | b':' | b'-' | b'_' | b'|' | b'~' | b'/')
        };
        let whole = run.start - before.iter().rev().take_while(|byte| belongs(byte)).count();
        let within = text
            .as_bytes()
            .get(whole..run.start)?
            .iter()
            .enumerate()
            .rev();
        let parts = within
            .filter(|(_, byte)| !byte.is_ascii_alphanumeric())
            .map(|(at, _)| whole + at + 1);
        let starts = std::iter::once(whole).chain(parts.take(TRIES));
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
                self.afford(TRY_BYTES)?;
                if let Some(hit) = shape.at(text, start, 0, &|_| false) {
                    return Some((*rule, hit.span, text.get(hit.secret)?.to_owned()));
                }
            }
        }
        None
    }

    /// Finds a match of a shape whose literal, reversed, ends at `last`.
    fn backwards(
        &mut self,
        text: &str,
        index: u32,
        last: usize,
        length: usize,
    ) -> Option<(usize, Range<usize>, String)> {
        let (rule, shape) = self.secrets.shapes.get(index as usize)?;
        let (_, contiguous) = start(text, last, length)?;
        if !contiguous
            || text
                .as_bytes()
                .get(last + 1)
                .is_some_and(u8::is_ascii_alphanumeric)
        {
            return None;
        }
        let most = if shape.long() { REACH } else { JOINED_BYTES };
        let from = (last + 1).saturating_sub(most);
        let from = (from..=last).find(|at| text.is_char_boundary(*at))?;
        let part = text.get(from..=last)?;
        // A key of one line contains no white space.
        let part = if shape.long() {
            part
        } else {
            part.rsplit(|c: char| c.is_ascii_whitespace()).next()?
        };
        self.afford(part.len() * MOVED)?;
        let reversed: String = part.chars().rev().collect();
        let hit = shape.at(&reversed, 0, length, &|_| false)?;
        Some((
            *rule,
            (last + 1).checked_sub(hit.span.end)?..last + 1,
            reversed.get(hit.secret)?.to_owned(),
        ))
    }

    /// Returns the rule by which a named value is a secret.
    fn weigh(&mut self, text: &str, given: &Assignment, near: Option<u32>) -> Option<usize> {
        let name = text.get(given.name.clone())?;
        let value = text.get(given.value.clone())?;
        self.afford(value.len() * WEIGHED)?;
        if let Some((rule, shape)) = near.and_then(|index| self.secrets.shapes.get(index as usize))
        {
            let between = text
                .get(given.name.end..given.value.start)
                .unwrap_or_default()
                .to_ascii_lowercase();
            let meant = given.link != Link::Words
                || ["key", "token", "secret", "pass", "cred"]
                    .iter()
                    .any(|word| between.contains(word));
            return (meant && !is_of_something_else(name) && shape.is(value)).then_some(*rule);
        }
        is_given_secret(text, given).then_some(self.secrets.named?)
    }

    /// Checks a value under the name of the argument that it belongs to.
    pub(super) fn argument(
        &mut self,
        name: &str,
        text: &str,
        locate: impl Fn(Range<usize>) -> Option<Range<usize>>,
    ) {
        let name = name.rsplit('.').next().unwrap_or(name);
        let value = text.trim();
        if value.len() > JOINED_BYTES || value.contains(char::is_whitespace) {
            return;
        }
        if let (true, Some(rule)) = (is_secret(name, value, Link::Sign), self.secrets.named) {
            self.tell(rule, locate(0..text.len()), "argument", value);
        }
    }

    pub(super) fn joined(&mut self, joined: &pieces::AssembledText) {
        let mut open = Vec::new();
        let before = self.found.len();
        // Keep only findings that no piece contains by itself, and those for the joined text as a
        // whole.
        self.seams = joined.starts();
        self.look(
            (&joined.text, &Facts::new(&joined.text)),
            "joined",
            DEPTH - 1,
            &|span| span,
            &Some,
            &mut open,
        );
        let mut index = 0;
        self.found.retain_mut(|found| {
            index += 1;
            if index <= before {
                return true;
            }
            let crosses = found.span.as_ref().is_none_or(|span| joined.crosses(span));
            found.span = None;
            crosses
        });
        self.seams.clear();
        while let Some(View {
            text,
            origin,
            reading,
            depth,
        }) = open.pop()
        {
            if joined.crosses(&origin) {
                self.look(
                    (&text, &Facts::new(&text)),
                    reading,
                    depth,
                    &|_| origin.clone(),
                    &|_| None,
                    &mut open,
                );
            }
        }
    }

    fn tell(
        &mut self,
        mut rule: usize,
        span: Option<Range<usize>>,
        reading: &'static str,
        secret: &str,
    ) {
        match (self.place.seen, self.place.direction()) {
            (Some(seen), Direction::Inbound) if !secret.is_empty() => seen.note(secret),
            (Some(seen), Direction::Outbound) if seen.came_from_here(secret) => {
                rule = self.secrets.returned.unwrap_or(rule)
            }
            _ => {}
        }
        let known = self.found.get(self.before..).unwrap_or_default();
        let span = span.filter(|_| known.len() < SPANS);
        if !known
            .iter()
            .any(|found| found.rule == rule && found.span == span)
        {
            self.found.push(Match {
                rule,
                span,
                reading,
            });
        }
    }
}
