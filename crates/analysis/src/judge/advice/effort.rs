//! Programming effort of a method, to choose between two that are equally fast.

use pagewise_model::{Access, Method, MethodOption, Worker};

/// Effort that a method requires of a program, as a sort key. A stream is simpler than offsets, a
/// call simpler than a mapping with its SIGBUS, a mapping simpler than a ring, and each option adds
/// effort. Of two buffers the smaller one requires less. That holds in every language; of two
/// methods that are otherwise equal, the native one comes first, since it needs no other runtime.
pub(super) fn effort(method: &str) -> (u32, usize, u64, bool) {
    let Ok(method) = method.parse::<Method>() else { return (u32::MAX, 0, 0, true) };
    let by_access = match method.access() {
        Access::Read => 0,
        Access::Pread => 1,
        Access::Write => 2,
        Access::Pwrite => 3,
        Access::Mmap => 4,
        Access::Uring => 5,
        Access::Anonymous | Access::Unknown => 6,
    };
    // A method that must name its depth or its kind of buffer requires no more effort for that.
    let named = |option: &&MethodOption| {
        matches!(option, MethodOption::Depth(_) | MethodOption::DirectBuffer | MethodOption::HeapBuffer)
    };
    let options = method.options().iter().filter(|option| !named(option)).count();
    // In Java a channel is at hand, but a system call goes through the foreign-function interface.
    let by_interface = usize::from(*method.worker() == Worker::Jvm && method.word() == Access::Pread.name());
    // With O_DIRECT, alignment and caching become the program's task, which is more effort than
    // another access.
    let direct = if method.is_direct() { 7 } else { 0 };
    let buffer = method.buffer().map_or(0, |buffer| buffer.0);
    (by_access + direct, options + by_interface, buffer, method.worker().has_runtime())
}
