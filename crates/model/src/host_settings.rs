//! Settings of the machine while a cell is measured: limits, caps, readahead, placement.
//!
//! `None` leaves a setting unchanged. The supervisor applies settings, reads them back in every
//! sample, and restores them after the run.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::units::Bytes;
use crate::words::{as_text, words};

/// Requested value of a setting of the kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wanted {
    /// The value as read back.
    pub value: String,
    /// The value as typed.
    pub typed: String,
}

/// Text of a setting in a field of a table: bytes as a number, everything else as typed.
trait Field {
    fn field(&self) -> String;
}

macro_rules! host_settings {
    (
        of_worker { $($(#[$doc:meta])* $name:ident: $type:ty, $word:literal $(, column $column:literal)?;)+ }
        of_kernel {
            $($(#[$kernel_doc:meta])* $kernel:ident: $kernel_type:ty, $kernel_word:literal, column $kernel_column:literal;)+
        }
    ) => {
        /// Settings of the machine while a cell is measured.
        #[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, schemars::JsonSchema)]
        pub struct HostSettings {
            $($(#[$doc])* #[serde(default, skip_serializing_if = "Option::is_none")] pub $name: Option<$type>,)+
            /// Settings of the kernel.
            #[serde(flatten)]
            pub kernel: KernelSettings,
        }

        /// Settings of the kernel, which apply to the whole machine.
        #[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, schemars::JsonSchema)]
        #[serde(default)]
        pub struct KernelSettings { $($(#[$kernel_doc])* pub $kernel: Option<$kernel_type>,)+ }

        impl KernelSettings {
            /// Each setting with its requested value.
            pub fn wanted(&self) -> Vec<(&'static str, Option<Wanted>)> {
                vec![$(($kernel_word, self.$kernel.as_ref().map(|value| Wanted {
                    value: value.field(),
                    typed: value.to_string(),
                }))),+]
            }
        }

        /// Values of settings of the kernel as read; `None` if unreadable.
        #[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
        #[serde(default)]
        pub struct SettingsInForce {
            $($(#[$kernel_doc])* #[serde(skip_serializing_if = "Option::is_none")] pub $kernel: Option<String>,)+
        }

        impl SettingsInForce {
            /// Collect the values that `read` returns for the names of the settings.
            pub fn read(read: impl Fn(&str) -> Option<String>) -> Self {
                Self { $($kernel: read($kernel_word)),+ }
            }

            /// The value of the setting of this name.
            pub fn get(&self, name: &str) -> Option<&String> {
                match name {
                    $($kernel_word => self.$kernel.as_ref(),)+
                    _ => None,
                }
            }
        }

        /// Text in ids: `,memory=128MiB,cap=microsd`; nothing where nothing is set.
        impl fmt::Display for HostSettings {
            fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                $(if let Some(value) = &self.$name { write!(formatter, ",{}={value}", $word)?; })+
                $(if let Some(value) = &self.kernel.$kernel { write!(formatter, ",{}={value}", $kernel_word)?; })+
                Ok(())
            }
        }

        impl HostSettings {
            /// Names of columns.
            pub const COLUMNS: &[&str] = &[$($($column,)?)+ $($kernel_column,)+];

            /// The values in the order of [`HostSettings::COLUMNS`]; empty for unchanged settings.
            pub fn fields(&self) -> Vec<String> {
                vec![
                    $($(host_settings!(@field self.$name, $column),)?)+
                    $(host_settings!(@field self.kernel.$kernel, $kernel_column),)+
                ]
            }
        }
    };
    (@field $value:expr, $column:literal) => { $value.as_ref().map_or_else(String::new, Field::field) };
}

host_settings! {
    of_worker {
        /// Memory that the worker and the page cache may use together.
        memory_limit_bytes: Bytes, "memory", column "memory_limit_bytes";
        /// Under a memory limit: own memory of the largest worker of the comparison, if that is not
        /// a native one.
        worker_bytes: Bytes, "worker";
        /// Rate limit of the block device.
        device_cap: DeviceCap, "cap", column "device_cap";
        /// CPUs that the worker may use.
        cpus: CpuList, "cpus", column "cpus";
        /// Node of the file's pages, relative to the worker.
        numa: Numa, "numa", column "numa";
    }
    of_kernel {
        /// Readahead of the device.
        readahead_bytes: Bytes, "readahead", column "set_readahead_bytes";
        /// The multi-generational LRU of the whole machine.
        mglru: Switch, "mglru", column "set_mglru";
    }
}

impl HostSettings {
    /// True if every setting is left unchanged.
    pub fn is_untouched(&self) -> bool {
        *self == Self::default()
    }

    /// True if workers need a cgroup.
    pub fn needs_group(&self) -> bool {
        self.memory_limit_bytes.is_some() || self.device_cap.is_some()
    }
}

impl Field for Bytes {
    fn field(&self) -> String {
        self.0.to_string()
    }
}

macro_rules! field_as_typed {
    ($($type:ty),+) => {$(
        impl Field for $type {
            fn field(&self) -> String {
                self.to_string()
            }
        }
    )+};
}

field_as_typed!(DeviceCap, CpuList, Numa, Switch);

words! {
    /// A switch.
    Switch, "state of a switch" {
        /// Enabled.
        On = "on",
        /// Disabled.
        Off = "off",
    }
}

/// A rate limit of a block device. It limits the rate but does not slow individual requests between
/// the pauses that the kernel makes, so latencies are not reported under it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, schemars::JsonSchema)]
pub struct DeviceCap {
    /// Read requests per second.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub read_iops: Option<u64>,
    /// Bytes read per second.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub read_bytes_per_second: Option<Bytes>,
}

/// Rates of machines in published studies.
pub const NAMED_CAPS: &[(&str, DeviceCap)] = &[
    // 21.8 MiB/s.
    ("microsd", DeviceCap { read_iops: None, read_bytes_per_second: Some(Bytes(22_858_957)) }),
    ("emmc", DeviceCap { read_iops: None, read_bytes_per_second: Some(Bytes::mib(105)) }),
    ("io2-20k", DeviceCap { read_iops: Some(20_000), read_bytes_per_second: None }),
];

/// The name if it has one, else `read-iops=2000,read-bandwidth=50MiB/s`; parses back.
impl fmt::Display for DeviceCap {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some((name, _)) = NAMED_CAPS.iter().find(|(_, cap)| cap == self) {
            return formatter.pad(name);
        }
        let iops = self.read_iops.map(|iops| format!("read-iops={iops}"));
        let bandwidth = self.read_bytes_per_second.map(|bytes| format!("read-bandwidth={bytes}/s"));
        formatter.pad(&[iops, bandwidth].into_iter().flatten().collect::<Vec<_>>().join(","))
    }
}

impl FromStr for DeviceCap {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if let Some((_, cap)) = NAMED_CAPS.iter().find(|(name, _)| *name == text) {
            return Ok(*cap);
        }
        let mut cap = DeviceCap { read_iops: None, read_bytes_per_second: None };
        for part in text.split(',') {
            match part.trim().split_once('=') {
                Some(("read-iops", value)) if cap.read_iops.is_none() => {
                    let iops = value.parse().ok().filter(|iops| *iops > 0);
                    cap.read_iops = Some(iops.ok_or_else(|| {
                        format!("invalid read-iops '{value}': write a whole number of at least 1")
                    })?);
                }
                Some(("read-bandwidth", value)) if cap.read_bytes_per_second.is_none() => {
                    let size = value.strip_suffix("/s").ok_or_else(|| {
                        format!("invalid read-bandwidth '{value}': write bytes per second, as in 50MiB/s")
                    })?;
                    let bytes: Bytes = size.parse().map_err(|error| format!("{error}"))?;
                    if bytes.0 == 0 {
                        return Err(format!("invalid read-bandwidth '{value}': write more than 0"));
                    }
                    cap.read_bytes_per_second = Some(bytes);
                }
                _ => {
                    let names: Vec<&str> = NAMED_CAPS.iter().map(|(name, _)| *name).collect();
                    return Err(format!(
                        "invalid device cap '{text}': write read-iops=2000, read-bandwidth=50MiB/s, both with a comma, \
                         or one of {}",
                        names.join(", ")
                    ));
                }
            }
        }
        Ok(cap)
    }
}

/// CPUs by number, ascending, each once.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct CpuList(Vec<u32>);

/// More CPUs than Linux supports.
const MAX_CPU: u32 = 8191;

impl CpuList {
    /// A list of these; `None` if empty.
    pub fn new(mut cpus: Vec<u32>) -> Option<Self> {
        cpus.sort_unstable();
        cpus.dedup();
        (!cpus.is_empty()).then_some(Self(cpus))
    }

    /// The numbers, ascending.
    pub fn numbers(&self) -> &[u32] {
        &self.0
    }
}

/// As the kernel writes it: `0-3,8`.
impl fmt::Display for CpuList {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut ranges: Vec<(u32, u32)> = Vec::new();
        for &cpu in &self.0 {
            match ranges.last_mut() {
                Some((_, last)) if *last + 1 == cpu => *last = cpu,
                _ => ranges.push((cpu, cpu)),
            }
        }
        let texts: Vec<String> = ranges
            .into_iter()
            .map(|(first, last)| if first == last { first.to_string() } else { format!("{first}-{last}") })
            .collect();
        formatter.pad(&texts.join(","))
    }
}

impl FromStr for CpuList {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let malformed = || format!("invalid list of CPUs '{text}': write numbers and ranges, as in 0-3,8");
        let mut ranges = Vec::new();
        for part in text.trim().split(',') {
            let (first, last) = part.split_once('-').unwrap_or((part, part));
            let first: u32 = first.trim().parse().map_err(|_| malformed())?;
            let last: u32 = last.trim().parse().map_err(|_| malformed())?;
            if first > last || last > MAX_CPU {
                return Err(malformed());
            }
            ranges.push((first, last));
        }
        // Each number is expanded once only, since a text may name all CPUs again in each of its
        // parts.
        ranges.sort_unstable();
        let mut cpus: Vec<u32> = Vec::new();
        for (first, last) in ranges {
            let from = cpus.last().map_or(first, |highest| first.max(highest + 1));
            cpus.extend(from..=last);
        }
        CpuList::new(cpus).ok_or_else(malformed)
    }
}

/// Node of the file's pages, relative to the worker.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Numa {
    /// On the node whose CPUs the worker uses.
    Same,
    /// On another node.
    Other,
    /// On this node.
    Node(u32),
}

impl fmt::Display for Numa {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Numa::Same => formatter.pad("same"),
            Numa::Other => formatter.pad("other"),
            Numa::Node(node) => formatter.pad(&node.to_string()),
        }
    }
}

impl FromStr for Numa {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "same" => Ok(Numa::Same),
            "other" => Ok(Numa::Other),
            number => number.parse().map(Numa::Node).map_err(|_| {
                format!("invalid NUMA placement '{text}': write same, other or the number of a node")
            }),
        }
    }
}

/// Distribution of the offsets of random reads over the span.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Skew {
    /// All positions equally likely.
    #[default]
    Uniform,
    /// The k-th most popular position in proportion to 1 / k^theta; popular positions are scattered
    /// over the span.
    Zipf {
        /// Theta in thousandths.
        theta_thousandths: u32,
    },
}

const MAX_THETA: f64 = 10.0;

impl fmt::Display for Skew {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Skew::Uniform => formatter.pad("uniform"),
            Skew::Zipf { theta_thousandths } => {
                formatter.pad(&format!("zipf:{}", f64::from(*theta_thousandths) / 1000.0))
            }
        }
    }
}

