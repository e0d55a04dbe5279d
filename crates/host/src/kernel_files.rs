//! The small text files of /proc and /sys: reading, and parsing of their few formats.

use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::str::FromStr;

use rustix::io::Errno;

/// Failed call on a file or directory.
#[derive(Debug, thiserror::Error)]
#[error("{call} of {}: {error}", path.display())]
pub struct CallError {
    /// The failed call.
    pub call: &'static str,
    /// Path.
    pub path: PathBuf,
    /// Errno.
    #[source]
    pub error: io::Error,
}

impl CallError {
    pub(crate) fn at(call: &'static str, path: impl Into<PathBuf>) -> impl FnOnce(io::Error) -> Self {
        let path = path.into();
        move |error| Self { call, path, error }
    }

    pub(crate) fn kind(&self) -> io::ErrorKind {
        self.error.kind()
    }

    pub(crate) fn is(&self, errno: Errno) -> bool {
        self.error.raw_os_error() == Some(errno.raw_os_error())
    }
}

/// A file's text without surrounding white space; `None` if it is missing, unreadable or empty.
pub(crate) fn text(path: impl AsRef<Path>) -> Option<String> {
    let bytes = fs::read(path).ok()?;
    // Device tree strings end in a NUL.
    let text = String::from_utf8_lossy(&bytes)
        .trim_matches(|end: char| end == '\0' || end.is_whitespace())
        .to_string();
    (!text.is_empty()).then_some(text)
}

/// Text of a file whose emptiness has a meaning; `None` if it is missing or unreadable.
pub(crate) fn text_or_empty(path: impl AsRef<Path>) -> Option<String> {
    Some(String::from_utf8_lossy(&fs::read(path).ok()?).trim().to_string())
}

/// A file that holds one number.
pub(crate) fn number<T: FromStr>(path: impl AsRef<Path>) -> Option<T> {
    text(path)?.parse().ok()
}

/// A file's text; the error says why it is missing.
pub(crate) fn read(path: &Path) -> Result<String, CallError> {
    fs::read_to_string(path).map_err(CallError::at("read", path))
}

/// Write to an existing file, in one call.
pub(crate) fn write(path: &Path, text: &str) -> Result<(), CallError> {
    let opened = OpenOptions::new().write(true).truncate(true).open(path);
    opened.and_then(|mut file| file.write_all(text.as_bytes())).map_err(CallError::at("write", path))
}

/// Write `text` to a file that some kernels do not have.
pub(crate) fn write_if_there(path: &Path, text: &str) -> Result<(), CallError> {
    match write(path, text) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        result => result,
    }
}

/// The word in brackets: `always [madvise] never` gives `madvise`.
pub(crate) fn chosen(text: &str) -> Option<&str> {
    text.split_whitespace().find_map(|word| word.strip_prefix('[')?.strip_suffix(']'))
}

/// The value of a `Name:   value` line.
pub(crate) fn field<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    text.lines().find_map(|line| {
        let (found, value) = line.split_once(':')?;
        (found.trim() == name).then_some(value.trim())
    })
}

/// The bytes of a `Name:   123 kB` line; in the kernel's texts, k means 1024.
pub(crate) fn kib_field(text: &str, name: &str) -> Option<u64> {
    field(text, name)?.strip_suffix("kB")?.trim().parse::<u64>().ok()?.checked_mul(1024)
}

/// The entries of a directory whose names are numbers, as /proc has them for processes, threads and
/// descriptors; none if it cannot be read.
pub(crate) fn numbered<T: FromStr>(directory: impl AsRef<Path>) -> impl Iterator<Item = T> {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok())
}

/// Parse `major:minor` as in /sys and mountinfo.
pub(crate) fn device_number(text: &str) -> Option<(u32, u32)> {
    let (major, minor) = text.trim().split_once(':')?;
    Some((major.parse().ok()?, minor.parse().ok()?))
}

/// Major and minor number of a st_dev.
pub(crate) fn major_minor(device: u64) -> (u32, u32) {
    (rustix::fs::major(device), rustix::fs::minor(device))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_chosen_word_stands_in_brackets() {
        assert_eq!(chosen("always [madvise] never"), Some("madvise"));
        assert_eq!(chosen("[none] mq-deadline kyber bfq"), Some("none"));
        assert_eq!(chosen("none"), None);
    }

    #[test]
    fn a_field_that_is_missing_is_none() {
        let status = "Name:\tcat\nVmHWM:\t    1780 kB\nThreads:\t1\n";
        assert_eq!(kib_field(status, "VmHWM"), Some(1780 * 1024));
        assert_eq!(kib_field(status, "VmSwap"), None);
        assert_eq!(kib_field(status, "Threads"), None);
        assert_eq!(field(status, "Threads"), Some("1"));
    }

    #[test]
    fn a_device_number_has_two_parts() {
        assert_eq!(device_number("259:3\n"), Some((259, 3)));
        assert_eq!(device_number("259"), None);
        assert_eq!(device_number("a:b"), None);
    }
}
