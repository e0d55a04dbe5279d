//! The label of conditions, used by tables, curves, sentences and dry runs.

use pagewise_model::format::{bytes, counted, multiple};
use pagewise_model::{CacheState, Conditions, Descriptor, HostSettings, Numa};

/// Parts of a label, by which conditions differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LabelPart {
    /// Accesses: their order, size and content.
    Work,
    /// Threads.
    Threads,
    /// Size of the file and of the accessed part.
    Size,
    /// Ratio of the data to the cache that a limit leaves.
    Data,
    /// State of the page cache.
    Cache,
    /// Rate at which operations are due.
    Rate,
    /// Memory limit.
    Memory,
    /// Actor at work meanwhile.
    Actor,
    /// Settings of the machine.
    Settings,
}

impl LabelPart {
    /// Every part, in the order of a label.
    pub const ALL: [LabelPart; 9] = [
        LabelPart::Work,
        LabelPart::Cache,
        LabelPart::Threads,
        LabelPart::Size,
        LabelPart::Data,
        LabelPart::Rate,
        LabelPart::Memory,
        LabelPart::Actor,
        LabelPart::Settings,
    ];

    /// Several values of it, behind their number.
    pub fn plural(self) -> &'static str {
        match self {
            LabelPart::Work => "workloads",
            LabelPart::Cache => "cache states",
            LabelPart::Threads => "thread counts",
            LabelPart::Size | LabelPart::Data => "sizes",
            LabelPart::Rate => "rates",
            LabelPart::Memory => "memory limits",
            LabelPart::Actor => "actors",
            LabelPart::Settings => "settings",
        }
    }
}

/// Label of the conditions, without the usual ones.
pub fn label(conditions: &Conditions) -> String {
    label_without(conditions, &[])
}

/// Label of the conditions without some parts.
pub fn label_without(conditions: &Conditions, without: &[LabelPart]) -> String {
    texts(conditions, without).join(" · ")
}

/// Conditions as another machine has them too: where there is a thread per CPU, their number is 0,
/// which the label says in words.
pub fn of_any_machine(conditions: &Conditions) -> Conditions {
    let threads = if conditions.thread_per_cpu { 0 } else { conditions.threads };
    Conditions { threads, ..conditions.clone() }
}

/// The parts of a label.
pub fn texts(conditions: &Conditions, without: &[LabelPart]) -> Vec<String> {
    let parts = parts(conditions, without).into_iter().filter(|(part, _)| !without.contains(part));
    parts.map(|(_, text)| text).collect()
}

/// The texts of one part of a label.
pub fn texts_of(conditions: &Conditions, part: LabelPart) -> Vec<String> {
    parts(conditions, &[]).into_iter().filter(|(other, _)| *other == part).map(|(_, text)| text).collect()
}

/// The parts that the labels of all of these have.
pub fn shared<'a>(all: impl IntoIterator<Item = &'a Conditions>) -> Vec<String> {
    let mut labels = all.into_iter().map(|conditions| texts(conditions, &[]));
    let first = labels.next().unwrap_or_default();
    labels.fold(first, |mut shared, label| {
        shared.retain(|part| label.contains(part));
        shared
    })
}

/// Ratio of the span to the cache that a memory limit leaves; `None` without one.
pub fn data_over_cache(conditions: &Conditions) -> Option<f64> {
    let capacity = conditions.cache_capacity().filter(|capacity| capacity.0 > 0)?;
    Some(conditions.span_bytes.0 as f64 / capacity.0 as f64)
}

