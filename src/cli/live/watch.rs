//! `live watch`: a table that is redrawn with each window, or a line of JSON for each when nobody looks at a terminal.

use std::ffi::OsString;
use std::io::{self, IsTerminal, Write};
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU8, Ordering};
use std::time::Duration;

use clap::{Args, ValueEnum};
use serde::Serialize;

use crate::attribution::Buckets;
use crate::cli::output::width;
use crate::cli::{Console, ExitStatus, Stop, print_warning, stdout_failed};
use crate::compare::TrialOptions;
use crate::error::Result;
use crate::figures::{NOT_MEASURED, count, number};
use crate::label::{cut, visible, width as width_of};
use crate::model::{Nanos, parse_time};
use crate::watch::{WatchBy, WatchEnd, WatchOptions, Watched, WindowReport, watch};
use crate::xctrace::{Program, XctraceOptions, end_children};

const EXAMPLES: &str = "\
Examples:
  trace-attr live watch --attach 4242
  trace-attr live watch --window 1s --windows 5 -- llama-cli -m model.gguf -p Hello
  trace-attr live watch --attach 4242 --by buckets > windows.jsonl

Each window is a recording by xctrace (macOS with Xcode), exported, attributed and deleted before the next begins, so
only a part of the time is recorded; the table says which part. A change is that of GPU time per recorded second to the
window before. A command is started by trace-attr itself and attached to, because `xctrace --launch` kills what it
launched at its time limit; it ends with the watch. One Ctrl-C ends the watch; a window that was not complete is not
shown.";

/// Arguments of `live watch`.
#[derive(Debug, Args)]
#[command(after_long_help = EXAMPLES)]
#[command(group = clap::ArgGroup::new("whom").required(true).args(["attach", "command"]))]
pub(in crate::cli) struct WatchArgs {
    /// Watch the program with this pid
    #[arg(long, value_name = "PID")]
    attach: Option<u32>,
    /// Start this command and watch it; its output goes to standard error
    #[arg(last = true, value_name = "CMD")]
    command: Vec<OsString>,
    /// Length of each recording (500ms, 2s)
    #[arg(long, value_name = "TIME", default_value = "2s", value_parser = parse_window)]
    window: Nanos,
    /// End after so many windows
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    windows: Option<u32>,
    /// What the rows are
    #[arg(long, value_enum, default_value_t)]
    by: By,
    /// Bucket edges (2us,8us,…)
    #[arg(long, value_name = "EDGES")]
    buckets: Option<Buckets>,
    /// Keep the recordings in this folder
    #[arg(long, value_name = "DIR")]
    keep: Option<PathBuf>,
    /// Instruments template to record with
    #[arg(long, value_name = "NAME", default_value = "Metal System Trace")]
    template: String,
    /// How long xctrace may be silent beyond a window before it is ended
    #[arg(long, value_name = "TIME", default_value = "2m", value_parser = parse_time)]
    timeout: Nanos,
    /// JSON Lines also on a terminal
    #[arg(long)]
    json: bool,
}

/// What the rows are.
#[derive(Debug, Clone, Copy, Default, ValueEnum)]
enum By {
    /// Phases
    #[default]
    Phases,
    /// Duration buckets
    Buckets,
}

/// xctrace takes a while to attach, so a window below this says little.
fn parse_window(text: &str) -> Result<Nanos, String> {
    match parse_time(text)? {
        time if time.0 < 100_000_000 => Err("a window is at least 100ms".to_owned()),
        time if time.0 > 600_000_000_000 => Err("a window is at most 10m".to_owned()),
        time => Ok(time),
    }
}

/// No watch; a watch; a watch that was told to stop.
static WATCHING: AtomicU8 = AtomicU8::new(0);

/// Ctrl-C: whether a watch takes it, and ends by itself. A second one is not taken.
pub(in crate::cli) fn interrupted() -> bool {
    let taken = WATCHING
        .compare_exchange(1, 2, Ordering::SeqCst, Ordering::SeqCst)
        .is_ok();
    if taken {
        end_children();
    }
    taken
}

