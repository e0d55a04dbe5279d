//! The file that is read: opening, mapping and advising it.

use std::io;
use std::num::NonZeroU64;
use std::sync::Arc;

use pagewise_model::Method;
use pagewise_model::method::options::{FileAdvice, MapAdvice, SetUpStep};
use pagewise_protocol::{CallFailure, Job};
use pagewise_sys::{Advice, AnonymousMemory, Completion, FileMapping, Ring, RingOptions, pread_dontcache};
use rustix::fd::OwnedFd;
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;

use crate::effects::Effects;
use crate::failure::{failed, refused, short, without_effect};
use crate::files::{FilePart, Files};

/// Size of one call when the file is read into anonymous memory.
const LOAD_BYTES: usize = 1 << 20;

/// The file of a job, by name.
#[derive(Clone)]
pub(crate) struct DataFile {
    pub path: String,
    pub file_bytes: u64,
    /// Length of the part that is mapped and advised, from the start.
    pub span_bytes: usize,
    /// Divisor of offset, length and memory address required by O_DIRECT; at least 1.
    pub direct_alignment: usize,
    /// O_DIRECT on this architecture.
    pub direct_flag: u32,
    /// Effects of the method's options.
    pub effects: Effects,
    /// The files, if there are several.
    pub several: Option<Arc<Files>>,
}

impl DataFile {
    pub fn new(job: &Job, method: &Method) -> Self {
        Self {
            path: job.path.clone(),
            file_bytes: job.file_bytes,
            span_bytes: job.span_bytes as usize,
            direct_alignment: job.direct_alignment.max(1) as usize,
            direct_flag: job.direct_flag,
            effects: Effects::of(method),
            several: None,
        }
    }

    /// The files of a job that may have several.
    pub fn of_job(job: &Job, method: &Method) -> Result<Self, CallFailure> {
        let one = Self::new(job, method);
        Ok(match Files::of(job, method)? {
            None => one,
            Some(files) => {
                Self { span_bytes: files.span.end() as usize, several: Some(Arc::new(files)), ..one }
            }
        })
    }

