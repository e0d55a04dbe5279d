//! The file that is read: how readers and scanners open, map and advise it.

use std::io::{self, IoSliceMut};
use std::num::NonZeroU64;

use pagewise_model::Method;
use pagewise_model::method::options::{FileAdvice, MapAdvice};
use pagewise_model::protocol::{CallFailure, Job};
use pagewise_sys::{Advice, AnonymousMemory, Completion, FileMapping, Ring, RingOptions};
use rustix::fd::OwnedFd;
use rustix::fs::{Mode, OFlags};
use rustix::io::{Errno, ReadWriteFlags};

use crate::effects::{Effects, Step};
use crate::failure::{failed, refusal, refused, short};

/// RWF_DONTCACHE (Linux 6.14), which rustix does not name yet.
pub(crate) const DONTCACHE: ReadWriteFlags = ReadWriteFlags::from_bits_retain(0x80);

/// Bytes of one call where the file is brought into anonymous memory.
const LOAD_BYTES: usize = 1 << 20;

/// The file of a job, by its name.
#[derive(Clone)]
pub(crate) struct DataFile {
    pub path: String,
    pub file_bytes: u64,
    /// The part that is mapped and advised, from the start.
    pub span_bytes: usize,
    /// What offset, length and memory of O_DIRECT must be multiples of; at least 1.
    pub direct_alignment: usize,
    /// O_DIRECT on this architecture.
    pub direct_flag: u32,
    /// What the options of the method ask for.
    pub effects: Effects,
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
        }
    }

    /// Opens the file for reading; with `direct` by O_DIRECT.
    pub fn open(&self, direct: bool) -> Result<OwnedFd, CallFailure> {
        let flags = OFlags::RDONLY | OFlags::CLOEXEC;
        if !direct {
            return rustix::fs::open(&self.path, flags, Mode::empty())
                .map_err(|error| failed("open", error.into(), &self.path, 0));
        }
        rustix::fs::open(&self.path, flags | OFlags::from_bits_retain(self.direct_flag), Mode::empty())
            .map_err(|error| refused("open(O_DIRECT)", error.into(), &self.path))
    }

    /// Opens the file and gives the kernel the advice of the method, in the order in which the options were written.
    pub fn open_advised(&self) -> Result<OwnedFd, CallFailure> {
        let file = self.open(self.effects.direct)?;
        for (word, step) in &self.effects.steps {
            let Step::Advise(Some(advice), _) = step else { return Err(self.without_effect(word)) };
            self.advise_file(&file, *advice)?;
        }
        Ok(file)
    }

    fn advise_file(&self, file: &OwnedFd, advice: FileAdvice) -> Result<(), CallFailure> {
        use rustix::fs::Advice;
        let (advice, call) = match advice {
            FileAdvice::Random => (Advice::Random, "posix_fadvise(RANDOM)"),
            FileAdvice::Sequential => (Advice::Sequential, "posix_fadvise(SEQUENTIAL)"),
            FileAdvice::WillNeed => (Advice::WillNeed, "posix_fadvise(WILLNEED)"),
            FileAdvice::NoReuse => (Advice::NoReuse, "posix_fadvise(NOREUSE)"),
        };
        // The others concern the whole file whatever the range; 0 means to its end.
        let len = if advice == Advice::WillNeed { self.span_bytes as u64 } else { 0 };
        rustix::fs::fadvise(file, 0, NonZeroU64::new(len), advice)
            .map_err(|error| refused(call, error.into(), &self.path))
    }

    /// Opens, maps and advises, in the order in which the options were written.
    pub fn map(&self) -> Result<FileMapping, CallFailure> {
        let file = self.open(false)?;
        let mapping = FileMapping::new(&file, self.span_bytes, self.effects.populate)
            .map_err(|error| failed("mmap", error, &self.path, 0))?;
        for (word, step) in &self.effects.steps {
            let Step::Advise(_, Some(advice)) = step else { return Err(self.without_effect(word)) };
            let advice = map_advice(*advice);
            mapping
                .advise(0..self.span_bytes, advice)
                .map_err(|error| refused(advice.name(), error, &self.path))?;
        }
        Ok(mapping)
    }

    /// An option that this access cannot act on must not be measured under its name.
    fn without_effect(&self, word: &str) -> CallFailure {
        refusal("open", &self.path, format!("option '{word}' has no effect on this access"))
    }

    /// The bytes of the span in anonymous memory, in huge pages where there are any: the kernel's own mapping of the page
    /// cache has them, and a ceiling that paid for more address translation than pread would be none.
    pub fn load(&self) -> Result<AnonymousMemory, CallFailure> {
        let file = self.open(false)?;
        let mut memory =
            AnonymousMemory::new(self.span_bytes).map_err(|error| failed("mmap", error, &self.path, 0))?;
        // A kernel without transparent huge pages refuses; then there are none to be had for the kernel either.
        let _ = memory.advise(Advice::HugePage);
        let span = &mut memory.bytes_mut()[..self.span_bytes];
        for (index, chunk) in span.chunks_mut(LOAD_BYTES).enumerate() {
            let offset = (index * LOAD_BYTES) as u64;
            let expected = chunk.len();
            let received = rustix::io::pread(&file, &mut *chunk, offset)
                .map_err(|error| failed("pread", error.into(), &self.path, offset))?;
            if received != expected {
                return Err(short("pread", &self.path, offset, expected, received));
            }
        }
        Ok(memory)
    }

    /// A ring over `file`, with a buffer of `slot_bytes` for each read in flight.
    pub fn ring(&self, file: OwnedFd, slot_bytes: usize) -> Result<Ring, CallFailure> {
        let options = RingOptions { depth: self.effects.depth, slot_bytes, fixed: self.effects.fixed };
        let mut ring =
            Ring::new(file, options).map_err(|refusal| refused(refusal.call, refusal.error, &self.path))?;
        if self.effects.direct {
            self.try_out(&mut ring)?;
        }
        Ok(ring)
    }

    /// One aligned read before the clock starts: O_DIRECT may be refused at the first transfer.
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

    /// A buffer whose pages are there, so that no fault on it falls into a read.
    pub fn buffer(&self, len: usize) -> Result<AnonymousMemory, CallFailure> {
        let mut buffer = AnonymousMemory::new(len).map_err(|error| failed("mmap", error, &self.path, 0))?;
        buffer.bytes_mut().fill(0);
        Ok(buffer)
    }
}

