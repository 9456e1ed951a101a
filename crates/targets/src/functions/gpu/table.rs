//! The table: reading it, writing it, and asking it.

use std::collections::BTreeMap;

use relayout_ir::dtype::DType;
use serde::Deserialize;

use super::specs::{DTYPES, conv_name, move_name};
use super::{MoveClass, Points, specs};
use crate::shared::tables::grid::Grid;
use crate::shared::tables::{CostsError, Measurement, file};

/// The format of tables that this version reads.
const FORMAT: u64 = 1;

/// The target that tables are about.
const TARGET: &str = "cuda-tensorcore";

/// Where rates of what is large are taken: bytes.
const LARGE: f64 = (1_u64 << 27) as f64;

/// Where and when a table was measured.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GpuMachine {
    /// The device, as it calls itself.
    pub machine: String,
    /// `cuda`, or `cpu` for a table that only tries the way.
    pub device: String,
    /// The day, as in `2026-11-21`.
    pub date: String,
    /// Versions of the libraries.
    pub runtime: String,
    /// Nanoseconds that any kernel takes, even one that computes nothing.
    pub node_ns: u64,
}

/// What convolutions and moves cost on a GPU that was measured.
#[derive(Clone, Debug)]
pub struct GpuCosts {
    machine: GpuMachine,
    grids: BTreeMap<String, Grid>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    #[serde(rename = "format")]
    _format: u64,
    #[serde(rename = "target")]
    _target: String,
    measured: GpuMachine,
    grid: file::Lists,
}

/// A convolution that is to be priced.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Convolution {
    pub(crate) dtype: DType,
    pub(crate) channels_last: bool,
    /// Whether channels-last kernels find as many channels as they take at a time.
    pub(crate) aligned: bool,
    pub(crate) groups: u64,
    pub(crate) depthwise: bool,
    /// Pixels under a filter.
    pub(crate) taps: u64,
    pub(crate) channels: u64,
    pub(crate) filters: u64,
    pub(crate) pixels: u64,
    /// Multiply-adds.
    pub(crate) work: u64,
}

impl GpuCosts {
    /// Reads a table; `name` is what messages call it.
    ///
    /// # Errors
    /// [`CostsError::Malformed`] with the place, or what else the table is if not one of this version and target.
    pub fn parse(name: &str, text: &str) -> Result<GpuCosts, CostsError> {
        let malformed = |why: String| CostsError::Malformed { name: name.to_owned(), why };
        file::head(name, text, TARGET, FORMAT)?;
        let read: File = file::parse(name, text)?;
        GpuCosts::new(read.measured, file::measurements(read.grid).map_err(malformed)?).map_err(malformed)
    }

    /// A table of measurements: exactly the grids that [`specs`] lists, at any points of their axes.
    ///
    /// # Errors
    /// What is missing, or can't be.
    pub fn new(machine: GpuMachine, measured: Vec<Measurement>) -> Result<GpuCosts, String> {
        if !(1..=1 << 30).contains(&machine.node_ns) {
            return Err(format!("`node_ns` is {}, and should be in 1..={}", machine.node_ns, 1 << 30));
        }
        if !["cuda", "cpu"].contains(&machine.device.as_str()) {
            return Err(format!("`device` is `{}`, and should be `cuda` or `cpu`", machine.device));
        }
        let wanted = specs(Points::Whole).into_iter().map(|spec| file::Wanted {
            name: spec.name.clone(),
            axes: spec.axes.iter().map(|(name, _)| *name).collect(),
            work: move |point: &[u64]| spec.case(point).work(),
        });
        let grids = file::grids(measured, wanted, machine.node_ns)?;
        Ok(GpuCosts { machine, grids })
    }

    /// The text of a table, the same for the same measurements.
    #[must_use]
    pub fn text(machine: &GpuMachine, measured: &[Measurement]) -> String {
        let GpuMachine { machine: gpu, device, date, runtime, node_ns } = machine;
        format!(
            "# What convolutions and moves cost on a GPU, measured by `relayout calibrate`. Each list `ns` has the nanoseconds at every\n\
             # point of its axes, the last axis fastest.\nformat = {FORMAT}\ntarget = \"{TARGET}\"\n\n[measured]\nmachine = {}\n\
             device = {}\ndate = {}\nruntime = {}\nnode_ns = {node_ns}\n{}",
            file::quoted(gpu),
            file::quoted(device),
            file::quoted(date),
            file::quoted(runtime),
            file::grids_text("grid", measured),
        )
    }

    /// Where and when the table was measured.
    pub fn machine(&self) -> &GpuMachine {
        &self.machine
    }

    /// In words, where the costs come from.
    #[must_use]
    pub fn source(&self) -> String {
        let GpuMachine { machine, device, date, runtime, .. } = &self.machine;
        let only = if device == "cpu" { ", a CPU, so they say nothing of a GPU" } else { "" };
        format!(
            "measured on {machine}{only} with {runtime}, {date}; 8-bit and 4-bit convolutions as in the built-in model"
        )
    }

    /// What a move of these bytes takes, in nanoseconds.
    #[must_use]
    pub fn move_ns(&self, class: MoveClass, bytes: u64) -> u64 {
        self.at(&move_name(class), &[bytes as f64], bytes as f64)
    }

    /// What a convolution takes, in nanoseconds; `None` for element types that were not measured.
    pub(crate) fn conv_ns(&self, conv: &Convolution) -> Option<u64> {
        let [float, half] = DTYPES;
        let dtype = match conv.dtype {
            DType::F32 => float,
            DType::F16 | DType::BF16 => half,
            _ => return None,
        };
        let [taps, pixels, groups] = [conv.taps, conv.pixels, conv.groups].map(|n| n as f64);
        let channels = (conv.channels as f64 * conv.filters as f64).sqrt();
        let name = |kind| conv_name(dtype, kind, conv.channels_last);
        let work = conv.work as f64;
        Some(if conv.depthwise {
            self.at(&name("depthwise"), &[channels, pixels], work)
        } else if conv.channels_last && !conv.aligned && conv.groups == 1 {
            self.at(&name("odd"), &[taps, channels, pixels], work)
        } else {
            self.at(&name("dense"), &[groups, taps, channels, pixels], work)
        })
    }

    /// Bytes in a nanosecond of large transposes and of large passes.
    pub(crate) fn bytes_per_ns(&self) -> [u64; 2] {
        [move_name(MoveClass::Transpose), "pass".to_owned()].map(|grid| {
            let rate = self.rate(&grid, &[LARGE]);
            // A cast of a float saturates.
            ((1.0 / rate).round() as u64).max(1)
        })
    }

    fn rate(&self, grid: &str, at: &[f64]) -> f64 {
        self.grids.get(grid).map_or(0.0, |grid| grid.rate(at))
    }

    /// Nanoseconds of a kernel with this much work at the rate of a place of a grid.
    fn at(&self, grid: &str, at: &[f64], work: f64) -> u64 {
        self.machine.node_ns.saturating_add((self.rate(grid, at) * work).round() as u64)
    }
}
