//! Signals that stand close together, added up.

use std::ops::Range;

/// A window is about so long, and ends with a sentence.
const WINDOW_BYTES: usize = 320;
/// Letters beyond ASCII take two bytes or three.
const WINDOW_BYTES_WIDE: usize = 480;
/// What tells of mention counts from so far around a window.
const AROUND_BYTES: usize = 200;
/// Each further intent in a window adds so much: together they say more than each by itself.
const PAIR: i32 = 6;
/// The most that talk of attacks and examples around it can take off.
const MENTION: i32 = -70;
/// From here on a text is about the words, and the estimate of a model that only knows words does not count.
const ABOUT_WORDS: i32 = -50;
/// Quotation marks around what is talked of.
const QUOTED: i32 = -15;
/// Most signals looked at in one window.
const EVENTS: usize = 48;
/// Most windows told of one text.
const WINDOWS: usize = 64;

/// A signal that was found. Small: a text full of attacks has one for every few of its bytes.
#[derive(Debug)]
pub(super) struct Event {
    start: u32,
    end: u32,
    pub(super) phrase: u32,
    pub(super) intent: u32,
    pub(super) weight: i32,
    pub(super) everywhere: bool,
    /// It is an estimate by the model of wording, which does not see who speaks.
    pub(super) is_estimate: bool,
    /// It is among the findings.
    pub(super) is_told: bool,
}

impl Event {
    pub(super) fn new(
        span: Range<usize>,
        phrase: u32,
        (intent, weight): (u32, i32),
        everywhere: bool,
    ) -> Self {
        // No text is so long: a message is bounded far below.
        let [start, end] = [span.start, span.end].map(|at| u32::try_from(at).unwrap_or(u32::MAX));
        Self {
            start,
            end,
            phrase,
            intent,
            weight,
            everywhere,
            is_estimate: false,
            is_told: false,
        }
    }

    pub(super) fn span(&self) -> Range<usize> {
        self.start as usize..self.end as usize
    }
}

/// Sorts events as [`windows`] reads them.
pub(super) fn sort(events: &mut [Event]) {
    events.sort_by_key(|event| (event.start, event.end));
}

/// A part of a text, and what its signals come to.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Window {
    pub(super) span: Range<usize>,
    pub(super) points: i32,
}

/// Windows that start with a signal each, those that come to most of those that overlap. The events are sorted.
pub(super) fn windows(
    text: &str,
    events: &[Event],
    counts: impl Fn(&Event) -> bool,
) -> Vec<Window> {
    let wide = if text.is_ascii() {
        WINDOW_BYTES
    } else {
        WINDOW_BYTES_WIDE
    };
    let (signals, mentions): (Vec<&Event>, Vec<&Event>) = events
        .iter()
        .filter(|event| counts(event))
        .partition(|event| event.weight > 0);
    let everywhere: Vec<&Event> = signals
        .iter()
        .copied()
        .filter(|event| event.everywhere)
        .collect();
    let mut found: Vec<Window> = Vec::new();
    let mut nearest = 0;
    let mut best = BestOfIntents::new(&signals);
    for (at, first) in signals.iter().enumerate() {
        let start = first.span().start;
        let limit = start + wide;
        best.clear();
        everywhere.iter().for_each(|event| best.add(event));
        let mut estimated = None;
        let mut end = start;
        let within = signals
            .iter()
            .skip(at)
            .take(EVENTS)
            .take_while(|event| event.span().start < limit);
        for event in within.clone() {
            end = end.max(event.span().end.min(limit.max(first.span().end)));
            if event.is_estimate {
                estimated = Some(event.intent);
            }
            best.add(event);
        }
        while mentions
            .get(nearest)
            .is_some_and(|mention| mention.span().end + AROUND_BYTES < start)
        {
            nearest += 1;
        }
        let near = mentions
            .iter()
            .skip(nearest)
            .take(EVENTS)
            .take_while(|mention| mention.span().start < end + AROUND_BYTES);
        let mut off = near
            .map(|mention| mention.weight)
            .fold(0, i32::saturating_add);
        if let Some(intent) = estimated.filter(|_| off <= ABOUT_WORDS) {
            best.remove(intent);
        }
        if off < 0
            && within
                .clone()
                .any(|event| is_quoted(text, event.span().start))
        {
            off += QUOTED;
        }
        let points = best.points() + off.max(MENTION);
        let window = Window {
            span: start..end,
            points,
        };
        let room = found.len() < WINDOWS;
        match found.last_mut() {
            Some(last) if window.span.start < last.span.end => {
                let better = if window.points > last.points {
                    window
                } else {
                    continue;
                };
                *last = better;
            }
            // So many windows are an attack or a book about them: what is left counts as one.
            Some(last) if !room => {
                last.points = last.points.max(window.points);
                last.span.end = window.span.end;
            }
            _ => found.push(window),
        }
    }
    found
}

/// The best signal of each intent in a window.
struct BestOfIntents {
    /// For each intent, the window that its weight is of, and the weight.
    weights: Vec<(usize, i32)>,
    window: usize,
    intents: i32,
    sum: i32,
}

impl BestOfIntents {
    fn new(signals: &[&Event]) -> Self {
        let intents = signals
            .iter()
            .map(|event| event.intent as usize + 1)
            .max()
            .unwrap_or_default();
        Self {
            weights: vec![(0, 0); intents],
            window: 0,
            intents: 0,
            sum: 0,
        }
    }

    /// Starts the next window.
    fn clear(&mut self) {
        *self = Self {
            weights: std::mem::take(&mut self.weights),
            window: self.window + 1,
            intents: 0,
            sum: 0,
        };
    }

    fn add(&mut self, event: &Event) {
        let Some((window, weight)) = self.weights.get_mut(event.intent as usize) else {
            return;
        };
        if *window != self.window {
            (*window, *weight) = (self.window, 0);
            self.intents += 1;
        }
        // Weights are above zero.
        if event.weight > *weight {
            self.sum += event.weight - *weight;
            *weight = event.weight;
        }
    }

    fn remove(&mut self, intent: u32) {
        let weight = self
            .weights
            .get(intent as usize)
            .filter(|(window, _)| *window == self.window);
        if let Some((_, weight)) = weight {
            self.sum -= weight;
            self.intents -= 1;
        }
    }

    fn points(&self) -> i32 {
        self.sum + PAIR * (self.intents - 1).max(0)
    }
}

fn is_quoted(text: &str, start: usize) -> bool {
    let before = text.get(..start).unwrap_or_default().chars().next_back();
    matches!(
        before,
        Some('"' | '`' | '\u{201c}' | '\u{ab}' | '\u{2018}' | '\u{300c}' | '*')
    )
}
