//! The runtime's functions, as far as this library calls them.
//!
//! Each wrapper holds a pointer that the runtime gave to one of our functions, and lives no longer than that call; its methods are
//! safe because that is what the `unsafe` constructors ask for. A status that says no becomes a [`Refusal`] and is released. Types
//! of elements are read as plain numbers: a later runtime may know more of them than the binding has names for.

#![allow(unsafe_code, reason = "calls through the table of functions of the runtime")]

use std::ffi::{CStr, CString, c_char, c_void};
use std::marker::PhantomData;
use std::mem::MaybeUninit;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr::{NonNull, null, null_mut};
use std::sync::atomic::{AtomicBool, Ordering};

use ort_sys::{
    ONNXTensorElementDataType as Type, OrtApi, OrtErrorCode, OrtKernelContext, OrtKernelInfo, OrtOpAttr, OrtOpAttrType,
    OrtShapeInferContext, OrtStatusPtr, OrtTensorTypeAndShapeInfo, OrtTypeInfo, OrtValue,
};

use relayout_layout::dim::byte_count;

use crate::contract::{Attributes, Dim};
use crate::error::Refusal;

/// The runtime's table of functions.
///
/// Its lifetime is the runtime's: the table is static data of a library that outlives every call into this one. It may be shorter than
/// the type that describes it, so no reference to it is made, and only functions of version [`Api::VERSION`] are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Api(NonNull<OrtApi>);

// SAFETY: the table is never written, and the runtime's functions may be called from any thread.
unsafe impl Send for Api {}
// SAFETY: as above.
unsafe impl Sync for Api {}

/// Calls a function of the table and checks the status.
///
/// Used only where the arguments are: pointers of the wrappers below, valid by the contract of their constructors; texts that end
/// with a 0; and places for results that live as long as the call.
macro_rules! call {
    ($api:expr, $function:ident($($argument:expr),* $(,)?)) => {{
        let api: Api = $api;
        // SAFETY: the table has this function, as it is of version `Api::VERSION`; the arguments are as the macro's text says.
        let status = unsafe { ((*api.0.as_ptr()).$function)($($argument),*) };
        api.checked(status)
    }};
}

impl Api {
    /// The version of the table that this library asks for: what it calls is in ONNX Runtime 1.18 and later.
    pub(crate) const VERSION: u32 = 18;

    /// # Safety
    /// `table` is null or a table of functions of at least version [`Api::VERSION`] that stays where it is.
    pub(crate) unsafe fn new(table: *const OrtApi) -> Option<Self> {
        NonNull::new(table.cast_mut()).map(Self)
    }

    /// A status that says why not.
    pub(crate) fn status(self, reason: &str) -> OrtStatusPtr {
        let text: Vec<u8> = reason.bytes().filter(|&byte| byte != 0).collect();
        let text = CString::new(text).unwrap_or_default();
        // SAFETY: the table has this function; the text ends with a 0 and is copied.
        unsafe { ((*self.0.as_ptr()).CreateStatus)(OrtErrorCode::ORT_INVALID_ARGUMENT, text.as_ptr()) }
    }

    fn checked(self, status: OrtStatusPtr) -> Result<(), Refusal> {
        if status.0.is_null() {
            return Ok(());
        }
        // SAFETY: a status that is not null is the runtime's and ours to read and release; its message ends with a 0.
        let text = unsafe {
            let text = CStr::from_ptr(((*self.0.as_ptr()).GetErrorMessage)(status.0)).to_string_lossy().into_owned();
            ((*self.0.as_ptr()).ReleaseStatus)(status.0);
            text
        };
        Err(Refusal::Runtime(text))
    }

