#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# `smalti generate --share`: processes that are killed, stopped past their lease, late, or out of room make each image
# of a list once, with the bytes that one process makes alone.
# shellcheck source=command.sh
. "$(dirname "$0")/command.sh"
# shellcheck source=shared.sh
. "$tests/shared.sh"
memory=$(mktemp -d -p /dev/shm 2>/dev/null || mktemp -d)
trap '{ kill -KILL $(jobs -p); umount "$work/disk"; } 2>/dev/null || true; rm -rf "$work" "$memory"' EXIT
cd "$work"
export SEED=${SEED:-$RANDOM} # said where it fails
RANDOM=$SEED

# 200 images of 182 lines: some have no id, some are of several images, some are blank.
for ((i = 1; i <= 182; i++)); do
    case $((i % 20)) in
    0) echo ;;
    7) echo "{\"prompt\": \"a red star above a ring\", \"seed\": $i}" ;;
    3 | 13) echo "{\"id\": \"p$i\", \"prompt\": \"a green ring\", \"seed\": $i, \"num_images_per_prompt\": $((i < 90 ? 3 : 2))}" ;;
    *) echo "{\"id\": \"p$i\", \"prompt\": \"a red star\", \"seed\": $i, \"width\": $((16 + 16 * (i % 3)))}" ;;
    esac
done >prompts.jsonl
generate=("$SMALTI" generate --steps 2 -s 32x32 -g 1 --cpus 1 -q)
share=("${generate[@]}" -P prompts.jsonl --share --lease 2 --json)
expect 0 '' "${generate[@]}" -P prompts.jsonl -o whole/
images=$(find whole -name '*.png' | wc -l)
[ "$images" -eq 200 ] || fail "$images images"

# complete DIRECTORY LOST REPORT...: all images are there, and reported as made once, but for at most LOST that a
# killed process may not have reported. Nobody's claims or files are left.
complete() {
    local directory=$1 lost=$2 reported
    shift 2
    diff -r -x .share whole "$directory" || fail "SEED=$SEED: $directory differs from an undisturbed run"
    [ -z "$(ls "$directory/.share/claims")" ] || fail "SEED=$SEED: claims are left: $(ls "$directory/.share/claims")"
    [ -z "$(find "$directory" -name '*.part')" ] || fail "SEED=$SEED: left $(find "$directory" -name '*.part')"
    grep -hF '"status":"ok"' "$@" | sed 's/.*"file":"\([^"]*\)".*/\1/' | sort >reported
    [ -z "$(uniq -d reported)" ] || fail "SEED=$SEED: made twice: $(uniq -d reported)"
    reported=$(wc -l <reported)
    [ "$reported" -ge $((images - lost)) ] || fail "SEED=$SEED: $reported of $images images were reported"
    ! grep -qF '"status":"failed"' "$@" || fail "SEED=$SEED: $(grep -hF '"status":"failed"' "$@")"
}

# await_images COUNT DIRECTORY PROCESS: COUNT are there, or the process has ended.
await_images() {
    await_made '*.png' "$@"
}

# Killed at random, and begun anew.
kills=0
for ((round = 0; kills < 8; round++)); do
    rm -rf killed report-*
    processes=()
    started=0
    begin() {
        "${share[@]}" -o killed/ >report-$started 2>>err &
        processes[$1]=$!
        started=$((started + 1))
    }
    for which in 0 1 2; do begin $which; done
    before=$kills
    for ((i = 1; i < 5; i++)); do
        which=$((RANDOM % 3))
        await_images $((images * i / 6)) killed "${processes[$which]}"
        sleep "0.0$((RANDOM % 10))"
        ! kill -KILL "${processes[$which]}" 2>/dev/null || kills=$((kills + 1))
        wait "${processes[$which]}" 2>/dev/null || true
        begin $which
    done
    for process in "${processes[@]}"; do
        wait "$process" || fail "SEED=$SEED: round $round: status $?: $(tail -n 5 err)"
    done
    complete killed $((kills - before)) report-*
    rm -rf report-*
done
echo "$kills kills"

# Late: what is done is not done again, and what no one has done is shared.
"${share[@]}" -o late/ >report-0 2>err &
process=$!
await_images 20 late $process
"${share[@]}" -o late/ >report-1 2>>err || fail "a late process: status $?: $(cat err)"
wait $process || fail "beside a late process: status $?: $(cat err)"
complete late 0 report-*
[ "$(sed -n 's/.*"summary":{"made":\([0-9]*\),.*/\1/p' report-* | awk '{ sum += $1 } END { print sum }')" -eq "$images" ] ||
    fail "the reports do not add up: $(grep -h summary report-*)"
expect 0 '' "${share[@]}" -o late/
[ "$(wc -l <out)" -eq 1 ] || fail "all was done: $(head -n 3 out)"
expect 0 '0 images in ' "$SMALTI" generate --steps 2 -s 32x32 -g 1 --cpus 1 -P prompts.jsonl --share -o late/
grep -qF '182 of 182 prompts are done' err || fail "not all is done: $(cat err)"

# What was made without --share counts, too.
mkdir begun
cp whole/p1*.png begun
expect 0 '' "${share[@]}" -o begun/
[ "$(grep -cF '"status":"skipped"' out)" -eq "$(cd whole && find . -name 'p1*.png' | wc -l)" ] || fail "not skipped: $(tail -n 1 out)"

# Stopped for longer than its lease, with claims but without the lock. It goes on when the others have done its work.
while :; do
    rm -rf stopped report-*
    "${share[@]}" -o stopped/ >report-0 2>err &
    process=$!
    await_images $((RANDOM % 50 + 5)) stopped $process
    ! stop_with_claim stopped "$process" || break
    { kill -KILL $process && wait $process; } 2>/dev/null || true
