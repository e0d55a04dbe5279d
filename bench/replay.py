#!/usr/bin/env python3
"""Whether replayed traces stand for programs that nobody here wrote, and predict what the same
program does through a mapping; as root.

    cargo build --release
    pip install duckdb==2.0.0 plyvel==1.5.1
    # of Debian 12: ripgrep, sqlite3, rocksdb-tools (7.8.3-2), maven, openjdk-17-jdk-headless
    python3 bench/replay.py --dir DIRECTORY

Each program is recorded from an empty cache, and its trace replayed. Bars: device bytes of the
replay by the program's own method within 5 % of the program's; where the program can map its file
instead, the replay by mmap within 15 % of what it then reads from the device.
"""

import argparse
import json
import os
import random
import sqlite3
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

PAGEWISE = Path(__file__).resolve().parent.parent / "target/release/pagewise"
LOOK_UPS = 3000


def sqlite_files(folder):
    database = folder / "look.db"
    connection = sqlite3.connect(database)
    connection.execute("create table t(id integer primary key, v blob)")
    rows = ((number, os.urandom(900)) for number in range(120_000))
    connection.executemany("insert into t values(?,?)", rows)
    connection.commit()
    connection.close()
    draw = random.Random(1)
    looks = "\n".join(f"select length(v) from t where id={draw.randrange(120_000)};" for _ in range(LOOK_UPS))
    (folder / "calls.sql").write_text("pragma cache_size=50;\n" + looks)
    (folder / "mapped.sql").write_text("pragma mmap_size=1073741824;\npragma cache_size=50;\n" + looks)
    command = lambda script: ["sqlite3", str(database), f".read {folder / script}"]
    return database, command("calls.sql"), command("mapped.sql")


def duckdb_files(folder):
    parquet = folder / "data.parquet"
    make = f"""
import duckdb
duckdb.sql("set threads=1")
duckdb.sql("copy (select i, hash(i) as h, hash(i + 1)::varchar as s from range(4000000) t(i)) to '{parquet}' (format parquet)")
"""
    subprocess.run([sys.executable, "-c", make], check=True)
    ask = f"""
import duckdb
duckdb.sql("set threads=1")
print(duckdb.sql("select count(*), max(h) from '{parquet}' where i % 7 = 3").fetchall())
"""
    return parquet, [sys.executable, "-c", ask], None


def leveldb_files(folder):
    store = folder / "level"
    make = f"""
import os, plyvel
store = plyvel.DB({str(store)!r}, create_if_missing=True, max_file_size=1 << 30, write_buffer_size=256 << 20, compression=None)
for key in range(100000):
    store.put(b'%09d' % key, os.urandom(900))
store.compact_range()
store.close()
"""
    subprocess.run([sys.executable, "-c", make], check=True)
    files = sorted(store.glob("*.ldb"), key=lambda path: path.stat().st_size)
    ask = f"""
import random, plyvel
store = plyvel.DB({str(store)!r}, max_open_files=100, lru_cache_size=1 << 20)
draw = random.Random(3)
print(sum(len(store.get(b'%09d' % draw.randrange(100000))) for _ in range({LOOK_UPS})))
"""
    return files[-1], [sys.executable, "-c", ask], None


def duckdb_two_files(folder):
    parquet, command, mapped = duckdb_files(folder)
    return parquet, [*command[:-1], command[-1].replace("threads=1", "threads=2")], mapped


