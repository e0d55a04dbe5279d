//! Number and size of the calls that a method makes for its work.

use pagewise_model::{Cell, Method};

/// Bytes that a scan reads at a time.
pub(crate) fn piece_bytes(method: &Method) -> u64 {
    method.buffer().unwrap_or(Method::DEFAULT_BUFFER).0.max(1)
}

/// Number of reads of `operations` of `cell`: those of the offset table or the trace, or the pieces
/// of a scan; 0 for a workload that writes. Saturating, as a worker may claim any number of
/// operations.
pub(crate) fn reads(cell: &Cell, operations: u64) -> u64 {
    let conditions = &cell.conditions;
    conditions.work.parameters().reads_of(conditions.extent(), operations, piece_bytes(&cell.method))
}

/// Largest number of bytes that one write of `cell` moves: a record, or a buffer of them. `None` if
/// nothing is written.
pub(crate) fn largest_write_bytes(cell: &Cell) -> Option<u64> {
    let record = cell.conditions.writes()?.record_bytes.0;
    Some(cell.method.buffer().map_or(record, |buffer| buffer.0.max(record)).max(1))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::proof::honest;
    use pagewise_model::CacheState::Warm;

    #[test]
    fn a_scan_is_read_in_pieces() {
        let of = |method| reads(&honest::scan(method, Warm), 1);
        assert_eq!((of("read"), of("read:buffer=4KiB"), of("mmap")), (1024, 16_384, 1024));
        assert_eq!(reads(&honest::cell("pread", Warm), 3), 48);
        assert_eq!(reads(&honest::append("pwrite", Warm), 3), 0);
    }

    #[test]
    fn a_write_is_a_record_or_a_buffer() {
        let of = |method| largest_write_bytes(&honest::append(method, Warm));
        assert_eq!((of("pwrite"), of("pwrite:buffer=4KiB")), (Some(100), Some(4096)));
        assert_eq!((of("go/write"), of("go/bufio")), (Some(100), Some(64 << 10)));
        assert_eq!(largest_write_bytes(&honest::scan("read", Warm)), None);
    }
}
