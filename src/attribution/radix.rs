//! Values that remember where they came from, sorted in linear time.
//!
//! A trace has millions of durations, latencies and ids, and all that is asked of them follows from their order. Most of
//! the bytes of such numbers are the same in all of them, and a byte that is the same everywhere costs nothing.

/// A value, and the cell of the submission that it comes from.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Tagged {
    pub(super) value: u64,
    pub(super) cell: u32,
}

/// Sorts by value, byte by byte from the lowest; equal values keep their order.
pub(super) fn sort(values: &mut Vec<Tagged>) {
    if values.is_sorted_by_key(|tagged| tagged.value) {
        return;
    }
    let mut counts = [[0usize; 256]; 8];
    for tagged in values.iter() {
        for (counts, byte) in counts.iter_mut().zip(tagged.value.to_le_bytes()) {
            if let Some(count) = counts.get_mut(usize::from(byte)) {
                *count += 1;
            }
        }
    }
    let mut sorted = vec![Tagged::default(); values.len()];
    for (shift, mut places) in (0u32..64).step_by(8).zip(counts) {
        if places.contains(&values.len()) {
            continue;
        }
        let mut before = 0;
        for place in &mut places {
            before += std::mem::replace(place, before);
        }
        for tagged in values.iter() {
            let [byte, ..] = (tagged.value >> shift).to_le_bytes();
            if let Some(place) = places.get_mut(usize::from(byte)) {
                if let Some(slot) = sorted.get_mut(*place) {
                    *slot = *tagged;
                }
                *place += 1;
            }
        }
        std::mem::swap(values, &mut sorted);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sorted(values: &[u64]) -> Vec<(u64, u32)> {
        let mut tagged: Vec<Tagged> = (0..).zip(values).map(|(cell, &value)| Tagged { value, cell }).collect();
        sort(&mut tagged);
        tagged.iter().map(|tagged| (tagged.value, tagged.cell)).collect()
    }

    #[test]
    fn every_byte_counts_and_equal_values_keep_their_order() {
        assert_eq!(sorted(&[]), []);
        assert_eq!(sorted(&[300, 2, 300, 1]), [(1, 3), (2, 1), (300, 0), (300, 2)]);
        assert_eq!(
            sorted(&[u64::MAX, 1 << 40, 0, 1 << 63, (1 << 40) + 255]),
            [(0, 2), (1 << 40, 1), ((1 << 40) + 255, 4), (1 << 63, 3), (u64::MAX, 0)]
        );
        assert_eq!(sorted(&[512, 256]), [(256, 1), (512, 0)], "only one byte differs");
    }
}