def rocksdb_files(folder):
    store = folder / "rocks"
    usual = ["db_bench", f"--db={store}", "--num=120000", "--value_size=900", "--compression_type=none", "--seed=1"]
    # One table file.
    sizes = ["--write_buffer_size=536870912", "--target_file_size_base=1073741824", "--disable_wal=1"]
    subprocess.run([*usual, "--benchmarks=fillseq", *sizes], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    look = [*usual, "--benchmarks=readrandom", "--use_existing_db=1", "--readonly=1", f"--reads={LOOK_UPS // 2}", "--threads=2", "--cache_size=1048576"]
    return next(store.glob("*.sst")), [*look, "--mmap_read=0"], [*look, "--mmap_read=1"]


LUCENE = "9.12.3"


def lucene_files(folder):
    fetch = "org.apache.maven.plugins:maven-dependency-plugin:3.6.1:copy"
    words = ["mvn", "-q", "-B", fetch, f"-Dartifact=org.apache.lucene:lucene-core:{LUCENE}", f"-DoutputDirectory={folder}"]
    subprocess.run(words, check=True, cwd=folder)
    jar, driver = folder / f"lucene-core-{LUCENE}.jar", Path(__file__).resolve().parent / "lucene/LuceneReads.java"
    subprocess.run(["javac", "-cp", jar, "-d", folder, driver], check=True)
    index = folder / "index"
    java = ["java", "-Xmx2g", "-Xshare:auto", "-cp", f"{jar}:{folder}", "LuceneReads"]
    subprocess.run([*java, "make", index, "120000"], check=True)
    look = lambda how: [*java, how, str(index), str(LOOK_UPS // 2), "2"]
    return next(index.glob("*.fdt")), look("nio"), look("mmap")


def ripgrep_files(folder):
    text = folder / "text.log"
    draw = random.Random(5)
    with open(text, "w") as out:
        for line in range(1_500_000):
            out.write(f"{line:09d} {draw.getrandbits(220):055x}\n")
    command = lambda how: ["rg", how, "--no-config", "-j1", "-c", "dead.*beef", str(text)]
    return text, command("--no-mmap"), command("--mmap")


def run_of(file, command, memory):
    """What the device reads for a run of the command from an empty cache, and its time, as its
    recording says."""
    with tempfile.TemporaryDirectory(dir=file.parent) as folder:
        trace = Path(folder) / "trace"
        record(file, command, memory, trace)
        trailer = trace.read_bytes().rsplit(b"T{", 1)[1]
        program = json.loads(b"{" + trailer)["program"]
        return program["device_read_bytes"], program["wall_ns"]


def record(file, command, memory, trace):
    limit = [f"--memory={memory}"] if memory else []
    words = [PAGEWISE, "record", f"--cold={file}", *limit, "-o", trace, "--", *command]
    subprocess.run(words, check=False, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def replayed(folder, file, command, memory):
    trace = folder / "trace"
    trace.unlink(missing_ok=True)
    record(file, command, memory, trace)
    words = [PAGEWISE, "run", "replay", "--trace", trace, "--file", file, "--evict", "--json", "--rounds=7", "--no-ceilings"]
    ended = subprocess.run(words, cwd=folder, capture_output=True, text=True)
    return json.loads(ended.stdout) if ended.stdout else ended.stderr.strip()


def main():
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--dir", default=".", type=Path, help="where the files are made, on a disk")
    arguments.add_argument("--only", help="the program to be run")
    arguments = arguments.parse_args()
    programs = {
        "sqlite3": (sqlite_files, "64MiB"),
        "duckdb": (duckdb_files, None),
        "duckdb, 2 threads": (duckdb_two_files, None),
        "leveldb": (leveldb_files, None),
        "rocksdb, 2 threads": (rocksdb_files, None),
        "lucene, 2 threads": (lucene_files, None),
        "ripgrep": (ripgrep_files, None),
    }
    for name, (make, memory) in programs.items():
        if arguments.only and not name.startswith(arguments.only):
            continue
        with tempfile.TemporaryDirectory(dir=arguments.dir) as folder:
            folder = Path(folder)
            file, command, mapped = make(folder)
            os.sync()
            judged = replayed(folder, file, command, memory)
            if isinstance(judged, str):
                print(f"{name}: refused: {judged}\n", flush=True)
                continue
            proof = judged["self_replay"]
            print(f"{name}, memory {memory}: {proof['sentence']}")
            for cell in judged["cells"]:
                seen = (cell["evidence"] or {}).get("device_read_bytes")
                total = (cell["total_ns"] or 0) / 1e9
                print(f"  {cell['role']:8} {cell['method']:16} {cell['threads']} threads {cell['status']:8} {total:8.3f} s  {(seen or 0) / 1e6:10.1f} MB from the device")
            if mapped:
                # In turn, as either may find what the other left in the kernel's memory of evicted
                # pages.
                pairs = [(run_of(file, command, memory), run_of(file, mapped, memory)) for _ in range(3)]
                of = lambda side, figure: statistics.median(pair[side][figure] for pair in pairs)
                real = of(1, 0)
                # RocksDB advises the kernel that it reads its mapping at random.
                method = "mmap:random" if name.startswith("rocksdb") else "mmap"
                mmap = next((cell for cell in judged["cells"] if cell["method"] == method and cell["evidence"]), None)
                if mmap:
                    found = mmap["evidence"]["device_read_bytes"]
                    print(f"  the program itself through a mapping: {real / 1e6:.1f} MB; the replay by {method} {(found / real - 1) * 100:+.1f} %")
                    print(f"  the program itself took {of(0, 1) / 1e9:.3f} s by calls and {of(1, 1) / 1e9:.3f} s through a mapping")
            print(flush=True)


if __name__ == "__main__":
    main()
