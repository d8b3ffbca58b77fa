//! `live bench`, `live run` and `live doctor` on a machine without Metal: arguments are checked, and one line says what is
//! needed. Nothing pretends to be a device.

#![cfg(all(feature = "cli", not(target_os = "macos")))]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

mod command;

use command::Place;

const RUN: &str = r#"
[kernels.add]
msl = "add.metal"
function = "vector_add"
constants = { WIDTH = 4, FAST = true, SCALE = 0.5, LARGE = 4000000000 }

[buffers.a]
type = "f32"
length = 1024
fill = "random"

[[dispatch]]
scope = ["step", "attention"]
kernel = "add"
buffers = ["a", "a"]
grid = [1024, 1]
threads = 256
repeat = 3
metrics = { bytes = 12288 }
"#;

fn place() -> Place {
    let place = Place::new();
    place.write("add.metal", "kernel void vector_add() {}");
    place.write("run.toml", RUN);
    place
}

#[test]
fn what_needs_metal_says_so_in_one_line() {
    let place = place();
    let bench = [
        "live",
        "bench",
        "add.metal:vector_add",
        "--grid",
        "1024",
        "--threads",
        "256",
    ];
    for arguments in [&bench[..], &["live", "run", "run.toml"], &["live", "doctor"]] {
        let ran = place.run(arguments);
        ran.refused(&["needs macOS"]);
        assert_eq!(ran.stderr.lines().count(), 1, "{ran:#?}");
    }
}

#[test]
fn a_run_file_can_be_checked_anywhere() {
    let ran = place().run(["live", "run", "run.toml", "--check"]);
    assert_eq!(
        ran.done().stdout,
        "run.toml: 1 kernel, 1 buffer, 3 launches; nothing was run\n"
    );
}

#[test]
fn an_error_in_a_run_file_names_its_line_and_the_nearest_key() {
    let place = place();
    let refused = |from: &str, to: &str, parts: &[&str]| {
        assert!(RUN.contains(from), "{from}");
        place.write("bad.toml", RUN.replace(from, to));
        place.run(["live", "run", "bad.toml", "--check"]).refused(parts);
    };
    refused(
        "threads = 256",
        "thraeds = 256",
        &["bad.toml:17", "`dispatch.thraeds`", "did you mean `threads`?"],
    );
    refused(
        "kernel = \"add\"",
        "kernel = \"ad\"",
        &["bad.toml:14", "no kernel `ad`", "did you mean `add`?"],
    );
    refused(
        "[\"a\", \"a\"]",
        "[\"a\", \"zz\"]",
        &["bad.toml:15", "no buffer `zz`", "the buffers are: a"],
    );
    refused("threads = 256\n", "", &["bad.toml:12", "lacks `threads`"]);
    refused("[1024, 1]", "[1024, 0]", &["bad.toml:16", "at least 1"]);
    refused("[1024, 1]", "\"all\"", &["bad.toml:16", "expects a whole number"]);
    refused("repeat = 3", "repeat = 0", &["bad.toml:18", "at least 1"]);
    refused("\"f32\"", "\"f31\"", &["bad.toml:8", "`f31` is none of \"f32\""]);
    refused("length = 1024", "length = 0", &["bad.toml:9", "at least one element"]);
    refused("length = 1024", "length = 20000000000", &["bad.toml:9", "more than"]);
    refused("fill = \"random\"", "file = \"none.bin\"", &["bad.toml:10", "no file"]);
    refused(
        "msl = \"add.metal\"",
        "msl = \"none.metal\"",
        &["bad.toml:3", "could not read"],
    );
    refused(
        "msl = \"add.metal\"\n",
        "",
        &["bad.toml:2", "lacks `msl` or `metallib`"],
    );
    refused(
        "{ bytes = 12288 }",
        "{ bytes = \"many\" }",
        &["bad.toml:19", "dispatch.metrics.bytes"],
    );
    refused(
        "[[dispatch]]",
        "[[dispatches]]",
        &["bad.toml:12", "did you mean `dispatch`?"],
    );
    place.write("bad.toml", "[kernels");
    place
        .run(["live", "run", "bad.toml"])
        .refused(&["bad.toml:1", "no TOML"]);
    place.write("bad.toml", "");
    place.run(["live", "run", "bad.toml"]).refused(&["nothing to run"]);
}

#[test]
fn arguments_of_a_bench_are_checked() {
    let place = place();
    let refused = |arguments: &[&str], parts: &[&str]| {
        let ran = place.run([&["live", "bench"], arguments].concat());
        assert_eq!(ran.code, Some(2), "{ran:#?}");
        ran.says(parts);
    };
    let sizes = ["--grid", "8", "--threads", "8"];
    refused(&[], &["FILE:KERNEL"]);
    refused(&[&["add.metal"][..], &sizes].concat(), &["add.metal:vector_add"]);
    refused(&[&["none.metal:x"][..], &sizes].concat(), &["none.metal"]);
    refused(&["add.metal:x", "--grid", "0", "--threads", "8"], &["at least 1"]);
    for (option, value) in [
        ("--repeat", "0"),
        ("--inner", "0"),
        ("--rounds", "9"),
        ("--until", "0"),
        ("--until", "nan"),
        ("--flops", "2*"),
        ("--size", "n"),
        ("--buffer", "f64:8"),
        ("--buffer", "f32:8:often"),
        ("--buffer", "f32"),
        ("--constant", "WIDTH"),
        ("--max-time", "soon"),
    ] {
        refused(&[&["add.metal:x", option, value][..], &sizes].concat(), &[option]);
    }
    // What needs the sizes is looked at when all are there, and before any device is.
    for (arguments, said) in [
        (["--flops", "0", "--size", "n=8"], "the flops of a launch are `0`"),
        (
            ["--bytes", "12*n", "--size", "m=8"],
            "there is no size `n`; sizes that there are: m",
        ),
        (
            ["--buffer", "f32:n/3", "--size", "n=8"],
            "must be a whole number of at least 1",
        ),
    ] {
        refused(&[&["add.metal:x"][..], &arguments, &sizes].concat(), &[said]);
    }
}

#[test]
fn a_bench_with_sizes_is_fine_but_for_the_device() {
    let arguments = "live bench add.metal:vector_add add.metal:vector_add --size n=1_048_576 --buffer f32:n:random \
                     --buffer f16:2*n --grid n/4 --threads 256 --flops n --bytes 12*n --cold --until 0.5% --inner 10";
    let arguments: Vec<&str> = arguments.split_whitespace().collect();
    place().run(&arguments[..]).refused(&["needs macOS"]);
}

#[test]
fn every_command_has_examples() {
    let place = Place::new();
    for command in ["bench", "run", "watch", "doctor"] {
        let ran = place.run(["live", command, "--help"]);
        assert!(ran.done().stdout.contains("Example"), "{command}");
    }
}
