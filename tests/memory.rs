//! Memory follows the distinct values that are needed, not the size of the input: a large table, and every bomb that
//! somebody could send, ends in a result or an error below 250 MB.
//!
//! Debug builds are slow, so the large table has a fifth of its size with a bound of its own; `TRACE_ATTR_LARGE=1`
//! makes it 500,000 rows and 230 MB.

#![cfg(all(target_os = "linux", feature = "cli"))]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

mod command;
mod support;

use std::fs;
use std::io::{self, BufWriter, Read, Write};
use std::process::Stdio;
use std::time::{Duration, Instant};

use command::{Place, Ran, trial};
use flate2::{Compression, write::GzEncoder};
use support::short::{intervals, r};

const LIMIT: u64 = 250 << 20;

/// Runs with what `feed` writes on standard input; gives the most memory that it had.
fn peak(arguments: &[&str], feed: impl FnOnce(&mut dyn Write) -> io::Result<()> + Send + 'static) -> (Ran, u64) {
    let place = Place::new();
    let mut child = place
        .command(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let stdin = child.stdin.take().unwrap();
    let writer = std::thread::spawn(move || {
        let mut out = BufWriter::with_capacity(1 << 16, stdin);
        // A refusal ends the reading early.
        let _ = feed(&mut out).and_then(|()| out.flush());
    });
    // Pipes are emptied beside, so that nothing blocks.
    let drain = |mut pipe: Box<dyn Read + Send>| {
        std::thread::spawn(move || {
            let mut bytes = Vec::new();
            pipe.read_to_end(&mut bytes).unwrap();
            bytes
        })
    };
    let stdout = drain(Box::new(child.stdout.take().unwrap()));
    let stderr = drain(Box::new(child.stderr.take().unwrap()));
    let status = format!("/proc/{}/status", child.id());
    let mut most = 0;
    let started = Instant::now();
    let code = loop {
        // The high-water mark of the kernel: nothing is missed between two looks but the last moments.
        let text = fs::read_to_string(&status).unwrap_or_default();
        let line = text.lines().find_map(|line| line.strip_prefix("VmHWM:"));
        if let Some(kilobytes) = line.and_then(|line| line.split_whitespace().next()) {
            most = most.max(kilobytes.parse::<u64>().unwrap() << 10);
        }
        if let Some(status) = child.try_wait().unwrap() {
            break status;
        }
        assert!(started.elapsed() < Duration::from_secs(300), "it does not end");
        std::thread::sleep(Duration::from_millis(5));
    };
    writer.join().unwrap();
    let output = std::process::Output {
        status: code,
        stdout: stdout.join().unwrap(),
        stderr: stderr.join().unwrap(),
    };
    (Ran::from_output(&output), most)
}

fn large() -> bool {
    std::env::var_os("TRACE_ATTR_LARGE").is_some_and(|value| value == "1")
}

#[test]
fn b25_a_large_table_is_streamed_through_a_pipe() {
    let rows: u64 = if large() { 500_000 } else { 100_000 };
    let (ran, most) = peak(&["report", "-", "--format", "json"], move |out| {
        write!(
            out,
            "<?xml version=\"1.0\"?><trace-query-result><node xpath=\"x\">{}",
            intervals()
        )?;
        let row = r(0, 400).encoder("ENCODER").with("start", "START").xml();
        let mut parts = row.split("START");
        let (head, middle, rest) = (parts.next().unwrap(), parts.next().unwrap(), parts.next().unwrap());
        let (before, after) = rest.split_once("ENCODER").unwrap();
        let (between, after) = after.split_once("ENCODER").unwrap();
        for at in 0..rows {
            let (start, encoder) = (at * 1_000, at + 1);
            write!(
                out,
                "{head}{start}{middle}{start}{before}{encoder}{between}{encoder}{after}"
            )?;
        }
        write!(out, "</node></trace-query-result>")
    });
    let report = ran.done().json();
    let one = trial(&report);
    assert_eq!(one["submissions"], rows);
    assert_eq!(one["busy_ns"], rows * 400);
    assert_eq!(one["window_ns"], rows * 1_000 - 600);
    assert_eq!(one["idle_ns"], rows * 600 - 600);
    // 100 bytes for a row that counts, beside what the program needs anyway.
    let bound = if large() { LIMIT } else { (32 << 20) + rows * 500 };
    assert!(most < bound, "{} MB", most >> 20);
}

#[test]
fn b25_rows_are_printed_as_they_come() {
    let rows: u64 = if large() { 500_000 } else { 100_000 };
    let print = |rows: u64| {
        let (ran, most) = peak(&["rows", "-", "--columns", "start,encoder-id"], move |out| {
            write!(out, "<trace-query-result><node>{}", intervals())?;
            for at in 0..rows {
                out.write_all(r(at * 1_000, 400).encoder(at + 1).xml().as_bytes())?;
            }
            write!(out, "</node></trace-query-result>")
        });
        assert_eq!(ran.done().stdout.lines().count() as u64, rows + 1);
        most
    };
    // What the program needs anyway grows with what is linked into it; rows must add next to nothing.
    let (few, most) = (print(1_000), print(rows));
    assert!(
        most < few + (2 << 20),
        "{} MB for 1,000 rows, {} MB for {rows}",
        few >> 20,
        most >> 20
    );
}

/// `count` times `block` as one gzip stream, made beside the reader.
fn bomb(head: String, block: Vec<u8>, count: u64) -> impl FnOnce(&mut dyn Write) -> io::Result<()> + Send + 'static {
    move |out| {
        let mut packed = GzEncoder::new(out, Compression::fast());
        packed.write_all(head.as_bytes())?;
        for _ in 0..count {
            packed.write_all(&block)?;
        }
        packed.finish()?;
        Ok(())
    }
}