    /// Files of the data in their span: the file itself, if it is one.
    pub fn parts(&self) -> Vec<FilePart<'_>> {
        match &self.several {
            None => vec![FilePart { path: &self.path, start: 0, bytes: self.span_bytes as u64 }],
            Some(files) => files.all().collect(),
        }
    }

    /// The path of the file at this offset of the span, and the offset in it.
    pub fn place(&self, offset: u64) -> (&str, u64) {
        match &self.several {
            None => (&self.path, offset),
            Some(files) => {
                let (index, offset) = files.span.locate(0, offset);
                (files.part(index).path, offset)
            }
        }
    }

    /// Open the file for reading; with O_DIRECT if `direct`.
    pub fn open(&self, direct: bool) -> Result<OwnedFd, CallFailure> {
        self.open_path(&self.path, direct)
    }

    fn open_path(&self, path: &str, direct: bool) -> Result<OwnedFd, CallFailure> {
        let flags = OFlags::RDONLY | OFlags::CLOEXEC;
        if !direct {
            return rustix::fs::open(path, flags, Mode::empty())
                .map_err(|error| failed("open", error.into(), path, 0));
        }
        rustix::fs::open(path, flags | OFlags::from_bits_retain(self.direct_flag), Mode::empty())
            .map_err(|error| refused("open(O_DIRECT)", error.into(), path))
    }

    /// Open each of the files for reading; with O_DIRECT if `direct`.
    pub fn open_each(&self, direct: bool) -> Result<Vec<OwnedFd>, CallFailure> {
        self.parts().into_iter().map(|part| self.open_path(part.path, direct)).collect()
    }

    /// Open each of the files, and give the kernel the method's advice for it.
    pub fn open_each_advised(&self) -> Result<Vec<OwnedFd>, CallFailure> {
        let opened = |part: FilePart<'_>| {
            let file = self.open_path(part.path, self.effects.direct)?;
            self.advise(&file, part.path, part.bytes)?;
            Ok(file)
        };
        self.parts().into_iter().map(opened).collect()
    }

    /// Give the kernel the method's advice for a file of which so many bytes are read.
    fn advise(&self, file: &OwnedFd, path: &str, span_bytes: u64) -> Result<(), CallFailure> {
        self.effects.steps.iter().try_for_each(|(word, step)| {
            let SetUpStep::Advise(Some(advice), _) = step else {
                return Err(without_effect(word, path));
            };
            Self::advise_file(file, *advice, (path, span_bytes))
        })
    }

    fn advise_file(
        file: &OwnedFd,
        advice: FileAdvice,
        (path, span_bytes): (&str, u64),
    ) -> Result<(), CallFailure> {
        use rustix::fs::Advice;
        let (advice, call) = match advice {
            FileAdvice::Random => (Advice::Random, "posix_fadvise(RANDOM)"),
            FileAdvice::Sequential => (Advice::Sequential, "posix_fadvise(SEQUENTIAL)"),
            FileAdvice::WillNeed => (Advice::WillNeed, "posix_fadvise(WILLNEED)"),
            FileAdvice::NoReuse => (Advice::NoReuse, "posix_fadvise(NOREUSE)"),
        };
        // Other advice concerns the whole file whatever the range; 0 means to its end.
        let len = if advice == Advice::WillNeed { span_bytes } else { 0 };
        rustix::fs::fadvise(file, 0, NonZeroU64::new(len), advice)
            .map_err(|error| refused(call, error.into(), path))
    }

    /// Open, map and advise, in the order of the options: each file in its place of the span.
    pub fn map(&self) -> Result<FileMapping, CallFailure> {
        let mapping = match &self.several {
            None => FileMapping::new(self.open(false)?, self.span_bytes, self.effects.populate),
            Some(files) => {
                let files = self.open_each(false)?.into_iter().zip(files.all());
                let places = files.map(|(file, part)| (file, part.start as usize, part.bytes as usize));
                FileMapping::of_files(&places.collect::<Vec<_>>(), self.effects.populate)
            }
        };
        let mapping = mapping.map_err(|error| refused("mmap", error, &self.path))?;
        for (word, step) in &self.effects.steps {
            let SetUpStep::Advise(_, Some(advice)) = step else {
                return Err(without_effect(word, &self.path));
            };
            let advice = map_advice(*advice);
            for FilePart { path, start, bytes } in self.parts() {
                mapping
                    .advise(start as usize..(start + bytes) as usize, advice)
                    .map_err(|error| refused(advice.name(), error, path))?;
            }
        }
        Ok(mapping)
    }

    /// Read the span into anonymous memory, in huge pages if available: the kernel's own mapping of
    /// the page cache has them, and a ceiling with more address translation than pread would not be
    /// one.
    pub fn load(&self) -> Result<AnonymousMemory, CallFailure> {
        let mut memory =
            AnonymousMemory::new(self.span_bytes).map_err(|error| failed("mmap", error, &self.path, 0))?;
        // A kernel without transparent huge pages refuses, and has none itself.
        let _ = memory.advise(Advice::HugePage);
        for FilePart { path, start, bytes } in self.parts() {
            let file = self.open_path(path, false)?;
            let span = &mut memory.bytes_mut()[start as usize..(start + bytes) as usize];
            for (index, chunk) in span.chunks_mut(LOAD_BYTES).enumerate() {
                let offset = (index * LOAD_BYTES) as u64;
                let expected = chunk.len();
                let received = rustix::io::pread(&file, &mut *chunk, offset)
                    .map_err(|error| failed("pread", error.into(), path, offset))?;
                if received != expected {
                    return Err(short("pread", path, offset, expected, received));
                }
            }
        }
        Ok(memory)
    }

    /// Set up a ring over `files`, with a buffer of `slot_bytes` for each read in flight.
    pub fn ring(&self, files: Vec<OwnedFd>, slot_bytes: usize) -> Result<Ring, CallFailure> {
        let options =
            RingOptions { depth: self.effects.depth, slot_bytes, fixed: self.effects.fixed, dsync: false };
        let mut ring = Ring::of_files(files, options)
            .map_err(|refusal| refused(refusal.call, refusal.error, &self.path))?;
        if self.effects.direct {
            self.try_out(&mut ring)?;
        }
        Ok(ring)
    }

    /// Do one aligned read before the clock starts: O_DIRECT may be refused at the first transfer.
    fn try_out(&self, ring: &mut Ring) -> Result<(), CallFailure> {
        let failure = |error| refused("io_uring read (O_DIRECT)", error, &self.path);
        ring.queue_read(0, 0, self.direct_alignment);
        ring.submit(1).map_err(failure)?;
        match ring.complete() {
            Some(Completion { result, .. }) if result < 0 => {
                Err(failure(io::Error::from_raw_os_error(-result)))
            }
            _ => Ok(()),
        }
    }

    /// Allocate a buffer whose pages are present, so that no fault on it falls into a read.
    pub fn buffer(&self, len: usize) -> Result<AnonymousMemory, CallFailure> {
        let mut buffer = AnonymousMemory::new(len).map_err(|error| failed("mmap", error, &self.path, 0))?;
        buffer.bytes_mut().fill(0);
        Ok(buffer)
    }
}

