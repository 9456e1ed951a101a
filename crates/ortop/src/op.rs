//! What the runtime calls: the library's one exported function, and the table of functions that it registers.
//!
//! Every function here catches panics, answers a status where it can, and makes wrappers of [`crate::api`] of what it is given.

#![allow(unsafe_code, reason = "functions that the runtime calls with pointers")]

use std::any::Any;
use std::ffi::{CStr, c_char, c_int, c_void};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr::{null, null_mut};
use std::sync::{Mutex, PoisonError};

use ort_sys::{
    ONNXTensorElementDataType, OrtApi, OrtApiBase, OrtCustomOp, OrtCustomOpInputOutputCharacteristic, OrtKernelContext,
    OrtKernelInfo, OrtMemType, OrtSessionOptions, OrtShapeInferContext, OrtStatusPtr,
};

use crate::api::{Api, Inference, Node, Run};
use crate::contract::Move;
use crate::error::Refusal;
use crate::kernel::NodeKernel;

/// The domain of the op.
const DOMAIN: &CStr = c"relayout";

/// The names of the op. In a file each kind of moves has a number of its own, because a name has one body there.
const NAMES: [&CStr; 32] = [
    c"Relayout",
    c"Relayout_2",
    c"Relayout_3",
    c"Relayout_4",
    c"Relayout_5",
    c"Relayout_6",
    c"Relayout_7",
    c"Relayout_8",
    c"Relayout_9",
    c"Relayout_10",
    c"Relayout_11",
    c"Relayout_12",
    c"Relayout_13",
    c"Relayout_14",
    c"Relayout_15",
    c"Relayout_16",
    c"Relayout_17",
    c"Relayout_18",
    c"Relayout_19",
    c"Relayout_20",
    c"Relayout_21",
    c"Relayout_22",
    c"Relayout_23",
    c"Relayout_24",
    c"Relayout_25",
    c"Relayout_26",
    c"Relayout_27",
    c"Relayout_28",
    c"Relayout_29",
    c"Relayout_30",
    c"Relayout_31",
    c"Relayout_32",
];

/// Adds the op `Relayout` of domain `relayout`, by all of its names, to the options of a session: what ONNX Runtime calls when it registers
/// this library. Answers a status if the runtime is older than 1.18.
///
/// What is registered is never freed: sessions use it as long as they live, and nobody says when the last one ends. It is made once for
/// each runtime in the process, some thousand bytes.
///
/// # Safety
/// ONNX Runtime calls this. `options` and `base` are pointers that it made, valid during the call; the runtime stays loaded.
#[unsafe(no_mangle)]
#[allow(non_snake_case, reason = "the name that the runtime looks for")]
pub unsafe extern "system" fn RegisterCustomOps(
    options: *mut OrtSessionOptions,
    base: *const OrtApiBase,
) -> OrtStatusPtr {
    if base.is_null() {
        return OrtStatusPtr::default();
    }
    // SAFETY: the runtime passes its table of two functions; the second one's table is of the version asked for, or null.
    let (current, oldest) = unsafe { (Api::new(((*base).GetApi)(Api::VERSION)), Api::new(((*base).GetApi)(1))) };
    let Some(api) = current else {
        let reason = format!("the library of op Relayout needs ONNX Runtime 1.{} or newer", Api::VERSION);
        // Statuses are made the same way since the first version.
        return oldest.map_or_else(OrtStatusPtr::default, |api| api.status(&reason));
    };
    answered(api, String::new, || {
        let ops = ops_of(api).iter().map(|op| std::ptr::from_ref(op).cast());
        // SAFETY: the runtime passed these options; the ops are leaked, so they stay where they are, and begin with the table.
        unsafe { api.register(options, DOMAIN, ops) }
    })
}

/// What is registered: the runtime's table of our functions, and behind it our pointer to the runtime's, and the op's name.
#[repr(C)]
struct Op {
    table: OrtCustomOp,
    api: Api,
    name: &'static CStr,
}

