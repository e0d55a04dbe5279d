//! Placement of pages on NUMA nodes: mbind(2), move_pages(2), which rustix does not wrap.

use std::io;

use crate::mapping::FileMapping;

use crate::checked;

// linux/mempolicy.h
const MPOL_BIND: libc::c_ulong = 2;
const MPOL_MF_MOVE: libc::c_ulong = 1 << 1;

/// The highest number of nodes that Linux supports (CONFIG_NODES_SHIFT is at most 10).
const MOST_NODES: u32 = 1024;

/// Bind the mapping to `node`, and move those of its pages there that this process has touched and
/// no other maps.
///
/// On tmpfs the file itself is bound: its later pages are allocated on the node, for any process.
/// Page cache of other filesystems is only moved. The kernel does not report pages that it could
/// not move: see [`nodes_of_pages`].
pub fn bind(mapping: &FileMapping, node: u32) -> io::Result<()> {
    if node >= MOST_NODES {
        return Err(rustix::io::Errno::INVAL.into());
    }
    let bits = libc::c_ulong::BITS;
    let mut mask = [0 as libc::c_ulong; (MOST_NODES / libc::c_ulong::BITS) as usize];
    mask[(node / bits) as usize] |= 1 << (node % bits);
    let bytes = mapping.bytes();
    // SAFETY: the range is mapped as long as `mapping` is borrowed; the mask holds the number of
    // bits that is given (the kernel takes one less). Moving a page does not change what it holds.
    checked(unsafe {
        libc::syscall(
            libc::SYS_mbind,
            bytes.as_ptr(),
            bytes.len(),
            MPOL_BIND,
            mask.as_ptr(),
            libc::c_ulong::from(MOST_NODES + 1),
            MPOL_MF_MOVE,
        )
    })
    .map(drop)
}

/// Return for each page of the mapping whether it is in memory (mincore(2)), touched by this
/// process or not. If the caller neither owns the file nor may write it, the kernel reports every
/// page as resident.
pub fn resident_pages(mapping: &FileMapping) -> io::Result<Vec<bool>> {
    let bytes = mapping.bytes();
    let mut resident = vec![0u8; bytes.len().div_ceil(rustix::param::page_size())];
    // SAFETY: the range is mapped, and `resident` has a byte for each of its pages.
    checked(unsafe {
        libc::mincore(bytes.as_ptr().cast_mut().cast(), bytes.len(), resident.as_mut_ptr().cast())
    })?;
    Ok(resident.into_iter().map(|page| page & 1 == 1).collect())
}

/// Return the nodes of the pages at these offsets; an errno for a page that this process has not
/// touched (ENOENT) or whose node is unknown for another reason (move_pages(2) with no target).
pub fn nodes_of_pages(mapping: &FileMapping, offsets: &[usize]) -> io::Result<Vec<Result<u32, i32>>> {
    let bytes = mapping.bytes();
    let pages: Vec<*const u8> = offsets.iter().map(|&offset| bytes[offset..].as_ptr()).collect();
    let mut status = vec![-libc::ENOENT; pages.len()];
    // SAFETY: `pages` and `status` hold as many entries as are given; a null target moves nothing.
    checked(unsafe {
        libc::syscall(
            libc::SYS_move_pages,
            0,
            pages.len(),
            pages.as_ptr(),
            std::ptr::null::<libc::c_int>(),
            status.as_mut_ptr(),
            0,
        )
    })?;
    Ok(status.into_iter().map(|status: libc::c_int| u32::try_from(status).map_err(|_| -status)).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    /// ENOSYS: a kernel without CONFIG_NUMA or CONFIG_MIGRATION.
    fn lacks_the_call(error: &io::Error) -> bool {
        error.raw_os_error() == Some(libc::ENOSYS)
    }

    #[test]
    fn touched_pages_have_a_node_and_others_none() {
        let page = rustix::param::page_size();
        let mut file = tempfile::tempfile().expect("file");
        file.write_all(&vec![1; 64 * page]).expect("write");
        let mapping = FileMapping::new(&file, 64 * page, false).expect("map");
        mapping.advise(0..64 * page, crate::Advice::Random).expect("advise");
        assert_eq!(mapping.bytes()[0], 1);
        let nodes = match nodes_of_pages(&mapping, &[0, 32 * page]) {
            Ok(nodes) => nodes,
            Err(error) if lacks_the_call(&error) => {
                println!("skipped: numa-calls: move_pages: {error}");
                return;
            }
            Err(error) => panic!("{error}"),
        };
        let node = nodes[0].expect("a node");
        // Faults may map the pages around them, so the other page may have a node as well.
        assert!(matches!(nodes[1], Ok(_) | Err(libc::ENOENT)), "{nodes:?}");
        match bind(&mapping, node) {
            Ok(()) => {}
            Err(error) if lacks_the_call(&error) => println!("skipped: numa-calls: mbind: {error}"),
            Err(error) => panic!("{error}"),
        }
    }

    #[test]
    fn a_node_that_is_not_there_is_refused() {
        let mut file = tempfile::tempfile().expect("file");
        file.write_all(&[1; 4096]).expect("write");
        let mapping = FileMapping::new(&file, 4096, false).expect("map");
        for node in [MOST_NODES - 1, MOST_NODES, u32::MAX] {
            let error = bind(&mapping, node).expect_err("bound");
            if lacks_the_call(&error) && node < MOST_NODES {
                println!("skipped: numa-calls: mbind: {error}");
                continue;
            }
            assert_eq!(error.raw_os_error(), Some(libc::EINVAL));
        }
    }
}
