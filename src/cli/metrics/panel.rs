//! The dashboard as data, and as the JSON that Grafana reads.

#![allow(clippy::disallowed_types, reason = "a dashboard is JSON")]
#![allow(clippy::indexing_slicing, reason = "by a key of an object that is made here, which cannot fail")]

use serde_json::{Value, json};

use super::query::Query;

/// Columns of a dashboard.
const COLUMNS: u8 = 24;

/// A row of panels.
pub(super) struct Row {
    /// What it is about.
    pub(super) title: &'static str,
    /// From left to right, as many beside each other as there is room for.
    pub(super) panels: Vec<Panel>,
}

/// A panel.
pub(super) struct Panel {
    title: &'static str,
    /// What it shows and what to make of it.
    about: &'static str,
    show: Show,
    unit: Unit,
    /// Columns and lines of the grid.
    size: (u8, u8),
    /// Queries and what their series are called.
    targets: Vec<(String, String)>,
    /// From which values on it has which colour; green below.
    thresholds: Vec<(f64, &'static str)>,
    /// Values that are shown as words, and their colours.
    words: &'static [(&'static str, &'static str, &'static str)],
    /// What it shows where there is nothing.
    nothing: Option<&'static str>,
}

#[derive(Clone, Copy, PartialEq)]
enum Show {
    Stat,
    Lines,
    Bars,
    Table,
    States,
}

/// What is counted.
#[derive(Clone, Copy)]
pub(super) enum Unit {
    /// Things.
    Count,
    /// Requests a second.
    Requests,
    /// Other things a second.
    PerSecond,
    /// Time.
    Seconds,
    /// Bytes.
    Bytes,
    /// A share, or processors: 1 is 100 %.
    Share,
    /// A moment, in seconds since 1970, shown as how long ago it is.
    Since,
}

impl Unit {
    fn of_grafana(self) -> &'static str {
        match self {
            Self::Count => "short",
            Self::Requests => "reqps",
            Self::PerSecond => "cps",
            Self::Seconds => "s",
            Self::Bytes => "bytes",
            Self::Share => "percentunit",
            Self::Since => "dateTimeFromNow",
        }
    }

    /// Values are whole: digits behind a point would be made by reckoning.
    fn is_whole(self) -> bool {
        matches!(self, Self::Count)
    }
}

impl Panel {
    fn new(show: Show, size: (u8, u8), title: &'static str, query: &Query) -> Self {
        let targets = vec![(query.to_string(), query.legend())];
        let (about, unit) = ("", Unit::Count);
        Self { title, about, show, unit, size, targets, thresholds: Vec::new(), words: &[], nothing: None }
    }

    /// One number.
    pub(super) fn stat(title: &'static str, query: &Query) -> Self {
        Self::new(Show::Stat, (4, 4), title, query)
    }

    /// Lines over time.
    pub(super) fn lines(title: &'static str, query: &Query) -> Self {
        Self::new(Show::Lines, (8, 8), title, query)
    }

    /// Counts over time, one upon the other.
    pub(super) fn bars(title: &'static str, query: &Query) -> Self {
        Self::new(Show::Bars, (8, 8), title, query)
    }

    /// The greatest ones, in rows.
    pub(super) fn table(title: &'static str, query: &Query) -> Self {
        Self::new(Show::Table, (12, 8), title, query)
    }

