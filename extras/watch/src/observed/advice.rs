//! Advice that a program gives the kernel for its files: the order in which they are read, parts to
//! be read ahead, and other advice that changes which of their pages are cached.

use pagewise_model::trace::AccessKind;
use pagewise_model::watched::{AdviceSubject, Call};

use super::accounts::{Accessed, Accounts, To};
use super::threads::InCall;

/// The result of madvise(2) for such a range: -ENOMEM.
const NOT_MAPPED: i64 = -12;

impl Accounts {
    /// Such a call returned; the request to read ahead that it was. One that was refused has no
    /// effect, but for one of a range that is not mapped all through.
    pub(super) fn advised(
        &mut self,
        (process, thread): (u32, u32),
        (call, now_ns): (&InCall, u64),
        result: i64,
    ) -> Option<Accessed> {
        let (file, offset, len, mapped) = match call.call {
            // Of a range that is not mapped all through the kernel has read the mapped parts.
            Call::ReadAheadMapped { .. } if result == NOT_MAPPED => {
                let found = self.read_ahead_mapped(process, call.call)?;
                // What was unmapped of it is not seen.
                self.files[found.0]
                    .otherwise_advised("MADV_WILLNEED of a range that is not mapped all through");
                found
            }
            _ if result != 0 => return None,
            Call::Expect { descriptor, order } => {
                let file = self.file_of_descriptor(process, descriptor)?;
                self.files[file].expect(order, false);
                return None;
            }
            Call::ExpectMapped { address, order } => {
                let (file, _) = self.mapped_at(process, address)?;
                self.files[file].expect(order, true);
                return None;
            }
            Call::AdviseOtherwise { on, advice } => {
                let file = match on {
                    AdviceSubject::Descriptor(descriptor) => self.file_of_descriptor(process, descriptor)?,
                    AdviceSubject::Mapping(address) => self.mapped_at(process, address)?.0,
                };
                self.files[file].otherwise_advised(advice);
                return None;
            }
            Call::ReadAhead { descriptor, offset, len } => {
                let file = self.file_of_descriptor(process, descriptor)?;
                // Of no bytes, it is to the end.
                let most = (i64::MAX as u64).checked_sub(offset)?;
                (file, offset, if len == 0 { most } else { len.min(most) }, false)
            }
            Call::ReadAheadMapped { .. } => self.read_ahead_mapped(process, call.call)?,
            _ => return None,
        };
        Some(Accessed {
            time_ns: call.at_ns,
            took_ns: Some(now_ns.saturating_sub(call.at_ns)),
            process,
            thread,
            file,
            offset,
            len,
            kind: AccessKind::ReadAhead { mapped },
            window: None,
        })
    }

    /// The file, offset and length that such a call asks for, in the mapping in which it begins.
    fn read_ahead_mapped(&mut self, process: u32, call: Call) -> Option<(usize, u64, u64, bool)> {
        let Call::ReadAheadMapped { address, len } = call else { return None };
        let (file, offset, mapped) = self.processes.get(&process)?.mappings.from(address)?;
        let len = len.checked_next_multiple_of(self.page_bytes)?;
        if len > mapped {
            self.files[file].otherwise_advised("MADV_WILLNEED beyond the mapping in which it begins");
        }
        Some((file, offset, len.min(mapped), true))
    }

    fn file_of_descriptor(&mut self, process: u32, descriptor: i32) -> Option<usize> {
        match self.descriptor(process, descriptor)?.to {
            To::File(file) => Some(file),
            To::NoFile | To::Unknown => None,
        }
    }
}
