//! Mappings of a file in a process: /proc/PID/maps and smaps.

use std::path::Path;
use std::{fs, io};

use crate::files::{FileKey, FileKeys};
use crate::kernel_files::major_minor;

/// State of a process's mapping of a file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MappingState {
    /// The mapping's line in /proc/PID/maps: addresses, rights, offset, device, inode, path. The
    /// first part of it if the kernel keeps several.
    pub line: String,
    /// Number of such lines: the parts in which the kernel keeps the mapping, and mappings of other
    /// threads.
    pub count: u64,
    /// Bytes of address space.
    pub mapped_bytes: u64,
    /// Bytes mapped by huge pages: FilePmdMapped, ShmemPmdMapped and AnonHugePages. Unknown on a
    /// kernel without any of these lines.
    pub huge_mapped_bytes: Option<u64>,
    /// The VmFlags that all parts of the mapping have, such as `rr` for MADV_RANDOM.
    pub vm_flags: Option<String>,
    /// The VmFlags that a part of the mapping has, be it one of several.
    pub any_vm_flags: Option<String>,
    /// Files that are mapped, of those that were asked for.
    pub files: u64,
}

/// Read the mapping of the file in process `pid`: /proc/PID/smaps. `Ok(None)`: there is none.
pub fn mapping(pid: u32, file: &FileKey) -> io::Result<Option<MappingState>> {
    mapping_of_any(pid, &FileKeys::of([file.clone()]))
}

/// Read the mappings of these files in process `pid`, together.
pub fn mapping_of_any(pid: u32, files: &FileKeys) -> io::Result<Option<MappingState>> {
    let smaps = fs::read(format!("/proc/{pid}/smaps"))?;
    Ok(parse_smaps(&String::from_utf8_lossy(&smaps), files))
}

/// Count the mappings of the file in process `pid`: /proc/PID/maps.
pub fn mappings(pid: u32, file: &FileKey) -> io::Result<u64> {
    mappings_of_any(pid, &FileKeys::of([file.clone()]))
}

/// Count the mappings of these files in process `pid`, together.
pub fn mappings_of_any(pid: u32, files: &FileKeys) -> io::Result<u64> {
    let maps = fs::read(format!("/proc/{pid}/maps"))?;
    let maps = String::from_utf8_lossy(&maps);
    Ok(maps.lines().filter_map(|line| MapsLine::of(line, files)).count() as u64)
}

/// A line of maps, which is the first of an smaps entry too:
/// `55c8f6884000-55c8f6886000 r--p 00000000 fe:00 247026 /usr/bin/cat`, with the device in
/// hexadecimal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct MapsLine<'a> {
    pub(crate) start: u64,
    pub(crate) end: u64,
    pub(crate) executable: bool,
    pub(crate) offset: u64,
    pub(crate) device: (u32, u32),
    pub(crate) inode: u64,
    pub(crate) path: &'a str,
}

impl<'a> MapsLine<'a> {
    /// The mapping and the index of its file, if it is one of the files.
    fn of(line: &'a str, files: &FileKeys) -> Option<(Self, usize)> {
        let found = Self::parse(line).filter(|found| found.inode != 0)?;
        let is_known =
            |file: &FileKey| found.device == major_minor(file.device) || Path::new(found.path) == file.path;
        files.find(found.inode, is_known).map(|index| (found, index))
    }

    pub(crate) fn parse(line: &'a str) -> Option<Self> {
        let mut rest = line;
        let mut words = std::iter::from_fn(|| {
            rest = rest.trim_start_matches(' ');
            let (word, after) = rest.split_once(' ').unwrap_or((rest, ""));
            rest = after;
            (!word.is_empty()).then_some(word)
        });
        let (start, end) = words.next()?.split_once('-')?;
        let rights = words.next()?;
        let offset = words.next()?;
        let (major, minor) = words.next()?.split_once(':')?;
        let inode = words.next()?.parse().ok()?;
        let hexadecimal = |text: &str| u64::from_str_radix(text, 16).ok();
        let short = |text: &str| u32::from_str_radix(text, 16).ok();
        Some(Self {
            start: hexadecimal(start)?,
            end: hexadecimal(end)?,
            executable: rights.contains('x'),
            offset: hexadecimal(offset)?,
            device: (short(major)?, short(minor)?),
            inode,
            path: rest.trim_start(),
        })
    }
}

