//! Sums of signals that are close together.

use std::ops::Range;

/// Approximate length of a window in bytes.
const WINDOW_BYTES: usize = 320;
/// The same for texts that are not ASCII, whose letters take two or three bytes.
pub(super) const WINDOW_BYTES_WIDE: usize = 480;
/// Distance from a window in which phrases that indicate a mention count.
const AROUND_BYTES: usize = 200;
/// Points that each further intent in a window adds: several intents together are more significant
/// than each by itself.
pub(super) const PAIR: i32 = 6;
/// Maximum number of points that mentions of attacks and examples around a window can subtract.
const MENTION: i32 = -70;
/// Points of mentions at or below which a text is about wording, so that the estimate of the model
/// of wording, which only considers words, does not count.
const ABOUT_WORDS: i32 = -50;
/// Points for quotation marks around a phrase.
const QUOTED: i32 = -15;
/// Maximum number of signals examined in one window.
const EVENTS: usize = 48;
/// Maximum number of windows reported for one text.
const WINDOWS: usize = 64;

/// A signal that was found. Kept small, because a text full of attacks has one for every few bytes.
#[derive(Debug)]
pub(super) struct Event {
    start: u32,
    end: u32,
    pub(super) phrase: u32,
    pub(super) intent: u32,
    pub(super) weight: i32,
    pub(super) everywhere: bool,
    /// Whether the signal is an estimate by the model of wording, which cannot tell who is
    /// speaking.
    pub(super) is_estimate: bool,
    /// Whether the signal has already been added to the findings.
    pub(super) is_reported: bool,
}

impl Event {
    pub(super) fn new(
        span: Range<usize>,
        phrase: u32,
        (intent, weight): (u32, i32),
        everywhere: bool,
    ) -> Self {
        // No text is this long: the size of a message is limited to far less.
        let [start, end] = [span.start, span.end].map(|at| u32::try_from(at).unwrap_or(u32::MAX));
        Self {
            start,
            end,
            phrase,
            intent,
            weight,
            everywhere,
            is_estimate: false,
            is_reported: false,
        }
    }

    pub(super) fn span(&self) -> Range<usize> {
        self.start as usize..self.end as usize
    }
}

/// Sorts events in the order that [`windows`] expects.
pub(super) fn sort(events: &mut [Event]) {
    events.sort_by_key(|event| (event.start, event.end));
}

/// A part of a text and the points of its signals.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Window {
    pub(super) span: Range<usize>,
    pub(super) points: i32,
}

/// Returns windows that each start with a signal; of overlapping windows, the one with the most
/// points. The events must be sorted.
pub(super) fn windows(
    text: &str,
    events: &[Event],
    counts: impl Fn(&Event) -> bool,
) -> Vec<Window> {
    let length = if text.is_ascii() {
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
    let mut windows: Vec<Window> = Vec::new();
    let mut nearest = 0;
    let mut best = BestOfIntents::new(&signals);
    for (at, first) in signals.iter().enumerate() {
        let start = first.span().start;
        let limit = start + length;
        best.clear();
        everywhere.iter().for_each(|event| best.add(event));
        let mut estimated_intent = None;
        let mut end = start;
        let within = signals
            .iter()
            .skip(at)
            .take(EVENTS)
            .take_while(|event| event.span().start < limit);
        for event in within.clone() {
            end = end.max(event.span().end.min(limit.max(first.span().end)));
            if event.is_estimate {
                estimated_intent = Some(event.intent);
            }
            best.add(event);
        }
        while mentions
            .get(nearest)
            .is_some_and(|mention| mention.span().end + AROUND_BYTES < start)
        {
            nearest += 1;
        }
        let nearby = mentions
            .iter()
            .skip(nearest)
            .take(EVENTS)
            .take_while(|mention| mention.span().start < end + AROUND_BYTES);
        let mut mention_points = nearby
            .map(|mention| mention.weight)
            .fold(0, i32::saturating_add);
        if let Some(intent) = estimated_intent.filter(|_| mention_points <= ABOUT_WORDS) {
            best.remove(intent);
        }
        if mention_points < 0
            && within
                .clone()
                .any(|event| is_quoted(text, event.span().start))
        {
            mention_points += QUOTED;
        }
        let points = best.points() + mention_points.max(MENTION);
        let window = Window {
            span: start..end,
            points,
        };
        let has_room = windows.len() < WINDOWS;
        match windows.last_mut() {
            Some(last) if window.span.start < last.span.end => {
                let better = if window.points > last.points {
                    window
                } else {
                    continue;
                };
                *last = better;
            }
            // A text with this many windows is an attack or a book about attacks: the rest counts
            // as one window.
            Some(last) if !has_room => {
                last.points = last.points.max(window.points);
                last.span.end = window.span.end;
            }
            _ => windows.push(window),
        }
    }
    windows
}

/// The signal with the highest weight for each intent in a window.
struct BestOfIntents {
    /// For each intent, the highest weight and the number of the window that it was found in.
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
        // Weights are positive.
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