/// Ends with a result or an error, and below the limit.
#[track_caller]
fn survives(name: &str, feed: impl FnOnce(&mut dyn Write) -> io::Result<()> + Send + 'static) -> Ran {
    let started = Instant::now();
    let (ran, most) = peak(&["report", "-"], feed);
    assert!(matches!(ran.code, Some(0 | 2)), "{name}: {ran:#?}");
    assert!(
        ran.stderr.len() < 10_000,
        "{name}: a message of {} bytes",
        ran.stderr.len()
    );
    assert!(most < LIMIT, "{name}: {} MB", most >> 20);
    assert!(started.elapsed() < Duration::from_secs(120), "{name}");
    ran
}

/// Decompressed size of a bomb: far more than the 16 MiB after which a tag, a text or a row is refused.
fn bomb_bytes() -> u64 {
    if large() { 2 << 30 } else { 64 << 20 }
}

#[test]
fn gzip_bombs_end() {
    let blocks = bomb_bytes() >> 20;
    let spaces = vec![b' '; 1 << 20];
    survives("spaces before the root", bomb(String::new(), spaces.clone(), blocks)).refused(&[]);
    let node = format!("<trace-query-result><node>{}", intervals());
    survives("spaces between rows", bomb(node.clone(), spaces, blocks)).refused(&[]);
    let text = vec![b'x'; 1 << 20];
    let cell = format!("{node}<row><start-time>");
    survives("text in one cell", bomb(cell.clone(), text.clone(), blocks)).refused(&["16 MiB", "row 1"]);
    survives("text between rows", bomb(node.clone(), text.clone(), blocks)).refused(&[]);
    survives(
        "one tag",
        bomb(format!("{node}<row><start-time fmt=\""), text.clone(), blocks),
    )
    .refused(&["16 MiB"]);
    survives("one name", bomb(format!("{node}<row><"), text.clone(), blocks)).refused(&[]);
    survives("one comment", bomb(format!("{node}<!--"), text.clone(), blocks)).refused(&[]);
    survives("one CDATA", bomb(format!("{cell}<![CDATA["), text.clone(), blocks)).refused(&[]);
    survives(
        "one schema",
        bomb("<trace-query-result><node><schema name=\"".to_owned(), text, blocks),
    )
    .refused(&[]);
    // Short events without end, each within its bounds.
    let pieces = b"<!---->xxxxxxxx".repeat(1 << 16);
    survives("text in pieces", bomb(cell, pieces.clone(), blocks)).refused(&["one row is longer than 16 MiB"]);
    survives(
        "text in pieces in a schema",
        bomb(
            "<trace-query-result><node><schema name=\"t\"><col><mnemonic>".to_owned(),
            pieces,
            blocks,
        ),
    )
    .refused(&[]);
}

fn repeated(
    head: &'static str,
    piece: impl Fn(u64) -> String + Send + 'static,
    count: u64,
) -> impl FnOnce(&mut dyn Write) -> io::Result<()> + Send + 'static {
    move |out| {
        write!(out, "{}", head.replace("SCHEMA", &intervals()))?;
        for at in 0..count {
            out.write_all(piece(at).as_bytes())?;
        }
        Ok(())
    }
}