    /// Adds a domain with these ops to the options of a session.
    ///
    /// # Safety
    /// `options` is the pointer that the runtime called with, and each of `ops` a table of functions that stays where it is for good.
    pub(crate) unsafe fn register(
        self,
        options: *mut ort_sys::OrtSessionOptions,
        domain: &CStr,
        ops: impl Iterator<Item = *const ort_sys::OrtCustomOp>,
    ) -> Result<(), Refusal> {
        let mut made = null_mut();
        call!(self, CreateCustomOpDomain(domain.as_ptr(), &raw mut made))?;
        for op in ops {
            call!(self, CustomOpDomain_Add(made, op))?;
        }
        call!(self, AddCustomOpDomain(options, made))
    }
}

/// The types of whole bytes, with their bytes.
const MOVED: &[(Type, usize)] = &[
    (Type::ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT, 4),
    (Type::ONNX_TENSOR_ELEMENT_DATA_TYPE_UINT8, 1),
    (Type::ONNX_TENSOR_ELEMENT_DATA_TYPE_INT8, 1),
    (Type::ONNX_TENSOR_ELEMENT_DATA_TYPE_UINT16, 2),
    (Type::ONNX_TENSOR_ELEMENT_DATA_TYPE_INT16, 2),
    (Type::ONNX_TENSOR_ELEMENT_DATA_TYPE_INT32, 4),
    (Type::ONNX_TENSOR_ELEMENT_DATA_TYPE_INT64, 8),
    (Type::ONNX_TENSOR_ELEMENT_DATA_TYPE_BOOL, 1),
    (Type::ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT16, 2),
    (Type::ONNX_TENSOR_ELEMENT_DATA_TYPE_DOUBLE, 8),
    (Type::ONNX_TENSOR_ELEMENT_DATA_TYPE_UINT32, 4),
    (Type::ONNX_TENSOR_ELEMENT_DATA_TYPE_UINT64, 8),
    (Type::ONNX_TENSOR_ELEMENT_DATA_TYPE_COMPLEX64, 8),
    (Type::ONNX_TENSOR_ELEMENT_DATA_TYPE_COMPLEX128, 16),
    (Type::ONNX_TENSOR_ELEMENT_DATA_TYPE_BFLOAT16, 2),
    (Type::ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT8E4M3FN, 1),
    (Type::ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT8E4M3FNUZ, 1),
    (Type::ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT8E5M2, 1),
    (Type::ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT8E5M2FNUZ, 1),
    (Type::ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT8E8M0, 1),
];

/// The others that have a name.
const REFUSED: &[(Type, &str)] = &[
    (Type::ONNX_TENSOR_ELEMENT_DATA_TYPE_STRING, "string"),
    (Type::ONNX_TENSOR_ELEMENT_DATA_TYPE_UINT4, "uint4"),
    (Type::ONNX_TENSOR_ELEMENT_DATA_TYPE_INT4, "int4"),
    (Type::ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT4E2M1, "float4e2m1"),
    (Type::ONNX_TENSOR_ELEMENT_DATA_TYPE_UINT2, "uint2"),
    (Type::ONNX_TENSOR_ELEMENT_DATA_TYPE_INT2, "int2"),
];

/// The type of a tensor's elements, one that is moved.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Element {
    onnx: Type,
    /// Bytes of an element.
    pub(crate) bytes: usize,
}

impl Element {
    /// The type of this number.
    fn new(number: i32) -> Result<Self, Refusal> {
        if let Some(&(onnx, bytes)) = MOVED.iter().find(|(onnx, _)| *onnx as i32 == number) {
            return Ok(Self { onnx, bytes });
        }
        let named = REFUSED.iter().find(|(onnx, _)| *onnx as i32 == number);
        Err(Refusal::Element(named.map_or_else(|| format!("number {number}"), |(_, name)| (*name).to_owned())))
    }
}

/// What the runtime says of a tensor. Whoever holds one has got the pointer from the runtime, which has not released it.
#[derive(Clone, Copy)]
struct TensorInfo {
    api: Api,
    info: *const OrtTensorTypeAndShapeInfo,
}

