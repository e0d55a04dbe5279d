//! Conditions in words.

use pagewise_model::{
    Bytes, CacheState, Conditions, Consume, Descriptor, Numa, Reads, Skew, Surroundings, Sync, Work,
};

/// Conditions in words; what is usual is left out.
pub(crate) fn label(conditions: &Conditions) -> String {
    let mut parts = vec![conditions.workload().name().to_string()];
    match &conditions.work {
        Work::RandomRead(reads) | Work::SequentialRead(reads) => parts.extend(of_reads(conditions, reads)),
        Work::Scan(scan) => {
            let consume = match scan.consume {
                Consume::Touch => "touching pages",
                Consume::Sum => "all bytes summed",
                Consume::Lines => "counting lines",
            };
            parts.extend([consume.to_string(), cache(conditions)]);
            parts.extend(file(conditions));
        }
        Work::Append(append) => {
            parts.push(format!("records of {}", size(append.record_bytes)));
            parts.extend((append.laps > 1).then(|| format!("{} laps", append.laps)));
            parts.push(cache_of_writes(conditions));
            parts.extend(file(conditions));
            parts.extend(synced(append.sync));
        }
        Work::Fill(fill) => {
            parts.push(format!("blocks of {}", size(fill.block_bytes)));
            parts.push(cache_of_writes(conditions));
            parts.extend(file(conditions));
            parts.extend(synced(fill.sync));
        }
    }
    if conditions.descriptor == Descriptor::PerThread {
        parts.push("a descriptor per thread".to_string());
    }
    if let Some(reads) = conditions.reads() {
        parts.extend(unusual(reads));
    }
    if conditions.writes().is_none() && conditions.content != conditions.work.usual_content() {
        parts.push(format!("{} content", conditions.content));
    }
    parts.extend(surroundings(conditions));
    parts.join(" · ")
}

fn of_reads(conditions: &Conditions, reads: &Reads) -> Vec<String> {
    let read = size(reads.read_bytes);
    let threads = conditions.threads;
    let mut parts = vec![
        match reads.reads_per_op {
            1 => format!("1 read of {read}"),
            count => format!("{count} reads of {read}"),
        },
        cache(conditions),
        if threads == 1 { "1 thread".to_string() } else { format!("{threads} threads") },
    ];
    parts.extend(file(conditions));
    if reads.align_bytes != reads.read_bytes {
        parts.push(format!("aligned to {}", size(reads.align_bytes)));
    }
    match reads.consume {
        Consume::Touch => {}
        Consume::Sum => parts.push("all bytes summed".to_string()),
        Consume::Lines => parts.push("counting lines".to_string()),
    }
    parts
}

pub(crate) fn unusual(reads: &Reads) -> Vec<String> {
    let skew = match reads.skew {
        Skew::Zipf { .. } => Some(reads.skew.to_string().replace(':', " ")),
        Skew::Uniform => None,
    };
    skew.into_iter().chain(reads.dependent.then(|| "dependent".to_string())).collect()
}

pub(crate) fn cache(conditions: &Conditions) -> String {
    match conditions.cache {
        CacheState::ColdStart => format!("{}, ranked by the time to warm", conditions.cache),
        // It cannot be whole: it is as warm as it gets.
        CacheState::Warm if !conditions.fits_memory() => "settled".to_string(),
        cache => cache.to_string(),
    }
}

fn cache_of_writes(conditions: &Conditions) -> String {
    match conditions.cache {
        CacheState::Cold => "new file".to_string(),
        CacheState::Warm => "file written before".to_string(),
        cache => cache.to_string(),
    }
}

fn file(conditions: &Conditions) -> Vec<String> {
    let mut parts = vec![size(conditions.file_bytes)];
    if conditions.span_bytes != conditions.file_bytes {
        parts.push(format!("in its first {}", size(conditions.span_bytes)));
    }
    parts
}

fn synced(sync: Sync) -> Option<String> {
    match sync {
        Sync::None => None,
        Sync::End => Some("sync at the end".to_string()),
        Sync::Every(bytes) => Some(format!("sync every {}", size(bytes))),
    }
}

/// What the machine was set to, in words.
fn surroundings(conditions: &Conditions) -> Vec<String> {
    let Surroundings { memory_limit_bytes, worker_bytes: _, device_cap, readahead_bytes, cpus, numa } =
        &conditions.surroundings;
    let memory = memory_limit_bytes.map(|limit| {
        let limit = size(limit);
        match conditions.cache_capacity().filter(|capacity| capacity.0 > 0) {
            Some(capacity) => {
                let ratio = conditions.span_bytes.0 as f64 / capacity.0 as f64;
                format!("memory {limit}, data {}x of the cache", two_decimals(ratio))
            }
            None => format!("memory {limit}, which leaves no cache"),
        }
    });
    let numa = numa.map(|numa| match numa {
        Numa::Same => "pages on the same node".to_string(),
        Numa::Other => "pages on the other node".to_string(),
        Numa::Node(node) => format!("pages on node {node}"),
    });
    [
        memory,
        device_cap.map(|cap| format!("cap {cap}")),
        readahead_bytes.map(|bytes| format!("readahead {}", size(bytes))),
        cpus.as_ref().map(|cpus| format!("CPUs {cpus}")),
        numa,
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// `1.50` as `1.5`.
pub(crate) fn two_decimals(value: f64) -> String {
    format!("{value:.2}").trim_end_matches('0').trim_end_matches('.').to_string()
}

/// A size with a space before its unit.
pub(crate) fn size(bytes: Bytes) -> String {
    let text = bytes.to_string();
    let unit = text.find(|character: char| !character.is_ascii_digit()).unwrap_or(text.len());
    format!("{} {}", &text[..unit], &text[unit..])
}
