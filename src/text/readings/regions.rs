//! Lines around places of interest.

use std::ops::Range;

/// How far from a place a region reaches on a line that has no end.
const REACH_BYTES: usize = 600;
/// Regions closer to each other than this are one.
const GAP_BYTES: usize = 240;
/// A region ends here, and another begins.
const REGION_BYTES: usize = 4 << 10;

/// The lines that hold `places`, which are in order; places close to each other share a region.
pub(super) fn around(
    text: &str,
    places: impl IntoIterator<Item = Range<usize>>,
) -> Vec<Range<usize>> {
    let mut regions: Vec<Range<usize>> = Vec::new();
    for place in places {
        if let Some(last) = regions.last_mut()
            && place.end <= last.end
        {
            continue;
        }
        let line = line(text, &place);
        match regions.last_mut() {
            Some(last)
                if line.start <= last.end + GAP_BYTES && line.end - last.start <= REGION_BYTES =>
            {
                last.end = line.end.max(last.end)
            }
            Some(last) => {
                let start = line.start.max(last.end).min(line.end);
                regions.push(start..line.end);
            }
            None => regions.push(line),
        }
    }
    regions
}

fn line(text: &str, place: &Range<usize>) -> Range<usize> {
    let low = text.floor_char_boundary(place.start.saturating_sub(REACH_BYTES));
    let high = text.floor_char_boundary(place.end.saturating_add(REACH_BYTES).min(text.len()));
    let before = text.get(low..place.start).unwrap_or_default();
    let after = text.get(place.end..high).unwrap_or_default();
    let start = before.rfind('\n').map_or(low, |at| low + at + 1);
    let end = after.find('\n').map_or(high, |at| place.end + at);
    start..end.max(start)
}
