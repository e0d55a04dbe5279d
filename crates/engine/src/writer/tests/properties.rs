//! Any record, buffer, file, batch and stop.

use proptest::prelude::*;

use super::*;

/// Append in batches of `batch`, finish, and check bytes and file.
fn check(fixture: &Fixture, method: &str, records: u64, batch: u64) -> Result<(), CallFailure> {
    let mut writer = fixture.open(method)?;
    let mut left = records;
    while left > 0 {
        writer.append(batch.min(left))?;
        left -= batch.min(left);
    }
    writer.finish()?;
    assert_eq!(writer.written(), records * fixture.job.record_bytes);
    fixture.assert_holds(records, method);
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    #[test]
    fn staged_records_reach_the_file(
        (record, slots, tail) in (1u64..3000, 1u64..40, 0u64..3000),
        (extra, batch) in (0u64..10_000, 1u64..70),
        records in 0u64..120,
        sync in prop::option::of(1u64..20_000),
        depth in 1u32..9,
    ) {
        let file_bytes = record * slots + tail % record;
        let mut fixture = Fixture::new(&folders()[0], record, file_bytes, 1);
        if let Some(bytes) = sync {
            fixture.job.sync = format!("every:{bytes}B");
        }
        let buffer = record + extra;
        for access in ["mmap", "pwrite", "write", &format!("uring:depth={depth}")] {
            fixture.renew();
            must(check(&fixture, &buffered(access, Some(buffer)), records, batch));
        }
    }

    #[test]
    fn direct_streams_reach_the_file(
        (record, blocks) in (1u64..9000, 1u64..12),
        (buffer_blocks, batch, records) in (1u64..5, 1u64..50, 0u64..100),
        depth in 1u32..5,
    ) {
        let file_bytes = (record.div_ceil(4096) + blocks) * 4096;
        let buffer = (record.div_ceil(4096) + buffer_blocks - 1) * 4096;
        let fixture = Fixture::new(&build_folder(), record, file_bytes, 1);
        for access in ["pwrite:direct", "write:direct", &format!("uring:depth={depth}+direct")] {
            fixture.renew();
            let method = buffered(access, Some(buffer));
            may(&method, check(&fixture, &method, records, batch));
        }
    }
}
