//! The layers of the source keep their order: a file uses only layers above its own, and each of a few dangerous things
//! is done in one place.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

use std::fs;
use std::path::{Path, PathBuf};

/// Layers with what each may use of the crate, itself aside. `model` and `error` are everybody's.
const LAYERS: &[(&str, &[&str])] = &[
    ("error", &[]),
    ("model", &["error"]),
    ("measure", &["model"]),
    ("label", &[]),
    ("figures", &["model"]),
    ("placed", &["error"]),
    ("timeline", &[]),
    ("calltree", &["timeline"]),
    ("parallel", &[]),
    // Numbers come from the model alone: neither this nor `compare` knows that exports or XML exist.
    ("attribution", &["error", "measure", "model", "parallel"]),
    (
        "convert",
        &[
            "timeline",
            "calltree",
            "error",
            "label",
            "measure",
            "model",
            "attribution",
        ],
    ),
    ("inference", &[]),
    ("cache", &["error"]),
    ("source", &["error", "model"]),
    ("xctrace", &["error", "model", "cache"]),
    ("xml", &["error", "model"]),
    ("tables", &["error", "model", "xml"]),
    (
        "recording",
        &[
            "error", "model", "parallel", "cache", "source", "xctrace", "xml", "tables",
        ],
    ),
    ("join", &["error", "model", "tables", "recording"]),
    // A second producer, for programs that link nothing of the reading part.
    (
        "live",
        &[
            "calltree",
            "convert",
            "timeline",
            "error",
            "figures",
            "label",
            "inference",
            "measure",
            "model",
            "placed",
        ],
    ),
    ("compare", &["error", "inference", "model", "parallel", "attribution"]),
    (
        "report",
        &[
            "error",
            "figures",
            "label",
            "inference",
            "model",
            "attribution",
            "compare",
        ],
    ),
    (
        "analysis",
        &[
            "error",
            "model",
            "parallel",
            "source",
            "recording",
            "join",
            "attribution",
            "compare",
            "live",
        ],
    ),
    // Traces as what `convert` writes.
    (
        "shapes",
        &[
            "error",
            "model",
            "attribution",
            "analysis",
            "live",
            "timeline",
            "calltree",
            "convert",
        ],
    ),
    // A recording after the other, each the whole way.
    (
        "watch",
        &[
            "error",
            "model",
            "xctrace",
            "recording",
            "join",
            "attribution",
            "compare",
            "analysis",
        ],
    ),
    // Keys mean what the options of other layers mean.
    (
        "config",
        &["error", "model", "placed", "join", "attribution", "compare"],
    ),
    (
        "cli",
        &[
            "cache",
            "config",
            "convert",
            "figures",
            "label",
            "live",
            "watch",
            "error",
            "model",
            "parallel",
            "source",
            "xctrace",
            "xml",
            "tables",
            "recording",
            "join",
            "attribution",
            "compare",
            "report",
            "analysis",
        ],
    ),
];

/// Files of `src` with their path below it and their text without tests.
fn sources() -> Vec<(String, String)> {
    fn walk(folder: &Path, files: &mut Vec<PathBuf>) {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                walk(&path, files);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                files.push(path);
            }
        }
    }
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut files = Vec::new();
    walk(&root, &mut files);
    files.sort();
    let relative = |path: &Path| {
        let parts = path.strip_prefix(&root).unwrap().components();
        parts
            .map(|part| part.as_os_str().to_str().unwrap())
            .collect::<Vec<_>>()
            .join("/")
    };
    files
        .iter()
        .map(|path| (relative(path), fs::read_to_string(path).unwrap()))
        // Unit tests in files of their own.
        .filter(|(name, _)| !name.ends_with("/tests.rs") && !name.ends_with("/fixture.rs"))
        .map(|(name, text)| (name, code(&text)))
        .collect()
}

/// The text without comments and without the unit tests at its end.
fn code(text: &str) -> String {
    let text = text.split("#[cfg(test)]\nmod tests {").next().unwrap();
    text.lines()
        .filter(|line| !line.trim_start().starts_with("//"))
        .map(|line| format!("{line}\n"))
        .collect()
}

fn layer(file: &str) -> &str {
    let top = file.split('/').next().unwrap();
    top.strip_suffix(".rs").unwrap_or(top)
}

/// Layers that are named after `crate::`, also in a group.
fn used(code: &str) -> Vec<String> {
    let mut found = Vec::new();
    for (at, _) in code.match_indices("crate::") {
        let rest = &code[at + "crate::".len()..];
        let word = |text: &str| -> String { text.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect() };
        if let Some(group) = rest.strip_prefix('{') {
            let mut depth = 0;
            let mut item = String::new();
            for c in group.chars() {
                match c {
                    '{' => depth += 1,
                    '}' if depth == 0 => break,
                    '}' => depth -= 1,
                    ',' if depth == 0 => found.push(word(std::mem::take(&mut item).trim())),
                    _ if depth == 0 => item.push(c),
                    _ => {}
                }
            }
            found.push(word(item.trim()));
        } else {
            found.push(word(rest));
        }
    }
    found.retain(|name| !name.is_empty());
    found
}

#[test]
fn a_file_uses_only_the_layers_above_it() {
    let mut wrong = Vec::new();
    for (file, code) in sources() {
        if matches!(file.as_str(), "lib.rs" | "main.rs") {
            continue;
        }
        let own = layer(&file);
        let (_, above) = LAYERS
            .iter()
            .find(|(name, _)| *name == own)
            .unwrap_or_else(|| panic!("{file} is in no known layer: add `{own}` to the order"));
        for name in used(&code) {
            // `crate::Result` and other names of the root.
            let is_layer = LAYERS.iter().any(|(layer, _)| *layer == name);
            if is_layer && name != own && !above.contains(&name.as_str()) {
                wrong.push(format!("{file} uses crate::{name}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn the_order_has_no_circle() {
    for (at, (name, above)) in LAYERS.iter().enumerate() {
        for other in *above {
            let place = LAYERS.iter().position(|(layer, _)| layer == other);
            assert!(place.is_some_and(|place| place < at), "{name} uses {other}");
        }
    }
}

/// Fails for every file outside `places` whose code holds one of `words`.
fn only_in(words: &[&str], places: &[&str]) {
    for (file, code) in sources() {
        if places.iter().any(|place| file.starts_with(place)) {
            continue;
        }
        for word in words {
            let line = code.lines().find(|line| line.contains(word));
            assert!(line.is_none(), "{file}: {}", line.unwrap_or_default());
        }
    }
}

#[test]
fn each_dangerous_thing_has_its_place() {
    only_in(&["quick_xml"], &["xml/"]);
    only_in(
        &["println!", "print!", "eprintln!", "dbg!", "io::stdout", "io::stderr"],
        &["cli/", "main.rs"],
    );
    only_in(&["Command::new", "process::Command"], &["xctrace"]);
    only_in(&["process::exit"], &["cli/"]);
    only_in(
        &["flate2", "ruzstd"],
        &["source.rs", "convert/pprof.rs", "cli/export.rs", "xctrace/cache.rs"],
    );
    only_in(&["unsafe "], &["live/backend/metal/", "live/ffi.rs"]);
    only_in(&["transmute"], &[]);
    only_in(&["todo!", "unimplemented!"], &[]);
}
