//! The judged JSON, indented.

use std::io::{self, Write};

use pagewise_analysis::Judged;
use serde::Serialize;

use crate::printed::{Escape, Printed};

/// Write one judged run as an object, several as an array of such objects.
pub fn write(out: &mut dyn Write, runs: &[Judged]) -> io::Result<()> {
    match runs {
        [only] => write_one(out, only),
        several => write_one(out, &several),
    }
}

/// Write any value as JSON for people and programs: strings keep their content, escaped so that a
/// terminal obeys none of it.
pub fn write_one(out: &mut dyn Write, value: &impl Serialize) -> io::Result<()> {
    let mut out = Printed::new(out, Escape::Json);
    serde_json::to_writer_pretty(&mut out, value)?;
    out.write_all(b"\n")?;
    out.flush()
}