fn parse_smaps(text: &str, files: &FileKeys) -> Option<MappingState> {
    let mut state: Option<MappingState> = None;
    let (mut flags, mut any_flags): (Option<Vec<&str>>, Vec<&str>) = (None, Vec::new());
    let mut mapped = vec![false; files.count()];
    let mut ours = false;
    for line in text.lines() {
        // An entry begins with an address range; its fields begin with a capital letter.
        if line.starts_with(|first: char| first.is_ascii_digit() || first.is_ascii_lowercase()) {
            let found = MapsLine::of(line, files);
            ours = found.is_some();
            if let Some((found, index)) = found {
                mapped[index] = true;
                let new = || MappingState { line: line.trim_end().to_string(), ..MappingState::default() };
                let state = state.get_or_insert_with(new);
                state.mapped_bytes = state.mapped_bytes.saturating_add(found.end.saturating_sub(found.start));
                state.count += 1;
            }
            continue;
        }
        let (true, Some(state), Some((name, value))) = (ours, state.as_mut(), line.split_once(':')) else {
            continue;
        };
        match name {
            "FilePmdMapped" | "ShmemPmdMapped" | "AnonHugePages" => {
                let kib = value.trim().strip_suffix("kB").and_then(|kib| kib.trim().parse::<u64>().ok());
                if let Some(kib) = kib {
                    let so_far = state.huge_mapped_bytes.unwrap_or(0);
                    state.huge_mapped_bytes = Some(so_far.saturating_add(kib.saturating_mul(1024)));
                }
            }
            "VmFlags" => {
                let here: Vec<&str> = value.split_whitespace().collect();
                any_flags.extend(here.iter().filter(|flag| !any_flags.contains(flag)).collect::<Vec<_>>());
                flags = Some(match flags {
                    None => here,
                    Some(earlier) => earlier.into_iter().filter(|flag| here.contains(flag)).collect(),
                });
            }
            _ => {}
        }
    }
    let mut state = state?;
    state.any_vm_flags = flags.is_some().then(|| any_flags.join(" "));
    state.vm_flags = flags.map(|flags| flags.join(" "));
    state.files = mapped.into_iter().filter(|mapped| *mapped).count() as u64;
    Some(state)
}

