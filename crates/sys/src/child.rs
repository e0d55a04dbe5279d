//! Child processes that do not outlive their parent, that are in their cgroup and on their CPUs
//! before exec, or that wait before it.

use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command};
use std::thread::JoinHandle;

use rustix::pipe::PipeFlags;
use rustix::process::{
    Pid, Resource, Rlimit, Signal, getppid, getrlimit, set_parent_process_death_signal, setrlimit,
};

use crate::checked;

/// Actions of a child between fork and exec. If a step fails it does not start, and `spawn` returns
/// the errno.
#[derive(Debug, Default)]
pub struct Spawn {
    /// The kernel kills the child when the thread that spawns it ends; see [`die_with_parent`].
    pub die_with_parent: bool,
    /// `cgroup.procs` files, open for writing, of groups that the child joins.
    pub join: Vec<OwnedFd>,
    /// The CPUs that it must be able to use: exactly these.
    pub cpus: Option<CpuMask>,
    /// Soft limit of its open files; `None`: that of its parent.
    pub open_files: Option<u64>,
}

impl Spawn {
    /// Apply these actions to the child of `command`.
    pub fn apply(self, command: &mut Command) -> &mut Command {
        let Self { die_with_parent: dies, join, cpus, open_files } = self;
        if dies {
            die_with_parent(command);
        }
        if !join.is_empty() {
            // SAFETY: the closure runs between fork and exec and calls only write(2), which is
            // async-signal-safe; it allocates nothing.
            unsafe { command.pre_exec(move || join.iter().try_for_each(join_group)) };
        }
        if let Some(cpus) = cpus {
            let mut allowed = cpus.cleared();
            // SAFETY: the closure runs between fork and exec and calls only sched_setaffinity(2)
            // and sched_getaffinity(2) on memory that was allocated before the fork.
            unsafe { command.pre_exec(move || cpus.apply(&mut allowed)) };
        }
        if open_files.is_some() {
            // SAFETY: the closure runs between fork and exec and calls only getrlimit(2) and
            // setrlimit(2); it allocates nothing.
            unsafe {
                command.pre_exec(move || {
                    let maximum = getrlimit(Resource::Nofile).maximum;
                    Ok(setrlimit(Resource::Nofile, Rlimit { current: open_files, maximum })?)
                });
            }
        }
        command
    }
}

/// Make the kernel kill the child when the thread that spawns it ends (prctl(2), PR_SET_PDEATHSIG).
/// Call it from a thread that lives as long as the child should.
pub fn die_with_parent(command: &mut Command) -> &mut Command {
    let parent = rustix::process::getpid();
    // SAFETY: the closure runs between fork and exec and calls only prctl(2) and getppid(2), which
    // are async-signal-safe; it allocates nothing.
    unsafe {
        command.pre_exec(move || {
            set_parent_process_death_signal(Some(Signal::KILL))?;
            // The parent may have died before the call above; the signal would never be sent then.
            if getppid() == Some(parent) { Ok(()) } else { Err(io::Error::from(rustix::io::Errno::SRCH)) }
        })
    }
}

/// In both cgroup versions, `0` means the process that writes it.
fn join_group(procs: &OwnedFd) -> io::Result<()> {
    match rustix::io::write(procs, b"0\n") {
        Ok(2) => Ok(()),
        Ok(_) => Err(rustix::io::Errno::IO.into()),
        Err(errno) => Err(errno.into()),
    }
}

/// A child that exists and waits before it executes its program, so that it can be watched from the
/// first instruction on. If this is dropped, or its process dies, the child ends without having
/// executed anything.
#[derive(Debug)]
pub struct Held {
    process: Pid,
    gate: OwnedFd,
    spawning: JoinHandle<io::Result<Child>>,
}

impl Held {
    /// Start the child of `command` up to its exec.
    pub fn spawn(mut command: Command) -> io::Result<Self> {
        let (reader, writer) = rustix::pipe::pipe_with(PipeFlags::CLOEXEC)?;
        let (waits, gate) = rustix::pipe::pipe_with(PipeFlags::CLOEXEC)?;
        let gate_of_parent = gate.as_raw_fd();
        // SAFETY: the closure runs between fork and exec and calls only close(2), getpid(2),
        // write(2) and read(2), which are async-signal-safe. The descriptor that it closes is the
        // child's copy of the gate: without that, the child would hold its own gate open and wait
        // for ever once the parent is gone.
        unsafe {
            command.pre_exec(move || {
                libc::close(gate_of_parent);
                let process = rustix::process::getpid().as_raw_nonzero().get();
                rustix::io::write(&writer, &process.to_ne_bytes())?;
                let mut opened = [0];
                match rustix::io::retry_on_intr(|| rustix::io::read(&waits, &mut opened))? {
                    1 => Ok(()),
                    _ => Err(rustix::io::Errno::CANCELED.into()),
                }
            })
        };
        // `spawn` returns after exec.
        let spawning = std::thread::spawn(move || command.spawn());
        let mut process = [0; 4];
        let length = rustix::io::retry_on_intr(|| rustix::io::read(&reader, &mut process))?;
        match Pid::from_raw(i32::from_ne_bytes(process)).filter(|_| length == process.len()) {
            Some(process) => Ok(Self { process, gate, spawning }),
            None => Err(ended(spawning).err().unwrap_or_else(|| io::ErrorKind::BrokenPipe.into())),
        }
    }

