//! Help from the pool of rayon that nobody waits for before it has come.
//!
//! A move in the caches takes tens of microseconds, and so does waking a thread that sleeps. A scope of rayon ends when the last
//! of its tasks has run, so it would wait for threads that come when nothing is left. Here the caller does all the work that is
//! left and closes the call; who comes later finds it closed. Helpers that are done look out for the next call for a moment before
//! they go back to the pool, so that moves one after the other wake nobody.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Set in a call's state once nobody may begin any more; what is below it counts those at work.
const CLOSED: usize = 1 << (usize::BITS - 1);

/// Turns of waiting for helpers at their last piece before other threads are let run.
const TURNS: usize = 2_000;

/// How long a helper looks out for another call: less than it takes to put a thread to sleep and wake it.
const LOOKOUT: Duration = Duration::from_micros(50);

/// Work that threads may join.
struct Call {
    state: AtomicUsize,
    work: Work,
}

/// The work of a caller who comes back only when nobody is at it.
#[derive(Clone, Copy)]
struct Work(*const (dyn Fn() + Sync));

// SAFETY: what it points to may be called from any thread, and lives for as long as anybody is at work (`share`).
unsafe impl Send for Work {}
// SAFETY: as above.
unsafe impl Sync for Work {}

impl Call {
    /// Does the work, unless the call is closed.
    fn join(&self) {
        let begin = |state: usize| (state & CLOSED == 0).then_some(state + 1);
        if self.state.fetch_update(Ordering::Acquire, Ordering::Relaxed, begin).is_ok() {
            let _leave = Leave(&self.state);
            // SAFETY: the caller is in `share` until the state says that this thread has left.
            unsafe { (*self.work.0)() };
        }
    }
}

/// Counts a thread out, also one that panics.
struct Leave<'a>(&'a AtomicUsize);

impl Drop for Leave<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Release);
    }
}

/// Closes a call and waits for those at work, also where the caller's own work panics.
struct Close<'a>(&'a AtomicUsize);

impl Drop for Close<'_> {
    fn drop(&mut self) {
        let mut at_work = self.0.fetch_or(CLOSED, Ordering::Acquire);
        let mut turns = 0;
        while at_work & !CLOSED > 0 {
            // They are at their last piece: to sleep and be woken would take longer.
            if turns < TURNS {
                std::hint::spin_loop();
                turns += 1;
            } else {
                std::thread::yield_now();
            }
            at_work = self.0.load(Ordering::Acquire);
        }
    }
}

/// Where helpers that are awake find calls.
struct Lookout {
    /// Helpers that look out and calls that none of them has taken.
    awake: AtomicUsize,
    waiting: AtomicUsize,
    calls: Mutex<Vec<Arc<Call>>>,
}

static LOOKOUT_POST: Lookout =
    Lookout { awake: AtomicUsize::new(0), waiting: AtomicUsize::new(0), calls: Mutex::new(Vec::new()) };

impl Lookout {
    /// The calls that wait. Nothing panics while they are locked.
    fn calls(&self) -> MutexGuard<'_, Vec<Arc<Call>>> {
        self.calls.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Leaves a call to as many helpers as are awake, at most `helpers`, and answers how many that are.
    fn offer(&self, call: &Arc<Call>, helpers: usize) -> usize {
        if self.awake.load(Ordering::Relaxed) == 0 {
            return 0;
        }
        let mut calls = self.calls();
        let free = self.awake.load(Ordering::Relaxed).saturating_sub(calls.len()).min(helpers);
        calls.extend(std::iter::repeat_n(call, free).cloned());
        self.waiting.store(calls.len(), Ordering::Release);
        free
    }

    /// Takes back what nobody came for.
    fn withdraw(&self, call: &Arc<Call>) {
        if self.waiting.load(Ordering::Relaxed) > 0 {
            let mut calls = self.calls();
            calls.retain(|waiting| !Arc::ptr_eq(waiting, call));
            self.waiting.store(calls.len(), Ordering::Release);
        }
    }

    fn take(&self) -> Option<Arc<Call>> {
        if self.waiting.load(Ordering::Acquire) == 0 {
            return None;
        }
        let mut calls = self.calls();
        let call = calls.pop();
        self.waiting.store(calls.len(), Ordering::Release);
        call
    }

    /// Joins calls until none has come for a while.
    fn watch(&self) {
        self.awake.fetch_add(1, Ordering::Relaxed);
        let mut since = Instant::now();
        while since.elapsed() < LOOKOUT {
            if let Some(call) = self.take() {
                self.awake.fetch_sub(1, Ordering::Relaxed);
                call.join();
                self.awake.fetch_add(1, Ordering::Relaxed);
                since = Instant::now();
            }
            std::hint::spin_loop();
        }
        self.awake.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Calls `work` on this thread and on up to `helpers` of the pool at the same time. Each call has to do what is left until nothing
/// is: helpers may come late or never. Comes back when nobody is at work.
pub(super) fn share(helpers: usize, work: &(dyn Fn() + Sync)) {
    // SAFETY: only the lifetime changes. Nobody begins once the call is closed, and `Close` waits for those who have begun.
    let unbounded = unsafe { std::mem::transmute::<&(dyn Fn() + Sync), &'static (dyn Fn() + Sync)>(work) };
    let call = Arc::new(Call { state: AtomicUsize::new(0), work: Work(unbounded) });
    let close = Close(&call.state);
    for _ in LOOKOUT_POST.offer(&call, helpers)..helpers {
        let call = Arc::clone(&call);
        rayon::spawn(move || {
            call.join();
            drop(call);
            LOOKOUT_POST.watch();
        });
    }
    work();
    drop(close);
    LOOKOUT_POST.withdraw(&call);
}

#[cfg(test)]
mod tests {
    use super::share;
    use std::sync::atomic::{AtomicUsize, Ordering};

    #[test]
    fn all_is_done_when_the_call_comes_back() {
        for helpers in [0, 1, 3] {
            for _ in 0..if cfg!(miri) { 3 } else { 500 } {
                let (next, done) = (AtomicUsize::new(0), AtomicUsize::new(0));
                share(helpers, &|| {
                    while next.fetch_add(1, Ordering::Relaxed) < 40 {
                        done.fetch_add(1, Ordering::Relaxed);
                    }
                });
                assert_eq!(done.load(Ordering::Relaxed), 40);
            }
        }
    }

    #[test]
    fn a_caller_that_panics_waits_for_its_helpers() {
        let (started, ended) = (AtomicUsize::new(0), AtomicUsize::new(0));
        let caller = std::thread::current().id();
        let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            share(1, &|| {
                if std::thread::current().id() == caller {
                    while started.load(Ordering::Acquire) == 0 {
                        std::thread::yield_now();
                    }
                    panic!("the caller's own work");
                }
                started.fetch_add(1, Ordering::Release);
                std::thread::sleep(std::time::Duration::from_millis(5));
                ended.fetch_add(1, Ordering::Release);
            });
        }));
        assert!(outcome.is_err());
        assert_eq!(ended.load(Ordering::Acquire), 1);
    }
}
