//! Percentiles and the interval union.
