//! Which sums the phrases of a part of a text can still reach. Most parts reach none, whatever their
//! phrases turn out to be, so that no regex has to run there.

use super::engine::SumRule;
use super::window::PAIR;

/// The sums that a part of a text can reach with the signals found there and the phrases that have
/// not been searched for yet.
pub(super) struct ReachableSums<'s> {
    sums: Vec<OpenSum<'s>>,
    /// For each intent: the weights of signals that count, and of phrases not yet searched for.
    intents: Vec<IntentWeights>,
}

/// A sum, and the most points that its intents can have.
struct OpenSum<'s> {
    rule: &'s SumRule,
    /// Points that the signals have to reach.
    required: i32,
    points: i32,
    intents: i32,
}

/// The weights of one intent, all of which are positive.
#[derive(Default)]
struct IntentWeights {
    found: i32,
    open: Vec<i32>,
}

impl IntentWeights {
    fn highest(&self) -> i32 {
        self.open.iter().copied().fold(self.found, i32::max)
    }
}

impl OpenSum<'_> {
    fn is_reachable(&self) -> bool {
        self.points + PAIR * (self.intents - 1).max(0) >= self.required
    }

    fn change(&mut self, before: i32, after: i32) {
        self.points += after - before;
        self.intents += i32::from(after > 0) - i32::from(before > 0);
    }
}

impl<'s> ReachableSums<'s> {
    /// Starts with no signals and no phrases. `extra` returns the points that a sum adds for the
    /// reading and the place of the text.
    pub(super) fn new(
        sums: &'s [SumRule],
        intents: usize,
        extra: impl Fn(&SumRule) -> i32,
    ) -> Self {
        let open_sum = |rule: &'s SumRule| OpenSum {
            rule,
            required: rule.sum.points - extra(rule),
            points: 0,
            intents: 0,
        };
        Self {
            sums: sums.iter().map(open_sum).collect(),
            intents: std::iter::repeat_with(IntentWeights::default)
                .take(intents)
                .collect(),
        }
    }

    /// Adds a phrase to be searched for.
    pub(super) fn add_phrase(&mut self, intent: u32, weight: i32) {
        self.change(intent, weight, |weights| weights.open.push(weight));
    }

    /// Removes a phrase that was added, because it is searched for now or not at all.
    pub(super) fn remove_phrase(&mut self, intent: u32, weight: i32) {
        self.change(intent, weight, |weights| {
            if let Some(at) = weights.open.iter().position(|open| *open == weight) {
                weights.open.swap_remove(at);
            }
        });
    }

    /// Adds a signal that was found.
    pub(super) fn add_signal(&mut self, intent: u32, weight: i32) {
        self.change(intent, weight, |weights| {
            weights.found = weights.found.max(weight);
        });
    }

    /// Reports whether it matters if a phrase occurs: whether a sum that counts it can be reached.
    /// Phrases that indicate a mention subtract from all sums.
    pub(super) fn matters(&self, intent: u32, weight: i32) -> bool {
        self.sums
            .iter()
            .any(|sum| sum.is_reachable() && (weight < 0 || sum.rule.counts_intent(intent)))
    }

    fn change(&mut self, intent: u32, weight: i32, change: impl FnOnce(&mut IntentWeights)) {
        if weight <= 0 {
            return;
        }
        let Some(weights) = self.intents.get_mut(intent as usize) else {
            return;
        };
        let before = weights.highest();
        change(weights);
        let after = weights.highest();
        if before == after {
            return;
        }
        for sum in self
            .sums
            .iter_mut()
            .filter(|sum| sum.rule.counts_intent(intent))
        {
            sum.change(before, after);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::Sum;
    use super::*;

    /// A sum of at least `points` points that counts the given intents of three.
    fn sum(points: i32, intents: [bool; 3]) -> SumRule {
        let sum = Sum {
            points,
            disguise: 0,
            odd: 0,
            encoded: 0,
            hidden: 0,
            intents: Vec::new(),
            except: Vec::new(),
        };
        SumRule::new(0, sum, intents.to_vec())
    }

    #[test]
    fn phrase_matters_while_a_sum_that_counts_it_can_be_reached() {
        let rules = [sum(100, [true, true, false]), sum(47, [true, false, true])];
        let mut sums = ReachableSums::new(&rules, 3, |_| 0);
        assert!(!sums.matters(0, 40) && !sums.matters(0, -20));
        sums.add_signal(0, 40);
        sums.add_phrase(1, 30);
        assert!(!sums.matters(1, 30), "76 points of 100");
        sums.add_phrase(2, 1);
        assert!(sums.matters(2, 1), "47 points of 47");
        assert!(sums.matters(1, -20), "a mention subtracts from it");
        assert!(!sums.matters(1, 30), "does not count there");
        sums.add_phrase(1, 54);
        assert!(sums.matters(1, 30), "100 points of 100");
        sums.remove_phrase(1, 54);
        assert!(!sums.matters(1, 30), "only the highest of an intent counts");
        sums.remove_phrase(2, 1);
        assert!(!sums.matters(1, -20));
    }

    #[test]
    fn points_of_the_reading_count() {
        let rules = [sum(100, [true, true, true])];
        let mut sums = ReachableSums::new(&rules, 3, |_| 60);
        sums.add_phrase(0, 40);
        assert!(sums.matters(0, 40));
    }
}
