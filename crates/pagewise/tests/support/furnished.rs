//! Places for commands that are refused, and for those that depend on no device.

use std::fs;
use std::path::Path;

use super::Place;

/// A place with a file, an empty one, a directory, a link that leads nowhere, and a pipe.
pub fn furnished() -> Place {
    let place = Place::new();
    place.write("data", vec![1; 256 << 10]);
    place.write("empty", []);
    fs::create_dir(place.file("directory")).expect("directory");
    std::os::unix::fs::symlink("/nowhere", place.file("dangling")).expect("link");
    let modes = rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR;
    rustix::fs::mknodat(rustix::fs::CWD, place.file("pipe"), rustix::fs::FileType::Fifo, modes, 0)
        .expect("pipe");
    place
}

impl Place {
    /// A place in memory, where there is one.
    pub fn in_memory() -> Option<Self> {
        let memory = Path::new("/dev/shm");
        memory.is_dir().then(|| Self::on(memory))
    }
}
