//! Finds the lines around places of interest.

use std::ops::Range;

/// How far a region extends from a place on a line that does not end, in bytes.
const REACH_BYTES: usize = 600;
/// Maximum distance between regions that are merged, in bytes.
const GAP_BYTES: usize = 240;
/// Maximum length of a region, in bytes; beyond it, another one begins.
const REGION_BYTES: usize = 4 << 10;

/// Returns the lines that contain `places`, which are in order. Places close to each other share a
/// region.
pub(super) fn enclosing(
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
        let line = line_around(text, &place);
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

fn line_around(text: &str, place: &Range<usize>) -> Range<usize> {
    let low = text.floor_char_boundary(place.start.saturating_sub(REACH_BYTES));
    let high = text.floor_char_boundary(place.end.saturating_add(REACH_BYTES).min(text.len()));
    let before = text.get(low..place.start).unwrap_or_default();
    let after = text.get(place.end..high).unwrap_or_default();
    let start = before.rfind('\n').map_or(low, |at| low + at + 1);
    let end = after.find('\n').map_or(high, |at| place.end + at);
    start..end.max(start)
}
