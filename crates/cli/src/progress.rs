//! Progress for people: a spinner once something takes longer than a second, if stderr is a terminal.

use crate::terminal::escaped;
use indicatif::{ProgressBar, ProgressDrawTarget};
use std::io::{IsTerminal, stderr};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Shows a spinner from the second second on, until it is dropped.
pub(crate) struct Progress {
    bar: Arc<ProgressBar>,
    done: Arc<AtomicBool>,
}

impl Progress {
    /// Starts to wait.
    pub(crate) fn start(what: impl Into<String>) -> Progress {
        let bar = Arc::new(
            ProgressBar::with_draw_target(None, ProgressDrawTarget::hidden())
                .with_message(escaped(&what.into()).into_owned()),
        );
        let done = Arc::new(AtomicBool::new(false));
        if stderr().is_terminal() {
            let (bar, done) = (Arc::clone(&bar), Arc::clone(&done));
            std::thread::spawn(move || {
                std::thread::sleep(Duration::from_secs(1));
                if !done.load(Ordering::Relaxed) {
                    bar.set_draw_target(ProgressDrawTarget::stderr());
                    bar.enable_steady_tick(Duration::from_millis(120));
                }
            });
        }
        Progress { bar, done }
    }

    /// Says how far it is.
    pub(crate) fn tell(&self, what: impl Into<String>) {
        self.bar.set_message(escaped(&what.into()).into_owned());
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.done.store(true, Ordering::Relaxed);
        self.bar.finish_and_clear();
    }
}
