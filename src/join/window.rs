//! Where a window rule lies in one trial.

use super::plural;
use super::process::Selection;
use super::signposts::{Named, signposts};
use crate::error::{Error, Result};
use crate::model::{Nanos, Note, Submission, Timestamp, Window, WindowFound, WindowRule, WindowSpan};
use crate::recording::{RunTables, shown};
use crate::tables::Texts;

/// A window without an end, until the last submission is known.
pub(super) const OPEN_END: Timestamp = Timestamp(u64::MAX);

/// Names that a message lists at most.
const LISTED: usize = 12;

/// A window, and what was found on the way to it.
pub(super) struct Resolved {
    window: Window,
    /// Whether a submission that starts at the very end is inside: the last one of a stretch may have no length.
    closed: bool,
    pub(super) found: WindowFound,
    pub(super) notes: Vec<Note>,
}

impl Resolved {
    pub(super) fn holds(&self, submission: &Submission) -> bool {
        let start = submission.start;
        start >= self.window.from && (start < self.window.to || (self.closed && start == self.window.to))
    }

    /// The window, which ends at `last` when the rule names no end.
    pub(super) fn until(&self, last: Timestamp) -> Window {
        let Window { from, to } = self.window;
        Window {
            from,
            to: if to == OPEN_END { last } else { to },
        }
    }
}

/// What a rule has to look at. Submissions are those of the process, ordered by start.
pub(super) struct Scene<'a> {
    pub(super) run: &'a RunTables,
    pub(super) texts: &'a Texts,
    pub(super) selection: &'a Selection,
    pub(super) submissions: &'a [Submission],
}

/// The window of a rule; `None`: everything counts.
///
/// # Errors
/// A rule that contradicts itself, a signpost that is not there, or a window without length.
pub(super) fn resolve(rule: &WindowRule, scene: &Scene<'_>) -> Result<Option<Resolved>> {
    let rule = rule.clone().checked()?;
    let Some(first) = scene.submissions.first() else {
        return Ok(None);
    };
    let mut resolved = match &rule.span {
        WindowSpan::Process if rule == WindowRule::default() => return Ok(None),
        WindowSpan::Process => Resolved {
            window: Window {
                from: rule.from.unwrap_or(first.start),
                to: rule.to.unwrap_or(OPEN_END),
            },
            closed: false,
            found: WindowFound::Given,
            notes: Vec::new(),
        },
        WindowSpan::Signpost(name) => scene.signpost(name)?,
        WindowSpan::Quiet(gap) => scene.quiet(*gap),
    };
    if let Some(skip) = rule.skip_first {
        // Of the process when times are given: --from does not move what --skip-first counts from.
        let first = match rule.span {
            WindowSpan::Process => Some(first),
            _ => scene.submissions.iter().find(|submission| resolved.holds(submission)),
        };
        if let Some(first) = first {
            resolved.window.from = resolved.window.from.max(first.start + skip);
        }
    }
    let Window { from, to } = resolved.window;
    if from > to || (from == to && !resolved.closed) {
        return Err(Error::unfit(format!(
            "the window is empty: it begins at {} ns and ends at {} ns",
            from.0, to.0
        ))
        .with_help(match rule.span {
            WindowSpan::Process => "its end must lie after --from and after what --skip-first leaves",
            _ => "--skip-first must be shorter than what --window finds",
        }));
    }
    Ok(Some(resolved))
}

/// The remedy when no submission starts inside a window of that rule.
pub(super) fn none_inside(rule: &WindowRule) -> &'static str {
    match rule.span {
        WindowSpan::Process => "times count from the start of the recording; widen the window, or shorten --skip-first",
        WindowSpan::Signpost(_) => {
            "a signpost holds GPU work only if the program waits for it inside; GPU work can start after its commit"
        }
        WindowSpan::Quiet(_) => "shorten --skip-first",
    }
}

