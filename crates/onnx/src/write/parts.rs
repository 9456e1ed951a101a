//! Models in parts: the bytes of a model without its large data, and that data. For callers that keep weights in memory of their
//! own, and for models of more bytes than one protobuf message may have.

use bytes::Bytes;
use rayon::prelude::*;

use super::emit::{Out, emit};
use super::options::WriteOptions;
use super::plan::{Part, Payload};
use super::survey::{part_location, plan_for_parts};
use crate::error::Result;
use crate::proto::{ModelProto, TensorProto};

/// A model in parts.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Parts {
    /// The bytes of the model. Its large data is external.
    pub model: Vec<u8>,
    /// The data by location, each location once, in the order of the tensors.
    pub data: Vec<(String, Bytes)>,
}

/// Writes `model` with all data of at least `smallest` bytes as parts. Data that is a slice of the input stays one; deferred payloads
/// are made. External data whose file is missing stays a reference.
///
/// # Errors
/// [`Error::TooLarge`](crate::error::Error::TooLarge) if what is not apart exceeds 2 GiB, and those of reading the data.
pub fn split_model(model: &ModelProto, smallest: u64, options: &WriteOptions<'_>) -> Result<Parts> {
    let (plan, sizer, payloads) = plan_for_parts(model, smallest, options)?;
    let mut parts = Parts { model: Vec::with_capacity(sizer.total as usize), data: Vec::new() };
    emit(model, &plan, sizer, Out::stream(&mut parts.model, "the output".to_owned()))?;
    // They are all there in the end, so they may be made at the same time. A thread of the pool makes them alone: while it waited for
    // another's piece it might begin another caller's work on top of this one's. Of several errors it is the first tensor's.
    let one = |(tensor, payload): &Part<'_>| bytes_of(tensor, payload);
    let made: Vec<Result<Bytes>> = match rayon::current_thread_index() {
        Some(_) => payloads.iter().map(one).collect(),
        None => payloads.par_iter().map(one).collect(),
    };
    for (index, bytes) in made.into_iter().enumerate() {
        parts.data.push((part_location(index), bytes?));
    }
    options.check_unchanged()?;
    Ok(parts)
}

fn bytes_of(tensor: &TensorProto, payload: &Payload<'_>) -> Result<Bytes> {
    match payload {
        Payload::Bytes(bytes) => return Ok(bytes.clone()),
        Payload::Deferred(source) => {
            // What is of another length than it said is refused where it is written.
            let made = source.kept().unwrap_or_else(|| source.made()).ok();
            if let Some(bytes) = made.filter(|bytes| bytes.len() as u64 == source.byte_length()) {
                return Ok(bytes);
            }
        }
    }
    let mut made = Vec::with_capacity(payload.len() as usize);
    let mut out = Out::stream(&mut made, "the output".to_owned());
    out.payload(tensor, payload)?;
    out.finish()?;
    Ok(made.into())
}

#[cfg(test)]
mod tests {
    use super::{Parts, split_model};
    use crate::file::ModelFile;
    use crate::proto::tensor_proto::DataType;
    use crate::proto::{GraphProto, ModelProto, TensorProto};
    use crate::write::{Payloads, WriteOptions};
    use bytes::Bytes;
    use prost::Message as _;

    fn tensor(name: &str, raw: Bytes, bytes: usize) -> TensorProto {
        TensorProto {
            name: Some(name.to_owned()),
            dims: vec![bytes as i64],
            data_type: Some(DataType::Uint8 as i32),
            raw_data: Some(raw),
            ..TensorProto::default()
        }
    }

    fn model(initializer: Vec<TensorProto>) -> ModelProto {
        ModelProto { graph: Some(GraphProto { initializer, ..GraphProto::default() }), ..ModelProto::default() }
    }

    fn read(parts: &Parts) -> ModelFile {
        let find = |location: &str| parts.data.iter().find(|(name, _)| name == location).unwrap().1.clone();
        ModelFile::from_bytes_with(parts.model.clone().into(), |location| Ok(find(location))).unwrap()
    }

