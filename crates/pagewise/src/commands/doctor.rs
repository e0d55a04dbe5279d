//! `pagewise doctor`: capabilities of this machine, reasons for missing ones, and settings that
//! affect results.

use std::path::PathBuf;

use anyhow::{Context, Result};
use pagewise_host::cgroup::Control;
use pagewise_host::probe::{self, Availability, Capability};
use pagewise_host::{environment, files, mounted};
use pagewise_lab::exit::Exit;
use pagewise_lab::measure::{text_of_control, text_of_memory};
use pagewise_lab::output;
use pagewise_model::format::bytes;
use pagewise_model::{Environment, WorkerChoices};
use pagewise_report::document::{Block, Document};
use pagewise_report::json;
use pagewise_report::text_table::{TextCell, TextTable};
use serde::Serialize;

use crate::arguments::DoctorArguments;
use crate::extras::offered;

#[derive(Serialize)]
struct Findings {
    schema: u32,
    environment: Environment,
    capabilities: Vec<DoctorFinding>,
}

#[derive(Serialize)]
struct DoctorFinding {
    name: String,
    state: &'static str,
    reason: Option<String>,
    detail: String,
}

impl From<Capability> for DoctorFinding {
    fn from(capability: Capability) -> Self {
        let (state, reason) = match capability.state {
            Availability::Available => ("available", None),
            Availability::Unavailable { reason } => ("unavailable", Some(reason)),
            Availability::Unknown { reason } => ("unknown", Some(reason)),
        };
        DoctorFinding { name: capability.name.to_string(), state, reason, detail: capability.detail }
    }
}

/// Examine, and print.
pub fn doctor(arguments: &DoctorArguments) -> Result<Exit> {
    let directory = arguments.dir.clone().unwrap_or_else(|| PathBuf::from("."));
    files::check_directory(&directory)?;
    let directory = directory.canonicalize().with_context(|| format!("{}", directory.display()))?;
    let mut environment = environment::detect(&directory);
    let control = Control::detect();
    environment.memory_control = Some(text_of_memory(&control));
    environment.device_control = Some(text_of_control(control.device()));
    let options = arguments.worker_options.0.clone();
    let choices = WorkerChoices { options, ..WorkerChoices::default() };
    let workers = offered().map(|(name, door)| (door.capability)(name, &choices));
    let capabilities = probe::probe_all(&directory).into_iter().chain(probe::options());
    let capabilities = capabilities.chain(workers).chain(probe::observations()).map(usable);
    let findings =
        Findings { schema: 1, environment, capabilities: capabilities.map(DoctorFinding::from).collect() };
    let document = || document(&findings, &directory.display().to_string());
    match arguments {
        DoctorArguments { json: true, .. } => json::write_one(&mut output::stdout(), &findings)?,
        DoctorArguments { markdown: true, .. } => document().markdown(&mut output::stdout())?,
        _ => output::lines(&document().lines(output::width()))?,
    }
    Ok(Exit::Answered)
}

/// Usability for `run`: a call that works is useless without evidence of its effect.
fn usable(capability: Capability) -> Capability {
    match mounted::proc_missing() {
        Some(_) if capability.is_available() => {
            let reason = "it works, but cannot be measured: /proc is not mounted".to_string();
            Capability { state: Availability::Unavailable { reason }, ..capability }
        }
        _ => capability,
    }
}

fn document(findings: &Findings, directory: &str) -> Document {
    let settings = settings(&findings.environment)
        .into_iter()
        .map(|(name, value)| (name.to_string(), value.unwrap_or_else(|| "unknown".to_string())));
    let row = |DoctorFinding { name, state, reason, detail }: &DoctorFinding| {
        let text = match reason {
            None => detail.clone(),
            Some(reason) if detail.is_empty() => reason.clone(),
            Some(reason) => format!("{reason} ({detail})"),
        };
        vec![TextCell::from(name), (*state).into(), text.into()]
    };
    let capabilities = TextTable {
        columns: ["capability", "state", "what is known of it"].map(Into::into).to_vec(),
        rows: findings.capabilities.iter().map(row).collect(),
    };
    let warnings = &findings.environment.warnings;
    let warned = (!warnings.is_empty())
        .then(|| [Block::heading(2, "Settings that affect results here"), Block::List(warnings.clone())]);
    let mut body = vec![
        Block::heading(2, format!("What pagewise can measure in {directory}")),
        Block::facts(settings),
        Block::heading(2, "Capabilities"),
        Block::Table(capabilities, "Capabilities".to_string()),
    ];
    body.extend(warned.into_iter().flatten());
    Document { body, ..Document::default() }
}

/// Settings that affect results, by name.
fn settings(environment: &Environment) -> Vec<(&'static str, Option<String>)> {
    let text = |value: &str| Some(value.to_string());
    let most_or_none =
        |most: u64| if most == 0 { "none".to_string() } else { format!("up to {}", bytes(most)) };
    vec![
        ("kernel", text(&environment.kernel)),
        ("processor", environment.cpu_model.clone()),
        ("processor vulnerabilities", environment.cpu_vulnerabilities.clone()),
        (
            "variables",
            environment.variables.clone().filter(|variables| !variables.is_empty()).or(text("none")),
        ),
        ("processors to use", Some(environment.cpus.to_string())),
        ("last-level cache", environment.last_level_cache_bytes.map(bytes)),
        ("memory", environment.memory_bytes.map(bytes)),
        ("memory available", environment.memory_available_bytes.map(bytes)),
        ("NUMA nodes", environment.numa_nodes.map(|nodes| nodes.to_string())),
        ("hypervisor", environment.hypervisor.clone().or(text("none seen"))),
        ("filesystem", text(&environment.filesystem)),
        ("mount options", environment.mount_options.clone()),
        ("device", environment.device.clone()),
        ("device model", environment.device_model.clone()),
        ("scheduler", environment.device_scheduler.clone()),
        ("readahead", environment.readahead_bytes.map(bytes)),
        ("O_DIRECT alignment", environment.direct_alignment_bytes.map(bytes)),
        ("atomic writes (RWF_ATOMIC)", environment.atomic_write_bytes.map(most_or_none)),
        ("huge pages (THP)", environment.transparent_hugepage.clone()),
        ("MGLRU", environment.mglru.clone()),
        ("swappiness", environment.swappiness.map(|value| value.to_string())),
        ("frequency governor", environment.governor.clone()),
    ]
}