    /// States over time; each value with its word and its colour.
    pub(super) fn states(
        title: &'static str,
        query: &Query,
        words: &'static [(&'static str, &'static str, &'static str)],
    ) -> Self {
        Self { words, ..Self::new(Show::States, (8, 8), title, query) }
    }

    /// What it shows and what to make of it.
    pub(super) fn about(self, about: &'static str) -> Self {
        Self { about, ..self }
    }

    /// Not whole things, but these.
    pub(super) fn unit(self, unit: Unit) -> Self {
        Self { unit, ..self }
    }

    /// So many columns of 24.
    pub(super) fn wide(self, columns: u8) -> Self {
        Self { size: (columns, self.size.1), ..self }
    }

    /// So many lines of the grid.
    pub(super) fn high(self, lines: u8) -> Self {
        Self { size: (self.size.0, lines), ..self }
    }

    /// Yellow from here on.
    pub(super) fn warn(mut self, from: f64) -> Self {
        self.thresholds.push((from, "orange"));
        self
    }

    /// Red from here on.
    pub(super) fn alarm(mut self, from: f64) -> Self {
        self.thresholds.push((from, "red"));
        self
    }

    /// Another query, its series called this.
    pub(super) fn also(mut self, query: &dyn std::fmt::Display, legend: &str) -> Self {
        self.targets.push((query.to_string(), legend.to_owned()));
        self
    }

    /// The series of the first query are called this.
    pub(super) fn called(mut self, legend: &str) -> Self {
        if let Some((_, first)) = self.targets.first_mut() {
            legend.clone_into(first);
        }
        self
    }

    /// The first query is this one instead, put together of several.
    pub(super) fn asking(mut self, expr: String) -> Self {
        if let Some((first, _)) = self.targets.first_mut() {
            *first = expr;
        }
        self
    }

    /// What it shows where there is nothing.
    pub(super) fn or(self, nothing: &'static str) -> Self {
        Self { nothing: Some(nothing), ..self }
    }

    /// Its title.
    #[cfg(test)]
    pub(super) fn title(&self) -> &'static str {
        self.title
    }

    /// Its queries, and what their series are called.
    #[cfg(test)]
    pub(super) fn queries(&self) -> impl Iterator<Item = &(String, String)> {
        self.targets.iter()
    }

    fn json(&self, id: usize, at: (u8, u32)) -> Value {
        let targets: Vec<Value> = self.targets.iter().zip('A'..='Z').map(|(target, name)| self.target(target, name)).collect();
        let mut defaults = json!({
            "unit": self.unit.of_grafana(),
            "thresholds": { "mode": "absolute", "steps": self.steps() },
            "mappings": self.mappings(),
        });
        if self.unit.is_whole() && self.show != Show::Lines {
            defaults["decimals"] = json!(0);
        }
        if let Some(nothing) = self.nothing {
            defaults["noValue"] = json!(nothing);
        }
        if let Some(custom) = self.custom() {
            defaults["custom"] = custom;
        }
        if matches!(self.show, Show::Lines | Show::Bars) && !matches!(self.unit, Unit::Seconds) {
            defaults["min"] = json!(0);
        }
        let mut panel = json!({
            "id": id,
            "title": self.title,
            "description": self.about,
            "type": self.of_grafana(),
            "datasource": source(),
            "gridPos": { "x": at.0, "y": at.1, "w": self.size.0, "h": self.size.1 },
            "targets": targets,
            "fieldConfig": { "defaults": defaults, "overrides": [] },
            "options": self.options(),
        });
        if self.show == Show::Table {
            panel["transformations"] = json!([{
                "id": "organize",
                "options": { "excludeByName": { "Time": true }, "renameByName": { "Value": "count" } },
            }]);
        }
        panel
    }

    fn target(&self, (expr, legend): &(String, String), name: char) -> Value {
        let mut target = json!({ "refId": name.to_string(), "datasource": source(), "expr": expr });
        match self.show {
            Show::Table => {
                target["format"] = json!("table");
                target["instant"] = json!(true);
            }
            // A single number is of now; over a longer span Grafana would ask for as many as there are points.
            Show::Stat => target["instant"] = json!(true),
            Show::Lines | Show::Bars | Show::States => {}
        }
        if self.show != Show::Table {
            target["legendFormat"] = json!(if legend.is_empty() { self.title } else { legend });
        }
        target
    }

    fn of_grafana(&self) -> &'static str {
        match self.show {
            Show::Stat => "stat",
            Show::Lines | Show::Bars => "timeseries",
            Show::Table => "table",
            Show::States => "state-timeline",
        }
    }

    fn steps(&self) -> Vec<Value> {
        let steps = self.thresholds.iter().map(|(from, colour)| json!({ "color": colour, "value": from }));
        std::iter::once(json!({ "color": "green", "value": null })).chain(steps).collect()
    }

    fn mappings(&self) -> Vec<Value> {
        let one = |(value, text, colour): &(&str, &str, &str)| json!({ "type": "value", "options": { *value: { "text": text, "color": colour } } });
        self.words.iter().map(one).collect()
    }

    fn custom(&self) -> Option<Value> {
        let line = if self.thresholds.is_empty() { "off" } else { "dashed" };
        match self.show {
            Show::Lines => Some(json!({
                "drawStyle": "line", "fillOpacity": 10, "showPoints": "never", "spanNulls": true,
                "thresholdsStyle": { "mode": line },
            })),
            Show::Bars => Some(json!({ "drawStyle": "bars", "fillOpacity": 80, "stacking": { "mode": "normal" } })),
            Show::States => Some(json!({ "fillOpacity": 80, "lineWidth": 0 })),
            Show::Stat | Show::Table => None,
        }
    }

    fn options(&self) -> Value {
        let tooltip = json!({ "mode": "multi", "sort": "desc" });
        match self.show {
            Show::Stat => json!({
                "reduceOptions": { "calcs": ["lastNotNull"] }, "graphMode": "none", "textMode": "auto",
                "colorMode": if self.thresholds.is_empty() { "value" } else { "background" },
            }),
            Show::Lines => json!({
                "legend": { "displayMode": "table", "placement": "bottom", "calcs": ["lastNotNull", "max"] }, "tooltip": tooltip,
            }),
            Show::Bars => json!({
                "legend": { "displayMode": "table", "placement": "bottom", "calcs": ["sum"], "sortBy": "Total", "sortDesc": true },
                "tooltip": tooltip,
            }),
            Show::Table => json!({ "showHeader": true, "sortBy": [{ "displayName": "count", "desc": true }] }),
            Show::States => {
                json!({ "showValue": "never", "legend": { "displayMode": "list", "placement": "bottom" }, "tooltip": tooltip })
            }
        }
    }
}

