//! From the text of an option to its value.

use super::{Request, RequestError};
use crate::machine::MOST_THREADS;
use relayout_ir::op::MICROSOFT;
use relayout_target_api::Numerics;
use relayout_target_api::hints::Size;
use relayout_targets::measured::BuiltinTable;
use relayout_targets::{Block, Provider, TargetError};
use std::ffi::OsStr;
use std::path::PathBuf;
use std::time::Duration;

/// The most seconds that can be asked for: a day.
const MOST_SECONDS: f64 = 86_400.0;

/// What an option is set to.
struct Given<'v> {
    option: &'static str,
    value: &'v OsStr,
}

/// Sets the option with this key.
pub(super) fn set(request: &mut Request, option: &'static str, value: &OsStr) -> Result<(), RequestError> {
    let given = Given { option, value };
    match option {
        "target" => request.target = Some(given.text()?.to_owned()),
        "target_file" => request.target_file = Some(given.path()),
        "target_text" => request.target_text = Some(given.text()?.to_owned()),
        "provider" => request.provider = Some(given.provider()?),
        "allow" => request.allow = Some(given.domain()?),
        "for_this_machine" => request.for_this_machine = given.flag()?,
        "runtime" => request.runtime = Some(given.text()?.to_owned()),
        "session_providers" => request.session_providers.push(given.text()?.to_owned()),
        "block" => request.block = Some(given.block()?),
        "guard" => request.no_guard = !given.flag()?,
        "machine" => request.machine = Some(given.machine()?),
        "costs" => request.costs = Some(given.path()),
        "threads" => request.threads = Some(given.number(MOST_THREADS)?),
        "dims" => {
            let (name, size) = given.dim()?;
            request.dims.insert(name, size);
        }
        "fix_sizes" => request.fix_sizes = given.flag()?,
        "numerics" => request.numerics = given.numerics()?,
        "inputs" => request.inputs.push(given.text()?.parse().map_err(RequestError::Layout)?),
        "outputs" => request.outputs.push(given.text()?.parse().map_err(RequestError::Layout)?),
        "free_io" => request.free_io = given.flag()?,
        "strict" => request.strict = given.flag()?,
        "unproved" => request.unproved = Some(given.text()?.parse().map_err(|why| given.wrong(why))?),
        "proof" => request.proof = Some(given.path()),
        "certificate" => request.certificate = Some(given.path()),
        "price_moves" => request.price_moves = given.number(u64::from(u32::MAX))? as usize,
        "tune" => request.tune = given.flag()?,
        "tune_seconds" => request.tune_seconds = given.seconds()?,
        "tune_cache" => request.tune_cache = Some(given.path()),
        "provider_library" => request.provider_library = Some(given.path()),
        "python" => request.python = Some(given.path()),
        "provider_options" => {
            let parts = key_value(given.text()?).map_err(|why| given.wrong(why))?;
            request.provider_options.push(parts);
        }
        _ => return Err(RequestError::Unknown { option: option.to_owned() }),
    }
    Ok(())
}

/// The size of a dim: `N=4`, `H=32..512`, `x.2=224`.
///
/// # Errors
/// Why it is none.
pub fn dim(text: &str) -> Result<(String, Size), String> {
    // A size has no `=`, and a name may have one.
    let (name, size) = text.rsplit_once('=').filter(|(name, _)| !name.is_empty()).ok_or("is not NAME=SIZE")?;
    Ok((name.to_owned(), size.parse()?))
}

/// What a provider is told: `backend_path=libQnnHtp.so`.
///
/// # Errors
/// Why it is nothing of that kind.
pub fn key_value(text: &str) -> Result<(String, String), String> {
    let parts = text.split_once('=').filter(|(key, _)| !key.is_empty());
    parts.map(|(key, value)| (key.to_owned(), value.to_owned())).ok_or_else(|| "it has no KEY=VALUE".to_owned())
}

impl<'v> Given<'v> {
    fn wrong(&self, why: impl Into<String>) -> RequestError {
        RequestError::Value { option: self.option, why: why.into() }
    }

    fn text(&self) -> Result<&'v str, RequestError> {
        let value = self.value;
        value.to_str().ok_or_else(|| self.wrong(format!("`{}` is not UTF-8", value.display())))
    }

    fn dim(&self) -> Result<(String, Size), RequestError> {
        let text = self.text()?;
        let name = text.rsplit_once('=').map_or(text, |(name, _)| name);
        dim(text).map_err(|why| self.wrong(format!("{name}: {why}")))
    }

    fn path(&self) -> PathBuf {
        self.value.into()
    }

    fn flag(&self) -> Result<bool, RequestError> {
        match self.text()? {
            "true" => Ok(true),
            "false" => Ok(false),
            other => Err(self.wrong(format!("`{other}` is neither true nor false"))),
        }
    }

    fn number(&self, most: u64) -> Result<u64, RequestError> {
        let text = self.text()?;
        let number = text.parse().ok().filter(|number| *number <= most);
        number.ok_or_else(|| self.wrong(format!("`{text}` is not a whole number between 0 and {most}")))
    }

    fn seconds(&self) -> Result<Duration, RequestError> {
        let text = self.text()?;
        let seconds = text.parse().ok().filter(|seconds| (0.0..=MOST_SECONDS).contains(seconds));
        let seconds = seconds.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
        seconds.ok_or_else(|| self.wrong(format!("`{text}` is not between 0 and {MOST_SECONDS}")))
    }

    fn block(&self) -> Result<Block, RequestError> {
        let text = self.text()?;
        let block = text.parse().ok().and_then(Block::of);
        block.ok_or_else(|| self.wrong(format!("`{text}` is neither 8 nor 16")))
    }

    fn machine(&self) -> Result<String, RequestError> {
        let table = BuiltinTable::of_machine(self.text()?).map_err(|why| self.wrong(why))?;
        Ok(table.name.to_owned())
    }

    fn numerics(&self) -> Result<Numerics, RequestError> {
        match self.text()? {
            "exact" => Ok(Numerics::Exact),
            "reassociate" => Ok(Numerics::Reassociate),
            other => Err(self.wrong(format!("`{other}` is neither `exact` nor `reassociate`"))),
        }
    }

    fn domain(&self) -> Result<String, RequestError> {
        let domain = self.text()?;
        if domain == MICROSOFT {
            return Ok(domain.to_owned());
        }
        Err(self.wrong(format!("`{domain}` is not {MICROSOFT}, the only domain that can be allowed")))
    }

    fn provider(&self) -> Result<String, RequestError> {
        let name = self.text()?;
        match Provider::of(name) {
            Ok(_) => Ok(name.to_owned()),
            Err(TargetError::Malformed { why, .. }) => Err(self.wrong(format!("`{name}`: {why}"))),
            Err(other) => Err(other.into()),
        }
    }
}
