//! The heading above the numbers.

use pagewise_analysis::Judged;
use pagewise_analysis::judge::WorkerSummary;
use pagewise_model::{Environment, Role, Source};

use crate::document::Block;
use crate::words;
use pagewise_model::format::{capitalized, counted, grouped, percent_down, time};

/// Run, environment, validity and warnings.
pub(super) fn blocks(judged: &Judged) -> Vec<Block> {
    let mut blocks: Vec<Block> = described(judged).into_iter().map(Block::paragraph).collect();
    for worker in &judged.workers {
        blocks.extend([Block::paragraph(found(worker)), Block::List(worker.notes.clone())]);
    }
    let reasons = judged.validity.reasons.iter();
    let reasons =
        reasons.map(|one| format!("{} x {}, first: {}", one.count, one.kind.name(), one.example)).collect();
    blocks.extend([Block::paragraph(validity(judged)), Block::List(reasons)]);
    let stands = judged.self_replay.iter().filter(|replay| replay.stands).map(words::replay::proof);
    let gained = judged.gain.iter().map(words::replay::gain);
    blocks.extend(stands.chain(gained).map(|text| Block::paragraph(capitalized(&text))));
    blocks.extend(words::warnings::all(judged).into_iter().map(Block::Warning));
    blocks
}

/// Run, machine and storage.
pub fn described(judged: &Judged) -> [String; 3] {
    [run(judged), machine(&judged.environment), storage(judged)]
}

fn run(judged: &Judged) -> String {
    let run = &judged.run;
    let took = run.elapsed_ns.map_or_else(String::new, |elapsed| format!(", took {}", time(elapsed)));
    // One-shot work has no fixed duration.
    let timed = judged.cells.iter().any(|cell| cell.role == Role::Measured && !cell.is_one_shot);
    let each = if timed { format!(" of {} each", time(run.sample_ns)) } else { String::new() };
    let beats = run
        .heartbeat_ns
        .map_or_else(String::new, |interval| format!(", a heartbeat each {}", time(interval)));
    format!(
        "pagewise {} · {} · seed {} · {}{each}{beats}{took}",
        judged.environment.pagewise_version,
        run.question,
        run.seed,
        rounds(judged),
    )
}

/// Rounds of the methods.
fn rounds(judged: &Judged) -> String {
    let measured = || judged.cells.iter().filter(|cell| cell.role == Role::Measured);
    let taken = || measured().map(|cell| cell.rounds_tried as u64);
    match (judged.run.budget_ns, taken().min(), taken().max()) {
        (Some(_), Some(fewest), Some(most)) if fewest < most => format!("{fewest} to {most} rounds"),
        (Some(_), _, Some(most)) => counted(most, "round"),
        _ => counted(u64::from(judged.run.rounds), "round"),
    }
}

/// A worker with its flags, which are conditions too.
pub fn found(worker: &WorkerSummary) -> String {
    let version = worker.version.as_ref().map_or_else(String::new, |version| format!(" · {version}"));
    let command = match worker.command.is_empty() {
        true => String::new(),
        false => format!(" · {}", worker.command.join(" ")),
    };
    let unavailable =
        worker.unavailable.as_ref().map_or_else(String::new, |why| format!(" · unavailable: {why}"));
    format!("worker {}{version}{command}{unavailable}", worker.name)
}

fn machine(environment: &Environment) -> String {
    let mut parts: Vec<String> = environment.host_name.iter().cloned().collect();
    parts.extend([
        format!("Linux {}", environment.kernel),
        environment.architecture.clone(),
        counted(u64::from(environment.cpus), "CPU"),
    ]);
    parts.extend(environment.cpu_model.clone());
    parts.extend(
        environment.memory_bytes.map(|bytes| format!("memory {}", pagewise_model::format::bytes(bytes))),
    );
    parts.extend(environment.hypervisor.as_ref().map(|name| format!("virtual ({name})")));
    parts.join(" · ")
}

fn storage(judged: &Judged) -> String {
    let environment = &judged.environment;
    let mut parts = vec![match &judged.run.source {
        Source::Dataset { directory } if judged.run.blocks > 1 => {
            format!("files made in {directory}, {} times", judged.run.blocks)
        }
        Source::Dataset { directory } => format!("files made in {directory}"),
        Source::File { others, directory, .. } => {
            let files = if others.is_empty() { "file" } else { "files" };
            let of_actors = directory
                .as_ref()
                .map_or_else(String::new, |directory| format!(", those of actors made in {directory}"));
            format!("your {files} {}{of_actors}", judged.run.source.shown())
        }
    }];
    parts.push(environment.filesystem.clone());
    let device = environment.device.as_deref().unwrap_or("device unknown");
    parts.push(match &environment.device_model {
        Some(model) => format!("{device} ({model})"),
        None => device.to_string(),
    });
    parts.push(match environment.readahead_bytes {
        Some(bytes) => format!("readahead {}", pagewise_model::format::bytes(bytes)),
        None => "readahead unknown".to_string(),
    });
    parts.join(" · ")
}

/// The number of valid samples.
pub fn validity(judged: &Judged) -> String {
    let validity = &judged.validity;
    let mut text = match validity.share {
        Some(share) => format!(
            "{} of {} valid ({})",
            grouped(validity.valid as u64),
            counted(validity.samples as u64, "sample"),
            percent_down(share)
        ),
        None => "no sample was taken".to_string(),
    };
    if validity.some_failed_several() {
        text.push_str("; some failed several checks");
    }
    text.extend(words::refused(validity.refused));
    if validity.unavailable_cells > 0 {
        let cells = counted(validity.unavailable_cells as u64, "cell");
        text.push_str(&format!(" · {cells} unavailable on this machine"));
    }
    text
}
