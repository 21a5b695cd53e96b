#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Processes that fill one directory of features stop for longer than their lease, at any call and at random, or are on
# other hosts, one of which is gone: others take their work over, and nothing is lost or there twice. One that stops
# while it holds the directory's lock is waited for, but not for ever. SMALTI_TEST_FULL=1: at every call, more rounds.
# shellcheck source=store.sh
. "$(dirname "$0")/store.sh"
full=${SMALTI_TEST_FULL:-0}

stop_all() {
    # shellcheck disable=SC2046 # one word per process
    kill -KILL $(jobs -p) 2>/dev/null || true
}

# end PROCESS WHAT: it ends well.
end() {
    wait "$1" || fail "SEED=$SEED: $2: status $?: $(cat err)"
}

is_stopped() {
    grep -qs '^State:.T' "/proc/$1/status"
}

# await PROCESS: until it has ended or stopped.
await() {
    while kill -0 "$1" 2>/dev/null && ! is_stopped "$1" && [ -d "/proc/$1" ]; do
        grep -qs '^State:.Z' "/proc/$1/status" && break
        sleep 0.02
    done
}

# Random stops of one of three processes.
undisturbed 400 10
for ((round = 0; round < (full ? 12 : 1); round++)); do
    directory=$memory/random
    rm -rf "$directory"
    processes=()
    for which in 0 1 2; do
        "$worker" fill "$directory" 400 10 25000 2 2>>err &
        processes[which]=$!
    done
    for pause in 0 1; do
        sleep "$pause.$((RANDOM % 5))"
        which=$((RANDOM % 3))
        kill -STOP "${processes[$which]}" 2>/dev/null || break
        sleep "$((RANDOM % 4)).$((RANDOM % 10))"
        kill -CONT "${processes[$which]}"
    done
    for process in "${processes[@]}"; do end "$process" "round $round"; done
    check "$directory" 400 "round $round"
done
echo "$round rounds of random stops"

# Three hosts, each of which calls itself process 1. One is gone with all that was on it, and its lease runs out.
# shellcheck disable=SC2016 # expanded by the shell inside
hosts=(unshare --uts --pid --fork --kill-child --mount-proc sh -c 'hostname "$1"; shift; exec "$@"' sh)
if "${hosts[@]}" probe true 2>/dev/null; then
    processes=()
    for which in 0 1 2; do
        "${hosts[@]}" "node$which" "$worker" fill "$memory/hosts" 400 10 25000 2 2>>err &
        processes[which]=$!
    done
    for ((i = 0; i < 6000; i++)); do
        ! grep -qs node1 "$memory"/hosts/claims/* || break
        sleep 0.02
    done
    kill -KILL "${processes[1]}"
    wait "${processes[1]}" 2>/dev/null || true
    grep -qsE '"pid":\s*1,' "$(grep -ls node1 "$memory"/hosts/claims/* | head -n 1)" ||
        fail "SEED=$SEED: node1 had no claim as process 1 when it was killed"
    end "${processes[0]}" node0
    end "${processes[2]}" node2
    check "$memory/hosts" 400 "three hosts"
else
    echo "SKIPPED: no name spaces can be made here: three hosts"
fi

if grep -q __asan_init "$worker"; then
    echo "SKIPPED: a library cannot come before AddressSanitizer: stops at single calls"
    exit 0
fi

# stop_at CALL: a process that stops there goes on when another has had the time to take its work over.
stop_at() {
    local directory=shared first second
    SMALTI_FAULT=any-stop:$1 SMALTI_FAULT_IN=$directory LD_PRELOAD=$fault "$worker" fill "$directory" 60 10 0 2 2>>err &
    first=$!
    await $first
    "$worker" fill "$directory" 60 10 0 2 2>>err &
    second=$!
    sleep 2.6
    kill -CONT $first 2>/dev/null || true
    end $first "stopped at call $1"
    end $second "beside one stopped at call $1"
    check "$directory" 60 "stopped at call $1"
    rm -rf "$directory"
}

# Those of a batch side by side, since they sleep most of the time.
undisturbed 60 10
calls=0 many=450 # there are fewer where a process works alone
while [ "$calls" -lt "$((full ? many : 24))" ]; do
    batch=()
    for ((i = 0; i < 24; i++)); do
        calls=$((calls + 1))
        if ((full)); then call=$calls; else call=$((RANDOM % many + 1)); fi
        (mkdir "$memory/at$calls" && cd "$memory/at$calls" && cp "$work/60.txt" . && stop_at $call) &
        batch+=($!)
    done
    for process in "${batch[@]}"; do wait "$process" || fail "SEED=$SEED"; done
done
echo "stops at $calls calls"

# The command, beside a process that stopped while it held the lock, which is where .lock names it.
for ((i = 0; i < 40; i++)); do echo "{\"path\": \"$i.png\", \"prompt\": \"a red circle $i\"}"; done >list.jsonl
extract=("$SMALTI" extract list.jsonl --t5 --shard-items 10 --lease 2 --cpus 1 --quiet -o locked)
"${extract[@]}" --range 0:10
for ((call = 1; ; call++)); do
    SMALTI_FAULT=any-stop:$call SMALTI_FAULT_IN=locked LD_PRELOAD=$fault "${extract[@]}" 2>err &
    holder=$!
    await $holder
    is_stopped $holder || fail "it never stopped while it held the lock"
    ! grep -q "\"pid\":$holder," locked/.lock || break
    kill -KILL $holder
    wait $holder 2>/dev/null || true
done
says="held by $(hostname), process $holder"
"$SMALTI" verify --repair locked >verified 2>verify.err &
verify=$!
"${extract[@]}" 2>term.err &
extracting=$!
expect 1 "$says, who has given no sign of life" "${extract[@]}"
for file in verify.err err; do
    grep -q "waiting for locked, whose lock is $says" $file || fail "$file: no word of the wait: $(cat $file)"
done
sleep 0.2
kill -KILL $verify
wait "$verify" 2>/dev/null || true
wait $extracting && fail "it has not given up"
: >term.err
"${extract[@]}" 2>term.err &
extracting=$!
await_words 'waiting for locked' term.err
kill -TERM $extracting
wait $extracting && fail "a signal did not end the wait"
grep -q 'stopped by SIGTERM before anything was done' term.err || fail "$(cat term.err)"
kill -CONT "$holder"
end "$holder" "the holder of the lock"
"${extract[@]}"
expect 0 '' "$SMALTI" verify locked
