//! `relayout doctor`: what is on this machine and what fits it, and what each target would gain of a model. It writes nothing.

mod here;
mod outlook;
mod trial;
mod weigh;

use crate::args;
use crate::failure::Failure;
use crate::terminal::{json, quiet, say, say_json, tell};
use here::Here;

/// `relayout doctor`
pub(crate) fn doctor(a: &args::Doctor) -> Result<(), Failure> {
    let here = Here::look();
    let Some(model) = &a.model else {
        return if json() { say_json(&here) } else { say(here.to_string().trim_end()) };
    };
    let outlook = outlook::look(model, &here, a)?;
    if json() { say_json(&outlook) } else { say(outlook.to_string().trim_end()) }
}

/// Sets what `--for-this-machine` asks for, except what the caller chose.
pub(crate) fn choose(decide: &mut args::Decide) {
    if !decide.for_this_machine {
        return;
    }
    let mut request = decide.request();
    request.fit(&Here::look().equipment);
    let Some(fits) = request.chosen else { return };
    decide.target = Some(fits.target.clone());
    decide.provider.clone_from(&fits.provider);
    decide.runtime.clone_from(&request.runtime);
    decide.machine.clone_from(&request.machine);
    decide.threads = request.threads.and_then(|threads| u16::try_from(threads).ok());
    decide.chosen = Some(fits);
}

/// Says what was chosen for this machine.
pub(crate) fn tell_chosen(decide: &args::Decide) {
    if let Some(fits) = decide.chosen.as_ref().filter(|_| !quiet()) {
        tell(&format!("for this machine: {}; {}\n", fits.words().join(" "), fits.why.join("; ")));
    }
}
