#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# `smalti export --share`: processes that are killed, stopped past their lease, asked to stop, or out of room write the
# files that one process writes alone.
# shellcheck source=command.sh
. "$(dirname "$0")/command.sh"
# shellcheck source=shared.sh
. "$tests/shared.sh"
make_directory=${SMALTI%/*}/tests/make_directory
trap '{ kill -KILL $(jobs -p); umount "$work/disk"; } 2>/dev/null || true; rm -rf "$work"' EXIT
cd "$work"
export SEED=${SEED:-$RANDOM} # said where it fails
RANDOM=$SEED

items=700
seq -f 'item-%05g.png' 0 $((items - 1)) >keys
"$make_directory" features f16 prompt,sharegpt4v 20 50 7 <keys
share=("$SMALTI" export features -f pixart --share --lease 2 -q)
expect 0 '' "$SMALTI" export features -f pixart -q -o whole

# complete DIRECTORY: the files of one process, and nobody's claims.
complete() {
    diff -r -x .share -x .smalti-export.json whole "$1" || fail "SEED=$SEED: $1 differs from the export of one process"
    [ -z "$(ls "$1/.share/claims")" ] || fail "SEED=$SEED: claims are left: $(ls "$1/.share/claims")"
}
# await_files COUNT DIRECTORY PROCESS: COUNT are there, or the process has ended.
await_files() {
    await_made '*.np[yz]' "$@"
}

# Killed at random, and begun anew.
kills=0
for ((round = 0; kills < 6; round++)); do
    rm -rf killed
    processes=()
    for which in 0 1 2; do
        "${share[@]}" -o killed 2>>err &
        processes[which]=$!
    done
    for ((i = 1; i < 5; i++)); do
        which=$((RANDOM % 3))
        await_files $((items * i / 3)) killed "${processes[which]}"
        ! kill -KILL "${processes[which]}" 2>/dev/null || kills=$((kills + 1))
        wait "${processes[which]}" 2>/dev/null || true
        "${share[@]}" -o killed 2>>err &
        processes[which]=$!
    done
    for process in "${processes[@]}"; do
        wait "$process" || fail "SEED=$SEED: round $round: status $?: $(tail -n 5 err)"
    done
    complete killed
done
echo "$kills kills"
expect 0 "$items items, complete before: killed" "$SMALTI" export features -f pixart --share -o killed

# All rows are written once, whoever writes them.
for which in 0 1; do "$SMALTI" export features -f pixart --share --lease 2 --json -o both >report-$which 2>>err & done
wait
complete both
# shellcheck disable=SC2126 # the files of all
[ "$(sed 's/.*"files":\([0-9]*\).*/\1/' report-0 report-1 | awk '{ sum += $1 } END { print sum }')" -eq "$(find both -name '*.np[yz]' | wc -l)" ] ||
    fail "the reports do not add up: $(cat report-?)"

# Stopped for longer than its lease, without the lock: another does all, and it goes on when that has ended.
while :; do
    rm -rf stopped
    "${share[@]}" -o stopped 2>err &
    process=$!
    await_files $((RANDOM % 900 + 10)) stopped $process
    ! stop_with_claim stopped "$process" || break
    { kill -KILL $process && wait $process; } 2>/dev/null || true
done
expect 0 '' "${share[@]}" -o stopped
diff -r -x .share -x .smalti-export.json -x '.*.part' whole stopped || fail "SEED=$SEED: beside a stopped process"
kill -CONT "$process"
wait "$process" || fail "stopped: status $?: $(cat err)"
complete stopped

# Asked to stop: its claim is given back, and the same command goes on.
"${share[@]}" -o term 2>err &
process=$!
await_files 100 term $process
kill -TERM $process
status=0
wait $process || status=$?
[ -z "$(ls term/.share/claims)" ] || fail "claims are left: $(ls term/.share/claims)"
[ $status -eq 0 ] || grep -qF 'the same command goes on' err || fail "status $status: $(cat err)"
expect 0 '' "${share[@]}" -o term
complete term

# Exports of one process, of other formats, of other features.
refuse 2 'whole: holds the export of one process: go on without --share' "${share[@]}" -o whole
refuse 2 'term: holds an export that processes share: give --share' "$SMALTI" export features -f pixart -o term
refuse 2 'cannot share an export to webdataset' "${share[@]/pixart/webdataset}" -o tars
refuse 2 'remove term while none of them runs' "${share[@]}" --restart -o term
head -n 300 keys | "$make_directory" other f16 prompt,sharegpt4v 20 50 7
refuse 2 'give the directory of features as it was' "$SMALTI" export other -f pixart --share -o term

# Two items of one name: nothing is written. A damaged row is tried again each time.
printf '%s\n' a/b.png a_b.png | "$make_directory" twins f16 prompt 4 50 -1
refuse 2 'cannot tell them apart' "$SMALTI" export twins -f pixart --share -q -o twins-out
[ "$(files twins-out)" = ".share/.lock .share/share.json" ] || fail "files: $(files twins-out)"
shard=$(find other -name '*.smf' -o -name 'shard-*' -type f | sort | head -n 1)
python3 - "$shard" <<'PYTHON'
import sys
data = bytearray(open(sys.argv[1], "rb").read())
data[len(data) // 2] ^= 1
open(sys.argv[1], "wb").write(data)
PYTHON
expect 3 'checksum' "$SMALTI" export other -f pixart --share -q -o damaged
expect 3 'checksum' "$SMALTI" export other -f pixart --share -q -o damaged

# A full disk, for two at a time; with more room the same command writes the rest.
mkdir disk
if mount -t tmpfs -o size=1m none disk 2>/dev/null; then
    "${share[@]}" -o disk/out 2>err-0 &
    process=$!
    status=0
    "${share[@]}" -o disk/out 2>err-1 || status=$?
    wait $process || status=$?
    [ $status -ne 0 ] || fail "there was room for all"
    grep -qF 'No space left on device' err-? || fail "$(cat err-?)"
    mount -o remount,size=500m disk
    expect 0 '' "${share[@]}" -o disk/out
    complete disk/out
    [ -z "$(find disk -name '*.part')" ] || fail "left $(files disk)"
fi
