//! A copy of the file in the worker's own memory, from which reads are answered that the kernel
//! never saw.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

use pagewise_sys::{AnonymousMemory, FileMapping};

/// What is taken from the device at a time, to have its bytes counted.
const PIECE_BYTES: usize = 1 << 20;

/// All bytes of the file.
pub struct Copy {
    bytes: Vec<u8>,
    /// Aligned, for reads whose bytes nobody looks at.
    piece: AnonymousMemory,
    direct: bool,
    /// Bytes that were answered and not asked of the device yet.
    owed: usize,
    /// Where the next piece is.
    next: u64,
}

impl Copy {
    /// Read through the page cache.
    pub fn through_cache(file: &File) -> io::Result<Self> {
        Self::new(file, false)
    }

    /// Taken from a mapping that is gone before anybody looks.
    pub fn through_mapping(file: &File) -> io::Result<Self> {
        let len = file.metadata()?.len() as usize;
        let (bytes, piece) =
            (FileMapping::new(file, len, true)?.bytes().to_vec(), AnonymousMemory::new(PIECE_BYTES)?);
        Ok(Self { bytes, piece, direct: false, owed: 0, next: 0 })
    }

    /// The bytes of a read.
    pub fn of(&self, offset: u64, len: usize) -> &[u8] {
        &self.bytes[offset as usize..][..len]
    }

    /// Read past it; the descriptor has O_DIRECT.
    pub fn direct(file: &File) -> io::Result<Self> {
        Self::new(file, true)
    }

    fn new(file: &File, direct: bool) -> io::Result<Self> {
        let len = file.metadata()?.len() as usize;
        let (mut bytes, mut piece) = (Vec::with_capacity(len), AnonymousMemory::new(PIECE_BYTES)?);
        while bytes.len() < len {
            let read = file.read_at(piece.bytes_mut(), bytes.len() as u64)?;
            bytes.extend_from_slice(&piece.bytes()[..read]);
        }
        Ok(Self { bytes, piece, direct, owed: 0, next: 0 })
    }

    /// Takes from the device what is owed of it.
    pub fn settle(&mut self, through: &File) -> io::Result<()> {
        let owed = std::mem::take(&mut self.owed).next_multiple_of(4096);
        through.read_exact_at(&mut self.piece.bytes_mut()[..owed], 0)
    }

    /// Answers a read, and makes a call that counts like it.
    pub fn pretend(&mut self, through: &File, offset: u64, into: &mut [u8]) -> io::Result<()> {
        if self.direct {
            self.owed += into.len();
            if self.owed >= PIECE_BYTES {
                self.owed -= PIECE_BYTES;
                through.read_exact_at(self.piece.bytes_mut(), self.next)?;
                self.next =
                    (self.next + PIECE_BYTES as u64) % (self.bytes.len() / PIECE_BYTES * PIECE_BYTES) as u64;
            } else {
                through.read_at(&mut [], 0)?;
            }
        } else {
            through.read_exact_at(into, 0)?;
        }
        into.copy_from_slice(&self.bytes[offset as usize..][..into.len()]);
        Ok(())
    }
}
