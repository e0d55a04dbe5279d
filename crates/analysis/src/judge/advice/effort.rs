//! Which of two methods that are as fast asks less of a program.

use pagewise_model::{Access, Method, MethodOption, Worker};

/// What a method asks of a program: a stream is simpler than offsets, a call than a mapping with its SIGBUS, that than a
/// ring, and each option is one more thing to get right. Of two buffers the smaller one asks less. That holds in every
/// language; only of two that are equal in all that the native one comes first, which needs nothing beside.
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
    // A way that has to name its depth or its kind of buffer asks no more for that.
    let named = |option: &&MethodOption| {
        matches!(option, MethodOption::Depth(_) | MethodOption::DirectBuffer | MethodOption::HeapBuffer)
    };
    let options = method.options().iter().filter(|option| !named(option)).count();
    // In Java a channel is at hand, and a call of the system is made through the foreign-function interface.
    let foreign = usize::from(*method.worker() == Worker::Jvm && method.word() == Access::Pread.name());
    // O_DIRECT makes alignment and caching the program's own business: more than another access does.
    let direct = if method.is_direct() { 7 } else { 0 };
    let buffer = method.buffer().map_or(0, |buffer| buffer.0);
    (by_access + direct, options + foreign, buffer, method.worker().has_runtime())
}