impl Scene<'_> {
    /// First start to last end of the intervals of that name.
    fn signpost(&self, name: &str) -> Result<Resolved> {
        let process = shown(&self.selection.shown);
        let Some(mut all) = signposts(self.run, self.texts, self.selection) else {
            return Err(Error::unfit(format!(
                "there is no table `os-signpost`, so signpost `{name}` cannot be the window"
            ))
            .with_help(
                "record with `--instrument os_signpost`; `trace-attr export --table os-signpost` writes the table",
            ));
        };
        let named = all.remove(name).unwrap_or_default();
        let (Some((from, _)), Some(to)) = (
            named.intervals.first(),
            named.intervals.iter().map(|(_, end)| *end).max(),
        ) else {
            return Err(none_of(name, &process, &named, &all));
        };
        let from = *from;
        if from == to {
            return Err(Error::unfit(format!(
                "signpost `{name}` of {process} has no length: it begins and ends at {} ns",
                from.0
            )));
        }
        let mut notes = Vec::new();
        let intervals = named.intervals.len() as u64;
        if intervals > 1 {
            notes.push(self.several(name, &named, Window { from, to }));
        }
        if named.open + named.ends > 0 {
            notes.push(Note::warning(
                "unpaired_signpost",
                format!(
                    "signpost `{name}` has {} without an end and {} without a begin, which are no part of the window",
                    plural(named.open, "begin"),
                    plural(named.ends, "end")
                ),
            ));
        }
        Ok(Resolved {
            window: Window { from, to },
            closed: false,
            found: WindowFound::Signposts { intervals },
            notes,
        })
    }

    /// Several intervals are one window; what the GPU began between them is in it and is told.
    fn several(&self, name: &str, named: &Named, window: Window) -> Note {
        let mut merged: Vec<(Timestamp, Timestamp)> = Vec::new();
        for (start, end) in &named.intervals {
            match merged.last_mut() {
                Some((_, last)) if *start <= *last => *last = (*last).max(*end),
                _ => merged.push((*start, *end)),
            }
        }
        let between = |start: Timestamp| {
            let before = merged.partition_point(|(from, _)| *from <= start);
            before
                .checked_sub(1)
                .and_then(|at| merged.get(at))
                .is_none_or(|(_, end)| start >= *end)
        };
        let (mut count, mut time, mut all) = (0u64, 0u64, 0u64);
        for submission in self.submissions {
            if submission.start < window.from || submission.start >= window.to {
                continue;
            }
            all = all.saturating_add(submission.duration.0);
            if between(submission.start) {
                count += 1;
                time = time.saturating_add(submission.duration.0);
            }
        }
        let text = format!(
            "signpost `{name}` has {} intervals: the window goes from the first start to the last end; {} in it ({} ns) started between them",
            named.intervals.len(),
            plural(count, "submission"),
            time
        );
        // As for the cross-check: what concerns more than 1 % of the time is a warning.
        if u128::from(time) * 100 > u128::from(all) {
            Note::warning("signpost_window", text)
        } else {
            Note::remark("signpost_window", text)
        }
    }

    /// The longest stretch without a pause above `gap`; of equal ones the first.
    fn quiet(&self, gap: Nanos) -> Resolved {
        let mut stretches: Vec<Window> = Vec::new();
        for submission in self.submissions {
            match stretches.last_mut() {
                Some(last) if submission.start.since(last.to) <= gap => last.to = last.to.max(submission.end()),
                _ => stretches.push(Window {
                    from: submission.start,
                    to: submission.end(),
                }),
            }
        }
        let mut ranked = stretches.clone();
        // Stable: of equal ones the first stays first.
        ranked.sort_by_key(|stretch| std::cmp::Reverse(stretch.length()));
        let longest = ranked.first().copied().unwrap_or(Window {
            from: Timestamp(0),
            to: OPEN_END,
        });
        let mut notes = Vec::new();
        if let Some(next) = ranked.get(1)
            && next.length().0 >= longest.length().0 / 10 * 9
        {
            notes.push(Note::warning(
                "quiet_window",
                format!(
                    "of {} stretches without a longer pause, the longest ({} ns from {} ns) is the window, but another is nearly as long ({} ns from {} ns): another trial may take that one",
                    stretches.len(),
                    longest.length().0,
                    longest.from.0,
                    next.length().0,
                    next.from.0
                ),
            ));
        }
        Resolved {
            window: longest,
            closed: true,
            found: WindowFound::Stretch {
                of: stretches.len() as u64,
            },
            notes,
        }
    }
}

/// No whole interval of that name: what there is instead.
fn none_of(name: &str, process: &str, named: &Named, others: &std::collections::BTreeMap<String, Named>) -> Error {
    let mut why = Vec::new();
    if named.open > 0 {
        why.push(format!("{} without an end", plural(named.open, "begin")));
    }
    if named.ends > 0 {
        why.push(format!("{} without a begin", plural(named.ends, "end")));
    }
    if named.points > 0 {
        why.push(plural(named.points, "single event"));
    }
    let with_intervals: Vec<_> = others.iter().filter(|(_, named)| !named.intervals.is_empty()).collect();
    let mut list: Vec<String> = with_intervals
        .iter()
        .take(LISTED)
        .map(|(name, named)| format!("{name} ({})", named.intervals.len()))
        .collect();
    if with_intervals.len() > LISTED {
        list.push(format!("and {} more", with_intervals.len() - LISTED));
    }
    let list = if list.is_empty() {
        "none".to_owned()
    } else {
        list.join(", ")
    };
    let has = if why.is_empty() {
        String::new()
    } else {
        format!(" (it has {})", why.join(" and "))
    };
    Error::unfit(format!(
        "{process} has no interval of signpost `{name}`{has}; intervals of other signposts: {list}"
    ))
    .with_help("a name matches exactly; a program's own signposts are recorded with `--instrument os_signpost`")
}
