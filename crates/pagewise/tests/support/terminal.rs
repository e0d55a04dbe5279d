//! A terminal that a command runs on, by the end that a terminal program holds.

use std::fs::{File, OpenOptions};
use std::io::{Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::process::{Child, Command, Stdio};

use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};

use super::Place;

/// The end of the terminal program. Dropping it closes the terminal.
pub struct Terminal {
    master: File,
    shown: String,
}

impl Terminal {
    /// Starts pagewise in a session of its own on a new terminal.
    pub fn start(place: &Place, arguments: &[&str]) -> (Child, Self) {
        let master =
            openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC).expect("a terminal");
        grantpt(&master).expect("the right to it");
        unlockpt(&master).expect("unlocked");
        let name = ptsname(&master, Vec::new()).expect("its name");
        // The leader of a session that has no terminal yet would get this one as its own, and
        // SIGHUP at its end.
        let mut end = OpenOptions::new();
        end.read(true).write(true).custom_flags(rustix::fs::OFlags::NOCTTY.bits() as i32);
        let end = end.open(name.to_str().expect("a path"));
        let end = end.expect("the end of programs");
        let inner = place.command(arguments);
        let mut command = Command::new("setsid");
        command.arg("--ctty").arg(inner.get_program()).args(inner.get_args());
        place.settle(&mut command);
        command.env("TERM", "xterm");
        let end = || Stdio::from(end.try_clone().expect("clone"));
        let child = command.stdin(end()).stdout(end()).stderr(end()).spawn().expect("setsid starts");
        (child, Self { master: File::from(master), shown: String::new() })
    }

    /// Waits until it shows this text.
    #[track_caller]
    pub fn expect_shown(&mut self, text: &str) {
        while !self.shown.contains(text) {
            assert!(self.read(), "the terminal shows only: {}", self.shown);
        }
    }

    /// Types a line.
    pub fn enter(&mut self, line: &str) {
        writeln!(self.master, "{line}").expect("typed");
    }

    /// All that it showed, once no program has it any more.
    pub fn all_shown(mut self) -> String {
        while self.read() {}
        self.shown
    }

    /// False at the end.
    fn read(&mut self) -> bool {
        let mut chunk = [0; 4096];
        // EIO: the last program is gone.
        let len = self.master.read(&mut chunk).unwrap_or(0);
        self.shown.push_str(&String::from_utf8_lossy(&chunk[..len]));
        len > 0
    }
}
