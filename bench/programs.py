"""The programs of replay.py, which nobody here wrote: their files, and the commands that read them.

Versions are pinned by programs.txt. Contents and keys are drawn from fixed seeds, so that a command
reads the same each time.
"""

import random
import shutil
import sqlite3
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path

LUCENE = "9.12.3"


@dataclass
class Program:
    """A command that reads files, and the same reading by another method of the program."""

    files: list
    command: list
    # Limits of memory: of the smallest the files are a multiple, the program's heap included.
    limits: tuple
    # Mapped pages are read by it, so it is recorded in windows.
    windows: bool = False
    other: list | None = None
    # pagewise's name of the other method.
    other_method: str | None = None
    # Why a bar is missed under a limit, as far as it is known.
    known_misses: dict = field(default_factory=dict)


def python(text, *words):
    return [sys.executable, "-c", text, *map(str, words)]


def made(words, **options):
    subprocess.run([str(word) for word in words], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, **options)


def sqlite(folder):
    """Look-ups by key in the shell of sqlite3: by pread(2), or through its mapping."""
    database, rows = folder / "look.db", 120_000
    draw = random.Random(1)
    connection = sqlite3.connect(database)
    connection.execute("create table t(id integer primary key, v blob)")
    connection.executemany("insert into t values(?,?)", ((number, draw.randbytes(900)) for number in range(rows)))
    connection.commit()
    connection.close()
    looks = "\n".join(f"select length(v) from t where id={draw.randrange(rows)};" for _ in range(500))
    (folder / "calls.sql").write_text(f"pragma mmap_size=0;\npragma cache_size=50;\n{looks}")
    (folder / "mapped.sql").write_text(f"pragma mmap_size=1073741824;\npragma cache_size=50;\n{looks}")
    command = lambda script: ["sqlite3", str(database), f".read {folder / script}"]
    return Program([database], command("calls.sql"), ("32MiB", "64MiB", "96MiB"), other=command("mapped.sql"), other_method="mmap")


def rocksdb(folder):
    """Look-ups of two threads of db_bench in one table file: by pread(2), or through a mapping with
    MADV_RANDOM."""
    store = folder / "rocks"
    usual = ["db_bench", f"--db={store}", "--num=120000", "--value_size=900", "--compression_type=none", "--seed=1"]
    sizes = ["--write_buffer_size=536870912", "--target_file_size_base=1073741824", "--disable_wal=1"]
    made([*usual, "--benchmarks=fillseq", *sizes])
    look = [*usual, "--benchmarks=readrandom", "--use_existing_db=1", "--readonly=1", "--reads=1500", "--threads=2", "--cache_size=1048576"]
    command = lambda mapped: [*look, f"--mmap_read={mapped}"]
    files = list(store.glob("*.sst"))
    return Program(files, command(0), ("32MiB", "64MiB", "96MiB"), other=command(1), other_method="mmap:random")


LMDB_MAKE = """
import lmdb, random, sys
draw = random.Random(1)
store = lmdb.open(sys.argv[1], map_size=1 << 30, subdir=False)
with store.begin(write=True) as change:
    for number in range(100_000):
        change.put(number.to_bytes(8, "big"), draw.randbytes(1000))
store.sync()
"""

# Keys by a zipf distribution of exponent 0.7, scattered over the store.
LMDB_LOOK_UP = """
import bisect, itertools, lmdb, random, sys
sums = list(itertools.accumulate(1 / (rank + 1) ** 0.7 for rank in range(100_000)))
draw = random.Random(1)
store = lmdb.open(sys.argv[1], readonly=True, lock=False, subdir=False, readahead=sys.argv[2] == "readahead")
total = 0
with store.begin(buffers=True) as look:
    for _ in range(int(sys.argv[3])):
        rank = min(bisect.bisect_left(sums, draw.random() * sums[-1]), 99_999)
        total += look.get((rank * 7919 % 100_000).to_bytes(8, "big"))[0]
print(total)
"""


def lmdb(folder):
    """Look-ups through LMDB's mapping, which py-lmdb advises to be read at random."""
    store = folder / "store.lmdb"
    made(python(LMDB_MAKE, store))
    return Program([store], python(LMDB_LOOK_UP, store, "random", 60_000), ("48MiB", "64MiB", "96MiB"), windows=True)


LEVELDB_MAKE = """
import plyvel, random, sys
draw = random.Random(2)
store = plyvel.DB(sys.argv[1], create_if_missing=True, max_file_size=1 << 30, write_buffer_size=256 << 20, compression=None)
for key in range(70_000):
    store.put(b"%09d" % key, draw.randbytes(900))
store.compact_range()
store.close()
"""

LEVELDB_LOOK_UP = """
import plyvel, random, sys
draw = random.Random(3)
store = plyvel.DB(sys.argv[1], lru_cache_size=1 << 20)
print(sum(len(store.get(b"%09d" % draw.randrange(70_000))) for _ in range(1000)))
"""


def leveldb(folder):
    """Look-ups in LevelDB, which maps the first thousand of its tables."""
    store = folder / "level"
    made(python(LEVELDB_MAKE, store))
    tables = sorted(store.glob("*.ldb"), key=lambda path: path.stat().st_size)
    # Under 64 MiB the table nearly fits, and LevelDB itself reads 141 to 204 MB.
    near = {"48MiB": "1 MB of cache is several percent where a fault reads 8 of 61 MiB: +2.5 and +5.6 % in two runs"}
    return Program(tables[-1:], python(LEVELDB_LOOK_UP, store), ("40MiB", "48MiB", "96MiB"), windows=True, known_misses=near)