/// Advice of madvise(2) for a mapping.
pub(crate) const fn map_advice(advice: MapAdvice) -> Advice {
    match advice {
        MapAdvice::Random => Advice::Random,
        MapAdvice::Sequential => Advice::Sequential,
        MapAdvice::WillNeed => Advice::WillNeed,
        MapAdvice::PopulateRead => Advice::PopulateRead,
        MapAdvice::PopulateWrite => Advice::PopulateWrite,
        MapAdvice::HugePage => Advice::HugePage,
    }
}

/// Transfer mode of a call; chosen once.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum IoMode {
    /// Through the page cache.
    Cached,
    /// Through the page cache, without leaving pages in it: RWF_DONTCACHE.
    DontCache,
    /// Bypassing the page cache: O_DIRECT.
    Direct,
}

impl IoMode {
    pub fn of(effects: &Effects) -> Self {
        if effects.direct {
            IoMode::Direct
        } else if effects.dont_cache {
            IoMode::DontCache
        } else {
            IoMode::Cached
        }
    }

    /// Name of the call that reads at an offset in this mode.
    pub const fn pread(self) -> &'static str {
        match self {
            IoMode::Cached => "pread",
            IoMode::DontCache => "preadv2(RWF_DONTCACHE)",
            IoMode::Direct => "pread(O_DIRECT)",
        }
    }

    /// Request one read before the clock starts, because a flag may be accepted at open and refused
    /// at the first transfer. Past the end of the file, RWF_DONTCACHE is checked without bringing
    /// in a page. The descriptor's position does not change.
    pub fn try_out(
        self,
        file: &OwnedFd,
        buffer: &mut AnonymousMemory,
        data: &DataFile,
    ) -> Result<(), CallFailure> {
        let refused = |error: Errno| refused(self.pread(), error.into(), &data.path);
        match self {
            IoMode::Cached => Ok(()),
            IoMode::Direct => {
                let len = data.direct_alignment.min(buffer.bytes().len());
                rustix::io::pread(file, &mut buffer.bytes_mut()[..len], 0).map(drop).map_err(refused)
            }
            IoMode::DontCache => {
                let byte = &mut buffer.bytes_mut()[..1];
                pread_dontcache(file, byte, data.file_bytes).map(drop).map_err(refused)
            }
        }
    }
}

/// A read that failed or was too short: its offset, and the errno or the number of bytes.
pub(crate) struct FailedRead {
    pub offset: u64,
    pub expected: usize,
    pub result: Result<usize, Errno>,
}

impl FailedRead {
    /// A failed read from a completion of a ring.
    pub fn at_completion(offset: u64, expected: usize, completion: Completion) -> Self {
        let result = match completion.result {
            errno if errno < 0 => Err(Errno::from_raw_os_error(-errno)),
            received => Ok(received as usize),
        };
        Self { offset, expected, result }
    }

    #[cold]
    pub fn into_failure(self, call: &str, path: &str) -> CallFailure {
        match self.result {
            Ok(received) => short(call, path, self.offset, self.expected, received),
            Err(errno) => failed(call, errno.into(), path, self.offset),
        }
    }
}
