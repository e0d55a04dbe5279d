//! A recording in lines.

use std::cmp::Reverse;
use std::path::Path;

use pagewise_model::inspection::Inspection;
use pagewise_model::trace::{NoGaps, TraceFile, TraceTrailer};
use pagewise_model::watched::{Missing, ObservationKind};
use pagewise_model::{Untrusted, format};

/// Files that are named one by one.
const NAMED: usize = 5;

/// Summary of a recording and of its gaps; the trace is `written` bytes at `path`.
pub fn lines(trailer: &TraceTrailer, path: &Path, written: u64) -> Vec<String> {
    let reads = format::counted(trailer.accesses.saturating_sub(trailer.read_ahead), "read");
    let read = trailer.files.iter().filter(|file| file.reads > 0).count();
    let mut lines = vec![format!(
        "recorded {reads} of {} by {} in {} ({})",
        format::counted(read as u64, "file"),
        format::counted(trailer.threads.len() as u64, "thread"),
        path.display(),
        format::bytes(written)
    )];
    if let Some(why) = trailer.lacks() {
        lines.push(format!("! incomplete: {why}, so the trace does not stand for the program"));
    }
    let mut files: Vec<_> = trailer.files.iter().collect();
    let by_bytes = |file: &&TraceFile| (Reverse(file.read_bytes), Reverse(file.mapped_faults));
    files.sort_by_key(|file| (Reverse(file.is_named()), by_bytes(file)));
    for file in files.iter().take(NAMED) {
        let mut parts = Vec::new();
        if file.reads > 0 {
            let reads = format::counted(file.reads, "read");
            parts.push(format!("{reads} of {}", format::bytes(file.read_bytes)));
        }
        if file.touched_pages > 0 {
            parts.push(format!(
                "among them {} touched through a mapping",
                format::counted(file.touched_pages, "page")
            ));
        }
        if file.read_ahead > 0 {
            parts.push(format!("{} to read ahead", format::counted(file.read_ahead, "request")));
        }
        if let Some(came) = file.brought_in_bytes {
            parts.push(format!("{} came into the page cache for them", format::bytes(came)));
        }
        if file.left_out_bytes > 0 {
            parts.push(format!(
                "not in the trace: {} at offsets in memory of the program",
                format::bytes(file.left_out_bytes)
            ));
        }
        if !file.other_advice.is_empty() {
            parts.push(format!("not in the trace: {}", file.other_advice.join(", ")));
        }
        if file.mapped_faults > 0 {
            parts.push(format!(
                "not in the trace: accesses to its mapping ({})",
                format::counted(file.mapped_faults, "fault")
            ));
        }
        if file.writes > 0 && file.reads == 0 {
            parts.push(format!("not in the trace: {}", format::counted(file.writes, "write")));
        }
        if parts.is_empty() {
            parts.push("no access to it was seen".to_string());
        }
        if let Some(resident) = file.resident_before.filter(|resident| *resident > 0) {
            parts.push(format!("{} were in the page cache when it began", format::bytes(resident)));
        }
        if file.identity.is_none() {
            parts.push(
                "it is gone, its path is not UTF-8, or it is no file to be read again: it cannot be replayed"
                    .to_string(),
            );
        }
        lines.push(format!("  {}: {}", Untrusted(&file.path), parts.join("; ")));
        if file.is_named() && file.reads == 0 {
            lines.push(format!(
                "! none of its reads are in the trace, so no replay stands for the program at {}: {}",
                Untrusted(&file.path),
                match (file.mapped_faults, file.left_out_bytes) {
                    (1.., _) => "record it with --windows, or measure it with pagewise read",
                    (0, 1..) => "they are at offsets that calls do not name",
                    (0, 0) => "is it the file that the program reads?",
                }
            ));
        }
    }
    if files.len() > NAMED {
        lines.push(format!("  {} more", format::counted((files.len() - NAMED) as u64, "file")));
    }
    if let Some(windows) = &trailer.windows {
        let all = format::counted(windows.windows, "window");
        lines.push(if windows.proven == windows.windows {
            format!("  {all}, all proven: each page in place had been seen to be touched")
        } else {
            let unseen = format::counted(windows.unseen_pages, "page");
            format!(
                "! {} of {all} proven: in the others {unseen} were in place that nobody had seen touched, or a process was killed",
                format::grouped(windows.proven)
            )
        });
        lines.extend(windows.left_out.iter().map(|reason| format!("! without windows: {reason}")));
        lines.push(format!("  a replay keeps no gaps between its reads: {}", NoGaps::Windows));
    }
    if let Some(missing) = Missing::of(&trailer.missing, ObservationKind::Calls) {
        lines.push(format!(
            "! reads by calls are not in the trace, since calls are not seen: {}",
            missing.reason
        ));
    }
    let inspection = trailer.inspection.as_ref();
    lines.extend(
        inspection.and_then(Inspection::not_watched).map(|cut| format!("! not in the trace: reads of {cut}")),
    );
    if trailer.unknown_bytes > 0 {
        lines.push(format!(
            "! {} could not be assigned to a file: the descriptors were closed too soon",
            format::bytes(trailer.unknown_bytes)
        ));
    }
    if trailer.ring_requests > 0 {
        lines.push(format!(
            "! {} of io_uring are not in the trace: their files and offsets are not seen",
            format::counted(trailer.ring_requests, "request")
        ));
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::observed::Accounts;
    use pagewise_model::inspection::Subject;

    #[test]
    fn a_process_that_was_not_watched_is_reported() {
        let all = Accounts::new(4096).inspection(Subject::default(), (0, 0), &[], (Vec::new(), 0));
        let inspection = Some(Inspection { cut_processes: 2, ..all });
        let text = lines(&TraceTrailer { inspection, ..TraceTrailer::default() }, Path::new("t"), 9);
        assert!(
            text[1].starts_with("! not in the trace: reads of 2 processes, from the execution"),
            "{text:?}"
        );
    }

    /// Six files were read more than the one that the user named.
    #[test]
    fn a_file_that_was_named_comes_first_and_says_if_nothing_of_it_was_recorded() {
        let read = |index: u64| TraceFile {
            path: format!("/{index}"),
            reads: 1,
            read_bytes: index,
            ..TraceFile::default()
        };
        let named = TraceFile { path: "/my.db".into(), resident_before: Some(0), ..TraceFile::default() };
        let text = |named: TraceFile| {
            let files = (1..=6).map(read).chain([named]).collect();
            lines(&TraceTrailer { files, ..TraceTrailer::default() }, Path::new("t"), 9)[1..3].to_vec()
        };
        let [file, warning] = &text(named.clone())[..] else { panic!("two lines") };
        assert!(file.starts_with("  /my.db: no access to it was seen"), "{file}");
        assert!(warning.ends_with("at /my.db: is it the file that the program reads?"), "{warning}");
        let [file, warning] = &text(TraceFile { mapped_faults: 9, ..named.clone() })[..] else {
            panic!("two lines")
        };
        assert!(file.contains("/my.db: not in the trace: accesses to its mapping (9 faults)"), "{file}");
        assert!(warning.ends_with("record it with --windows, or measure it with pagewise read"), "{warning}");
        let [file, next] = &text(TraceFile { reads: 1, read_bytes: 3, ..named })[..] else {
            panic!("two lines")
        };
        assert!(file.starts_with("  /my.db: 1 read of 3") && next.starts_with("  /6: "), "{file} {next}");
    }
}
