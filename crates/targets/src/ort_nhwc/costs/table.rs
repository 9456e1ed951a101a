//! The table: reading it, writing it, and asking it.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::Deserialize;

use super::specs::{name, of_conv};
use super::{Points, specs};
use crate::shared::tables::grid::Grid;
use crate::shared::tables::{CostsError, Measurement, file};

/// The format of tables that this version reads.
const FORMAT: u64 = 1;

/// The target that tables are about.
const TARGET: &str = "ort-nhwc";

/// What a device that is not the provider's own is called in a table.
const STAND_IN: &str = "cpu";

/// Where and when a table was measured.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DeviceMachine {
    /// The device, as it calls itself.
    pub machine: String,
    /// The execution provider, as `--provider` takes it.
    pub provider: String,
    /// `own`, or `cpu` for a table that only tries the way in the CPU's provider.
    pub device: String,
    /// The day, as in `2026-11-21`.
    pub date: String,
    /// The runtime and its version.
    pub runtime: String,
    /// Nanoseconds that any node takes, even one of a few elements.
    pub node_ns: u64,
}

/// What nodes cost on a device that was measured.
#[derive(Clone, Debug)]
pub struct DeviceCosts {
    machine: DeviceMachine,
    grids: Arc<BTreeMap<String, Grid>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    #[serde(rename = "format")]
    _format: u64,
    #[serde(rename = "target")]
    _target: String,
    measured: DeviceMachine,
    grid: file::Lists,
}

/// A convolution that is to be priced.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Convolution {
    pub(crate) half: bool,
    pub(crate) depthwise: bool,
    /// Pixels under a filter.
    pub(crate) taps: u64,
    /// Channels that a filter reads.
    pub(crate) channels: u64,
    /// Filters that read the same channels.
    pub(crate) filters: u64,
    pub(crate) pixels: u64,
    /// Multiply-adds.
    pub(crate) work: f64,
}

impl DeviceCosts {
    /// Reads a table; `name` is what messages call it.
    ///
    /// # Errors
    /// [`CostsError::Malformed`] with the place, or what else the table is if not one of this version and target.
    pub fn parse(name: &str, text: &str) -> Result<DeviceCosts, CostsError> {
        let malformed = |why: String| CostsError::Malformed { name: name.to_owned(), why };
        file::head(name, text, TARGET, FORMAT)?;
        let read: File = file::parse(name, text)?;
        DeviceCosts::new(read.measured, file::measurements(read.grid).map_err(malformed)?).map_err(malformed)
    }

    /// A table of measurements: the grids that [`specs`] lists, at any points of their axes. Those that a table may lack may be missing.
    ///
    /// # Errors
    /// What is missing, or can't be.
    pub fn new(machine: DeviceMachine, measured: Vec<Measurement>) -> Result<DeviceCosts, String> {
        if !(1..=1 << 30).contains(&machine.node_ns) {
            return Err(format!("`node_ns` is {}, and should be in 1..={}", machine.node_ns, 1 << 30));
        }
        if !["own", STAND_IN].contains(&machine.device.as_str()) {
            return Err(format!("`device` is `{}`, and should be `own` or `{STAND_IN}`", machine.device));
        }
        let given: Vec<&str> = measured.iter().map(|grid| grid.name.as_str()).collect();
        let mut wanted = specs(Points::Whole);
        wanted.retain(|spec| !spec.may_lack() || given.contains(&spec.name.as_str()));
        let wanted: Vec<_> = wanted
            .into_iter()
            .map(|spec| file::Wanted {
                name: spec.name.clone(),
                axes: spec.axes.iter().map(|(name, _)| *name).collect(),
                work: move |point: &[u64]| spec.case(point).work(),
            })
            .collect();
        let grids = file::grids(measured, wanted, machine.node_ns)?;
        Ok(DeviceCosts { machine, grids: Arc::new(grids) })
    }