    /// The process.
    pub fn process(&self) -> Pid {
        self.process
    }

    /// Let it end without having executed anything, and wait for that: a child that ends after this
    /// process would say so on stderr.
    pub fn give_up(self) {
        drop(self.gate);
        let _ = ended(self.spawning);
    }

    /// Let it execute its program.
    pub fn release(self) -> io::Result<Released> {
        rustix::io::write(&self.gate, b"1")?;
        Ok(Released(self.spawning))
    }
}

/// A child that was let go, and executes its program.
#[derive(Debug)]
pub struct Released(JoinHandle<io::Result<Child>>);

impl Released {
    /// True if [`Self::child`] does not have to wait. The program may run for a while before that.
    pub fn is_known(&self) -> bool {
        self.0.is_finished()
    }

    /// The child; the error is that of exec, ENOENT if there is no such program.
    pub fn child(self) -> io::Result<Child> {
        ended(self.0)
    }
}

fn ended(spawning: JoinHandle<io::Result<Child>>) -> io::Result<Child> {
    spawning.join().unwrap_or_else(|_| Err(io::Error::other("the thread that starts the child panicked")))
}

/// A CPU mask for sched_setaffinity(2), for machines of any size.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CpuMask(Box<[libc::c_ulong]>);

impl CpuMask {
    /// The mask of the CPUs with these numbers.
    pub fn new(cpus: &[u32]) -> Self {
        let bits = libc::c_ulong::BITS;
        let highest = cpus.iter().copied().max().unwrap_or(0);
        // The kernel requires sched_getaffinity(2) to have room for every possible CPU.
        let mut words = vec![0; (highest.max(MOST_CPUS - 1) / bits + 1) as usize];
        for cpu in cpus {
            words[(cpu / bits) as usize] |= 1 << (cpu % bits);
        }
        Self(words.into())
    }

    /// The CPUs that this thread may use (sched_getaffinity(2)).
    pub fn of_this_thread() -> io::Result<Self> {
        let mut mask = Self::new(&[]);
        mask.read()?;
        Ok(mask)
    }

    /// Numbers of the CPUs, ascending.
    pub fn numbers(&self) -> Vec<u32> {
        let bits = libc::c_ulong::BITS;
        let has = |cpu: &u32| self.0[(cpu / bits) as usize] >> (cpu % bits) & 1 == 1;
        (0..self.0.len() as u32 * bits).filter(has).collect()
    }

    /// Confine the calling thread to exactly these CPUs; EINVAL if it cannot.
    pub fn confine_this_thread(&self) -> io::Result<()> {
        self.apply(&mut self.cleared())
    }

    fn cleared(&self) -> Self {
        Self(vec![0; self.0.len()].into())
    }

    fn read(&mut self) -> io::Result<()> {
        self.0.fill(0);
        // SAFETY: the kernel writes at most the size that is given with the memory.
        checked(unsafe {
            libc::syscall(libc::SYS_sched_getaffinity, 0, size_of_val(&*self.0), self.0.as_mut_ptr())
        })
        .map(drop)
    }

    /// Set the mask and compare the result: the kernel silently drops CPUs that are offline or
    /// outside of the cpuset. `scratch` is as long as this mask.
    fn apply(&self, scratch: &mut Self) -> io::Result<()> {
        // SAFETY: the kernel reads the size that is given with the memory.
        checked(unsafe {
            libc::syscall(libc::SYS_sched_setaffinity, 0, size_of_val(&*self.0), self.0.as_ptr())
        })?;
        scratch.read()?;
        if scratch == self { Ok(()) } else { Err(rustix::io::Errno::INVAL.into()) }
    }
}

