//! Judges any text as a path: in bounded time, and a path outside of the roots stays outside when
//! it is percent-encoded.

use std::sync::LazyLock;
use std::time::{Duration, Instant};

use lychgate::config::PolicyConfig;
use lychgate::detect::path::{Links, Roots};
use lychgate::detect::{AccessScope, Details, OutboundDetails, Place, ReadAs};
use lychgate::message::Direction;
use lychgate::rules::{Library, RuleSet};
use lychgate::text::Text;

const MOST: Duration = Duration::from_secs(2);

static RULES: LazyLock<RuleSet> = LazyLock::new(|| {
    Library::builtin()
        .rule_set(Direction::Outbound, &PolicyConfig::default())
        .expect("the shipped rules")
});
static SCOPE: LazyLock<AccessScope> = LazyLock::new(|| {
    let links = Links::Map(
        [
            ("/repo/app/link".to_owned(), "../link".to_owned()),
            ("/work/link".to_owned(), "/repo/app/link".to_owned()),
        ]
        .into(),
    );
    AccessScope {
        roots: Roots::new(["/repo/app".to_owned()], links),
        ..AccessScope::default()
    }
});

fn outside(text: &str) -> bool {
    let place = Place {
        details: Details::Outbound(OutboundDetails {
            read_as: ReadAs::Path,
            ..OutboundDetails::default()
        }),
        tool: Some("read_file"),
        scope: Some(&SCOPE),
        ..Place::default()
    };
    let mut found = Vec::new();
    RULES.scan(&Text::new(text), &place, &mut found);
    found
        .iter()
        .any(|hit| RULES.rules()[hit.rule].id.as_str() == "path-outside-roots")
}

pub fn fuzz(input: &str) {
    let began = Instant::now();
    let plain = outside(input);
    if plain && !input.contains(['%', '\n', '\r']) && input.len() < 2000 {
        let encoded: String = input.bytes().map(|b| format!("%{b:02x}")).collect();
        assert!(outside(&encoded), "{input:?} is outside, {encoded} is not");
    }
    super::assert_in_time(began, MOST, input.len());
}
