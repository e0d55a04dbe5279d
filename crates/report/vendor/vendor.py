#!/usr/bin/env python3
"""Fetch the scripts of vendored.toml from the npm registry, into this folder.

    python3 crates/report/vendor/vendor.py            # fetch; run again it changes nothing
    python3 crates/report/vendor/vendor.py --check    # compare what is here with the hashes, without network

A file whose hash is another is not written, and the exit status is 1. For another version, change version and sha256 in
vendored.toml; then `PAGEWISE_BLESS=1 cargo test -q -p pagewise-report` renews the hashes of the page's policy.
"""

import hashlib
import subprocess
import sys
import tarfile
import tempfile
import tomllib
from pathlib import Path

HERE = Path(__file__).resolve().parent


def fetched(package, version, folder):
    """The archive of a package, by npm."""
    command = ["npm", "pack", "--silent", "--pack-destination", folder, f"{package}@{version}"]
    name = subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()[-1]
    return tarfile.open(Path(folder) / name)


def main():
    is_check = sys.argv[1:] == ["--check"]
    if sys.argv[1:] and not is_check:
        sys.exit(__doc__)
    files = tomllib.loads((HERE / "vendored.toml").read_text())["file"]
    wrong = []
    with tempfile.TemporaryDirectory() as folder:
        archives = {}
        for file in files:
            path, key = HERE / file["name"], (file["package"], file["version"])
            if is_check:
                content = path.read_bytes()
            else:
                if key not in archives:
                    archives[key] = fetched(*key, folder)
                content = archives[key].extractfile("package/" + file["source"]).read()
            found = hashlib.sha256(content).hexdigest()
            if found != file["sha256"]:
                wrong.append(f"{file['name']}: its sha256 is {found}, not {file['sha256']}")
            elif not is_check and not (path.exists() and path.read_bytes() == content):
                path.write_bytes(content)
                print(f"{file['name']}: {file['package']} {file['version']}")
    print("\n".join(wrong) or "every file has its hash", file=sys.stderr if wrong else sys.stdout)
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main())
