//! Steps of an examination with their outcomes: printed one by one, or as JSON at the end.

use std::io::{self, Write};

use pagewise_lab::output;
use pagewise_model::Untrusted;
use pagewise_report::json;
use serde::Serialize;

/// One step.
#[derive(Debug, Serialize)]
struct Step {
    name: String,
    state: State,
    #[serde(skip_serializing_if = "String::is_empty")]
    detail: String,
}

/// Outcome of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
enum State {
    Ok,
    Wrong,
    NotTried,
}

/// The recorded steps.
pub struct Steps {
    steps: Vec<Step>,
    /// True if each is printed when it is recorded.
    printing: bool,
    /// The first error of stdout, returned at the end.
    broken: Option<io::Error>,
}

/// Output of `--json`.
#[derive(Serialize)]
struct Printed<'a> {
    schema: u32,
    command: &'a [String],
    worker: &'a str,
    version: &'a str,
    steps: &'a [Step],
    wrong: usize,
    not_tried: usize,
}

impl Steps {
    /// An empty list.
    pub fn new(printing: bool) -> Self {
        Self { steps: Vec::new(), printing, broken: None }
    }

    /// Record a step without a fault.
    pub fn ok(&mut self, name: impl Into<String>) {
        self.add(name.into(), State::Ok, String::new());
    }

    /// Record a step with a fault: what was found, what is expected, what to do.
    pub fn wrong(&mut self, name: impl Into<String>, detail: impl Into<String>) {
        self.add(name.into(), State::Wrong, detail.into());
    }

    /// Record a step that was not tried, with the reason.
    pub fn not_tried(&mut self, name: impl Into<String>, why: impl Into<String>) {
        self.add(name.into(), State::NotTried, why.into());
    }

    /// Record a step with this outcome.
    pub fn judge(&mut self, name: impl Into<String>, outcome: Result<(), String>) {
        match outcome {
            Ok(()) => self.ok(name),
            Err(detail) => self.wrong(name, detail),
        }
    }

    fn add(&mut self, name: String, state: State, detail: String) {
        let step = Step { name, state, detail };
        if self.printing
            && let Err(error) = print(&step)
        {
            self.broken.get_or_insert(error);
        }
        self.steps.push(step);
    }

    /// Print the result; return true if no step is wrong.
    pub fn finish(self, command: &[String], worker: &str, version: &str) -> io::Result<bool> {
        if let Some(error) = self.broken {
            return Err(error);
        }
        let count = |state| self.steps.iter().filter(|step| step.state == state).count();
        let (all, wrong, not_tried) = (self.steps.len(), count(State::Wrong), count(State::NotTried));
        let mut out = output::stdout();
        if !self.printing {
            let steps = &self.steps;
            let printed = Printed { schema: 1, command, worker, version, steps, wrong, not_tried };
            json::write_one(&mut out, &printed)?;
            return Ok(wrong == 0);
        }
        let command = Untrusted(command.join(" "));
        match wrong {
            0 => writeln!(out, "{command} conforms: {all} steps, {not_tried} not tried")?,
            1 => writeln!(out, "1 step is wrong")?,
            _ => writeln!(out, "{wrong} steps are wrong")?,
        }
        Ok(wrong == 0)
    }
}

fn print(step: &Step) -> io::Result<()> {
    let Step { name, state, detail } = step;
    let (name, detail) = (Untrusted(name), Untrusted(detail));
    let mut out = output::stdout();
    match state {
        State::Ok => writeln!(out, "ok     {name}")?,
        State::Wrong => writeln!(out, "WRONG  {name}: {detail}")?,
        State::NotTried => writeln!(out, "-      {name} ({detail})")?,
    }
    out.flush()
}
