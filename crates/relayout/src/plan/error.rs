//! Why there is no plan.

/// Why there is no plan.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PlanError {
    /// A value or node that the embedder did not name.
    #[error(
        "{what} has no id; name every input, result and node with `Ids`, and every constant that may be stored otherwise"
    )]
    NoId {
        /// What.
        what: String,
    },
    /// Two values or two nodes with one id.
    #[error(
        "{first} and {second} have the same id, by which a plan can't tell them apart; give each its own with `Ids`"
    )]
    EqualIds {
        /// The one.
        first: String,
        /// The other.
        second: String,
    },
    /// A node that holds graphs.
    #[error("{node} holds other graphs, of which a plan does not speak; use `optimize_graph`")]
    Bodies {
        /// The node.
        node: String,
    },
    /// A target whose files need more than a plan says.
    #[error("target `{target}` makes several nodes of one, which a plan does not say; use `optimize_graph`")]
    Target {
        /// The target.
        target: String,
    },
    /// An arrangement that a plan can't express.
    #[error("{node}: {why} (please report this)")]
    CannotExpress {
        /// The node.
        node: String,
        /// What a plan can't express.
        why: String,
    },
}
