//! A program that we start to watch it: it runs in a process group of its own, so that a Ctrl-C for us is none for it,
//! and ends with us.

use std::ffi::OsString;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process_group};

use super::process::describe;
use crate::error::{Error, Result};

/// Between a request to end and the end.
const GRACE: Duration = Duration::from_secs(5);

/// A program that was started here. Dropping it ends it, with all that it started.
#[derive(Debug)]
pub struct Program {
    child: Child,
    ended: Option<ExitStatus>,
}

impl Program {
    /// Starts a command, with what it writes to its standard output going to `output`.
    ///
    /// # Errors
    /// There is no command, or it cannot be started.
    pub fn start(command: &[OsString], output: impl Into<Stdio>) -> Result<Program> {
        let (name, arguments) = command
            .split_first()
            .ok_or_else(|| Error::usage("no command was given"))?;
        let child = Command::new(name)
            .args(arguments)
            .stdin(Stdio::null())
            .stdout(output)
            .process_group(0)
            .spawn();
        match child {
            Ok(child) => Ok(Program { child, ended: None }),
            Err(error) => Err(Error::io(format!("start `{}`", name.to_string_lossy()), error)),
        }
    }

    /// Its pid.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// How it ended, as the end of a sentence; `None` while it runs.
    pub fn ended(&mut self) -> Option<String> {
        if self.ended.is_none() {
            self.ended = self.child.try_wait().ok().flatten();
        }
        self.ended.map(|status| describe(Some(status)))
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        // Once it was waited for, its number may be a stranger's.
        if self.ended().is_some() {
            return;
        }
        let group = Pid::from_child(&self.child);
        let _ = kill_process_group(group, Signal::TERM);
        let asked = Instant::now();
        while asked.elapsed() < GRACE && self.ended().is_none() {
            thread::sleep(Duration::from_millis(10));
        }
        if self.ended.is_none() {
            let _ = kill_process_group(group, Signal::KILL);
            let _ = self.child.wait();
        }
    }
}
