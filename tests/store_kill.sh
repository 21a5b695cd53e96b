#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A directory of features survives what happens to those that fill it: processes are killed, the disk is full, writes
# fail. Nothing is lost and nothing is there twice.
# shellcheck source=store.sh
. "$(dirname "$0")/store.sh"

stop_all() {
    umount disk 2>/dev/null || true
}

items=1200 shard=40
undisturbed $items $shard

# Two processes, one of them killed and started anew at random moments; a directory after the other, until there were
# enough.
kills=0 directories=0
while [ $kills -lt 100 ]; do
    directory=$memory/killed
    rm -rf "$directory"
    "$worker" fill "$directory" $items $shard 1500 &
    processes=($!)
    "$worker" fill "$directory" $items $shard 1500 &
    processes+=($!)
    while [ $kills -lt 100 ]; do
        sleep "0.0$((RANDOM % 9))$((RANDOM % 10))"
        which=$((RANDOM % 2))
        kill -KILL "${processes[$which]}" 2>/dev/null || break
        wait "${processes[$which]}" 2>/dev/null || true
        kills=$((kills + 1))
        "$worker" fill "$directory" $items $shard 1500 &
        processes[which]=$!
    done
    for process in "${processes[@]}"; do
        wait "$process" 2>err || fail "SEED=$SEED: a process failed"
    done
    check "$directory" $items "killed at random"
    directories=$((directories + 1))
done
echo "$kills kills in $directories directories"

# A file that may not grow, a disk that is full.
(
    ulimit -f 16
    expect 1 'File too large' "$worker" fill limited $items $shard
)
"$worker" fill limited $items $shard
check limited $items "a file that may not grow"
mkdir disk
if mount -t tmpfs -o size=600k none disk 2>/dev/null; then
    expect 1 'No space left' "$worker" fill disk/out $items $shard
    expect 1 'No space left' "$worker" fill disk/out $items $shard
    mount -o remount,size=20m disk
    "$worker" fill disk/out $items $shard
    check disk/out $items "a full disk"
else
    echo "SKIPPED: no tmpfs can be mounted here: a full disk"
fi

# Every single call that changes a file fails, or is the last that there is.
if grep -q __asan_init "$worker"; then
    echo "SKIPPED: a library cannot come before AddressSanitizer: failing calls"
    exit 0
fi
LD_PRELOAD=$fault "$worker" faults "$memory" 6 3 write full+ short sync sync+ rename truncate unlink undo+ all+ kill \
    2>err >out || fail "$(grep -A1 'after' err)"
cat out
