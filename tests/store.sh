# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# What tests of a directory of features share, beside command.sh; they source it and define stop_all, which ends what is
# left at the end.
# shellcheck source=command.sh
. "$(dirname "${BASH_SOURCE[0]}")/command.sh"
worker=$(dirname "$SMALTI")/tests/store_worker
fault=$(dirname "$SMALTI")/.libs/libfault.so
memory=$(mktemp -d -p /dev/shm 2>/dev/null || mktemp -d)
trap 'stop_all; rm -rf "$work" "$memory"' EXIT
cd "$work"
export fault SEED=${SEED:-$RANDOM} # said where it fails
RANDOM=$SEED

# undisturbed ITEMS SHARD: the rows that there have to be, in ITEMS.txt.
undisturbed() {
    "$worker" fill "whole$1" "$1" "$2"
    "$worker" dump "whole$1" >"$1.txt"
    [ "$(wc -l <"$1.txt")" -eq "$1" ] || fail "an undisturbed run made $(wc -l <"$1.txt") rows"
}

# check DIRECTORY ITEMS WHAT: all rows once, as the undisturbed run made them.
check() {
    "$worker" dump "$1" >dumped || fail "SEED=$SEED: $3: cannot be read"
    cmp dumped "$2.txt" || fail "SEED=$SEED: $3: differs from an undisturbed run"
    [ -z "$(find "$1" -name '*.part')" ] || fail "SEED=$SEED: $3: left $(find "$1" -name '*.part')"
    [ -z "$(ls "$1/claims")" ] || fail "SEED=$SEED: $3: claims are left: $(ls "$1/claims")"
}
