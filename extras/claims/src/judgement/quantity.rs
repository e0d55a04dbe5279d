//! The quantities that claims are about, one line each.

use pagewise_analysis::judge::collected::figure_of;
use pagewise_analysis::proof::measured::{duration_ns, operations, region_ns, total_ns};
use pagewise_analysis::proof::steady::time_to_warm;
use pagewise_model::sample::Measurement;
use pagewise_model::{CacheState, Cell, Evidence};
use serde::{Deserialize, Serialize, Serializer};

/// A valid sample with what its figures are made from.
pub struct Sampled<'a> {
    /// Cell.
    pub cell: &'a Cell,
    /// The worker's measurement.
    pub measurement: &'a Measurement,
    /// The supervisor's observations.
    pub evidence: &'a Evidence,
    /// CPUs of the machine.
    pub cpus: u32,
}

/// Form of a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Unit {
    /// Per second.
    Rate,
    /// Nanoseconds.
    Time,
    /// Bytes per second.
    Bandwidth,
    /// A share of a whole, shown in per cent.
    Share,
    /// A number without a unit.
    Number,
}

/// A quantity of one sample.
pub struct Definition {
    /// Name in a study.
    pub name: &'static str,
    /// Name in a sentence.
    pub text: &'static str,
    /// The form of its values.
    pub unit: Unit,
    /// Value.
    pub of: fn(&Sampled<'_>) -> Option<f64>,
}

/// Every quantity. The best of several cells is the one with the highest.
#[rustfmt::skip]
pub const ALL: &[Definition] = &[
    Definition { name: "speed", text: "in speed", unit: Unit::Rate, of: speed },
    Definition { name: "work-speed", text: "in speed, set-up and tear-down left out", unit: Unit::Rate, of: |one| Some(1e9 / positive(region_ns(one.measurement))?) },
    Definition { name: "record-speed", text: "in records per second", unit: Unit::Rate, of: |one| Some(1e9 / record_time(one)?) },
    Definition { name: "record-time", text: "per record", unit: Unit::Time, of: record_time },
    Definition { name: "time", text: "in total", unit: Unit::Time, of: time },
    Definition { name: "setup", text: "set-up", unit: Unit::Time, of: |one| Some(one.measurement.setup_ns as f64) },
    Definition { name: "work", text: "work", unit: Unit::Time, of: |one| Some(region_ns(one.measurement) as f64) },
    Definition { name: "device-rate", text: "from the device", unit: Unit::Bandwidth, of: device_rate },
    Definition { name: "of-cap", text: "of the device's limit", unit: Unit::Share, of: of_cap },
    Definition { name: "of-file", text: "of the file from the device", unit: Unit::Share, of: of_file },
    Definition { name: "user", text: "of all CPUs in user mode", unit: Unit::Share, of: |one| of_cpus(one, one.evidence.user_ns) },
    Definition { name: "system", text: "of all CPUs in the kernel", unit: Unit::Share, of: |one| of_cpus(one, one.evidence.system_ns) },
    Definition { name: "wait", text: "of all CPUs idle with a task waiting for the device", unit: Unit::Share, of: |one| of_cpus(one, one.evidence.host.wait_ns) },
    Definition { name: "threads-running", text: "of the threads' time on a CPU", unit: Unit::Share, of: threads_running },
    Definition { name: "major-faults", text: "major faults per read", unit: Unit::Number, of: |one| per_read(one, one.evidence.major_faults) },
    Definition { name: "faults", text: "faults per operation", unit: Unit::Number, of: |one| Some(one.evidence.minor_faults? as f64 / positive(operations(one.measurement))?) },
    Definition { name: "amplification", text: "bytes from the device per byte asked for", unit: Unit::Number, of: |one| Some(one.evidence.device_read_bytes? as f64 / positive(one.evidence.requested_bytes)?) },
    Definition { name: "refaults", text: "refaults per read", unit: Unit::Number, of: |one| per_read(one, one.evidence.group.as_ref()?.refaults) },
    Definition { name: "written", text: "bytes to the device per byte written", unit: Unit::Number, of: |one| Some(one.evidence.device_written_bytes? as f64 / positive(one.evidence.requested_bytes)?) },
    Definition { name: "stored", text: "of the records in the file, compared byte for byte", unit: Unit::Share, of: stored },
    Definition { name: "cached-before", text: "of the data cached at the start", unit: Unit::Share, of: |one| Some(one.evidence.resident_before_bytes? as f64 / positive(one.cell.conditions.span_bytes.0)?) },
    Definition { name: "cold-speed", text: "of the warm speed until the cache is warm", unit: Unit::Share, of: cold_speed },
];

/// One of [`ALL`].
#[derive(Clone, Copy)]
pub struct Quantity(&'static Definition);

impl Quantity {
    /// Definition.
    pub fn definition(self) -> &'static Definition {
        self.0
    }
}

impl std::fmt::Debug for Quantity {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(self.0.name)
    }
}

