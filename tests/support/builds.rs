//! Three builds of one engine to gate: `main`, `slow` (one phase takes 4 % longer) and `fixed` (as `main`).
//!
//! Five recordings each, taken in turns, so that every pair of builds was recorded in the order A B B A A B B A A B.

use std::io;
use std::path::Path;

use super::sized;
use super::workload::{Engine, Workload};

/// The phase that is slower in `slow`, as reports name it.
pub const SLOWER_PHASE: &str = "hf2q.decode.layer.ffn.down";
/// Tokens of every recording.
pub const TOKENS: u64 = 24;

/// Names of the builds with the seeds of their recordings, which also are their order.
pub const BUILDS: [(&str, [u64; 5]); 3] = [
    ("main", [1, 6, 7, 12, 13]),
    ("slow", [2, 5, 8, 11, 14]),
    ("fixed", [3, 4, 9, 10, 15]),
];

/// Writes `main-1` to `fixed-5` as folders of exported files.
pub fn write(folder: &Path) -> io::Result<()> {
    let schemas = [
        "metal-gpu-intervals",
        "metal-application-encoders-list",
        "metal-gpu-info",
    ];
    for (name, seeds) in BUILDS {
        for (number, seed) in (1..).zip(seeds) {
            let mut workload = Workload::new(Engine::Hf2q, TOKENS, seed, 1);
            if name == "slow" {
                workload = workload.with_slower("ffn.down", 40);
            }
            let trial = folder.join(format!("{name}-{number}"));
            sized::write(workload, &schemas, true, &trial)?;
            std::fs::write(trial.join("toc.xml"), workload.toc(&schemas).to_xml())?;
        }
    }
    Ok(())
}
