//! Work that only the program knows: `flops` and `bytes` give throughput, every other name passes through to exports.

use std::borrow::Cow;
use std::collections::BTreeMap;

/// Named amounts of work, in the order of their names.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Metrics(BTreeMap<Cow<'static, str>, f64>);

impl Metrics {
    /// None.
    pub const fn new() -> Metrics {
        Metrics(BTreeMap::new())
    }

    /// The same with one more; an earlier value of that name is replaced.
    #[must_use]
    pub fn with(mut self, name: impl Into<Cow<'static, str>>, value: impl Amount) -> Metrics {
        self.set(name, value);
        self
    }

    /// Sets one; an earlier value of that name is replaced.
    pub fn set(&mut self, name: impl Into<Cow<'static, str>>, value: impl Amount) {
        self.0.insert(name.into(), value.amount());
    }

    /// The value of a name.
    pub fn get(&self, name: &str) -> Option<f64> {
        self.0.get(name).copied()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Names and values, by name.
    pub fn iter(&self) -> impl Iterator<Item = (&str, f64)> {
        self.0.iter().map(|(name, value)| (&**name, *value))
    }

    /// Takes out what is no finite number, and says how many that were: no table and no file can hold them.
    pub(super) fn take_out_unusable(&mut self) -> u64 {
        let before = self.0.len();
        self.0.retain(|_, value| value.is_finite());
        (before - self.0.len()) as u64
    }

    /// Adds the values of `other`, but for the names that `spoken` has.
    pub(super) fn add_unless(&mut self, other: &Metrics, spoken: &Metrics) {
        for (name, value) in &other.0 {
            if !spoken.0.contains_key(name) {
                *self.0.entry(name.clone()).or_default() += value;
            }
        }
    }

    /// Takes out the names that `other` has.
    pub(super) fn take_out(&mut self, other: &Metrics) {
        self.0.retain(|name, _| !other.0.contains_key(name));
    }
}

/// A number that can be a metric.
pub trait Amount {
    /// As a float; integers above 2^53 lose digits.
    fn amount(self) -> f64;
}

macro_rules! amounts {
    ($($number:ty),+) => {
        $(impl Amount for $number {
            fn amount(self) -> f64 {
                self as f64
            }
        })+
    };
}

amounts!(u8, u16, u32, u64, usize, i8, i16, i32, i64, isize, f32, f64);

/// Metrics for a scope, worked out only when a profile is active: `metrics![flops = 2 * m * n * k, bytes = size]`.
///
/// It is a closure, so what it names is borrowed. `metrics![]` is none.
#[macro_export]
macro_rules! metrics {
    ($($name:ident = $value:expr),* $(,)?) => {
        || $crate::live::Metrics::new()$(.with(stringify!($name), $value))*
    };
}