done
"${share[@]}" -o stopped/ >report-1 2>>err || fail "beside a stopped process: status $?: $(cat err)"
diff -r -x .share -x '.*.part' whole stopped
kill -CONT $process
wait $process || fail "stopped: status $?: $(cat err)"
complete stopped 0 report-*

# Other hosts, each of which calls itself process 1. One is gone, and its lease runs out.
# shellcheck disable=SC2016 # expanded by the shell inside
host=(unshare --uts --pid --fork --kill-child --mount-proc sh -c 'hostname "$1"; shift; exec "$@"' sh)
if "${host[@]}" probe true 2>/dev/null; then
    rm -f report-*
    "${host[@]}" node1 "${share[@]}" -o hosts/ >report-1 2>err &
    process=$!
    await_images 30 hosts $process
    kill -KILL $process
    wait $process 2>/dev/null || true
    "${host[@]}" node2 "${share[@]}" -o hosts/ >report-2 2>err || fail "on another host: status $?: $(cat err)"
    find hosts -name '.*.part' -delete # of the other host: it may live, as far as one can know
    complete hosts 1 report-*
else
    echo "SKIPPED: no name spaces can be made here: other hosts"
fi

# Asked to stop: what is in progress is finished, and claims are given back.
"${share[@]}" -o term/ >report-0 2>err &
process=$!
await_images 10 term $process
kill -TERM $process
status=0
wait $process || status=$?
[ -z "$(ls term/.share/claims)" ] || fail "claims are left: $(ls term/.share/claims)"
[ $status -eq 0 ] || grep -qF 'the same command goes on' err || fail "status $status: $(cat err)"
"${share[@]}" -o term/ >report-1 2>err
complete term 0 report-[01]

# Another list, other options.
refuse 2 'num_inference_steps = 2, now it is 3: give --steps as it was' "${share[@]}" -o late/ --steps 3
refuse 2 'save_latents = false, now it is true: give --save-latents as it was' "${share[@]}" -o late/ --save-latents
refuse 2 'precision = "f32", now it is "bf16": give --precision as it was' "${share[@]}" -o late/ --precision bf16
sed 's/a green ring/a green rinG/' prompts.jsonl >other.jsonl
refuse 2 'give the file of --prompts as it was' "${generate[@]}" -P other.jsonl --share -o late/
refuse 2 'standard input can be read by one process alone' "${generate[@]}" -P - --share -o late/
refuse 2 '--share: needs a list' "${generate[@]}" -p 'a red star' --share -o late/
refuse 2 'several images need a directory' "${generate[@]}" -P prompts.jsonl --share
refuse 2 'may choose otherwise on another machine' "${generate[@]}" -P prompts.jsonl --share -o late/ --strategy auto
: >empty.jsonl
refuse 1 'no prompts in it' "${generate[@]}" -P empty.jsonl --share -o empty/

# A bad line, and names that two prompts want: one process reports each, and the next run tries them again.
cat >bad.jsonl <<'LINES'
{"id": "a", "prompt": "a red star"}
{"id": "b", "promt": "a red star"}
{"id": "a", "prompt": "a green ring"}
{"id": "c", "prompt": "a green ring", "num_images_per_prompt": 2}
LINES
"${generate[@]}" -P bad.jsonl --share -o bad/ --json >report-0 2>err-0 &
process=$!
status=0
"${generate[@]}" -P bad.jsonl --share -o bad/ --json >report-1 2>err-1 || status=$?
wait $process || status=$?
[ $status -eq 3 ] || [ $status -eq 1 ] || fail "status $status: $(cat err-?)"
cat err-? | grep -qF 'bad.jsonl:2: ' || fail "no word of line 2: $(cat err-?)"
[ "$(files bad)" = ".share/.lock .share/done.json .share/share.json a.png c-0.png c-1.png" ] || fail "files: $(files bad)"
expect 1 'bad/a.png: is there, of another prompt or other options' "${generate[@]}" -P bad.jsonl --share -o bad/
grep -qF 'bad.jsonl:2: ' err || fail "line 2 was not tried again: $(cat err)"

# More lines than ranges: each has two.
for ((i = 1; i <= 4100; i++)); do ((i % 205)) && echo || echo '{"prompt": "a red star"}'; done >long.jsonl
expect 0 '' "${generate[@]}" -P long.jsonl -o long/
expect 0 '' "${generate[@]}" -P long.jsonl --share -o "$memory/long/"
diff -r -x .share long "$memory/long"
printf '{"done": [0, 4100], ' >"$memory/long/.share/done.json" # torn
expect 0 '' "${generate[@]}" -P long.jsonl --share -o "$memory/long/" --json
[ "$(grep -cF '"status":"skipped"' out)" -eq 20 ] || fail "without a record: $(tail -n 1 out)"

# A full disk, for two at a time; with more room the same command makes the rest.
mkdir disk
if mount -t tmpfs -o size=256k none disk 2>/dev/null; then
    "${share[@]}" -o disk/images/ >report-0 2>err-0 &
    process=$!
    status=0
    "${share[@]}" -o disk/images/ >report-1 2>err-1 || status=$?
    wait $process || status=$?
    [ $status -ne 0 ] || fail "there was room for all"
    cat err-? | grep -qF 'No space left on device' || fail "$(cat err-?)"
    mount -o remount,size=100m disk
    expect 0 '' "${share[@]}" -o disk/images/
    diff -r -x .share whole disk/images
    [ -z "$(ls disk/images/.share/claims)$(find disk -name '*.part')" ] || fail "left $(files disk)"
fi
