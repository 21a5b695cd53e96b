#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# An extraction survives its processes: two at a time, killed at random moments and started anew, make the rows of an
# undisturbed run, each once.
# shellcheck source=command.sh
. "$(dirname "$0")/command.sh"
rows=$(dirname "$SMALTI")/tests/store_worker
cd "$work"
export SEED=${SEED:-$RANDOM} # said where it fails
RANDOM=$SEED
# A sanitizer makes every start slow.
kills=100
if sanitized; then kills=20; fi

# Captions of many lengths beside the images of the small data set.
images=(000.png a/000.png b/000.png gray.png tiny.png wide.png)
for ((i = 0; i < 240; i++)); do
    caption="a red circle"
    for ((word = 0; word < i % 23; word++)); do caption+=" above a blue square"; done
    ln -s "$SMALTI_TESTDATA/extract/InternImgs/${images[i % 6]}" "$i.png"
    echo "{\"path\": \"$i.png\", \"prompt\": \"$caption\"}"
done >data.jsonl
extract=("$SMALTI" extract data.jsonl --img-size 256 --shard-items 10 --quiet -o)

"${extract[@]}" whole
"$rows" dump whole >whole.txt
[ "$(wc -l <whole.txt)" -eq 240 ] || fail "an undisturbed run made $(wc -l <whole.txt) rows"

done_kills=0
while [ "$done_kills" -lt "$kills" ]; do
    rm -rf killed
    processes=()
    for which in 0 1; do
        "${extract[@]}" killed 2>>err &
        processes[which]=$!
    done
    while [ "$done_kills" -lt "$kills" ]; do
        sleep "0.$((RANDOM % 6))$((RANDOM % 10))"
        which=$((RANDOM % 2))
        kill -KILL "${processes[$which]}" 2>/dev/null || break
        wait "${processes[$which]}" 2>/dev/null || true
        done_kills=$((done_kills + 1))
        "${extract[@]}" killed 2>>err &
        processes[which]=$!
    done
    for process in "${processes[@]}"; do
        wait "$process" 2>/dev/null || fail "SEED=$SEED: a process failed: $(tail -3 err)"
    done
    "$rows" dump killed >dumped || fail "SEED=$SEED: the directory cannot be read"
    cmp dumped whole.txt || fail "SEED=$SEED: rows differ from an undisturbed run's"
    [ -z "$(find killed -name '*.part')" ] || fail "SEED=$SEED: left $(find killed -name '*.part')"
done
echo "$done_kills kills"
