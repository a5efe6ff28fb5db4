//! Sorts items by the groups that they belong to.

/// Returns where the items of each of `groups` groups begin and where the last ones end, and the
/// items sorted by group. Items of one group keep their order.
pub(super) fn sort_by_group<T: Copy>(
    items: &[T],
    groups: usize,
    group: impl Fn(&T) -> usize,
) -> (Vec<u32>, Vec<T>) {
    let mut starts = vec![0_u32; groups + 1];
    for item in items {
        starts
            .get_mut(group(item))
            .into_iter()
            .for_each(|count| *count += 1);
    }
    let mut end = 0;
    for count in &mut starts {
        end += *count;
        *count = end;
    }
    // From the last to the first, so that the end of each group is decremented to its start.
    let mut ordered = items.to_vec();
    for item in items.iter().rev() {
        let Some(start) = starts.get_mut(group(item)) else {
            continue;
        };
        *start -= 1;
        ordered
            .get_mut(*start as usize)
            .into_iter()
            .for_each(|place| *place = *item);
    }
    (starts, ordered)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_follow_each_other_and_keep_their_order() {
        assert_eq!(
            sort_by_group(&[21, 0, 22, 3, 1], 4, |item| item / 10),
            (vec![0, 3, 3, 5, 5], vec![0, 3, 1, 21, 22])
        );
        assert_eq!(
            sort_by_group::<usize>(&[], 1, |item| *item),
            (vec![0, 0], vec![])
        );
    }
}
