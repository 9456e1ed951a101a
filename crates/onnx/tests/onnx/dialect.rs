//! Names, shapes of bodies and refusals of the dialect; that bodies compute the right thing is tested in a runtime.

use relayout_ir::dim::Dim;
use relayout_ir::layout::{Layout, LayoutNames};
use relayout_onnx::dialect::Operand::{Absent, Plain, Stored};
use relayout_onnx::dialect::{self, DialectError, DialectOp, Operand, Relayout, canonical_weight};
use relayout_onnx::proto::{AttributeProto, FunctionProto, NodeProto};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

fn layout(text: &str) -> Layout {
    text.parse().unwrap_or_else(|e| panic!("{text}: {e}"))
}

fn ops(function: &FunctionProto) -> Vec<&str> {
    function.node.iter().map(NodeProto::op_type).collect()
}

/// Every layout of features and weights that a slot of rank 4 takes in the test below.
const STORED: &[&str] = &[
    "NHWC",
    "NCHW16c",
    "NCHW8c",
    "CHWN4",
    "OIHW16i16o",
    "N C/16 H W C%4 C/4%4",
    "N C/16 H W C/4%4 C%4",
    "N C%4 C/4 H W",
];

#[test]
fn forms_of_one_name_have_one_function() {
    let mut seen: BTreeMap<(String, i64), (FunctionProto, String)> = BTreeMap::new();
    let operands: Vec<Operand> =
        STORED.iter().map(|text| Stored(layout(text))).chain([Plain, Stored(layout("NCHW"))]).collect();
    let lists = |op| match op {
        "Conv" | "ConvTranspose" => vec![(vec![], vec![]), (vec![Plain], vec![]), (vec![Stored(layout("C"))], vec![])],
        "Resize" => {
            vec![(vec![], vec![Absent, Plain]), (vec![], vec![Plain, Absent, Plain]), (vec![], vec![Absent; 2])]
        }
        _ => vec![(vec![], vec![])],
    };
    let mut forms = 0;
    for op in ["Conv", "ConvTranspose", "ConvInteger", "MaxPool", "Resize", "GridSample", "Softmax"] {
        for x in &operands {
            for w in &operands {
                for y in &operands {
                    for (bias, tail) in lists(op) {
                        let weights = matches!(op, "Conv" | "ConvTranspose" | "ConvInteger" | "GridSample");
                        let mut ins = vec![x.clone()];
                        ins.extend(weights.then(|| w.clone()));
                        ins.extend(bias.into_iter().chain(tail));
                        let Ok(form) = DialectOp::new(op, 19, &ins, std::slice::from_ref(y)) else { continue };
                        forms += 1;
                        let function = form.function();
                        let said = format!("{op} {ins:?} -> {y:?}");
                        let key = (form.name().to_owned(), 19);
                        let (first, of) = seen.entry(key).or_insert_with(|| (function.clone(), said.clone()));
                        assert_eq!(*first, function, "{}: {said} and {of}", form.name());
                        assert!(form.name().chars().all(|c| c.is_ascii_alphanumeric() || c == '_'), "{}", form.name());
                    }
                }
            }
        }
    }
    assert!(forms > 3000 && seen.len() > 1000, "{forms} forms, {} names", seen.len());
    // And the other way around: what does the same has one name.
    let mut bodies: BTreeMap<String, &str> = BTreeMap::new();
    for ((name, _), (function, _)) in &seen {
        let body = format!("{:?}", FunctionProto { name: None, ..function.clone() });
        if let Some(other) = bodies.insert(body, name) {
            panic!("{name} and {other} are the same function");
        }
    }
}

#[test]
fn moves_of_one_kind_have_one_function() {
    let mut seen: BTreeMap<String, (FunctionProto, String)> = BTreeMap::new();
    let texts = ["NCHW", "N H W C[20:24]", "N C[20:32] H W", "N H W C[20:32]", "N[2:4] H W C", "N[2:4] C/16 H W C%16"];
    let layouts: Vec<Layout> = texts.iter().chain(STORED).map(|text| layout(text)).collect();
    let shapes = [[2, 20, 3, 4], [32, 32, 3, 4]];
    for shape in shapes.map(|s| s.map(Dim::from)) {
        for from in &layouts {
            for to in &layouts {
                let Ok(relayout) = Relayout::new(from, to, &shape) else { continue };
                let function = relayout.function(17).unwrap();
                let said = format!("{from} -> {to}");
                let (first, of) =
                    seen.entry(relayout.kind().to_owned()).or_insert_with(|| (function.clone(), said.clone()));
                assert_eq!(*first, function, "{}: {said} and {of}", relayout.kind());
                let given: Vec<String> = relayout.attributes().into_iter().filter_map(|a| a.name).collect();
                assert_eq!(given, function.attribute, "{said}");
            }
        }
    }
    assert!(seen.len() > 150, "{} kinds", seen.len());
}

