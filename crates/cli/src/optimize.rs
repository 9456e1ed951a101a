//! `relayout optimize`: one model; [`crate::batch`] has several.

use crate::args::{self, Emit};
use crate::batch;
use crate::bundle;
use crate::commands::{ReportFile, is_stdout, of_library, open, target};
use crate::failure::Failure;
use crate::inputs::{Job, Jobs, check_free, jobs, make_folder};
use crate::page::{self, PageFile};
use crate::progress::Progress;
use crate::prove;
use crate::terminal::{json, quiet, remark, say, say_json, tell};
use crate::tune;
use crate::verify::same_results;
use crate::written::{RESULT, check_written};
use relayout::request::{certificate_text, proof_text};
use relayout::units::elapsed;
use relayout::{Model, Optimized, Options, Report, Target, optimize as optimize_model};
use relayout_calibrate::{Fastest, Tuning};
use relayout_html::{Measured, PageKind, optimized_page};
use serde_json::json;
use std::fs;
use std::io::{Write, stdout};
use std::path::{Path, PathBuf};
use std::time::Instant;

/// `relayout optimize`
pub(crate) fn optimize(a: &args::Optimize) -> Result<(), Failure> {
    let output = &a.output;
    let on_stdout = [&output.out, &output.report, &output.html, &output.certificate, &output.proof];
    if on_stdout.into_iter().flatten().filter(|path| is_stdout(path)).count() > 1 {
        let which = "the model, the report, the page, the certificate and the proof";
        return Err(Failure::usage(format!("only one of {which} can go to stdout")));
    }
    prove::check_call(a)?;
    let request = a.request();
    let target = target(&request)?;
    request.check_tuning()?;
    bundle::check_call(a, target.as_ref())?;
    match jobs(a)? {
        Jobs::One(job) => one(a, target.as_ref(), &job),
        Jobs::Several(jobs, notes) => batch::optimize(a, target.as_ref(), &jobs, &notes),
    }
}

fn one(a: &args::Optimize, target: &dyn Target, job: &Job) -> Result<(), Failure> {
    let named = [
        (RESULT, Some(&job.out)),
        ("--report", a.output.report.as_ref()),
        ("--html", a.output.html.as_ref()),
        ("--certificate", a.output.certificate.as_ref()),
        ("--proof", a.output.proof.as_ref()),
        ("--tune-cache", a.tuning.tune_cache.as_ref()),
    ];
    check_written(&named.map(|(option, path)| (option, path.map(PathBuf::as_path))), &[&job.model])?;
    let options = wanted(a);
    let timed = if a.tuning.times() {
        // What can fail at once fails before the minute that timing takes.
        check_room(a, job)?;
        tune::tried(a, job, target, &options)?
    } else {
        None
    };
    let timed = timed.map(|(model, Fastest { measured, options, result, tuning, .. })| {
        ((model, result), (measured, options, tuning))
    });
    let (made, tuned) = timed.unzip();
    let (measured, tuning) = match &tuned {
        Some((measured, _, tuning)) => (measured.as_ref(), Some(tuning)),
        None => (None, None),
    };
    let options = tuned.as_ref().map_or(options, |(_, options, _)| options.clone());
    let target = measured.map_or(target, |target| target);
    let progress = Progress::start(format!("optimizing {}", job.model.display()));
    let report = Work { a, target, job, options, tuning, among: false }.run(made, || drop(progress), true)?;
    let output = &a.output;
    let taken = [&output.report, &output.html, &output.certificate, &output.proof].into_iter().flatten();
    let stdout_is_taken = taken.chain([&job.out]).any(|path| is_stdout(path)) && !a.output.dry_run;
    let text = line(a, job, &report) + &tuning.map(|tuning| format!("\n{tuning}")).unwrap_or_default();
    match (json(), stdout_is_taken) {
        (true, false) => {
            let mut entry = entry(a, job, Ok(&report));
            tune::tell(&mut entry, tuning);
            say_json(&json!({ "models": [entry] }))
        }
        (true, true) => Ok(()),
        (false, _) if quiet() => Ok(()),
        (false, false) => say(&text),
        (false, true) => {
            tell(&(text + "\n"));
            Ok(())
        }
    }
}

