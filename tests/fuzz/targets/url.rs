//! Judges any text as a URL: in bounded time, and an internal address is found whatever precedes
//! its `@`.

use std::sync::LazyLock;
use std::time::{Duration, Instant};

use lychgate::config::PolicyConfig;
use lychgate::detect::{Details, OutboundDetails, Place, ReadAs};
use lychgate::message::Direction;
use lychgate::rules::{Library, RuleSet};
use lychgate::text::Text;

const MOST: Duration = Duration::from_secs(2);

static RULES: LazyLock<RuleSet> = LazyLock::new(|| {
    Library::builtin()
        .rule_set(Direction::Outbound, &PolicyConfig::default())
        .expect("the shipped rules")
});

fn refused(text: &str) -> bool {
    let place = Place {
        details: Details::Outbound(OutboundDetails {
            read_as: ReadAs::Url,
            ..OutboundDetails::default()
        }),
        tool: Some("fetch"),
        ..Place::default()
    };
    let mut found = Vec::new();
    RULES.scan(&Text::new(text), &place, &mut found);
    found
        .iter()
        .any(|hit| RULES.rules()[hit.rule].id.as_str().starts_with("url-"))
}

pub fn fuzz(input: &str) {
    let began = Instant::now();
    refused(input);
    let user: String = input
        .chars()
        .filter(|c| c.is_ascii_alphanumeric())
        .take(64)
        .collect();
    for text in [
        format!("http://{user}@127.0.0.1/"),
        format!("http://{user}.example\\@169.254.169.254/{user}"),
        format!("http://10.0.0.1/{user}"),
    ] {
        assert!(refused(&text), "{text}");
    }
    super::assert_in_time(began, MOST, input.len());
}
