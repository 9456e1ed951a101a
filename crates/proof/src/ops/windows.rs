//! Places of windows along axes, which may differ from call to call.

use crate::terms::state::Terms;
use crate::terms::value::Value;
use crate::terms::windows::Windows;

/// Runtimes of different versions may count such a window or not. As a term by itself it is what it is.
const UNLIKE: &str = "the checker does not know whether its last window counts, which starts behind its operand";

impl Windows {
    /// Puts numbers in the place of padding that is a rule.
    pub(super) fn resolve(&mut self, terms: &Terms, auto: &str, spatial: &[i64]) -> Result<(), String> {
        let rank = self.kernel.len();
        match auto {
            "NOTSET" | "" => return Ok(()),
            "VALID" => self.pads = vec![0; 2 * rank],
            "SAME_UPPER" | "SAME_LOWER" => {
                for (at, &extent) in spatial.iter().enumerate() {
                    if terms.is_open(extent) && self.strides[at] > 1 && self.reach(at) > 1 {
                        self.ruled[at] = Some(auto.to_owned());
                        continue;
                    }
                    let count = (extent + self.strides[at] - 1) / self.strides[at];
                    let total = ((count - 1) * self.strides[at] + self.reach(at) - extent).max(0);
                    let less = total / 2;
                    let before = if auto == "SAME_UPPER" { less } else { total - less };
                    (self.pads[at], self.pads[at + rank]) = (before, total - before);
                }
            }
            other => return Err(format!("the checker does not know auto_pad {other}")),
        }
        self.ceil = false;
        Ok(())
    }

    /// Extents of the result. `ceil` is gone afterwards if it makes no difference.
    pub(super) fn slid(&mut self, terms: &mut Terms, spatial: &[i64]) -> Result<Vec<i64>, String> {
        let mut counts = Vec::new();
        let mut matters = false;
        for (at, &extent) in spatial.iter().enumerate() {
            if terms.is_open(extent) {
                counts.push(self.slid_over(terms, at, extent)?);
                continue;
            }
            let (room, stride) = (extent + self.padding(at) - self.reach(at), self.strides[at]);
            if room < 0 {
                return Err("its window is larger than its operand".to_owned());
            }
            let (down, up) = (room / stride + 1, (room + stride - 1) / stride + 1);
            if self.ceil && up != down {
                matters = true;
                if (up - 1) * stride >= extent + self.pads[at] {
                    return Err(UNLIKE.to_owned());
                }
            }
            counts.push(if self.ceil { up } else { down });
            terms.closed(counts[at])?;
        }
        self.ceil = matters;
        Ok(counts)
    }

    /// How many windows there are along an axis that differs from call to call. Windows that are larger than it fail with such a size.
    pub(super) fn slid_over(&self, terms: &mut Terms, at: usize, extent: i64) -> Result<i64, String> {
        let stride = self.strides[at];
        if self.ceil && stride > 1 {
            return Err(UNLIKE.to_owned());
        }
        // Those that a rule pads are as many as there would be if windows had one place.
        let reach = if self.ruled[at].is_some() { 1 } else { self.reach(at) };
        let more = self.padding(at) - reach;
        terms.quotient_of(extent, more + stride, stride).ok_or_else(|| "it has too many axes".to_owned())
    }

    /// Notes the axis of an operand that is narrower than the windows.
    pub(super) fn narrow(&self, terms: &mut Terms, x: &Value) {
        let shape = x.shape();
        let least = |at: usize| self.reach(at) - self.padding(at);
        let axis = (0..self.kernel.len()).find(|&at| shape.get(at + 2).is_some_and(|extent| *extent < least(at)));
        if let Some(at) = axis {
            terms.misfit(x, at + 2, least(at));
        }
    }

    /// Whether windows without padding may hold places outside of an axis that differs from call to call: padding that is a rule, and
    /// a window that is larger than its axis by less than a step, of which ONNX Runtime makes one.
    pub(super) fn may_reach_out(&self, terms: &Terms, spatial: &[i64]) -> bool {
        let wide = |at: usize| terms.is_open(spatial[at]) && self.strides[at] > 1 && self.reach(at) > 1;
        (0..spatial.len()).any(|at| self.ruled[at].is_some() || wide(at))
    }
}
