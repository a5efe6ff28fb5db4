//! What is asked of Prometheus, put together from the table: a metric that is renamed there is renamed in every query, and
//! a label or a value that the table does not know is found by a test.

use std::fmt;

use crate::record::table::{Kind, Label, Metric, Values};

/// How long a span is meant.
#[derive(Clone, Copy)]
pub(super) enum Span {
    /// What one point of a chart stands for.
    Step,
    /// All the time that the dashboard shows.
    Shown,
    /// As long as this.
    Last(&'static str),
}

impl Span {
    fn text(self) -> &'static str {
        match self {
            Self::Step => "$__rate_interval",
            Self::Shown => "$__range",
            Self::Last(span) => span,
        }
    }
}

/// A query of one metric.
#[derive(Clone)]
pub(super) struct Query {
    metric: Metric,
    what: What,
    /// Labels and what they have to match.
    only: Vec<(&'static str, &'static str)>,
    /// Labels and what they must not match.
    without: Vec<(&'static str, &'static str)>,
    aggregate: &'static str,
    by: Vec<&'static str>,
    top: Option<u8>,
    /// Whether series at zero are left out.
    above_zero: bool,
    /// Whether what the viewer of the dashboard chose counts.
    chosen: bool,
}

#[derive(Clone, Copy)]
enum What {
    Now,
    Rate(Span),
    Increase(Span),
    Quantile(&'static str, Span),
    Changes(Span),
}

/// How fast a counter grows, a second.
pub(super) fn rate(metric: Metric, span: Span) -> Query {
    Query::new(metric, What::Rate(span))
}

/// By how much a counter grew. Where series begin at their first hit, which `increase` does not see, that hit counts too: of
/// what was not there before the span, all that it came to. (A series may have gone since, with a restart.)
pub(super) fn increase(metric: Metric, span: Span) -> Query {
    Query::new(metric, What::Increase(span))
}

/// What a gauge says now.
pub(super) fn now(metric: Metric) -> Query {
    Query::new(metric, What::Now)
}

/// How often a gauge changed.
pub(super) fn changes(metric: Metric, span: Span) -> Query {
    Query::new(metric, What::Changes(span))
}

/// A quantile of a histogram.
pub(super) fn quantile(quantile: &'static str, metric: Metric, span: Span) -> Query {
    Query::new(metric, What::Quantile(quantile, span))
}

impl Query {
    fn new(metric: Metric, what: What) -> Self {
        Self {
            metric,
            what,
            only: Vec::new(),
            without: Vec::new(),
            aggregate: "sum",
            by: Vec::new(),
            top: None,
            above_zero: false,
            chosen: true,
        }
    }

    /// Only series whose label matches.
    pub(super) fn only(mut self, label: &'static str, matches: &'static str) -> Self {
        self.only.push((label, matches));
        self
    }

    /// Only series whose label does not match.
    pub(super) fn without(mut self, label: &'static str, matches: &'static str) -> Self {
        self.without.push((label, matches));
        self
    }

    /// The series that have these labels in common become one: their sum.
    pub(super) fn by(mut self, labels: &[&'static str]) -> Self {
        self.by = labels.to_vec();
        self
    }

    /// Their greatest.
    pub(super) fn max_by(mut self, labels: &[&'static str]) -> Self {
        self.aggregate = "max";
        self.by(labels)
    }

    /// Their least.
    pub(super) fn min_by(mut self, labels: &[&'static str]) -> Self {
        self.aggregate = "min";
        self.by(labels)
    }

    /// None that are zero.
    pub(super) fn above_zero(mut self) -> Self {
        self.above_zero = true;
        self
    }

    /// How many series there are.
    pub(super) fn count(mut self) -> Self {
        self.aggregate = "count";
        self
    }

    /// For an alert rule, where nobody chooses anything.
    pub(super) fn everywhere(mut self) -> Self {
        self.chosen = false;
        self
    }

    /// Only the greatest ones, and none that are zero.
    pub(super) fn top(mut self, count: u8) -> Self {
        self.top = Some(count);
        self.above_zero = true;
        self
    }

    /// What a chart calls each series, by the labels that are left.
    pub(super) fn legend(&self) -> String {
        self.by.iter().map(|label| format!("{{{{{label}}}}}")).collect::<Vec<_>>().join(" ")
    }

    /// Whether series of the metric begin at their first hit rather than at zero.
    fn begins_late(&self) -> bool {
        let is_late = |label: &Label| label.name != "upstream" && !matches!(label.values, Values::Fixed(_));
        self.metric.labels.iter().any(is_late)
    }

    fn selector(&self, suffix: &str) -> String {
        let mut matchers: Vec<String> = Vec::new();
        if self.chosen {
            matchers.extend([r#"job=~"$job""#.to_owned(), r#"instance=~"$instance""#.to_owned()]);
            if self.metric.labels.iter().any(|label| label.name == "upstream") {
                matchers.push(r#"upstream=~"$upstream""#.to_owned());
            }
        }
        for (label, matches) in &self.only {
            let plain = matches.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-'));
            matchers.push(format!("{label}{}\"{matches}\"", if plain { "=" } else { "=~" }));
        }
        matchers.extend(self.without.iter().map(|(label, matches)| format!("{label}!~\"{matches}\"")));
        let matchers = if matchers.is_empty() { String::new() } else { format!("{{{}}}", matchers.join(",")) };
        format!("{}{suffix}{matchers}", self.metric)
    }
}

impl fmt::Display for Query {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let series = self.selector("");
        let inner = match self.what {
            What::Now => series,
            What::Rate(span) => format!("rate({series}[{}])", span.text()),
            What::Changes(span) => format!("changes({series}[{}])", span.text()),
            What::Increase(span) if self.begins_late() => {
                let span = span.text();
                format!("(max_over_time({series}[{span}]) unless {series} offset {span}) or increase({series}[{span}])")
            }
            What::Increase(span) => format!("increase({series}[{}])", span.text()),
            What::Quantile(quantile, span) => {
                let by: Vec<&str> = self.by.iter().copied().chain(["le"]).collect();
                let buckets = self.selector("_bucket");
                let (by, span) = (by.join(", "), span.text());
                // Of what did not happen there is no quantile, and NaN would be shown.
                return write!(f, "histogram_quantile({quantile}, sum by ({by}) (rate({buckets}[{span}]))) >= 0");
            }
        };
        let by = if self.by.is_empty() { String::new() } else { format!(" by ({})", self.by.join(", ")) };
        let gathered = format!("{}{by} ({inner})", self.aggregate);
        let zero = if self.above_zero { " > 0" } else { "" };
        match self.top {
            Some(count) => write!(f, "topk({count}, {gathered}{zero})"),
            None => write!(f, "{gathered}{zero}"),
        }
    }
}

/// What a metric is, for the reference page.
pub(super) fn kind(metric: Metric) -> &'static str {
    match metric.kind {
        Kind::Counter => "counter",
        Kind::Gauge => "gauge",
        Kind::Histogram(_) => "histogram",
    }
}
