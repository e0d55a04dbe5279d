//! Jobs of scans.

use pagewise_model::{Bytes, Conditions, Consume, Content, Method, Scan, Work};

use super::examiner::Examiner;
use super::test_files::{FILE_BYTES, TEXT_BYTES};
use super::trial::Trial;

/// End of a span that is a part of the file: within the second MiB, at the end of a page.
const PART_BYTES: u64 = (1 << 20) + 3 * 4096;

/// Shapes besides that of lines: name, consumption, file, span.
const OTHERS: [(&str, Consume, u64, u64); 3] = [
    ("touched, another file", Consume::Touch, FILE_BYTES[0], FILE_BYTES[0]),
    ("all bytes summed, another file", Consume::Sum, FILE_BYTES[1], FILE_BYTES[1]),
    ("a span of a part of the file", Consume::Lines, TEXT_BYTES, PART_BYTES),
];

/// Examine one method.
pub fn examine(examiner: &mut Examiner<'_>, text: &str, method: &Method) {
    let subject = format!("scan {text}");
    if examiner.examine(&subject, &plain(method), Some("a pass after a pass, lines")) {
        return;
    }
    for (name, consume, file_bytes, span_bytes) in OTHERS {
        let trial = trial(method, consume, file_bytes, span_bytes);
        examiner.examine(&format!("{subject}: {name}"), &trial, None);
    }
}

/// A pass over lines.
pub fn plain(method: &Method) -> Trial {
    trial(method, Consume::Lines, TEXT_BYTES, TEXT_BYTES)
}

fn trial(method: &Method, consume: Consume, file_bytes: u64, span_bytes: u64) -> Trial {
    let content = if file_bytes == TEXT_BYTES { Content::Text } else { Content::Random };
    let conditions = Conditions {
        span_bytes: Bytes(span_bytes),
        content,
        ..Conditions::of(Work::Scan(Scan { consume }), Bytes(file_bytes))
    };
    Trial::of(method, conditions)
}
