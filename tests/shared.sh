# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# What tests of processes that share a directory have in common; they source it.

# await_made NAMES COUNT DIRECTORY PROCESS: COUNT files with such names are there, or the process has ended.
await_made() {
    while [ "$(find "$3" -name "$1" 2>/dev/null | wc -l)" -lt "$2" ] && kill -0 "$4" 2>/dev/null; do
        sleep 0.005
    done
}

# stop_with_claim DIRECTORY PROCESS: stops it. Succeeds if it then has claims there, but not the lock, perhaps without its name
# in it. A process that ended before has succeeded.
stop_with_claim() {
    if ! kill -STOP "$2" 2>/dev/null; then
        wait "$2" || fail "a process that was to be stopped: status $?: $(cat err)"
        return 1
    fi
    until grep -qs '^State:.[TZ]' "/proc/$2/status" || ! kill -0 "$2" 2>/dev/null; do sleep 0.01; done
    ! grep -qsF "\"pid\":$2," "$1/.share/.lock" &&
        ! grep -qs ":$(stat -c %i "$1/.share/.lock") " /proc/locks &&
        grep -qsE "\"pid\":\s*$2," "$1"/.share/claims/*
}
