//! If and Loop with convolutions in their bodies.

use crate::dice::Dice;
use crate::net::{CHANNELS, Conv, Id, Net};
use crate::proto::{info, node};
use relayout_onnx::proto::{
    AttributeProto, GraphProto, NodeProto, TensorProto, ValueInfoProto, attribute_proto::AttributeType,
    tensor_proto::DataType,
};
use std::collections::BTreeMap;

/// What a body is made of while it grows.
struct Outer {
    nodes: Vec<NodeProto>,
    initializers: Option<Vec<TensorProto>>,
    images: usize,
}

/// Goes on in a body, whose weights are its own or those of the graph around it.
fn enter(net: &mut Net, own: bool) -> Outer {
    let initializers = own.then(|| std::mem::take(&mut net.initializers));
    Outer { nodes: std::mem::take(&mut net.nodes), initializers, images: net.images.len() }
}

/// The body, as an attribute; goes on in the graph around it.
fn leave(
    net: &mut Net,
    outer: Outer,
    name: &str,
    input: Vec<ValueInfoProto>,
    output: Vec<ValueInfoProto>,
) -> AttributeProto {
    net.images.truncate(outer.images);
    let node = std::mem::replace(&mut net.nodes, outer.nodes);
    let initializer = outer.initializers.map_or_else(Vec::new, |own| std::mem::replace(&mut net.initializers, own));
    let graph = GraphProto { name: Some(name.into()), node, initializer, input, output, ..GraphProto::default() };
    let ty = Some(AttributeType::Graph as i32);
    AttributeProto { name: Some(name.into()), g: Some(Box::new(graph)), r#type: ty, ..AttributeProto::default() }
}

/// The name of a result of a body that reads an image.
fn ended(net: &mut Net, y: Id) -> ValueInfoProto {
    // A body's result has to be made in it.
    let name = net.read(y);
    let name = net.add("Identity", &[&name], vec![]);
    info(&name, DataType::Float, &[], &BTreeMap::new(), false)
}

fn unshaped(name: &str, dtype: DataType) -> ValueInfoProto {
    info(name, dtype, &[], &BTreeMap::new(), false)
}

impl Net {
    /// An If with these branches, each of which makes an image of so many channels and extents alike; the first is that of
    /// the condition. `own` says whether they have their weights themselves.
    pub(crate) fn branches(
        &mut self,
        condition: &str,
        own: [bool; 2],
        c: i64,
        mut branch: impl FnMut(&mut Net, bool) -> Option<Id>,
    ) -> Option<Id> {
        let (mut bodies, mut extents) = (Vec::new(), [0, 0]);
        for (name, own) in ["then_branch", "else_branch"].into_iter().zip(own) {
            let outer = enter(self, own);
            let made = branch(self, bodies.is_empty());
            extents = made.map_or(extents, |y| self.images[y].spatial());
            let result = made.map(|y| ended(self, y));
            let left = leave(self, outer, name, vec![], result.into_iter().collect());
            made?;
            bodies.push(left);
        }
        let y = self.add("If", &[condition], bodies);
        Some(self.image(y, c, extents[0], extents[1]))
    }
}

/// An If whose branches make convolutions of an image outside.
pub(crate) fn branches(net: &mut Net, dice: &mut Dice<'_>) -> Option<Id> {
    let x = net.any(dice)?;
    let (h, w) = (net.images[x].h, net.images[x].w);
    let out = dice.pick(CHANNELS);
    if !net.fits(out.max(40), h, w) {
        return None;
    }
    let condition = if dice.once_in(2) {
        let name = net.name("flag");
        net.flags.push(info(&name, DataType::Bool, &[], &BTreeMap::new(), true));
        name
    } else {
        net.known(DataType::Bool, &[], vec![u8::from(dice.once_in(2))])
    };
    let own = [dice.once_in(2), dice.once_in(2)];
    net.branches(&condition, own, out, |net, _| {
        let mut y = x;
        if dice.once_in(2) {
            y = net.conv(y, Conv::same(dice.pick(&[24, 17, 40]), 3))?;
            y = net.keeping("Relu", y, &[], vec![]);
        }
        net.conv(y, Conv::same(out, dice.pick(&[1, 3])))
    })
    .inspect(|_| drop(net.read(x)))
}

/// A Loop that makes convolutions of what it carries.
pub(crate) fn iterate(net: &mut Net, dice: &mut Dice<'_>) -> Option<Id> {
    let x = net.choose(dice, |v| v.c > 3)?;
    let carried = net.images[x].clone();
    let count = net.known(DataType::Int64, &[], dice.pick(&[2i64, 1]).to_le_bytes().to_vec());
    let go_on = net.known(DataType::Bool, &[], vec![1]);
    let outer = enter(net, dice.once_in(2));
    let [iteration, condition, state] = ["i", "c", "s"].map(|base| net.name(base));
    let goes_on = net.add("Identity", &[&condition], vec![]);
    let image = net.image(state.clone(), carried.c, carried.h, carried.w);
    let mut y = net.conv(image, Conv::same(dice.pick(&[24, 17, 40]), 3)).unwrap_or(image);
    y = net.keeping("Relu", y, &[], vec![]);
    y = net.conv(y, Conv::same(carried.c, 1)).unwrap_or(image);
    y = net.keeping("Tanh", y, &[], vec![]);
    let next = ended(net, y);
    let said = net.declared(&net.images[image].clone(), dice.once_in(2));
    let inputs = vec![
        info(&iteration, DataType::Int64, &[], &BTreeMap::new(), true),
        info(&condition, DataType::Bool, &[], &BTreeMap::new(), true),
        said,
    ];
    let outputs = vec![unshaped(&goes_on, DataType::Bool), next];
    let body = leave(net, outer, "body", inputs, outputs);
    let start = net.read(x);
    let result = net.name("v");
    net.nodes.push(node("Loop", vec![count, go_on, start], vec![result.clone()], vec![body]));
    Some(net.image(result, carried.c, carried.h, carried.w))
}
