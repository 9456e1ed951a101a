//! Generated kernels through the real compiler: NVRTC of the pinned wheel, for A100 and H100, without a GPU.
//!
//! `tools/cuda_compile.py` does the work with the Python that `PYTHON` names, else the one of tools/setup.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::cuda_common::{Case, exact, odd, thinned};
use relayout_codegen::cuda::{CudaKernel, Index, KernelClass, Shape, Variant};
use serde::Deserialize;

/// One line of the tool.
#[derive(Debug, Clone, Deserialize)]
struct Compiled {
    file: String,
    arch: String,
    registers: u32,
    spill_bytes: u32,
    stack_bytes: u32,
    shared_bytes: u32,
    ptx: BTreeMap<String, u32>,
    sass: Option<BTreeMap<String, u32>>,
}

impl Compiled {
    /// Instructions of the machine code, or of the PTX where there is no disassembler.
    fn count(&self, what: &str) -> u32 {
        self.sass.as_ref().unwrap_or(&self.ptx).get(what).copied().unwrap_or(0)
    }
}

/// Compiles all kernels; `None`, with a word about it, where there is no NVRTC.
fn compiled(test: &str, kernels: &[CudaKernel]) -> Option<Vec<Compiled>> {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(test);
    if folder.exists() {
        std::fs::remove_dir_all(&folder).expect("the old folder goes");
    }
    std::fs::create_dir_all(&folder).expect("a folder for the sources");
    for kernel in kernels {
        std::fs::write(folder.join(format!("{}.cu", kernel.name)), &kernel.source).expect("the source is written");
    }
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let named = std::env::var_os("PYTHON").map(PathBuf::from);
    let python = named.clone().unwrap_or_else(|| root.join(".relayout/venv/bin/python"));
    let output = Command::new(&python).arg(root.join("tools/cuda_compile.py")).arg(&folder).output();
    let skipped = |why: String| {
        // Whoever names a Python means these tests to run; elsewhere than on Linux there is no wheel.
        assert!(named.is_none() || cfg!(not(target_os = "linux")), "{test}: {why}");
        println!("skipped: {test}: {why}");
        None
    };
    let output = match output {
        Ok(output) => output,
        Err(error) => return skipped(format!("no {} ({error}); run tools/setup", python.display())),
    };
    let errors = String::from_utf8_lossy(&output.stderr);
    if output.status.code() == Some(77) {
        return skipped(errors.trim().to_owned());
    }
    assert!(output.status.success(), "{errors}");
    let lines = String::from_utf8(output.stdout).expect("JSON is UTF-8");
    Some(lines.lines().map(|line| serde_json::from_str(line).expect("a line of the tool")).collect())
}

#[test]
fn every_class_compiles_without_spills_and_moves_16_bytes_at_a_time() {
    let named: Vec<(&str, Case, CudaKernel)> = thinned(exact().into_iter().map(|(name, case)| {
        let kernel = case.generate().expect("a kernel");
        (kernel.class, (name, case, kernel))
    }));
    let kernels: Vec<CudaKernel> = named.iter().map(|(_, _, kernel)| kernel.clone()).collect();
    let Some(all) = compiled("nvrtc_exact", &kernels) else { return };
    assert_eq!(all.len(), 2 * kernels.len(), "each for two architectures");
    for (name, case, kernel) in &named {
        for facts in all.iter().filter(|facts| facts.file == format!("{}.cu", kernel.name)) {
            println!(
                "{name} ({}, {}): {} registers, {} B shared, {:?}",
                kernel.class.as_str(),
                facts.arch,
                facts.registers,
                facts.shared_bytes,
                facts.sass
            );
            let stack = (facts.spill_bytes, facts.stack_bytes, facts.count("ld.local.32"), facts.count("st.local.32"));
            assert_eq!(stack, (0, 0, 0, 0), "{name} for {} keeps all in registers", facts.arch);
            assert!(facts.registers <= 128, "{name} for {}: {} registers", facts.arch, facts.registers);
            let shared = kernel.launch.shared_bytes;
            assert!((shared..=shared + 1024).contains(&facts.shared_bytes), "{name}: {facts:?}");
            if case.options.variant == Variant::OneFlow {
                continue;
            }
            assert!(facts.count("st.global.128") > 0, "{name} for {} writes 16 bytes at a time", facts.arch);
            if kernel.class != KernelClass::Gather {
                assert!(facts.count("ld.global.128") > 0, "{name} for {} reads 16 bytes at a time", facts.arch);
            }
            if kernel.class == KernelClass::Tile {
                let narrow = ["8", "16", "32", "64"];
                let narrow: u32 = narrow
                    .iter()
                    .map(|bits| facts.count(&format!("ld.shared.{bits}")) + facts.count(&format!("st.shared.{bits}")))
                    .sum();
                assert_eq!(narrow, 0, "{name} for {}: shared memory by 16 bytes", facts.arch);
                assert_eq!(facts.count("bar"), 1, "{name}: one barrier");
            }
        }
    }
}

#[test]
fn kernels_with_the_shape_at_run_time_compile_without_spills() {
    let mut kernels: Vec<CudaKernel> = Vec::new();
    for (turn, case) in odd().iter().enumerate() {
        let case = case.with(|options| {
            options.shape = Shape::RunTime;
            options.index = if turn % 2 == 0 { Index::Wide } else { Index::BySize };
        });
        let kernel = case.generate().expect("a kernel");
        if turn % 8 == 0 && kernels.iter().all(|known| known.name != kernel.name) {
            kernels.push(kernel);
        }
    }
    let kernels = thinned(kernels.into_iter().map(|kernel| (kernel.class, kernel)));
    let Some(all) = compiled("nvrtc_odd", &kernels) else { return };
    assert_eq!(all.len(), 2 * kernels.len(), "each for two architectures");
    for facts in all {
        assert_eq!((facts.spill_bytes, facts.stack_bytes), (0, 0), "{} for {}", facts.file, facts.arch);
        assert!(facts.registers <= 168, "{} for {}: {} registers", facts.file, facts.arch, facts.registers);
    }
}
