//! Progress on stderr: the cell being measured and the time left; nothing unless stderr is a terminal.

use std::io::IsTerminal;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use pagewise_model::Untrusted;

/// Nanoseconds.
const MS: u64 = 1_000_000;

/// A line that is overwritten in place.
pub struct Progress(ProgressBar);

impl Progress {
    /// A progress line that is visible only on a terminal.
    pub fn new() -> Self {
        let target = if std::io::stderr().is_terminal() {
            ProgressDrawTarget::stderr_with_hz(8)
        } else {
            ProgressDrawTarget::hidden()
        };
        Self(ProgressBar::with_draw_target(None, target))
    }

    /// Show bytes being written or read, of a known total.
    pub fn bytes(&self, what: &str, total: u64) {
        self.restart(total, "{msg} {bar:30} {bytes} of {total_bytes}", what);
    }

    /// Set the number of bytes done.
    pub fn bytes_done(&self, done: u64) {
        self.0.set_position(done);
    }

    /// Show samples, of which `done` are already in the file.
    pub fn samples(&self, done: u64, total: u64) {
        self.restart(total, "{bar:20} {pos}/{len}, about {eta} left  {wide_msg}", "");
        self.0.set_position(done);
        self.0.reset_eta();
        self.0.enable_steady_tick(Duration::from_millis(500));
    }

    /// Show time spent of a budget, in nanoseconds.
    pub fn budget(&self, spent_ns: u64, budget_ns: u64) {
        self.restart(budget_ns / MS, "{bar:20} {prefix}  {wide_msg}", "");
        self.spent(spent_ns);
        self.0.enable_steady_tick(Duration::from_millis(500));
    }

    /// Set the time spent.
    pub fn spent(&self, spent_ns: u64) {
        let (spent, budget) = (spent_ns / MS, self.0.length().unwrap_or(0));
        self.0.set_position(spent.min(budget));
        self.0.set_prefix(format!("{} s of at most {} s", spent / 1000, budget.div_ceil(1000)));
    }

    /// Show the cell being measured.
    pub fn sample(&self, cell: &str) {
        self.0.set_message(Untrusted(cell).to_string());
    }

    /// Count completed samples.
    pub fn advance(&self, samples: u64) {
        self.0.inc(samples);
    }

    /// Remove the line from the screen.
    pub fn clear(&self) {
        self.0.finish_and_clear();
    }

    fn restart(&self, total: u64, template: &str, message: &str) {
        self.0.reset();
        self.0.set_style(ProgressStyle::with_template(template).expect("a constant template"));
        self.0.set_length(total);
        self.0.set_message(message.to_string());
    }
}
