//! What is compared, with which inputs, and what is refused. The models come from `tools/make_verify_models.py`.

use crate::runtime;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use ndarray::{Array, array};
use ndarray_npy::NpzWriter;
use relayout_verify::{
    Comparison, Data, Inputs, Level, Model, ModelSource, Options, PluginProvider, Runtime, Tensor, Tolerance,
    VerifyError, example_inputs, run, verify,
};

fn model(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/verify").join(format!("{name}.onnx"))
}

fn seeded(seed: u64) -> Inputs {
    Inputs::Random { seed, dims: BTreeMap::new() }
}

fn compare(a: &str, b: &str, options: &Options) -> Result<Comparison, VerifyError> {
    let (a, b) = (model(a), model(b));
    verify(runtime(), ModelSource::Path(&a), ModelSource::Path(&b), &seeded(3), options)
}

#[test]
fn a_model_equals_itself_at_every_level_and_over_several_rounds() {
    let mut options = Options::default();
    options.rounds = 3;
    for level in [Level::Disabled, Level::Basic, Level::Extended, Level::All] {
        (options.level_a, options.level_b) = (level, level);
        let comparison = compare("conv", "conv", &options).expect("both run");
        assert!(comparison.exact && comparison.holds(&Tolerance::EXACT), "{level:?}: {comparison:?}");
        assert_eq!(comparison.rounds, 3);
        assert_eq!(comparison.outputs[0].shape, [1, 4, 8, 8]);
    }
}

#[test]
fn transposes_that_cancel_change_no_bit() {
    let comparison = compare("conv", "conv_around", &Options::default()).expect("both run");
    assert!(comparison.exact, "{comparison:?}");
}

#[test]
fn a_changed_weight_is_measured_and_judged_by_the_tolerance() {
    let comparison = compare("conv", "conv_scaled", &Options::default()).expect("both run");
    let output = &comparison.outputs[0];
    assert!(!comparison.exact && output.differing > 0 && output.mismatch.is_none(), "{comparison:?}");
    assert!(output.rms > 1e-5 && output.rms < 1e-2, "{comparison:?}");
    assert_eq!(output.worst_at.as_ref().map(|at| at[1]), Some(0), "only the first channel's weights were changed");
    assert!(!comparison.holds(&Tolerance::default()));
    assert!(comparison.holds(&Tolerance::new(1e-2, 1e-2)));
}

#[test]
fn a_renamed_input_is_a_difference_and_nothing_is_run() {
    let comparison = compare("conv", "conv_renamed", &Options::default()).expect("both load");
    let named: Vec<_> =
        comparison.differences.iter().map(|d| (d.what.as_str(), d.a.is_some(), d.b.is_some())).collect();
    assert_eq!(named, [("input `x`", true, false), ("input `image`", false, true)]);
    assert_eq!((comparison.rounds, comparison.outputs.len()), (0, 0));
    assert!(!comparison.exact && !comparison.holds(&Tolerance::new(1e9, 1e9)));
}

#[test]
fn an_output_that_one_model_lacks_is_a_mismatch_from_either_side() {
    for (a, b, owner) in [("conv", "conv_two_outputs", "second"), ("conv_two_outputs", "conv", "first")] {
        let comparison = compare(a, b, &Options::default()).expect("both run");
        let mismatches: Vec<_> =
            comparison.outputs.iter().filter_map(|o| Some((o.name.as_str(), o.mismatch.clone()?))).collect();
        assert_eq!(mismatches, [("z", format!("only the {owner} model has it"))]);
        assert!(!comparison.exact && !comparison.holds(&Tolerance::new(1e9, 1e9)));
    }
}

