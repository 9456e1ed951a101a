//! The target that a request asks for, and whether its options are ones of that target.

use super::{Request, RequestError};
use relayout_fsio::read_text;
use relayout_target_api::Target;
use relayout_targets::device::DeviceCosts;
use relayout_targets::gpu::GpuCosts;
use relayout_targets::measured::{BuiltinTable, MeasuredCosts};
use relayout_targets::{
    Block, FunctionTarget, OnnxRuntime, OrtCpu, OrtNhwc, Provider, Release, builtin, parse, threads_asked,
};
use std::path::Path;

/// Targets whose results ONNX Runtime runs on this machine as it does where they are used.
const TUNED: [&str; 3] = ["onnx", "ort-cpu", "ort-nhwc"];

/// The execution provider of target `ort-nhwc` where nothing is said of one.
const USUAL_PROVIDER: &str = "qnn";

impl Request {
    /// What the target that is asked for is called: `onnx` if nothing is said.
    pub fn target_name(&self) -> String {
        match (&self.target_file, &self.target_text, &self.provider) {
            (Some(path), ..) => path.display().to_string(),
            (None, Some(_), _) => "target_text".to_owned(),
            (None, None, Some(_)) => "ort-nhwc".to_owned(),
            (None, None, None) => self.builtin_name().to_owned(),
        }
    }

    /// The name of a built-in target that is said, or that is meant where nothing is said.
    fn builtin_name(&self) -> &str {
        self.target.as_deref().unwrap_or("onnx")
    }

    /// Whether the target is this built-in one.
    fn is_builtin(&self, name: &str) -> bool {
        self.target_file.is_none() && self.target_text.is_none() && self.builtin_name() == name
    }

    /// The target.
    ///
    /// # Errors
    /// [`RequestError`]: there is no such target, a file can't be read, or an option is not one of this target or excludes another one.
    pub fn target(&self) -> Result<Box<dyn Target>, RequestError> {
        self.check_together()?;
        self.check_of_target()?;
        if let Some(target) = self.ort_nhwc()? {
            return Ok(Box::new(target));
        }
        if let Some(text) = &self.target_text {
            return Ok(parse("target_text", text)?);
        }
        if let Some(path) = &self.target_file {
            let unread = |source| RequestError::TargetFile { path: path.clone(), source };
            return Ok(parse(&path.display().to_string(), &read_text(path).map_err(unread)?)?);
        }
        match (self.builtin_name(), &self.costs) {
            ("onnx", _) if self.is_for_a_runtime() => Ok(Box::new(OnnxRuntime::on(self.on_processor()?)?)),
            ("ort-cpu", _) => Ok(Box::new(self.on_processor()?)),
            ("cuda-tensorcore", Some(path)) => {
                let costs = GpuCosts::parse(&path.display().to_string(), &costs_text(path)?);
                Ok(Box::new(FunctionTarget::measured(costs.map_err(RequestError::Costs)?)?))
            }
            (name, _) => Ok(builtin(name)?),
        }
    }

    /// The execution provider as it is asked for, with the ops that are allowed; `None` if nothing is said of one.
    ///
    /// # Errors
    /// [`RequestError`]: there is no such provider, or it has no ops of the domain that is allowed.
    pub fn provider_data(&self) -> Result<Option<Provider>, RequestError> {
        let device = || self.is_builtin("ort-nhwc").then_some(USUAL_PROVIDER);
        let name = self.provider.as_deref().or_else(|| self.allow.as_ref().and_then(|_| device()));
        let Some(provider) = name.map(Provider::of).transpose()? else { return Ok(None) };
        let refused = |why| RequestError::Value { option: "allow", why };
        match &self.allow {
            Some(domain) => provider.allowing(domain).map(Some).map_err(refused),
            None => Ok(Some(provider)),
        }
    }

    /// Target `ort-nhwc` as it is asked for, for those who run its results on the device; `None` if another target is asked for.
    ///
    /// # Errors
    /// As of [`Request::provider_data`], and about the table of costs.
    pub fn ort_nhwc(&self) -> Result<Option<OrtNhwc>, RequestError> {
        let usual = || self.is_builtin("ort-nhwc").then(|| Provider::of(USUAL_PROVIDER)).transpose();
        let provider = match self.provider_data()? {
            Some(provider) => Some(provider),
            None => usual()?,
        };
        let Some(target) = provider.map(OrtNhwc::of) else { return Ok(None) };
        let Some(path) = &self.costs else { return Ok(Some(target)) };
        let name = path.display().to_string();
        let costs = DeviceCosts::parse(&name, &costs_text(path)?).map_err(RequestError::Costs)?;
        target.with_costs(&name, costs).map(Some).map_err(RequestError::Costs)
    }

