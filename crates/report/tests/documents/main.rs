//! Documents of constructed runs that are not for a terminal. Golden files as in `golden.rs`.

#[path = "../constructed/mod.rs"]
mod constructed;
#[path = "../constructed/documented.rs"]
mod documented;
#[path = "../golden/mod.rs"]
mod goldens;
mod tables;
mod warnings;

use constructed::hostile;
use documented::{all, document};
