//! Writes `fixtures/` anew: `cargo run --example make_fixtures [FOLDER]`. The same bytes every time.
//!
//! `fixtures/README.md` is written by hand and stays.
#![allow(clippy::print_stdout)]

#[path = "../tests/support/mod.rs"]
mod support;

use std::path::PathBuf;
use std::{env, fs, io};

fn main() -> io::Result<()> {
    let default = || PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("fixtures");
    let root = env::args_os().nth(1).map_or_else(default, PathBuf::from);
    for part in ["demo", "good", "refused"] {
        match fs::remove_dir_all(root.join(part)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
    }
    let (mut count, mut total) = (0, 0);
    for (name, bytes) in support::fixtures::all() {
        let path = root.join(&name);
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder)?;
        }
        fs::write(&path, &bytes)?;
        count += 1;
        total += bytes.len();
    }
    println!("{count} files, {total} bytes in {}", root.display());
    Ok(())
}