impl FromStr for Skew {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text == "uniform" {
            return Ok(Skew::Uniform);
        }
        text.strip_prefix("zipf:")
            .and_then(|theta| theta.parse::<f64>().ok())
            .filter(|theta| *theta >= 0.001 && *theta <= MAX_THETA)
            .map(|theta| Skew::Zipf { theta_thousandths: (theta * 1000.0).round() as u32 })
            .ok_or_else(|| {
                format!("invalid skew '{text}': write uniform, or zipf: with a number from 0.001 to {MAX_THETA}, as in zipf:0.99")
            })
    }
}

as_text!(CpuList, Numa, Skew);

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn caps_are_named_or_written_out() {
        for text in ["microsd", "emmc", "io2-20k", "read-iops=2000", "read-iops=5,read-bandwidth=50MiB/s"] {
            assert_eq!(text.parse::<DeviceCap>().expect(text).to_string(), text);
        }
        for nonsense in [
            "",
            "fast",
            "read-iops=0",
            "read-iops=1,read-iops=2",
            "read-bandwidth=50MiB",
            "read-bandwidth=0B/s",
            "read-bandwidth=50/s",
            "write-iops=3",
            "read-iops=-1",
            "read-iops",
        ] {
            assert!(nonsense.parse::<DeviceCap>().is_err(), "{nonsense:?} was taken");
        }
    }

    #[test]
    fn cpus_are_written_as_the_kernel_does() {
        for (text, printed) in [("0", "0"), ("1,0", "0-1"), ("0-3,8", "0-3,8"), ("2,2,4", "2,4")] {
            assert_eq!(text.parse::<CpuList>().expect(text).to_string(), printed);
        }
        for nonsense in ["", "a", "3-1", "0,", "-1", "0-99999999"] {
            assert!(nonsense.parse::<CpuList>().is_err(), "{nonsense:?} was taken");
        }
    }

    #[test]
    fn cpus_that_are_named_again_take_no_more_memory() {
        let text = ["0-8191"; 100_000].join(",");
        assert_eq!(text.parse::<CpuList>().expect("a list").numbers().len(), 8192);
    }

    #[test]
    fn skews_and_nodes_print_as_typed() {
        for text in ["uniform", "zipf:0.99", "zipf:1.2", "zipf:1"] {
            assert_eq!(text.parse::<Skew>().expect(text).to_string(), text);
        }
        for nonsense in ["zipf", "zipf:", "zipf:0", "zipf:-1", "zipf:nan", "zipf:11", "flat"] {
            assert!(nonsense.parse::<Skew>().is_err(), "{nonsense:?} was taken");
        }
        for text in ["same", "other", "1"] {
            assert_eq!(text.parse::<Numa>().expect(text).to_string(), text);
        }
        assert!("near".parse::<Numa>().is_err());
    }

    #[test]
    fn what_is_untouched_leaves_no_trace_in_ids() {
        assert_eq!(HostSettings::default().to_string(), "");
        let some = HostSettings {
            memory_limit_bytes: Some(Bytes::mib(128)),
            device_cap: Some(NAMED_CAPS[0].1),
            ..HostSettings::default()
        };
        assert_eq!(some.to_string(), ",memory=128MiB,cap=microsd");
        let text = serde_json::to_string(&some).expect("json");
        assert_eq!(serde_json::from_str::<HostSettings>(&text).expect("back"), some);
    }

    proptest! {
        #[test]
        fn a_list_of_cpus_parses_back(cpus in proptest::collection::vec(0u32..200, 1..20)) {
            let list = CpuList::new(cpus).expect("not empty");
            prop_assert_eq!(list.to_string().parse(), Ok(list));
        }

        #[test]
        fn ranges_of_cpus_are_read_as_their_numbers(
            ranges in proptest::collection::vec((0u32..8192, 0u32..20), 1..7),
        ) {
            let ranges: Vec<_> = ranges.into_iter().map(|(first, more)| first..=(first + more).min(8191)).collect();
            let texts: Vec<String> =
                ranges.iter().map(|range| format!("{}-{}", range.start(), range.end())).collect();
            let numbers: std::collections::BTreeSet<u32> = ranges.into_iter().flatten().collect();
            let list: CpuList = texts.join(",").parse().expect("a list");
            prop_assert_eq!(list.numbers(), numbers.into_iter().collect::<Vec<_>>());
        }

        #[test]
        fn a_cap_parses_back(iops in 1u64.., bandwidth in proptest::option::of(1..=i64::MAX as u64)) {
            let cap =
                DeviceCap { read_iops: Some(iops), read_bytes_per_second: bandwidth.map(Bytes) };
            prop_assert_eq!(cap.to_string().parse(), Ok(cap));
        }

        #[test]
        fn a_skew_parses_back(theta_thousandths in 1u32..=10_000) {
            let skew = Skew::Zipf { theta_thousandths };
            prop_assert_eq!(skew.to_string().parse(), Ok(skew));
        }
    }
}
