//! Rows of the tables: medians over trials with their spread, and how A differs from B.

use std::cmp::Ordering;
use std::collections::{BTreeSet, HashMap};

use super::{Cell, Change, GapRow, HistogramCell, HistogramRow, LatencyCell, Over, Row, Side, Trial};
use crate::attribution::{Buckets, Group, Histogram, HistogramBin, Stats};
use crate::model::Nanos;

/// Both sides of a comparison in the making.
pub(super) struct Sides<'a> {
    pub(super) a: &'a Side,
    pub(super) b: Option<&'a Side>,
}

/// Which groups of a trial a table shows.
type Groups = fn(&Trial) -> &[Group];

/// Which time a row's change speaks of.
#[derive(Clone, Copy, PartialEq)]
enum Speaks {
    OfTotal,
    OfBusy,
}

pub(super) fn busy(sides: &Sides<'_>) -> Row {
    single(sides, "busy", Speaks::OfBusy)
}

pub(super) fn total(sides: &Sides<'_>) -> Row {
    single(sides, "total", Speaks::OfTotal)
}

/// The sum of several rows of a table, as one row; `None` when there are none.
pub(super) fn sum(sides: &Sides<'_>, key: &str, rows: &[&Row]) -> Option<Row> {
    let cell = |side: &Side, of: fn(&Row) -> Option<&Cell>| {
        let stats: Vec<Stats> = (0..side.trials.len())
            .map(|at| {
                let parts = rows.iter().filter_map(|row| of(row)?.trials.get(at));
                // A submission is in one row of a table only; times of several rows can overlap, so busy is no sum.
                parts.fold(Stats::default(), |sum, part| Stats {
                    submissions: sum.submissions.saturating_add(part.submissions),
                    total: Nanos(sum.total.0.saturating_add(part.total.0)),
                    ..sum
                })
            })
            .collect();
        cell(side, &stats)
    };
    if rows.is_empty() {
        return None;
    }
    let a = cell(sides.a, |row| row.a.as_ref());
    let b = sides.b.and_then(|side| cell(side, |row| row.b.as_ref()));
    let change = sides
        .b
        .and_then(|side| change(a.as_ref(), b.as_ref(), median_total(side), Speaks::OfTotal));
    Some(Row {
        key: key.to_owned(),
        a,
        b,
        change,
        flags: Vec::new(),
        judgement: None,
    })
}

fn single(sides: &Sides<'_>, key: &str, speaks: Speaks) -> Row {
    let cell = |side: &Side| {
        cell(
            side,
            &side.trials.iter().map(|trial| trial.all.clone()).collect::<Vec<_>>(),
        )
    };
    let (a, b) = (cell(sides.a), sides.b.and_then(cell));
    let change = sides
        .b
        .and_then(|_| change(a.as_ref(), b.as_ref(), total_of(b.as_ref()), speaks));
    Row {
        key: key.to_owned(),
        a,
        b,
        change,
        flags: Vec::new(),
        judgement: None,
    }
}

/// By edge, every bucket, also those that no submission falls into: a measured 0.
pub(super) fn buckets(sides: &Sides<'_>, buckets: &Buckets) -> Vec<Row> {
    let mut rows = table(sides, |trial| &trial.buckets);
    let place = |row: &Row| {
        buckets
            .names
            .iter()
            .position(|name| *name == row.key)
            .unwrap_or(usize::MAX)
    };
    rows.sort_by(|x, y| place(x).cmp(&place(y)).then_with(|| x.key.cmp(&y.key)));
    rows
}

/// By A's total, then B's, both descending, then key.
pub(super) fn phases(sides: &Sides<'_>) -> Vec<Row> {
    let mut rows = table(sides, |trial| &trial.phases);
    rows.sort_by(|x, y| {
        let by_a = descending(total_of(x.a.as_ref()), total_of(y.a.as_ref()));
        by_a.then(descending(total_of(x.b.as_ref()), total_of(y.b.as_ref())))
            .then_with(|| x.key.cmp(&y.key))
    });
    rows
}

pub(super) fn encoders(sides: &Sides<'_>) -> Vec<Row> {
    by_delta(sides, |trial| &trial.encoders)
}

pub(super) fn channels(sides: &Sides<'_>) -> Vec<Row> {
    by_delta(sides, |trial| &trial.channels)
}

