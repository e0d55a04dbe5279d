//! Progress on stderr: a line that is overwritten on a terminal, and elsewhere a line a minute.

use std::cell::Cell;
use std::io::IsTerminal;
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use pagewise_model::Untrusted;

use super::say;

/// Time between two lines where nothing can be overwritten.
const PERIOD: Duration = Duration::from_secs(60);

/// The progress of a run.
pub struct Progress {
    bar: ProgressBar,
    /// The last line, unless stderr is a terminal.
    last_line: Option<Cell<Instant>>,
}

impl Progress {
    /// Progress of a run that begins now.
    pub fn on_stderr() -> Self {
        let (target, last_line) = match std::io::stderr().is_terminal() {
            true => (ProgressDrawTarget::stderr_with_hz(8), None),
            false => (ProgressDrawTarget::hidden(), Some(Cell::new(Instant::now()))),
        };
        Self { bar: ProgressBar::with_draw_target(None, target), last_line }
    }

    /// Show bytes being written or read, of a known total.
    pub fn bytes(&self, what: &str, total: u64) {
        self.restart(total, "{msg} {bar:30} {bytes} of {total_bytes}", what);
    }

    /// Set the number of bytes done.
    pub fn bytes_done(&self, done: u64) {
        self.bar.set_position(done);
    }

    /// Show a share of the samples, in per cent, and a line about them.
    pub fn samples(&self, percent: u64, line: &str) {
        if let Some(last_line) = &self.last_line {
            if last_line.get().elapsed() >= PERIOD {
                last_line.set(Instant::now());
                say(line);
            }
            return;
        }
        if self.bar.length() != Some(100) {
            self.restart(100, "{bar:12} {wide_msg}", "");
            self.bar.enable_steady_tick(Duration::from_millis(500));
        }
        self.bar.set_position(percent);
        self.bar.set_message(Untrusted(line).to_string());
    }

    /// Remove the line from the screen.
    pub fn clear(&self) {
        self.bar.finish_and_clear();
    }

    fn restart(&self, total: u64, template: &str, message: &str) {
        self.bar.reset();
        self.bar.set_style(ProgressStyle::with_template(template).expect("a constant template"));
        self.bar.set_length(total);
        self.bar.set_message(message.to_string());
    }
}
