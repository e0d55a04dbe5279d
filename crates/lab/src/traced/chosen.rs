//! The files of a trace whose reads are replayed, each as it was when it was recorded.

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail, ensure};
use pagewise_host::files;
use pagewise_model::inspection::Inspection;
use pagewise_model::plan::FileIdentity;
use pagewise_model::trace::{Trace, TraceFile};
use pagewise_model::watched::ReadOrder;
use pagewise_model::work::MAX_FILES;
use pagewise_model::{Bytes, Method, Untrusted, format};

/// A file whose reads are replayed.
#[derive(Clone, Copy)]
pub struct ChosenFile<'a> {
    /// Index of the file in the trace.
    pub number: u32,
    /// Entry of the file in the trace.
    pub file: &'a TraceFile,
    /// The file that was recorded.
    pub recorded: &'a FileIdentity,
}

/// The files that are named, or those that were named as the program was recorded; each of them is
/// the one that was recorded, and its reads are within it.
pub fn chosen<'a>(trace: &'a Trace, names: &[PathBuf], path: &Path) -> Result<Vec<ChosenFile<'a>>> {
    let found = match names {
        [] => usual(trace, path)?,
        names => names.iter().map(|name| named(trace, name, path)).collect::<Result<_>>()?,
    };
    ensure!(
        found.len() <= MAX_FILES as usize,
        "{} has reads of {} that were named: at most {} are replayed together, and --file chooses them",
        path.display(),
        format::counted(found.len() as u64, "file"),
        format::grouped(u64::from(MAX_FILES))
    );
    let files =
        found.into_iter().map(|(number, file)| as_recorded(number, file)).collect::<Result<Vec<_>>>()?;
    check_apart(&files)?;
    let numbers: HashMap<u32, &TraceFile> = files.iter().map(|chosen| (chosen.number, chosen.file)).collect();
    let behind = trace.accesses.iter().find_map(|access| {
        let file = numbers.get(&access.file)?;
        let end = access.offset.saturating_add(access.len);
        let file_bytes = file.identity.as_ref()?.file_bytes.0;
        (end > file_bytes).then_some((access, file, file_bytes))
    });
    if let Some((access, file, file_bytes)) = behind {
        bail!(
            "{} has a read of {} bytes at {} of {}, which ends at {file_bytes}",
            path.display(),
            access.len,
            access.offset,
            Untrusted(&file.path)
        );
    }
    files.iter().try_for_each(|chosen| check_resident(trace, chosen, path))?;
    Ok(files)
}

/// The file as it is now, which must be the one that was recorded.
fn as_recorded(number: u32, file: &TraceFile) -> Result<ChosenFile<'_>> {
    let Some(recorded) = &file.identity else {
        bail!(
            "{} was gone at the end of the recording, or another file: --file names another",
            Untrusted(&file.path)
        );
    };
    let (_, found) = files::identify(Path::new(&file.path))?;
    ensure!(
        found == *recorded,
        "{} is not the file that was recorded: its size, its modification time or itself is another; record the program again",
        Path::new(&file.path).display()
    );
    Ok(ChosenFile { number, file, recorded })
}