/// By delta descending, then key; with one side by total.
fn by_delta(sides: &Sides<'_>, groups: Groups) -> Vec<Row> {
    let mut rows = table(sides, groups);
    let rank = |row: &Row| {
        row.change
            .as_ref()
            .map_or(total_of(row.a.as_ref()), |change| Some(change.delta_us()))
    };
    rows.sort_by(|x, y| descending(rank(x), rank(y)).then_with(|| x.key.cmp(&y.key)));
    rows
}

fn descending(x: Option<f64>, y: Option<f64>) -> Ordering {
    y.unwrap_or(0.0).total_cmp(&x.unwrap_or(0.0))
}

fn total_of(cell: Option<&Cell>) -> Option<f64> {
    cell.map(|cell| cell.total_us.median)
}

/// One row per key of either side, in the order of the keys.
fn table(sides: &Sides<'_>, groups: Groups) -> Vec<Row> {
    let a = Index::new(sides.a, groups);
    let b = sides.b.map(|side| Index::new(side, groups));
    let all_b = sides.b.and_then(median_total);
    let keys: BTreeSet<&str> = a.keys().chain(b.iter().flat_map(Index::keys)).collect();
    keys.into_iter()
        .map(|key| {
            let cell_a = a.cell(key);
            let cell_b = b.as_ref().and_then(|b| b.cell(key));
            let change = sides
                .b
                .and_then(|_| change(cell_a.as_ref(), cell_b.as_ref(), all_b, Speaks::OfTotal));
            let mut flags = Vec::new();
            let any = |test: fn(&Group) -> bool| a.any(key, test) || b.as_ref().is_some_and(|b| b.any(key, test));
            if any(|group| group.coalesced) {
                flags.push("coalesced");
            }
            if any(|group| {
                group
                    .encoders_without_submission
                    .is_some_and(|(without, _)| without > 0)
            }) {
                flags.push("incomplete");
            }
            Row {
                key: key.to_owned(),
                a: cell_a,
                b: cell_b,
                change,
                flags,
                judgement: None,
            }
        })
        .collect()
}

/// Groups of every trial of a side by key.
struct Index<'a> {
    side: &'a Side,
    /// Aligned with the trials.
    trials: Vec<HashMap<&'a str, &'a Group>>,
}

impl<'a> Index<'a> {
    fn new(side: &'a Side, groups: Groups) -> Self {
        let by_key = |trial: &'a Trial| groups(trial).iter().map(|group| (group.key.as_str(), group)).collect();
        Index {
            side,
            trials: side.trials.iter().map(by_key).collect(),
        }
    }

    fn keys(&self) -> impl Iterator<Item = &'a str> + '_ {
        self.trials.iter().flat_map(|groups| groups.keys().copied())
    }

    fn any(&self, key: &str, test: impl Fn(&Group) -> bool) -> bool {
        self.trials
            .iter()
            .filter_map(|groups| groups.get(key))
            .any(|group| test(group))
    }

    /// `None` when no trial has the key; a trial without it had none of it, which is a measured 0.
    fn cell(&self, key: &str) -> Option<Cell> {
        // CPU encoding time belongs to some tables only: those in which any group of the side has it.
        let encodes = self.any(key, |group| group.stats.cpu_encode.is_some());
        let stats: Vec<Stats> = self
            .trials
            .iter()
            .zip(&self.side.trials)
            .map(|(groups, trial)| match groups.get(key) {
                Some(group) => group.stats.clone(),
                None => Stats {
                    encoders: trial.all.encoders.map(|_| 0),
                    command_buffers: trial.all.command_buffers.map(|_| 0),
                    cpu_encode: trial.all.cpu_encode.filter(|_| encodes).map(|_| Nanos(0)),
                    ..Stats::default()
                },
            })
            .collect();
        self.any(key, |_| true).then(|| cell(self.side, &stats)).flatten()
    }
}

fn median_total(side: &Side) -> Option<f64> {
    let values = side.trials.iter().map(|trial| us_per_unit(trial.all.total.0, trial));
    Over::of(values).map(|over| over.median)
}

fn per_unit(value: f64, trial: &Trial) -> f64 {
    value / units(trial)
}

pub(super) fn us_per_unit(ns: u64, trial: &Trial) -> f64 {
    // One division, so that it rounds once.
    ns as f64 / (1_000.0 * units(trial))
}

fn units(trial: &Trial) -> f64 {
    trial.units.unwrap_or(1) as f64
}

