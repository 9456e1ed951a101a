//! A provider with one pass more: the way in which a session takes passes from outside.

use crate::Relayout;
use onnx_runtime_ep_api::{
    DeviceBuffer, DeviceId, DeviceType, EpConfig, ExecutionProvider, Fence, Kernel, KernelMatch, Result,
};
use onnx_runtime_ir::{DataType, Node, Shape, TensorLayout};
use onnx_runtime_optimizer::OptimizationPass;

/// A provider of the host that first decides about layouts. Its own passes follow, so that they find what Transposes stood between.
///
/// It passes on what `CpuExecutionProvider` of this version implements. What providers of other devices implement besides keeps its
/// default here, so give it none of those.
#[derive(Debug)]
pub struct Relayed<P> {
    inner: P,
    pass: Relayout,
}

impl<P: ExecutionProvider> Relayed<P> {
    /// The provider, initialized, with the pass before its own.
    pub fn new(inner: P, pass: Relayout) -> Relayed<P> {
        Relayed { inner, pass }
    }
}

impl<P: ExecutionProvider> ExecutionProvider for Relayed<P> {
    fn name(&self) -> &str {
        self.inner.name()
    }

    fn device_type(&self) -> DeviceType {
        self.inner.device_type()
    }

    fn device_id(&self) -> DeviceId {
        self.inner.device_id()
    }

    fn initialize(&mut self, config: &EpConfig) -> Result<()> {
        self.inner.initialize(config)
    }

    fn shutdown(&mut self) -> Result<()> {
        self.inner.shutdown()
    }

    fn supports_op(
        &self,
        op: &Node,
        opset: u64,
        shapes: &[Shape],
        input_dtypes: &[DataType],
        layouts: &[TensorLayout],
    ) -> KernelMatch {
        self.inner.supports_op(op, opset, shapes, input_dtypes, layouts)
    }

    fn get_kernel(&self, op: &Node, shapes: &[Vec<usize>], opset: u64) -> Result<Box<dyn Kernel>> {
        self.inner.get_kernel(op, shapes, opset)
    }

    fn custom_passes(&self) -> Vec<Box<dyn OptimizationPass>> {
        let mut passes: Vec<Box<dyn OptimizationPass>> = vec![Box::new(self.pass.clone())];
        passes.extend(self.inner.custom_passes());
        passes
    }

    fn allocate(&self, size: usize, alignment: usize) -> Result<DeviceBuffer> {
        self.inner.allocate(size, alignment)
    }

    fn deallocate(&self, buffer: DeviceBuffer) -> Result<()> {
        self.inner.deallocate(buffer)
    }

    fn copy_from_host(&self, src: &[u8], dst: &mut DeviceBuffer) -> Result<()> {
        self.inner.copy_from_host(src, dst)
    }

    fn copy(&self, src: &DeviceBuffer, dst: &mut DeviceBuffer, size: usize) -> Result<()> {
        self.inner.copy(src, dst, size)
    }

    fn copy_async(&self, src: &DeviceBuffer, dst: &mut DeviceBuffer, size: usize) -> Result<Fence> {
        self.inner.copy_async(src, dst, size)
    }

    fn sync(&self) -> Result<()> {
        self.inner.sync()
    }
}
