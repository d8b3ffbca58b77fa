//! Normal numbers from seeded uniform ones (Box and Muller): trials that vary as real ones do.

use super::workload::Rng;

pub struct Normal(Rng);

impl Normal {
    pub fn new(seed: u64) -> Self {
        Normal(Rng::new(seed))
    }

    /// Above 0 and at most 1, of 53 bits.
    fn uniform(&mut self) -> f64 {
        ((self.0.next() >> 11) + 1) as f64 / (1_u64 << 53) as f64
    }

    /// Mean 0, standard deviation 1.
    pub fn next(&mut self) -> f64 {
        (-2.0 * self.uniform().ln()).sqrt() * (std::f64::consts::TAU * self.uniform()).cos()
    }
}
