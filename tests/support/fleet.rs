//! Recordings of an engine on several machines over several commits, with three faults for a query to find: one commit
//! that made one phase slower, one machine that is slow in another phase, and one whose trials differ from each other.
//!
//! A trial is few submissions, because there are many trials: eight tokens of six phases.

use std::fs;
use std::io;
use std::path::Path;

use super::export::{ExportBuilder, GpuInterval, Ids, Process, Row};
use super::toc::{Run, Toc, TocTable};
use super::workload::{Rng, nanos};

pub const MACHINES: [&str; 5] = ["studio-1", "studio-2", "studio-3", "mini-1", "mini-2"];
/// Commits and their days, in order.
pub const COMMITS: [(&str, &str); 8] = [
    ("4be02a9", "2026-09-01"),
    ("91d77c3", "2026-09-02"),
    ("0e51fb8", "2026-09-03"),
    ("c3a96d0", "2026-09-04"),
    ("7735e14", "2026-09-05"),
    ("d8f0421", "2026-09-06"),
    ("2a6b9ce", "2026-09-07"),
    ("f14c805", "2026-09-08"),
];
/// Trials of each commit on each machine.
pub const REPEATS: u64 = 5;
/// Tokens of every trial.
pub const TOKENS: u64 = 8;

/// From this commit on, this phase takes 8 % longer.
const REGRESSION: (&str, &str, u64) = ("d8f0421", "decode.ffn.down", 1_080_000);
/// On this machine, this phase takes 40 % longer.
const SLOW_MACHINE: (&str, &str, u64) = ("studio-3", "decode.attn.core", 1_400_000);
/// On this machine, trials differ by up to so many millionths in each direction; elsewhere by `QUIET`.
const NOISY_MACHINE: (&str, u64) = ("mini-2", 90_000);
const QUIET: u64 = 6_000;

/// Phases of a token with their lengths in µs.
const PHASES: [(&str, u64); 6] = [
    ("decode.embed", 6),
    ("decode.attn.qkv", 54),
    ("decode.attn.core", 92),
    ("decode.ffn.gate_up", 130),
    ("decode.ffn.down", 75),
    ("decode.lm_head", 160),
];

/// Trials of one commit on one machine.
pub struct Night {
    pub machine: &'static str,
    pub commit: &'static str,
    /// The day of the commit.
    pub committed: &'static str,
    /// Their folders, as names below the one that was written.
    pub trials: Vec<String>,
}

/// Writes the recordings as `MACHINE/COMMIT/N`.
pub fn write(folder: &Path) -> io::Result<Vec<Night>> {
    let mut nights = Vec::new();
    let mut seed = 0;
    for (commit, committed) in COMMITS {
        for machine in MACHINES {
            let mut trials = Vec::new();
            for number in 1..=REPEATS {
                seed += 1;
                let name = format!("{machine}/{commit}/{number}");
                write_trial(&folder.join(&name), seed, machine, commit, committed)?;
                trials.push(name);
            }
            nights.push(Night {
                machine,
                commit,
                committed,
                trials,
            });
        }
    }
    Ok(nights)
}

fn write_trial(folder: &Path, seed: u64, machine: &str, commit: &str, committed: &str) -> io::Result<()> {
    let place = |wanted| COMMITS.iter().position(|(commit, _)| *commit == wanted);
    let mut rng = Rng::new(seed);
    let noise = if machine == NOISY_MACHINE.0 {
        NOISY_MACHINE.1
    } else {
        QUIET
    };
    let speed = rng.around(1_000_000, noise);
    let process = Process::new("engine", 900 + seed % 7);
    let mut at = 48_000;
    let mut object = 0x6000_0000 + seed * 0x1000;
    let mut rows = Vec::new();
    for _ in 0..TOKENS {
        for (phase, us) in PHASES {
            let mut factor = speed;
            if phase == REGRESSION.1 && place(commit) >= place(REGRESSION.0) {
                factor = factor * REGRESSION.2 / 1_000_000;
            }
            if phase == SLOW_MACHINE.1 && machine == SLOW_MACHINE.0 {
                factor = factor * SLOW_MACHINE.2 / 1_000_000;
            }
            let ticks = rng.around(us * 24 * factor / 1_000_000, 10_000);
            object += 3;
            let ids = Ids {
                command_buffer: object,
                encoder: object + 1,
                submission: object + 2,
            };
            let label = format!("{phase}:Compute Command 0");
            rows.push(GpuInterval::new(
                nanos(at),
                nanos(at + ticks) - nanos(at),
                &label,
                &process,
                ids,
            ));
            at += ticks + rng.between(24, 72);
        }
    }
    fs::create_dir_all(folder)?;
    let schema = GpuInterval::TABLE.schema;
    let file = fs::File::create(folder.join(format!("{schema}.xml")))?;
    let mut export = ExportBuilder::new(io::BufWriter::new(file));
    export.table(GpuInterval::TABLE).rows(rows);
    export.finish()?;
    let mut run = Run::new(1, &process, (nanos(at) + 50_000_000) / 1000);
    run.start = format!("{committed}T02:{:02}:00.000+00:00", seed % 60);
    run.end = format!("{committed}T02:{:02}:02.000+00:00", seed % 60);
    run.tables = vec![TocTable::new(schema)];
    fs::write(folder.join("toc.xml"), Toc { runs: vec![run] }.to_xml())
}
