//! The transient scope of systemd in which groups may be made.
//!
//! Only the manager of a cgroup subtree may delegate a part of it. A worker cannot be put into a
//! scope by a process outside that lacks privileges (cgroups(7): it needs write access to the
//! common ancestor), so the whole supervisor runs in it: it executes itself anew.

use std::ffi::OsString;
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

/// Set in the environment of a process in a [`Scope`], so that it does not ask for another.
pub const SCOPE_MARKER: &str = "PAGEWISE_SCOPE";

/// A scope that `systemd-run` can create.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Scope {
    program: PathBuf,
    of_user: bool,
}

impl Scope {
    /// The scope available to this user; `None` without systemd, without its `systemd-run`, without
    /// a reachable manager, or within such a scope.
    pub(super) fn detect() -> Option<Self> {
        // sd_booted(3).
        if !Path::new("/run/systemd/system").is_dir() || is_marked() {
            return None;
        }
        let of_user = !rustix::process::geteuid().is_root();
        let manager = if of_user {
            PathBuf::from(env::var_os("XDG_RUNTIME_DIR")?).join("systemd/private")
        } else {
            PathBuf::from("/run/systemd/private")
        };
        let is_socket = fs::metadata(&manager).is_ok_and(|socket| socket.file_type().is_socket());
        let program = env::split_paths(&env::var_os("PATH")?)
            .map(|directory| directory.join("systemd-run"))
            .find(|program| rustix::fs::access(program, rustix::fs::Access::EXEC_OK).is_ok())?;
        is_socket.then_some(Self { program, of_user })
    }

    /// Command that runs `argv` in the scope by `systemd-run`; for `exec`.
    pub fn command(&self, argv: impl IntoIterator<Item = OsString>) -> Command {
        let mut command = Command::new(&self.program);
        command.args(self.arguments()).arg("--").args(argv).env(SCOPE_MARKER, "1");
        command
    }

    /// The command line to type.
    pub fn text(&self) -> String {
        let user = if self.of_user { "--user " } else { "" };
        format!("systemd-run {user}--scope -p Delegate=yes pagewise …")
    }

    fn arguments(&self) -> &'static [&'static str] {
        let all = &["--user", "--scope", "--quiet", "-p", "Delegate=yes"];
        if self.of_user { all } else { &all[1..] }
    }

    /// True if it belongs to the manager of a user.
    pub fn of_user(&self) -> bool {
        self.of_user
    }
}

/// True if this process was started in a scope of its own.
pub(super) fn is_marked() -> bool {
    env::var_os(SCOPE_MARKER).is_some()
}

#[cfg(test)]
impl Scope {
    pub(super) fn fake(of_user: bool) -> Self {
        Self { program: "/usr/bin/systemd-run".into(), of_user }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_supervisor_runs_itself_in_a_scope() {
        let argv = || ["/bin/pagewise", "run", "read"].map(OsString::from);
        let words = |command: &Command| -> Vec<String> {
            command.get_args().map(|word| word.to_string_lossy().into_owned()).collect()
        };
        let of_user = Scope::fake(true).command(argv());
        assert_eq!(of_user.get_program(), "/usr/bin/systemd-run");
        assert_eq!(
            words(&of_user).join(" "),
            "--user --scope --quiet -p Delegate=yes -- /bin/pagewise run read"
        );
        assert!(of_user.get_envs().any(|(name, value)| name == SCOPE_MARKER && value.is_some()));
        let of_system = Scope::fake(false).command(argv());
        assert_eq!(words(&of_system).join(" "), "--scope --quiet -p Delegate=yes -- /bin/pagewise run read");
        assert_eq!(Scope::fake(false).text(), "systemd-run --scope -p Delegate=yes pagewise …");
    }
}
