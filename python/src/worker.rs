//! Work on a thread of its own, while the caller's thread waits.
//!
//! The caller's thread lets go of Python's lock, wakes up ten times a second to see whether a signal came, and calls the progress
//! function, for which the work waits. So ctrl-C ends a call at once: the work itself stops before its next pass and writes nothing from
//! then on. A file whose writing has begun is written to its end, since it appears whole or not at all.

use crate::failure::{Failure, Kind};
use pyo3::prelude::*;
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use relayout::Options;

/// How long the caller's thread waits before it looks for signals again.
const WAIT: Duration = Duration::from_millis(100);

/// Graphs of many bodies are walked in depth: the thread gets what the first one of a process has.
const STACK_BYTES: usize = 8 << 20;

/// Where the work is: what it does next, how much is done, and of how much.
struct Step {
    what: &'static str,
    done: usize,
    of: usize,
}

enum Event<T> {
    Step(Step),
    Done(Result<T, Failure>),
}

/// What the work tells the waiting thread, and hears of it.
#[derive(Clone)]
pub(crate) struct Reporter {
    /// Tells a step; false if nobody listens any more.
    steps: Option<Arc<dyn Fn(Step) -> bool + Send + Sync>>,
    stop: Arc<AtomicBool>,
    /// Steps beside the passes: reading, looking again, tuning, verifying, writing.
    beside: usize,
}

impl Reporter {
    /// Says which of the steps beside the passes is next. `after` is how many of these are done.
    pub(crate) fn step(&self, what: &'static str, after: usize, passes: usize) {
        self.tell(what, after + if after > 0 { passes } else { 0 }, passes);
    }

    fn tell(&self, what: &'static str, done: usize, passes: usize) {
        let step = Step { what, done, of: passes + self.beside };
        if self.steps.as_ref().is_some_and(|steps| !steps(step)) {
            self.stop.store(true, Ordering::Relaxed);
        }
    }

    /// Whether the caller went away.
    pub(crate) fn is_stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    /// An error if the caller went away, which nobody hears.
    pub(crate) fn check(&self) -> Result<(), Failure> {
        if self.is_stopped() { Err(Failure::new(Kind::Internal, "stopped by the caller")) } else { Ok(()) }
    }

    /// Options of a run that stops if the caller went away, and tells nothing.
    pub(crate) fn stoppable(&self, options: Options) -> Options {
        let told = self.clone();
        options.watch(move |_| if told.is_stopped() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) })
    }

    /// Options of a run that is watched.
    pub(crate) fn watched(&self, options: Options) -> Options {
        let told = self.clone();
        options.watch(move |at| {
            if at.round == 0 {
                told.tell(at.pass, 1 + at.index, at.of);
            } else if at.index == 0 {
                told.step("looking again", 1, at.of);
            }
            if told.is_stopped() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        })
    }
}

/// Does `work` on a thread of its own. `progress` is called on this one, with what is done next, how many steps are done, and of how
/// many.
pub(crate) fn run<T: Send + 'static>(
    py: Python<'_>,
    progress: Option<&Bound<'_, PyAny>>,
    beside: usize,
    work: impl FnOnce(&Reporter) -> Result<T, Failure> + Send + 'static,
) -> PyResult<T> {
    let (sender, receiver) = mpsc::channel();
    let stop = Arc::new(AtomicBool::new(false));
    let (heard_it, was_heard) = mpsc::channel();
    let steps = progress.map(|_| steps(sender.clone(), was_heard));
    let reporter = Reporter { steps, stop: Arc::clone(&stop), beside };
    let worker = thread::Builder::new().name("relayout".to_owned()).stack_size(STACK_BYTES).spawn(move || {
        let done = work(&reporter);
        // Nobody listens if the caller went away.
        let _ = sender.send(Event::Done(done));
    })?;
    // Only this thread receives; the lock says so to the compiler.
    let receiver = Mutex::new(receiver);
    loop {
        let event = py.detach(|| receiver.lock().unwrap_or_else(PoisonError::into_inner).recv_timeout(WAIT));
        let heard = match event {
            Ok(Event::Done(done)) => return done.map_err(|failure| failure.raised(py)),
            Ok(Event::Step(Step { what, done, of })) => {
                let called = progress.map_or(Ok(()), |progress| progress.call1((what, done, of)).map(drop));
                called.and_then(|()| py.check_signals()).map(|()| {
                    // The work may have panicked, which the next event says.
                    let _ = heard_it.send(());
                })
            }
            Err(RecvTimeoutError::Timeout) => Ok(()),
            Err(RecvTimeoutError::Disconnected) => return Err(panicked(worker).raised(py)),
        };
        if let Err(error) = heard.and_then(|()| py.check_signals()) {
            stop.store(true, Ordering::Relaxed);
            return Err(error);
        }
    }
}

/// Tells a step, and waits until the function has returned.
fn steps<T: Send + 'static>(
    sender: Sender<Event<T>>,
    was_heard: Receiver<()>,
) -> Arc<dyn Fn(Step) -> bool + Send + Sync> {
    let was_heard = Mutex::new(was_heard);
    Arc::new(move |step| {
        let told = sender.send(Event::Step(step)).is_ok();
        told && was_heard.lock().unwrap_or_else(PoisonError::into_inner).recv().is_ok()
    })
}

/// What a panic said.
fn panicked(worker: thread::JoinHandle<()>) -> Failure {
    let panic = worker.join().err();
    let text = panic.as_ref().and_then(|panic| {
        panic.downcast_ref::<String>().map(String::as_str).or_else(|| panic.downcast_ref::<&str>().copied())
    });
    let text = text.unwrap_or("it panicked");
    Failure::new(Kind::Internal, format!("a defect of relayout; please report it: {text}"))
}