#[test]
fn every_type_goes_in_and_comes_out_as_it_was() {
    let path = model("every_type");
    let source = ModelSource::Path(&path);
    let inputs = Inputs::Random { seed: 11, dims: [("L".to_owned(), 5), ("N".to_owned(), 3)].into() };
    let feeds = example_inputs(runtime(), source, &inputs).expect("inputs can be made");
    let outputs = run(runtime(), source, &feeds, Level::Disabled).expect("the model runs");
    for feed in &feeds {
        let out = outputs.iter().find(|out| out.name() == format!("{}_out", feed.name())).expect("an output per input");
        assert_eq!((out.shape(), out.data()), (&[3, 5][..], feed.data()), "{}", feed.name());
    }
    let names: Vec<&str> = outputs.iter().skip(feeds.len()).map(Tensor::name).collect();
    assert_eq!(names, ["words", "pieces[0]", "pieces[1]", "pieces[2]", "looked_up", "scalar", "empty"]);
    let shape = |name: &str| outputs.iter().find(|out| out.name() == name).map(|out| out.shape().to_vec());
    assert_eq!(shape("pieces[2]"), Some(vec![1, 5]));
    assert_eq!(shape("scalar"), Some(vec![]));
    assert_eq!(shape("empty"), Some(vec![3, 0]));
    let words = outputs.iter().find(|out| out.name() == "words").expect("there are words");
    assert!(matches!(words.data(), Data::Str(words) if words.iter().all(|word| word == "0" || word == "1")));
    let comparison = verify(runtime(), source, source, &inputs, &Options::default()).expect("both run");
    assert!(comparison.exact, "{comparison:?}");
}

#[test]
fn random_inputs_differ_by_seed_and_symbolic_dimensions_have_defaults() {
    let path = model("every_type");
    let made = |seed| example_inputs(runtime(), ModelSource::Path(&path), &seeded(seed)).expect("inputs can be made");
    assert_eq!(made(5), made(5));
    assert_ne!(made(5), made(6));
    assert!(made(5).iter().all(|input| input.shape() == [1, 64]));
}

#[test]
fn a_dimension_that_no_input_has_is_named_with_those_that_exist() {
    let path = model("every_type");
    let inputs = Inputs::Random { seed: 0, dims: [("batch".to_owned(), 2)].into() };
    let error = example_inputs(runtime(), ModelSource::Path(&path), &inputs).expect_err("there is no such symbol");
    let text = error.to_string();
    assert!(text.contains("`batch`") && text.ends_with("open dimensions are: L, N"), "{text}");
}

#[test]
fn string_inputs_are_refused_by_name() {
    let text = compare("string_input", "string_input", &Options::default()).expect_err("no random strings").to_string();
    assert!(text.contains("input `s`") && text.contains("str[2]"), "{text}");
}

#[test]
fn bytes_run_like_the_file_and_find_external_data_in_their_folder() {
    let (plain, external) = (model("conv"), model("conv_external"));
    let folder = external.parent().expect("a file has a folder");
    let bytes = std::fs::read(&external).expect("the model is there");
    let plain_bytes = std::fs::read(&plain).expect("the model is there");
    let sources = [
        ModelSource::Path(&external),
        ModelSource::Bytes(&plain_bytes),
        ModelSource::BytesIn { bytes: &bytes, folder },
    ];
    for source in sources {
        let comparison = verify(runtime(), ModelSource::Path(&plain), source, &seeded(1), &Options::default());
        assert!(comparison.expect("both run").exact);
    }
}

#[test]
fn a_file_that_is_no_model_and_a_missing_file_are_errors_of_one_line() {
    let folder = tempfile::tempdir().expect("temporary folder");
    let garbage = folder.path().join("garbage.onnx");
    std::fs::write(&garbage, b"not a model").expect("file");
    for (path, name) in [(garbage, "garbage.onnx"), (folder.path().join("missing.onnx"), "missing.onnx")] {
        let source = ModelSource::Path(&path);
        let error = verify(runtime(), source, source, &seeded(0), &Options::default()).expect_err("no model");
        let text = error.to_string();
        assert!(matches!(error, VerifyError::Load { .. }) && text.contains(name) && !text.contains('\n'), "{text}");
    }
}

#[test]
fn an_input_of_the_wrong_shape_is_an_error_of_the_run() {
    let path = model("conv");
    let input = Tensor::new("x", [1, 3, 7, 8], Data::F32(vec![0.0; 168])).expect("shape and data agree");
    let error = run(runtime(), ModelSource::Path(&path), &[input], Level::Disabled).expect_err("8 by 8 is declared");
    assert!(matches!(error, VerifyError::Run { .. }), "{error}");
}

