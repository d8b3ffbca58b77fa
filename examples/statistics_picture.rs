//! Writes the picture of `docs/statistics.md` anew: `cargo run --example statistics_picture`. The same bytes every time.

#[path = "../tests/trials/picture.rs"]
mod picture;
#[path = "../tests/support/mod.rs"]
mod support;

fn main() -> std::io::Result<()> {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join(picture::FILE);
    std::fs::write(path, picture::svg())
}
