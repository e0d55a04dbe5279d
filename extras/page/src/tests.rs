//! Pages and plots of constructed runs.

#[path = "../../../crates/report/tests/constructed/cliff.rs"]
mod cliff_run;
#[path = "../../../crates/report/tests/constructed/mod.rs"]
mod constructed;
mod document;
#[path = "../../../crates/report/tests/constructed/documented.rs"]
mod documented;
mod page;
mod plots;
mod scripts;
mod well_formed;

use constructed::hostile;
use documented::{all, document};