#[test]
fn a_call_says_its_layouts_and_the_slots_that_it_keeps() {
    let said = |from: &str, to: &str, shape: &[i64]| {
        let dims: Vec<Dim> = shape.iter().map(|&d| Dim::from(d)).collect();
        let relayout = Relayout::new(&layout(from), &layout(to), &dims).unwrap();
        let call = relayout.call();
        assert_eq!((call.domain(), call.op_type(), call.overload()), ("relayout", "Relayout", ""));
        let value = |a: &AttributeProto| match a.s.as_deref() {
            Some(text) => format!("{}={}", a.name(), String::from_utf8_lossy(text)),
            None => format!("{}={:?}", a.name(), a.ints),
        };
        let words: Vec<String> = call.attribute.iter().map(value).collect();
        format!(":{} {}", relayout.kind(), words.join(", "))
    };
    let features = &[2, 20, 3, 4];
    for (from, to, shape, want) in [
        ("NCHW", "NHWC", &features[..], ": perm=[0, 2, 3, 1]"),
        ("CHWN4", "NCHW4c", features, ": perm=[3, 0, 1, 2, 4]"),
        ("NCHW", "NCHW16c", features, ":NCHW_NCHW16c_roundC from=NCHW, to=NCHW16c"),
        ("NCHW16c", "CHWN4", &[2, 32, 3, 4], ":NCHW16c_CHWN4 from=NCHW16c, to=CHWN4"),
        ("NCHW16c", "NHWC", features, ":NCHW16c_NHWC_cropC from=NCHW16c, to=NHWC, shape=[-1, 20, -1, -1]"),
        ("NCHW", "N H W C[20:24]", features, ":NCHW_NHWC_fillC from=NCHW, to=N H W C[20:24], slots=[24]"),
        // Pad lanes that both have are kept: they are indices of what is moved.
        (
            "N H W C[20:40]",
            "NCHW8c",
            features,
            ":NHWC_NCHW8c_cropC from=N H W C[24:40], to=NCHW8c, shape=[-1, 24, -1, -1]",
        ),
        (
            "N[2:3] C/4 H W C%4",
            "N H W C[6:7]",
            &[2, 6, 3, 4],
            ":NCHW4c_NHWC_cropN_cropC from=N[2:3] C/4 H W C%4, to=NHWC, shape=[2, 7, -1, -1]",
        ),
        ("a b", "b/4 a b%4", &[3, 10], ":AB_BA4b_roundB from=ab, to=b/4 a b%4"),
    ] {
        assert_eq!(said(from, to, shape), want);
    }
}

#[test]
fn what_is_stored_as_onnx_has_it_is_not_moved() {
    let nhwc = || Stored(layout("NHWC"));
    let form = |ins: &[Operand], out| DialectOp::new("Conv", 17, ins, &[out]).unwrap().function();
    assert_eq!(ops(&form(&[nhwc(), Plain], Plain)), ["Transpose", "Conv"]);
    assert_eq!(ops(&form(&[Plain, Stored(layout("OIHW"))], nhwc())), ["Conv", "Transpose"]);
    let blocked = form(&[Plain, Plain, Plain], Stored(layout("NCHW16c")));
    assert_eq!(ops(&blocked).iter().filter(|op| **op == "Transpose").count(), 1);
    assert_eq!(blocked.node.first().map(NodeProto::op_type), Some("Conv"));
    // 1-D features of one block next to each other: blocks need a Reshape, and no Transpose.
    let form = DialectOp::new("Softmax", 13, &[Stored(layout("N C/4 C%4"))], &[Plain]).unwrap();
    assert!(!ops(&form.function()).contains(&"Transpose"));
}

