//! Ctrl-C: `end_children` ends every export of the process, so this test has a process of its own.

#![cfg(unix)]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::fs;
use std::io::Read;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use trace_attr::error::Error;
use trace_attr::xctrace::{Bundle, XctraceOptions, end_children};

#[test]
fn ctrl_c_ends_the_export_and_all_that_it_started() {
    let folder = tempfile::tempdir().unwrap();
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/stand-in/xcrun");
    std::os::unix::fs::symlink(script, folder.path().join("xcrun")).unwrap();
    fs::write(folder.path().join("case"), "hang").unwrap();
    let path = folder.path().join("run.trace");
    fs::create_dir(&path).unwrap();
    let options = XctraceOptions {
        program: folder.path().join("xcrun"),
        timeout: Duration::from_secs(60),
        cache: None,
    };
    let bundle = Bundle::open(&path, options).unwrap();

    let mut stream = bundle.toc().unwrap();
    // The helper starts last.
    let (leader, helper) = (folder.path().join("leader"), folder.path().join("helper"));
    let handler = std::thread::spawn(move || {
        while !fs::read_to_string(&helper).is_ok_and(|pid| pid.ends_with('\n')) {
            std::thread::sleep(Duration::from_millis(10));
        }
        end_children();
        fs::read_to_string(&leader).unwrap().trim().to_owned()
    });
    let started = Instant::now();
    let read = stream
        .read_to_end(&mut Vec::new())
        .map_err(|error| Error::io("read the export", error));
    let error = stream
        .finish(read.and_then(|_| Err::<(), _>(Error::unfit("empty"))))
        .unwrap_err();
    assert!(started.elapsed() < Duration::from_secs(30));
    assert_eq!(
        error.to_string(),
        format!("could not export from `{}`: interrupted", path.display())
    );

    let leader = handler.join().unwrap();
    let asked = Instant::now();
    loop {
        let ps = Command::new("ps").args(["-A", "-o", "pgid=,stat="]).output().unwrap();
        let ps = String::from_utf8_lossy(&ps.stdout).into_owned();
        let left = ps.lines().map(str::trim).any(|line| {
            line.split_once(' ')
                .is_some_and(|(group, state)| group == leader && !state.trim().starts_with('Z'))
        });
        if !left {
            break;
        }
        assert!(asked.elapsed() < Duration::from_secs(5), "left behind: {ps}");
        std::thread::sleep(Duration::from_millis(20));
    }

    // No other starts.
    assert!(bundle.toc().unwrap_err().to_string().ends_with("interrupted"));
}