/// What the arguments ask of the optimizer.
pub(crate) fn wanted(a: &args::Optimize) -> Options {
    let mut options = a.request().checked_options();
    options.print_after.clone_from(&a.checks.print_after);
    options.proof |= a.checks.prove;
    if a.output.html.is_some() { page::wanted(options) } else { options }
}

/// What was done in one line. It names the file unless the caller did.
fn line(a: &args::Optimize, job: &Job, report: &Report) -> String {
    let (out, mut summary) = (job.out.display(), report.line());
    if a.output.fix_sizes {
        let sizes: Vec<String> =
            a.decide.dims.iter().map(|(name, size)| format!("{name}={}", size.typical())).collect();
        summary += "; sizes written: ";
        summary += &sizes.join(", ");
    }
    // What was not the same was not written.
    if a.checks.verify && report.changed {
        summary += "; verified in ONNX Runtime";
    }
    if a.output.dry_run && check_free(job, a.output.force).is_err() {
        summary += "; it is there already, so writing it takes --force";
    }
    match (a.output.dry_run, job.named) {
        (true, _) => format!("would write {out}: {summary}"),
        (false, true) => summary,
        (false, false) => format!("{out}: {summary}"),
    }
}

/// One model as programs are told of it.
pub(crate) fn entry(a: &args::Optimize, job: &Job, done: Result<&Report, &Failure>) -> serde_json::Value {
    let (model, out) = (job.model.display().to_string(), job.out.display().to_string());
    match done {
        Ok(report) => {
            let status = if report.changed { "optimized" } else { "unchanged" };
            let written = !a.output.dry_run;
            json!({"model": model, "out": out, "status": status, "written": written, "report": report})
        }
        Err(failure) => json!({"model": model, "status": "failed", "error": failure.message()}),
    }
}

/// That the result can go to its place, seen before the work begins.
fn check_room(a: &args::Optimize, job: &Job) -> Result<(), Failure> {
    if a.output.dry_run {
        return Ok(());
    }
    check_free(job, a.output.force)?;
    // Folders below that of a batch are made when there is something to put there.
    let parent = job.out.parent().filter(|folder| !folder.as_os_str().is_empty());
    let folder = parent.is_none_or(Path::is_dir);
    if let Some(parent) = parent.filter(|parent| job.named && !is_stdout(&job.out) && !parent.exists()) {
        let (out, parent) = (job.out.display(), parent.display());
        return Err(Failure::model(format!("cannot write {out}: there is no folder {parent}; make it first")));
    }
    let bundle = a.output.emit == Emit::Bundle && (folder || job.named);
    if bundle { bundle::check_place(&job.out) } else { Ok(()) }
}

/// One model on its way from its file to that of the result.
pub(crate) struct Work<'a> {
    pub(crate) a: &'a args::Optimize,
    pub(crate) target: &'a dyn Target,
    pub(crate) job: &'a Job,
    pub(crate) options: Options,
    pub(crate) tuning: Option<&'a Tuning>,
    /// Whether there are other models, so that a dim that is named need not be one of this model.
    pub(crate) among: bool,
}

