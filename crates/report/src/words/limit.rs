//! The resource that limits a cell, as a name with its share and as the subject of a sentence.

use pagewise_analysis::judge::bound::{Bound, BoundName, Certainty};
use pagewise_model::format::percent;

/// `device-iops 98 %`, `about readahead 78 %`, `between cpu 45 % and readahead 37 %`. `None`
/// without a valid sample.
pub fn text(limit: &Bound) -> Option<String> {
    let with = |name: BoundName, share: Option<f64>| match share {
        Some(share) => format!("{} {}", name.name(), percent(share)),
        None => name.name().to_string(),
    };
    let name = limit.bound?;
    let own = with(name, limit.of_ceiling);
    Some(match (limit.bound_certainty, limit.bound_other) {
        (Some(Certainty::Named), _) if limit.is_at_ceiling() => format!("{}, at its ceiling", name.name()),
        (Some(Certainty::About), _) => format!("about {own}"),
        (Some(Certainty::Between), Some(other)) => {
            format!("between {own} and {}", with(other, limit.of_other))
        }
        _ => own,
    })
}

/// The subject of a sentence.
pub fn subject(name: BoundName) -> &'static str {
    match name {
        BoundName::DeviceBandwidth | BoundName::DeviceIops => "the device",
        BoundName::QueueDepth => "the number of requests in flight",
        BoundName::DeviceWait => "waiting for the device",
        BoundName::DeviceFlush => "the device's flushes",
        BoundName::MemoryCopy => "copying from memory",
        BoundName::Cpu => "the CPU",
        BoundName::RunQueue => "a CPU that others use",
        BoundName::Rate => "the rate that was asked for",
        BoundName::Unknown => "something unknown",
        BoundName::SetUp
        | BoundName::TearDown
        | BoundName::Readahead
        | BoundName::Writeback
        | BoundName::Waiting => name.name(),
    }
}