    /// Target `ort-cpu` as it is asked for, for those who measure its kernels; `None` if another target is asked for.
    ///
    /// # Errors
    /// [`RequestError`] about the table of costs.
    pub fn ort_cpu(&self) -> Result<Option<OrtCpu>, RequestError> {
        let asked = self.is_builtin("ort-cpu") && self.provider.is_none();
        asked.then(|| self.on_processor()).transpose()
    }

    fn on_processor(&self) -> Result<OrtCpu, RequestError> {
        let machine = match self.machine_table()? {
            None if self.block.is_none() && self.costs.is_none() => BuiltinTable::of_host(),
            asked => asked,
        };
        let target = match machine {
            Some(table) => OrtCpu::for_machine(&table, self.threads.unwrap_or(1))?,
            None => self.on_block(self.block.unwrap_or_else(Block::of_host))?,
        };
        let target = match &self.runtime {
            Some(runtime) => match release(runtime)? {
                Some(release) => target.for_release(release),
                None => target,
            },
            None => target,
        };
        Ok(if self.no_guard { target.unguarded() } else { target })
    }

    /// Whether a target of standard files is asked for one runtime. The release alone, which a caller may have found beside it, names none.
    fn is_for_a_runtime(&self) -> bool {
        let named = self.runtime.as_deref().is_some_and(|runtime| runtime.starts_with(Release::RUNTIME));
        named && self.is_standard()
    }

    fn is_standard(&self) -> bool {
        self.provider.is_none() && self.is_builtin("onnx")
    }

    /// The table of the machine that is asked for, if one is.
    fn machine_table(&self) -> Result<Option<BuiltinTable>, RequestError> {
        let wrong = |why| RequestError::Value { option: "machine", why };
        self.machine.as_deref().map(BuiltinTable::of_machine).transpose().map_err(wrong)
    }

    /// The block of the machine that is asked for.
    pub(super) fn machine_block(&self) -> Option<Block> {
        Block::of(self.machine_table().ok()??.block)
    }

    /// Target `ort-cpu` for hosts of this block, by the costs that are asked for.
    fn on_block(&self, block: Block) -> Result<OrtCpu, RequestError> {
        let target = OrtCpu::new(block)?;
        Ok(match (&self.costs, self.threads) {
            (Some(path), None) => target.with_costs(measured(path)?),
            (Some(path), Some(threads)) => {
                let threads = threads_asked(usize::try_from(threads).unwrap_or(usize::MAX)) as u64;
                target.with_costs(measured(path)?.on_threads(threads).map_err(RequestError::Costs)?)
            }
            (None, Some(threads)) => target.on_threads(threads)?,
            (None, None) => target,
        })
    }

    /// That no option is set which only other targets have.
    fn check_of_target(&self) -> Result<(), RequestError> {
        let on_processor = self.is_builtin("ort-cpu") && self.provider.is_none();
        let blocked = on_processor || self.is_for_a_runtime();
        let measured = self.is_builtin("cuda-tensorcore") || self.is_builtin("ort-nhwc") || self.provider.is_some();
        let given = [
            ("block", self.block.is_some()),
            ("machine", self.machine.is_some()),
            ("guard", self.no_guard),
            ("costs", self.costs.is_some() && !measured),
            ("threads", self.threads.is_some() && !self.tune),
            // What chooses for a machine may choose another target.
            ("runtime", self.runtime.is_some() && self.chosen.is_none() && !self.for_this_machine),
        ];
        if let Some((option, _)) = given.into_iter().find(|(_, given)| *given && !blocked) {
            if let Some(version) = self.runtime.as_deref().filter(|_| option == "runtime" && self.is_standard()) {
                release(version)?;
                let why = format!(
                    "`{version}` names no runtime, as target `onnx` needs it; say {}-{version}",
                    Release::RUNTIME
                );
                return Err(RequestError::Value { option, why });
            }
            return Err(RequestError::NotOfTarget { option, asked: self.target_name() });
        }
        if self.no_guard && !on_processor {
            return Err(RequestError::NotOfTarget { option: "guard", asked: self.target_name() });
        }
        if self.allow.is_some() && self.provider.is_none() && !self.is_builtin("ort-nhwc") {
            return Err(RequestError::NotOfTarget { option: "allow", asked: self.target_name() });
        }
        // `onnx` is what nobody asked for.
        let of_provider = ["onnx", "ort-nhwc"].contains(&self.builtin_name());
        if self.provider.is_some() && !of_provider {
            return Err(RequestError::NotOfTarget { option: "provider", asked: self.builtin_name().to_owned() });
        }
        Ok(())
    }

