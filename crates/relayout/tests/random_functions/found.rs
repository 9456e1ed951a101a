//! Networks that were wrong once, each as small as what was wrong allows.

use crate::net::{Conv, Id, Net};
use crate::proto::{int, ints};
use crate::{Numbers, common, halves, laws, sampling, targets};
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
    for (numbers, sample) in [(Numbers::Floats, sample()), (Numbers::Halves, halves::of(sample()))] {
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

/// A pool of 3 x 2 at every second place, with a column of padding behind. Its last row of windows reaches over the end, and a window
/// more per row would start in the padding: a runtime computes 6 x 7, and ONNX Runtime infers 6 x 8.
fn pool(net: &mut Net, op: &str, x: Id) -> Id {
    let name = net.read(x);
    let window = [("kernel_shape", &[3, 2][..]), ("strides", &[2, 2]), ("pads", &[0, 0, 0, 1])];
    let mut attributes: Vec<_> = window.iter().map(|(name, list)| ints(name, list)).collect();
    attributes.push(int("ceil_mode", 1));
    let y = net.add(op, &[&name], attributes);
    net.image(y, 40, 6, 7)
}

/// A mean of every channel, whose shape no inference has wrong.
fn mean(net: &mut Net, x: Id) -> Id {
    let (name, c) = (net.read(x), net.images[x].c);
    let mean = net.add("GlobalAveragePool", &[&name], vec![]);
    net.image(mean, c, 1, 1)
}

#[test]
fn no_body_relies_on_an_extent_that_the_runtime_infers_wrong() {
    for op in ["MaxPool", "AveragePool"] {
        let counted = obeys(op, |net, x| {
            let x = net.conv(x, Conv::same(40, 3))?;
            let y = pool(net, op, x);
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
        let y = pool(net, "MaxPool", x);
        let y = net.conv(y, Conv::same(40, 3))?;
        let y = net.conv(y, Conv::same(20, 3))?;
        Some(mean(net, y))
    });
    assert!(counted.contains("calls Relayout"), "{counted:?}");
}