#[test]
fn attributes_are_those_of_the_op_at_the_opset() {
    let pool =
        |opset| DialectOp::new("AveragePool", opset, &[Stored(layout("NHWC"))], &[Stored(layout("NHWC"))]).unwrap();
    assert!(pool(19).attributes().any(|a| a == "dilations"));
    assert!(!pool(18).attributes().any(|a| a == "dilations"));
    let function = pool(18).function();
    let call = function.node.iter().find(|n| n.op_type() == "AveragePool").unwrap();
    for attribute in &call.attribute {
        assert_eq!(attribute.name, attribute.ref_attr_name);
        assert!(function.attribute.contains(attribute.name.as_ref().unwrap()));
    }
    assert_eq!(call.attribute.len(), function.attribute.len());
    let resize = DialectOp::new("Resize", 19, &[Stored(layout("NHWC")), Absent, Plain], &[Plain]).unwrap();
    assert!(resize.attributes().any(|a| a == "antialias") && !resize.attributes().any(|a| a == "axes"));
    assert_eq!(function.opset_import.first().and_then(|o| o.version), Some(18));
}

/// The form with all operands that the dialect knows.
fn widest(op: &str, opset: i64) -> DialectOp {
    let forms = ["NHWC", "ba"]
        .iter()
        .flat_map(|first| (0..9).map(move |more| [vec![Stored(layout(first))], vec![Plain; more]].concat()));
    let found = forms.filter_map(|ins| DialectOp::new(op, opset, &ins, &[Plain]).ok());
    found.max_by_key(|form| form.inputs().count()).unwrap_or_else(|| panic!("no form of {op} at opset {opset}"))
}

/// Compares lines of op, opset, number of operands, and attributes with their types, with the standard's schemas.
const COMPARE: &str = "
import sys, onnx.defs
for line in sys.stdin.read().splitlines():
    op, opset, operands, *attributes = line.split()
    schema = onnx.defs.get_schema(op, int(opset), '')
    absent = {'axes'} if op == 'Resize' else set()
    known = sorted(f'{a.name}:{a.type.value}' for a in schema.attributes.values() if a.name not in absent)
    assert sorted(attributes) == known, f'{op} {opset}: {attributes}, not {known}'
    assert int(operands) == len(schema.inputs), f'{op} {opset}: {operands} operands'
    print(line)
";

