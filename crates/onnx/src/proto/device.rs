//! Placement of nodes and tensors on several devices.

/// A set of devices that a model may be spread over.
#[derive(Clone, PartialEq, prost::Message)]
pub struct DeviceConfigurationProto {
    /// Name that nodes refer to.
    #[prost(string, optional, tag = "1")]
    pub name: Option<String>,
    /// Number of devices.
    #[prost(int32, optional, tag = "2")]
    pub num_devices: Option<i32>,
    /// Names of the devices; none or `num_devices`.
    #[prost(string, repeated, tag = "3")]
    pub device: Vec<String>,
}

/// How one node is spread over a configuration's devices.
#[derive(Clone, PartialEq, prost::Message)]
pub struct NodeDeviceConfigurationProto {
    /// Name of the [`DeviceConfigurationProto`].
    #[prost(string, optional, tag = "1")]
    pub configuration_id: Option<String>,
    /// How its inputs and outputs are cut.
    #[prost(message, repeated, tag = "2")]
    pub sharding_spec: Vec<ShardingSpecProto>,
    /// Pipeline stage.
    #[prost(int32, optional, tag = "3")]
    pub pipeline_stage: Option<i32>,
}

/// How one input or output is cut or repeated over devices.
#[derive(Clone, PartialEq, prost::Message)]
pub struct ShardingSpecProto {
    /// The input or output.
    #[prost(string, optional, tag = "1")]
    pub tensor_name: Option<String>,
    /// Devices, or groups of them.
    #[prost(int64, repeated, packed = "false", tag = "2")]
    pub device: Vec<i64>,
    /// Groups: an entry's key in `device` stands for all its devices.
    #[prost(message, repeated, tag = "3")]
    pub index_to_device_group_map: Vec<IntIntListEntryProto>,
    /// How each axis is cut.
    #[prost(message, repeated, tag = "4")]
    pub sharded_dim: Vec<ShardedDimProto>,
}

/// How one axis is cut.
#[derive(Clone, PartialEq, prost::Message)]
pub struct ShardedDimProto {
    /// The axis; negative counts from the last.
    #[prost(int64, optional, tag = "1")]
    pub axis: Option<i64>,
    /// The cuts; several if the axis is a fusion of several.
    #[prost(message, repeated, tag = "2")]
    pub simple_sharding: Vec<SimpleShardedDimProto>,
}

/// N blocks in M shards.
#[derive(Clone, PartialEq, prost::Message)]
pub struct SimpleShardedDimProto {
    /// N; absent if unknown.
    #[prost(oneof = "simple_sharded_dim_proto::Dim", tags = "1, 2")]
    pub dim: Option<simple_sharded_dim_proto::Dim>,
    /// M.
    #[prost(int64, optional, tag = "3")]
    pub num_shards: Option<i64>,
}

/// A key and a list.
#[derive(Clone, PartialEq, prost::Message)]
pub struct IntIntListEntryProto {
    /// The key.
    #[prost(int64, optional, tag = "1")]
    pub key: Option<i64>,
    /// The list.
    #[prost(int64, repeated, packed = "false", tag = "2")]
    pub value: Vec<i64>,
}

/// Types nested in the message of this name.
pub mod simple_sharded_dim_proto {
    /// N; absent if unknown.
    #[derive(Clone, PartialEq, prost::Oneof)]
    pub enum Dim {
        /// A known N.
        #[prost(int64, tag = "1")]
        DimValue(i64),
        /// A symbolic N.
        #[prost(string, tag = "2")]
        DimParam(String),
    }
}
