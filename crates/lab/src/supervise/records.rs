//! Records of `append`, or blocks of `fill`: their positions and their content.

use anyhow::{Context, Result};
use pagewise_model::{RecordRing, content};
use pagewise_protocol::descriptor_path;
use pagewise_sys::SharedMemory;

/// Records and their content.
pub struct RecordTask {
    /// Their positions in the file.
    pub ring: RecordRing,
    source: SharedMemory,
    /// Seed of the content.
    pub seed: u64,
}

impl RecordTask {
    /// Records of a ring, with content of a seed.
    pub fn new(ring: RecordRing, seed: u64) -> Result<Self> {
        let len = ring.source_bytes() as usize;
        let mut source = SharedMemory::create("pagewise-source", len)
            .context("memory for the content of records cannot be had")?;
        content::fill(seed, 0, source.bytes_mut());
        Ok(Self { ring, source, seed })
    }

    /// Content of the records, by [`RecordRing::source_range`].
    pub fn source(&self) -> &[u8] {
        self.source.bytes()
    }

    /// Path by which a worker opens the content.
    pub fn source_path(&self) -> String {
        descriptor_path(self.source.file())
    }
}
