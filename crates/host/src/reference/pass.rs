//! The expected result of one pass over a file, front to back.

use std::fs::File;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use pagewise_model::Consume;
use pagewise_model::checksum::Consumption;

use super::source::{ByteSource, Formula, SourceReader, buffer};
use super::windows::WINDOW_BYTES;
use super::{ReferenceError, touch_words};
use crate::dataset::Dataset;

/// Owner of the file.
#[derive(Clone, Copy, Debug)]
pub enum PassSource<'a> {
    /// pagewise's own.
    Dataset(&'a Dataset),
    /// The user's, read past the page cache if possible (see [`super::ReferenceSource`]).
    UserFile(&'a File),
}

/// The checksum of a pass over the first `span_bytes`. It does not depend on the pieces as long as
/// each except the last is a multiple of a page (of 8 bytes for `sum`, of any size for `lines`).
///
/// Lines of a dataset were counted while it was written. Otherwise the bytes are read or computed
/// in a whole pass, so keep the result.
pub fn pass(
    source: &PassSource<'_>,
    consume: Consume,
    page_bytes: u64,
    span_bytes: u64,
    stop: &AtomicBool,
) -> Result<u64, ReferenceError> {
    let consumption = Consumption::new(consume, page_bytes as usize, page_bytes);
    match *source {
        PassSource::UserFile(file) => {
            let (mut reader, _) = SourceReader::open(file, span_bytes, stop)?;
            add_pieces(&mut reader, &consumption, span_bytes, &mut || Ok(()))
        }
        PassSource::Dataset(dataset) => {
            let mut formula = Formula { content: dataset.content(), seed: dataset.seed() };
            match (consume, dataset.lines()) {
                (Consume::Lines, Some(lines)) if span_bytes == dataset.file_bytes() => Ok(lines),
                (Consume::Touch, _) => Ok(touch_words(&formula, 0, span_bytes, &consumption)),
                _ => {
                    add_pieces(&mut formula, &consumption, span_bytes, &mut || stopped(dataset.path(), stop))
                }
            }
        }
    }
}

/// Count the lines that Java's `readLine` finds in the first `span_bytes`
/// ([`pagewise_model::LineRule::ReadLine`]).
pub fn read_lines(
    source: &PassSource<'_>,
    span_bytes: u64,
    stop: &AtomicBool,
) -> Result<u64, ReferenceError> {
    let mut lines = ReadLines::default();
    let mut look = |bytes: &[u8]| lines.look(bytes);
    match *source {
        PassSource::UserFile(file) => {
            let (mut reader, _) = SourceReader::open(file, span_bytes, stop)?;
            each_piece(&mut reader, span_bytes, &mut || Ok(()), &mut look)?;
        }
        PassSource::Dataset(dataset) => {
            let mut formula = Formula { content: dataset.content(), seed: dataset.seed() };
            each_piece(&mut formula, span_bytes, &mut || stopped(dataset.path(), stop), &mut look)?;
        }
    }
    Ok(lines.count())
}

/// Lines ended by newline, carriage return, or both in this order.
#[derive(Default)]
struct ReadLines {
    ended: u64,
    /// True if bytes follow the last end.
    open: bool,
    after_return: bool,
}

impl ReadLines {
    fn look(&mut self, bytes: &[u8]) {
        for byte in bytes {
            match byte {
                b'\n' if self.after_return => self.after_return = false,
                b'\n' | b'\r' => {
                    self.ended += 1;
                    (self.open, self.after_return) = (false, *byte == b'\r');
                }
                _ => (self.open, self.after_return) = (true, false),
            }
        }
    }

    fn count(&self) -> u64 {
        self.ended + u64::from(self.open)
    }
}

fn stopped(path: &Path, stop: &AtomicBool) -> Result<(), ReferenceError> {
    match stop.load(Ordering::Relaxed) {
        true => Err(ReferenceError::Stopped { path: path.to_path_buf() }),
        false => Ok(()),
    }
}

/// Sum a value over the pieces of a span; `may_go_on` is called before each.
fn add_pieces(
    source: &mut dyn ByteSource,
    consumption: &Consumption,
    span_bytes: u64,
    may_go_on: &mut dyn FnMut() -> Result<(), ReferenceError>,
) -> Result<u64, ReferenceError> {
    let mut total = 0u64;
    let mut look = |bytes: &[u8]| total = total.wrapping_add(consumption.of(bytes));
    each_piece(source, span_bytes, may_go_on, &mut look)?;
    Ok(total)
}

/// Read a span piece by piece; `may_go_on` is called before each.
fn each_piece(
    source: &mut dyn ByteSource,
    span_bytes: u64,
    may_go_on: &mut dyn FnMut() -> Result<(), ReferenceError>,
    look: &mut dyn FnMut(&[u8]),
) -> Result<(), ReferenceError> {
    // A window is a multiple of every page size and every alignment.
    let mut window = buffer(WINDOW_BYTES)?;
    let alignment = source.alignment() as usize;
    let mut offset = 0;
    while offset < span_bytes {
        may_go_on()?;
        let needed = (span_bytes - offset).min(WINDOW_BYTES) as usize;
        let filled = needed.next_multiple_of(alignment).min(WINDOW_BYTES as usize);
        source.fill(offset, &mut window.bytes_mut()[..filled], needed)?;
        look(&window.bytes()[..needed]);
        offset += needed as u64;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reference::ReferenceError;
    use crate::{cache, scratch};
    use pagewise_model::{Content, checksum};
    use std::os::unix::fs::FileExt;

    const PAGE: u64 = 4096;
    static GO: AtomicBool = AtomicBool::new(false);
    const CONSUMERS: [Consume; 3] = [Consume::Touch, Consume::Sum, Consume::Lines];

    /// In pieces, as in a worker.
    fn naive(consume: Consume, bytes: &[u8], piece_bytes: usize) -> u64 {
        let consumption = Consumption::new(consume, PAGE as usize, PAGE);
        bytes.chunks(piece_bytes).map(|piece| consumption.of(piece)).fold(0, u64::wrapping_add)
    }

    #[test]
    fn a_dataset_and_a_file_with_its_bytes_come_to_the_same() {
        let directory = tempfile::tempdir().expect("directory");
        let path = directory.path().join("data");
        let file_bytes = (2 << 20) + 4096 + 13;
        for content in [Content::Random, Content::Text] {
            let dataset = Dataset::create(&path, file_bytes, content, 3, &mut |_| (), &GO).expect("create");
            let mut bytes = vec![0; file_bytes as usize];
            content.fill(3, 0, &mut bytes);
            for span in [file_bytes, file_bytes - 8, 1 << 20, PAGE + 1, 5] {
                for consume in CONSUMERS {
                    let of = |source| pass(&source, consume, PAGE, span, &GO).expect("pass");
                    let expected = naive(consume, &bytes[..span as usize], 1 << 16);
                    assert_eq!(of(PassSource::Dataset(&dataset)), expected, "{content} {consume} {span}");
                    assert_eq!(
                        of(PassSource::UserFile(dataset.file())),
                        expected,
                        "{content} {consume} {span}"
                    );
                    assert_eq!(naive(consume, &bytes[..span as usize], 3 << 12), expected);
                }
            }
            assert_eq!(dataset.lines().is_some(), content == Content::Text);
        }
    }

    #[test]
    fn lines_are_newline_bytes_whatever_else_there_is() {
        let file = scratch::nameless_file(&std::env::temp_dir()).expect("file");
        for (text, lines) in [(&b"no newline"[..], 0), (b"\n", 1), (b"a\n\nb", 2), (b"\0\xff\n\r\n\0", 2)] {
            file.set_len(0).expect("truncate");
            file.write_all_at(text, 0).expect("write");
            let found = pass(&PassSource::UserFile(&file), Consume::Lines, PAGE, text.len() as u64, &GO);
            assert_eq!(found.expect("pass"), lines);
            assert_eq!(checksum::lines(text), lines);
        }
    }

    #[test]
    fn readline_ends_lines_at_returns_too_and_has_a_last_one_without_an_end() {
        let file = scratch::nameless_file(&std::env::temp_dir()).expect("file");
        for (text, lines) in [
            (&b"no newline"[..], 1),
            (b"a\nb\n", 2),
            (b"a\nb", 2),
            (b"a\rb\r\nc\n\rd", 5),
            (b"\r\n\r\n", 2),
            (b"\n\n", 2),
            (b"\r\r\n\n", 3),
        ] {
            file.set_len(0).expect("truncate");
            file.write_all_at(text, 0).expect("write");
            let found = read_lines(&PassSource::UserFile(&file), text.len() as u64, &GO).expect("lines");
            assert_eq!(found, lines, "{:?}", String::from_utf8_lossy(text));
        }
        let directory = tempfile::tempdir().expect("directory");
        let path = directory.path().join("data");
        let dataset = Dataset::create(&path, 1 << 20, Content::Text, 3, &mut |_| (), &GO).expect("create");
        let of_dataset = read_lines(&PassSource::Dataset(&dataset), 1 << 20, &GO).expect("lines");
        assert_eq!(
            read_lines(&PassSource::UserFile(dataset.file()), 1 << 20, &GO).expect("lines"),
            of_dataset
        );
        assert!(of_dataset.abs_diff(dataset.lines().expect("text")) <= 1, "no returns in it");
    }

    #[test]
    fn the_page_cache_of_the_users_file_stays_as_it_is() {
        let directory = tempfile::tempdir_in(".").expect("directory");
        let file = scratch::nameless_file(directory.path()).expect("file");
        file.write_all_at(&vec![b'\n'; 3 << 20], 0).expect("write");
        if let Err(error) = cache::evict(&file, 3 << 20) {
            println!("skipped: disk: {error}");
            return;
        }
        let (_, source) = SourceReader::open(&file, 3 << 20, &GO).expect("open");
        let lines = pass(&PassSource::UserFile(&file), Consume::Lines, PAGE, 3 << 20, &GO).expect("pass");
        assert_eq!(lines, 3 << 20);
        match source {
            crate::ReferenceSource::DirectReads => {
                assert_eq!(cache::residency(&file, 3 << 20).resident_bytes.unwrap_or(0), 0);
            }
            other => println!("skipped: direct-io: no direct reads here: {other:?}"),
        }
    }

    #[test]
    fn a_file_that_ends_early_and_a_wish_to_stop_are_errors() {
        let directory = tempfile::tempdir().expect("directory");
        let dataset =
            Dataset::create(&directory.path().join("data"), 5000, Content::Text, 3, &mut |_| (), &GO)
                .expect("create");
        match pass(&PassSource::UserFile(dataset.file()), Consume::Lines, PAGE, 6000, &GO) {
            Err(ReferenceError::Short { offset, .. }) => assert_eq!(offset, 5000),
            other => panic!("{other:?}"),
        }
        let stop = AtomicBool::new(true);
        for source in [PassSource::Dataset(&dataset), PassSource::UserFile(dataset.file())] {
            let stopped = pass(&source, Consume::Sum, PAGE, 5000, &stop);
            assert!(matches!(stopped, Err(ReferenceError::Stopped { .. })), "{stopped:?}");
        }
    }
}
