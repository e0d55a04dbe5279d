//! The device behind a path where filesystems lie on each other. Needs the right to mount.

mod mounted;

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::process::Command;

use mounted::{Mounted, run, text};
use pagewise_host::{BlockDevice, Readahead};

/// A filesystem in a file.
fn mount_image(directory: &Path) -> Result<Mounted, String> {
    let image = directory.join("image");
    let point = directory.join("mounted");
    fs::File::create(&image).and_then(|file| file.set_len(8 << 20)).map_err(|error| error.to_string())?;
    fs::create_dir(&point).map_err(|error| error.to_string())?;
    run("mkfs.ext2", &["-F", text(&image)])?;
    run("mount", &["-o", "loop", text(&image), text(&point)])?;
    Ok(Mounted(point))
}

fn mount_overlay(directory: &Path, lower: &Path, upper: &Path) -> Result<Mounted, String> {
    let point = directory.join("merged");
    let work = directory.join("work");
    for path in [&point, &work] {
        fs::create_dir(path).map_err(|error| error.to_string())?;
    }
    let options = format!("lowerdir={},upperdir={},workdir={}", text(lower), text(upper), text(&work));
    run("mount", &["-t", "overlay", "overlay", "-o", &options, text(&point)])?;
    Ok(Mounted(point))
}

fn number(path: &Path) -> Result<(u32, u32), String> {
    BlockDevice::behind(path).map(|device| device.number()).map_err(|error| error.to_string())
}

#[test]
fn a_loop_device_is_the_device_of_what_is_mounted_on_it() {
    let directory = tempfile::tempdir_in(".").expect("directory");
    let mounted = match mount_image(directory.path()) {
        Ok(mounted) => mounted,
        Err(reason) => {
            println!("skipped: mount: {reason}");
            return;
        }
    };
    let file = mounted.0.join("file");
    fs::write(&file, "bytes").expect("write");
    let device = BlockDevice::behind(&file).expect("device");
    assert!(device.name.starts_with("loop"), "{device:?}");
    assert!(device.note.as_ref().is_some_and(|note| note.contains("image")), "{device:?}");
    let dev = fs::metadata(&file).expect("stat").dev();
    assert_eq!(device.number(), (rustix::fs::major(dev), rustix::fs::minor(dev)));
    let readahead = Readahead::of(&file).expect("readahead");
    let before = readahead.read().expect("read");
    readahead.set("65536").expect("set");
    assert_eq!(readahead.read().expect("read"), "65536");
    readahead.set(&before).expect("set");
    assert_eq!(readahead.read().expect("read"), before);
}

#[test]
fn an_overlay_leads_to_the_layer_that_holds_the_file() {
    let directory = tempfile::tempdir_in(".").expect("directory");
    let upper = directory.path().join("upper");
    fs::create_dir(&upper).expect("directory");
    let mounted = mount_image(directory.path()).and_then(|image| {
        fs::create_dir(image.0.join("below")).map_err(|error| error.to_string())?;
        fs::write(image.0.join("below/old"), "bytes").map_err(|error| error.to_string())?;
        let overlay = mount_overlay(directory.path(), &image.0, &upper)?;
        // In this order they are unmounted.
        Ok((overlay, image))
    });
    let (overlay, image) = match mounted {
        Ok(mounted) => mounted,
        Err(reason) => {
            println!("skipped: mount: {reason}");
            return;
        }
    };
    let old = overlay.0.join("below/old");
    assert_eq!(number(&old), number(&image.0.join("below/old")));
    assert_eq!(
        Readahead::of(&old).expect("readahead").path(),
        Readahead::of(&image.0).expect("readahead").path()
    );
    // New files come to the upper layer, also into a directory that it does not have yet.
    let beside = number(&upper);
    assert_ne!(number(&old), beside);
    assert_eq!(number(&overlay.0), beside);
    assert_eq!(number(&overlay.0.join("below")), beside);
    let new = overlay.0.join("below/new");
    fs::write(&new, "bytes").expect("write");
    assert_eq!(number(&new), beside);
    // Written to, the old file moves up.
    fs::write(&old, "other bytes").expect("write");
    assert_eq!(number(&old), beside);
    // Hidden under another mount, the layers are not to be found.
    let hidden = Command::new("mount").args(["-t", "tmpfs", "tmpfs", text(&upper)]).status();
    if hidden.is_ok_and(|status| status.success()) {
        let _hidden = Mounted(upper.clone());
        let reason = number(&new).expect_err("hidden");
        assert!(reason.contains("layers are not seen"), "{reason}");
        assert!(number(&overlay.0).is_err());
    }
}
