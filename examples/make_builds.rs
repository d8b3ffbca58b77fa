//! Writes recordings of three builds of a made-up engine, to try the gate on: `cargo run --example make_builds DIR`.
//!
//! `main`, `slow` (the phase hf2q.decode.layer.ffn.down takes 4 % longer) and `fixed`, five recordings of 24 tokens each.
#![allow(clippy::expect_used, clippy::print_stdout)]

#[path = "../tests/support/mod.rs"]
mod support;

use std::path::Path;

fn main() {
    let Some(folder) = std::env::args().nth(1) else {
        println!("usage: make_builds DIR");
        std::process::exit(2);
    };
    support::builds::write(Path::new(&folder)).expect("the recordings could be written");
    println!("three builds, five recordings each, in {folder}");
}
