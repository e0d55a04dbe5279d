#!/bin/sh
# Fails with status 1 if a new build of a worker is slower than the base build by more than 5 %.
#
#   gate.sh BASE NEW [DIR]
#
# BASE and NEW are commands that start a worker; DIR takes data and run files [default: ./gate]. The
# builds take turns, and pread, which is measured in each run beside them, cancels out what slows
# the whole machine. A run takes some seconds.
set -eu
base=$1 new=$2 dir=${3:-gate}
runs=${RUNS:-8}
mkdir -p "$dir/base" "$dir/new"

measure() { # SIDE COMMAND NUMBER
    pagewise read "$dir" --worker "build=$2" --methods build/get,pread --workload random-read --cache warm --threads 1 \
        --file-size 64MiB --no-ceilings --rounds 14 --seed "$3" --out "$dir/$1/$3.jsonl" >"$dir/$1/$3.txt" ||
        test $? = 1 # Some samples are missing: compare says what that means.
}

number=1
while test "$number" -le "$runs"; do
    measure base "$base" "$number"
    measure new "$new" "$number"
    number=$((number + 1))
done
pagewise compare "$dir/base" -- "$dir/new" --relative-to pread --fail-on slower=5%