/// What the runtime says of a tensor, which is ours to release.
struct OwnedInfo {
    api: Api,
    info: NonNull<OrtTensorTypeAndShapeInfo>,
}

impl OwnedInfo {
    /// Takes what the runtime made.
    fn new(api: Api, info: *mut OrtTensorTypeAndShapeInfo) -> Result<Self, Refusal> {
        NonNull::new(info).map(|info| Self { api, info }).ok_or(Refusal::NotATensor)
    }

    fn get(&self) -> TensorInfo {
        TensorInfo { api: self.api, info: self.info.as_ptr() }
    }
}

impl Drop for OwnedInfo {
    fn drop(&mut self) {
        // SAFETY: the table has this function; the pointer is owned and released once.
        unsafe { ((*self.api.0.as_ptr()).ReleaseTensorTypeAndShapeInfo)(self.info.as_ptr()) }
    }
}

impl TensorInfo {
    fn element(self) -> Result<Element, Refusal> {
        let mut number = 0_i32;
        call!(self.api, GetTensorElementType(self.info, (&raw mut number).cast::<Type>()))?;
        Element::new(number)
    }

    /// The dims, -1 where not known.
    fn dims(self) -> Result<Vec<i64>, Refusal> {
        let mut rank = 0;
        call!(self.api, GetDimensionsCount(self.info, &raw mut rank))?;
        let mut dims = vec![0; rank];
        call!(self.api, GetDimensions(self.info, dims.as_mut_ptr(), rank))?;
        Ok(dims)
    }

    /// The dims with the names of those that have one.
    fn named_dims(self) -> Result<Vec<Dim<CString>>, Refusal> {
        let sizes = self.dims()?;
        let mut names: Vec<*const c_char> = vec![null(); sizes.len()];
        call!(self.api, GetSymbolicDimensions(self.info, names.as_mut_ptr(), names.len()))?;
        let dim = |(&size, &name): (&i64, &*const c_char)| {
            if size >= 0 {
                return Dim::Known(size);
            }
            // SAFETY: the runtime left a text that ends with a 0 and lives as long as the information on the tensor, or nothing.
            let name = (!name.is_null()).then(|| unsafe { CStr::from_ptr(name) });
            match name {
                Some(name) if !name.is_empty() => Dim::Named(name.to_owned()),
                _ => Dim::Unknown,
            }
        };
        Ok(sizes.iter().zip(&names).map(dim).collect())
    }
}

/// A node, while its kernel is made.
pub(crate) struct Node<'a> {
    api: Api,
    info: *const OrtKernelInfo,
    call: PhantomData<&'a ()>,
}

