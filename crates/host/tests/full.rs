//! Files to write on a filesystem that fills up. Needs the right to mount.

mod mounted;

use std::fs;
use std::io::ErrorKind;
use std::os::unix::fs::FileExt;

use mounted::{Mounted, run, text};
use pagewise_host::{FirstRecords, ReadBack, WrittenFile, written};
use pagewise_model::sample::Written;
use pagewise_model::{Content, RecordRing};

const FILE_BYTES: u64 = 16 << 20;

#[test]
fn what_did_not_fit_is_missing_and_looking_for_it_takes_no_room() {
    let directory = tempfile::tempdir_in(".").expect("directory");
    let point = directory.path().join("mounted");
    fs::create_dir(&point).expect("directory");
    if let Err(reason) = run("mount", &["-t", "tmpfs", "-o", "size=8m", "tmpfs", text(&point)]) {
        println!("skipped: mount: {reason}");
        return;
    }
    let mounted = Mounted(point);
    let ring = RecordRing::new(FILE_BYTES, 4096, 1);
    let mut source = vec![0; ring.source_bytes() as usize];
    Content::Random.fill(1, 0, &mut source);
    let file =
        WrittenFile::create(&mounted.0.join("written"), FILE_BYTES).expect("a sparse file needs no room");
    assert!(!written::is_full(file.file()));
    let write = |record: u64| file.file().write_all_at(&source[ring.source_range(record)], record * 4096);
    let (fitted, error) = (0..ring.slots())
        .find_map(|record| write(record).err().map(|error| (record, error)))
        .expect("8 MiB have no room for 16 MiB");
    assert_eq!(error.kind(), ErrorKind::StorageFull);
    assert!(written::is_full(file.file()));
    for way in [ReadBack::Pread, ReadBack::Mapping] {
        let mut found = Written::default();
        let records = FirstRecords { ring: &ring, source: &source, count: ring.records() };
        file.read_back(records, way, &mut found).expect("read");
        let missing = FILE_BYTES - fitted * 4096;
        assert_eq!((found.missing_bytes, found.first_missing_at), (missing, Some(fitted * 4096)), "{way:?}");
        assert_eq!((found.expected_bytes, found.stray_bytes), (FILE_BYTES, 0));
    }
    file.remove().expect("remove");
    let path = mounted.0.join("warm");
    let mut warm = WrittenFile::create(&path, FILE_BYTES).expect("create");
    let error = warm.make_warm(&ring, &source).expect_err("no room");
    assert_eq!(error.kind(), ErrorKind::StorageFull);
    warm.remove().expect("remove");
    assert_eq!(fs::read_dir(&mounted.0).expect("list").count(), 0);
    // What holds the filesystem goes before it is unmounted.
    drop((file, warm));
}