/// The ops for a runtime, the same for each session.
fn ops_of(api: Api) -> &'static [Op] {
    static MADE: Mutex<Vec<(Api, &'static [Op])>> = Mutex::new(Vec::new());
    let mut made = MADE.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some((_, ops)) = made.iter().find(|(of, _)| *of == api) {
        return ops;
    }
    let ops: &'static [Op] = Vec::from(NAMES.map(|name| Op { table: TABLE, api, name })).leak();
    made.push((api, ops));
    ops
}

const TABLE: OrtCustomOp = OrtCustomOp {
    version: Api::VERSION,
    // Superseded by the second version of each.
    CreateKernel: None,
    KernelCompute: None,
    GetName: Some(name),
    GetExecutionProviderType: Some(provider),
    GetInputType: Some(any_type),
    GetInputTypeCount: Some(one),
    GetOutputType: Some(any_type),
    GetOutputTypeCount: Some(one),
    KernelDestroy: Some(destroy),
    GetInputCharacteristic: Some(required),
    GetOutputCharacteristic: Some(required),
    GetInputMemoryType: Some(memory),
    // There are no variadic operands.
    GetVariadicInputMinArity: Some(no_arity),
    GetVariadicInputHomogeneity: Some(no_arity),
    GetVariadicOutputMinArity: Some(no_arity),
    GetVariadicOutputHomogeneity: Some(no_arity),
    CreateKernelV2: Some(create),
    KernelComputeV2: Some(compute),
    InferOutputShapeFn: Some(infer),
    GetStartVersion: Some(version),
    GetEndVersion: Some(version),
    // Input and output never share memory.
    GetMayInplace: None,
    ReleaseMayInplace: None,
    GetAliasMap: None,
    ReleaseAliasMap: None,
};

unsafe extern "system" fn name(op: *const OrtCustomOp) -> *const c_char {
    // SAFETY: the runtime passes the table that was registered, which is the first field of an `Op`.
    unsafe { (*op.cast::<Op>()).name }.as_ptr()
}

/// Null is the CPU.
unsafe extern "system" fn provider(_: *const OrtCustomOp) -> *const c_char {
    null()
}

/// Any; types that are no whole bytes are refused with a reason.
unsafe extern "system" fn any_type(_: *const OrtCustomOp, _: usize) -> ONNXTensorElementDataType {
    ONNXTensorElementDataType::ONNX_TENSOR_ELEMENT_DATA_TYPE_UNDEFINED
}

unsafe extern "system" fn one(_: *const OrtCustomOp) -> usize {
    1
}

unsafe extern "system" fn required(_: *const OrtCustomOp, _: usize) -> OrtCustomOpInputOutputCharacteristic {
    OrtCustomOpInputOutputCharacteristic::INPUT_OUTPUT_REQUIRED
}

unsafe extern "system" fn memory(_: *const OrtCustomOp, _: usize) -> OrtMemType {
    OrtMemType::OrtMemTypeDefault
}

unsafe extern "system" fn no_arity(_: *const OrtCustomOp) -> c_int {
    0
}

unsafe extern "system" fn version(_: *const OrtCustomOp) -> c_int {
    1
}

unsafe extern "system" fn infer(op: *const OrtCustomOp, context: *mut OrtShapeInferContext) -> OrtStatusPtr {
    // SAFETY: the runtime passes the table that was registered, which is the first field of an `Op`.
    let api = unsafe { (*op.cast::<Op>()).api };
    answered(api, String::new, || {
        // SAFETY: the runtime passed this context to this call.
        let node = unsafe { Inference::new(api, context) };
        let movement = Move::new(node.attributes()?)?;
        let (element, dims) = node.input()?;
        // No dims may be those of an unknown rank: nothing is wrong then, and nothing can be said. Scalars show when they are run.
        if dims.is_empty() {
            return Ok(());
        }
        node.set_output(element, &movement.infer(&dims)?)
    })
}

