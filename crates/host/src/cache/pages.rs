//! Single pages of a file in the page cache: which are there, and bringing them in.

use std::fs::File;
use std::os::fd::AsFd;
use std::sync::atomic::AtomicBool;

use pagewise_model::trace::{MOST_RUNS, ResidentPages};
use rustix::fs::Advice;

use super::{WARM_READ_BYTES, WarmError, path_of, read_range};
use crate::scratch;

/// The pages of the first `len` bytes of `file` that are in the page cache, by mincore(2); or why
/// that is not known.
pub fn resident_pages(file: &File, len: u64) -> Result<ResidentPages, String> {
    let mut pages = ResidentPages::default();
    if len == 0 {
        return Ok(pages);
    }
    match pagewise_sys::residency::mincore_is_honest(file.as_fd()) {
        Ok(true) => {}
        Ok(false) => {
            let everything =
                "reports everything as resident for a user who neither owns the file nor may write it";
            return Err(format!("mincore {everything}"));
        }
        Err(error) => return Err(format!("fstat: {error}")),
    }
    let mut are_few = true;
    let counted = pagewise_sys::residency::each_mincore_page(file, len as usize, |page| {
        are_few &= pages.runs().len() < MOST_RUNS;
        if are_few {
            pages.add(page);
        }
    });
    counted.map_err(|error| format!("mincore: {error}"))?;
    if are_few { Ok(pages) } else { Err(format!("it is there in over {MOST_RUNS} pieces")) }
}

/// Bring these pages of the first `len` bytes of `file` into the page cache, and no others, as far
/// as the filesystem reads page by page.
pub fn read_pages(file: &File, pages: &ResidentPages, len: u64, stop: &AtomicBool) -> Result<(), WarmError> {
    let failed = |source| WarmError::Read { path: path_of(file), offset: 0, source };
    // Advice is of an open file, and `file` is for others, too.
    let reader = File::open(scratch::reopen_path(file)).map_err(failed)?;
    // No readahead, which would bring in more than that.
    rustix::fs::fadvise(&reader, 0, None, Advice::Random).map_err(|errno| failed(errno.into()))?;
    let page = rustix::param::page_size() as u64;
    let mut buffer = vec![0; WARM_READ_BYTES as usize];
    for run in pages.runs() {
        let bytes = run.start.saturating_mul(page)..run.end.saturating_mul(page).min(len);
        read_range(&reader, bytes, &mut buffer, stop)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::FileExt;

    use super::*;
    use crate::cache::evict;
    use crate::cache::tests::on_storage;

    /// Every third page, a long run, and the last page, which the file does not fill.
    #[test]
    fn pages_that_were_there_are_brought_in_again_and_no_others() {
        let Some(directory) = on_storage() else { return };
        let len = 1000 * rustix::param::page_size() as u64 + 17;
        let file = scratch::nameless_file(directory.path()).expect("file");
        file.write_all_at(&vec![7; len as usize], 0).expect("write");
        assert_eq!(resident_pages(&file, len), Ok((0..=1000).collect()));
        let wanted: ResidentPages = (0u64..=1000)
            .filter(|page| page.is_multiple_of(3) || (400..700).contains(page) || *page == 1000)
            .collect();
        for pages in [&wanted, &ResidentPages::default()] {
            evict(&file, len).expect("evicted");
            read_pages(&file, pages, len, &AtomicBool::new(false)).expect("read");
            assert_eq!(resident_pages(&file, len).as_ref(), Ok(pages));
        }
        assert_eq!(resident_pages(&file, 0), Ok(ResidentPages::default()));
    }
}
