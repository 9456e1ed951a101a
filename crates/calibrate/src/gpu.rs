//! Costs of a GPU: what a runner is asked to measure, and the table that its answer makes.
//!
//! A [`GpuRequest`] is a folder: `cases.json` lists convolutions, moves and passes in the order of the grids that
//! [`relayout_targets::gpu`] needs, and `kernels/` has the project's kernel for each move. Whoever runs them, such as `tools/runner`
//! of the source, answers with nanoseconds in the same order, and [`GpuRequest::table`] makes a table of that.
//!
//! Absent: starting anything.

use relayout_codegen::cuda::{CudaOptions, generate};
use relayout_codegen::plan;
use relayout_targets::gpu::{Case, ConvCase, GpuCosts, GpuMachine, MoveClass, Points, Spec, specs};
use relayout_targets::measured::{Measurement, points_of};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

use super::CalibrateError;
use relayout::kernels::LaunchFile;

/// Version of the form of request and answer.
const SCHEMA: u32 = 1;

/// Bytes of an element of what is moved.
const ELEM_BYTES: usize = 4;

/// Images are no wider than this; of more pixels there are several.
const WIDEST: u64 = 64;

/// Bytes of the pass that takes what any kernel takes.
const NOTHING_BYTES: u64 = 8;

/// What is to be measured.
#[derive(Clone, Debug)]
pub struct GpuRequest {
    specs: Vec<Spec>,
    files: Vec<(String, String)>,
}

/// What a GPU was measured to take.
#[derive(Clone, Debug)]
pub struct GpuCalibration {
    machine: GpuMachine,
    grids: Vec<Measurement>,
}

impl GpuCalibration {
    /// The text of the table.
    pub fn text(&self) -> String {
        GpuCosts::text(&self.machine, &self.grids)
    }
}

#[derive(Serialize)]
struct Request {
    schema: u32,
    rounds: usize,
    cases: Vec<Asked>,
}

/// A case as a runner reads it.
#[derive(Serialize)]
#[serde(rename_all = "lowercase")]
enum Asked {
    Conv { dtype: &'static str, channels_last: bool, groups: u64, kernel: u64, channels: u64, images: u64, side: u64 },
    Move { shape: Vec<usize>, perm: Vec<usize>, elem_bytes: usize, kernel: String },
    Pass { bytes: u64 },
}

#[derive(Deserialize)]
struct Answer {
    schema: u32,
    machine: String,
    device: String,
    runtime: String,
    ns: Vec<u64>,
}

impl GpuRequest {
    /// What a table of these points needs, each case timed in so many rounds.
    ///
    /// # Errors
    /// [`CalibrateError::NoModel`] for a move that no kernel is for.
    pub fn new(points: Points, rounds: usize) -> Result<GpuRequest, CalibrateError> {
        let specs = specs(points);
        let mut kernels = BTreeMap::new();
        // The first case is what any kernel takes.
        let mut cases = vec![Asked::Pass { bytes: NOTHING_BYTES }];
        for case in specs.iter().flat_map(cases_of) {
            cases.push(asked(&case, &mut kernels)?);
        }
        let mut files: Vec<(String, String)> = kernels.into_iter().collect();
        files.push(("cases.json".to_owned(), json(&Request { schema: SCHEMA, rounds, cases })?));
        Ok(GpuRequest { specs, files })
    }

    /// The files of the folder: paths in it, and texts.
    pub fn files(&self) -> &[(String, String)] {
        &self.files
    }

