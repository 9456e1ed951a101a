//! Operator graph, layout algebra and op signatures.
