//! `histogram`: durations of submissions, as one list per quantity.

use serde::Serialize;

use super::{Integer, Number, Sides};
use crate::attribution;
use crate::compare::{self, Comparison, HistogramCell, HistogramRow};

#[derive(Serialize)]
pub(super) struct Histogram {
    edges_ns: Vec<Integer>,
    #[serde(flatten)]
    sides: Sides<Option<Side>>,
}

#[derive(Serialize)]
struct Side {
    submissions: Vec<Number>,
    total_us: Vec<Number>,
    trials: Vec<Raw>,
}

/// What a trial has in each bin.
#[derive(Serialize)]
struct Raw {
    submissions: Vec<Integer>,
    total_ns: Vec<Integer>,
}

impl Histogram {
    pub(super) fn new(comparison: &Comparison) -> Self {
        let rows = &comparison.histogram;
        let upper = rows.last().map(|row| row.to);
        Histogram {
            edges_ns: rows
                .iter()
                .map(|row| row.from)
                .chain(upper)
                .map(Integer::from)
                .collect(),
            sides: Sides {
                a: Side::new(&comparison.a, rows, |row| row.a),
                b: comparison.b.as_ref().map(|side| Side::new(side, rows, |row| row.b)),
            },
        }
    }
}

impl Side {
    /// `None` when a trial of the side was stored without its durations.
    fn new(
        side: &compare::Side,
        rows: &[HistogramRow],
        of: fn(&HistogramRow) -> Option<HistogramCell>,
    ) -> Option<Side> {
        let trials: Option<Vec<_>> = side.trials.iter().map(|trial| trial.histogram.as_ref()).collect();
        let cells: Option<Vec<HistogramCell>> = rows.iter().map(of).collect();
        let raw = |histogram: &attribution::Histogram| {
            let bins = || {
                rows.iter()
                    .map(|row| histogram.bin(attribution::Histogram::bin_of(row.from)))
            };
            Raw {
                submissions: bins().map(|bin| Integer(bin.submissions)).collect(),
                total_ns: bins().map(|bin| bin.total.into()).collect(),
            }
        };
        let cells = cells?;
        Some(Side {
            submissions: cells.iter().map(|cell| cell.submissions.into()).collect(),
            total_us: cells.iter().map(|cell| cell.total_us.into()).collect(),
            trials: trials?.into_iter().map(raw).collect(),
        })
    }
}
