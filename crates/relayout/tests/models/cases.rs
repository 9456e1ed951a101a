//! Small models, one rule each: what the optimizer makes of them is a snapshot per theme, and each is run before and after.
//!
//! The models are those of `testdata/cases/THEME`, which `tools/make_cases.py` writes. A case whose name starts with `not_` is a
//! near miss; its reasons stand in the snapshot. Moves change no bit, so results must be equal but where a sum is formed.

use crate::common;
use relayout::{Model, Options, Report, optimize, target};
use relayout_verify::Tolerance;
use std::fmt::Write as _;
use std::path::Path;

/// Before, after, and why what is left is left.
fn told(name: &str, before: &str, after: &[u8], report: &Report) -> String {
    let mut text = format!("## {name}\n{before}");
    if report.changed {
        let _ = writeln!(text, "-> {}\n{}", report.summary(), common::printed(after));
    } else {
        let _ = writeln!(text, "-> {}", report.summary());
    }
    for m in report.moves() {
        let _ = writeln!(text, "; left `{}` {} -> {}: {}", m.value, m.from, m.to, m.why);
    }
    for o in report.graphs.iter().flat_map(|g| &g.opaque) {
        let _ = writeln!(text, "; opaque {}: {}", o.node, o.why);
    }
    for name in common::unread(after) {
        let _ = writeln!(text, "; unread constant `{name}`");
    }
    for note in &report.notes {
        let _ = writeln!(text, "; note {note}");
    }
    text
}

/// One case: its snapshot text, and every problem of running it.
fn check(path: &Path) -> (String, Vec<String>) {
    let name = common::stem(path);
    let bytes = std::fs::read(path).expect("a readable case");
    let before = common::printed(&bytes);
    let dims = common::case_dims(&before);
    let outcome = match common::optimized(&bytes, &dims) {
        Ok(outcome) => outcome,
        Err(e) => return (format!("## {name}\n{before}"), vec![e]),
    };
    let tolerance = common::SUMS.iter().any(|op| before.contains(&format!("= {op}("))).then(Tolerance::default);
    let mut problems = Vec::new();
    let mut law = |result: Result<(), String>| problems.extend(result.err());
    law(common::not_worse(&outcome.report));
    law(common::says_no_more(&outcome));
    law(common::compared(&bytes, &outcome.bytes, &dims).and_then(|c| common::judged(&c, tolerance)));
    law(common::settled(&bytes, &outcome, &dims));
    law(common::settled_under_other_names(&outcome.bytes, &dims));
    if name.starts_with("not_") && outcome.report.after.nodes == 0 && outcome.report.before.nodes > 0 {
        law(Err("a near miss has no move left".to_owned()));
    }
    if !name.starts_with("not_") && !outcome.report.changed {
        law(Err("a hit is left as it is".to_owned()));
    }
    (told(&name, &before, &outcome.bytes, &outcome.report), problems)
}

fn theme(theme: &str) {
    let files = common::model_files(&format!("cases/{theme}"));
    assert!(!files.is_empty(), "no cases of theme {theme}: run tools/make_cases.py");
    let (mut text, mut failures) = (String::new(), String::new());
    for path in files {
        let (told, problems) = check(&path);
        for problem in problems {
            let _ = writeln!(failures, "{theme}/{}: {problem}", common::stem(&path));
        }
        let _ = writeln!(text, "{told}");
    }
    insta::with_settings!({ prepend_module_to_snapshot => false, omit_expression => true }, {
        insta::assert_snapshot!(format!("cases_{theme}"), text);
    });
    assert!(failures.is_empty(), "{failures}");
}

macro_rules! themes {
    ($($name:ident: $folder:literal,)*) => {
        $(#[test] fn $name() { theme($folder); })*

        #[test]
        fn every_folder_of_cases_is_a_theme() {
            let folders = std::fs::read_dir(common::testdata("cases")).expect("there are cases");
            let mut found: Vec<String> =
                folders.map(|f| f.expect("a readable folder").file_name().to_string_lossy().into_owned()).collect();
            found.sort();
            let mut known = vec![$($folder.to_owned()),*];
            known.sort();
            assert_eq!(found, known);
        }
    };
}

themes! {
    a_pair_of_transposes_goes_unless_something_between_needs_it: "cancel_pair",
    broadcast_operands_follow_the_axes_of_the_result: "broadcast",
    axes_named_by_number_follow_their_axis: "axes",
    reshapes_are_views_where_the_layout_can_be_spelled: "views",
    readers_share_one_copy: "sharing",
    constants_are_re_laid_at_compile_time: "constants",
    quantization_lets_layouts_through_also_by_blocks: "quantized",
    symbolic_extents_are_carried: "symbolic",
    bodies_are_optimized_within_their_borders: "bodies",
    a_change_must_gain: "gain",
    calls_of_functions_are_written_out_where_that_gains: "functions",
    pieces_of_networks_lose_their_inner_moves: "pieces",
}

/// One model after each pass, with its layouts.
#[test]
fn each_pass_does_its_part() {
    let path = common::testdata("cases/pieces/channels_last_convolution.onnx");
    let model = Model::open(&path).expect("the case opens");
    let target = target("onnx").expect("target `onnx` is built in");
    let mut text = format!("## input\n{}", model.print());
    for step in relayout_passes::pipeline::steps(target.as_ref()).expect("the passes have an order") {
        let pass = step.is;
        let mut options = Options::default();
        options.print_after = Some(pass.name.to_owned());
        let result = optimize(&model, target.as_ref(), &options).expect("the case is optimized");
        let _ = write!(
            text,
            "\n## {}: {}\n{}",
            pass.name,
            pass.reason,
            result.printed().map(ToString::to_string).unwrap_or_default()
        );
    }
    insta::with_settings!({ prepend_module_to_snapshot => false, omit_expression => true }, {
        insta::assert_snapshot!("passes", text);
    });
}