unsafe extern "system" fn create(
    _: *const OrtCustomOp,
    api: *const OrtApi,
    info: *const OrtKernelInfo,
    made: *mut *mut c_void,
) -> OrtStatusPtr {
    // SAFETY: the runtime passes its table of functions, which `RegisterCustomOps` found to be of a version that will do.
    let Some(api) = (unsafe { Api::new(api) }) else { return OrtStatusPtr::default() };
    // SAFETY: the runtime passed this node to this call.
    let node = unsafe { Node::new(api, info) };
    answered(
        api,
        || node.name(),
        || {
            let kernel = Box::new(NodeKernel::new(api, &node, node.name())?);
            // SAFETY: the runtime passed a place for the kernel.
            unsafe { *made = Box::into_raw(kernel).cast() };
            Ok(())
        },
    )
}

unsafe extern "system" fn compute(kernel: *mut c_void, context: *mut OrtKernelContext) -> OrtStatusPtr {
    // SAFETY: the runtime passes a kernel that `create` made and `destroy` has not yet been called for. Runs at the same time share it.
    let kernel = unsafe { &*kernel.cast::<NodeKernel>() };
    // SAFETY: the runtime passed this context to this call.
    let run = unsafe { Run::new(kernel.api, context) };
    answered(kernel.api, || kernel.name.clone(), || kernel.run(&run))
}

unsafe extern "system" fn destroy(kernel: *mut c_void) {
    // SAFETY: the runtime calls this once for each kernel that `create` made, after the last run.
    let kernel = unsafe { Box::from_raw(kernel.cast::<NodeKernel>()) };
    // There is nobody to tell.
    let _ = catch_unwind(AssertUnwindSafe(|| drop(kernel)));
}

/// Does `work` and says how it went. `node` tells the name of the node, where there is one.
fn answered(api: Api, node: impl FnOnce() -> String, work: impl FnOnce() -> Result<(), Refusal>) -> OrtStatusPtr {
    // What `work` holds is dropped or only read after a panic.
    let answer = catch_unwind(AssertUnwindSafe(|| {
        let Err(refusal) = work() else { return Ok(()) };
        let name = node();
        Err(if name.is_empty() { format!("Relayout: {refusal}") } else { format!("Relayout node `{name}`: {refusal}") })
    }));
    match answer {
        Ok(Ok(())) => OrtStatusPtr(null_mut()),
        Ok(Err(reason)) => api.status(&reason),
        Err(panic) => api.status(&format!("Relayout: {}", Refusal::Panic(panic_text(panic.as_ref())))),
    }
}

fn panic_text(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().map(String::as_str).or_else(|| panic.downcast_ref::<&str>().copied());
    text.unwrap_or("a panic without a message").to_owned()
}

#[cfg(test)]
mod tests {
    use super::RegisterCustomOps;
    use ort_sys::{OrtApi, OrtApiBase, OrtErrorCode, OrtStatusPtr};
    use std::ffi::{CStr, c_char};
    use std::mem::MaybeUninit;
    use std::ptr::{null, null_mut};
    use std::sync::Mutex;

    static SAID: Mutex<String> = Mutex::new(String::new());

    unsafe extern "system" fn say(_: OrtErrorCode, text: *const c_char) -> OrtStatusPtr {
        // SAFETY: the library passes a text that ends with a 0.
        let text = unsafe { CStr::from_ptr(text) };
        text.to_str().expect("UTF-8").clone_into(&mut SAID.lock().expect("no panic"));
        OrtStatusPtr(null_mut())
    }

    /// A runtime of version 1.17: it has a table for every version up to that.
    unsafe extern "system" fn tables(version: u32) -> *const OrtApi {
        if version > 17 {
            return null();
        }
        let table = Box::leak(Box::new(MaybeUninit::<OrtApi>::uninit())).as_mut_ptr();
        // SAFETY: the place is there; nothing else of the table is read.
        unsafe { (&raw mut (*table).CreateStatus).write(say) };
        table
    }

    unsafe extern "system" fn version() -> *const c_char {
        c"1.17.0".as_ptr()
    }

    #[test]
    fn a_runtime_that_is_too_old_is_told_so() {
        let base = OrtApiBase { GetApi: tables, GetVersionString: version };
        // SAFETY: the base is one; nothing is done with the options before the version is known to do.
        let _ = unsafe { RegisterCustomOps(null_mut(), &raw const base) };
        assert_eq!(*SAID.lock().expect("no panic"), "the library of op Relayout needs ONNX Runtime 1.18 or newer");
    }
}
