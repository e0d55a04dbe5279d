//! The judged JSON, indented.

use std::io::{self, Write};

use pagewise_analysis::Judged;

/// Writes one judged run as an object, several as an array of such objects.
pub fn write(out: &mut dyn Write, runs: &[Judged]) -> io::Result<()> {
    match runs {
        [only] => serde_json::to_writer_pretty(&mut *out, only)?,
        several => serde_json::to_writer_pretty(&mut *out, several)?,
    }
    out.write_all(b"\n")
}
