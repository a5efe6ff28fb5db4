//! Judges any text as SQL: in bounded time, and a statement that drops something is found whatever
//! precedes it.

use std::sync::LazyLock;
use std::time::{Duration, Instant};

use lychgate::config::PolicyConfig;
use lychgate::detect::{Details, OutboundDetails, Place, ReadAs};
use lychgate::message::Direction;
use lychgate::rules::{Library, RuleSet};
use lychgate::text::Text;

const MOST: Duration = Duration::from_secs(2);

static RULES: LazyLock<RuleSet> = LazyLock::new(|| {
    let packs = [("databases".to_owned(), true)].into();
    let config = PolicyConfig {
        packs,
        ..PolicyConfig::default()
    };
    Library::builtin()
        .rule_set(Direction::Outbound, &config)
        .expect("the shipped rules")
});

fn found(text: &str, read_only: bool) -> bool {
    let place = Place {
        details: Details::Outbound(OutboundDetails {
            argument: Some("sql"),
            read_as: ReadAs::Sql,
            read_only,
            ..OutboundDetails::default()
        }),
        tool: Some("query"),
        ..Place::default()
    };
    let mut found = Vec::new();
    RULES.scan(&Text::new(text), &place, &mut found);
    !found.is_empty()
}

pub fn fuzz(input: &str) {
    let began = Instant::now();
    found(input, false);
    found(input, true);
    let name: String = input
        .chars()
        .filter(|c| c.is_ascii_alphanumeric())
        .take(64)
        .collect();
    for text in [
        format!("select '{name}'; drop table users"),
        format!("select 1 /* {name} */; drop table t{name}"),
        format!("drop\n/*{name}*/ table -- {name}\n users"),
    ] {
        assert!(found(&text, false), "{text}");
        assert!(found(&text, true), "{text}");
    }
    // A statement that is not a query is found whatever text is around it.
    assert!(
        found(&format!("delete from t where a = '{name}'"), true),
        "{name}"
    );
    super::assert_in_time(began, MOST, input.len());
}