def lucene(folder):
    """Stored documents read by two threads: by NIOFSDirectory, or by MMapDirectory."""
    fetch = "org.apache.maven.plugins:maven-dependency-plugin:3.6.1:copy"
    made(["mvn", "-q", "-B", fetch, f"-Dartifact=org.apache.lucene:lucene-core:{LUCENE}", f"-DoutputDirectory={folder}"], cwd=folder)
    jar, driver = folder / f"lucene-core-{LUCENE}.jar", Path(__file__).resolve().parent / "lucene/LuceneReads.java"
    made(["javac", "-cp", jar, "-d", folder, driver])
    index = folder / "index"
    java = lambda heap, *words: ["java", f"-Xmx{heap}", "-XX:+UseSerialGC", "-Xshare:auto", "-cp", f"{jar}:{folder}", "LuceneReads", *map(str, words)]
    made(java("2g", "make", index, 120_000))
    command = lambda how: java("32m", how, index, 1000, 2)
    grows = {"128MiB": "the heap grows while it reads, and a replay holds its largest size: 4 MiB decide whether the file fits"}
    limits = ("128MiB", "192MiB", "256MiB")
    return Program(
        list(index.glob("*.fdt")), command("nio"), limits, other=command("mmap"), other_method="mmap", known_misses=grows
    )


PYARROW_MAKE = """
import numpy, pyarrow, pyarrow.parquet, sys
draw = numpy.random.default_rng(4)
columns = {f"c{number}": draw.integers(0, 1 << 62, 2_000_000) for number in range(6)}
pyarrow.parquet.write_table(pyarrow.table(columns), sys.argv[1], row_group_size=100_000, use_dictionary=False, compression="none")
"""

PYARROW_READ = """
import pyarrow, pyarrow.compute, pyarrow.parquet, sys
pyarrow.set_cpu_count(1)
file = pyarrow.parquet.ParquetFile(sys.argv[1], memory_map=sys.argv[2] == "mapped", pre_buffer=False)
total = 0
for group in range(file.num_row_groups):
    table = file.read_row_group(group, columns=sys.argv[3:], use_threads=False)
    total ^= sum(pyarrow.compute.max(column).as_py() for column in table.columns)
print(total)
"""


def pyarrow(folder, columns=("c0", "c1", "c2", "c3", "c4", "c5")):
    """A Parquet file, one row group after another, through a mapping or by calls."""
    data = folder / "data.parquet"
    made(python(PYARROW_MAKE, data))
    command = lambda how: python(PYARROW_READ, data, how, *columns)
    limits = ("96MiB", "128MiB", "192MiB")
    return Program([data], command("mapped"), limits, windows=True, other=command("calls"), other_method="pread")


def pyarrow_columns(folder):
    """Three columns of six."""
    return pyarrow(folder, ("c0", "c2", "c5"))


SAFETENSORS_MAKE = """
import numpy, safetensors.numpy, sys
draw = numpy.random.default_rng(5)
layers = {f"layer.{number}.{part}": draw.standard_normal((512, 512), dtype="f4") for number in range(24) for part in ("q", "k", "v", "o")}
safetensors.numpy.save_file(layers, sys.argv[1])
"""

# The first layers, as a part of a model on one of several machines.
SAFETENSORS_LOAD = """
import safetensors, sys
total = 0
with safetensors.safe_open(sys.argv[1], framework="numpy") as model:
    for name in model.keys():
        if int(name.split(".")[1]) < 16:
            total += float(model.get_tensor(name)[0, 0])
print(total)
"""


def safetensors(folder):
    """A part of a model's tensors, loaded through the mapping of safe_open."""
    model = folder / "model.safetensors"
    made(python(SAFETENSORS_MAKE, model))
    return Program([model], python(SAFETENSORS_LOAD, model), ("64MiB", "96MiB", "128MiB"), windows=True)


DUCKDB_MAKE = """
import duckdb, sys
duckdb.sql("set threads=1")
duckdb.sql(f"copy (select i, hash(i) as h, hash(i + 1)::varchar as s from range(2500000) t(i)) to '{sys.argv[1]}' (format parquet)")
"""

DUCKDB_ASK = """
import duckdb, sys
duckdb.sql("set threads=1; set async_threads=" + sys.argv[2])
print(duckdb.sql(f"select count(*), max(h) from '{sys.argv[1]}' where i % 7 = 3").fetchall())
"""


def duckdb(folder, readers=1, why=None):
    """A filter over a Parquet file, by one thread and so many that read for it."""
    data = folder / "data.parquet"
    made(python(DUCKDB_MAKE, data))
    limits = ("128MiB", "192MiB", "256MiB")
    return Program([data], python(DUCKDB_ASK, data, readers), limits, known_misses=dict.fromkeys(limits, why) if why else {})


def duckdb_readers(folder):
    """As DuckDB does by itself: eight threads take reads from one queue."""
    return duckdb(folder, 8, "which of eight threads reads next is not replayed: DuckDB itself reads 32.5 or 37.1 MB")


PROGRAMS = {
    "sqlite3": sqlite,
    "RocksDB": rocksdb,
    "LMDB": lmdb,
    "LevelDB": leveldb,
    "Lucene": lucene,
    "pyarrow": pyarrow,
    "pyarrow, columns": pyarrow_columns,
    "safetensors": safetensors,
    "DuckDB": duckdb,
    "DuckDB, 8 readers": duckdb_readers,
}


def lacking():
    """The commands of these programs that are not installed."""
    return [name for name in ("sqlite3", "db_bench", "mvn", "javac", "java") if not shutil.which(name)]
