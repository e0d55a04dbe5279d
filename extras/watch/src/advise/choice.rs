//! The file whose reads are replayed: the one of which the command read most by calls.

use std::fs;
use std::io;
use std::path::Path;

use anyhow::{Error, Result, anyhow, bail};
use pagewise_model::format::{bytes, counted, time};
use pagewise_model::inspection::Inspection;
use pagewise_model::inspection::{BroughtIn, InspectedFile};
use pagewise_model::untrusted::shell_word;

/// Pages that the kernel maps around a fault (fault_around_bytes is 64 KiB); more where a file lies
/// in large folios.
const AROUND_PAGES: u64 = 16;
/// Of less, as of the tables of a locale, nothing is said.
const LEAST_NAMED: u64 = 1 << 20;
/// Of less, as of the locale or of what is read of a library, no advice is of use.
const LEAST_READ: u64 = 64 << 10;
/// A command that accesses so many times as much through a mapping as it reads of any file is not
/// known by its reads.
const MAPPED_TIMES: u64 = 4;

/// The files that a command used most.
pub(super) struct Candidates<'a> {
    inspection: &'a Inspection,
    /// The file of which the command read most by calls, if it read of any.
    read: Option<&'a InspectedFile>,
    /// The file of which it accessed most through a mapping, if that is worth a word.
    mapped: Option<&'a InspectedFile>,
}

impl<'a> Candidates<'a> {
    pub(super) fn of(inspection: &'a Inspection) -> Self {
        let read = files(inspection).max_by_key(|file| read_bytes(file)).filter(|file| read_bytes(file) > 0);
        let mapped = files(inspection).max_by_key(|file| mapped_bytes(file, inspection));
        let mapped = mapped.filter(|file| mapped_bytes(file, inspection) >= LEAST_NAMED);
        Self { inspection, read, mapped }
    }

    /// The file whose accesses show what the command does; otherwise the reason that none does.
    /// Accesses through a mapping are recorded in windows alone.
    pub(super) fn chosen(&self, windows: bool) -> Result<&'a InspectedFile> {
        let read = self.read.map_or(0, read_bytes);
        let unknown = self.inspection.unassigned_bytes();
        if let Some(mapped) = self.mapped
            && mapped_bytes(mapped, self.inspection) / MAPPED_TIMES > read
        {
            return if windows { Ok(mapped) } else { Err(self.not_replayable()) };
        }
        if unknown > read && unknown >= LEAST_NAMED {
            bail!(
                "{} could not be assigned to a file, because the descriptors were closed too soon. That is more than was read of \
                 any known file: name the file with --file",
                bytes(unknown)
            );
        }
        let Some(file) = self.read else { return Err(self.not_replayable()) };
        let path = path(file);
        if read < LEAST_READ {
            bail!(
                "the command read most of {path}, and that is {}, too little for an advice: name another file with --file",
                bytes(read)
            );
        }
        if fs::metadata(path).is_err() {
            bail!(
                "most was read of {path} ({}), which is gone, so it cannot be replayed: name another file with --file",
                bytes(read)
            );
        }
        Ok(file)
    }

    /// The reason if nothing was read by calls, or little beside what was accessed through a
    /// mapping.
    fn not_replayable(&self) -> Error {
        let Some(mapped) = self.mapped else {
            return match self.inspection.not_watched() {
                Some(cut) => {
                    anyhow!("no read was seen, and nobody watched {cut}, so there is nothing to be replayed")
                }
                None => anyhow!("the command read no file by calls, so there is nothing to be replayed"),
            };
        };
        let faults = counted(faults(mapped), "fault");
        let word = |file| shell_word(path(file));
        let mapped = word(mapped);
        let by_calls = match self.read {
            None => "it reads no file by calls".to_string(),
            Some(read) => format!("it reads little by calls, {} of {}", bytes(read_bytes(read)), word(read)),
        };
        let named =
            self.read.map_or(String::new(), |read| format!("; to replay those, add --file {}", word(read)));
        anyhow!(
            "the command accesses {mapped} through a mapping ({faults}), and {by_calls}{named}. To record and replay its accesses to the \
             mapping, add --windows; how methods differ for reads of that file in general: pagewise read {mapped}"
        )
    }

    /// Lines about the run, and about the chosen file.
    pub(super) fn lines(&self, file: &InspectedFile) -> Vec<String> {
        let is_mapped = self.mapped.is_some_and(|mapped| std::ptr::eq(mapped, file)) && read_bytes(file) == 0;
        let brought =
            |brought: &BroughtIn| if is_mapped { brought.by_faults_bytes } else { brought.by_calls_bytes };
        let accessed = match is_mapped {
            true => format!(
                "most was accessed of {} through a mapping ({}",
                path(file),
                counted(faults(file), "fault")
            ),
            false => format!("most was read of {} ({}", path(file), bytes(read_bytes(file))),
        };
        let mut lines = vec![format!(
            "first run, as it is: {}; {accessed}, and {} came from the device for it); the second run is recorded",
            time(self.inspection.watched_ns),
            bytes(file.brought_in.as_ref().map_or(0, brought))
        )];
        lines.extend(self.mapped.filter(|mapped| mapped.path != file.path).map(|mapped| {
            let faults = counted(faults(mapped), "fault");
            let path = path(mapped);
            format!(
                "note: the command also accesses {path} through a mapping ({faults}), which is not replayed"
            )
        }));
        lines
    }
}

/// Files of data: those that are gone too, since something was read of them.
fn files(inspection: &Inspection) -> impl Iterator<Item = &InspectedFile> {
    // The files of /proc have no size.
    let is_data = |path: &String| match fs::metadata(path) {
        Ok(found) => found.is_file() && found.len() > 0,
        Err(error) => error.kind() == io::ErrorKind::NotFound,
    };
    inspection.files.iter().filter(move |file| !file.code && file.path.as_ref().is_some_and(is_data))
}

fn path(file: &InspectedFile) -> &str {
    file.path.as_deref().unwrap_or_default()
}

fn read_bytes(file: &InspectedFile) -> u64 {
    file.reads.as_ref().map_or(0, |reads| reads.bytes)
}

fn faults(file: &InspectedFile) -> u64 {
    file.mapping.as_ref().map_or(0, |mapping| mapping.minor_faults + mapping.major_faults)
}

/// About the bytes accessed through a mapping: the pages that faulted, with those that the kernel
/// maps around them.
fn mapped_bytes(file: &InspectedFile, inspection: &Inspection) -> u64 {
    let around = file.mapping.as_ref().map_or(0, |mapping| mapping.faulted_pages * AROUND_PAGES);
    let size = file.path.as_ref().and_then(|path| fs::metadata(path).ok()).map_or(0, |found| found.len());
    (around * inspection.page_bytes).min(size)
}

/// Bytes that a command read of `file` by calls.
pub(super) fn read_bytes_of(file: &Path, inspection: &Inspection) -> u64 {
    let is_it = |one: &&InspectedFile| one.path.as_deref().map(Path::new) == Some(file);
    inspection.files.iter().find(is_it).map_or(0, read_bytes)
}
