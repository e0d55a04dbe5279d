//! A file that records are written to, and the source that they are pieces of.

use std::fs::{File, OpenOptions};
use std::io::{Read, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use pagewise_model::random::Random;
use pagewise_model::ring::{RecordRing, SOURCE_PERIOD};
use pagewise_model::{Bytes, content};
use pagewise_protocol::Job;

use super::{Sample, Spent, alternate, bare, worker};
use crate::dataset::Scratch;
use crate::pagewise::Pagewise;

/// Seed of the source.
const SOURCE_SEED: u64 = 4;

/// What the file is before a sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Before {
    /// New and sparse: the first touch of each page is part of the measured region.
    New,
    /// Written before, and mapped with MAP_POPULATE: the loop alone.
    Written,
}

impl Before {
    const fn name(self) -> &'static str {
        match self {
            Before::New => "new",
            Before::Written => "written",
        }
    }
}

/// What is written, how, and onto what.
#[derive(Clone, Copy, Debug)]
pub struct RingCell {
    /// `append` or `fill`.
    pub workload: &'static str,
    /// Size of a record or block.
    pub record_bytes: u64,
    /// Size of the file.
    pub file_bytes: u64,
    /// How often the ring is gone round.
    pub passes: u64,
    /// Size of a staging buffer; 0: none.
    pub buffer_bytes: u64,
    /// What the file is before.
    pub before: Before,
}

impl RingCell {
    /// The ring in numbers.
    pub const fn ring(&self) -> RecordRing {
        RecordRing::new(self.file_bytes, self.record_bytes, self.passes)
    }

    /// The method, as pagewise writes it.
    pub fn method(&self) -> String {
        let buffer = (self.buffer_bytes > 0).then(|| format!("buffer={}", Bytes(self.buffer_bytes)));
        let populate = (self.before == Before::Written).then(|| "populate".to_string());
        let options: Vec<String> = buffer.into_iter().chain(populate).collect();
        if options.is_empty() { "mmap".to_string() } else { format!("mmap:{}", options.join("+")) }
    }

    /// What stands in the table.
    pub fn name(&self) -> String {
        let (record, file, before) = (Bytes(self.record_bytes), Bytes(self.file_bytes), self.before.name());
        format!("{record} {before} {file} x{} {}", self.passes, self.method())
    }
}

/// Times of the measured region.
pub struct RingTimes {
    /// Of pagewise.
    pub pagewise: Vec<f64>,
    /// Of the bare program.
    pub bare: Vec<f64>,
    /// Of the bare program again.
    pub control: Vec<f64>,
}

/// The file of a cell, and the source beside it.
pub struct RingFile {
    cell: RingCell,
    path: PathBuf,
    source_path: PathBuf,
    source: Vec<u8>,
}

impl RingFile {
    /// Makes the source, and the file where it is to be written before.
    pub fn new(scratch: &Scratch, cell: RingCell) -> Result<Self> {
        let mut source = vec![0; cell.ring().source_bytes() as usize];
        content::fill(SOURCE_SEED, 0, &mut source);
        let file = Self { cell, path: scratch.path("ring"), source_path: scratch.path("source"), source };
        std::fs::write(&file.source_path, &file.source)?;
        file.create()?;
        if cell.before == Before::Written {
            file.write_zeros()?;
        }
        Ok(file)
    }

    /// The file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// What its records are pieces of.
    pub fn source_path(&self) -> &Path {
        &self.source_path
    }

