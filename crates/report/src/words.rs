//! Sentences made of what the analysis found.

pub mod advice;