pub(super) fn run(args: WatchArgs, console: Console) -> Result<ExitStatus, Stop> {
    let options = WatchOptions {
        window: Duration::from_nanos(args.window.0),
        windows: args.windows,
        by: match args.by {
            By::Phases => WatchBy::Phases,
            By::Buckets => WatchBy::Buckets,
        },
        template: args.template,
        trial: TrialOptions {
            buckets: args.buckets.unwrap_or_default(),
            ..TrialOptions::default()
        },
        keep: args.keep,
        xctrace: XctraceOptions {
            timeout: Duration::from_nanos(args.timeout.0),
            cache: None,
            ..XctraceOptions::default()
        },
    };
    let watched = match args.attach {
        Some(pid) => Watched::Process(pid),
        // Our own standard output has the numbers.
        None => Watched::Program(Program::start(&args.command, io::stderr())?),
    };
    WATCHING.store(1, Ordering::SeqCst);
    let table = io::stdout().is_terminal() && !args.json;
    let mut drawn = 0;
    let mut failed = None;
    let end = watch(
        watched,
        &options,
        || WATCHING.load(Ordering::SeqCst) == 2,
        |report| {
            let text = if table {
                redraw(report, options.by, &mut drawn)
            } else {
                line(report, options.by)
            };
            for warning in &report.warnings {
                // In the table they would be drawn over.
                if !table {
                    print_warning(console, warning);
                }
            }
            let mut out = io::stdout().lock();
            match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
                Ok(()) => ControlFlow::Continue(()),
                Err(error) => {
                    failed = Some(error);
                    ControlFlow::Break(())
                }
            }
        },
    );
    WATCHING.store(0, Ordering::SeqCst);
    if let Some(error) = failed {
        return Err(stdout_failed(error, ExitStatus::Done));
    }
    if let WatchEnd::ProgramEnded(how) = end? {
        print_warning(console, &format!("the program {how}, so the watch is over"));
    }
    Ok(ExitStatus::Done)
}

/// The table, drawn over the one before.
fn redraw(report: &WindowReport, by: WatchBy, drawn: &mut usize) -> String {
    let text = drawing(report, by, width());
    let before = std::mem::replace(drawn, text.lines().count());
    match before {
        0 => text,
        before => format!("\u{1b}[{before}A\u{1b}[J{text}"),
    }
}

/// Most rows of a table that is redrawn: more than fit would scroll.
const MOST_ROWS: usize = 20;

/// The table of a window.
fn drawing(report: &WindowReport, by: WatchBy, columns: usize) -> String {
    let seconds = |Nanos(ns): Nanos| format!("{:.1} s", ns as f64 / 1e9);
    let process = match &report.process {
        Some(process) => visible(&process.name),
        None => "nothing counted".to_owned(),
    };
    let mut lines = vec![format!(
        "window {}  {process}  recorded {} of {}  GPU busy {} µs of {} µs",
        report.number,
        seconds(report.recorded_in_all),
        seconds(report.elapsed),
        number(us(report.busy)),
        number(us(report.recorded)),
    )];
    let signed = |pct: f64| format!("{pct:+.1} %");
    let heading = match by {
        WatchBy::Phases => "phase",
        WatchBy::Buckets => "bucket",
    };
    let mut rows = vec![["submissions", "GPU µs", "share", "change"].map(str::to_owned)];
    let mut names = vec![heading.to_owned()];
    for row in report.rows.iter().take(MOST_ROWS) {
        names.push(visible(&row.key));
        rows.push([
            count(row.submissions),
            number(us(row.total)),
            row.share_pct
                .map_or_else(|| NOT_MEASURED.to_owned(), |pct| format!("{pct:.1} %")),
            row.change_pct.map_or_else(|| NOT_MEASURED.to_owned(), signed),
        ]);
    }
    let widest = |at: usize| {
        rows.iter()
            .filter_map(|row| row.get(at))
            .map(|cell| width_of(cell))
            .max()
    };
    let widths: Vec<usize> = (0..4).map(|at| widest(at).unwrap_or(0)).collect();
    let room = columns.saturating_sub(widths.iter().map(|width| width + 2).sum());
    let names: Vec<String> = names.iter().map(|name| cut(name, room.max(8))).collect();
    let name_width = names.iter().map(|name| width_of(name)).max().unwrap_or(0);
    for (name, row) in names.iter().zip(&rows) {
        let mut line = format!("{name}{}", " ".repeat(name_width.saturating_sub(width_of(name))));
        for (cell, width) in row.iter().zip(&widths) {
            line += &format!("  {}{cell}", " ".repeat(width.saturating_sub(width_of(cell))));
        }
        lines.push(line);
    }
    let hidden = report.rows.len().saturating_sub(MOST_ROWS);
    if hidden > 0 {
        let rest: u64 = report.rows.iter().skip(MOST_ROWS).map(|row| row.total.0).sum();
        lines.push(format!("and {hidden} more with {} µs", number(us(Nanos(rest)))));
    }
    lines.extend(
        report
            .warnings
            .iter()
            .map(|warning| format!("warning: {}", visible(warning))),
    );
    // A line that wraps would be counted as one, and drawn over by half.
    let lines = lines.iter().map(|line| format!("{}\n", cut(line, columns)));
    lines.collect()
}

