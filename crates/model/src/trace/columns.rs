//! The columns of a block: numbers of seven bits a byte, the least first (LEB128), each column as
//! differences that are small.
//!
//! Files, threads and kinds of calls are runs of equal values. A time is the difference to when the
//! access before it in the same block ended, or began where its end is not known. A duration is one
//! more than its nanoseconds, and 0 where it is not known. An offset is the difference to where the
//! access before it in the same file and block ended: 0 for one in order.

use std::collections::HashMap;

use super::{AccessKind, BLOCK_ACCESSES, TraceAccess};

/// The columns of accesses.
pub(super) fn encode(accesses: &[TraceAccess]) -> Vec<u8> {
    let mut out = Vec::with_capacity(accesses.len() * 8);
    runs(&mut out, accesses, |access| u64::from(access.file));
    runs(&mut out, accesses, |access| u64::from(access.thread));
    runs(&mut out, accesses, |access| access.kind.number());
    let mut before = 0;
    for access in accesses {
        put(&mut out, zigzag(access.time_ns.wrapping_sub(before)));
        put(&mut out, access.took_ns.map_or(0, |took_ns| took_ns.saturating_add(1)));
        before = access.time_ns.wrapping_add(access.took_ns.unwrap_or(0));
    }
    let mut files = HashMap::new();
    for access in accesses {
        let (end, len) = files.entry(access.file).or_insert((0u64, 0u64));
        put(&mut out, zigzag(access.offset.wrapping_sub(*end)));
        put(&mut out, zigzag(access.len.wrapping_sub(*len)));
        (*end, *len) = (access.offset.wrapping_add(access.len), access.len);
    }
    out
}

/// Add the accesses of a block of `count`; `None` if the columns do not hold exactly these, or one
/// of them ends after the last moment that there is. Earlier formats have no durations.
pub(super) fn decode(
    columns: &[u8],
    count: usize,
    has_durations: bool,
    into: &mut Vec<TraceAccess>,
) -> Option<()> {
    if count > BLOCK_ACCESSES {
        return None;
    }
    let mut input = columns;
    let files = runs_back(&mut input, count)?;
    let threads = runs_back(&mut input, count)?;
    let kinds = runs_back(&mut input, count)?;
    let (mut times, mut before) = (Vec::with_capacity(count), 0u64);
    for _ in 0..count {
        let time_ns = before.wrapping_add(unzigzag(take(&mut input)?));
        let took_ns = if has_durations { take(&mut input)?.checked_sub(1) } else { None };
        times.push((time_ns, took_ns));
        before = time_ns.checked_add(took_ns.unwrap_or(0))?;
    }
    let mut ends: HashMap<u64, (u64, u64)> = HashMap::new();
    for index in 0..count {
        let (end, before) = ends.entry(files[index]).or_default();
        let offset = end.wrapping_add(unzigzag(take(&mut input)?));
        let len = before.wrapping_add(unzigzag(take(&mut input)?));
        (*end, *before) = (offset.checked_add(len)?, len);
        into.push(TraceAccess {
            time_ns: times[index].0,
            took_ns: times[index].1,
            file: files[index].try_into().ok()?,
            thread: threads[index].try_into().ok()?,
            offset,
            len,
            kind: AccessKind::of_number(kinds[index])?,
        });
    }
    input.is_empty().then_some(())
}

fn runs(out: &mut Vec<u8>, accesses: &[TraceAccess], value: impl Fn(&TraceAccess) -> u64) {
    for run in accesses.chunk_by(|one, next| value(one) == value(next)) {
        put(out, value(&run[0]));
        put(out, run.len() as u64);
    }
}

fn runs_back(input: &mut &[u8], count: usize) -> Option<Vec<u64>> {
    let mut values = Vec::with_capacity(count);
    while values.len() < count {
        let (value, len) = (take(input)?, take(input)?);
        let len = usize::try_from(len).ok().filter(|len| (1..=count - values.len()).contains(len))?;
        values.extend(std::iter::repeat_n(value, len));
    }
    Some(values)
}

/// A difference as a number that is small if the difference is, in either direction.
fn zigzag(difference: u64) -> u64 {
    let signed = difference as i64;
    ((signed << 1) ^ (signed >> 63)) as u64
}

fn unzigzag(number: u64) -> u64 {
    (number >> 1) ^ (number & 1).wrapping_neg()
}

pub(super) fn put(out: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

pub(super) fn take(input: &mut &[u8]) -> Option<u64> {
    let mut number = 0u64;
    for shift in (0..64).step_by(7) {
        let (byte, rest) = input.split_first()?;
        *input = rest;
        number |= u64::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return Some(number);
        }
    }
    None
}
