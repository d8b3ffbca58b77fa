//! The checked-in fixtures are what `cargo run --example make_fixtures` makes: no byte was changed by hand.
#![allow(clippy::panic)]

mod support;

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use support::fixtures::File;

static MADE: LazyLock<Vec<File>> = LazyLock::new(support::fixtures::all);

fn files_below(folder: &Path, root: &Path, found: &mut BTreeSet<String>) {
    for entry in fs::read_dir(folder)
        .unwrap_or_else(|error| panic!("{}: {error}", folder.display()))
        .flatten()
    {
        let path = entry.path();
        if path.is_dir() {
            files_below(&path, root, found);
        } else if let Ok(inside) = path.strip_prefix(root) {
            let parts: Vec<_> = inside.iter().map(|part| part.to_string_lossy()).collect();
            found.insert(parts.join("/"));
        }
    }
}

#[test]
fn checked_in_fixtures_are_what_the_generator_makes() {
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("fixtures");
    let mut on_disk = BTreeSet::new();
    for part in ["demo", "good", "refused"] {
        files_below(&root.join(part), &root, &mut on_disk);
    }
    let help = "run `cargo run --example make_fixtures` and look at the change";
    for (name, expected) in &*MADE {
        let found = fs::read(root.join(name)).unwrap_or_else(|error| panic!("{name}: {error}; {help}"));
        // A newer compressor may pack the same content into other bytes: that is no change of the fixture.
        let same = found == *expected
            || (name.ends_with(".gz") || name.ends_with(".zst"))
                && support::pack::unpacked(name, &found) == support::pack::unpacked(name, expected);
        assert!(
            same,
            "{name} differs from the generator's ({} and {} bytes); {help}",
            found.len(),
            expected.len()
        );
        assert!(on_disk.remove(name), "{name} was made twice");
    }
    assert!(on_disk.is_empty(), "fixtures that nothing makes: {on_disk:?}; {help}");
}

#[test]
fn every_fixture_is_described() {
    let readme = include_str!("../fixtures/README.md");
    for (name, _) in &*MADE {
        let mut parts = name.split('/').skip(1);
        let entry = parts.next().unwrap_or_default();
        assert!(
            readme.contains(&format!("`{entry}")),
            "fixtures/README.md does not mention {name}"
        );
    }
}

#[test]
fn the_demo_stays_small() {
    let demo = support::fixtures::all()
        .into_iter()
        .filter(|(name, _)| name.starts_with("demo/"));
    let bytes: usize = demo.map(|(_, bytes)| bytes.len()).sum();
    assert!(bytes < 3_000_000, "{bytes} bytes");
}