#[test]
fn a_provider_of_no_plugin_is_an_error_that_names_the_file() {
    let runtime = runtime();
    let mut options = Options::default();
    for library in [Path::new("no/such/plugin.so"), runtime.path()] {
        options.provider = Some(PluginProvider::of(library));
        let loaded = Model::load(runtime, ModelSource::Path(&model("conv")), Level::Disabled, &options);
        let checked = PluginProvider::of(library).check(runtime);
        for error in [loaded.err(), checked.err()] {
            let text = error.expect("no plugin").to_string();
            assert!(text.contains(&format!("execution provider of `{}`", library.display())), "{text}");
        }
    }
}

#[test]
fn the_same_library_loads_again_and_another_file_is_refused() {
    let first = runtime();
    let again = Runtime::load(first.path()).expect("the same library");
    assert_eq!(again.path(), first.path());
    let text = Runtime::load(&model("conv")).expect_err("another file").to_string();
    assert!(text.contains("one library per process"), "{text}");
    let text = Runtime::load(Path::new("no/such/libonnxruntime.so")).expect_err("no file").to_string();
    assert!(text.starts_with("no ONNX Runtime library at `no/such/libonnxruntime.so`"), "{text}");
}

fn npz(write: impl FnOnce(&mut NpzWriter<std::fs::File>)) -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().expect("temporary folder");
    let path = folder.path().join("inputs.npz");
    let mut writer = NpzWriter::new_compressed(std::fs::File::create(&path).expect("file"));
    write(&mut writer);
    writer.finish().expect("archive");
    (folder, path)
}

#[test]
fn arrays_of_an_npz_file_are_fed_by_name_in_logical_order() {
    let values = Array::from_shape_fn((2, 3, 8, 8), |(n, c, h, w)| (n * 192 + c * 64 + h * 8 + w) as f32);
    let mut fortran = Array::zeros((8, 8, 3, 2)).reversed_axes();
    fortran.assign(&values);
    let path = model("conv");
    let source = ModelSource::Path(&path);
    for values in [values, fortran] {
        let (_folder, file) = npz(|writer| {
            writer.add_array("x", &values).expect("array");
            writer.add_array("unrelated", &array![1_i64]).expect("array");
        });
        let inputs = Inputs::Npz(file);
        let fed = example_inputs(runtime(), source, &inputs).expect("arrays suit");
        let in_order: Vec<f32> = (0_u16..384).map(f32::from).collect();
        assert_eq!(fed[0].data(), &Data::F32(in_order));
        let comparison = verify(runtime(), source, source, &inputs, &Options::default()).expect("both run");
        assert_eq!(comparison.outputs[0].shape, [2, 4, 8, 8]);
    }
}

#[test]
fn an_npz_file_that_does_not_suit_says_which_array_and_why() {
    let path = model("conv");
    let error = |write: &dyn Fn(&mut NpzWriter<std::fs::File>)| {
        let (_folder, file) = npz(write);
        let inputs = example_inputs(runtime(), ModelSource::Path(&path), &Inputs::Npz(file));
        inputs.expect_err("it does not suit").to_string()
    };
    let add = |writer: &mut NpzWriter<std::fs::File>, name: &str, size: usize| {
        writer.add_array(name, &Array::<f32, _>::zeros((1, 3, size, size))).expect("array");
    };
    let lacks = error(&|writer| add(writer, "y", 8));
    assert!(lacks.contains("no array `x`") && lacks.ends_with("its arrays are: y"), "{lacks}");
    let shape = error(&|writer| add(writer, "x", 9));
    assert!(shape.contains("array `x`") && shape.contains("[1, 3, 9, 9]") && shape.contains("f32[N,3,8,8]"), "{shape}");
    let element = error(&|writer| writer.add_array("x", &Array::<f64, _>::zeros((1, 3, 8, 8))).expect("array"));
    assert!(element.contains("it is f64"), "{element}");
}