    #[test]
    fn large_data_is_apart_and_only_made_data_is_new() {
        let raw = Bytes::from(vec![7_u8; 100]);
        let mut payloads = Payloads::new();
        let ticket = payloads.defer_with(80, |out| out.write_all(&[3; 80]));
        let small = payloads.defer_with(4, |out| out.write_all(&[5; 4]));
        let tensors = [
            tensor("shared", raw.clone(), 100),
            tensor("twice", raw.clone(), 100),
            tensor("made", ticket, 80),
            tensor("small", small, 4),
            tensor("plain", Bytes::from_static(&[9; 8]), 8),
        ];
        let options = WriteOptions::default().payloads(&payloads);
        let parts = split_model(&model(tensors.to_vec()), 64, &options).unwrap();
        let names: Vec<&str> = parts.data.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, ["relayout.part.0", "relayout.part.1"]);
        assert_eq!(parts.data[0].1.as_ptr(), raw.as_ptr(), "it is the caller's memory");
        let file = read(&parts);
        let bytes = |at: usize| file.tensor_bytes(&file.proto.graph.as_ref().unwrap().initializer[at]).unwrap();
        let (made, small, plain) = (&[3; 80][..], &[5; 4][..], &[9; 8][..]);
        for (at, want) in [&raw[..], &raw[..], made, small, plain].into_iter().enumerate() {
            assert_eq!(bytes(at), want, "{at}");
        }
    }

    #[test]
    fn what_is_kept_is_made_once() {
        let made = std::sync::Arc::new(std::sync::atomic::AtomicUsize::new(0));
        let mut payloads = Payloads::new();
        let count = std::sync::Arc::clone(&made);
        let ticket = payloads.defer_with(80, move |out| {
            count.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
            out.write_all(&[3; 80])
        });
        payloads.keep();
        let proto = model(vec![tensor("made", ticket, 80)]);
        let options = WriteOptions::default().payloads(&payloads);
        let parts = split_model(&proto, 64, &options).unwrap();
        let mut whole = Vec::new();
        crate::write::write_model_to(&proto, &mut whole, &options).unwrap();
        assert_eq!((&parts.data[0].1[..], made.load(std::sync::atomic::Ordering::Relaxed)), (&[3; 80][..], 1));
        assert!(whole.windows(80).any(|bytes| bytes == [3; 80]));
    }

    #[test]
    fn a_thread_of_the_pool_makes_parts_alone() {
        let makers = std::sync::Arc::new(std::sync::Mutex::new(Vec::new()));
        let mut payloads = Payloads::new();
        let mut slow = || {
            let makers = std::sync::Arc::clone(&makers);
            payloads.defer_with(80, move |out| {
                std::thread::sleep(std::time::Duration::from_millis(1));
                makers.lock().unwrap().push(std::thread::current().id());
                out.write_all(&[3; 80])
            })
        };
        let tensors: Vec<TensorProto> = (0..16).map(|_| tensor("made", slow(), 80)).collect();
        let (proto, options) = (model(tensors), WriteOptions::default().payloads(&payloads));
        let made = || split_model(&proto, 64, &options).unwrap();
        let pool = rayon::ThreadPoolBuilder::new().num_threads(2).build().unwrap();
        let (caller, parts) = pool.install(|| (std::thread::current().id(), made()));
        assert_eq!(*makers.lock().unwrap(), [caller; 16]);
        assert_eq!(made(), parts, "as elsewhere");
    }

    #[test]
    fn a_model_of_no_large_data_is_one_part() {
        let plain = model(vec![tensor("w", Bytes::from_static(&[1; 63]), 63)]);
        let parts = split_model(&plain, 64, &WriteOptions::default()).unwrap();
        assert_eq!((parts.model, parts.data.len()), (plain.encode_to_vec(), 0));
    }
}