fn us(ns: f64) -> f64 {
    ns / 1_000.0
}

impl Over {
    /// Median, lowest and highest; `None` for no values.
    pub fn of(values: impl IntoIterator<Item = f64>) -> Option<Over> {
        let mut sorted: Vec<f64> = values.into_iter().collect();
        sorted.sort_by(f64::total_cmp);
        let upper = *sorted.get(sorted.len() / 2)?;
        let median = if sorted.len() % 2 == 1 {
            upper
        } else {
            let lower = *sorted.get((sorted.len() / 2).checked_sub(1)?)?;
            lower + (upper - lower) / 2.0
        };
        Some(Over {
            median,
            low: *sorted.first()?,
            high: *sorted.last()?,
        })
    }
}

/// Medians over the trials of a side; `stats` is aligned with them. `None` for a side without trials.
fn cell(side: &Side, stats: &[Stats]) -> Option<Cell> {
    let rows = || stats.iter().zip(&side.trials);
    let some = |value: &dyn Fn(&Stats, &Trial) -> Option<f64>| Over::of(rows().filter_map(|(s, t)| value(s, t)));
    let duration = |value: fn(&crate::attribution::Durations) -> f64| {
        some(&|s, _| s.durations.as_ref().map(|durations| us(value(durations))))
    };
    let latency = |value: fn(&crate::attribution::Latency) -> f64| some(&|s, _| s.latency.as_ref().map(value));
    let ratio = |s: &Stats, _: &Trial| {
        let buffers = s.command_buffers.filter(|buffers| *buffers > 0)?;
        Some(s.total.0 as f64 / (1_000.0 * buffers as f64))
    };
    Some(Cell {
        submissions: some(&|s, t| Some(per_unit(s.submissions as f64, t)))?,
        total_us: some(&|s, t| Some(us_per_unit(s.total.0, t)))?,
        busy_us: some(&|s, t| Some(us_per_unit(s.busy.0, t)))?,
        encoders: some(&|s, t| Some(per_unit(s.encoders? as f64, t))),
        command_buffers: some(&|s, t| Some(per_unit(s.command_buffers? as f64, t))),
        us_per_command_buffer: some(&ratio),
        cpu_encode_us: some(&|s, t| Some(us_per_unit(s.cpu_encode?.0, t))),
        p50_us: duration(|d| d.p50),
        p95_us: duration(|d| d.p95.0 as f64),
        p99_us: duration(|d| d.p99.0 as f64),
        mean_us: duration(|d| d.mean),
        min_us: duration(|d| d.min.0 as f64),
        max_us: duration(|d| d.max.0 as f64),
        latency: latency_cell(
            latency(|l| l.samples as f64),
            latency(|l| us(l.p50)),
            latency(|l| us(l.p95.0 as f64)),
        ),
        trials: stats.to_vec(),
    })
}

fn latency_cell(samples: Option<Over>, p50_us: Option<Over>, p95_us: Option<Over>) -> Option<LatencyCell> {
    Some(LatencyCell {
        samples: samples?,
        p50_us: p50_us?,
        p95_us: p95_us?,
    })
}

impl Change {
    /// A − B in µs per unit.
    pub fn delta_us(&self) -> f64 {
        match self {
            Change::OnlyA { delta_us, .. } | Change::OnlyB { delta_us, .. } | Change::Both { delta_us, .. } => {
                *delta_us
            }
        }
    }

    /// The delta in percent of B's total.
    pub fn share_pct(&self) -> Option<f64> {
        match self {
            Change::OnlyA { share_pct, .. } | Change::OnlyB { share_pct, .. } | Change::Both { share_pct, .. } => {
                *share_pct
            }
        }
    }
}

