//! Networks that were wrong once, each as small as what was wrong allows.

use super::{Numbers, halves, laws, targets};
use crate::net::{Conv, Id, Net};
use crate::proto::{int, ints};
use crate::{common, sampling};
use std::collections::BTreeSet;

/// What an image of 40 channels becomes obeys every law for every target, in floats and in halves; the rows that were counted.
fn obeys(name: &str, grow: impl Fn(&mut Net, Id) -> Option<Id>) -> BTreeSet<String> {
    common::runtime();
    let sample = || {
        let mut net = Net::new(17, false, (1, false));
        let x = net.given([40, 12, 14]);
        grow(&mut net, x).expect("the network has allowed extents");
        net.finish(1, &[])
    };
    let mut counted = BTreeSet::new();
    for (numbers, sample) in [(Numbers::Floats, sample()), (Numbers::Halves, halves::on_halves(sample()))] {
        let feeds = sampling::feeds(&sample.bytes, &sample.dims, &[]);
        let feeds = feeds.unwrap_or_else(|e| panic!("{name}: ONNX Runtime does not run it: {e}"));
        for target in targets() {
            let rows = laws(target.as_ref(), numbers, &sample, &feeds);
            counted
                .extend(rows.unwrap_or_else(|e| panic!("{name}: {e}\n--- input\n{}", common::printed(&sample.bytes))));
        }
    }
    counted
}

/// A pool with a row of windows that reaches over the end and a column that would start in the padding, which ONNX Runtime infers and
/// no runtime computes. `far`: at every third place, so that columns end before the data does.
fn pool(net: &mut Net, op: &str, x: Id, far: bool) -> Id {
    let name = net.read(x);
    let (stride, pads, [h, w]) = if far { (3, [1, 1, 1, 1], [5, 5]) } else { (2, [0, 0, 0, 1], [6, 7]) };
    let window = [("kernel_shape", &[3, 2][..]), ("strides", &[stride; 2]), ("pads", &pads)];
    let mut attributes: Vec<_> = window.iter().map(|(name, list)| ints(name, list)).collect();
    attributes.push(int("ceil_mode", 1));
    let y = net.add(op, &[&name], attributes);
    net.image(y, 40, h, w)
}

/// A mean of every channel, whose shape no inference has wrong.
fn mean(net: &mut Net, x: Id) -> Id {
    let (name, c) = (net.read(x), net.images[x].c);
    let mean = net.add("GlobalAveragePool", &[&name], vec![]);
    net.image(mean, c, 1, 1)
}

#[test]
fn no_body_relies_on_an_extent_that_the_runtime_infers_wrong() {
    for (op, far) in [("MaxPool", false), ("AveragePool", false), ("MaxPool", true), ("AveragePool", true)] {
        let counted = obeys(op, |net, x| {
            let x = net.conv(x, Conv::same(40, 3))?;
            let y = pool(net, op, x, far);
            let y = net.conv(y, Conv::same(33, 3))?;
            Some(mean(net, y))
        });
        assert!(counted.contains(&format!("calls {op}")), "{counted:?}");
    }
}

#[test]
fn no_move_relies_on_an_extent_that_the_runtime_infers_wrong() {
    let counted = obeys("move", |net, x| {
        // Not worth two moves by itself, so it stays as it is and its result is moved.
        let y = pool(net, "MaxPool", x, false);
        let y = net.conv(y, Conv::same(40, 3))?;
        let y = net.conv(y, Conv::same(20, 3))?;
        Some(mean(net, y))
    });
    assert!(counted.contains("calls Relayout"), "{counted:?}");
}
