//! Mappings of the file: advice that must be in force, and mappings and advice that a method's name
//! does not imply.

use pagewise_model::{Access, Bytes, Method, MethodOption, Replay, Work};

use super::subject::Subject;

/// A mapping whose name implies no advice has none on the pattern of its reads. If the name implies
/// advice, other advice shows as the lack of its own.
pub(super) fn unasked_advice(subject: &Subject<'_>) -> Option<String> {
    let method = &subject.cell.method;
    let says = method.has(MethodOption::Random) || method.has(MethodOption::Sequential);
    if subject.cell.access() != Access::Mmap || says {
        return None;
    }
    // Of several files each must be without it.
    let evidence = subject.evidence;
    let flags = evidence.some_mapping_flags.as_deref().or(evidence.mapping_flags.as_deref())?;
    let advice = [("rr", "MADV_RANDOM"), ("sr", "MADV_SEQUENTIAL")];
    let (flag, name) =
        advice.into_iter().find(|(flag, _)| flags.split_whitespace().any(|found| found == *flag))?;
    Some(format!(
        "{name} is in force, which {method} does not request: the mapping's flags '{flags}' have '{flag}'"
    ))
}

/// A method called a mapping has one of each file of a replay.
pub(super) fn unmapped_files(subject: &Subject<'_>) -> Option<String> {
    let Work::Replay(Replay { files, .. }) = subject.cell.conditions.work else { return None };
    let missing = |mapped: &u64| subject.cell.access() == Access::Mmap && *mapped < u64::from(files);
    let mapped = subject.evidence.mapped_files.filter(missing)?;
    Some(format!(
        "the worker had mappings of {mapped} of {files} files when {} was measured",
        subject.cell.method
    ))
}

/// A method that moves bytes by calls has no mapping of the file to take them from or store them
/// in.
pub(super) fn unasked_mapping(subject: &Subject<'_>) -> Option<String> {
    let by_calls =
        matches!(subject.cell.access(), Access::Pread | Access::Read | Access::Pwrite | Access::Write);
    let mappings = subject.evidence.mappings.filter(|mappings| by_calls && *mappings > 0)?;
    Some(format!(
        "the worker had {mappings} mappings of the file when {} was measured, which moves its bytes by calls",
        subject.cell.method
    ))
}

/// A method whose name does not say so locks no memory: neither a memory limit nor another program
/// takes a locked page from it.
pub(super) fn unasked_lock(subject: &Subject<'_>) -> Option<String> {
    let method = &subject.cell.method;
    if subject.cell.access() == Access::Unknown || method.has(MethodOption::Lock) {
        return None;
    }
    let locked = subject.evidence.worker_locked_bytes.filter(|locked| *locked > 0)?;
    Some(format!("the worker has {} of its memory locked, which {method} does not request", Bytes(locked)))
}

/// An advice of the method that the flags of its mapping (VmFlags, proc_pid_smaps(5)) do not show,
/// as a sentence.
pub(super) fn missing_advice(method: &Method, flags: &str) -> Option<String> {
    let flags: Vec<&str> = flags.split_whitespace().collect();
    let options = method.options();
    let pattern = options.iter().rev().find_map(|option| match option {
        MethodOption::Random => Some(("MADV_RANDOM", "rr")),
        MethodOption::Sequential => Some(("MADV_SEQUENTIAL", "sr")),
        _ => None,
    });
    let huge = options.contains(&MethodOption::HugePage).then_some(("MADV_HUGEPAGE", "hg"));
    let locked = options.contains(&MethodOption::Lock).then_some(("mlock", "lo"));
    let needed = [pattern, huge, locked].into_iter().flatten();
    let (advice, flag) = needed.into_iter().find(|(_, flag)| !flags.contains(flag))?;
    Some(format!(
        "{advice} is not in force: the mapping's flags are '{}', '{flag}' is missing",
        flags.join(" ")
    ))
}

#[cfg(test)]
mod tests {
    use crate::proof::honest::{append, cell, kinds, replay_of_three_files};
    use pagewise_model::CacheState::{Cold, Warm};
    use pagewise_model::Cell;
    use pagewise_model::FailureKind::{MethodContradicted, NotInForce};

    #[test]
    fn advice_that_nobody_asked_for_is_noticed() {
        let flags = |method: &str, flags: &str| {
            let flags = flags.to_string();
            kinds(&cell(method, Warm), move |_, evidence| evidence.mapping_flags = Some(flags))
        };
        for method in ["mmap", "mine/mmap", "go/mmap", "mmap:willneed"] {
            assert_eq!(flags(method, "rd sh mr me ms"), [], "{method}");
            assert_eq!(flags(method, "rd sh mr me ms rr"), [MethodContradicted], "{method}");
            assert_eq!(flags(method, "rd sh mr me ms sr"), [MethodContradicted], "{method}");
        }
        assert_eq!(flags("mine/get", "rd sh mr me ms rr"), [], "how it maps is its own business");
    }

    #[test]
    fn memory_that_is_locked_is_noticed() {
        let locked = |method: &str| {
            kinds(&cell(method, Warm), |_, evidence| evidence.worker_locked_bytes = Some(4096))
        };
        for method in ["mmap", "mmap:random", "mine/mmap", "pread", "uring"] {
            assert_eq!(locked(method), [MethodContradicted], "{method}");
        }
        assert_eq!((locked("mmap:lock"), locked("mine/get")), (vec![], vec![]));
        assert_eq!(kinds(&cell("mmap", Warm), |_, evidence| evidence.worker_locked_bytes = Some(0)), []);
    }

    #[test]
    fn each_of_several_files_is_mapped_with_the_advice_of_the_method() {
        let mapped = |method: &str, files| {
            let cell = replay_of_three_files(method, Cold);
            kinds(&cell, move |_, evidence| evidence.mapped_files = Some(files))
        };
        assert_eq!((mapped("mmap", 3), mapped("mmap", 2)), (vec![], vec![NotInForce]));
        assert_eq!(mapped("pread", 0), []);
        assert_eq!(kinds(&cell("mmap", Warm), |_, evidence| evidence.mapped_files = Some(0)), [], "one file");
        let advised = |of_all: &str, of_some: &str| {
            let (of_all, of_some) = (of_all.to_string(), of_some.to_string());
            kinds(&replay_of_three_files("mmap", Cold), move |_, evidence| {
                (evidence.mapping_flags, evidence.some_mapping_flags) = (Some(of_all), Some(of_some));
            })
        };
        assert_eq!(advised("rd mr", "rd mr"), []);
        assert_eq!(advised("rd mr", "rd mr rr"), [MethodContradicted], "one of them has it");
    }

    #[test]
    fn a_mapping_beside_calls_is_noticed() {
        let mapped =
            |cell: &Cell, mappings| kinds(cell, move |_, evidence| evidence.mappings = Some(mappings));
        for cell in [cell("pread", Warm), cell("mine/pread", Warm), append("mine/pwrite", Cold)] {
            assert_eq!(
                (mapped(&cell, 0), mapped(&cell, 1)),
                (vec![], vec![MethodContradicted]),
                "{}",
                cell.id()
            );
        }
        assert_eq!(mapped(&cell("mine/get", Warm), 1), []);
    }
}