impl Work<'_> {
    /// Optimizes the model, unless that was `made` before, and writes the result. `decided` is called before anything is said. After the
    /// `last` model the process ends, which gives back the memory of a large graph faster than taking it apart node by node.
    pub(crate) fn run(
        &self,
        made: Option<(Model, Optimized)>,
        decided: impl FnOnce(),
        last: bool,
    ) -> Result<Report, Failure> {
        check_room(self.a, self.job)?;
        let (model, optimized) = match made {
            Some(made) => made,
            None => self.made()?,
        };
        decided();
        if let Some(text) = optimized.printed() {
            tell(&text.to_string());
        }
        prove::tell_unproved(&self.job.out, optimized.report());
        let mut measured = None;
        if self.a.checks.verify {
            let begun = Instant::now();
            let timed = self.a.output.html.is_some();
            measured = same_results(self.a, &self.job.model, &model, &optimized, timed)?;
            self.remark("verified in ONNX Runtime", begun);
        }
        if !self.a.output.dry_run {
            let begun = Instant::now();
            self.write(&model, &optimized, measured.as_ref())?;
            self.remark(&self.written(), begun);
        }
        if self.a.checks.prove {
            let begun = Instant::now();
            prove::written(&self.job.model, &self.job.out, &optimized.proof())?;
            self.remark("checked", begun);
        }
        let report = optimized.report().clone();
        if last {
            std::mem::forget(optimized);
            std::mem::forget(model);
        }
        Ok(report)
    }

    fn made(&self) -> Result<(Model, Optimized), Failure> {
        let model = open(&self.job.model)?;
        let begun = Instant::now();
        let options = self.options.clone();
        let options = if self.among { options.dims_of(&model) } else { options };
        let (model, options) = self.a.request().fixed(model, options).map_err(of_library)?;
        let output = &self.a.output;
        let is_file = output.emit == Emit::Onnx && !output.dry_run && !is_stdout(&self.job.out);
        // Folders below that of a batch are made when there is something to put there.
        let beside = self.job.out.parent().is_some_and(|folder| folder.as_os_str().is_empty() || folder.is_dir());
        let optimized = if is_file && beside {
            Optimized::for_file(&model, self.target, &options, &self.job.out)
        } else {
            optimize_model(&model, self.target, &options)
        };
        let optimized = optimized.map_err(of_library)?;
        self.remark(&optimized.report().summary(), begun);
        Ok((model, optimized))
    }

    fn remark(&self, what: &str, begun: Instant) {
        let took = elapsed(begun.elapsed());
        remark(|| format!("{}: {what} ({took})", self.job.model.display()));
    }

    fn written(&self) -> String {
        let out = &self.job.out;
        match fs::metadata(out) {
            Ok(file) if file.is_file() => format!("wrote {}, {} bytes", out.display(), file.len()),
            _ => format!("wrote {}", out.display()),
        }
    }

    /// The report, the page and the certificate are made before the model is written and put in place after it: a call that fails leaves
    /// none of them.
    fn write(&self, model: &Model, optimized: &Optimized, measured: Option<&Measured>) -> Result<(), Failure> {
        let output = &self.a.output;
        let report = match &output.report {
            Some(path) => {
                let text = tune::report(optimized.report(), self.tuning).map_err(Failure::model)?;
                Some(ReportFile::new(path, text)?)
            }
            None => None,
        };
        let certificate = match &output.certificate {
            Some(path) => {
                let text = certificate_text(model, self.target, &self.options).map_err(of_library)?;
                Some(ReportFile::new(path, text)?)
            }
            None => None,
        };
        let proof = match &output.proof {
            Some(path) => Some(ReportFile::new(path, proof_text(optimized).map_err(of_library)?)?),
            None => None,
        };
        let page = match &output.html {
            Some(path) => {
                let name = page::name(&self.job.model);
                let (of, options) = (PageKind::Optimize, &self.options);
                let tuned = self.tuning.and_then(tune::measured);
                let measured = measured.or(tuned.as_ref());
                let page = optimized_page(of, &name, model, self.target, options, optimized, measured);
                Some(PageFile::new(path, &page.map_err(of_library)?)?)
            }
            None => None,
        };
        // What came into being while the model was optimized is not replaced either.
        check_free(self.job, output.force)?;
        make_folder(self.job)?;
        if output.emit == Emit::Bundle {
            bundle::write(self.a, &self.job.out, optimized)?;
        } else if is_stdout(&self.job.out) {
            let mut out = stdout().lock();
            optimized.write_to(&mut out).map_err(of_library)?;
            out.flush().map_err(Failure::stdout)?;
        } else {
            optimized.write(&self.job.out).map_err(of_library)?;
        }
        certificate.map_or(Ok(()), ReportFile::commit)?;
        proof.map_or(Ok(()), ReportFile::commit)?;
        page.map_or(Ok(false), PageFile::commit)?;
        report.map_or(Ok(()), ReportFile::commit)
    }
}
