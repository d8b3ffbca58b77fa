//! Writes 200 small recordings of a made-up engine on five machines over eight commits: `cargo run --example make_fleet DIR`.
//!
//! Prints a line for each commit on each machine: machine, commit, day and the folders of its trials, with tabs between.
#![allow(clippy::expect_used, clippy::print_stdout)]

#[path = "../tests/support/mod.rs"]
mod support;

use std::path::Path;

fn main() {
    let Some(folder) = std::env::args().nth(1) else {
        println!("usage: make_fleet DIR");
        std::process::exit(2);
    };
    for night in support::fleet::write(Path::new(&folder)).expect("the recordings could be written") {
        let trials = night.trials.join("\t");
        println!("{}\t{}\t{}\t{trials}", night.machine, night.commit, night.committed);
    }
}
