//! A question, from what was typed to a plan for this machine. Nothing is written and nothing is
//! changed.

use std::collections::BTreeMap;
use std::fs::File;
use std::path::Path;

use anyhow::{Context, Result, anyhow, ensure};
use pagewise_host::cgroup::{self, Control};
use pagewise_host::dataset::DatasetError;
use pagewise_host::files::DirectoryError;
use pagewise_host::{BlockDevice, cache, dataset, files, placement};
use pagewise_model::run::check_of;
use pagewise_model::{Bytes, CacheState, CpuList, Environment, Plan, Source};

use crate::begin::{Destination, Options, examine, fresh_seed, text_of};
use crate::labels;
use crate::output::say;
use crate::plan::machine::Machine;
use crate::plan::resolve::{Variant, resolve};
use crate::plan::validate::refuse_unlike_recording;
use crate::plan::{Layer, MissingArgument, OrNone, PlanText};
use crate::rights;
use crate::traced::Traced;
use crate::worker_door;

/// A question as typed.
#[derive(Clone)]
pub struct TypedQuestion {
    /// The question or plan file.
    pub text: PlanText,
    /// Variant of the question.
    pub variant: Variant,
    /// The choices that were typed.
    pub chosen: Layer,
    /// The place of its files.
    pub destination: Destination,
    /// The trace to be replayed, if there is one.
    pub traced: Option<Traced>,
}

impl TypedQuestion {
    /// A short hash of what is asked for, without names, places and the seed. What is not chosen is
    /// left out, so that a choice which a later pagewise adds does not change it.
    fn hash(&self) -> String {
        let text = PlanText { name: String::new(), ..self.text.clone() };
        let mut chosen = self.chosen.clone();
        chosen.sampling.seed = None;
        let replayed = self.traced.as_ref().map(|traced| traced.work);
        let all = format!("{text:?}, {:?}, {chosen:?}, {replayed:?}", self.variant);
        // `Sampling { rounds: None` has no choice behind the brace.
        let chosen = all.split(", ").map(|field| match field.strip_suffix(": None") {
            Some(unchosen) => unchosen.rsplit_once(' ').map_or("", |(before, _)| before),
            None => field,
        });
        // One file is the usual number.
        let chosen = chosen.filter(|field| !field.is_empty() && *field != "files: 1");
        short_hash(&chosen.collect::<Vec<_>>().join(", "))
    }

    /// Add the choices of the recording: the memory limit of the program, what was in the page
    /// cache, and its own method, which shows whether the trace stands for it.
    pub fn with_recording(mut self) -> Self {
        let Some(traced) = &self.traced else { return self };
        let usual = || traced.planned.memory_limit.map(|limit| vec![OrNone(Some(limit))]);
        self.chosen.axes.memory = self.chosen.axes.memory.take().or_else(usual);
        self.chosen.axes.descriptor.get_or_insert_with(|| vec![traced.descriptor]);
        let names_cache = self.chosen.axes.cache.is_some() || self.text.base.axes.cache.is_some();
        if !names_cache && traced.planned.cached_bytes.is_some_and(|cached| cached > Bytes(0)) {
            self.chosen.axes.cache = Some(vec![CacheState::Recorded]);
        }
        let own = &traced.planned.method;
        for methods in [&mut self.chosen.axes.methods, &mut self.text.base.axes.methods].into_iter().flatten()
        {
            if !methods.contains(own) {
                methods.push(own.clone());
            }
        }
        self
    }
}

/// The largest size that fits, in whole MiB, or GiB from ten on, where one dataset of this size
/// does not.
fn fitting(error: &DatasetError, size: Option<Bytes>) -> Option<Bytes> {
    match error {
        DatasetError::NoSpace { need, free, reserve, .. } if Some(*need) == size => {
            let room = free.0.saturating_sub(reserve.0) >> 20;
            let room = if room >= 10 << 10 { room >> 10 << 10 } else { room };
            (room > 0).then(|| Bytes::mib(room))
        }
        _ => None,
    }
}

/// The first half of the check of a text.
pub fn short_hash(text: &str) -> String {
    check_of(text)[..8].to_string()
}

