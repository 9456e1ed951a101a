//! `relayout audit` and `relayout check-certificate`.

use crate::args;
use crate::commands::{is_stdio, of_library, open, target};
use crate::failure::Failure;
use crate::page::{self, PageFile};
use crate::progress::Progress;
use crate::terminal::{json, say, say_json};
use crate::written::check_written;
use relayout::certificate::CertificateFile;
use relayout::targets::Provider;
use relayout::{Audit, Model, Request};
use std::path::Path;

/// `relayout audit`
pub(crate) fn audit(a: &args::Audit) -> Result<(), Failure> {
    if is_stdio(&a.model) && a.other.as_deref().is_some_and(is_stdio) {
        return Err(Failure::usage("only one of the models can come from stdin"));
    }
    let paths: Vec<&Path> = std::iter::once(a.model.as_path()).chain(a.other.as_deref()).collect();
    check_written(&[("--html", a.html.as_deref())], &paths)?;
    let request = a.decide.request();
    if let Some(provider) = &request.provider_data()? {
        return on_device(a, &request, provider);
    }
    let target = target(&request)?;
    let options = request.options();
    let mut audited: Vec<(&Path, Model, Audit)> = Vec::new();
    for path in &paths {
        let _progress = Progress::start(format!("looking at {}", path.display()));
        let model = open(path)?;
        let audit = relayout::audit(&model, target.as_ref(), &options).map_err(of_library)?;
        audited.push((path, model, audit));
    }
    let page = a.html.as_ref().map(|path| page::of_audits(path, &audited, target.as_ref(), &options)).transpose()?;
    if !page.map_or(Ok(false), PageFile::commit)? {
        tell(&audited)?;
    }
    a.fail_above.map_or(Ok(()), |limit| check(&audited, limit, target.name()))
}

/// Says what was found.
fn tell(audited: &[(&Path, Model, Audit)]) -> Result<(), Failure> {
    match audited {
        _ if json() => {
            let all: Vec<serde_json::Value> = audited
                .iter()
                .map(|(path, _, audit)| serde_json::json!({"file": path.display().to_string(), "audit": audit}))
                .collect();
            say_json(&all)
        }
        [(a, _, one), (b, _, other)] => {
            let names = [a, b].map(|path| path.display().to_string());
            say(one.beside(other, [&names[0], &names[1]]).trim_end())
        }
        _ => audited.iter().try_for_each(|(_, _, one)| say(one.explain().trim_end())),
    }
}

/// That nothing is predicted so many percent above its floor.
fn check(audited: &[(&Path, Model, Audit)], limit: f64, target: &str) -> Result<(), Failure> {
    let mut above = Vec::new();
    for (path, _, audit) in audited {
        let (name, floor) = (path.display(), audit.floor_ns);
        match (audit.excess_percent(), audit.predicted_ns) {
            (Some(percent), Some(is)) if percent > limit => {
                above
                    .push(format!("{name} is predicted at {is} ns, more than {limit} % above its floor of {floor} ns"));
            }
            (Some(_), _) => {}
            (None, _) => above.push(format!("{name} does what target `{target}` has no price for")),
        }
    }
    if above.is_empty() { Ok(()) } else { Err(Failure::Check(above.join("; "))) }
}

/// `relayout audit --provider`
fn on_device(a: &args::Audit, request: &Request, provider: &Provider) -> Result<(), Failure> {
    if a.other.is_some() || a.fail_above.is_some() || a.html.is_some() {
        return Err(Failure::usage("with --provider, audit takes one model, no --fail-above and no --html"));
    }
    target(request)?;
    let model = open(&a.model)?;
    let progress = Progress::start(format!("looking at {}", a.model.display()));
    let audit = relayout::device::audit_device(&model, provider, &request.options()).map_err(of_library)?;
    drop(progress);
    if json() { say_json(&audit) } else { say(audit.explain().trim_end()) }
}

/// `relayout check-certificate`
pub(crate) fn check_certificate(a: &args::CheckCertificate) -> Result<(), Failure> {
    let request = a.decide.request();
    let target = target(&request)?;
    let options = request.options();
    let progress = Progress::start(format!("looking at {}", a.model.display()));
    let model = open(&a.model)?;
    let file = match &a.certificate {
        Some(path) => read(path)?,
        None => relayout::certify(&model, target.as_ref(), &options).map_err(of_library)?,
    };
    let checked =
        relayout::check_certificate(&model, target.as_ref(), &options, &file.certificate).map_err(of_library)?;
    drop(progress);
    let (cost, bound, gap) = (checked.cost.get(), checked.bound.get(), checked.gap_percent());
    if json() {
        let described = serde_json::json!({
            "target": target.name(), "costs": target.cost_source(), "cost_ns": cost, "bound_ns": bound,
            "gap_percent": gap, "optimal": checked.is_optimal(),
        });
        return say_json(&described);
    }
    let verdict = if checked.is_optimal() { "optimal".to_owned() } else { format!("gap {gap:.2} %") };
    say(&format!(
        "the certificate holds: cost {cost} ns, bound {bound} ns, {verdict}, among the candidates and at the costs of `{}` ({})",
        target.name(),
        target.cost_source()
    ))
}

fn read(path: &Path) -> Result<CertificateFile, Failure> {
    let name = path.display();
    let text = relayout::fsio::read_text(path).map_err(Failure::model)?;
    serde_json::from_str(&text).map_err(|e| Failure::model(format!("{name} is not a certificate: {e}")))
}
