//! A plain file takes the place of the kernel's.

use std::fs;

use super::*;

#[test]
fn what_the_kernel_rounds_is_refused_and_put_back() {
    let directory = tempfile::tempdir().expect("directory");
    let path = directory.path().join("read_ahead_kb");
    let setting = SettingFile { setting: &Readahead, path: path.clone() };
    fs::write(&path, "8192\n").expect("write");
    setting.set("131072").expect("set");
    assert_eq!(setting.read().expect("read"), "131072");
    // It stores whole KiB.
    let error = setting.set("1000").expect_err("rounded");
    assert_eq!(error.to_string(), "readahead cannot be 1000: the kernel changes it to 0");
    assert_eq!(setting.read().expect("read"), "131072");
    assert!(setting.set("much").is_err());
    fs::write(&path, "many\n").expect("write");
    assert!(setting.read().is_err() && setting.set("4096").is_err());
    assert_eq!(fs::read_to_string(&path).expect("read"), "many\n");
}