/// How A differs from B; `total_b` is B's whole total in µs per unit. `None` when neither has the row.
fn change(a: Option<&Cell>, b: Option<&Cell>, total_b: Option<f64>, speaks: Speaks) -> Option<Change> {
    let time = |cell: &Cell| match speaks {
        Speaks::OfTotal => cell.total_us.median,
        Speaks::OfBusy => cell.busy_us.median,
    };
    let share = |delta: f64| total_b.filter(|total| *total > 0.0).map(|total| 100.0 * delta / total);
    match (a, b) {
        (None, None) => None,
        (Some(a), None) => Some(Change::OnlyA {
            delta_us: time(a),
            share_pct: share(time(a)),
        }),
        (None, Some(b)) => {
            // 0 − x, because −x of a zero is a negative zero.
            let delta_us = 0.0 - time(b);
            Some(Change::OnlyB {
                delta_us,
                share_pct: share(delta_us),
            })
        }
        (Some(a), Some(b)) => {
            let delta_us = time(a) - time(b);
            let split = match speaks {
                Speaks::OfTotal => split(a, b),
                Speaks::OfBusy => None,
            };
            Some(Change::Both {
                delta_us,
                delta_pct: percent(time(a), time(b)),
                share_pct: share(delta_us),
                count_pct: split.map(|(count, _)| count),
                per_submission_pct: split.map(|(_, per)| per),
            })
        }
    }
}

/// Percent by which `a` differs from `b`; 0 when both are 0, `None` when only `b` is.
fn percent(a: f64, b: f64) -> Option<f64> {
    if b > 0.0 {
        Some(100.0 * (a - b) / b)
    } else if a > 0.0 {
        None
    } else {
        Some(0.0)
    }
}

/// The parts of the change that come from the number of submissions and from the time of each, in percent:
/// the product of their ratios is the ratio of the totals. `None` when a count is 0, or B's time.
fn split(a: &Cell, b: &Cell) -> Option<(f64, f64)> {
    let (count_a, count_b) = (a.submissions.median, b.submissions.median);
    let (total_a, total_b) = (a.total_us.median, b.total_us.median);
    if count_a > 0.0 && count_b > 0.0 && total_b > 0.0 {
        Some((
            percent(count_a, count_b)?,
            percent(total_a / count_a, total_b / count_b)?,
        ))
    } else {
        None
    }
}

/// Durations by bin, from the first that any trial has to the last.
pub(super) fn histogram(sides: &Sides<'_>) -> Vec<HistogramRow> {
    let trials = || {
        [Some(sides.a), sides.b]
            .into_iter()
            .flatten()
            .flat_map(|side| &side.trials)
    };
    let ranges = || trials().filter_map(|trial| trial.histogram.as_ref()?.range());
    let first = ranges().map(|range| *range.start()).min();
    let last = ranges().map(|range| *range.end()).max();
    let cell = |side: &Side, bin: usize| -> Option<HistogramCell> {
        let held = |trial: &Trial| Some(trial.histogram.as_ref()?.bin(bin));
        let bins: Option<Vec<_>> = side.trials.iter().map(held).collect();
        let bins = bins?;
        let over = |of: fn(&HistogramBin, &Trial) -> f64| {
            Over::of(bins.iter().zip(&side.trials).map(|(bin, trial)| of(bin, trial)))
        };
        Some(HistogramCell {
            submissions: over(|bin, trial| per_unit(bin.submissions as f64, trial))?,
            total_us: over(|bin, trial| us_per_unit(bin.total.0, trial))?,
        })
    };
    let row = |bin| HistogramRow {
        from: Histogram::lower_edge(bin),
        to: Histogram::lower_edge(bin + 1),
        a: cell(sides.a, bin),
        b: sides.b.and_then(|side| cell(side, bin)),
    };
    match (first, last) {
        (Some(first), Some(last)) => (first..=last).map(row).collect(),
        _ => Vec::new(),
    }
}

/// Idle stretches by band, shortest first.
pub(super) fn gaps(sides: &Sides<'_>) -> Vec<GapRow> {
    let Some(first) = sides.a.trials.first() else {
        return Vec::new();
    };
    let over = |side: &Side, key: &str| {
        let band = |trial: &Trial| {
            let band = trial.gaps.bands.iter().find(|band| band.key == key);
            band.map_or((0, 0), |band| (band.count, band.idle.0))
        };
        let count = Over::of(side.trials.iter().map(|trial| per_unit(band(trial).0 as f64, trial)))?;
        let idle = Over::of(side.trials.iter().map(|trial| us_per_unit(band(trial).1, trial)))?;
        Some((count, idle))
    };
    let rows = first.gaps.bands.iter().filter_map(|band| {
        let (a_count, a_idle_us) = over(sides.a, &band.key)?;
        let b = sides.b.and_then(|side| over(side, &band.key));
        Some(GapRow {
            key: band.key.clone(),
            a_count,
            a_idle_us,
            b,
        })
    });
    rows.collect()
}
