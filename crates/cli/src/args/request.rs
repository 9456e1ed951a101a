//! Arguments as the request that the library, Python and C have too.

use super::{Decide, Ends, Explain, Numerics, Optimize};
use relayout::Request;
use relayout::proof::Unproved;
use relayout::targets::Block;

impl Decide {
    /// What is asked for.
    pub(crate) fn request(&self) -> Request {
        let mut request = Request::default();
        request.target.clone_from(&self.target);
        request.target_file.clone_from(&self.target_file);
        request.provider.clone_from(&self.provider);
        request.allow.clone_from(&self.allow);
        request.runtime.clone_from(&self.runtime);
        request.for_this_machine = self.for_this_machine;
        request.chosen.clone_from(&self.chosen);
        request.block = self.block.as_deref().and_then(|channels| Block::of(channels.parse().ok()?));
        request.no_guard = self.no_guard;
        request.machine.clone_from(&self.machine);
        request.costs.clone_from(&self.costs);
        request.threads = self.threads.map(u64::from);
        request.dims.extend(self.dims.iter().cloned());
        request.numerics = match self.numerics {
            Numerics::Exact => relayout::Numerics::Exact,
            Numerics::Reassociate => relayout::Numerics::Reassociate,
        };
        request
    }
}

impl Ends {
    /// The request with these inputs and outputs.
    fn added_to(&self, mut request: Request) -> Request {
        request.inputs.clone_from(&self.inputs);
        request.outputs.clone_from(&self.outputs);
        request.free_io = self.free_io;
        request
    }
}

impl Explain {
    /// What is asked for.
    pub(crate) fn request(&self) -> Request {
        self.ends.added_to(self.decide.request())
    }
}

impl Optimize {
    /// What is asked for. With `--prove` the file is checked once it is written.
    pub(crate) fn request(&self) -> Request {
        let mut request = self.ends.added_to(self.decide.request());
        let (output, checks, tuning) = (&self.output, &self.checks, &self.tuning);
        request.fix_sizes = output.fix_sizes;
        request.proof.clone_from(&output.proof);
        request.certificate.clone_from(&output.certificate);
        request.unproved = checks.unproved.or(checks.prove.then_some(Unproved::Allow));
        request.strict = checks.strict;
        request.tune = tuning.times();
        request.tune_seconds = std::time::Duration::from_secs(tuning.tune_seconds);
        request.tune_cache.clone_from(&tuning.tune_cache);
        request.provider_library.clone_from(&tuning.provider.provider_library);
        request.provider_options.clone_from(&tuning.provider.provider_options);
        request.python.clone_from(&tuning.python);
        request
    }
}
