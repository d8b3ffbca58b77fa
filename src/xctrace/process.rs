//! One child process and everything it starts: run without a shell, read with a limit on silence, ended for certain.
//!
//! A child leads its own process group, so whatever it starts is ended with it. It stays a zombie (and keeps its
//! number) until its group has been signalled and [`end_children`] can no longer see it, so no signal can ever reach
//! a stranger that was given the same number.

use std::ffi::OsStr;
use std::io::{self, Read};
use std::ops::RangeInclusive;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, SyncSender};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use rustix::io::Errno;
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process_group, waitid};

/// What is kept of standard error, counted from its end.
const MESSAGES: usize = 64 << 10;
/// Between a request to end (SIGTERM) and the end (SIGKILL).
const GRACE: Duration = Duration::from_millis(300);
/// How often a silent child is looked at.
const LOOK: Duration = Duration::from_millis(100);
/// For a pipe that a helper process still holds open after the child is gone.
const LINGER: Duration = Duration::from_secs(2);
/// For the system to hand over a killed child; one that is stuck in the kernel is not waited for.
const REAP: Duration = Duration::from_secs(5);

/// What a shell (or a wrapper around xcrun) makes of a signal.
const SHELL_SIGNALS: RangeInclusive<i32> = 129..=159;

/// Children that run now, and whether this process is about to end.
struct Registry {
    ending: bool,
    children: Vec<Pid>,
}

static REGISTRY: Mutex<Registry> = Mutex::new(Registry {
    ending: false,
    children: Vec::new(),
});

fn registry() -> MutexGuard<'static, Registry> {
    // The lists are valid after every step, so a panic elsewhere does not spoil them.
    REGISTRY.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Ends every child that is running, with all that it started, and lets no other start.
///
/// For a Ctrl-C handler: children lead their own process groups, so the terminal does not signal them. It can be
/// called from any thread; streams that are being read end, and their `finish` says `interrupted`.
pub fn end_children() {
    // Held to the end: no child starts meanwhile, and none is reaped, so every number in the list is still ours.
    let mut registry = registry();
    registry.ending = true;
    for child in &registry.children {
        signal_group(*child, Signal::TERM);
    }
    let asked = Instant::now();
    while asked.elapsed() < GRACE && !registry.children.iter().all(|child| has_exited(*child)) {
        thread::sleep(Duration::from_millis(10));
    }
    for child in &registry.children {
        signal_group(*child, Signal::KILL);
    }
}

/// Whether [`end_children`] was called.
pub(super) fn interrupted() -> bool {
    registry().ending
}

/// A group that is gone already is no failure.
fn signal_group(leader: Pid, signal: Signal) {
    let _ = kill_process_group(leader, signal);
}

/// Whether the child ended; it is not reaped by this.
fn has_exited(child: Pid) -> bool {
    let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
    // No such child: the program told the system to take its children's statuses itself.
    matches!(waitid(WaitId::Pid(child), options), Ok(Some(_)) | Err(Errno::CHILD))
}

/// The last bytes of a text that may be long.
#[derive(Debug, Default)]
pub(super) struct Tail(Vec<u8>);

impl Tail {
    /// Adds bytes and forgets all but the last `limit`.
    pub(super) fn push(&mut self, bytes: &[u8], limit: usize) {
        self.0.extend_from_slice(bytes);
        if self.0.len() > limit.saturating_mul(2) {
            self.0.drain(..self.0.len().saturating_sub(limit));
        }
    }

    /// What is kept.
    pub(super) fn bytes(&self) -> &[u8] {
        &self.0
    }
}

/// What came of waiting for output.
pub(super) enum Output {
    /// Bytes of standard output, at least one.
    Bytes(Vec<u8>),
    /// There will be no more.
    End,
    /// None for as long as was allowed.
    Silence,
    /// The pipe failed.
    Failed(io::Error),
}

/// A child that runs, or has ended and was not taken leave of yet. Dropping it ends it.
pub(super) struct Running {
    child: Child,
    pid: Pid,
    stdout: Receiver<io::Result<Vec<u8>>>,
    stderr: Arc<Mutex<Tail>>,
    stderr_open: Receiver<()>,
    closed: bool,
}

impl Running {
    /// Starts `program` with `arguments`, which reach it as they are.
    pub(super) fn start(program: &Path, arguments: &[&OsStr]) -> io::Result<Running> {
        let mut command = Command::new(program);
        command
            .args(arguments)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .process_group(0);

        // One at a time, and known before anybody can ask for its end. (It also keeps the pipes of two children
        // apart on systems where a pipe cannot be made close-on-exec in one step.)
        let mut registry = registry();
        if registry.ending {
            return Err(io::Error::other("interrupted"));
        }
        let mut child = command.spawn()?;
        let pid = Pid::from_child(&child);
        registry.children.push(pid);
        drop(registry);

        let (stdout, stderr) = (child.stdout.take(), child.stderr.take());
        let (output, output_end) = mpsc::sync_channel(8);
        let (open, open_end) = mpsc::sync_channel(0);
        let running = Running {
            child,
            pid,
            stdout: output_end,
            stderr: Arc::default(),
            stderr_open: open_end,
            closed: false,
        };
        // When a thread cannot be had, dropping `running` ends the child.
        if let Some(pipe) = stdout {
            thread::Builder::new()
                .name("xctrace output".into())
                .spawn(move || forward(pipe, &output))?;
        }
        if let Some(pipe) = stderr {
            let kept = Arc::clone(&running.stderr);
            thread::Builder::new()
                .name("xctrace messages".into())
                .spawn(move || keep(pipe, &kept, &open))?;
        }
        Ok(running)
    }

