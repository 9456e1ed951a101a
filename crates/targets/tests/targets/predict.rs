//! What is predicted to run on a device, on graphs of a few nodes. `tools/providers/compare.py` holds predictions against counts.

use relayout_ir::op::infer::infer_graph;
use relayout_ir::text::parse;
use relayout_target_api::DeviceMoves;
use relayout_target_api::hints::Hints;
use relayout_targets::Provider;
use relayout_targets::ort_nhwc::predict;
use std::collections::BTreeMap;

/// Transposes and elements of a graph on a provider's device.
fn on(provider: &str, text: &str) -> [u64; 2] {
    let mut graph = parse(text).unwrap();
    assert!(infer_graph(&mut graph, &mut 0).is_empty());
    let hints = Hints::new(&BTreeMap::new(), &graph);
    let DeviceMoves { transposes, elements, .. } = predict(&graph, &Provider::of(provider).unwrap(), &hints);
    [transposes as u64, elements]
}

#[test]
fn transposes_between_convolutions_cancel_and_those_at_the_ends_stay() {
    let text = "graph g opset=17
  %x: f32[1,3,8,8] = input
  %w: f32[4,3,1,1] = const
  %v: f32[5,4,1,1] = const
  %a: f32[1,4,8,8] = Conv(%x, %w)
  %b: f32[1,4,8,8] = Relu(%a)
  %y: f32[1,5,8,8] = Conv(%b, %v)
  output %y
";
    assert_eq!(on("qnn", text), [2, 3 * 64 + 5 * 64]);
}

#[test]
fn those_of_the_file_meet_those_of_the_runtime() {
    let text = "graph g opset=17
  %x: f32[1,8,8,3] = input
  %w: f32[4,3,1,1] = const
  %a: f32[1,3,8,8] = Transpose(%x) {perm=[0,3,1,2]}
  %b: f32[1,4,8,8] = Conv(%a, %w)
  %y: f32[1,8,8,4] = Transpose(%b) {perm=[0,2,3,1]}
  output %y
";
    assert_eq!(on("qnn", text), [0, 0]);
}

#[test]
fn a_sum_gets_its_other_operand_turned_but_a_constant_is_free() {
    let text = |other: &str| {
        format!(
            "graph g opset=17
  %x: f32[1,3,8,8] = input
  %d: f32[1,4,8,8] = {other}
  %w: f32[4,3,1,1] = const
  %v: f32[4,4,1,1] = const
  %a: f32[1,4,8,8] = Conv(%x, %w)
  %b: f32[1,4,8,8] = Add(%a, %d)
  %y: f32[1,4,8,8] = Conv(%b, %v)
  output %y
"
        )
    };
    assert_eq!(on("qnn", &text("const")), [2, 3 * 64 + 4 * 64]);
    assert_eq!(on("qnn", &text("input")), [3, 3 * 64 + 2 * 4 * 64]);
}

#[test]
fn a_reshape_that_splits_channels_lets_a_transpose_pass_in_newer_versions_only() {
    let text = "graph g opset=17
  %x: f32[1,3,8,8] = input
  %w: f32[4,3,1,1] = const
  %s: i64[5] = const [1,2,2,8,8]
  %t: i64[4] = const [1,4,8,8]
  %a: f32[1,4,8,8] = Conv(%x, %w)
  %b: f32[1,2,2,8,8] = Reshape(%a, %s)
  %c: f32[1,2,2,8,8] = Transpose(%b) {perm=[0,2,1,3,4]}
  %y: f32[1,4,8,8] = Reshape(%c, %t)
  output %y
";
    let (image, features) = (3 * 64, 4 * 64);
    assert_eq!(on("qnn", text), [2, image + features]);
    assert_eq!(on("webgpu@1.27", text), [3, image + 2 * features]);
    assert_eq!(on("webgpu", text), [2, image + features]);
}

