use super::window::{Event, windows};

fn event(start: usize, intent: usize, weight: i32) -> Event {
    Event { span: start..start + 10, phrase: intent, intent, weight, everywhere: false }
}

#[test]
fn signals_of_one_intent_count_once_and_pairs_more() {
    let text = "x".repeat(2000);
    let points = |mut events: Vec<Event>| windows(&text, &mut events).iter().map(|window| window.points).collect::<Vec<_>>();
    assert_eq!(points(vec![event(0, 0, 30), event(20, 0, 40)]), [40]);
    assert_eq!(points(vec![event(0, 0, 30), event(20, 1, 40)]), [76]);
    assert_eq!(points(vec![event(0, 0, 30), event(900, 1, 40)]), [30, 40]);
    assert_eq!(points(vec![event(100, 0, 30), event(20, 1, -20)]), [10]);
    assert_eq!(points(vec![event(1500, 0, 30), event(20, 1, -20)]), [30]);
}

#[test]
fn mention_takes_off_only_so_much() {
    let text = "x".repeat(2000);
    let mut events: Vec<Event> = (1..9).map(|n| event(n * 10, n, -50)).collect();
    events.push(event(100, 0, 200));
    assert_eq!(windows(&text, &mut events).first().unwrap().points, 130);
}