/// The advice as madvise(2) knows it.
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

/// How bytes come through a call; chosen once.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum IoMode {
    /// Through the page cache.
    Cached,
    /// Through the page cache, leaving nothing there: RWF_DONTCACHE.
    DontCache,
    /// Past the page cache: O_DIRECT.
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

    /// The call that reads at an offset in this mode.
    pub const fn pread(self) -> &'static str {
        match self {
            IoMode::Cached => "pread",
            IoMode::DontCache => "preadv2(RWF_DONTCACHE)",
            IoMode::Direct => "pread(O_DIRECT)",
        }
    }

    /// Asks for one read before the clock starts, because a flag may be accepted at open and refused at the first
    /// transfer. Behind the end of the file RWF_DONTCACHE is checked and no page is brought in. The descriptor's position
    /// stays where it is.
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
                let mut slices = [IoSliceMut::new(&mut buffer.bytes_mut()[..1])];
                rustix::io::preadv2(file, &mut slices, data.file_bytes, DONTCACHE).map(drop).map_err(refused)
            }
        }
    }
}

/// A read that did not bring what it should: at which offset, with which errno or how many bytes.
pub(crate) struct FailedRead {
    pub offset: u64,
    pub expected: usize,
    pub result: Result<usize, Errno>,
}

impl FailedRead {
    /// The same, as a ring tells it.
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
