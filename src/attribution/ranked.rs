//! Values of submissions in rising order, each with the cell of the submission that it comes from.
//!
//! A trace has millions of durations, latencies and ids, and all that is asked of them follows from their order. A value
//! and its cell nearly always share 64 bits, the value above the cell, so that sorting moves little and one comparison
//! does; a value too large for that is kept apart, and comes after all others because it is larger than they.

/// Values with their cells; in rising order once they are [`sorted`](Ranked::sorted), equal ones in any order of cells.
#[derive(Debug)]
pub(super) struct Ranked {
    /// Value, shifted left by `cell_bits`, and cell.
    packed: Vec<u64>,
    /// Values that need more bits than the cells leave.
    wide: Vec<(u64, u32)>,
    cell_bits: u32,
    /// How many values to make room for when the first one comes.
    expected: usize,
}

/// Digits of a sort have at most this many bits: more are fewer passes, but write to more places than the cache holds.
const DIGIT_BITS: u32 = 10;

/// With fewer values than this, counting digits costs more than comparing.
const FEW: usize = 4096;

impl Ranked {
    /// For values of submissions that are in one of `cells` cells; about `expected` of them.
    pub(super) fn new(cells: usize, expected: usize) -> Self {
        Ranked {
            packed: Vec::new(),
            wide: Vec::new(),
            // At least one, since shifting by 64 is no shift. Cells are numbered by 32 bits.
            cell_bits: (usize::BITS - cells.leading_zeros()).clamp(1, 32),
            expected,
        }
    }

    #[inline]
    pub(super) fn push(&mut self, value: u64, cell: u32) {
        if value >> (u64::BITS - self.cell_bits) != 0 {
            self.wide.push((value, cell));
            return;
        }
        if self.packed.is_empty() {
            self.packed.reserve_exact(self.expected);
        }
        self.packed.push((value << self.cell_bits) | u64::from(cell));
    }

    /// With the values in their order; `spare` is memory to work in.
    pub(super) fn sorted(mut self, spare: &mut Vec<u64>) -> Self {
        self.wide.sort_unstable();
        if self.packed.is_sorted_by_key(|packed| packed >> self.cell_bits) {
            return self;
        }
        if self.packed.len() < FEW {
            self.packed.sort_unstable();
        } else {
            sort_by_digits(&mut self.packed, self.cell_bits, spare);
        }
        self
    }

    pub(super) fn is_empty(&self) -> bool {
        self.len() == 0
    }

    pub(super) fn len(&self) -> usize {
        self.packed.len() + self.wide.len()
    }

    /// The value of this rank, from 0.
    pub(super) fn value(&self, rank: usize) -> Option<u64> {
        match self.packed.get(rank) {
            Some(packed) => Some(packed >> self.cell_bits),
            None => self.wide.get(rank - self.packed.len()).map(|(value, _)| *value),
        }
    }

    /// Calls with each value and cell.
    pub(super) fn for_each(&self, mut each: impl FnMut(u64, u32)) {
        let cell_mask = (1u64 << self.cell_bits) - 1;
        for packed in &self.packed {
            // A cell is numbered by 32 bits, so nothing is cut off.
            each(
                packed >> self.cell_bits,
                u32::try_from(packed & cell_mask).unwrap_or(u32::MAX),
            );
        }
        for (value, cell) in &self.wide {
            each(*value, *cell);
        }
    }
}

/// Sorts by all bits from `from_bit` on in linear time, digit by digit from the lowest; bits that all values share take no
/// part.
fn sort_by_digits(values: &mut Vec<u64>, from_bit: u32, spare: &mut Vec<u64>) {
    let first = values.first().copied().unwrap_or_default();
    let varying = values.iter().fold(0, |varying, value| varying | (value ^ first));
    if varying >> from_bit == 0 {
        return;
    }
    let lowest = varying.trailing_zeros().max(from_bit);
    let bits = u64::BITS - varying.leading_zeros() - lowest;
    let passes = bits.div_ceil(DIGIT_BITS);
    let width = bits.div_ceil(passes);
    let digit_of = |value: u64, pass: u32| usize::try_from((value >> (lowest + pass * width)) & ((1 << width) - 1));
    let mut places = vec![vec![0usize; 1 << width]; usize::try_from(passes).unwrap_or_default()];
    for value in values.iter() {
        for (pass, counts) in (0u32..).zip(&mut places) {
            if let Some(count) = digit_of(*value, pass).ok().and_then(|digit| counts.get_mut(digit)) {
                *count += 1;
            }
        }
    }
    spare.clear();
    spare.resize(values.len(), 0);
    for (pass, mut places) in (0u32..).zip(places) {
        let mut before = 0;
        for place in &mut places {
            before += std::mem::replace(place, before);
        }
        for value in values.iter() {
            if let Some(place) = digit_of(*value, pass).ok().and_then(|digit| places.get_mut(digit)) {
                if let Some(slot) = spare.get_mut(*place) {
                    *slot = *value;
                }
                *place += 1;
            }
        }
        std::mem::swap(values, spare);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn sorted(cells: usize, values: &[(u64, u32)]) -> Vec<(u64, u32)> {
        let mut ranked = Ranked::new(cells, values.len());
        for (value, cell) in values {
            ranked.push(*value, *cell);
        }
        let ranked = ranked.sorted(&mut Vec::new());
        let mut all = Vec::new();
        ranked.for_each(|value, cell| all.push((value, cell)));
        let by_rank: Vec<u64> = (0..ranked.len()).filter_map(|rank| ranked.value(rank)).collect();
        assert_eq!(by_rank, all.iter().map(|(value, _)| *value).collect::<Vec<_>>());
        assert_eq!(ranked.value(ranked.len()), None);
        all
    }

    #[test]
    fn values_come_in_their_order_with_their_cells() {
        assert_eq!(sorted(0, &[]), []);
        assert_eq!(sorted(1, &[(7, 0), (0, 0)]), [(0, 0), (7, 0)]);
        assert_eq!(
            sorted(4, &[(300, 0), (2, 1), (300, 2), (1, 3)]),
            [(1, 3), (2, 1), (300, 0), (300, 2)]
        );
    }

    #[test]
    fn a_value_that_leaves_no_bits_for_its_cell_comes_last() {
        assert_eq!(
            sorted(
                5,
                &[(u64::MAX, 4), (1 << 61, 0), (1, 2), ((1 << 61) - 1, 3), (u64::MAX, 1)]
            ),
            [(1, 2), ((1 << 61) - 1, 3), (1 << 61, 0), (u64::MAX, 1), (u64::MAX, 4)]
        );
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn digits_sort_as_comparisons_do(
            seed in any::<u64>(), low in 0u32..63, width in 1u32..64, from_bit in 0u32..64, count in 0usize..3 * FEW,
        ) {
            let mask = (u64::MAX >> (64 - width)) << low;
            let mut state = seed;
            let mut values: Vec<u64> = (0..count)
                .map(|_| {
                    state = state.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
                    (state ^ (state >> 31)) & mask
                })
                .collect();
            let mut expected = values.clone();
            // Stable, as sorting by digits is.
            expected.sort_by_key(|value| value >> from_bit);
            sort_by_digits(&mut values, from_bit, &mut Vec::new());
            prop_assert_eq!(values, expected);
        }
    }
}