    fn create(&self) -> Result<()> {
        match std::fs::remove_file(&self.path) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(error)?,
            _ => {}
        }
        let file =
            File::create_new(&self.path).with_context(|| format!("cannot make {}", self.path.display()))?;
        Ok(file.set_len(self.cell.file_bytes)?)
    }

    fn write_zeros(&self) -> Result<()> {
        let mut file = OpenOptions::new().write(true).open(&self.path)?;
        let block = vec![0; 1 << 20];
        let mut left = self.cell.file_bytes as usize;
        while left > 0 {
            let len = left.min(block.len());
            file.write_all(&block[..len]).context("cannot write the file")?;
            left -= len;
        }
        Ok(())
    }

    /// The file as it is to be before a sample.
    pub fn prepare(&self) -> Result<()> {
        if self.cell.before == Before::New { self.create() } else { Ok(()) }
    }

    /// One sample of pagewise.
    pub fn pagewise(&self, pagewise: &Pagewise<'_>) -> Result<Spent> {
        self.prepare()?;
        let records = self.cell.ring().records();
        worker::sample(pagewise, &self.job(&self.cell.method()), records)
    }

    /// How many records are written.
    pub fn records(&self) -> u64 {
        self.cell.ring().records()
    }

    /// All of them, written by `method`.
    pub fn job(&self, method: &str) -> Job {
        Job {
            record_bytes: self.cell.record_bytes,
            records: self.cell.ring().records(),
            sync: "none".to_string(),
            source_path: self.source_path.display().to_string(),
            source_period: SOURCE_PERIOD,
            ..worker::job(method, self.cell.workload, &self.path.display().to_string(), self.cell.file_bytes)
        }
    }

    /// One sample of the bare program.
    pub fn bare(&self) -> Result<Spent> {
        self.prepare()?;
        let RingCell { workload, record_bytes, passes, buffer_bytes, before, .. } = self.cell;
        let mut words = vec![
            workload.to_string(),
            self.path.display().to_string(),
            self.source_path.display().to_string(),
            record_bytes.to_string(),
        ];
        if workload == "append" {
            words.extend([passes.to_string(), buffer_bytes.to_string()]);
        }
        words.push(if before == Before::Written { "populate" } else { "plain" }.to_string());
        bare::sample(&words, self.cell.ring().records())
    }

    /// Whether the file holds what both sides were to write.
    pub fn verify(&self, who: &str) -> Result<()> {
        let ring = self.cell.ring();
        let mut bytes = Vec::with_capacity(self.cell.file_bytes as usize);
        File::open(&self.path)?.read_to_end(&mut bytes)?;
        for (slot, found) in (0..ring.slots()).zip(bytes.chunks_exact(self.cell.record_bytes as usize)) {
            let record = ring.record_in(slot, ring.records()).context("every slot is written")?;
            ensure!(
                *found == self.source[ring.source_range(record)],
                "{who}: slot {slot} does not hold record {record}"
            );
        }
        Ok(())
    }

    /// Alternates pagewise and the bare program, twice the latter; before, the content that each of
    /// them leaves is compared.
    pub fn pairs(&self, pagewise: &Pagewise<'_>, pairs: usize, random: &mut Random) -> Result<RingTimes> {
        self.pagewise(pagewise)?;
        self.verify("pagewise")?;
        self.bare()?;
        self.verify("the bare program")?;
        let sides: [Sample<'_, f64>; 3] = [
            Box::new(|| Ok(self.pagewise(pagewise)?.measured())),
            Box::new(|| Ok(self.bare()?.measured())),
            Box::new(|| Ok(self.bare()?.measured())),
        ];
        let [pagewise, bare, control] = alternate(pairs, random, sides)?;
        Ok(RingTimes { pagewise, bare, control })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bare_program_writes_the_ring() {
        let parent = tempfile::tempdir().expect("folder");
        let scratch = Scratch::new(parent.path()).expect("scratch");
        let append = |record_bytes, passes, buffer_bytes, before| RingCell {
            workload: "append",
            record_bytes,
            file_bytes: 100_003,
            passes,
            buffer_bytes,
            before,
        };
        let fill = |before| RingCell { workload: "fill", ..append(128, 1, 0, before) };
        let mut cells = vec![fill(Before::New), fill(Before::Written)];
        for record_bytes in [10, 100, 1024, 2048] {
            for (passes, buffer_bytes) in [(1, 0), (3, 0), (3, 4096)] {
                cells.push(append(record_bytes, passes, buffer_bytes, Before::New));
            }
        }
        for cell in cells {
            let file = RingFile::new(&scratch, cell).expect("made");
            file.bare().expect("runs");
            file.verify(&cell.name()).expect("the ring");
        }
    }

    #[test]
    fn a_cell_names_its_method() {
        let cell = RingCell {
            workload: "append",
            record_bytes: 10,
            file_bytes: 1 << 20,
            passes: 2,
            buffer_bytes: 4096,
            before: Before::Written,
        };
        assert_eq!(cell.name(), "10B written 1MiB x2 mmap:buffer=4KiB+populate");
        let plain = RingCell { buffer_bytes: 0, before: Before::New, ..cell };
        assert_eq!(plain.name(), "10B new 1MiB x2 mmap");
    }
}