/// Nodes of features between Transposes from channels last and back. What is expected was counted with tools/providers/count.py
/// (ONNX Runtime 1.31.1, onnxruntime-qnn 2.7.0).
fn between(opset: i64, constants: &str, nodes: &str, result: &str) -> String {
    format!(
        "graph g opset={opset}
  %x: f32[1,8,8,16] = input
{constants}  %a: f32[1,16,8,8] = Transpose(%x) {{perm=[0,3,1,2]}}
  {nodes}
  %y: {result} = Transpose(%r) {{perm=[0,2,3,1]}}
  output %y
"
    )
}

#[test]
fn the_largest_along_an_axis_that_is_not_innermost_take_a_transpose_more_for_what_is_read_and_for_each_result() {
    let k = "  %k: i64[1] = const [3]\n";
    let outer = between(17, k, "%r: f32[1,3,8,8], %i: i64[1,3,8,8] = TopK(%a, %k) {axis=1}", "f32[1,8,8,3]");
    assert_eq!(on("qnn", &outer), [5, 2624]);
    let inner = between(17, k, "%r: f32[1,16,8,3], %i: i64[1,16,8,3] = TopK(%a, %k) {axis=3}", "f32[1,8,3,16]");
    assert_eq!(on("qnn", &inner), [2, 1408]);
    assert_eq!(on("qnn", &inner.replace(" {axis=3}", "")), [2, 1408], "the last axis is the default");
}

#[test]
fn a_pool_with_indices_runs_on_the_host() {
    let pool = |more: &str| {
        let nodes = format!("%r: f32[1,16,4,4]{more} = MaxPool(%a) {{kernel_shape=[2,2], strides=[2,2]}}");
        between(17, "", &nodes, "f32[1,4,4,16]")
    };
    assert_eq!(on("qnn", &pool("")), [0, 0]);
    assert_eq!(on("qnn", &pool(", %i: i64[1,16,4,4]")), [2, 1024 + 256]);
}

#[test]
fn upsamples_and_newer_normalizations_over_groups_run_channels_last() {
    let scales = "  %s: f32[4] = const\n";
    let upsample = between(9, scales, "%r: f32[1,16,16,16] = Upsample(%a, %s)", "f32[1,16,16,16]");
    assert_eq!(on("qnn", &upsample), [0, 0]);
    let older = between(7, "", "%r: f32[1,16,16,16] = Upsample(%a) {scales=[1.0,1.0,2.0,2.0]}", "f32[1,16,16,16]");
    assert_eq!(on("qnn", &older), [0, 0]);
    let factors = "  %s: f32[16] = const\n  %b: f32[16] = const\n";
    let norm = "%r: f32[1,16,8,8] = GroupNormalization(%a, %s, %b) {num_groups=4}";
    assert_eq!(on("qnn", &between(21, factors, norm, "f32[1,8,8,16]")), [0, 0]);
}

#[test]
fn webgpu_normalizes_channels_first() {
    let text = "graph g opset=17
  %x: f32[1,3,8,8] = input
  %w: f32[4,3,1,1] = const
  %v: f32[5,4,1,1] = const
  %s: f32[4] = const
  %a: f32[1,4,8,8] = Conv(%x, %w)
  %b: f32[1,4,8,8] = InstanceNormalization(%a, %s, %s)
  %y: f32[1,5,8,8] = Conv(%b, %v)
  output %y
";
    let ends = 3 * 64 + 5 * 64;
    assert_eq!(on("qnn", text), [2, ends]);
    assert_eq!([on("webgpu", text), on("webgpu@1.27", text)], [[4, ends + 2 * 4 * 64]; 2]);
}

#[test]
fn what_has_extents_that_are_not_known_runs_on_the_host() {
    let text = "graph g opset=17
  %x: f32[N,3,8,8] = input
  %w: f32[4,3,1,1] = const
  %y: f32[N,4,8,8] = Conv(%x, %w)
  output %y
";
    assert_eq!(on("qnn", text), [0, 0]);
    // At an unknown size a batch is priced as one image. XNNPACK needs rows and columns as numbers.
    let ends = 3 * 64 + 4 * 64;
    assert_eq!(["xnnpack", "webgpu", "cuda"].map(|name| on(name, text)), [[2, ends]; 3]);
    let rows = text.replace("N,3,8,8", "1,3,H,8").replace("N,4,8,8", "1,4,H,8");
    assert_eq!(["qnn", "xnnpack"].map(|name| on(name, &rows)), [[0, 0]; 2]);
    let ends = (3 + 4) * 64 * 8;
    assert_eq!(["webgpu", "cuda"].map(|name| on(name, &rows)), [[2, ends]; 2]);
}

