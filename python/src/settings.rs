//! Options as Python gives them, and the target and the options of the library that they ask for.

use crate::failure::{Failure, Kind};
use pyo3::prelude::*;
use relayout::fsio::read_text;
use relayout::targets::gpu::GpuCosts;
use relayout::targets::measured::MeasuredCosts;
use relayout::targets::{Block, FunctionTarget, OrtCpu, threads_asked};
use relayout::{IoLayout, Model, Numerics, Options, Target};
use std::path::{Path, PathBuf};

/// What a call asks for: a dict, whose keys `relayout._options` checks.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
#[expect(clippy::struct_excessive_bools, reason = "each is an option of its own, as Python gives it")]
pub(crate) struct Settings {
    target: String,
    target_file: Option<PathBuf>,
    block: Option<u64>,
    guard: bool,
    costs: Option<PathBuf>,
    threads: usize,
    dims: Vec<(String, String)>,
    fix_sizes: bool,
    exact: bool,
    strict: bool,
    unproved: String,
    inputs: Vec<String>,
    outputs: Vec<String>,
    free_io: bool,
}

impl Settings {
    /// What the model is decided for.
    pub(crate) fn target(&self) -> Result<Box<dyn Target>, Failure> {
        if let Some(path) = &self.target_file {
            return Ok(relayout::parse_target(&path.display().to_string(), &read(path)?)?);
        }
        match (self.target.as_str(), &self.costs) {
            ("ort-cpu", _) => Ok(Box::new(self.ort_cpu()?)),
            ("cuda-tensorcore", Some(path)) => {
                let costs = GpuCosts::parse(&path.display().to_string(), &read(path)?);
                let costs = costs.map_err(|e| Failure::new(Kind::Target, e))?;
                Ok(Box::new(FunctionTarget::measured(costs)?))
            }
            (name, _) => Ok(relayout::target(name)?),
        }
    }

    /// Whether that is target `ort-cpu`.
    pub(crate) fn is_ort_cpu(&self) -> bool {
        self.target_file.is_none() && self.target == "ort-cpu"
    }

    /// Threads that the model will run on.
    pub(crate) fn threads(&self) -> usize {
        threads_asked(self.threads)
    }

    /// Target `ort-cpu`, as it is asked for.
    pub(crate) fn ort_cpu(&self) -> Result<OrtCpu, Failure> {
        let block = self.block.map(|n| {
            let why = || Failure::new(Kind::Option, format!("block: {n} is neither 8 nor 16"));
            Block::of(n).ok_or_else(why)
        });
        let target = OrtCpu::new(block.transpose()?.unwrap_or_else(Block::of_host))?;
        let target = match &self.costs {
            Some(path) => {
                let costs = MeasuredCosts::parse(&path.display().to_string(), &read(path)?);
                target.with_costs(costs.map_err(|e| Failure::new(Kind::Target, e))?)
            }
            None if self.threads == 1 => target,
            None => target.on_threads(self.threads as u64)?,
        };
        Ok(if self.guard { target } else { target.unguarded() })
    }

    /// The options of the library.
    pub(crate) fn options(&self) -> Result<Options, Failure> {
        let numerics = if self.exact { Numerics::Exact } else { Numerics::Reassociate };
        let mut options = Options::default().numerics(numerics);
        for (name, size) in &self.dims {
            let size = size.parse().map_err(|why| Failure::new(Kind::Option, format!("dims: {name}: {why}")))?;
            options = options.dim(name, size);
        }
        let end = |text: &String| text.parse::<IoLayout>().map_err(|e| Failure::from(relayout::Error::from(e)));
        for input in &self.inputs {
            options = options.input(end(input)?);
        }
        for output in &self.outputs {
            options = options.output(end(output)?);
        }
        let options = if self.strict { options.strict() } else { options };
        Ok(if self.free_io { options.free_io() } else { options })
    }

    /// The same for a result that is going to be used: with what becomes of it if it is not proved.
    pub(crate) fn checked_options(&self) -> Result<Options, Failure> {
        let why = |why: String| Failure::new(Kind::Option, format!("unproved: {why}"));
        Ok(self.options()?.unproved(self.unproved.parse().map_err(why)?))
    }

    /// A model with the sizes written into it and options without these, if that is asked for.
    pub(crate) fn fixed(&self, model: Model, options: Options) -> Result<(Model, Options), Failure> {
        if !self.fix_sizes {
            return Ok((model, options));
        }
        if let Some((name, _)) = options.dims.iter().find(|(_, size)| size.number().is_none()) {
            let why = format!("fix_sizes writes numbers, and the size of {name} in dims is a range");
            return Err(Failure::new(Kind::Option, why));
        }
        let model = model.with_sizes(&self.sizes()?.into_iter().collect())?;
        let options = options.dims_of(&model);
        Ok((model, options))
    }

    /// Sizes of symbolic dims, for inputs that are made: of a range the size in its middle.
    pub(crate) fn sizes(&self) -> Result<Vec<(String, i64)>, Failure> {
        let options = self.options()?;
        Ok(options.dims.iter().map(|(name, size)| (name.clone(), size.typical())).collect())
    }
}

fn read(path: &Path) -> Result<String, Failure> {
    use relayout::fsio::Error;
    read_text(path).map_err(|error| match &error {
        Error::Read { source, .. } if source.kind() == std::io::ErrorKind::NotFound => {
            Failure::new(Kind::MissingFile, error)
        }
        _ => Failure::new(Kind::File, error),
    })
}