    /// The next bytes of standard output; waits at most `limit` for them.
    pub(super) fn output(&mut self, limit: Duration) -> Output {
        let asked = Instant::now();
        loop {
            let left = limit.saturating_sub(asked.elapsed());
            match self.stdout.recv_timeout(left.min(LOOK)) {
                Ok(Ok(bytes)) => return Output::Bytes(bytes),
                Ok(Err(error)) => return Output::Failed(error),
                Err(RecvTimeoutError::Disconnected) => return Output::End,
                Err(RecvTimeoutError::Timeout) if has_exited(self.pid) => {
                    // A helper that outlives the child may hold the pipe open for ever.
                    return match self.stdout.recv_timeout(LINGER) {
                        Ok(Ok(bytes)) => Output::Bytes(bytes),
                        Ok(Err(error)) => Output::Failed(error),
                        Err(_) => Output::End,
                    };
                }
                Err(RecvTimeoutError::Timeout) if asked.elapsed() >= limit => return Output::Silence,
                Err(RecvTimeoutError::Timeout) => {}
            }
        }
    }

    /// Waits at most `limit` for the child to end by itself; whether it did.
    pub(super) fn wait(&self, limit: Duration) -> bool {
        let asked = Instant::now();
        let mut pause = Duration::from_millis(1);
        while !has_exited(self.pid) {
            if asked.elapsed() >= limit {
                return false;
            }
            thread::sleep(pause);
            pause = (pause * 2).min(Duration::from_millis(50));
        }
        true
    }

    /// Ends what is left of the child and its group; the child's status when the system has it.
    pub(super) fn close(&mut self) -> Option<ExitStatus> {
        if !self.closed {
            self.closed = true;
            if !has_exited(self.pid) {
                signal_group(self.pid, Signal::TERM);
                self.wait(GRACE);
            }
            // Also after a proper end: a helper that the child left behind goes with it.
            signal_group(self.pid, Signal::KILL);
            registry().children.retain(|child| *child != self.pid);
            self.wait(REAP);
        }
        self.child.try_wait().ok().flatten()
    }

    /// The last 64 KiB of standard error. Call it after [`Running::close`].
    pub(super) fn messages(&self) -> Vec<u8> {
        // Nothing is ever sent: the channel closes when the pipe has been read to its end.
        let _ = self.stderr_open.recv_timeout(LINGER);
        self.stderr
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .bytes()
            .to_vec()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.close();
    }
}

/// Sends what the pipe gives until it ends or nobody listens.
fn forward(mut pipe: impl Read, output: &SyncSender<io::Result<Vec<u8>>>) {
    loop {
        let mut bytes = vec![0; 64 << 10];
        let message = match pipe.read(&mut bytes) {
            Ok(0) => return,
            Ok(length) => {
                bytes.truncate(length);
                Ok(bytes)
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => Err(error),
        };
        let failed = message.is_err();
        if output.send(message).is_err() || failed {
            return;
        }
    }
}

/// Reads the pipe to its end, so that the child never waits for a reader, and keeps the last part.
fn keep(mut pipe: impl Read, kept: &Mutex<Tail>, _open: &SyncSender<()>) {
    let mut bytes = [0; 4096];
    loop {
        match pipe.read(&mut bytes) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Ok(0) | Err(_) => return,
            Ok(length) => {
                let read = bytes.get(..length).unwrap_or_default();
                kept.lock().unwrap_or_else(PoisonError::into_inner).push(read, MESSAGES);
            }
        }
    }
}

/// Whether a signal ended the program, or what it was wrapped in.
pub(super) fn crashed(status: ExitStatus) -> bool {
    status.code().is_none_or(|code| SHELL_SIGNALS.contains(&code))
}

/// How a program ended, as the end of a sentence.
pub(super) fn describe(status: Option<ExitStatus>) -> String {
    let Some(status) = status else {
        return "ended with an unknown status".to_owned();
    };
    if let Some(number) = status.signal() {
        return format!("was ended by {}", signal_name(number));
    }
    match status.code() {
        Some(code) if SHELL_SIGNALS.contains(&code) => {
            format!("ended with exit status {code} ({})", signal_name(code - 128))
        }
        Some(code) => format!("ended with exit status {code}"),
        None => format!("ended with {status}"),
    }
}

/// `signal 5 (SIGTRAP)`; numbers differ between systems, names do not.
fn signal_name(number: i32) -> String {
    const NAMES: [(Signal, &str); 14] = [
        (Signal::HUP, "SIGHUP"),
        (Signal::INT, "SIGINT"),
        (Signal::QUIT, "SIGQUIT"),
        (Signal::ILL, "SIGILL"),
        (Signal::TRAP, "SIGTRAP"),
        (Signal::ABORT, "SIGABRT"),
        (Signal::BUS, "SIGBUS"),
        (Signal::FPE, "SIGFPE"),
        (Signal::KILL, "SIGKILL"),
        (Signal::SEGV, "SIGSEGV"),
        (Signal::PIPE, "SIGPIPE"),
        (Signal::TERM, "SIGTERM"),
        (Signal::XCPU, "SIGXCPU"),
        (Signal::SYS, "SIGSYS"),
    ];
    match NAMES.iter().find(|(signal, _)| signal.as_raw() == number) {
        Some((_, name)) => format!("signal {number} ({name})"),
        None => format!("signal {number}"),
    }
}
