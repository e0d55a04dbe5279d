//! A run whose texts from outside are markup.

use pagewise_model::Outcome;
use pagewise_model::run::Run;

/// Text that is markup in HTML, Markdown and terminals.
pub const HOSTILE: &str = "</td><script>alert(1)</script>&amp;\"'|`x`\n# **no**\u{1b}[31m";

/// A run whose texts from outside are all hostile.
pub fn hostile() -> Run {
    let mut run = super::killed();
    run.header.plan.question = HOSTILE.to_string();
    let environment = &mut run.header.environment;
    environment.kernel = HOSTILE.to_string();
    environment.host_name = Some(HOSTILE.to_string());
    environment.filesystem = HOSTILE.to_string();
    environment.warnings = vec![HOSTILE.to_string()];
    for sample in &mut run.samples {
        match &mut sample.outcome {
            Outcome::Taken { failures, .. } => {
                failures.iter_mut().for_each(|failure| failure.detail = HOSTILE.to_string());
            }
            Outcome::Broken { stderr_tail, .. } => *stderr_tail = HOSTILE.to_string(),
            Outcome::Unavailable { reason } => *reason = HOSTILE.to_string(),
        }
    }
    run
}
