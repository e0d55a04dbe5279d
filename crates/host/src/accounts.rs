//! Lookups in /etc/passwd and /etc/group: a user's home, and whether a group is private to a user.
//!
//! Accounts kept elsewhere (LDAP, systemd-homed) are not visible here: there is no home to fall
//! back to then, and a group counts as shared.

use std::path::{Path, PathBuf};

use rustix::process::geteuid;

use crate::kernel_files;

/// The home of the user who runs this: HOME, but for root only if it is root's own. With another
/// user's HOME, as `sudo -E` leaves it, it is the home in /etc/passwd, so that nothing of root's is
/// written to the other's home and nothing there is run.
pub fn home() -> Option<PathBuf> {
    let named = std::env::var_os("HOME").map(PathBuf::from).filter(|home| home.is_absolute());
    if named.as_deref().is_some_and(|home| !is_of_another_user(home)) {
        return named;
    }
    let passwd = kernel_files::text("/etc/passwd").unwrap_or_default();
    home_in(&passwd, geteuid().as_raw()).filter(|home| !is_of_another_user(home))
}

/// True if this is root, and the directory belongs to another user.
fn is_of_another_user(home: &Path) -> bool {
    use std::os::unix::fs::MetadataExt;
    geteuid().is_root() && std::fs::metadata(home).is_ok_and(|found| found.uid() != 0)
}

/// `name:password:uid:gid:comment:home:shell`.
fn home_in(passwd: &str, user: u32) -> Option<PathBuf> {
    let fields = accounts(passwd).find(|fields| fields.get(2) == Some(&&*user.to_string()))?;
    fields.get(5).map(PathBuf::from).filter(|home| home.is_absolute())
}

/// True if only `user` is in `group`, as on systems where each user has a group of the same name.
pub(crate) fn is_private_group(group: u32, user: u32) -> bool {
    let text = |path| kernel_files::text(path).unwrap_or_default();
    is_private_in(&text("/etc/passwd"), &text("/etc/group"), group, user)
}

fn is_private_in(passwd: &str, groups: &str, group: u32, user: u32) -> bool {
    let (group, user) = (group.to_string(), user.to_string());
    let is = |fields: &Vec<&str>, index: usize, text: &str| fields.get(index) == Some(&text);
    let Some(name) = accounts(passwd).find(|fields| is(fields, 2, &user)).map(|fields| fields[0]) else {
        return false;
    };
    // `name:password:gid:members`. A group that is not in the file may have any members.
    let mut named = accounts(groups).filter(|fields| is(fields, 2, &group)).peekable();
    let listed = named.peek().is_some();
    let others = named.any(|fields| {
        fields.get(3).is_some_and(|members| members.split(',').any(|one| !one.is_empty() && one != name))
    });
    let first_group_of_others =
        accounts(passwd).any(|fields| is(&fields, 3, &group) && !is(&fields, 2, &user));
    listed && !others && !first_group_of_others
}

fn accounts(text: &str) -> impl Iterator<Item = Vec<&str>> {
    text.lines().map(|line| line.split(':').collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    const PASSWD: &str = "root:x:0:0:root:/root:/bin/bash\nada:x:1000:1000:Ada:/home/ada:/bin/sh\n\
                          bob:x:1001:100::/home/bob:/bin/sh\neve:x:1002:100::/home/eve:/bin/sh\nodd:x:1003:1003::nowhere:\n";
    const GROUP: &str = "root:x:0:\nada:x:1000:\nusers:x:100:\nodd:x:1003:odd,bob\nstaff:x:50:ada\n";

    #[test]
    fn a_home_is_the_sixth_field() {
        assert_eq!(home_in(PASSWD, 1000), Some("/home/ada".into()));
        assert_eq!(home_in(PASSWD, 1003), None, "it is not absolute");
        assert_eq!(home_in(PASSWD, 7), None);
        assert_eq!(home_in("garbage\n:::\n", 0), None);
    }

    #[test]
    fn a_group_is_private_where_nobody_else_is_in_it() {
        let private = |group, user| is_private_in(PASSWD, GROUP, group, user);
        assert!(private(1000, 1000) && private(0, 0) && private(50, 1000));
        assert!(!private(100, 1001), "it is the first group of another");
        assert!(!private(1003, 1003), "another is a member");
        assert!(!private(1000, 1001) && !private(77, 1000) && !private(1000, 77));
    }
}
