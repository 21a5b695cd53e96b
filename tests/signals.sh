#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# What SIGINT and SIGTERM do: the first finishes, a second drops, and the program ends whatever hangs.
# shellcheck source=command.sh
. "$(dirname "$0")/command.sh"
export STARPU_HOME=$work

# started FILE ARGUMENT...: an image in the background, as $pid; returns when the command has begun it.
started() {
    local file=$1
    shift
    : >"$work/err" # what the one before has said is no word of this one
    "$SMALTI" generate --prompt "a red star on a white background" --seed 1 --cpus 1 -o "$file" "$@" 2>"$work/err" &
    pid=$!
    await_words '%' "$work/err" # progress is shown
}

# signal NAME WORDS: returns when the program has said these words, and would not take another signal for the same one.
signal() {
    kill "-$1" "$pid" || fail "it is gone before SIG$1: $(cat "$work/err")"
    await_words "$2" "$work/err"
    sleep 1.2
}

# has_ended STATUS: $pid ends, with this status. Half an hour is for one that never would.
has_ended() {
    local status=0 tries
    for ((tries = 0; tries < 18000; tries++)); do
        kill -0 "$pid" 2>/dev/null || break
        sleep 0.1
    done
    ! kill -9 "$pid" 2>/dev/null || fail "it never ends: $(cat "$work/err")"
    wait "$pid" || status=$?
    [ "$status" -eq "$1" ]
}

# ended STATUS: the same, or the test fails.
ended() {
    has_ended "$1" || fail "not status $1: $(cat "$work/err")"
}

# Signals at once, as timeout and SLURM send them to a program and its group, are one: the image is finished. A machine that
# has no time for one of the two may leave a second between them, so there are several attempts.
at_once() {
    started "$work/kept.png" --size 512x384 --steps 100
    kill -TERM "$pid"
    kill -TERM "$pid"
    kill -INT "$pid"
    has_ended 0 && [ -s "$work/kept.png" ]
}
for attempt in {1..9} last; do
    ! at_once || break
    [ "$attempt" != last ] || fail "the image in work was dropped: $(cat "$work/err")"
done
grep -qF 'finishing active items' "$work/err" || fail "nothing is said: $(cat "$work/err")"

# A second one after a second drops it.
started "$work/dropped.png" --size 1024x1024 --steps 100
signal INT finishing
kill -INT "$pid"
ended 1
[ ! -e "$work/dropped.png" ] || fail "the image was not dropped"
grep -qF 'dropping active items' "$work/err" || fail "nothing is said: $(cat "$work/err")"

# Searches and simulations have nothing worth finishing; what they wait for ends, too.
"$SMALTI" extract "$SMALTI_TESTDATA/extract/InternData/data_info.json" -k prompt --img-size 256 --cpus 1 -q -o "$work/searched"
"$SMALTI" retrieve index "$work/searched" -o "$work/index" -q
seq -f 'a red star and %.0f more of them' 200000 >"$work/prompts"
printf '#!/bin/sh\necho $$ >%s/simulator\nexec sleep 600\n' "$work" >"$work/never"
chmod +x "$work/never"
for signal in INT TERM; do
    "$SMALTI" retrieve query "$work/index" -P "$work/prompts" --page "$work/page.html" --cpus 1 >"$work/out" 2>"$work/err" &
    pid=$!
    until [ -n "$(find "$work" -name '.page.html*.part')" ]; do sleep 0.1; done
    sleep 0.5
    kill -$signal "$pid"
    ended 1
    [ "$(cat "$work/err")" = "smalti retrieve query: stopped by SIG$signal" ] || fail "it says: $(cat "$work/err")"
    [ ! -s "$work/out" ] || fail "it says: $(head -c 500 "$work/out")"
    [ -z "$(find "$work" -name '*page.html*')" ] || fail "something is left: $(files "$work")"
    rm -f "$work/simulator"
    TMPDIR=$work SMALTI_SIM=$work/never "$SMALTI" simulate --machine 1xA100-PCIe 2>"$work/err" &
    pid=$!
    until [ -s "$work/simulator" ]; do sleep 0.1; done
    kill -$signal "$pid"
    ended 1
    grep -qF "stopped by SIG$signal" "$work/err" || fail "it says: $(cat "$work/err")"
    ! kill -0 "$(cat "$work/simulator")" 2>/dev/null || fail "the simulator goes on"
    [ -z "$(find "$work" -name 'smalti-sim*')" ] || fail "something is left: $(files "$work")"
done

# A policy under which no task ever starts: then it ends some seconds after the second, or at the third.
export STARPU_SCHED_LIB=$SMALTI_OWN_POLICY STARPU_SCHED=never
for signals in 2 3; do
    started "$work/hung.png" --size 64x64
    signal TERM finishing
    signal TERM dropping
    [ $signals -eq 2 ] || kill -TERM "$pid"
    ended 1
    grep -qF 'without waiting' "$work/err" || fail "nothing is said: $(cat "$work/err")"
done

# What extraction finishes has two minutes; when they are over (the alarm that is sent here) it is dropped, and then left.
for alarms in 1 2; do
    "$SMALTI" extract "$SMALTI_TESTDATA/extract/InternData/data_info.json" --t5 --cpus 1 -q -o "$work/features" 2>"$work/err" &
    pid=$!
    until [ -n "$(find "$work/features/runs" -name '*.jsonl' 2>/dev/null)" ]; do sleep 0.1; done
    kill -TERM "$pid"
    await_words finishing "$work/err"
    for ((i = 0; i < alarms; i++)); do
        kill -ALRM "$pid"
        await_words dropping "$work/err"
    done
    ended 1
    [ $alarms -eq 1 ] || grep -qF 'without waiting' "$work/err" || fail "nothing is said: $(cat "$work/err")"
    rm -rf "$work/features"
done
