//! Networks that were wrong once, each as small as what was wrong allows.

use super::{feeds, laws};
use crate::common;
use crate::net::{Conv, Id, Net};
use crate::proto::{info, int, ints};
use relayout_onnx::proto::tensor_proto::DataType;
use std::collections::BTreeMap;

/// What an image of 24 channels becomes obeys every law; what was counted.
fn obeys(name: &str, grow: impl FnOnce(&mut Net, Id) -> Option<Id>) -> Vec<String> {
    common::runtime();
    let mut net = Net::new(17, false, (1, false));
    let x = net.given([24, 14, 14]);
    grow(&mut net, x).expect("the network has allowed extents");
    let sample = net.finish(1, &[]);
    let feeds = feeds(&sample).unwrap_or_else(|e| panic!("{name}: ONNX Runtime does not run it: {e}"));
    laws(&sample, &feeds, name).unwrap_or_else(|e| panic!("{name}: {e}\n--- input\n{}", common::printed(&sample.bytes)))
}

#[test]
fn a_branch_leaves_its_result_in_the_layout_of_the_other() {
    let counted = obeys("branch", |net, x| {
        let flag = "flag".to_owned();
        net.flags.push(info(&flag, DataType::Bool, &[], &BTreeMap::new(), true));
        let x = net.conv(x, Conv::same(32, 3))?;
        // One ends in a convolution, the other in an op that has no blocked kernel.
        let y = net.branches(&flag, [true; 2], 24, |net, first| {
            if first {
                return net.conv(x, Conv::same(24, 1));
            }
            let y = net.conv(x, Conv::same(24, 1))?;
            Some(net.keeping("Softmax", y, &[], vec![int("axis", 3)]))
        })?;
        let a = net.conv(y, Conv::same(20, 3))?;
        let b = net.conv(y, Conv::same(20, 1))?;
        let (a, b) = (net.read(a), net.read(b));
        let sum = net.add("Add", &[&a, &b], vec![]);
        Some(net.image(sum, 20, 14, 14))
    });
    assert!(counted.iter().any(|row| row == "body with blocked ops"), "{counted:?}");
}

#[test]
fn a_convolution_in_a_branch_whose_weights_are_outside_is_not_blocked_on_load() {
    obeys("outside", |net, x| {
        let flag = net.known(DataType::Bool, &[], vec![0]);
        let weights = net.between(&[20, 24, 1, 1], -0.3, 0.3);
        let name = net.read(x);
        let y = net.branches(&flag, [false; 2], 20, |net, _| {
            let y = net.add("Conv", &[&name, &weights], vec![]);
            Some(net.image(y, 20, 14, 14))
        })?;
        net.conv(y, Conv::same(40, 3))
    });
}

#[test]
fn a_convolution_whose_weights_are_computed_from_constants_stays_plain_where_that_is_cheaper() {
    // Exp rounds; the pass `fold_rounded` evaluates it, so that the weights are constants.
    let counted = obeys("computed", |net, x| {
        let x = net.conv(x, Conv::same(5, 3))?;
        let (exponents, offset) = (net.between(&[33, 5, 1, 1], -2.0, 0.0), net.between(&[33], -2.0, 0.0));
        let (weights, bias) = (net.add("Exp", &[&exponents], vec![]), net.add("Exp", &[&offset], vec![]));
        let name = net.read(x);
        let y = net.add("Conv", &[&name, &weights, &bias], vec![]);
        Some(net.image(y, 33, 14, 14))
    });
    assert!(counted.iter().any(|row| row == "shield"), "{counted:?}");
}

#[test]
fn an_average_counts_no_more_than_the_padding_where_a_window_reaches_beyond_it() {
    obeys("average", |net, x| {
        let x = net.conv(x, Conv::same(40, 3))?;
        let name = net.read(x);
        let ceil = vec![int("ceil_mode", 1), int("count_include_pad", 1)];
        let window = vec![ints("kernel_shape", &[3, 3]), ints("strides", &[2, 2])];
        let y = net.add("AveragePool", &[&name], [ceil, window].concat());
        let y = net.image(y, 40, 7, 7);
        net.conv(y, Conv::same(40, 3))
    });
}

#[test]
fn a_pool_in_a_batch_of_any_size_is_blocked_in_the_file_where_it_would_be_on_load() {
    common::runtime();
    let mut net = Net::new(17, false, (2, true));
    let x = net.given([48, 14, 14]);
    let name = net.read(x);
    let window = vec![ints("kernel_shape", &[2, 2]), ints("strides", &[2, 2])];
    let y = net.add("AveragePool", &[&name], window);
    let y = net.image(y, 48, 7, 7);
    net.conv(y, Conv::same(16, 1)).expect("the network has allowed extents");
    let sample = net.finish(1, &[]);
    let feeds = feeds(&sample).expect("ONNX Runtime runs it");
    laws(&sample, &feeds, "batch").unwrap_or_else(|e| panic!("{e}"));
}

#[test]
fn a_pool_of_whole_blocks_of_8_is_blocked_in_the_file_where_it_would_be_on_load() {
    // 24 channels are three blocks of 8. On a host with blocks of 16 no pool of them is blocked on load.
    obeys("pool_of_8", |net, x| {
        let x = net.conv(x, Conv::same(24, 1))?;
        let name = net.read(x);
        let window = vec![ints("kernel_shape", &[3, 2]), ints("strides", &[1, 1])];
        let y = net.add("MaxPool", &[&name], window);
        let y = net.image(y, 24, 12, 13);
        net.conv(y, Conv::same(1, 1))
    });
}

#[test]
fn a_plain_convolution_that_is_an_output_and_is_added_to_another_is_no_output_itself() {
    obeys("summed", |net, x| {
        let x = net.conv(x, Conv::same(16, 3))?;
        let x = net.conv(x, Conv::same(8, 3))?;
        // One filter: not worth a reorder here, but ONNX Runtime would block it on load.
        let (a, b) = (net.conv(x, Conv::same(1, 3))?, net.conv(x, Conv::same(1, 1))?);
        let names = [net.images[a].name.clone(), net.read(b)];
        let sum = net.add("Add", &[&names[0], &names[1]], vec![]);
        let y = net.image(sum, 1, 14, 14);
        net.conv(y, Conv::same(48, 1))
    });
}

#[test]
fn softmax_of_blocks_along_an_axis_that_the_file_has_last_is_not_taken_for_one_of_channels() {
    common::runtime();
    // Before opset 13 the op reads all axes from the named one on, which it finds by their place.
    let mut net = Net::new(11, true, (1, false));
    let x = net.given([24, 14, 14]);
    let y = net.conv(x, Conv::same(48, 3)).expect("the network has allowed extents");
    let name = net.read(y);
    let first = net.first(&name);
    let soft = net.add("Softmax", &[&first], vec![int("axis", 3)]);
    let back = net.back(soft);
    let y = net.image(back, 48, 14, 14);
    net.conv(y, Conv::same(20, 1)).expect("the network has allowed extents");
    let sample = net.finish(1, &[]);
    let feeds = feeds(&sample).expect("ONNX Runtime runs it");
    laws(&sample, &feeds, "softmax").unwrap_or_else(|e| panic!("{e}"));
}
