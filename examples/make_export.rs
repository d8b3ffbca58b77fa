//! Writes exports of about MB megabytes to measure with: `cargo run --release --example make_export DIR MB [--no-ids] [SCHEMA…]`.
//!
//! Without a schema: points, map and encoders. The tables are a made-up decode workload (`tests/support/workload.rs`).
#![allow(clippy::expect_used, clippy::print_stdout)]

#[path = "../tests/support/mod.rs"]
mod support;

use std::path::Path;

fn main() {
    let mut arguments: Vec<String> = std::env::args().skip(1).collect();
    let without_ids = arguments.iter().position(|argument| argument == "--no-ids");
    if let Some(at) = without_ids {
        arguments.remove(at);
    }
    let mut arguments = arguments.into_iter();
    let (Some(folder), Some(megabytes)) = (arguments.next(), arguments.next().and_then(|n| n.parse::<u64>().ok()))
    else {
        println!("usage: make_export DIR MB [--no-ids] [SCHEMA…]");
        std::process::exit(2);
    };
    let schemas: Vec<String> = arguments.collect();
    let mut schemas: Vec<&str> = schemas.iter().map(String::as_str).collect();
    if schemas.is_empty() {
        schemas = vec![
            "metal-gpu-execution-points",
            "metal-gpu-submission-to-command-buffer-id",
            "metal-application-encoders-list",
        ];
    }
    let workload = support::sized::workload(&schemas, megabytes << 20);
    let ids = support::sized::write(workload, &schemas, without_ids.is_none(), Path::new(&folder))
        .expect("the tables could be written");
    println!("{} tokens, {ids} ids", workload.tokens);
}
