//! Every `trace-attr` line of `docs/ci.md` is one that the binary accepts: the shell runs them in their order, in a folder
//! where the demo stands for what the workflows record.
#![cfg(all(feature = "cli", unix))]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

mod command;

use std::process::Command;

use command::{Place, Ran, here};

/// Commands inside of fenced blocks, with their continuation lines.
fn commands(page: &str) -> Vec<String> {
    let blocks = page.split("\n```").skip(1).step_by(2);
    let mut found = Vec::new();
    for block in blocks {
        let mut lines = block.lines();
        while let Some(line) = lines.next() {
            let mut command = line.trim_start().to_owned();
            if !command.starts_with("trace-attr ") {
                continue;
            }
            while let Some(start) = command.strip_suffix('\\') {
                command = format!("{start}{}", lines.next().unwrap().trim_start());
            }
            found.push(command);
        }
    }
    found
}

#[test]
fn every_command_of_the_ci_page_is_accepted() {
    let page = std::fs::read_to_string(here("docs/ci.md")).unwrap();
    let mut commands = commands(&page);
    assert!(commands.len() >= 7, "{commands:#?}");
    // The page tells of pull requests first; a baseline is made before it is used.
    commands.sort_by_key(|command| command.contains("--baseline"));

    let place = Place::new();
    for (name, demo) in [
        ("new", "hf2q"),
        ("old", "llama"),
        ("monday", "hf2q-1"),
        ("tuesday", "hf2q-2"),
        ("wednesday", "hf2q-3"),
    ] {
        let link = |name: &str, demo: &str| {
            std::fs::create_dir_all(place.path("traces")).unwrap();
            let target = here("fixtures/demo").join(demo);
            std::os::unix::fs::symlink(target, place.path("traces").join(name)).unwrap();
        };
        if demo.contains('-') {
            link(name, demo);
        } else {
            (1..=3).for_each(|trial| link(&format!("{name}-{trial}"), &format!("{demo}-{trial}")));
        }
    }
    place.write("report/keep", "");
    let path = std::path::Path::new(env!("CARGO_BIN_EXE_trace-attr")).parent().unwrap();
    for command in commands {
        let ran = Ran::of(
            Command::new("/bin/sh")
                .args(["-c", &command, "sh", "new", "1"])
                .current_dir(place.path("."))
                .env("PATH", path)
                .env("trial", "1")
                .env("GITHUB_STEP_SUMMARY", place.path("summary"))
                .env("TRACE_ATTR_CACHE_DIR", place.path("cache")),
        );
        if command.starts_with("trace-attr export ") {
            // There is no such bundle here; the arguments are fine.
            assert!(
                ran.stderr.starts_with("error: bundles/new-1.trace: could not open it"),
                "{command}\n{ran:#?}"
            );
        } else {
            // Two engines differ; a build compared with its own baseline does not.
            let differ = command.contains("--b ") && !command.contains("|| status=");
            let status = i32::from(differ);
            assert_eq!(ran.code, Some(status), "{command}\n{ran:#?}");
        }
    }
    let comment = place.read("report/comment.md");
    assert!(
        comment.starts_with("<!-- trace-attr:decode -->\n"),
        "the marker that the workflows look for"
    );
    assert!(page.matches("<!-- trace-attr:decode -->").count() == 2);
    assert_eq!(
        place.read("summary").matches("<!-- trace-attr:").count(),
        3,
        "one report behind the other"
    );
}
