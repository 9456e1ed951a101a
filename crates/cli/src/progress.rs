//! Progress for people: a spinner once something takes longer than a second, if stderr is a terminal.

use crate::terminal::{escaped, quiet};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
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
        if stderr().is_terminal() && !quiet() {
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

/// Shows how many of several models are done, if stderr is a terminal.
pub(crate) struct Count(ProgressBar);

impl Count {
    /// None is done yet.
    pub(crate) fn start(models: usize) -> Count {
        let shown = stderr().is_terminal() && !quiet();
        let target = if shown { ProgressDrawTarget::stderr() } else { ProgressDrawTarget::hidden() };
        let bar = ProgressBar::with_draw_target(Some(models as u64), target);
        // A template that is wrong is seen in the tests; without it the bar has its default form.
        if let Ok(style) = ProgressStyle::with_template("{bar:30} {pos}/{len} models, {eta} left  {wide_msg}") {
            bar.set_style(style);
        }
        Count(bar)
    }

    /// A model is begun.
    pub(crate) fn begin(&self, model: &str) {
        self.0.set_message(escaped(model).into_owned());
    }

    /// A model is done, well or not.
    pub(crate) fn done(&self) {
        self.0.inc(1);
    }
}

impl Drop for Count {
    fn drop(&mut self) {
        self.0.finish_and_clear();
    }
}