    /// The text of a table, the same for the same measurements.
    #[must_use]
    pub fn text(machine: &DeviceMachine, measured: &[Measurement]) -> String {
        let DeviceMachine { machine: name, provider, device, date, runtime, node_ns } = machine;
        format!(
            "# What nodes cost on the device of an execution provider, measured by `relayout calibrate`. Each list `ns` has the nanoseconds\n\
             # at every point of its axes, the last axis fastest.\nformat = {FORMAT}\ntarget = \"{TARGET}\"\n\n[measured]\nmachine = {}\n\
             provider = {}\ndevice = {}\ndate = {}\nruntime = {}\nnode_ns = {node_ns}\n{}",
            file::quoted(name),
            file::quoted(provider),
            file::quoted(device),
            file::quoted(date),
            file::quoted(runtime),
            file::grids_text("grid", measured),
        )
    }

    /// Where and when the table was measured.
    pub fn machine(&self) -> &DeviceMachine {
        &self.machine
    }

    /// In words, where the costs come from.
    #[must_use]
    pub fn source(&self) -> String {
        let DeviceMachine { machine, provider, device, date, runtime, .. } = &self.machine;
        let only = if device == STAND_IN { ", a CPU, so they say nothing of a device" } else { "" };
        format!("measured on {machine}{only} for provider {provider} with {runtime}, {date}")
    }

    /// Fails unless the table is about this provider; `name` is what messages call it.
    pub(crate) fn check(&self, name: &str, provider: &str) -> Result<(), CostsError> {
        let of = |provider: &str| format!("{TARGET} --provider {provider}");
        let own = &self.machine.provider;
        if own == provider {
            return Ok(());
        }
        Err(CostsError::OtherTarget { name: name.to_owned(), target: of(own), wanted: of(provider) })
    }

    /// What a Transpose of so many elements takes, in nanoseconds.
    pub(crate) fn transpose_ns(&self, half: bool, elements: u64) -> u64 {
        self.by_elements("transpose", half, elements)
    }

    /// What a linear Resize takes that leaves so many elements.
    pub(crate) fn resize_ns(&self, half: bool, elements: u64) -> u64 {
        self.by_elements("resize", half, elements)
    }

    /// What a sum of so many elements with a bias takes.
    pub(crate) fn sum_ns(&self, half: bool, elements: u64) -> u64 {
        self.by_elements("sum", half, elements)
    }

    /// What a normalization over groups of so many elements takes channels first, and by the op that reads channels last; `None` if that
    /// was not measured.
    pub(crate) fn norm_ns(&self, half: bool, elements: u64) -> Option<[u64; 2]> {
        self.grids
            .contains_key(&name("norm-last", half))
            .then(|| ["norm-first", "norm-last"].map(|kind| self.by_elements(kind, half, elements)))
    }

    /// What a product of matrices takes.
    pub(crate) fn product_ns(&self, half: bool, [inputs, outputs]: [u64; 2]) -> u64 {
        let at = [inputs as f64, outputs as f64];
        self.at(&name("product", half), &at, inputs as f64 * outputs as f64)
    }

    /// What a convolution takes channels first and channels last.
    pub(crate) fn conv_ns(&self, conv: &Convolution) -> [u64; 2] {
        [false, true].map(|last| {
            let grid = name(of_conv(conv.depthwise, last), conv.half);
            let [taps, pixels, channels, filters] =
                [conv.taps, conv.pixels, conv.channels, conv.filters].map(|n| n as f64);
            if conv.depthwise {
                return self.at(&grid, &[filters, pixels], conv.work);
            }
            // A square of as many weights.
            self.at(&grid, &[taps, (channels * filters).sqrt(), pixels], conv.work)
        })
    }

    fn by_elements(&self, kind: &str, half: bool, elements: u64) -> u64 {
        self.at(&name(kind, half), &[elements as f64], elements as f64)
    }

    /// Nanoseconds of a node with this much work at the rate of a place of a grid.
    fn at(&self, grid: &str, at: &[f64], work: f64) -> u64 {
        let rate = self.grids.get(grid).map_or(0.0, |grid| grid.rate(at));
        // A cast of a float saturates.
        self.machine.node_ns.saturating_add((rate * work).round() as u64)
    }
}