impl Node<'_> {
    /// # Safety
    /// `info` is what the runtime gave to the call that `'a` is, with the table `api`.
    pub(crate) unsafe fn new(api: Api, info: *const OrtKernelInfo) -> Self {
        Self { api, info, call: PhantomData }
    }

    /// Its name; empty where it has none.
    pub(crate) fn name(&self) -> String {
        text(|out, size| call!(self.api, KernelInfo_GetNodeName(self.info, out, size)))
            .and_then(|text| String::from_utf8(text).ok())
            .unwrap_or_default()
    }

    pub(crate) fn attributes(&self) -> Result<Attributes, Refusal> {
        Ok(Attributes {
            perm: self.ints(c"perm"),
            from: self.string("from", c"from")?,
            to: self.string("to", c"to")?,
            shape: self.ints(c"shape"),
        })
    }

    /// None where there is no such attribute, which the runtime has no other way to say than to refuse. One of another type reads as
    /// an empty list.
    fn ints(&self, name: &CStr) -> Option<Vec<i64>> {
        let mut count = 0;
        let api = self.api;
        call!(api, KernelInfoGetAttributeArray_int64(self.info, name.as_ptr(), null_mut(), &raw mut count)).ok()?;
        let mut ints = vec![0; count];
        if count > 0 {
            let out = ints.as_mut_ptr();
            call!(api, KernelInfoGetAttributeArray_int64(self.info, name.as_ptr(), out, &raw mut count)).ok()?;
        }
        Some(ints)
    }

    fn string(&self, attribute: &'static str, name: &CStr) -> Result<Option<String>, Refusal> {
        let read = |out, size| call!(self.api, KernelInfoGetAttribute_string(self.info, name.as_ptr(), out, size));
        text(read).map(|text| String::from_utf8(text).map_err(|_| Refusal::NotText { attribute })).transpose()
    }

    /// The input's type of elements and dims, -1 where not known. No dims are those of a scalar or of an unknown rank.
    pub(crate) fn input(&self) -> Result<(Element, Vec<i64>), Refusal> {
        let api = self.api;
        let mut info: *mut OrtTypeInfo = null_mut();
        call!(api, KernelInfo_GetInputTypeInfo(self.info, 0, &raw mut info))?;
        let tensor = || {
            let mut tensor: *const OrtTensorTypeAndShapeInfo = null();
            call!(api, CastTypeInfoToTensorInfo(info, &raw mut tensor))?;
            if tensor.is_null() {
                return Err(Refusal::NotATensor);
            }
            let tensor = TensorInfo { api, info: tensor };
            Ok((tensor.element()?, tensor.dims()?))
        };
        let found = tensor();
        // SAFETY: the table has this function; the pointer is owned, and what was read of it has been copied.
        unsafe { ((*api.0.as_ptr()).ReleaseTypeInfo)(info) };
        found
    }
}

/// A text that is read twice, first for its size with the 0 at the end. None where the runtime refuses.
fn text(read: impl Fn(*mut c_char, *mut usize) -> Result<(), Refusal>) -> Option<Vec<u8>> {
    let mut size = 0;
    read(null_mut(), &raw mut size).ok()?;
    let mut text = vec![0_u8; size];
    read(text.as_mut_ptr().cast(), &raw mut size).ok()?;
    text.pop();
    Some(text)
}

/// A node, while the shapes of its graph are inferred.
pub(crate) struct Inference<'a> {
    api: Api,
    context: *mut OrtShapeInferContext,
    call: PhantomData<&'a ()>,
}

