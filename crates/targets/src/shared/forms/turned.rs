//! Prices of forms that read or leave columns before rows: products with constant weights, and normalizations of the last axis.

use crate::shared::forms::projection::Projected;
use relayout_ir::dtype::DType;
use relayout_ir::form::KernelLayouts;
use relayout_ir::layout::Layout;
use relayout_ir::raised::{LayerNorm, ProjectionForm};
use relayout_target_api::{Become, Cost, NodeQuery, Offer};
use serde::Deserialize;

/// What a product takes longer whose operand or result has its columns outermost, than one of rows.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct TurnedProducts {
    packed_bytes_per_ns: u64,
    scattered_bytes_per_ns: u64,
    around_bytes_per_ns: u64,
    rows: u64,
    macs_per_ns: u64,
    unpacked_macs_per_ns: u64,
    gathered_macs_per_ns: u64,
}

/// What a normalization takes longer that is written for columns before rows, than the op.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct LayerNorms {
    nodes_ns: u64,
    bytes_per_ns: u64,
}

impl TurnedProducts {
    /// Checked; the error names the key.
    pub(crate) fn checked(self) -> Result<TurnedProducts, String> {
        let keys = [
            ("packed_bytes_per_ns", self.packed_bytes_per_ns),
            ("scattered_bytes_per_ns", self.scattered_bytes_per_ns),
            ("around_bytes_per_ns", self.around_bytes_per_ns),
            ("rows", self.rows),
            ("macs_per_ns", self.macs_per_ns),
            ("unpacked_macs_per_ns", self.unpacked_macs_per_ns),
            ("gathered_macs_per_ns", self.gathered_macs_per_ns),
        ];
        match keys.into_iter().find(|(_, number)| *number == 0) {
            Some((key, _)) => Err(format!("`turned_products.{key}` must be at least 1")),
            None => Ok(self),
        }
    }

    /// What a form takes longer; `None` for one that this does not price, and for types that were not measured.
    pub(crate) fn extra(&self, of: &Projected, form: ProjectionForm) -> Option<Cost> {
        let macs = |rows: u64| rows.saturating_mul(of.weights());
        // Rows are columns of what is computed, and these are made in runs.
        let fill = |rows: u64| macs(rows.next_multiple_of(self.rows).saturating_sub(rows)) / self.macs_per_ns;
        let packed = of.bytes(of.inputs) / self.packed_bytes_per_ns;
        let scattered = of.bytes(of.columns()) / self.scattered_bytes_per_ns;
        let around = |columns: u64| if of.reads_images { of.bytes(columns) / self.around_bytes_per_ns } else { 0 };
        let float = matches!(of.dtype, DType::F32 | DType::F64);
        let ns = match form {
            // Convolutions of doubles are not everywhere.
            ProjectionForm::Pixels if of.dtype == DType::F32 => {
                let pixels = of.rows / of.images.max(1);
                let turned = if of.leaves_images { 0 } else { around(of.inputs.saturating_add(of.columns())) };
                packed.saturating_add(fill(pixels).saturating_mul(of.images)).saturating_add(turned)
            }
            ProjectionForm::TurnedResult if float => {
                let wider = of.columns().saturating_sub(of.inputs).saturating_mul(of.rows).saturating_mul(of.inputs);
                [packed, scattered, fill(of.rows), wider / self.unpacked_macs_per_ns]
                    .into_iter()
                    .fold(0, u64::saturating_add)
            }
            ProjectionForm::TurnedOperand if float => {
                packed.saturating_add(macs(of.rows) / self.gathered_macs_per_ns).saturating_add(around(of.inputs))
            }
            // That of three axes is one of pixels.
            ProjectionForm::TurnedBoth if float && (of.axes != 3 || of.dtype != DType::F32) => {
                packed.saturating_add(fill(of.row).saturating_mul(of.rows / of.row.max(1)))
            }
            _ => return None,
        };
        Some(Cost::new(ns))
    }
}

impl LayerNorms {
    /// Checked; the error names the key.
    pub(crate) fn checked(self) -> Result<LayerNorms, String> {
        if self.bytes_per_ns == 0 { Err("`layer_norms.bytes_per_ns` must be at least 1".to_owned()) } else { Ok(self) }
    }

    /// The kernel for channels before pixels of a raised normalization.
    pub(crate) fn kernel(&self, query: &NodeQuery<'_>) -> Option<Offer> {
        let node = query.graph.node(query.node);
        let x = node.operand(0).filter(|_| LayerNorm::is(node))?;
        let ty = &query.graph.value(x).ty;
        let elements = query.sizes.shape(query.graph, x)?.into_iter().fold(1, u64::saturating_mul);
        let bytes = ty.dtype()?.bytes(elements)?;
        let layout = Layout::permutation(&LayerNorm::channels_first(ty.rank()?)).ok()?;
        let mut ins = vec![Some(layout.clone())];
        ins.resize(node.inputs.len(), None);
        let set = vec![LayerNorm::across()];
        Some(Offer {
            form: super::layer_norm::FORM,
            layouts: KernelLayouts { ins, outs: vec![Some(layout)] },
            cost: Cost::new(self.nodes_ns.saturating_add(bytes / self.bytes_per_ns)),
            becomes: Some(Become { op: LayerNorm::op(), opset: 1, operands: None, set, remove: Vec::new() }),
            adds_zeros: false,
        })
    }
}

#[cfg(test)]
mod tests {
    use crate::DataTarget;
    use relayout_target_api::Target as _;

    const ONNX: &str = include_str!("../../onnx/onnx.toml");

    #[test]
    fn a_rate_of_zero_is_told_by_its_key() {
        for (section, rate) in [
            ("turned_products", "packed_bytes_per_ns = 40"),
            ("turned_products", "around_bytes_per_ns = 8"),
            ("turned_products", "rows = 32"),
            ("turned_products", "unpacked_macs_per_ns = 1000"),
            ("layer_norms", "bytes_per_ns = 16"),
        ] {
            let (key, _) = rate.split_once(" =").expect("a key and a number");
            let text = ONNX.replace(&format!("\n{rate}\n"), &format!("\n{key} = 0\n"));
            assert_ne!(text, ONNX, "{key}");
            let error = DataTarget::parse("mine.toml", &text).map(|_| ()).unwrap_err().to_string();
            assert!(error.contains(&format!("`{section}.{key}`")), "{error}");
        }
    }

    #[test]
    fn a_target_without_prices_has_no_turned_forms() {
        let (without, _) = ONNX.split_once("[turned_products]").expect("a section");
        let has = |text: &str| {
            let target = DataTarget::parse("mine.toml", text).expect("a target");
            target.forms().iter().flat_map(|form| form.rules()).any(|rule| rule.name == "turn_products")
        };
        assert!(has(ONNX) && !has(without));
    }
}