fn parts(conditions: &Conditions, without: &[LabelPart]) -> Vec<(LabelPart, String)> {
    let Conditions {
        work,
        threads,
        thread_per_cpu: _,
        file_bytes,
        span_bytes,
        content,
        cache: _,
        descriptor,
        rate: _,
        beside,
        host_settings,
    } = conditions;
    let mut all: Vec<(LabelPart, String)> = Vec::new();
    let mut add = |part: LabelPart, text: Option<String>| all.extend(text.map(|text| (part, text)));
    let writes = work.writes().is_some();
    add(LabelPart::Work, Some(conditions.workload().name().to_string()));
    for text in work.parameters().operation() {
        add(LabelPart::Work, Some(text));
    }
    add(
        LabelPart::Cache,
        Some(if writes { cache_of_writes(conditions) } else { cache_of_reads(conditions, without) }),
    );
    let threaded = work.reads().is_some() || conditions.is_committing();
    let threads = || match threads {
        0 => "a thread per CPU".to_string(),
        threads => counted(u64::from(*threads), "thread"),
    };
    add(LabelPart::Threads, threaded.then(threads));
    add(LabelPart::Size, Some(bytes(*file_bytes)));
    add(LabelPart::Size, (span_bytes != file_bytes).then(|| format!("in its first {}", bytes(*span_bytes))));
    for text in work.parameters().details() {
        add(LabelPart::Work, Some(text));
    }
    add(
        LabelPart::Work,
        (*descriptor == Descriptor::PerThread).then(|| "a descriptor per thread".to_string()),
    );
    add(LabelPart::Rate, conditions.rate_text().map(|rate| format!("{rate} due")));
    let usual = writes || *content == work.workload().facts().usual_content;
    add(LabelPart::Work, (!usual).then(|| format!("{content} content")));
    let HostSettings { memory_limit_bytes, worker_bytes: _, device_cap, cpus, numa, kernel } = host_settings;
    add(LabelPart::Memory, memory_limit_bytes.map(|limit| format!("memory {}", bytes(limit))));
    let data = memory_limit_bytes.map(|_| match data_over_cache(conditions) {
        // If the size has no part of its own, it is shown here.
        Some(ratio) if without.contains(&LabelPart::Size) => {
            format!("data {} the cache ({})", multiple(ratio), bytes(*span_bytes))
        }
        Some(ratio) => format!("data {} the cache", multiple(ratio)),
        None => "no cache left under the limit".to_string(),
    });
    add(LabelPart::Data, data);
    add(LabelPart::Actor, beside.as_ref().map(|actor| format!("beside {actor}")));
    add(LabelPart::Settings, device_cap.map(|cap| format!("cap {cap}")));
    for (name, wanted) in kernel.wanted() {
        let value = |typed: String| typed.parse::<pagewise_model::Bytes>().map_or(typed, bytes);
        add(LabelPart::Settings, wanted.map(|wanted| format!("{name} {}", value(wanted.typed))));
    }
    add(LabelPart::Settings, cpus.as_ref().map(|cpus| format!("CPUs {cpus}")));
    let numa = numa.map(|numa| match numa {
        Numa::Same => "pages on the same node".to_string(),
        Numa::Other => "pages on the other node".to_string(),
        Numa::Node(node) => format!("pages on node {node}"),
    });
    add(LabelPart::Settings, numa);
    all
}

fn cache_of_reads(conditions: &Conditions, without: &[LabelPart]) -> String {
    let data_differ = without.contains(&LabelPart::Data);
    match conditions.cache {
        CacheState::ColdStart => format!("{}, ranked by the time to warm", conditions.cache),
        // It cannot be completely warm: it is as warm as it gets.
        CacheState::Warm if data_differ && conditions.cache_capacity().is_some() => {
            "warm, steady state beyond memory".to_string()
        }
        CacheState::Warm if !conditions.stays_in_memory() => "steady state".to_string(),
        CacheState::Recorded => "cached as recorded".to_string(),
        cache => cache.to_string(),
    }
}

fn cache_of_writes(conditions: &Conditions) -> String {
    let exists = conditions.writes().is_some_and(|writes| writes.is_update());
    match conditions.cache {
        CacheState::Cold if exists => "not cached".to_string(),
        CacheState::Warm if exists => "cached".to_string(),
        CacheState::WarmSmall => "cached in small folios".to_string(),
        CacheState::Cold => "new file".to_string(),
        CacheState::Warm => "file written before".to_string(),
        cache => cache.to_string(),
    }
}
