//! Targets with tables of costs that were made up, in place of those that are built in.

use relayout_target_api::Target;
use relayout_targets::gpu::{self, GpuCosts, GpuMachine, Points};
use relayout_targets::measured::{Machine, MeasuredCosts, Measurement, points_of, specs};
use relayout_targets::{Block, FunctionTarget, OrtCpu};
use std::collections::BTreeMap;

/// What a node takes at least.
const NODE_NS: u64 = 100;

/// `ort-cpu` for hosts of this block and `cuda-tensorcore`, on machines that take two nanoseconds per unit of any work.
pub(crate) fn targets(block: Block) -> Vec<Box<dyn Target>> {
    let cpu = OrtCpu::new(block).unwrap().with_costs(cpu(block));
    vec![Box::new(cpu), Box::new(FunctionTarget::measured(gpu()).unwrap())]
}

fn cpu(block: Block) -> MeasuredCosts {
    let machine = Machine {
        machine: "a made machine".to_owned(),
        date: "2026-11-23".to_owned(),
        runtime: "ONNX Runtime 1.31.1".to_owned(),
        threads: vec![1],
        block: block.channels(),
        node_ns: vec![NODE_NS],
        off_percent: Vec::new(),
        derived: None,
    };
    let grids = specs().into_iter().map(|spec| {
        measurement(&spec.name, &spec.axes, |point| spec.case(point, block.channels()).work(block.channels()))
    });
    MeasuredCosts::parse("made", &MeasuredCosts::text(&machine, &grids.collect::<Vec<_>>(), &BTreeMap::new())).unwrap()
}

fn gpu() -> GpuCosts {
    let machine = GpuMachine {
        machine: "a made GPU".to_owned(),
        device: "cuda".to_owned(),
        date: "2026-11-23".to_owned(),
        runtime: "PyTorch 2.9.1".to_owned(),
        node_ns: NODE_NS,
    };
    let grids = gpu::specs(Points::Few).into_iter();
    let grids = grids.map(|spec| measurement(&spec.name, &spec.axes, |point| spec.case(point).work()));
    GpuCosts::parse("made", &GpuCosts::text(&machine, &grids.collect::<Vec<_>>())).unwrap()
}

fn measurement(name: &str, axes: &[(&'static str, Vec<u64>)], work: impl Fn(&[u64]) -> f64) -> Measurement {
    let points: Vec<Vec<u64>> = axes.iter().map(|(_, points)| points.clone()).collect();
    Measurement {
        name: name.to_owned(),
        axes: axes.iter().map(|(name, points)| ((*name).to_owned(), points.clone())).collect(),
        ns: points_of(&points).iter().map(|point| NODE_NS + (2.0 * work(point)).ceil() as u64).collect(),
    }
}
