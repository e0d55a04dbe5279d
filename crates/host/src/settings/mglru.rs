//! The multi-generational LRU of the whole machine (Documentation/admin-guide/mm/multigen_lru.rst):
//! `on` or `off`.

use std::path::{Path, PathBuf};

use super::HostSetting;

pub(crate) const FILE: &str = "/sys/kernel/mm/lru_gen/enabled";

/// The setting.
pub struct Mglru;

impl HostSetting for Mglru {
    fn name(&self) -> &'static str {
        "mglru"
    }

    fn title(&self) -> &'static str {
        "MGLRU setting"
    }

    fn file(&self, _: &Path) -> Result<PathBuf, String> {
        let file = PathBuf::from(FILE);
        let missing = || {
            format!(
                "{FILE} is missing: the kernel is older than Linux 6.1, or was built without CONFIG_LRU_GEN"
            )
        };
        file.exists().then_some(file).ok_or_else(missing)
    }

    fn is_file(&self, file: &Path) -> bool {
        file == Path::new(FILE)
    }

    fn value(&self, text: &str) -> Option<String> {
        value(text).map(str::to_string)
    }

    fn text(&self, value: &str) -> Option<String> {
        match value {
            "on" => Some("y".to_string()),
            "off" => Some("n".to_string()),
            _ => None,
        }
    }
}

/// Parse the mask: its first bit enables it; the others select its functions.
pub(crate) fn value(text: &str) -> Option<&'static str> {
    let mask = u32::from_str_radix(text.strip_prefix("0x")?, 16).ok()?;
    Some(if mask & 1 == 1 { "on" } else { "off" })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mask_is_on_or_off() {
        for (text, value) in
            [("0x0007", Some("on")), ("0x0001", Some("on")), ("0x0000", Some("off")), ("y", None), ("", None)]
        {
            assert_eq!(Mglru.value(text).as_deref(), value, "{text}");
        }
        assert!(Mglru.text("maybe").is_none());
        assert!(
            Mglru.is_file(Path::new(FILE)) && !Mglru.is_file(Path::new("/sys/kernel/mm/lru_gen/min_ttl_ms"))
        );
    }
}
