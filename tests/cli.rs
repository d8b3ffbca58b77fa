//! The command line as a user sees it: every console block of the README and the docs, and `tests/cmd/`.
//!
//! After a change that is meant, `TRYCMD=overwrite cargo test --test cli` writes the blocks anew; look at the diff.
#![cfg(feature = "cli")]
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing)]

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use assert_cmd::Command;
use serde_json::Value;

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

fn read(path: impl AsRef<Path>) -> String {
    let path = root().join(path);
    fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// A folder that cannot be: nothing here is large enough for the cache.
fn no_cache() -> PathBuf {
    root().join("Cargo.toml/cache")
}

/// The binary, away from whatever the user's terminal is like.
fn trace_attr(arguments: &[&str]) -> Command {
    let mut command = Command::cargo_bin("trace-attr").unwrap();
    command.current_dir(root()).env("COLUMNS", "100").env("NO_COLOR", "1");
    command.env("TRACE_ATTR_CACHE_DIR", no_cache());
    command.args(arguments);
    command
}

fn stdout(arguments: &[&str]) -> String {
    let output = trace_attr(arguments).output().unwrap();
    assert!(
        output.status.success(),
        "{arguments:?}: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn console_blocks_show_what_the_commands_print() {
    trycmd::TestCases::new()
        // Help wraps at the terminal's width where there is one.
        .env("COLUMNS", "100")
        .env("NO_COLOR", "1")
        .env("TRACE_ATTR_CACHE_DIR", no_cache().to_str().unwrap())
        .case("README.md")
        .case("CONTRIBUTING.md")
        .case("docs/*.md")
        .case("tests/cmd/*.trycmd");
}

/// The two commands of the README's first block.
fn opening_commands() -> Vec<String> {
    let readme = read("README.md");
    let block = readme.split("```").nth(1).unwrap();
    block.lines().skip(1).map(str::to_owned).collect()
}

#[test]
fn the_readme_opens_with_commands_whose_output_is_tested() {
    let commands = opening_commands();
    assert_eq!(commands.len(), 2, "{commands:?}");
    let shown = commands[0].strip_prefix("cargo run --release -- ").unwrap();
    assert!(
        read("README.md").contains(&format!("$ trace-attr {shown}\n")),
        "no console block shows the output of the first command"
    );
    assert_eq!(commands[1], "cargo test");
}

#[test]
fn links_between_the_documents_lead_somewhere() {
    let mut documents = vec![
        PathBuf::from("README.md"),
        "CONTRIBUTING.md".into(),
        "CHANGELOG.md".into(),
        "fixtures/README.md".into(),
    ];
    let docs = fs::read_dir(root().join("docs")).unwrap().flatten();
    let docs = docs.filter(|entry| entry.path().is_file());
    documents.extend(docs.map(|entry| Path::new("docs").join(entry.file_name())));
    for document in documents {
        let text = read(&document);
        for target in text.split("](").skip(1).filter_map(|rest| rest.split(')').next()) {
            let file = target.split('#').next().unwrap();
            if target.contains("://") || file.is_empty() {
                continue;
            }
            let there = root().join(document.parent().unwrap()).join(file);
            assert!(there.exists(), "{}: {target}", document.display());
        }
    }
}

#[test]
fn the_index_of_the_docs_names_every_document() {
    let index = read("docs/README.md");
    for entry in fs::read_dir(root().join("docs")).unwrap().flatten() {
        let name = entry.file_name().into_string().unwrap();
        assert!(name == "README.md" || index.contains(&format!("({name})")), "{name}");
    }
}

#[test]
fn the_book_has_every_page_and_every_command_a_page() {
    let summary = read("docs/SUMMARY.md");
    for entry in fs::read_dir(root().join("docs")).unwrap().flatten() {
        let name = entry.file_name().into_string().unwrap();
        if name.ends_with(".md") && name != "SUMMARY.md" {
            assert_eq!(summary.matches(&format!("({name})")).count(), 1, "{name}");
        }
    }
    let help = stdout(&["--help"]);
    let commands = help.lines().skip_while(|line| *line != "Commands:").skip(1);
    let commands: Vec<&str> = commands
        .take_while(|line| !line.is_empty())
        .filter_map(|line| {
            line.strip_prefix("  ")?
                .split(' ')
                .next()
                .filter(|name| !name.is_empty())
        })
        .collect();
    assert!(commands.len() > 10, "{commands:?}");
    for command in commands.iter().filter(|command| **command != "help") {
        let titles = summary
            .lines()
            .filter_map(|line| line.strip_prefix("- [")?.split(']').next());
        assert!(
            titles
                .flat_map(|title| title.split(", "))
                .any(|title| title == *command),
            "{command}"
        );
    }
}

#[test]
fn man_pages_and_completions_name_every_command_and_its_options() {
    let folder = tempfile::tempdir().unwrap();
    stdout(&["man", "--dir", folder.path().to_str().unwrap()]);
    let page =
        |name: &str| fs::read_to_string(folder.path().join(name)).unwrap_or_else(|error| panic!("{name}: {error}"));
    // In roff a hyphen that is one is written `\-`.
    let names = |name: &str, option: &str| page(name).contains(&option.replace('-', "\\-"));
    for (command, option) in [
        ("compare", "--fail-above"),
        ("compare", "--only"),
        ("report", "--slowest"),
        ("convert", "--to"),
        ("rows", "--columns"),
        ("calibrate", "--output"),
        ("live-bench", "--until"),
        ("live-watch", "--help"),
    ] {
        let name = format!("trace-attr-{command}.1");
        assert!(names(&name, option), "{name}: {option}");
        assert!(page(&name).starts_with(".ie"), "{name}");
    }
    assert!(names("trace-attr.1", "trace-attr-compare"));
    for shell in ["bash", "elvish", "fish", "powershell", "zsh"] {
        let script = stdout(&["completions", shell]);
        for word in ["compare", "convert", "live", "fail-above"] {
            assert!(script.contains(word), "{shell}: {word}");
        }
        // Elvish and PowerShell complete options, not their values.
        let values = ["bash", "fish", "zsh"].contains(&shell);
        assert!(
            !values || script.contains("intervals") && script.contains("parquet"),
            "{shell}"
        );
    }
}

#[test]
fn written_files_hold_what_standard_output_shows() {
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let (text, json, markdown) = (file("r.txt"), file("r.json"), file("r.md"));
    let report = ["report", "fixtures/good/plain.xml"];
    let written = stdout(&[&report[..], &["-o", &text, "-o", &json, "-o", &markdown]].concat());
    assert_eq!(written, "", "files alone leave standard output empty");
    for (path, format) in [(&text, "terminal"), (&json, "json"), (&markdown, "markdown")] {
        let shown = stdout(&[&report[..], &["--format", format]].concat());
        assert_eq!(fs::read_to_string(path).unwrap(), shown, "{path}");
    }
    let both = stdout(&[&report[..], &["-o", &json, "--format", "markdown"]].concat());
    assert_eq!(both, fs::read_to_string(&markdown).unwrap());
}

#[test]
fn a_failed_report_leaves_the_file_as_it_was() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("r.json");
    fs::write(&file, "before").unwrap();
    trace_attr(&[
        "report",
        "fixtures/refused/cell_extra.xml",
        "-o",
        file.to_str().unwrap(),
    ])
    .assert()
    .code(2)
    .stdout("");
    assert_eq!(fs::read_to_string(&file).unwrap(), "before");
    assert_eq!(
        fs::read_dir(folder.path()).unwrap().count(),
        1,
        "no scratch file stays behind"
    );
}

#[test]
fn an_input_is_never_written_over() {
    let folder = tempfile::tempdir().unwrap();
    let input = folder.path().join("plain.txt");
    fs::copy(root().join("fixtures/good/plain.xml"), &input).unwrap();
    let name = input.to_str().unwrap();
    trace_attr(&["report", name, "-o", name]).assert().code(2).stdout("");
    assert_eq!(
        fs::read(&input).unwrap(),
        fs::read(root().join("fixtures/good/plain.xml")).unwrap()
    );
}

#[test]
fn standard_input_is_an_input() {
    let from_file: Value = serde_json::from_str(&stdout(&[
        "report",
        "fixtures/good/plain.xml",
        "--name",
        "x",
        "--format",
        "json",
    ]))
    .unwrap();
    let output = trace_attr(&["report", "-", "--name", "x", "--format", "json"])
        .write_stdin(fs::read(root().join("fixtures/good/plain.xml")).unwrap())
        .output()
        .unwrap();
    let from_stdin: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(from_file["total"], from_stdin["total"]);
    assert_eq!(from_file["phases"], from_stdin["phases"]);
}

#[test]
fn json_of_the_fixtures_meets_the_schema() {
    let schema: Value = serde_json::from_str(&read("docs/compare.schema.json")).unwrap();
    let validator = jsonschema::validator_for(&schema).unwrap();
    let mut runs = vec![vec![
        "compare",
        "--a",
        "fixtures/demo/hf2q-1",
        "fixtures/demo/hf2q-2",
        "--b",
        "fixtures/demo/llama-1",
        "--tokens",
        "64",
    ]];
    for good in [
        "plain.xml",
        "points_only",
        "render_pair.xml",
        "sentinel.xml",
        "shader_timeline",
    ] {
        let input: &'static str = Box::leak(format!("fixtures/good/{good}").into_boxed_str());
        runs.push(vec!["report", input]);
    }
    for mut run in runs {
        run.extend(["--format", "json"]);
        let found: Value = serde_json::from_str(&stdout(&run)).unwrap();
        let errors: Vec<String> = validator
            .iter_errors(&found)
            .map(|error| format!("{}: {error}", error.instance_path()))
            .collect();
        assert!(errors.is_empty(), "{run:?}: {errors:#?}");
    }
}

/// Names of all properties in a JSON Schema.
fn properties(schema: &Value, found: &mut BTreeSet<String>) {
    match schema {
        Value::Object(object) => {
            for (key, value) in object {
                if key == "properties" {
                    found.extend(value.as_object().unwrap().keys().cloned());
                }
                properties(value, found);
            }
        }
        Value::Array(values) => values.iter().for_each(|value| properties(value, found)),
        _ => {}
    }
}

#[test]
fn json_md_names_every_property_of_the_schema() {
    let mut found = BTreeSet::new();
    properties(
        &serde_json::from_str(&read("docs/compare.schema.json")).unwrap(),
        &mut found,
    );
    let page = read("docs/json.md");
    let missing: Vec<&String> = found
        .iter()
        .filter(|name| !page.contains(&format!("`{name}`")) && !page.contains(&format!(".{name}`")))
        .collect();
    assert!(missing.is_empty(), "not in docs/json.md: {missing:?}");
}