#[test]
fn too_many_of_anything_ends() {
    const N: u64 = 200_000;
    let row = "<trace-query-result><node>SCHEMA<row>";
    survives(
        "attributes",
        repeated(
            "<trace-query-result><node>SCHEMA<row><start-time",
            |at| format!(" a{at}=\"x\""),
            N,
        ),
    )
    .refused(&[]);
    survives(
        "levels in a cell",
        repeated(
            "<trace-query-result><node>SCHEMA<row><start-time>",
            |_| "<a>".to_owned(),
            N,
        ),
    )
    .refused(&["levels deep"]);
    survives("levels at the root", repeated("", |_| "<a>".to_owned(), N)).refused(&[]);
    survives(
        "levels in a table of contents",
        repeated("<trace-toc>", |_| "<a>".to_owned(), N),
    )
    .refused(&[]);
    survives(
        "elements of a table of contents",
        repeated("<trace-toc>", |_| "<a/>".to_owned(), 3 * N),
    )
    .refused(&["more elements"]);
    survives(
        "attributes of elements of a table of contents",
        repeated("<trace-toc>", |_| format!("<p{}/>", " a=\"\"".repeat(40)), N / 2),
    )
    .refused(&["more elements"]);
    survives(
        "attributes of a table of contents",
        repeated("<trace-toc><p", |_| " a=\"1\"".to_owned(), 10 * N),
    )
    .refused(&["truncated"]);
    survives(
        "attributes of a table of contents that ends",
        repeated(
            "<trace-toc><p",
            |at| if at < 10 * N { " a=\"1\"" } else { "/>" }.to_owned(),
            10 * N + 1,
        ),
    )
    .refused(&["more elements"]);
    survives(
        "names",
        repeated(
            "<trace-query-result><node>SCHEMA<row><start-time>",
            |at| format!("<n{at}/>"),
            N,
        ),
    )
    .refused(&[]);
    survives(
        "columns",
        repeated(
            "<trace-query-result><node><schema name=\"t\">",
            |at| format!("<col><mnemonic>m{at}</mnemonic><engineering-type>t{at}</engineering-type></col>"),
            N,
        ),
    )
    .refused(&[]);
    survives("cells", repeated(row, |_| "<sentinel/>".to_owned(), N)).refused(&["more than 9 cells"]);
    survives(
        "children of a cell",
        repeated(
            "<trace-query-result><node>SCHEMA<row><start-time>",
            |_| "<string>x</string>".to_owned(),
            5 * N,
        ),
    )
    .refused(&[]);
    survives(
        "nodes",
        repeated("<trace-query-result>", |_| "<node></node>".to_owned(), N),
    )
    .refused(&[]);
    survives(
        "schemas",
        repeated(
            "<trace-query-result>",
            |at| format!("<node><schema name=\"s{at}\"></schema></node>"),
            N / 4,
        ),
    )
    .refused(&[]);
    survives(
        "entities",
        repeated(
            "<trace-query-result><node>SCHEMA<row><start-time>",
            |_| "&amp;".to_owned(),
            2 * N,
        ),
    )
    .refused(&[]);
    survives(
        "doctype",
        repeated("<!DOCTYPE x [", |at| format!("<!ENTITY e{at} \"&e;&e;\">"), N),
    )
    .refused(&[]);
    survives("gzip in gzip in gzip", |out| {
        let mut bytes = b"<trace-query-result/>".to_vec();
        for _ in 0..9 {
            bytes = support::pack::gzip(&bytes);
        }
        out.write_all(&bytes)
    })
    .refused(&["compressed more than twice"]);
}

#[test]
fn a_zstd_frame_that_asks_for_a_huge_window_is_refused() {
    // Frame header: window descriptor for 3.75 TB, then one block.
    let frame = [0x28, 0xb5, 0x2f, 0xfd, 0x00, 0xff, 0x01, 0x00, 0x00];
    for window in [0xff, 0xb8, 0x98, 0x80] {
        let mut bytes = frame;
        bytes[5] = window;
        survives("zstd window", move |out| out.write_all(&bytes)).refused(&[]);
    }
    // A megabyte of one byte in four: run-length blocks of 128 KiB.
    let blocks = bomb_bytes() >> 17;
    survives("zstd run-length bomb", move |out| {
        out.write_all(&[0x28, 0xb5, 0x2f, 0xfd, 0x00, 0x40])?;
        let header = (1u32 << 17) << 3 | 1 << 1;
        for _ in 0..blocks {
            out.write_all(&header.to_le_bytes()[..3])?;
            out.write_all(b" ")?;
        }
        Ok(())
    })
    .refused(&[]);
}