#[test]
fn operands_and_attributes_are_those_of_the_standard() {
    let mut lines = String::new();
    // Sets after 25 are not in every release of the package.
    for opset in dialect::FIRST_OPSET..=25 {
        for op in dialect::ops(opset) {
            let function = widest(op, opset).function();
            let call = function.node.iter().find(|n| n.op_type() == op).unwrap();
            write!(lines, "{op} {opset} {}", function.input.len()).unwrap();
            for attribute in &call.attribute {
                write!(lines, " {}:{}", attribute.name(), attribute.r#type.unwrap()).unwrap();
            }
            lines.push('\n');
        }
    }
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let python = std::env::var_os("PYTHON").map_or_else(|| root.join(".relayout/venv/bin/python"), PathBuf::from);
    let mut list = tempfile::NamedTempFile::new().unwrap();
    list.write_all(lines.as_bytes()).unwrap();
    let run = Command::new(&python).args(["-c", COMPARE]).stdin(std::fs::File::open(list.path()).unwrap()).output();
    let run = run.unwrap_or_else(|e| panic!("{} does not run ({e}); run tools/setup once", python.display()));
    assert!(run.status.success(), "{}", String::from_utf8_lossy(&run.stderr));
    assert_eq!(String::from_utf8_lossy(&run.stdout), lines);
    assert!(lines.lines().count() > 450, "{} lines", lines.lines().count());
}

#[test]
fn absent_operands_are_no_inputs_of_the_function() {
    let resize = DialectOp::new("Resize", 13, &[Stored(layout("NHWC")), Absent, Absent, Plain], &[Plain]).unwrap();
    assert_eq!(resize.name(), "Resize_NHWC_sizes_Y_NCHW");
    let function = resize.function();
    assert_eq!(function.input, ["X", "sizes"]);
    assert_eq!(resize.inputs().collect::<Vec<_>>(), [0, 3]);
    let call = function.node.iter().find(|n| n.op_type() == "Resize").unwrap();
    assert_eq!(call.input[1..], ["", "", "sizes"]);
    let conv = DialectOp::new("Conv", 17, &[Stored(layout("NHWC")), Plain, Absent], &[Plain]).unwrap();
    assert_eq!(conv.function().node.iter().find(|n| n.op_type() == "Conv").unwrap().input.len(), 2);
}

#[test]
fn usual_weights_follow_the_features() {
    let weights = |op, x: &str, letters: &str| {
        let names = LayoutNames::custom(letters).unwrap();
        canonical_weight(op, &layout(x)).unwrap().display(&names).to_string()
    };
    assert_eq!(weights("Conv", "NHWC", "OIHW"), "OHWI");
    assert_eq!(weights("Conv", "NWC", "OIW"), "OWI");
    assert_eq!(weights("Conv", "NCHW16c", "OIHW"), "OIHW16i16o");
    assert_eq!(weights("QLinearConv", "CHWN4", "OIHW"), "I/4 H W O I%4");
    assert_eq!(weights("ConvTranspose", "NHWC", "IOHW"), "OHWI");
    assert_eq!(weights("ConvTranspose", "NCHW8c", "IOHW"), "O/8 I/8 H W I%8 O%8");
    assert_eq!(weights("ConvTranspose", "NCHW", "IOHW"), "IOHW");
    assert_eq!(canonical_weight("MaxPool", &layout("NHWC")), None);
}

#[test]
fn what_the_dialect_lacks_is_refused_with_its_reason() {
    let nhwc = || Stored(layout("NHWC"));
    let refused =
        |op, opset, ins: &[Operand], outs: &[Operand]| DialectOp::new(op, opset, ins, outs).unwrap_err().to_string();
    assert_eq!(
        refused("Einsum", 17, &[nhwc()], &[Plain]),
        "the dialect has no form of Einsum at opset 17; store its operands as ONNX has them"
    );
    assert_eq!(
        refused("GridSample", 13, &[nhwc(), Plain], &[Plain]),
        "the dialect has no form of GridSample at opset 13, only at opsets 16 to 28"
    );
    assert_eq!(refused("Conv", 17, &[nhwc()], &[Plain]), "Conv at opset 17: W is absent");
    assert_eq!(
        refused("MaxPool", 17, &[nhwc()], &[nhwc(), Plain]),
        "MaxPool at opset 17: 2 slots are given, the dialect has forms of 1 only"
    );
    assert_eq!(
        refused("Resize", 17, &[nhwc(), Absent, Stored(layout("ba"))], &[Plain]),
        "Resize at opset 17: scales is read as it is and can't be stored as ba"
    );
    assert_eq!(
        refused("Conv", 17, &[nhwc(), Stored(layout("OWI"))], &[Plain]),
        "Conv: W is stored as acb of rank 3, rank 4 is needed"
    );
    assert_eq!(
        refused("Conv", 17, &[Stored(layout("NCHW")), Plain], &[Plain]),
        "Conv: every operand and result is stored as ONNX has it; write the op itself"
    );
    assert!(matches!(DialectOp::new("Conv", 6, &[nhwc(), Plain], &[Plain]), Err(DialectError::OpsetTooOld { .. })));
    let blocks = Stored(layout("C/4 C%4"));
    assert!(refused("Conv", 17, &[Plain, Plain, blocks], &[Plain]).contains("how many axes"));
}

#[test]
fn moves_that_no_function_can_say_are_refused() {
    let dims = [2, 116, 3, 4].map(Dim::from);
    let split = layout("N C[58:64,58:64] H W");
    let refused = Relayout::new(&split, &layout("NHWC"), &dims).unwrap_err().to_string();
    assert!(refused.contains("the pad slots of axis 1 lie in several places"), "{refused}");
    assert_eq!(Relayout::new(&split, &layout("N H W C[58:64,58:64]"), &dims).unwrap().kind(), "");
    assert!(matches!(Relayout::new(&split, &split, &dims[..3]), Err(DialectError::Layout { .. })));
    let crop = Relayout::new(&layout("NCHW16c"), &layout("NCHW"), &dims).unwrap();
    assert_eq!(crop.first_opset(), 12);
    let refused = crop.function(11).unwrap_err().to_string();
    assert_eq!(refused, "Relayout NCHW16c_NCHW_cropC needs opset 12 or later, the model imports 11; convert the model");
    assert!(crop.function(12).is_ok());
}

#[test]
fn the_page_is_what_the_table_says() {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/dialect.md");
    let page = std::fs::read_to_string(path).unwrap();
    let now = dialect::markdown();
    let changed = page.lines().zip(now.lines()).find(|(a, b)| a != b);
    assert!(
        page == now,
        "docs/dialect.md is not what the table says (first difference: {changed:?}); write it anew with\n    \
         cargo run -p relayout-onnx --example dialect > docs/dialect.md"
    );
}