#[test]
fn a_softmax_over_channels_is_turned_by_qnn_itself() {
    let text = |axis: i64| {
        format!(
            "graph g opset=17
  %x: f32[1,3,8,8] = input
  %y: f32[1,3,8,8] = Softmax(%x) {{axis={axis}}}
  output %y
"
        )
    };
    assert_eq!(on("qnn", &text(1)), [2, 2 * 3 * 64]);
    assert_eq!(on("qnn", &text(-1)), [0, 0]);
    assert_eq!(on("webgpu", &text(1)), [0, 0]);
}

#[test]
fn the_runtime_does_not_know_what_a_loop_leaves() {
    let text = |after: &str| {
        format!(
            "graph g opset=17
  %x: f32[1,4,8,8] = input
  %n: i64[] = input
  %yes: bool[] = const 1
  %w: f32[4,4,1,1] = const
  %a: f32[1,4,8,8] = Conv(%x, %w)
  %l: f32[1,4,8,8] = Loop(%n, %yes, %a) {{body=body}}
    body step
      %i: i64[] = input
      %go: bool[] = input
      %s: f32[1,4,8,8] = input
      %t: f32[1,4,8,8] = Tanh(%s)
      %on: bool[] = Identity(%go)
      output %on
      output %t
    end
  %r: i64[4] = const [1,4,8,8]
  %b: f32[1,4,8,8] = {after}
  %y: f32[1,4,8,8] = Conv(%b, %w)
  output %y
"
        )
    };
    for provider in ["qnn", "webgpu"] {
        assert_eq!(on(provider, &text("Relu(%l)")), [2, 2 * 4 * 64], "{provider}");
        assert_eq!(on(provider, &text("Reshape(%l, %r)")), [4, 4 * 4 * 64], "{provider}");
    }
}

#[test]
fn cuda_reads_keys_and_rows_before_batches_as_strides_of_a_product() {
    let text = |perm: &str, keys: &str, read: &str| {
        format!(
            "graph g opset=17
  %q: f32[2,3,4,5] = input
  %k: f32[{keys}] = input
  %t: f32[2,3,5,4] = Transpose(%k) {{perm=[{perm}]}}
  %y: f32[2,3,4,4] = MatMul(%q, %t)
{read}  output %y
"
        )
    };
    for (perm, keys) in [("0,1,3,2", "2,3,4,5"), ("1,2,3,0", "4,2,3,5"), ("1,2,0,3", "5,2,3,4")] {
        let text = text(perm, keys, "");
        assert_eq!([on("cuda", &text), on("webgpu", &text)], [[0, 0], [1, 120]], "{perm}");
    }
    // Heads behind positions are no stride, and what an output needs is made.
    assert_eq!(on("cuda", &text("0,2,3,1", "2,4,3,5", "")), [1, 120]);
    assert_eq!(on("cuda", &text("0,1,3,2", "2,3,4,5", "  output %t\n")), [1, 120]);
}