/// A question with its plan.
pub struct Prepared {
    /// The question as typed.
    pub asked: TypedQuestion,
    /// The plan.
    pub plan: Plan,
    /// A short hash of what was asked for.
    pub typed: String,
    /// The machine.
    pub environment: Environment,
    /// The labels of the run.
    pub labels: BTreeMap<String, String>,
    /// The groups in which limits can be set.
    pub control: Control,
    /// The device or filesystem of its files; `None` in memory.
    pub device: Option<String>,
    /// Limit of the bytes that its workloads write.
    pub max_written_bytes: Option<Bytes>,
    free_bytes: u64,
    seed: u64,
    online_cpus: CpuList,
    numa_nodes: Vec<u32>,
    no_device: Option<String>,
}

impl Prepared {
    /// Examine the machine and resolve the plan.
    pub fn of(asked: TypedQuestion, options: &Options) -> Result<Self> {
        // Refused before anything is looked at.
        let labels = labels::all(&options.all.label)?;
        let (source, environment, free_bytes) = examine(asked.destination.clone())?;
        let path = source.path();
        let no_device = BlockDevice::behind(Path::new(path)).err().map(|reason| reason.to_string());
        let topology = placement::Topology::read().map_err(anyhow::Error::msg)?;
        let numa_nodes =
            topology.nodes.iter().filter(|node| node.memory_bytes > 0).map(|node| node.number).collect();
        let online_cpus = CpuList::new(topology.cpus).context("the CPUs of this machine are unknown")?;
        let in_memory = File::open(path).is_ok_and(|file| cache::in_memory(&file).is_some());
        let device = environment.device.clone().unwrap_or_else(|| environment.filesystem.clone());
        let mut prepared = Self {
            typed: asked.hash(),
            asked,
            labels,
            device: (!in_memory).then_some(device),
            max_written_bytes: None,
            plan: Plan { source, ..Plan::of(Vec::new()) },
            environment,
            control: Control::detect(),
            free_bytes,
            seed: fresh_seed(),
            online_cpus,
            numa_nodes,
            no_device,
        };
        prepared.resolve(options, None)?;
        Ok(prepared)
    }

    /// Resolve the plan again, with changed choices or the measured pace of the device.
    pub fn resolve(&mut self, options: &Options, write_pace: Option<u64>) -> Result<()> {
        let machine = Machine {
            environment: &self.environment,
            free_bytes: self.free_bytes,
            write_pace,
            fresh_seed: self.seed,
            online_cpus: self.online_cpus.clone(),
            numa_nodes: self.numa_nodes.clone(),
            least_memory_bytes: cgroup::LEAST_MEMORY_BYTES,
            no_device: self.no_device.clone(),
            drop_caches: options.drop_caches,
            workers: &options.workers,
            offered: worker_door::offered(),
            replay: self.asked.traced.as_ref().map(|traced| traced.work),
        };
        let TypedQuestion { text, variant, chosen, .. } = &mut self.asked;
        let mut resolved = resolve(text, *variant, chosen, self.plan.source.clone(), &machine);
        let lacks_limit = |error: &anyhow::Error| {
            matches!(
                error.downcast_ref(),
                Some(MissingArgument::MemoryLimit(_) | MissingArgument::MultipleOfCache)
            )
        };
        let in_place = self.control.limit_in_place().filter(|_| chosen.axes.memory.is_none());
        if let (Some(own), Some(_)) = (in_place, resolved.as_ref().err().filter(|error| lacks_limit(error))) {
            say(format_args!("note: the memory limit that this process has itself is used: {own}"));
            chosen.axes.memory = Some(vec![OrNone(Some(own.bytes))]);
            resolved = resolve(text, *variant, chosen, self.plan.source.clone(), &machine);
        }
        // Of multiples that only the question writes the user knows nothing.
        let wrote_none = chosen.axes.file_size.is_none() && chosen.axes.span.is_none();
        let resolved = resolved.map_err(|error| match error.downcast_ref() {
            Some(MissingArgument::MultipleOfCache) if wrote_none => {
                let sentence = format!("{} needs a memory limit: write --memory 256MiB", text.name);
                MissingArgument::MemoryLimit(sentence).into()
            }
            _ => error,
        });
        self.plan = resolved.map_err(|error| match self.control.memory() {
            // Both obstacles in one message.
            Err(refusal) if refusal.scope.is_none() && lacks_limit(&error) => anyhow!(
                "{error}; as pagewise runs now, there is no memory limit either: {}",
                rights::ways(refusal, self.control.limit_in_place())
            ),
            _ => error,
        })?;
        self.plan.typed = Some(self.typed.clone());
        self.plan.max_written_bytes = self.max_written_bytes;
        self.plan.trace = self.asked.traced.as_ref().map(|traced| traced.planned.clone());
        ensure!(
            self.device.is_some()
                || !self.plan.cells.iter().any(|cell| cell.conditions.drops_file_of_actor()),
            "the file of an actor leaves memory before each sample, and {} is in memory: name a directory on a disk",
            self.plan.source.path()
        );
        let directory = self.actor_directory()?;
        if let Source::File { directory: of_plan, .. } = &mut self.plan.source {
            *of_plan = directory;
        }
        refuse_unlike_recording(&self.plan)
    }

