"""Builds the command without each extra, and without all of them: no other feature may need it.

Everything but the command itself is the same as with all extras, so it is compiled once, by the
build of the tests.
"""

import os
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def main():
    extras = sorted(folder.name for folder in (ROOT / "extras").iterdir())
    linted = {**os.environ, "RUSTC_WORKSPACE_WRAPPER": str(ROOT / "checks" / "compile")}
    for missing in [*([extra] for extra in extras), *([extras] if len(extras) > 1 else [])]:
        started = time.monotonic()
        features = [f"pagewise/{extra}" for extra in extras if extra not in missing]
        command = ["cargo", "test", "--quiet", "--workspace", "--bin", "pagewise", "--no-default-features", "--features", ",".join(features)]
        tested = subprocess.run([*command, "extras::"], cwd=ROOT, env=linted, stdout=subprocess.PIPE, text=True)
        if tested.returncode != 0 or "0 passed" in tested.stdout:
            sys.exit(f"{tested.stdout}checks: the command does not build without {', '.join(missing)}")
        print(f"without {', '.join(missing)}: {time.monotonic() - started:.0f} s", flush=True)


if __name__ == "__main__":
    main()
