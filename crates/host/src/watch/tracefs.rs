//! Tracepoints, as tracefs describes them.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// Directories where tracefs is mounted, the usual one first.
const MOUNT_POINTS: [&str; 2] = ["/sys/kernel/tracing", "/sys/kernel/debug/tracing"];

/// The tracepoints of this kernel.
#[derive(Clone, Debug)]
pub(super) struct Tracefs {
    events: PathBuf,
}

/// A tracepoint: its number, and where its fields are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Tracepoint {
    pub(super) number: u64,
    fields: Vec<Field>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Field {
    name: String,
    offset: usize,
    size: usize,
}

/// The reason that a user may not read tracefs, with the narrowest way first: whoever may read it
/// sees what all users do.
fn closed(mounted: &str) -> String {
    format!(
        "{mounted} is closed to this user; run pagewise with sudo, or open it until the next boot to a group, whose \
         members then see the traces of all users, as root: mount -o remount,mode=750,gid=GROUP {}",
        MOUNT_POINTS[0]
    )
}

impl Tracefs {
    /// The tracefs that this user may read; otherwise the reason, with what would open it.
    pub(super) fn find() -> Result<Self, String> {
        let mut reason =
            format!("tracefs is not mounted; as root: mount -t tracefs tracefs {}", MOUNT_POINTS[0]);
        for mounted in MOUNT_POINTS {
            let events = Path::new(mounted).join("events");
            match fs::read_dir(events.join("syscalls")) {
                Ok(_) => return Ok(Self { events }),
                Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                    // Above the other one is a directory of root.
                    reason = closed(mounted);
                    break;
                }
                Err(_) => {}
            }
        }
        Err(reason)
    }

    /// A tracepoint such as `syscalls/sys_enter_read`; `None`: this kernel does not have it.
    pub(super) fn tracepoint(&self, name: &str) -> Result<Option<Tracepoint>, String> {
        let path = self.events.join(name).join("format");
        match fs::read_to_string(&path) {
            Ok(text) => Ok(Tracepoint::parse(&text)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(format!("{}: {error}", path.display())),
        }
    }
}

impl Tracepoint {
    /// The format of a tracepoint, as its file `format` has it.
    fn parse(text: &str) -> Option<Self> {
        let number = text.lines().find_map(|line| line.strip_prefix("ID:"))?.trim().parse().ok()?;
        let fields = text.lines().filter_map(|line| {
            let mut parts = line.trim().split(';').map(str::trim);
            // `field:unsigned long i_ino`, `field:const char * name`, `field:char comm[16]`
            let name = parts.next()?.strip_prefix("field:")?.rsplit([' ', '*']).next()?;
            let number = |part: Option<&str>, label: &str| part?.strip_prefix(label)?.parse().ok();
            let offset = number(parts.next(), "offset:")?;
            let size = number(parts.next(), "size:")?;
            Some(Field { name: name.split('[').next()?.to_string(), offset, size })
        });
        Some(Self { number, fields: fields.collect() })
    }

    /// The bytes of a field of a record; `None`: it has no such field, or is too short.
    pub(super) fn bytes<'a>(&self, raw: &'a [u8], name: &str) -> Option<&'a [u8]> {
        let field = self.fields.iter().find(|field| field.name == name)?;
        raw.get(field.offset..field.offset + field.size)
    }

    /// A field of a record, as a number; `None`: it has no such field, or is too short.
    pub(super) fn value(&self, raw: &[u8], name: &str) -> Option<u64> {
        let bytes = self.bytes(raw, name)?;
        Some(match bytes.len() {
            1 => u64::from(bytes[0]),
            2 => u64::from(u16::from_ne_bytes(*bytes.first_chunk()?)),
            4 => u64::from(u32::from_ne_bytes(*bytes.first_chunk()?)),
            8 => u64::from_ne_bytes(*bytes.first_chunk()?),
            _ => return None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A command that opens the traces of all users to everybody is not what a user should type.
    #[test]
    fn what_is_closed_is_opened_to_few_and_sudo_comes_first() {
        let reason = closed("/sys/kernel/tracing");
        let (sudo, remount) = (reason.find("with sudo"), reason.find("mode=750,gid=GROUP"));
        assert!(sudo.is_some() && sudo < remount && !reason.contains("mode=755"), "{reason}");
    }

    const ADDED: &str = "name: mm_filemap_add_to_page_cache\nID: 683\nformat:\n\
        \tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n\
        \tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n\n\
        \tfield:unsigned long pfn;\toffset:8;\tsize:8;\tsigned:0;\n\
        \tfield:unsigned long i_ino;\toffset:16;\tsize:8;\tsigned:0;\n\
        \tfield:unsigned long index;\toffset:24;\tsize:8;\tsigned:0;\n\
        \tfield:dev_t s_dev;\toffset:32;\tsize:4;\tsigned:0;\n\
        \tfield:unsigned char order;\toffset:36;\tsize:1;\tsigned:0;\n\n\
        print fmt: \"dev %d:%d ino %lx pfn=0x%lx ofs=%lu order=%u\", REC->s_dev\n";

    #[test]
    fn fields_are_found_by_name() {
        let added = Tracepoint::parse(ADDED).expect("a tracepoint");
        assert_eq!(added.number, 683);
        let mut raw = [0u8; 40];
        raw[16..24].copy_from_slice(&42u64.to_ne_bytes());
        raw[32..36].copy_from_slice(&0x80_0001_u32.to_ne_bytes());
        raw[36] = 9;
        assert_eq!(added.value(&raw, "i_ino"), Some(42));
        assert_eq!(added.value(&raw, "s_dev"), Some(0x80_0001));
        assert_eq!(added.value(&raw, "order"), Some(9));
        assert_eq!(added.bytes(&raw, "order"), Some(&[9][..]));
        assert_eq!(added.value(&raw, "last_index"), None);
        assert_eq!(added.value(&raw[..30], "s_dev"), None);
    }

    #[test]
    fn a_text_that_is_no_format_is_no_tracepoint() {
        assert_eq!(Tracepoint::parse(""), None);
        assert_eq!(Tracepoint::parse("ID: many\n"), None);
        let odd = "ID: 1\n\tfield:char comm[16];\toffset:8;\tsize:16;\tsigned:0;\n\tfield:x;\n";
        let odd = Tracepoint::parse(odd).expect("a tracepoint");
        assert_eq!((odd.fields.len(), odd.value(&[0; 24], "comm")), (1, None));
    }
}