fn source() -> Value {
    json!({ "type": "prometheus", "uid": "${source}" })
}

/// What the viewer chooses from: its name, what it is called, and where its values come from.
pub(super) struct Variable {
    /// As `$name` in queries.
    pub(super) name: &'static str,
    /// Above the list.
    pub(super) title: &'static str,
    /// The query for the values.
    pub(super) values: String,
    /// Whether "all" is anything at all.
    pub(super) any: bool,
}

impl Variable {
    fn json(&self) -> Value {
        let mut made = json!({
            "name": self.name, "label": self.title, "type": "query", "datasource": source(),
            "query": { "query": self.values, "refId": self.name }, "definition": self.values,
            "refresh": 2, "includeAll": true, "multi": true, "sort": 1,
            "current": { "text": ["All"], "value": ["$__all"] },
        });
        // Without this, "all" is each of the values: of what else Prometheus watches, nothing then gets in.
        if self.any {
            made["allValue"] = json!(".*");
        }
        made
    }
}

/// What is marked on all charts: what it is called, its query, its colour and its words.
pub(super) type Mark = (&'static str, String, &'static str, &'static str);

/// The dashboard as Grafana reads it.
pub(super) fn dashboard(rows: &[Row], variables: &[Variable], marks: &[Mark]) -> Value {
    let (mut panels, mut id, mut y) = (Vec::new(), 0, 0);
    for row in rows {
        id += 1;
        panels.push(json!({
            "id": id, "title": row.title, "type": "row", "collapsed": false, "panels": [],
            "gridPos": { "x": 0, "y": y, "w": COLUMNS, "h": 1 },
        }));
        y += 1;
        let (mut x, mut high) = (0, 0);
        for panel in &row.panels {
            if x + panel.size.0 > COLUMNS {
                (x, y, high) = (0, y + u32::from(high), 0);
            }
            id += 1;
            panels.push(panel.json(id, (x, y)));
            x += panel.size.0;
            high = high.max(panel.size.1);
        }
        y += u32::from(high);
    }
    let source_choice = json!({
        "name": "source", "label": "Data source", "type": "datasource", "query": "prometheus",
        "current": { "text": "Prometheus", "value": "prometheus" },
    });
    let list: Vec<Value> = std::iter::once(source_choice).chain(variables.iter().map(Variable::json)).collect();
    let mark = |(name, expr, colour, words): &Mark| {
        json!({
            "name": name, "enable": true, "datasource": source(), "iconColor": colour, "expr": expr, "titleFormat": words,
        })
    };
    json!({
        "uid": "lychgate", "title": "lychgate", "tags": ["mcp", "security"],
        "description": "Generated by `lychgate metrics dashboard`: changes are lost on upgrade.",
        "schemaVersion": 39, "version": 1, "editable": true, "refresh": "30s", "graphTooltip": 1, "timezone": "browser",
        "time": { "from": "now-6h", "to": "now" },
        "templating": { "list": list },
        "annotations": { "list": marks.iter().map(mark).collect::<Vec<_>>() },
        "panels": panels,
    })
}