impl Serialize for Quantity {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.0.name)
    }
}

impl<'de> Deserialize<'de> for Quantity {
    fn deserialize<D: serde::Deserializer<'de>>(source: D) -> Result<Self, D::Error> {
        let name = String::deserialize(source)?;
        ALL.iter().find(|known| known.name == name).map(Self).ok_or_else(|| {
            let names: Vec<&str> = ALL.iter().map(|known| known.name).collect();
            serde::de::Error::custom(format!("unknown quantity '{name}': write one of {}", names.join(", ")))
        })
    }
}

fn positive(count: u64) -> Option<f64> {
    (count > 0).then_some(count as f64)
}

/// The figure that methods are ranked by.
fn speed(one: &Sampled<'_>) -> Option<f64> {
    figure_of(one.cell, one.measurement, one.evidence)
}

fn time(one: &Sampled<'_>) -> Option<f64> {
    Some(1e9 / speed(one)?)
}

/// Set-up and tear-down included.
fn record_time(one: &Sampled<'_>) -> Option<f64> {
    Some(total_ns(one.measurement) as f64 / positive(operations(one.measurement))?)
}

/// Bytes from the device, those of set-up included.
fn device_bytes(one: &Sampled<'_>) -> Option<f64> {
    let setup = one.evidence.setup_device_read_bytes.unwrap_or(0);
    Some(one.evidence.device_read_bytes?.saturating_add(setup) as f64)
}

fn device_rate(one: &Sampled<'_>) -> Option<f64> {
    Some(device_bytes(one)? * 1e9 / positive(total_ns(one.measurement))?)
}

fn of_cap(one: &Sampled<'_>) -> Option<f64> {
    let cap = one.cell.conditions.host_settings.device_cap?;
    let by_bytes = cap.read_bytes_per_second.map(|most| device_rate(one).map(|rate| rate / most.0 as f64));
    let by_requests = cap.read_iops.map(|most| {
        let done = one.evidence.group.as_ref()?.device_read_requests?;
        Some(done as f64 * 1e9 / positive(one.evidence.wall_ns)? / most as f64)
    });
    by_bytes.or(by_requests)?
}

fn of_file(one: &Sampled<'_>) -> Option<f64> {
    Some(device_bytes(one)? / positive(one.cell.conditions.span_bytes.0)?)
}

fn of_cpus(one: &Sampled<'_>, spent_ns: Option<u64>) -> Option<f64> {
    Some(spent_ns? as f64 / (positive(one.evidence.wall_ns)? * f64::from(one.cpus.max(1))))
}

fn threads_running(one: &Sampled<'_>) -> Option<f64> {
    let threads = f64::from(one.cell.conditions.threads.max(1));
    Some(one.evidence.cpu_ns? as f64 / (positive(one.evidence.wall_ns)? * threads))
}

fn per_read(one: &Sampled<'_>, count: Option<u64>) -> Option<f64> {
    let reads = f64::from(one.cell.conditions.reads_per_op());
    Some(count? as f64 / (positive(operations(one.measurement))? * reads))
}

fn stored(one: &Sampled<'_>) -> Option<f64> {
    let written = one.evidence.written.as_ref()?;
    Some(1.0 - written.missing_bytes as f64 / positive(written.expected_bytes)?)
}

/// The rate from an empty cache until it is warm, over the rate afterwards.
fn cold_speed(one: &Sampled<'_>) -> Option<f64> {
    let conditions = &one.cell.conditions;
    if conditions.cache != CacheState::ColdStart {
        return None;
    }
    let windows = &one.evidence.windows;
    let warmed = time_to_warm(conditions.op_bytes(), windows)?;
    let (cold, warm) = windows.split_at(warmed.window.max(1).min(windows.len()));
    let rate = |windows: &[pagewise_model::counters::RateWindow]| {
        let operations: u64 = windows.iter().map(|window| window.operations).sum();
        Some(operations as f64 / positive(duration_ns(windows))?)
    };
    Some(rate(cold)? / rate(warm).filter(|rate| *rate > 0.0)?)
}