    /// Directory of the files of actors beside the user's file, if there are any: the one that was
    /// named, or that of the file.
    fn actor_directory(&self) -> Result<Option<String>> {
        let Destination::File { directory: named, .. } = &self.asked.destination else { return Ok(None) };
        let makes_none = [false, true].into_iter().all(|written| self.plan.actor_files(written).is_empty());
        if makes_none {
            ensure!(named.is_none(), "your own file is only read, and no other is made: leave --dir out");
            return Ok(None);
        }
        let file = Path::new(self.plan.source.path());
        let directory = match self.plan.source.directory() {
            Some(directory) => Path::new(directory),
            None => file.parent().unwrap_or(Path::new("/")),
        };
        let usage = "an actor has a file of its own, on the filesystem of your file: name a directory there with --dir, or let it read yours by file=same";
        files::check_directory(directory).map_err(|error| match error {
            DirectoryError::ReadOnly { .. } if named.is_none() => anyhow!(
                "an actor has a file of its own, on the filesystem of your file, which is read-only: let it read yours by file=same"
            ),
            error => anyhow!(error).context(usage),
        })?;
        let device = |path: &Path| rustix::fs::stat(path).map(|found| found.st_dev);
        ensure!(device(directory)? == device(file)?, "{usage}; {} is on another one", directory.display());
        Ok(Some(text_of(directory)?))
    }

    /// Check that its files fit on their filesystem.
    pub fn ensure_space(&self) -> Result<()> {
        let Some(directory) = self.plan.source.directory() else { return Ok(()) };
        let checked = dataset::check_space(&Path::new(directory).join("dataset"), self.plan.space_bytes().0);
        let largest = self.plan.cells.iter().map(|cell| cell.conditions.file_bytes).max();
        checked.map_err(|error| match fitting(&error, largest) {
            Some(size) => anyhow!("{error}: write --file-size {size} or less, or --dir DIR with more space"),
            None => error.into(),
        })
    }

    /// Limit what its workloads write.
    pub fn limit_writes(&mut self, limit: Bytes) {
        self.max_written_bytes = Some(limit);
        self.plan.max_written_bytes = Some(limit);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_does_not_fit_is_refused_with_a_size_that_does() {
        let refused = |need: u64, free: u64| DatasetError::NoSpace {
            path: "data".into(),
            need: Bytes::mib(need),
            free: Bytes(free),
            reserve: Bytes::mib(16),
        };
        let of = |need, free| fitting(&refused(need, free), Some(Bytes::mib(40)));
        assert_eq!(of(40, 46_520 << 10), Some(Bytes::mib(29)));
        assert_eq!(of(40, 16 << 20), None, "nothing fits");
        let large = refused(200 << 10, 44_230 << 20);
        assert_eq!(fitting(&large, Some(Bytes::mib(200 << 10))), Some(Bytes::mib(43 << 10)));
        assert_eq!(of(80, 46_520 << 10), None, "several files need the space together");
    }
}