#[test]
fn cuda_takes_a_transpose_in_together_with_the_scale_behind_it() {
    let text = |scale: &str| {
        format!(
            "graph g opset=17
  %q: f32[2,4,5] = input
  %k: f32[2,4,5] = input
  %s: f32[{scale}
  %t: f32[2,5,4] = Transpose(%k) {{perm=[0,2,1]}}
  %m: f32[2,5,4] = Mul(%t, %s)
  %y: f32[2,4,4] = MatMul(%q, %m)
  output %y
"
        )
    };
    assert_eq!(on("cuda", &text("1] = const")), [0, 0]);
    assert_eq!(on("cuda", &text("2,5,4] = input")), [1, 40], "this is no scale");
}

#[test]
fn default_sessions_of_cuda_run_convolutions_channels_first_and_turn_images_in_kernels() {
    use relayout_target_api::Target as _;
    use relayout_targets::OrtNhwc;
    let text = |group: i64| {
        format!(
            "graph g opset=17
  %x: f32[1,500,8,8] = input
  %w: f32[500,{},1,1] = const
  %y: f32[1,500,8,8] = Conv(%x, %w) {{group={group}}}
  output %y
",
            500 / group
        )
    };
    let cuda = OrtNhwc::of(Provider::of("cuda").unwrap());
    let first = cuda.in_other_sessions().unwrap();
    assert!(first.in_other_sessions().is_none());
    assert_eq!(
        first.metadata(),
        [("relayout.provider", "cuda"), ("relayout.session", "prefer_nhwc=0")]
            .map(|(k, v)| (k.to_owned(), v.to_owned()))
    );
    let cost = |group: i64| {
        let mut graph = parse(&text(group)).unwrap();
        assert!(infer_graph(&mut graph, &mut 0).is_empty());
        let hints = Hints::new(&BTreeMap::new(), &graph);
        let (moves, cost) = first.on_device(&graph, &hints).unwrap();
        assert_eq!(moves.transposes, 0);
        cost.get()
    };
    // 64,000 elements, 250 in a nanosecond; depthwise convolutions have kernels of their own.
    assert_eq!([cost(1), cost(500)], [256, 0]);
}

#[test]
fn pools_of_bytes_stay_channels_first_on_gpus() {
    let text = |dtype: &str| {
        format!(
            "graph g opset=17
  %x: {dtype}[1,8,6,6] = input
  %y: {dtype}[1,8,3,3] = MaxPool(%x) {{kernel_shape=[2,2], strides=[2,2]}}
  output %y
"
        )
    };
    for provider in ["cuda", "webgpu"] {
        assert_eq!([on(provider, &text("u8")), on(provider, &text("f32"))], [[0, 0], [2, 8 * 45]], "{provider}");
    }
}

#[test]
fn each_reader_of_dequantized_values_gets_them_turned_by_itself() {
    let text = |read: &str| {
        format!(
            "graph g opset=17
  %x: u8[8,2,64] = input
  %n: i64[4] = const [1,8,16,8]
  %s: f32[8] = const
  %w: f32[4,8,1,1] = const
  %v: f32[4,8,1,1] = const
  %r: u8[1,8,16,8] = Reshape(%x, %n)
  %d: f32[1,8,16,8] = DequantizeLinear(%r, %s)
  %e: f32[1,8,16,8] = Relu(%d)
  %y: f32[1,4,16,8] = Conv({read}, %w)
  %t: f32[1,4,16,8] = Conv({read}, %v)
  output %y
  output %t
"
        )
    };
    let ends = 2 * 4 * 128;
    assert_eq!(on("webgpu", &text("%e")), [3, 8 * 128 + ends]);
    assert_eq!(on("webgpu", &text("%d")), [4, 2 * 8 * 128 + ends]);
}

#[test]
fn what_a_body_reads_is_left_in_the_files_order_for_it() {
    let text = |read: &str| {
        format!(
            "graph g opset=17
  %x: f32[1,3,8,8] = input
  %flag: bool[] = input
  %w: f32[4,3,1,1] = const
  %v: f32[5,4,1,1] = const
  %a: f32[1,4,8,8] = Conv(%x, %w)
  %y: f32[1,5,8,8] = Conv(%a, %v)
  %z: f32[*] = If(%flag) {{else_branch=body, then_branch=body}}
  body else
    {read} = outer
    %n: f32[*] = Neg(%{name})
    output %n
  end
  body then
    {read} = outer
    %p: f32[*] = Abs(%{name})
    output %p
  end
  output %y
  output %z
",
            name = &read[1..2]
        )
    };
    let ends = 3 * 64 + 5 * 64;
    assert_eq!(on("qnn", &text("%x: f32[1,3,8,8]")), [2, ends]);
    assert_eq!(on("qnn", &text("%a: f32[1,4,8,8]")), [3, ends + 4 * 64]);
}
