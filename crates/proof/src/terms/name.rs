//! What terms compute, by name: ops of the checker, which are types, and ops of models, which are text.

use std::fmt;
use std::rc::Rc;

/// What a term computes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Name<S> {
    /// An op that only the checker has.
    Own(Own),
    /// An op as models name it, with its domain if that is not the standard one.
    Model(S),
    /// The same by itself: the checker knows nothing of it but what it is told.
    Opaque(S),
    /// The op of this name, of operands that are taken as they lie.
    AsItLies(S),
}

/// A name that is made or compared.
pub(crate) type OpName<'a> = Name<&'a str>;

/// The name that a term has.
pub(crate) type TermName = Name<Rc<str>>;

/// An op that only the checker has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Own {
    /// A name for what a loop carries, or for what nobody knows.
    Carried,
    /// A sum of products.
    Contract,
    DynamicScale,
    DynamicZero,
    /// Extents that differ from call to call, as numbers.
    Extents,
    /// Axes that are counted as one.
    Flat,
    /// An input of the model.
    Input,
    MaxPoolIndices,
    /// An input of a shape that nobody knows.
    OpaqueInput,
    /// Indices of an axis from a place on that differs from call to call.
    Part,
    /// Some indices of an axis.
    Pick,
    /// Numbers from one extent to another.
    RangeOfExtents,
    /// An axis in another order.
    Routed,
    /// Unsigned bytes less 128.
    Signed,
    /// An axis with slots between its places.
    Slots,
    /// An axis of one place or more as one of an extent that differs from call to call.
    Stretched,
    TopKIndices,
}

impl Own {
    fn text(self) -> &'static str {
        match self {
            Own::Carried => "carried",
            Own::Contract => "contract",
            Own::DynamicScale => "DynamicQuantizeLinear.scale",
            Own::DynamicZero => "DynamicQuantizeLinear.zero",
            Own::Extents => "extents",
            Own::Flat => "flat",
            Own::Input => "input",
            Own::MaxPoolIndices => "MaxPool.indices",
            Own::OpaqueInput => "opaque input",
            Own::Part => "part",
            Own::Pick => "pick",
            Own::RangeOfExtents => "range of extents",
            Own::Routed => "routed",
            Own::Signed => "signed",
            Own::Slots => "slots",
            Own::Stretched => "stretched",
            Own::TopKIndices => "TopK.indices",
        }
    }
}

impl OpName<'_> {
    /// The same for a term.
    pub(crate) fn owned(self) -> TermName {
        match self {
            Name::Own(own) => Name::Own(own),
            Name::Model(name) => Name::Model(name.into()),
            Name::Opaque(name) => Name::Opaque(name.into()),
            Name::AsItLies(name) => Name::AsItLies(name.into()),
        }
    }

    /// Whether two operands may be swapped: each bit stays.
    pub(crate) fn commutes(self) -> bool {
        matches!(self, Name::Own(Own::Contract) | Name::Model("Add" | "And" | "Mul" | "Or" | "Xor"))
    }
}

impl TermName {
    /// The same to be compared.
    pub(crate) fn borrowed(&self) -> OpName<'_> {
        match self {
            Name::Own(own) => Name::Own(*own),
            Name::Model(name) => Name::Model(name),
            Name::Opaque(name) => Name::Opaque(name),
            Name::AsItLies(name) => Name::AsItLies(name),
        }
    }
}

impl<S: fmt::Display> fmt::Display for Name<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Name::Own(own) => f.write_str(own.text()),
            Name::Model(name) => name.fmt(f),
            Name::Opaque(name) => write!(f, "opaque {name}"),
            Name::AsItLies(name) => write!(f, "{name} as it lies"),
        }
    }
}
