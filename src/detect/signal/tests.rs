use super::window::{Event, sort, windows};

fn event(start: usize, intent: u32, weight: i32) -> Event {
    Event::new(start..start + 10, intent, (intent, weight), false)
}

/// Returns the points of each window.
fn points(mut events: Vec<Event>) -> Vec<i32> {
    sort(&mut events);
    windows(&"x".repeat(2000), &events, |_| true)
        .iter()
        .map(|window| window.points)
        .collect()
}

#[test]
fn signals_of_one_intent_count_once_and_pairs_more() {
    assert_eq!(points(vec![event(0, 0, 30), event(20, 0, 40)]), [40]);
    assert_eq!(points(vec![event(0, 0, 30), event(20, 1, 40)]), [76]);
    assert_eq!(points(vec![event(0, 0, 30), event(900, 1, 40)]), [30, 40]);
    assert_eq!(points(vec![event(100, 0, 30), event(20, 1, -20)]), [10]);
    assert_eq!(points(vec![event(1500, 0, 30), event(20, 1, -20)]), [30]);
}

#[test]
fn mention_takes_off_only_so_much() {
    let mut events: Vec<Event> = (1..9).map(|n| event(n as usize * 10, n, -50)).collect();
    events.push(event(100, 0, 200));
    assert_eq!(points(events), [130]);
}

#[test]
fn estimate_does_not_count_where_a_text_is_about_words() {
    let estimate = || {
        let mut event = event(100, 0, 100);
        event.is_estimate = true;
        event
    };
    assert_eq!(points(vec![estimate(), event(120, 1, 40)]), [146]);
    assert_eq!(
        points(vec![estimate(), event(120, 1, 40), event(20, 2, -30)]),
        [116]
    );
    assert_eq!(
        points(vec![
            estimate(),
            event(120, 1, 40),
            event(20, 2, -30),
            event(140, 2, -28)
        ]),
        [-18]
    );
}
