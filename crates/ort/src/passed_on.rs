//! Settings of ort that say nothing about which model suits the session.

use crate::{Builder, BuilderResult};
use ort::environment::ThreadManager;
use ort::logging::{LogLevel, LoggerFunction};
use ort::memory::MemoryInfo;
use ort::operator::OperatorDomain;
use ort::session::builder::{GqaValueLayout, PrepackedWeights};
use std::any::Any;
use std::ffi::c_int;
use std::path::Path;
use std::sync::Arc;

/// Methods that pass their arguments on.
macro_rules! passed_on {
    ($($name:ident($($argument:ident: $kind:ty),*);)*) => {
        impl Builder {
            $(
                #[doc = concat!("As `SessionBuilder::", stringify!($name), "` of ort.")]
                ///
                /// # Errors
                /// What the runtime answers.
                pub fn $name(self, $($argument: $kind),*) -> BuilderResult {
                    self.with(|inner| inner.$name($($argument),*))
                }
            )*
        }
    };
}

passed_on! {
    with_allocator(info: MemoryInfo<'_>);
    with_aot_inlining(enable: bool);
    with_approximate_gelu();
    with_cast_chain_elimination();
    with_config_entry(key: impl AsRef<str>, value: impl AsRef<str>);
    with_deterministic_compute(enable: bool);
    with_device_allocated_initializers();
    with_dimension_override_by_denotation(denotation: impl AsRef<str>, size: i64);
    with_disable_cpu_fallback();
    with_disabled_optimizers(optimizers: impl AsRef<str>);
    with_double_qdq_remover(enable: bool);
    with_dynamic_block_base(size: u32);
    with_env_allocators();
    with_ep_context_source_model_path(path: impl AsRef<str>);
    with_extensions();
    with_flush_to_zero();
    with_gqa_value_layout(layout: GqaValueLayout);
    with_independent_thread_pool();
    with_inter_op_spinning(enable: bool);
    with_inter_threads(threads: usize);
    with_intra_op_spinning(enable: bool);
    with_log_id(id: impl AsRef<str>);
    with_log_level(level: LogLevel);
    with_log_verbosity(verbosity: c_int);
    with_logger(logger: LoggerFunction);
    with_memory_pattern(enable: bool);
    with_nchwc_pointwise_conv_max_input_channel_batch(channels: u32);
    with_operator_library(path: impl AsRef<Path>);
    with_operators(domain: impl Into<Arc<OperatorDomain>>);
    with_optimized_model_path(path: impl AsRef<Path>);
    with_parallel_execution(enable: bool);
    with_precise_qmm();
    with_prepacked_weights(weights: &PrepackedWeights);
    with_prepacking(enable: bool);
    with_profiling(file: impl AsRef<Path>);
    with_qdq_cleanup();
    with_quant_qdq(enable: bool);
    with_saved_runtime_optimizations(enable: bool);
    with_thread_manager(manager: impl ThreadManager + Any + 'static);
    with_weightless();
}

impl Builder {
    /// As `SessionBuilder::with_max_shape_override` of ort.
    ///
    /// # Errors
    /// What the runtime answers.
    pub fn with_max_shape_override<N: AsRef<str>, S: AsRef<[i64]>>(
        self,
        overrides: impl IntoIterator<Item = (N, S)>,
    ) -> BuilderResult {
        self.with(|inner| inner.with_max_shape_override(overrides))
    }
}
