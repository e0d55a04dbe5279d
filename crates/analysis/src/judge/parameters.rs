//! The conditions of a cell of the judged JSON, besides its own fields.

use pagewise_model::{
    Bytes, Cell, Consume, Content, Descriptor, DeviceCap, HostSettings, KernelSettings, ScheduledRate,
    SyncCall, Work,
};
use serde::Serialize;

/// Conditions that are not fields of the cell itself; `None` if they do not apply to the workload.
#[derive(Clone, Debug, PartialEq, Serialize, schemars::JsonSchema)]
pub struct Parameters {
    /// Size of one read.
    pub read_bytes: Option<Bytes>,
    /// Reads in one operation.
    pub reads_per_op: Option<u32>,
    /// Offsets are multiples of this.
    pub align_bytes: Option<Bytes>,
    /// Consumption of the bytes that are read.
    pub consume: Option<Consume>,
    /// Size of a record of `append`.
    pub record_bytes: Option<Bytes>,
    /// Size of a block of `fill` or `update`.
    pub block_bytes: Option<Bytes>,
    /// Number of blocks that are overwritten in no order.
    pub updates: Option<u32>,
    /// Number of other blocks that are read before each of them.
    pub reads_per_update: Option<u32>,
    /// Reads, records or updates per second at which operations are due.
    pub rate: Option<u64>,
    /// The actor at work meanwhile, as typed.
    pub beside: Option<String>,
    /// Number of passes over the ring.
    pub passes: Option<u32>,
    /// Time by which written bytes must be on the device: `none`, `end`, `every:SIZE`, `commit`.
    pub sync: Option<String>,
    /// The call that puts them there; `None` without syncs.
    pub sync_call: Option<SyncCall>,
    /// Content of a file that is read.
    pub content: Option<Content>,
    /// Ownership of the open file.
    pub descriptor: Descriptor,
    /// Distribution of offsets.
    pub skew: Option<String>,
    /// True if offsets follow from the data before them.
    pub dependent: Option<bool>,
    /// Of a replay: sum of the gaps between its reads that are kept; 0 if it is as fast as
    /// possible.
    pub gaps_ns: Option<u64>,
    /// Rate limit of the device.
    pub device_cap: Option<DeviceCap>,
    /// Settings of the kernel.
    #[serde(flatten)]
    pub kernel: KernelSettings,
    /// CPUs that the worker was confined to.
    pub cpus: Option<String>,
    /// Node of the pages, relative to the worker.
    pub numa: Option<String>,
}

impl Parameters {
    pub(crate) fn of(cell: &Cell) -> Self {
        let conditions = &cell.conditions;
        let HostSettings { memory_limit_bytes: _, worker_bytes: _, device_cap, cpus, numa, kernel } =
            &conditions.host_settings;
        let (reads, writes) = (conditions.reads(), conditions.writes());
        let updates = writes.filter(|writes| writes.is_update());
        let record = |of_blocks: bool| {
            let is_asked = conditions.workload().writes_blocks() == of_blocks;
            writes.filter(|_| is_asked).map(|writes| writes.record_bytes)
        };
        Self {
            read_bytes: reads.map(|reads| reads.read_bytes),
            reads_per_op: reads.map(|reads| reads.reads_per_op),
            align_bytes: reads.map(|reads| reads.align_bytes),
            consume: conditions.consume(),
            record_bytes: record(false),
            block_bytes: record(true),
            updates: updates.and_then(|writes| writes.updates),
            reads_per_update: updates.map(|writes| writes.reads_each),
            rate: conditions.rate.map(ScheduledRate::per_second),
            beside: conditions.beside.as_ref().map(ToString::to_string),
            passes: writes.map(|writes| writes.passes),
            sync: writes.map(|writes| writes.sync.to_string()),
            sync_call: cell.sync_call(),
            content: writes.is_none().then_some(conditions.content),
            descriptor: conditions.descriptor,
            skew: reads.map(|reads| reads.skew.to_string()),
            dependent: reads.map(|reads| reads.dependent),
            gaps_ns: matches!(conditions.work, Work::Replay(_)).then(|| conditions.gaps_ns()),
            device_cap: *device_cap,
            kernel: kernel.clone(),
            cpus: cpus.as_ref().map(ToString::to_string),
            numa: numa.map(|numa| numa.to_string()),
        }
    }
}