    /// That no two options exclude each other.
    fn check_together(&self) -> Result<(), RequestError> {
        let described = self.target_file.is_some() || self.target_text.is_some();
        let excluded = [
            ("target_file", self.target_file.is_some(), "target_text", self.target_text.is_some()),
            ("target", self.target.is_some(), "target_file", self.target_file.is_some()),
            ("target", self.target.is_some(), "target_text", self.target_text.is_some()),
            ("provider", self.provider.is_some() && described, self.described_by(), true),
            ("machine", self.machine.is_some(), "costs", self.costs.is_some()),
            ("fix_sizes", self.fix_sizes, "tune", self.tune),
            ("fix_sizes", self.fix_sizes, "proof", self.proof.is_some()),
        ];
        if let Some((option, _, other, _)) = excluded.into_iter().find(|(_, one, _, two)| *one && *two) {
            return Err(RequestError::Together { option, other });
        }
        self.check_blocks()?;
        let range = self.dims.iter().find(|(_, size)| size.number().is_none());
        match range.filter(|_| self.fix_sizes) {
            Some((name, _)) => Err(RequestError::FixedRange { name: name.clone() }),
            None => Ok(()),
        }
    }

    /// That a machine is one of the blocks that are asked for.
    fn check_blocks(&self) -> Result<(), RequestError> {
        match (self.machine_table()?, self.block) {
            (Some(machine), Some(asked)) if machine.block != asked.channels() => Err(RequestError::MachineOfBlock {
                machine: machine.name,
                block: machine.block,
                asked: asked.channels(),
            }),
            _ => Ok(()),
        }
    }

    fn described_by(&self) -> &'static str {
        if self.target_file.is_some() { "target_file" } else { "target_text" }
    }

    /// That the target can be tuned if that is asked for, and nothing is asked for that does not know the times of this machine.
    ///
    /// # Errors
    /// [`RequestError`].
    pub fn check_tuning(&self) -> Result<(), RequestError> {
        let (plugin, python) = (self.provider_library.is_some(), self.python.is_some());
        if plugin && python {
            return Err(RequestError::Together { option: "provider_library", other: "python" });
        }
        if !self.provider_options.is_empty() && !plugin && !python {
            return Err(RequestError::OptionsWithoutDevice);
        }
        if !self.tune {
            let named = [("provider_library", plugin), ("python", python)].into_iter().find(|(_, named)| *named);
            return named.map_or(Ok(()), |(option, _)| Err(RequestError::DeviceUntuned { option }));
        }
        if self.certificate.is_some() {
            return Err(RequestError::TunedCertificate);
        }
        let asked = self.target_name();
        if self.target_file.is_some() || !TUNED.contains(&asked.as_str()) {
            return Err(RequestError::NotTuned { asked });
        }
        match (asked.as_str(), plugin, python) {
            ("ort-nhwc", false, false) => Err(RequestError::TunedWithoutDevice),
            ("ort-cpu", true, _) => Err(RequestError::TunedByPlugin),
            ("onnx" | "ort-cpu", _, true) => Err(RequestError::NotOfTarget { option: "python", asked }),
            _ => Ok(()),
        }
    }
}

/// The release of a runtime that is asked for; `None` for a name alone.
fn release(runtime: &str) -> Result<Option<Release>, RequestError> {
    Release::of_runtime(runtime).map_err(|why| RequestError::Value { option: "runtime", why })
}

/// The table of costs of target `ort-cpu` in a file.
///
/// # Errors
/// [`RequestError::CostsFile`], [`RequestError::Costs`].
pub fn measured(path: &Path) -> Result<MeasuredCosts, RequestError> {
    MeasuredCosts::parse(&path.display().to_string(), &costs_text(path)?).map_err(RequestError::Costs)
}

fn costs_text(path: &Path) -> Result<String, RequestError> {
    read_text(path).map_err(|source| RequestError::CostsFile { path: path.to_owned(), source })
}
