//! Progress on standard error, for work over half a second on a terminal; silent otherwise.

use std::io::IsTerminal;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use super::{Console, print_warning};
use crate::recording::Progress;

/// Work shorter than this shows nothing.
const PATIENCE: Duration = Duration::from_millis(500);

/// A bar per file, or per folder whose files are read at once: table, bytes, rate.
pub(super) struct Bar {
    console: Console,
    state: Option<Mutex<State>>,
}

struct State {
    bar: ProgressBar,
    begun: Instant,
    shown: bool,
}

impl Bar {
    pub(super) fn new(console: Console) -> Self {
        let wanted = !console.quiet && (console.verbose || std::io::stderr().is_terminal());
        Bar {
            console,
            state: wanted.then(|| {
                let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::hidden());
                Mutex::new(State {
                    bar,
                    begun: Instant::now(),
                    shown: false,
                })
            }),
        }
    }

    /// Takes the bar off the screen before something else is printed.
    pub(super) fn clear(&self) {
        if let Some(state) = self.state() {
            state.bar.finish_and_clear();
        }
    }

    fn state(&self) -> Option<MutexGuard<'_, State>> {
        let state = self.state.as_ref()?;
        Some(state.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Drop for Bar {
    fn drop(&mut self) {
        self.clear();
    }
}

fn style(known: bool) -> ProgressStyle {
    let template = if known {
        "{prefix} {msg} {bytes}/{total_bytes} ({bytes_per_sec})"
    } else {
        "{prefix} {msg} {bytes} ({bytes_per_sec})"
    };
    ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar())
}

impl Progress for Bar {
    fn begin(&self, name: &str, bytes: Option<u64>) {
        if let Some(state) = self.state() {
            state.bar.set_style(style(bytes.is_some()));
            state.bar.reset();
            match bytes {
                Some(bytes) => state.bar.set_length(bytes),
                None => state.bar.unset_length(),
            }
            state.bar.set_prefix(crate::label::visible(name));
            state.bar.set_message("");
        }
    }

    fn table(&self, schema: &str) {
        if let Some(state) = self.state() {
            state.bar.set_message(crate::label::visible(schema));
        }
    }

    fn advance(&self, bytes: u64) {
        if let Some(mut state) = self.state() {
            state.bar.inc(bytes);
            if !state.shown && state.begun.elapsed() > PATIENCE {
                state.shown = true;
                state.bar.set_draw_target(ProgressDrawTarget::stderr());
            }
        }
    }

    fn warning(&self, text: &str) {
        match self.state() {
            Some(state) => state.bar.suspend(|| print_warning(self.console, text)),
            None => print_warning(self.console, text),
        }
    }
}