impl Inference<'_> {
    /// # Safety
    /// `context` is what the runtime gave to the call that `'a` is, with the table `api`.
    pub(crate) unsafe fn new(api: Api, context: *mut OrtShapeInferContext) -> Self {
        Self { api, context, call: PhantomData }
    }

    pub(crate) fn attributes(&self) -> Result<Attributes, Refusal> {
        Ok(Attributes {
            perm: self.ints(c"perm")?,
            from: self.string("from", c"from")?,
            to: self.string("to", c"to")?,
            shape: self.ints(c"shape")?,
        })
    }

    fn ints(&self, name: &CStr) -> Result<Option<Vec<i64>>, Refusal> {
        let Some(bytes) = self.read(name, OrtOpAttrType::ORT_OP_ATTR_INTS)? else { return Ok(None) };
        let int = |chunk: &[u8]| chunk.try_into().map(i64::from_ne_bytes).unwrap_or_default();
        Ok(Some(bytes.chunks_exact(size_of::<i64>()).map(int).collect()))
    }

    fn string(&self, attribute: &'static str, name: &CStr) -> Result<Option<String>, Refusal> {
        let Some(mut bytes) = self.read(name, OrtOpAttrType::ORT_OP_ATTR_STRING)? else { return Ok(None) };
        // Whether a 0 ends it is up to the runtime's version.
        if bytes.last() == Some(&0) {
            bytes.pop();
        }
        String::from_utf8(bytes).map(Some).map_err(|_| Refusal::NotText { attribute })
    }

    /// The bytes of an attribute, if there is one of this name.
    fn read(&self, name: &CStr, kind: OrtOpAttrType) -> Result<Option<Vec<u8>>, Refusal> {
        let api = self.api;
        let mut attribute: *const OrtOpAttr = null();
        let found = call!(api, ShapeInferContext_GetAttribute(self.context, name.as_ptr(), &raw mut attribute));
        if found.is_err() || attribute.is_null() {
            return Ok(None);
        }
        let mut size = 0;
        // Refused for want of room, with the size that is needed.
        let asked = call!(api, ReadOpAttr(attribute, kind, null_mut(), 0, &raw mut size));
        if size == 0 {
            return asked.map(|()| Some(Vec::new()));
        }
        let mut bytes = vec![0_u8; size];
        call!(api, ReadOpAttr(attribute, kind, bytes.as_mut_ptr().cast(), size, &raw mut size))?;
        bytes.truncate(size);
        Ok(Some(bytes))
    }

    /// The input's type of elements and dims.
    pub(crate) fn input(&self) -> Result<(Element, Vec<Dim<CString>>), Refusal> {
        let mut info = null_mut();
        call!(self.api, ShapeInferContext_GetInputTypeShape(self.context, 0, &raw mut info))?;
        if info.is_null() {
            return Err(Refusal::NotATensor);
        }
        // The context keeps this one.
        let info = TensorInfo { api: self.api, info };
        Ok((info.element()?, info.named_dims()?))
    }

    /// Says what the output is. Dims of unknown size need names: with one that has none nothing is said, and the runtime takes the
    /// type of the input.
    pub(crate) fn set_output(&self, element: Element, dims: &[Dim<CString>]) -> Result<(), Refusal> {
        if dims.contains(&Dim::Unknown) {
            return Ok(());
        }
        let api = self.api;
        let mut info = null_mut();
        call!(api, CreateTensorTypeAndShapeInfo(&raw mut info))?;
        let info = OwnedInfo::new(api, info)?;
        let to = info.info.as_ptr();
        let sizes: Vec<i64> = dims.iter().map(|dim| if let Dim::Known(size) = dim { *size } else { -1 }).collect();
        let name = |dim: &Dim<CString>| if let Dim::Named(name) = dim { name.as_ptr() } else { c"".as_ptr() };
        let mut names: Vec<*const c_char> = dims.iter().map(name).collect();
        call!(api, SetTensorElementType(to, element.onnx))?;
        call!(api, SetDimensions(to, sizes.as_ptr(), sizes.len()))?;
        call!(api, SetSymbolicDimensions(to, names.as_mut_ptr(), names.len()))?;
        call!(api, ShapeInferContext_SetOutputTypeShape(self.context, 0, to))
    }
}

/// One run of a node.
pub(crate) struct Run<'a> {
    api: Api,
    context: *mut OrtKernelContext,
    call: PhantomData<&'a ()>,
}

/// The input of a run.
pub(crate) struct Input<'a> {
    pub(crate) element: Element,
    pub(crate) dims: Vec<usize>,
    value: *const OrtValue,
    run: PhantomData<&'a ()>,
}