/// Refuse one file under two names, and files of several filesystems: what a device reads for one
/// of them would be that of others.
fn check_apart(files: &[ChosenFile<'_>]) -> Result<()> {
    let mut seen = HashMap::new();
    for ChosenFile { number, file, recorded } in files {
        if let Some((earlier_number, earlier)) =
            seen.insert((recorded.device, recorded.inode), (number, file))
        {
            ensure!(
                earlier_number != number,
                "{} is named twice, by this name or through a link: name it once",
                Untrusted(&file.path)
            );
            bail!(
                "{} and {} are one file: choose one of the names with --file",
                Untrusted(&earlier.path),
                Untrusted(&file.path)
            );
        }
    }
    let Some(first) = files.first() else { return Ok(()) };
    if let Some(other) = files.iter().find(|other| other.recorded.device != first.recorded.device) {
        bail!(
            "{} and {} are on two filesystems: replay the files of one, each with --file",
            Untrusted(&first.file.path),
            Untrusted(&other.file.path)
        );
    }
    Ok(())
}

/// Refuse pages in the page cache that are not of the file, or not those that the trace counts.
fn check_resident(trace: &Trace, chosen: &ChosenFile<'_>, path: &Path) -> Result<()> {
    let (file, file_bytes) = (chosen.file, chosen.recorded.file_bytes.0);
    let Some(pages) = trace.resident.get(&chosen.number) else {
        ensure!(
            file.resident_before.is_none_or(|bytes| bytes == 0),
            "{} does not say which pages of {} were in the page cache",
            path.display(),
            Untrusted(&file.path)
        );
        return Ok(());
    };
    let page_bytes = trace.header.page_bytes;
    ensure!(
        pages.end() <= file_bytes.div_ceil(page_bytes),
        "{} says that page {} of {} was in the page cache, which ends at {file_bytes}",
        path.display(),
        pages.end() - 1,
        Untrusted(&file.path)
    );
    ensure!(
        file.resident_before == Some(pages.count() * page_bytes),
        "{} says that {} bytes of {} were in the page cache, and has {} of it",
        path.display(),
        file.resident_before.unwrap_or_default(),
        Untrusted(&file.path),
        format::counted(pages.count(), "page")
    );
    Ok(())
}

/// The method by which the program read all of these files.
pub fn own_method(trace: &Trace, files: &[ChosenFile<'_>], path: &Path) -> Result<Method> {
    let mapped = mapped(trace);
    let methods =
        || files.iter().map(|chosen| (chosen, method(chosen.file, mapped.contains(&chosen.number))));
    let (first, method) = methods().next().context("a replay has a file")?;
    if let Some((other, another)) = methods().find(|(_, another)| *another != method) {
        bail!(
            "{} was read by {method} and {} by {another}, so the replay of no method shows whether {} stands for the program: choose files \
             that were read alike, each with --file",
            Untrusted(&first.file.path),
            Untrusted(&other.file.path),
            path.display()
        );
    }
    method.parse().map_err(anyhow::Error::msg)
}

/// Files of which more was accessed through a mapping than by calls.
fn mapped(trace: &Trace) -> HashSet<u32> {
    let mut bytes: HashMap<u32, (u64, u64)> = HashMap::new();
    for access in &trace.accesses {
        let (touches, all) = bytes.entry(access.file).or_default();
        *touches += if access.kind.is_touch() { access.len } else { 0 };
        *all += access.len;
    }
    bytes.into_iter().filter(|(_, (touches, all))| *touches > all / 2).map(|(file, _)| file).collect()
}

/// The method by which the program read a file.
fn method(file: &TraceFile, is_mapped: bool) -> &'static str {
    if is_mapped {
        return match file.mapping_said_to_be_read {
            ReadOrder::Normal => "mmap",
            ReadOrder::Random => "mmap:random",
            ReadOrder::Sequential => "mmap:sequential",
        };
    }
    match (file.direct, file.said_to_be_read) {
        (true, _) => "pread:direct",
        (false, ReadOrder::Normal) => "pread",
        (false, ReadOrder::Random) => "pread:random",
        (false, ReadOrder::Sequential) => "pread:sequential",
    }
}

/// The files that were named as they were recorded, as far as they were read: a replay drops its
/// files from the page cache.
fn usual<'a>(trace: &'a Trace, path: &Path) -> Result<Vec<(u32, &'a TraceFile)>> {
    let files = || (0u32..).zip(&trace.trailer.files);
    let named = || files().filter(|(_, file)| file.is_named());
    let read: Vec<_> = named().filter(|(_, file)| file.reads > 0).collect();
    let shown = path.display();
    if !read.is_empty() {
        return Ok(read);
    }
    if let Some((_, unread)) = named().max_by_key(|(_, file)| file.mapped_faults) {
        ensure!(unread.mapped_faults == 0, only_mapped(unread));
        bail!(
            "{shown} was recorded for {}, and holds no read of it: --file names another",
            Untrusted(&unread.path)
        );
    }
    match files().filter(|(_, file)| file.reads > 0).max_by_key(|(_, file)| file.read_bytes) {
        None => bail!(no_read(trace, path)),
        Some((_, file)) => bail!(
            "{shown} was recorded without --cold or --as-is, and a replay drops its file from the page cache: name it, as in --file {} (most was read \
             of it: {})",
            Untrusted(&file.path),
            Bytes(file.read_bytes)
        ),
    }
}

/// The error of a trace of no read at all.
fn no_read(trace: &Trace, path: &Path) -> String {
    let cut = trace.trailer.inspection.as_ref().and_then(Inspection::not_watched);
    let why = cut.map_or_else(
        || "the program accessed no file by calls".to_string(),
        |cut| format!("nobody watched {cut}"),
    );
    format!("{} holds no read: {why}", path.display())
}

/// The error of a file whose accesses a trace does not hold.
fn only_mapped(file: &TraceFile) -> String {
    format!(
        "the program accessed {} through a mapping ({}), and the trace does not hold these accesses: record it with --windows",
        Untrusted(&file.path),
        format::counted(file.mapped_faults, "fault")
    )
}

fn named<'a>(trace: &'a Trace, chosen: &Path, path: &Path) -> Result<(u32, &'a TraceFile)> {
    let wanted = chosen.canonicalize().unwrap_or_else(|_| chosen.to_path_buf());
    ensure!(wanted.to_str().is_some(), "the path {} is not UTF-8: traces need UTF-8", wanted.display());
    let is_only_mapped =
        |file: &&TraceFile| Path::new(&file.path) == wanted && file.reads == 0 && file.mapped_faults > 0;
    if let Some(mapped) = trace.trailer.files.iter().find(is_only_mapped) {
        bail!(only_mapped(mapped));
    }
    let mut files = (0u32..).zip(&trace.trailer.files);
    files.find(|(_, file)| Path::new(&file.path) == wanted && file.reads > 0).with_context(|| {
        let known = trace.trailer.files.iter().filter(|file| file.reads > 0).take(5);
        let known: Vec<String> = known.map(|file| Untrusted(&file.path).to_string()).collect();
        if known.is_empty() {
            return no_read(trace, path);
        }
        format!(
            "{} holds no read of {}: its files are {}",
            path.display(),
            chosen.display(),
            known.join(", ")
        )
    })
}
