#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# `smalti generate`: stopped or killed at any moment it leaves whole images only, and --resume ends with the
# bytes of a run that nobody disturbed.
# shellcheck source=command.sh
. "$(dirname "$0")/command.sh"
cd "$work"

for i in {1..12}; do
    echo "{\"id\": \"p$i\", \"prompt\": \"a red star above a ring\", \"seed\": $i, \"width\": $((48 + 16 * (i % 4)))}"
done >prompts.jsonl

command=("$SMALTI" generate --prompts prompts.jsonl --size 96x96 --steps 40 --save-latents --cpus 2)

# count WORDS: lines of the report with them.
count() {
    grep -cF -e "$1" out || true
}

expect 0 '12 images' "${command[@]}" -o whole/
[ "$(find whole -type f | wc -l)" -eq 24 ] || fail "files: $(files whole)"

# await COUNT DIRECTORY PROCESS: COUNT images are there, or the process has ended.
await() {
    while [ "$(find "$2" -name '*.png' 2>/dev/null | wc -l)" -lt "$1" ] && kill -0 "$3" 2>/dev/null; do
        sleep 0.002
    done
}

elsewhere=.p3.png.0123456789abcdef-00000001-0000000000000001-0.part

# finished DIRECTORY COUNT: all files are whole, and resuming skips COUNT of the 12 images and makes the others.
finished() {
    local file
    for file in "$1"/p*; do
        [ ! -e "$file" ] || cmp "$file" "whole/${file##*/}"
    done
    : >"$1/$elsewhere" # of a process of another machine, which may live
    expect 0 '' "${command[@]}" -o "$1/" --resume --json
    [ "$(count '"status":"skipped"')" -eq "$2" ] || fail "not $2 were skipped: $(cat out)"
    [ "$(count '"status":"ok"')" -eq $((12 - $2)) ] || fail "not $((12 - $2)) were made: $(cat out)"
    rm "$1/$elsewhere" || fail "a living process lost its file"
    same whole "$1"
}

# Killed: at once, between, and near the end.
for images in 0 1 4 9; do
    directory=killed$images
    mkdir $directory
    "${command[@]}" -o $directory/ -q &
    await $images $directory $!
    kill -KILL $! 2>/dev/null || true
    wait $! 2>/dev/null || true
    finished $directory "$(find $directory -name 'p*.png' | wc -l)"
done

# Asked to stop: what is in work is finished, nothing half-made is left.
for signal in TERM INT; do
    directory=stopped$signal
    mkdir $directory
    "${command[@]}" -o $directory/ 2>err &
    await 1 $directory $!
    kill -$signal $!
    status=0
    wait $! || status=$?
    [ "$status" -eq 1 ] || fail "status $status: $(cat err)"
    made=$(find $directory -name 'p*.png' | wc -l)
    grep -qF "stopped by SIG$signal: $made image" err || fail "no word of $made: $(cat err)"
    grep -qF "$((12 - made)) left; run again with --resume" err || fail "no word of the rest: $(cat err)"
    [ "$(find $directory -type f | wc -l)" -eq $((2 * made)) ] || fail "files: $(files $directory)"
    finished $directory "$made"
done

# Asked twice: what is in work is dropped, and soon.
mkdir dropped
{
    echo '{"id": "p1", "prompt": "a red star", "width": 16, "height": 16, "num_inference_steps": 2}'
    for i in {2..12}; do
        echo "{\"id\": \"p$i\", \"prompt\": \"a red star\"}"
    done
} >large.jsonl
"$SMALTI" generate --prompts large.jsonl --size 768x768 -o dropped/ 2>err &
await 1 dropped $!
kill -TERM $!
await_words 'finishing active items' err
sleep 1.2 # two at once count as one
kill -TERM $!
status=0
wait $! || status=$?
[ "$status" -eq 1 ] || fail "status $status: $(cat err)"
grep -qF 'stopped by SIGTERM: 1 image made, 11 left' err || fail "not dropped: $(cat err)"
[ "$(files dropped)" = p1.png ] || fail "left $(files dropped)"

# Waiting for a line that does not come.
mkfifo pipe
"$SMALTI" generate --prompts - -o pipe.d/ --size 16x16 --steps 1 <pipe 2>err &
exec 9>pipe
echo 'a red star' >&9
await 1 pipe.d $!
kill -TERM $!
status=0
wait $! || status=$?
exec 9>&-
[ "$status" -eq 1 ] || fail "status $status: $(cat err)"
grep -qF 'stopped by SIGTERM: 1 image made; run again' err || fail "not stopped: $(cat err)"

# What is there but was made otherwise, or lacks its latents, is made again. What this program has not made stays.
cp -r whole other
cp other/p1.png other/p2.png
echo 'no image' >other/p3.png
cp "$SMALTI_TESTDATA/extract/InternImgs/000.png" other/p5.png
rm other/p4.safetensors
expect 3 'other/p3.png: is there, but was not made by smalti generate' "${command[@]}" -o other/ --resume --json
[ "$(count '"status":"skipped"')" -eq 8 ] || fail "not 8 were skipped: $(cat out)"
grep -qF 'other/p5.png: is there, but was not made by smalti generate' err || fail "p5.png: $(cat err)"
grep -qxF 'no image' other/p3.png
cmp "$SMALTI_TESTDATA/extract/InternImgs/000.png" other/p5.png
cp whole/p1.png other/p3.png
rm other/p5.png
expect 0 '' "${command[@]}" -o other/ --resume --json
[ "$(count '"status":"skipped"')" -eq 10 ] || fail "not 10 were skipped: $(cat out)"
same whole other
expect 0 '12 made earlier' "${command[@]}" -o other/ --resume
expect 0 '' "${command[@]}" -o other/ --resume --json --precision bf16
[ "$(count '"status":"ok"')" -eq 12 ] || fail "another precision is another image: $(cat out)"