/// Pass a text to every parser here.
#[cfg(test)]
pub(crate) fn read_anything(text: &str, file: &FileKey) {
    let files = FileKeys::of([file.clone()]);
    parse_smaps(text, &files);
    for line in text.lines() {
        MapsLine::of(line, &files);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::PathBuf;

    const SMAPS: &str = include_str!("../../tests/fixtures/smaps-6.18.txt");
    const SMAPS_OLD: &str = include_str!("../../tests/fixtures/smaps-3.10.txt");
    const SMAPS_LINE: &str = "7f7df7e00000-7f7df8200000 r--s 00000000 fe:00 3366913                    \
        /var/tmp/pagewise data";

    fn maps_file(line: &str, file: &FileKey) -> bool {
        MapsLine::of(line, &FileKeys::of([file.clone()])).is_some()
    }

    fn parsed(text: &str, file: FileKey) -> Option<MappingState> {
        parse_smaps(text, &FileKeys::of([file]))
    }

    fn key(inode: u64, path: &str) -> FileKey {
        FileKey { device: rustix::fs::makedev(0xfe, 0), inode, path: PathBuf::from(path) }
    }

    #[test]
    fn smaps_of_the_file_only() {
        // A mapping of 8 MiB with MADV_HUGEPAGE on ext4, whose second half has MADV_RANDOM too.
        let state = parsed(SMAPS, key(3_366_913, "/var/tmp/pagewise data")).expect("mapped");
        assert_eq!(state.line, SMAPS_LINE);
        assert_eq!(state.mapped_bytes, 8 << 20);
        assert_eq!(state.huge_mapped_bytes, Some(8 << 20));
        assert_eq!(state.vm_flags.as_deref(), Some("rd mr me ms hg"));
        assert_eq!(parsed(SMAPS, key(1, "/nothing")), None);
        assert_eq!(parsed("", key(1, "/nothing")), None);
    }

    /// Flags of one file alone are those of a part. A file without a mapping is counted.
    #[test]
    fn mappings_of_several_files_are_looked_at_together() {
        let entry = |inode: u64, flags: &str| {
            format!("7f00-7f01 r--s 00000000 fe:00 {inode} /data{inode}\nVmFlags: {flags}\n")
        };
        let text = entry(7, "rd mr rr") + &entry(8, "rd mr") + &entry(9, "rd wr");
        let files =
            |inodes: &[u64]| FileKeys::of(inodes.iter().map(|inode| key(*inode, &format!("/data{inode}"))));
        let state = parse_smaps(&text, &files(&[7, 8])).expect("mapped");
        assert_eq!((state.count, state.files, state.mapped_bytes), (2, 2, 2));
        assert_eq!(
            (state.vm_flags.as_deref(), state.any_vm_flags.as_deref()),
            (Some("rd mr"), Some("rd mr rr"))
        );
        let state = parse_smaps(&text, &files(&[7, 10, 8])).expect("mapped");
        assert_eq!((state.count, state.files), (2, 2));
        let same_inode = FileKeys::of([key(7, "/a"), FileKey { device: 3, ..key(7, "/b") }, key(8, "/c")]);
        assert_eq!(parse_smaps(&text, &same_inode).map(|state| state.files), Some(2), "of another device");
        assert_eq!(parse_smaps(&text, &files(&[])), None);
    }

    #[test]
    fn sizes_beyond_all_address_space_are_no_panic() {
        let entry =
            "0-ffffffffffffffff r--s 00000000 fe:00 77 /data\nFilePmdMapped: 18446744073709551615 kB\n";
        let state = parsed(&entry.repeat(2), key(77, "/data")).expect("mapped");
        assert_eq!((state.mapped_bytes, state.huge_mapped_bytes), (u64::MAX, Some(u64::MAX)));
    }

    #[test]
    fn an_old_kernel_leaves_unknown_what_it_does_not_say() {
        let state = parsed(SMAPS_OLD, key(77, "/data")).expect("mapped");
        assert_eq!((state.huge_mapped_bytes, state.vm_flags), (None, None));
    }

    #[test]
    fn a_mapping_is_known_by_its_path_where_the_device_differs() {
        let line = "7f00-7f01 r--s 00000000 00:2b 42                       /home/me/a file";
        let file = FileKey { device: 45, inode: 42, path: PathBuf::from("/home/me/a file") };
        assert!(maps_file(line, &file));
        assert!(!maps_file(line, &FileKey { inode: 43, ..file.clone() }));
        assert!(!maps_file(line, &FileKey { path: PathBuf::from("/other"), ..file.clone() }));
        assert!(maps_file(line, &FileKey { device: 0x2b, path: PathBuf::from("/other"), ..file }));
        assert!(!maps_file("7f00-7f01 rw-p 00000000 00:00 0", &key(0, "")));
    }

    #[test]
    fn a_mapping_and_its_advice_are_seen() {
        let file = tempfile::NamedTempFile::new().expect("file");
        file.as_file().set_len(1 << 20).expect("size");
        let key = FileKey::of(file.as_file()).expect("key");
        let pid = std::process::id();
        assert_eq!(mapping(pid, &key).expect("smaps"), None);
        let mapped = pagewise_sys::FileMapping::new(file.as_file(), 1 << 20, false).expect("map");
        mapped.advise(0..1 << 20, pagewise_sys::Advice::Random).expect("advise");
        let state = mapping(pid, &key).expect("smaps").expect("mapped");
        assert_eq!(state.mapped_bytes, 1 << 20);
        assert!(maps_file(&state.line, &key) && state.line.contains(" r--s 00000000 "), "{}", state.line);
        assert!(state.vm_flags.expect("flags").split(' ').any(|flag| flag == "rr"));
        assert!(mapping(u32::MAX, &key).is_err());
    }
}
