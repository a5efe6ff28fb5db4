use super::*;
use crate::detect::Place;
use crate::text::Text;

fn detector(rules: &[(&[&str], &[&str])]) -> Box<dyn Detector> {
    let own = |list: &[&str]| {
        list.iter()
            .map(|item| (*item).to_owned())
            .collect::<Vec<_>>()
    };
    let specs: Vec<Spec> = rules
        .iter()
        .map(|(keywords, any)| Spec::new(own(keywords), own(any)).unwrap())
        .collect();
    let numbered: Vec<(usize, &Spec)> = specs.iter().enumerate().collect();
    Pattern::build(&numbered).unwrap()
}

fn scan_text(detector: &dyn Detector, text: &str) -> Vec<(usize, Option<String>)> {
    let text = Text::new(text);
    let mut found = Vec::new();
    detector.scan(&text, &Place::default(), &mut found);
    found
        .into_iter()
        .map(|hit| (hit.rule, hit.span.map(|span| text.raw()[span].to_owned())))
        .collect()
}

fn spans(any: &str, keyword: &str, text: &str) -> Vec<String> {
    scan_text(detector(&[(&[keyword], &[any])]).as_ref(), text)
        .into_iter()
        .map(|(_, span)| span.unwrap_or("*".into()))
        .collect()
}

#[test]
fn a_regex_runs_only_near_its_keyword() {
    let found = |text: &str| spans("[a-z]+ing", "sing", text);
    assert_eq!(found("running and singing"), ["running", "singing"]);
    assert_eq!(found("running"), [""; 0]);
    let far = format!("running {} sing", "x ".repeat(400));
    assert_eq!(found(&far), ["sing"]);
}

#[test]
fn a_long_match_is_followed_to_its_end() {
    let key = format!("-----BEGIN KEY-----\n{}", "QUJD\n".repeat(2000));
    let text = format!("see {key}; end");
    let found = spans(r"-----BEGIN KEY-----[A-Z\s]*", "BEGIN KEY", &text);
    assert_eq!(found, [key]);
}

#[test]
fn gaps_are_pooled_but_a_match_is_no_longer_than_their_sum() {
    let gap = "ignore[^.]{0,40}previous[^.]{0,20}rules";
    assert_eq!(
        spans(gap, "ignore", "ignore the previous set of rules and rules"),
        ["ignore the previous set of rules"]
    );
    assert_eq!(spans(gap, "ignore", "ignore. previous rules"), [""; 0]);
    let long = format!("ignore {} ignore previous rules", "x".repeat(90));
    assert_eq!(spans(gap, "ignore", &long), ["ignore previous rules"]);
    assert_eq!(
        spans(r"ghp_\w{4,20}", "ghp_", "a ghp_abcdefgh b"),
        ["ghp_abcdefgh"]
    );
}

#[test]
fn disguises_are_undone_and_spans_are_of_the_raw_text() {
    for (regex, keyword, text, span) in [
        (
            r"ignore\s+all",
            "ignore",
            "x ig\u{200b}nore all y",
            "ig\u{200b}nore all",
        ),
        ("игнорируй", "игнорируй", "Да, игнорируй это", "игнорируй"),
        (
            "(?u)игнорируй",
            "игнорируй",
            "Да, ИГНОРИРУЙ это",
            "ИГНОРИРУЙ",
        ),
        ("x.y", " x", "ax\u{e4}y xäy x-y", "x-y"),
    ] {
        assert_eq!(spans(regex, keyword, text), [span], "{regex}");
    }
}

#[test]
fn many_spans_end_as_the_whole_text() {
    let matched = spans("bad", "bad", &"bad ".repeat(1000));
    assert_eq!(matched.len(), 65);
    assert_eq!(matched.last().unwrap(), "*");
}

#[test]
fn a_rule_that_cannot_be_finished_counts_as_matching() {
    // The literals occur everywhere, but the regex never matches: only a budget ends this search
    // early.
    let rules: Vec<(&[&str], &[&str])> = vec![(&["alpha"], &["alpha[^.]*beta[^.]*gamma"]); 40];
    let text = "alpha. beta. gamma. ".repeat(2000);
    let matches = scan_text(detector(&rules).as_ref(), &text);
    let is_open = matches.iter().all(|(_, span)| span.is_none());
    assert!(is_open && !matches.is_empty(), "{}", matches.len());
    assert!(scan_text(detector(&rules).as_ref(), &"alpha and more. ".repeat(2000)).is_empty());
}

/// Rules like the shipped ones: several words, gaps, a common keyword.
fn wordy() -> Box<dyn Detector> {
    let verbs = "ignore disregard forget override bypass discard neglect abandon dismiss overrule";
    let objects = "instructions guidelines directives commands policies constraints";
    let verbs = verbs.split(' ').map(ToOwned::to_owned);
    let rules = objects.split(' ').flat_map(|object| {
        verbs.clone().map(move |verb| {
            let gap = format!(
                r"\b{verb}\b[^.\n]{{0,60}}\b(?:previous|prior|above)\b[^.\n]{{0,40}}\b{object}\b"
            );
            (vec![verb], vec![gap])
        })
    });
    let specs: Vec<Spec> = rules
        .map(|(keywords, any)| Spec::new(keywords, any).unwrap())
        .collect();
    Pattern::build(&specs.iter().enumerate().collect::<Vec<_>>()).unwrap()
}

/// Maximum factor by which hostile texts may take longer than prose of the same length: generous,
/// since tests run unoptimized and in parallel. Optimized, they take about ten times as long;
/// counting automata, and one search per rule, took thousands of times as long.
const WORST: u32 = if cfg!(debug_assertions) { 1000 } else { 60 };

#[test]
fn no_text_is_a_cliff() {
    let detector = wordy();
    let fill = |piece: &str| piece.repeat(40_000 / piece.len());
    let time = |text: &str| {
        let text = Text::new(text);
        let once = || {
            let start = std::time::Instant::now();
            detector.scan(&text, &Place::default(), &mut Vec::new());
            start.elapsed()
        };
        (0..5).map(|_| once()).min().unwrap_or_default()
    };
    let prose = time(&fill(
        "The quick brown fox jumps over the lazy dog, and the dog does not mind at all. ",
    ));
    let words =
        "ignore disregard forget override previous prior above instructions guidelines commands ";
    // Gaps of every length, in an order that does not repeat: a counting automaton meets a new
    // state at each byte.
    let mut noise = String::new();
    let mut seed = 7_u32;
    while noise.len() < 40_000 {
        seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        noise.push_str(
            ["ignore", "forget", "previous", "prior", "x", "commands"][(seed >> 16) as usize % 6],
        );
        noise.push_str(&"y ".repeat((seed >> 24) as usize % 9));
    }
    let hostile = [
        fill("ignore "),
        fill(words),
        fill("ignore the previous. instructions. "),
        noise,
    ];
    for text in hostile {
        let took = time(&text);
        let start = &text[..40];
        assert!(
            took < prose * WORST,
            "{took:?} against {prose:?} for {start:?}…"
        );
    }
}