fn us(Nanos(ns): Nanos) -> f64 {
    ns as f64 / 1e3
}

/// A window as one line of JSON.
fn line(report: &WindowReport, by: WatchBy) -> String {
    #[derive(Serialize)]
    struct Line<'a> {
        schema: &'static str,
        schema_version: u32,
        window: u32,
        process: Option<Owner<'a>>,
        by: &'static str,
        recorded_ns: u64,
        recorded_in_all_ns: u64,
        elapsed_ns: u64,
        total_ns: u64,
        busy_ns: u64,
        rows: Vec<Row<'a>>,
        warnings: &'a [String],
    }
    #[derive(Serialize)]
    struct Owner<'a> {
        name: &'a str,
        pid: Option<u32>,
    }
    #[derive(Serialize)]
    struct Row<'a> {
        key: &'a str,
        submissions: u64,
        total_ns: u64,
        busy_ns: u64,
        share_pct: Option<f64>,
        change_pct: Option<f64>,
    }
    let line = Line {
        schema: "trace-attr.watch",
        schema_version: 1,
        window: report.number,
        process: report.process.as_ref().map(|process| Owner {
            name: &process.name,
            pid: process.pid,
        }),
        by: by.name(),
        recorded_ns: report.recorded.0,
        recorded_in_all_ns: report.recorded_in_all.0,
        elapsed_ns: report.elapsed.0,
        total_ns: report.total.0,
        busy_ns: report.busy.0,
        rows: report
            .rows
            .iter()
            .map(|row| Row {
                key: &row.key,
                submissions: row.submissions,
                total_ns: row.total.0,
                busy_ns: row.busy.0,
                share_pct: row.share_pct,
                change_pct: row.change_pct,
            })
            .collect(),
        warnings: &report.warnings,
    };
    // Structs of texts and finite numbers: nothing in them can fail.
    let mut text = serde_json::to_string(&line).unwrap_or_default();
    text.push('\n');
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Process;
    use crate::watch::WatchRow;

    fn window() -> WindowReport {
        let row = |key: &str, us: u64, change_pct| WatchRow {
            key: key.to_owned(),
            submissions: 12,
            total: Nanos(us * 1_000),
            busy: Nanos(us * 1_000),
            share_pct: Some(us as f64 / 10.0),
            change_pct,
        };
        WindowReport {
            number: 3,
            process: Some(Process {
                name: "llama-cli".to_owned(),
                pid: Some(7),
            }),
            recorded: Nanos(2_000_000_000),
            recorded_in_all: Nanos(2_000_000_000),
            elapsed: Nanos(14_300_000_000),
            total: Nanos(1_000_000),
            busy: Nanos(900_000),
            rows: vec![row("ffn.\u{1b}[31mup", 750, Some(12.34)), row("attention", 250, None)],
            warnings: vec!["a\nb".to_owned()],
        }
    }

    #[test]
    fn the_table_says_which_part_of_the_time_was_recorded() {
        let expected = "\
window 3  llama-cli  recorded 2.0 s of 14.3 s  GPU busy 900.0 µs of 2,000,000 µs
phase             submissions  GPU µs   share   change
ffn.\\u{1b}[31mup           12   750.0  75.0 %  +12.3 %
attention                  12   250.0  25.0 %        –
warning: a\\u{a}b
";
        assert_eq!(drawing(&window(), WatchBy::Phases, 100), expected);
    }

    #[test]
    fn no_line_is_wider_than_the_terminal_and_the_next_table_is_drawn_over_the_last() {
        let mut drawn = 0;
        let narrow = drawing(&window(), WatchBy::Phases, 40);
        assert!(narrow.lines().all(|line| width_of(line) <= 40), "{narrow}");
        let first = redraw(&window(), WatchBy::Phases, &mut drawn);
        let second = redraw(&window(), WatchBy::Phases, &mut drawn);
        assert!(
            !first.starts_with('\u{1b}') && second.starts_with("\u{1b}[5A\u{1b}[J"),
            "{second:?}"
        );
    }
}