    /// The table that a runner's answer makes, the text of `times.json`.
    ///
    /// # Errors
    /// [`CalibrateError::Answer`] if it is none to this request, [`CalibrateError::Table`] if the times are none.
    pub fn table(&self, answer: &str, date: &str) -> Result<GpuCalibration, CalibrateError> {
        let wrong = |why: String| CalibrateError::Answer { why };
        let answer: Answer = serde_json::from_str(answer).map_err(|e| wrong(e.to_string()))?;
        let wanted = 1 + self.specs.iter().map(|spec| cases_of(spec).len()).sum::<usize>();
        if answer.schema != SCHEMA || answer.ns.len() != wanted {
            let (schema, count) = (answer.schema, answer.ns.len());
            return Err(wrong(format!("schema {schema} with {count} times, not {SCHEMA} with {wanted}")));
        }
        let mut times = answer.ns.into_iter();
        let node_ns = times.next().unwrap_or_default();
        let grids = self.specs.iter().map(|spec| Measurement {
            name: spec.name.clone(),
            axes: spec.axes.iter().map(|(name, points)| ((*name).to_owned(), points.clone())).collect(),
            ns: times.by_ref().take(cases_of(spec).len()).collect(),
        });
        let grids: Vec<Measurement> = grids.collect();
        let Answer { machine, device, runtime, .. } = answer;
        let machine = GpuMachine { machine, device, date: date.to_owned(), runtime, node_ns };
        GpuCosts::new(machine.clone(), grids.clone()).map_err(|why| CalibrateError::Table { why })?;
        Ok(GpuCalibration { machine, grids })
    }
}

fn cases_of(spec: &Spec) -> Vec<Case> {
    let axes: Vec<Vec<u64>> = spec.axes.iter().map(|(_, points)| points.clone()).collect();
    points_of(&axes).iter().map(|point| spec.case(point)).collect()
}

/// A case as a runner reads it; the kernel of a move is added to the files.
fn asked(case: &Case, files: &mut BTreeMap<String, String>) -> Result<Asked, CalibrateError> {
    match case {
        Case::Conv(conv) => Ok(convolution(conv)),
        Case::Pass(bytes) => Ok(Asked::Pass { bytes: *bytes }),
        Case::Move(class, bytes) => {
            let (shape, perm) = movement(*class, *bytes);
            let none =
                |why: String| CalibrateError::NoModel { case: format!("a {} of {bytes} B: {why}", class.as_str()) };
            let planned = plan(&shape, &perm, ELEM_BYTES).map_err(|e| none(e.to_string()))?;
            let kernel = generate(&planned, &CudaOptions::default()).map_err(|e| none(e.to_string()))?;
            let source = format!("{}.cu", kernel.name);
            let launch = LaunchFile::new(&kernel.name, &source, kernel.launch);
            files.insert(format!("kernels/{}.json", kernel.name), json(&launch)?);
            files.insert(format!("kernels/{source}"), kernel.source);
            Ok(Asked::Move { shape, perm, elem_bytes: ELEM_BYTES, kernel: kernel.name })
        }
    }
}

fn convolution(conv: &ConvCase) -> Asked {
    let ConvCase { dtype, channels_last, groups, taps, channels, pixels } = *conv;
    let side = pixels.isqrt().clamp(1, WIDEST);
    let images = (pixels / (side * side)).max(1);
    Asked::Conv { dtype, channels_last, groups, kernel: taps.isqrt(), channels, images, side }
}

/// A shape and a permutation of so many bytes whose kernel is of the class.
fn movement(class: MoveClass, bytes: u64) -> (Vec<usize>, Vec<usize>) {
    let elems = usize::try_from(bytes).unwrap_or(usize::MAX) / ELEM_BYTES;
    match class {
        MoveClass::Copy => (vec![elems], vec![0]),
        MoveClass::Rows => (vec![elems / 256, 8, 32], vec![1, 0, 2]),
        MoveClass::Transpose => (vec![32, elems / 32], vec![1, 0]),
        MoveClass::Pack => (vec![4, elems / 4], vec![1, 0]),
        MoveClass::Generic => (vec![elems / 256, 16, 16], vec![2, 1, 0]),
    }
}

fn json(value: &impl Serialize) -> Result<String, CalibrateError> {
    let text = serde_json::to_string_pretty(value).map_err(|e| CalibrateError::Answer { why: e.to_string() })?;
    Ok(text + "\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use relayout_ir::layout::Layout;

    fn request() -> GpuRequest {
        GpuRequest::new(Points::Few, 1).unwrap()
    }

    fn answer(schema: u32, ns: &[u64]) -> String {
        serde_json::json!({"schema": schema, "machine": "m", "device": "cuda", "runtime": "r", "ns": ns}).to_string()
    }

    fn count(request: &GpuRequest) -> usize {
        1 + request.specs.iter().map(|spec| cases_of(spec).len()).sum::<usize>()
    }

    #[test]
    fn moves_are_of_the_class_that_they_stand_for() {
        for points in [Points::Few, Points::Whole] {
            for spec in specs(points) {
                for case in cases_of(&spec) {
                    let Case::Move(class, bytes) = case else { continue };
                    let (shape, perm) = movement(class, bytes);
                    assert_eq!(shape.iter().product::<usize>() * ELEM_BYTES, bytes as usize, "{class:?}");
                    assert_eq!(plan(&shape, &perm, ELEM_BYTES).unwrap().class().as_str(), class.as_str());
                    let (from, to) = (Layout::row_major(shape.len()), Layout::permutation(&perm).unwrap());
                    let sizes: Vec<u64> = shape.iter().map(|&n| n as u64).collect();
                    assert_eq!(MoveClass::classify(&from, &to, &sizes, ELEM_BYTES as u64), class);
                }
            }
        }
    }

    #[test]
    fn convolutions_have_the_pixels_that_they_stand_for() {
        for case in specs(Points::Whole).iter().flat_map(cases_of) {
            let Case::Conv(conv) = &case else { continue };
            let Asked::Conv { images, side, kernel, channels, groups, .. } = convolution(conv) else { panic!() };
            assert_eq!((images * side * side, kernel * kernel), (conv.pixels, conv.taps));
            assert_eq!(channels % groups, 0);
        }
    }

    #[test]
    fn the_times_of_an_answer_stand_in_the_table_in_their_order() {
        let request = request();
        let ns: Vec<u64> = (0..count(&request)).map(|at| 1000 + at as u64).collect();
        let made = request.table(&answer(SCHEMA, &ns), "2026-11-22").unwrap();
        assert_eq!(made.machine.node_ns, 1000);
        assert_eq!(made.grids.iter().flat_map(|grid| grid.ns.clone()).collect::<Vec<_>>(), ns[1..]);
        assert!(GpuCosts::parse("t", &made.text()).is_ok());
    }

    #[test]
    fn what_is_no_answer_is_refused() {
        let request = request();
        let all = vec![5000; count(&request)];
        for (text, says) in [
            (answer(SCHEMA, &all[1..]), "times"),
            (answer(SCHEMA + 1, &all), "schema 2"),
            ("{}".to_owned(), "missing field"),
            (answer(SCHEMA, &vec![0; all.len()]), "`node_ns` is 0"),
        ] {
            let error = request.table(&text, "d").unwrap_err().to_string();
            assert!(error.contains(says), "{error}");
        }
    }

    #[test]
    fn every_kernel_that_a_case_names_is_there() {
        let request = request();
        let moves = specs(Points::Few).iter().flat_map(cases_of).filter(|case| matches!(case, Case::Move(..))).count();
        let is_source = |name: &str| std::path::Path::new(name).extension().is_some_and(|end| end == "cu");
        let sources = request.files().iter().filter(|(name, _)| is_source(name)).count();
        assert_eq!(sources, moves);
        assert!(request.files().iter().any(|(name, text)| name == "cases.json" && text.contains("relayout_")));
    }
}
