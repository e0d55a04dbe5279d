//! `pagewise doctor`: what can be measured here, what not and why, and settings that decide results.

use std::io::Write;
use std::path::PathBuf;

use anyhow::{Context, Result};
use pagewise_host::probe::{self, Capability, State};
use pagewise_host::{environment, files};
use pagewise_model::Environment;
use serde::Serialize;

use super::Ending;
use crate::arguments::DoctorArguments;

#[derive(Serialize)]
struct Findings {
    schema: u32,
    environment: Environment,
    capabilities: Vec<Finding>,
}

#[derive(Serialize)]
struct Finding {
    name: String,
    state: &'static str,
    reason: Option<String>,
    detail: String,
}

impl From<Capability> for Finding {
    fn from(capability: Capability) -> Self {
        let (state, reason) = match capability.state {
            State::Available => ("available", None),
            State::Unavailable { reason } => ("unavailable", Some(reason)),
            State::Unknown { reason } => ("unknown", Some(reason)),
        };
        Finding { name: capability.name.to_string(), state, reason, detail: capability.detail }
    }
}

/// Looks, and prints.
pub fn doctor(arguments: &DoctorArguments) -> Result<Ending> {
    let directory = arguments.dir.clone().unwrap_or_else(|| PathBuf::from("."));
    files::check_directory(&directory)?;
    let directory = directory.canonicalize().with_context(|| format!("{}", directory.display()))?;
    let findings = Findings {
        schema: 1,
        environment: environment::detect(&directory),
        capabilities: probe::probe_all(&directory).into_iter().map(Finding::from).collect(),
    };
    let mut out = std::io::stdout().lock();
    if arguments.json {
        serde_json::to_writer_pretty(&mut out, &findings)?;
        writeln!(out)?;
    } else {
        print(&findings, &directory.display().to_string(), &mut out)?;
    }
    Ok(Ending::Done)
}

fn print(findings: &Findings, directory: &str, out: &mut impl Write) -> std::io::Result<()> {
    writeln!(out, "What pagewise can measure in {directory}\n")?;
    for line in [format!("{:?}", findings.environment)] {
        writeln!(out, "  {line}")?;
    }
    writeln!(out)?;
    let width = findings.capabilities.iter().map(|finding| finding.name.chars().count()).max().unwrap_or(0);
    for Finding { name, state, reason, detail } in &findings.capabilities {
        let text = match reason {
            None => detail.clone(),
            Some(reason) if detail.is_empty() => reason.clone(),
            Some(reason) => format!("{reason} ({detail})"),
        };
        writeln!(out, "  {name:width$}  {state:11}  {text}")?;
    }
    let warnings = &findings.environment.warnings;
    if !warnings.is_empty() {
        writeln!(out, "\nSettings that decide results here:")?;
        for warning in warnings {
            writeln!(out, "  * {warning}")?;
        }
    }
    Ok(())
}