impl Run<'_> {
    /// # Safety
    /// `context` is what the runtime gave to the call that `'a` is, with the table `api`.
    pub(crate) unsafe fn new(api: Api, context: *mut OrtKernelContext) -> Self {
        Self { api, context, call: PhantomData }
    }

    pub(crate) fn input(&self) -> Result<Input<'_>, Refusal> {
        let api = self.api;
        let mut value: *const OrtValue = null();
        call!(api, KernelContext_GetInput(self.context, 0, &raw mut value))?;
        let mut info = null_mut();
        if value.is_null() {
            return Err(Refusal::NotATensor);
        }
        call!(api, GetTensorTypeAndShape(value, &raw mut info))?;
        let info = OwnedInfo::new(api, info)?;
        let dims = info.get().dims()?.iter().map(|&dim| usize::try_from(dim).unwrap_or(0)).collect();
        Ok(Input { element: info.get().element()?, dims, value, run: PhantomData })
    }

    /// Makes the output with these dims and lends the bytes of both sides to `work`.
    pub(crate) fn with_buffers<T>(
        &self,
        input: &Input<'_>,
        dims: &[i64],
        work: impl FnOnce(&[MaybeUninit<u8>], &mut [MaybeUninit<u8>]) -> T,
    ) -> Result<T, Refusal> {
        let api = self.api;
        let output_dims: Vec<usize> = dims.iter().map(|&dim| usize::try_from(dim).unwrap_or(0)).collect();
        let elem_bytes = input.element.bytes;
        let (from_bytes, to_bytes) = (tensor_bytes(&input.dims, elem_bytes)?, tensor_bytes(&output_dims, elem_bytes)?);
        let mut output: *mut OrtValue = null_mut();
        call!(api, KernelContext_GetOutput(self.context, 0, dims.as_ptr(), dims.len(), &raw mut output))?;
        let mut source: *mut c_void = null_mut();
        // It is only read; the runtime has no other function for this in the version asked for.
        call!(api, GetTensorMutableData(input.value.cast_mut(), &raw mut source))?;
        let mut target: *mut c_void = null_mut();
        call!(api, GetTensorMutableData(output, &raw mut target))?;
        if (source.is_null() && from_bytes > 0) || (target.is_null() && to_bytes > 0) {
            return Err(Refusal::Runtime("a tensor has no data".to_owned()));
        }
        // Tensors without elements may have no address.
        let source = if from_bytes == 0 { NonNull::dangling().as_ptr() } else { source.cast::<MaybeUninit<u8>>() };
        let target = if to_bytes == 0 { NonNull::dangling().as_ptr() } else { target.cast::<MaybeUninit<u8>>() };
        // SAFETY: the sizes are the products of the dims and the bytes of an element, which is what the runtime holds for each tensor
        // for as long as this call; the op does not permit it to give input and output the same memory. The output holds nothing yet,
        // and the type asks for nothing.
        let (source, target) = unsafe {
            (std::slice::from_raw_parts(source, from_bytes), std::slice::from_raw_parts_mut(target, to_bytes))
        };
        Ok(work(source, target))
    }

    /// Calls `work` up to `calls` times on the threads of the session, and comes back when all calls have.
    pub(crate) fn share(&self, calls: usize, work: &(dyn Fn() + Sync)) -> Result<(), Refusal> {
        let shared = Shared { work, panicked: AtomicBool::new(false) };
        let data = (&raw const shared).cast_mut().cast::<c_void>();
        // 0: as many batches as the session has threads.
        call!(self.api, KernelContext_ParallelFor(self.context, one_call, calls, 0, data))?;
        if shared.panicked.into_inner() { Err(Refusal::Panic("a kernel panicked".to_owned())) } else { Ok(()) }
    }
}

/// Bytes of a dense tensor.
fn tensor_bytes(dims: &[usize], elem_bytes: usize) -> Result<usize, Refusal> {
    byte_count(dims.iter().map(|&dim| dim as u64), elem_bytes)
        .ok_or_else(|| Refusal::Runtime(format!("a tensor of {dims:?} is beyond memory")))
}

/// What the threads of a session are given.
struct Shared<'a> {
    work: &'a (dyn Fn() + Sync),
    panicked: AtomicBool,
}

unsafe extern "C" fn one_call(data: *mut c_void, _: usize) {
    // SAFETY: `Run::share` passes a pointer to what it holds until all calls have come back.
    let shared = unsafe { &*data.cast::<Shared<'_>>() };
    // What a panic leaves half done is reported as a failure of the run.
    if catch_unwind(AssertUnwindSafe(shared.work)).is_err() {
        shared.panicked.store(true, Ordering::Relaxed);
    }
}
