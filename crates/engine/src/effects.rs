//! Effects of a method's options on the engine. This is the only place where an option becomes an
//! action: a new effect does not compile until it is handled here, nor does a field that no reader
//! and no writer uses.

use pagewise_model::method::options::{Effect, SetUpStep};
use pagewise_model::{Bytes, Method};
use pagewise_protocol::CallFailure;

use crate::failure::refusal;

/// The options of a method, sorted by effect.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Effects {
    /// In the order written, with the option's word.
    pub steps: Vec<(&'static str, SetUpStep)>,
    /// MAP_POPULATE.
    pub populate: bool,
    /// O_DIRECT.
    pub direct: bool,
    /// RWF_DONTCACHE.
    pub dont_cache: bool,
    /// MADV_WILLNEED of an operation's ranges before its first read.
    pub prefetch: bool,
    /// MADV_WILLNEED of this many reads ahead.
    pub prefetch_window: Option<u32>,
    /// Bytes are consumed where they are mapped.
    pub in_place: bool,
    /// Reads or writes in flight; 1 if not written.
    pub depth: u32,
    /// Registered file and buffers.
    pub fixed: bool,
    /// Bytes of a piece or of staged records.
    pub buffer: Option<Bytes>,
    /// Bytes that a thread makes writable ahead of the writer.
    pub pretouch: Option<Bytes>,
}

impl Effects {
    pub fn of(method: &Method) -> Self {
        let mut effects = Self { depth: 1, ..Self::default() };
        for option in method.options() {
            match option.effect() {
                Effect::SetUp(step) => effects.steps.push((option.name(), step)),
                Effect::Populate => effects.populate = true,
                Effect::Direct => effects.direct = true,
                Effect::DontCache => effects.dont_cache = true,
                Effect::Prefetch => effects.prefetch = true,
                Effect::PrefetchWindow(reads) => effects.prefetch_window = Some(reads),
                Effect::InPlace => effects.in_place = true,
                Effect::Depth(depth) => effects.depth = depth,
                Effect::Fixed => effects.fixed = true,
                Effect::Buffer(bytes) => effects.buffer = Some(bytes),
                Effect::Pretouch(bytes) => effects.pretouch = Some(bytes),
                // No native access accepts it: parsing refused the method.
                Effect::Elsewhere => {}
            }
        }
        effects
    }
}

/// Refuse a method with an option that this kernel would accept and ignore.
pub(crate) fn ensure_in_effect(method: &Method, path: &str) -> Result<(), CallFailure> {
    let release = rustix::system::uname().release().to_string_lossy().into_owned();
    for option in method.options() {
        if !option.since().acts_on(&release) {
            let version = option.since().version().unwrap_or_default();
            let detail = format!(
                "'{}' has no effect in {method}: it came with Linux {version}, and this is Linux {release}",
                option.name()
            );
            return Err(CallFailure { unavailable: 1, ..refusal("open", path, detail) });
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use pagewise_model::{MethodOption, Worker, Workload};

    use super::*;

    #[test]
    fn every_option_of_the_native_worker_has_an_effect() {
        for entry in MethodOption::TABLE {
            let is_native =
                [entry.reads, entry.scans, entry.writes].iter().any(|accesses| !accesses.is_empty());
            assert_eq!(is_native, entry.option.effect() != Effect::Elsewhere, "{}", entry.word);
        }
        for workload in Workload::ALL {
            for word in Method::words(&Worker::Native, *workload) {
                let plain = Effects { depth: 1, ..Effects::default() };
                for entry in MethodOption::TABLE {
                    let text = format!("{word}:{}", entry.option);
                    let Ok(method) = text.parse::<Method>() else { continue };
                    let bare = word.parse::<Method>().map_or(plain.clone(), |bare| Effects::of(&bare));
                    assert_ne!(Effects::of(&method), bare, "{text} is the plain method under another name");
                }
            }
        }
    }
}
