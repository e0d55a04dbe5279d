//! The sixteen cells: mmap and pread, random and sequential, 4 and 16 KiB, one and two threads.

use std::fmt;

use pagewise_model::{Access, Bytes, Workload};

/// Bytes of one operation of `sequential-read`: contiguous reads from one random start.
const SEQUENTIAL_RUN: Bytes = Bytes::mib(1);

/// What is read, how and by how many threads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cell {
    /// The way to read: mmap or pread.
    pub access: Access,
    /// Order of the reads.
    pub workload: Workload,
    /// Size of one read.
    pub read_bytes: Bytes,
    /// Threads that read.
    pub threads: u32,
}

impl Cell {
    /// All sixteen; cells that differ by their method alone stand side by side.
    pub fn all() -> Vec<Self> {
        let mut cells = Vec::new();
        for workload in [Workload::RandomRead, Workload::SequentialRead] {
            for read_bytes in [Bytes::kib(4), Bytes::kib(16)] {
                for threads in [1, 2] {
                    for access in [Access::Mmap, Access::Pread] {
                        cells.push(Self { access, workload, read_bytes, threads });
                    }
                }
            }
        }
        cells
    }

    /// Reads of one operation.
    pub fn reads_per_op(&self) -> u32 {
        match self.workload {
            Workload::SequentialRead => (SEQUENTIAL_RUN.0 / self.read_bytes.0) as u32,
            _ => 1,
        }
    }

    /// The same cell by another method.
    pub fn with_access(self, access: Access) -> Self {
        Self { access, ..self }
    }
}

impl fmt::Display for Cell {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let order = match self.workload {
            Workload::SequentialRead => "sequential",
            _ => "random",
        };
        formatter.pad(&format!("{} {order} {} {}t", self.access.name(), self.read_bytes, self.threads))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_are_sixteen_cells_with_a_name_each() {
        let mut names: Vec<String> = Cell::all().iter().map(Cell::to_string).collect();
        names.sort();
        names.dedup();
        assert_eq!(names.len(), 16);
    }
}
