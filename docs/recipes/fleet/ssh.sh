#!/usr/bin/env bash
# Measures on many hosts by ssh, and brings each run file back under the name of its host.
#
#   ssh.sh HOST... [-- OPTION...]
#
# The program goes to a new folder of each host and runs there as `pagewise read OPTION...`
# [default: --budget 60s]. The folder is removed however the run ends. RUNS/HOST.jsonl is the run
# file, RUNS/HOST.txt the answer, or why there is none.
#
# Variables: PAGEWISE is the program, which fits every host if it is static [./pagewise]; RUNS the
# folder of results [./runs]; FOLDER where the hosts make their folders, and so the filesystem that
# is measured unless --dir names another [/var/tmp]; LIMIT the time after which a run is ended
# [15m]; WIDTH the number of hosts that measure at the same time [32].
#
# Status: 0 if the run of each host came to its end, even if it fell short (status 1 of pagewise,
# usual on busy hosts); 1 if one did not, and each of those hosts is named on stderr; 2 wrong use.
set -euo pipefail
program=${PAGEWISE:-./pagewise} runs=${RUNS:-runs} folder=${FOLDER:-/var/tmp} limit=${LIMIT:-15m} width=${WIDTH:-32}
hosts=()
while (($# > 0)) && [[ $1 != -- ]]; do
    hosts+=("$1")
    shift
done
shift $(($# > 0))
options=("$@")
((${#options[@]} > 0)) || options=(--budget 60s)
refuse() { echo "ssh.sh: $*" >&2; exit 2; }
((${#hosts[@]} > 0)) || refuse "no host is named: ssh.sh HOST... [-- OPTION...]"
[[ -r $program ]] || refuse "there is no program $program; PAGEWISE names one"
mkdir -p "$runs"
for host in "${hosts[@]}"; do
    [[ ! -e $runs/$host.jsonl ]] || refuse "$runs/$host.jsonl exists; RUNS names another folder"
done

# What a shell of the host does. A program that was cut short on its way is not started. If the
# connection is cut, the run file cannot be written, so the run ends. Signals lead to the trap too.
remote="folder=\$(mktemp -d ${folder@Q}/pagewise-XXXXXX) || exit 255
trap 'cd /; rm -rf \"\$folder\"' EXIT; trap 'exit 129' HUP INT TERM
cd \"\$folder\" && cat >pagewise && test \$(wc -c <pagewise) -eq $(wc -c <"$program") && chmod +x pagewise || exit 255
timeout -k 10 ${limit@Q} ./pagewise read ${options[*]@Q} --out -"

measure() {
    local host=$1 status=0
    ssh -o BatchMode=yes -o ConnectTimeout=10 -o ServerAliveInterval=10 "$host" "$remote" \
        <"$program" >"$runs/$host.jsonl" 2>"$runs/$host.txt" &
    trap 'kill $!' TERM
    wait $! || status=$?
    [[ -s $runs/$host.jsonl ]] || { rm "$runs/$host.jsonl"; ((status > 0)) || status=255; }
    ((status > 1)) || [[ ! -e $runs/$host.jsonl ]] || return 0
    echo "$host: status $status: $(tail -n 1 "$runs/$host.txt")" >&2
    return 1
}

trap 'exit 130' HUP INT TERM
trap 'kill $(jobs -p) 2>/dev/null || true; wait' EXIT
next=0 running=0 failed=0
while ((next < ${#hosts[@]} || running > 0)); do
    if ((next < ${#hosts[@]} && running < width)); then
        measure "${hosts[next]}" &
        next=$((next + 1)) running=$((running + 1))
    else
        wait -n || failed=$((failed + 1))
        running=$((running - 1))
    fi
done
echo "$((${#hosts[@]} - failed)) of ${#hosts[@]} hosts measured to the end; results are in $runs" >&2
((failed == 0))