/// The highest number of CPUs that Linux supports (CONFIG_NR_CPUS with CPUMASK_OFFSTACK).
const MOST_CPUS: u32 = 8192;

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::OpenOptions;
    use std::process::Stdio;

    fn shell(script: &str) -> Command {
        let mut command = Command::new("sh");
        command.args(["-c", script]).stdin(Stdio::null());
        command
    }

    #[test]
    fn a_child_writes_itself_into_every_group() {
        let directory = tempfile::tempdir().expect("directory");
        let paths = ["memory", "blkio"].map(|name| directory.path().join(name));
        let join = paths
            .iter()
            .map(|path| OpenOptions::new().create_new(true).write(true).open(path).expect("open").into())
            .collect();
        let mut command = shell("exit 0");
        let status = Spawn { die_with_parent: true, join, ..Spawn::default() }
            .apply(&mut command)
            .status()
            .expect("start");
        assert!(status.success());
        for path in &paths {
            assert_eq!(std::fs::read_to_string(path).expect("read"), "0\n");
        }
    }

    #[test]
    fn a_child_has_its_own_limit_of_open_files() {
        let limit = getrlimit(Resource::Nofile);
        let fewer = limit.current.expect("a limit") - 1;
        let output = Spawn { open_files: Some(fewer), ..Spawn::default() }
            .apply(&mut shell("ulimit -Sn; ulimit -Hn"))
            .output()
            .expect("start");
        let hard = limit.maximum.map_or("unlimited".to_string(), |maximum| maximum.to_string());
        assert_eq!(String::from_utf8_lossy(&output.stdout), format!("{fewer}\n{hard}\n"));
        assert_eq!(getrlimit(Resource::Nofile), limit, "that of its parent");
    }

    #[test]
    fn a_child_that_cannot_join_does_not_start() {
        let full = OpenOptions::new().write(true).open("/dev/full").expect("open").into();
        let mut command = shell("exit 0");
        let error = Spawn { join: vec![full], ..Spawn::default() }.apply(&mut command).status();
        assert_eq!(error.expect_err("started").raw_os_error(), Some(libc::ENOSPC));
    }

    #[test]
    fn a_held_child_executes_nothing_before_it_is_released() {
        let directory = tempfile::tempdir().expect("directory");
        let made = directory.path().join("made");
        let mut command = shell("echo done > \"$0\"; exit 3");
        command.arg(&made);
        let held = Held::spawn(command).expect("start");
        let name = format!("/proc/{}/comm", held.process().as_raw_nonzero());
        let own = std::fs::read_to_string("/proc/self/comm").expect("a name");
        let before = std::fs::read_to_string(&name).expect("it exists");
        assert_ne!(before, "sh\n");
        assert!(!made.exists(), "{own} {before}");
        let process = held.process();
        let mut child = held.release().and_then(Released::child).expect("exec");
        assert_eq!(child.id(), process.as_raw_nonzero().get() as u32);
        assert_eq!(child.wait().expect("wait").code(), Some(3));
        assert!(made.exists());
    }

    #[test]
    fn a_held_child_that_is_given_up_ends_and_one_without_a_program_says_so() {
        let held = Held::spawn(shell("exit 0")).expect("start");
        let process = format!("/proc/{}", held.process().as_raw_nonzero());
        held.give_up();
        assert!(!std::path::Path::new(&process).exists());
        let held = Held::spawn(Command::new("/nowhere/program")).expect("start");
        assert_eq!(
            held.release().and_then(Released::child).expect_err("no program").kind(),
            io::ErrorKind::NotFound
        );
    }

    #[test]
    fn a_child_runs_on_the_cpus_that_it_is_given() {
        let own = CpuMask::of_this_thread().expect("affinity");
        let last = *own.numbers().last().expect("a CPU");
        let mut command = shell("grep Cpus_allowed_list /proc/self/status");
        let output = Spawn { cpus: Some(CpuMask::new(&[last])), ..Spawn::default() }
            .apply(&mut command)
            .output()
            .expect("start");
        let text = String::from_utf8(output.stdout).expect("text");
        assert_eq!(text.trim(), format!("Cpus_allowed_list:\t{last}"));
    }

    #[test]
    fn a_cpu_that_is_not_there_is_an_error_even_beside_one_that_is() {
        let own = CpuMask::of_this_thread().expect("affinity").numbers();
        let missing = MOST_CPUS - 1;
        assert!(!own.contains(&missing));
        for cpus in [vec![missing], vec![own[0], missing]] {
            let mut command = shell("exit 0");
            let error =
                Spawn { cpus: Some(CpuMask::new(&cpus)), ..Spawn::default() }.apply(&mut command).status();
            assert_eq!(error.expect_err("started").raw_os_error(), Some(libc::EINVAL), "{cpus:?}");
        }
    }
}
