//! The axes: one entry each, with its values and its workloads.
//!
//! An entry is an argument of the command line, a key of plan files and a list that a layer may
//! choose. It is `of all` workloads, or of those whose facts name it. An axis that applies to no
//! workload of a plan is an error, and is not ignored.

use std::collections::BTreeSet;
use std::fmt::Display;
use std::str::FromStr;

use anyhow::{Result, bail};
use clap::builder::{PossibleValue, TypedValueParser};
use pagewise_model::groups::distinct;
use pagewise_model::method::options::{self, MethodOption};
use pagewise_model::{
    Actor, Bytes, CacheState, Consume, CpuList, Descriptor, DeviceCap, HostSettings, Method, Numa, Plan,
    ScheduledRate, Skew, Sync, Workload,
};

use super::matrix::vary;
use super::{Layer, OrNone, OrUsual, Size, Threads};

macro_rules! axes {
    ($($(#[$meta:meta])* $name:ident: $type:ty $(, of $all:ident)? $(, sets $($field:ident).+)?;)+) => {
        /// The axes chosen by a layer; `None`: left to the layers below.
        #[derive(Clone, Debug, Default, PartialEq, clap::Args)]
        pub struct Axes { $($(#[$meta])* pub $name: Option<Vec<$type>>,)+ }

        impl Axes {
            /// The keys in plan files.
            pub const NAMES: &[&str] = &[$(stringify!($name)),+];

            /// Choose the axis named `key`; false if there is none.
            pub fn set(&mut self, key: &str, texts: &[String]) -> Result<bool> {
                match key {
                    $(stringify!($name) => self.$name = Some(parsed(texts)?),)+
                    _ => return Ok(false),
                }
                Ok(true)
            }

            /// The chosen axes, each with its workloads.
            fn chosen(&self) -> impl Iterator<Item = (&'static str, Vec<Workload>)> {
                let all = [$((stringify!($name), axes!(@is_of $($all)?), self.$name.is_some())),+];
                let chosen = all.into_iter().filter(|(_, _, is_chosen)| *is_chosen);
                chosen.map(|(name, is_of_all, _)| {
                    (name, if is_of_all { Workload::ALL.to_vec() } else { Workload::with_axis(name) })
                })
            }

            /// Each of `all` with each value of the settings that layers choose for a workload.
            pub fn vary_settings(
                layers: &[&Layer],
                workload: Workload,
                mut all: Vec<HostSettings>,
            ) -> Result<Vec<HostSettings>> {
                $($(
                    let chosen = choose(layers, workload, |axes| &axes.$name).unwrap_or(vec![OrNone(None)]);
                    all = vary(all, &chosen, |settings, value| settings.$($field).+ = value.0)?;
                )?)+
                Ok(all)
            }

            /// The settings by the names of their arguments, with the typed values of chosen ones
            /// and the values in a plan.
            pub fn settings(&self, plan: &Plan) -> Vec<Setting> {
                vec![$($(Setting {
                    argument: concat!("--", stringify!($name)).replace('_', "-"),
                    typed: self.$name.as_ref().map(|values| typed(values.iter().filter_map(|value| value.0.as_ref()))),
                    of_plan: typed(plan.cells.iter().filter_map(|cell| cell.conditions.host_settings.$($field).+.as_ref())),
                },)?)+]
            }

            /// The axes without the settings.
            pub fn without_settings(mut self) -> Self {
                $($(self.$name = axes!(@none $($field).+);)?)+
                self
            }
        }
    };
    (@none $($field:ident).+) => { None };
    (@is_of all) => { true };
    (@is_of) => { false };
}

axes! {
    /// Methods, as in mmap:random+prefetch,pread,uring:direct+depth=32
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_parser = OneMethod, hide_possible_values = true)]
    methods: Method, of all;
    /// Threads: numbers, or cpus
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    threads: Threads, of all;
    /// Size of the dataset; with --memory also as a multiple of the cache that fits under it, as in
    /// 1.5x
    #[arg(long, value_name = "SIZES", value_delimiter = ',')]
    file_size: Size, of all;
    /// Read only the first part of the file, this large; multiples of the cache as above
    #[arg(long, value_name = "SIZES", value_delimiter = ',')]
    span: Size;
    /// Size of a read
    #[arg(long, value_name = "SIZES", value_delimiter = ',')]
    read_size: Bytes;
    /// Reads in one operation
    #[arg(long, value_name = "COUNTS", value_delimiter = ',')]
    reads_per_op: u32;
    /// Offsets are multiples of this; 1B for unaligned reads
    #[arg(long, value_name = "SIZES", value_delimiter = ',')]
    align: Bytes;
    /// Consumption of the bytes: touch one word of each page, sum all, or count lines
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    consume: Consume;
    /// append: size of a record
    #[arg(long, value_name = "SIZES", value_delimiter = ',')]
    record_size: Bytes;
    /// append: number of passes over the ring file
    #[arg(long, value_name = "COUNTS", value_delimiter = ',')]
    passes: u32;
    /// fill, update: size of a block
    #[arg(long, value_name = "SIZES", value_delimiter = ',')]
    block_size: Bytes;
    /// update: number of blocks that a sample overwrites
    #[arg(long, value_name = "COUNTS", value_delimiter = ',')]
    updates: u32;
    /// update: number of other blocks that are read before each of them, by the same method: with
    /// 19, 95 % of all accesses are reads
    #[arg(long, value_name = "COUNTS", value_delimiter = ',')]
    reads_per_update: u32;
    /// append, fill, update: time by which written bytes must be on the device: never (none), at
    /// the end (end), at intervals of bytes (every:1MiB); append, update: each record or block
    /// before the next one of its thread (commit)
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    sync: Sync;
    /// append, fill, update: call that puts written bytes on the device: fdatasync, fsync, msync,
    /// sync_file_range (not durable), RWF_DSYNC, O_DSYNC; or usual, which is msync of a mapping and
    /// fdatasync otherwise
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    sync_call: OrUsual;
    /// Page cache at the start of a sample: cold, warm, as-is; read-once: the state after the
    /// whole file was read once; recorded: of a replay, the pages that its program found there;
    /// cold-start measures the time to warm. append, fill: cold is a new file. Any other file to
    /// write was written before, and a warm one lies in folios as large as its filesystem makes
    /// them: a store through a mapping makes a whole folio dirty. update: warm-small has folios
    /// of one page, as after page faults
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    cache: CacheState, of all;
    /// Descriptor and mapping of threads: shared, or one each (per-thread)
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    descriptor: Descriptor;
    /// Distribution of offsets: uniform, or zipf with its exponent, as in zipf:0.99
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    skew: Skew;
    /// Reads, records or updates per second, of all threads together, as in 5k,20k. They are due at
    /// moments that do not depend on how long each takes; latency counts from there, and methods
    /// are ranked by it. Or none: each as soon as the one before it is done. append: with --sync
    /// commit
    #[arg(long, value_name = "RATES", value_delimiter = ',')]
    rate: OrNone<ScheduledRate>;
    /// Actor at work meanwhile, on a file of its own and under the same memory limit: scan:METHOD
    /// (front to back, again and again), read:METHOD (random reads) or append:METHOD (records, each
    /// on the device before the next one), with rate=, as in scan:pread:noreuse,rate=200MiB/s or
    /// read:mmap,rate=5k, or rate=max; size= of a read or record and file= may follow; file=same
    /// is the measured file. Or none: alone. Repeat for an axis
    #[arg(long, value_name = "ACTOR")]
    beside: OrNone<Actor>, of all;
    /// Each offset within an operation follows from the data of the read before
    #[arg(long, value_name = "LIST", value_delimiter = ',', num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    dependent: bool;
    /// replay: leave out the gaps between the reads, in which the program did something else
    #[arg(long, value_name = "LIST", value_delimiter = ',', num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    as_fast_as_possible: bool;

    /// Memory that worker and page cache may use together, limited by a cgroup; or none
    #[arg(long, value_name = "SIZES", value_delimiter = ',', help_heading = "Host settings")]
    memory: OrNone<Bytes>, of all;
    /// Rate limit of the device, as in read-iops=2000,read-bandwidth=50MiB/s; or microsd, emmc,
    /// io2-20k, none. Repeat for an axis
    #[arg(long, value_name = "CAP", help_heading = "Host settings")]
    device_cap: OrNone<DeviceCap>, of all, sets device_cap;
    /// Readahead of the device, restored afterwards; or none to leave it unchanged
    #[arg(long, value_name = "SIZES", value_delimiter = ',', help_heading = "Host settings")]
    readahead: OrNone<Bytes>, of all, sets kernel.readahead_bytes;
    /// The multi-generational LRU of the whole machine: on or off, restored afterwards; or none to
    /// leave it unchanged
    #[arg(long, value_name = "LIST", value_delimiter = ',', help_heading = "Host settings")]
    mglru: OrNone<pagewise_model::Switch>, of all, sets kernel.mglru;
    /// CPUs of the worker, as in 0-3,8. Repeat for an axis
    #[arg(long, value_name = "CPUS", help_heading = "Host settings")]
    cpus: OrNone<CpuList>, of all, sets cpus;
    /// Node of the file's pages, relative to the worker: same, other, or the number of a NUMA node
    #[arg(long, value_name = "LIST", value_delimiter = ',', help_heading = "Host settings")]
    numa: OrNone<Numa>, of all, sets numa;
}

/// A setting of the machine.
pub struct Setting {
    /// Argument on the command line.
    pub argument: String,
    /// Each typed value, without repetition; `none` requests nothing.
    pub typed: Option<BTreeSet<String>>,
    /// Each value in cells of the plan, without repetition, as typed.
    pub of_plan: BTreeSet<String>,
}

fn typed<T: Display>(values: impl Iterator<Item = T>) -> BTreeSet<String> {
    values.map(|value| value.to_string()).collect()
}

fn parsed<T: FromStr<Err: Display>>(texts: &[String]) -> Result<Vec<T>> {
    let mut values = Vec::new();
    for text in texts {
        match text.parse::<T>() {
            Ok(value) => values.push(value),
            Err(error) if error.to_string().contains(text) => bail!("{error}"),
            Err(error) => bail!("invalid value '{text}': {error}"),
        }
    }
    Ok(values)
}

/// Parser of a method, with completions for shells.
#[derive(Clone)]
struct OneMethod;

impl TypedValueParser for OneMethod {
    type Value = Method;

    fn parse_ref(
        &self,
        command: &clap::Command,
        argument: Option<&clap::Arg>,
        value: &std::ffi::OsStr,
    ) -> Result<Method, clap::Error> {
        (|text: &str| text.parse::<Method>()).parse_ref(command, argument, value)
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        let with_option = |access: &'static str| {
            let is_method = |text: &String| text.parse::<Method>().is_ok();
            MethodOption::TABLE.iter().map(move |entry| format!("{access}:{}", entry.word)).filter(is_method)
        };
        let accesses = options::usage_lines().into_iter().map(|(access, _)| access);
        let all =
            accesses.flat_map(move |access| std::iter::once(access.to_string()).chain(with_option(access)));
        Some(Box::new(all.map(PossibleValue::new)))
    }
}

/// Refuse an axis in `layer` that applies to none of the plan's workloads.
pub fn ensure_all_used(layer: &Layer, workloads: &[Workload]) -> Result<()> {
    for (name, of) in layer.axes.chosen() {
        if !workloads.iter().any(|workload| of.contains(workload)) {
            let have = if workloads.len() == 1 { "has" } else { "have" };
            bail!("'{name}' is for {}: {} {have} none", words(&of), words(workloads));
        }
    }
    for (workload, axes) in &layer.by_workload {
        if let Some((name, of)) = axes.chosen().find(|(_, of)| !of.contains(workload)) {
            bail!("in [{workload}]: '{name}' is for {}", words(&of));
        }
    }
    Ok(())
}

fn words(workloads: &[Workload]) -> String {
    workloads.iter().map(|workload| workload.name()).collect::<Vec<_>>().join(", ")
}

/// The choice of the topmost layer that has one for an axis; keys under the workload's name come
/// first.
pub(crate) fn choose<T: Clone + PartialEq>(
    layers: &[&Layer],
    workload: Workload,
    pick: impl Fn(&Axes) -> &Option<Vec<T>>,
) -> Option<Vec<T>> {
    layers
        .iter()
        .flat_map(|layer| [layer.by_workload.get(&workload), Some(&layer.axes)])
        .flatten()
        .find_map(|axes| pick(axes).clone())
        .map(distinct)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_axis_of_a_workload_is_an_entry() {
        for workload in Workload::ALL {
            for axis in workload.facts().axes {
                assert!(Axes::NAMES.contains(axis), "{workload}: {axis}");
            }
        }
        let of_some = ["read_size", "passes", "block_size"].map(Workload::with_axis);
        assert_eq!(of_some.map(|workloads| workloads.len()), [2, 1, 2]);
    }
}
