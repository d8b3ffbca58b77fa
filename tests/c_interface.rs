//! The C interface, from a program in C that is compiled against the header and linked with the library. Skipped, saying so,
//! where there is no C compiler.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]
#![allow(clippy::print_stderr, reason = "a test that is skipped says so")]
#![cfg(all(unix, feature = "live"))]

use std::path::{Path, PathBuf};
use std::process::Command;

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn compiler() -> Option<String> {
    let compiler = std::env::var("CC").unwrap_or_else(|_| "cc".to_owned());
    let works = Command::new(&compiler).arg("--version").output();
    works.is_ok_and(|output| output.status.success()).then_some(compiler)
}

/// Builds the library as the header says; gives its folder and what a linker must be told beside it.
fn library(crate_type: &str) -> (PathBuf, Vec<String>) {
    let target = root().join("target/c-interface");
    let output = Command::new(env!("CARGO"))
        .args(["rustc", "--lib", "--no-default-features", "--features", "live"])
        .args(["--crate-type", crate_type, "--quiet", "--locked"])
        .args(["--", "--print", "native-static-libs"])
        .current_dir(root())
        .env("CARGO_TARGET_DIR", &target)
        .env_remove("CARGO_ENCODED_RUSTFLAGS")
        .output()
        .unwrap();
    let messages = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{messages}");
    let libraries = messages
        .lines()
        .find_map(|line| line.split_once("native-static-libs: "));
    let libraries = libraries.map_or("", |(_, libraries)| libraries);
    let libraries = libraries.split_whitespace().map(str::to_owned).collect();
    (target.join("debug"), libraries)
}

fn run(command: &mut Command) -> String {
    let output = command.output().unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?}: {errors}");
    assert_eq!(errors, "", "{command:?}");
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn a_program_in_c_profiles_itself() {
    let Some(compiler) = compiler() else {
        eprintln!("skipped: there is no C compiler (`cc`, or what CC names)");
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    for crate_type in ["staticlib", "cdylib"] {
        let (built, libraries) = library(crate_type);
        let program = folder.path().join(crate_type);
        let mut compile = Command::new(&compiler);
        compile
            .args([
                "-std=c99",
                "-D_POSIX_C_SOURCE=200809L",
                "-Wall",
                "-Wextra",
                "-Wpedantic",
                "-Werror",
                "-pthread",
            ])
            .arg("-I")
            .arg(root().join("include"))
            .arg(root().join("tests/c/profile.c"))
            .arg("-o")
            .arg(&program);
        match crate_type {
            "staticlib" => compile.arg(built.join("libtrace_attr.a")).args(libraries),
            _ => compile
                .arg("-L")
                .arg(&built)
                .arg("-ltrace_attr")
                .arg(format!("-Wl,-rpath,{}", built.display())),
        };
        run(&mut compile);

        let file = folder.path().join("profile.json");
        let version = run(Command::new(&program).arg(&file));
        assert_eq!(version.trim_end(), env!("CARGO_PKG_VERSION"));

        let text = std::fs::read_to_string(&file).unwrap();
        let profile = trace_attr::live::Profile::from_json(&text).unwrap();
        let events: Vec<_> = profile
            .events()
            .iter()
            .map(|event| (event.path.joined(), event.name.to_string(), event.thread))
            .collect();
        let event = |path: &str, name: &str, thread| (path.to_owned(), name.to_owned(), thread);
        assert_eq!(
            events,
            [
                event("", "layer 3", 0),
                event("layer 3", "attention/é", 0),
                event(r"layer 3/attention\/é", "on another thread", 1),
                event("layer 3", "(no name)", 0),
                event("layer 3", "counted", 0),
            ]
        );
        let metrics: Vec<_> = profile.events()[0].metrics.iter().collect();
        assert_eq!(metrics, [("flops", 2e9), ("tokens", 64.0)]);
    }
}

/// The header names every function that the library exports, and no other.
#[test]
fn the_header_and_the_library_have_the_same_functions() {
    let names = |file: &str, declares: fn(&str) -> bool| {
        let text = std::fs::read_to_string(root().join(file)).unwrap();
        let lines = text.lines().filter(|line| declares(line));
        let before_argument = lines.filter_map(|line| line.split('(').next());
        let names = before_argument.filter_map(|line| line.split_once("trace_attr_live_").map(|_| line));
        let last_word = |line: &str| line.rsplit([' ', '*']).next().unwrap().to_owned();
        names.map(last_word).collect::<std::collections::BTreeSet<_>>()
    };
    let exported = names("src/live/ffi.rs", |line| line.contains("extern \"C\" fn"));
    let declared = names("include/trace_attr_live.h", |line| {
        line.starts_with(|first: char| first.is_ascii_lowercase()) && line.contains('(')
    });
    assert_eq!(exported, declared);
    assert_eq!(exported.len(), 13);
}
