#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# `smalti-bench`: each of its commands runs and says what it should; how fast is not looked at.
# shellcheck source=command.sh
. "$(dirname "$0")/command.sh"

for words in help --help -h 'help help'; do
    # shellcheck disable=SC2086 # words
    expect 0 '' "$SMALTI_BENCH" $words
    grep -qF 'smalti-bench COMMAND' "$work/out" || fail "$words: no usage: $(cat "$work/out")"
    grep -q '^  kernels ' "$work/out" || fail "$words: no list of commands: $(cat "$work/out")"
done
for words in 'help kernels' 'kernels --help'; do
    # shellcheck disable=SC2086 # words
    expect 0 '' "$SMALTI_BENCH" $words
    grep -qF 'Usage: smalti-bench kernels [OPTION]' "$work/out" || fail "$words: $(cat "$work/out")"
done
expect 0 '' "$SMALTI_BENCH" --man
grep -qF '.TH smalti\-bench 1' "$work/out" || fail "the program's page: $(cat "$work/out")"
grep -qF '.BR smalti\-bench\-kernels (1)' "$work/out" || fail "the program's page: $(cat "$work/out")"
expect 0 '' "$SMALTI_BENCH" kernels --man
grep -qF '.TH smalti\-bench\-kernels 1' "$work/out" || fail "the command's page: $(cat "$work/out")"
grep -qF '.BR smalti\-bench (1)' "$work/out" || fail "the command's page does not name the program's"
expect 2 'Usage: smalti-bench COMMAND' "$SMALTI_BENCH"
refuse 2 "smalti-bench: unknown command 'kernel', did you mean 'kernels'?; try 'smalti-bench --help'" \
    "$SMALTI_BENCH" kernel
refuse 2 "unknown command 'kernel'" "$SMALTI_BENCH" help kernel
refuse 2 "smalti-bench kernels: help: unexpected 'stages'" "$SMALTI_BENCH" help kernels stages
for words in version -V --version; do
    expect 0 '' "$SMALTI_BENCH" $words
    grep -qE '^smalti [0-9]' "$work/out"
    expect 0 '' "$SMALTI" $words
    grep -qE '^smalti [0-9]' "$work/out"
done
expect 0 '' "$SMALTI" help help
grep -q '^Usage: smalti COMMAND' "$work/out"
refuse 2 "smalti: unknown command 'bench'; try 'smalti --help'" "$SMALTI" bench
refuse 2 "did you mean 'topology'?" "$SMALTI" topologie
long=$(printf '%99s' '' | tr ' ' a) # as much of a word as is shown
for words in "$long$long" "help $long$long" "retrieve $long$long"; do
    # shellcheck disable=SC2086 # several words
    refuse 2 "unknown command '$long'; try" "$SMALTI" $words
done
expect 0 '' "$SMALTI" --man
grep -qF '.BR smalti\-bench (1)' "$work/out" || fail "the page does not name smalti-bench: $(cat "$work/out")"
refuse 2 "unexpected operand 'now'; try 'smalti-bench kernels --help'" "$SMALTI_BENCH" kernels now

# lines COMMAND FILE: its reader takes it; the first line has the machine.
lines() {
    local key
    for key in "\"command\":\"smalti-bench $1\"" '"cpu":' '"isa":' '"features":' '"oneDNN":' '"version":'; do
        head -n 1 "$2" | grep -qF -e "$key" || fail "no $key in: $(head -n 1 "$2")"
    done
    [ "$(wc -l <"$2")" -gt 1 ] || fail "nothing was measured: $(cat "$2")"
}

kernels=("$SMALTI_BENCH" kernels --repeats 1)
expect 0 '' "${kernels[@]}" --filter odd -o "$work/before.jsonl"
lines kernels "$work/before.jsonl"
for words in 'One thread' 'GFLOP/s' '% of it' 'attention odd' 'direct'; do
    grep -qF -e "$words" "$work/out" || fail "no '$words' in: $(cat "$work/out")"
done
expect 0 '' "${kernels[@]}" --filter odd --precision bf16 --json
lines kernels "$work/out"
mv "$work/out" "$work/bf16.jsonl"
expect 0 '' "${kernels[@]}" --filter 'clear odd' --compare "$work/bf16.jsonl"
grep -qF '"precision":"bf16"' "$work/bf16.jsonl" || fail "no precision: $(head -n 1 "$work/bf16.jsonl")"
expect 0 '' "${kernels[@]}" --filter 'matmul odd' --compare "$work/before.jsonl"
grep -qF 'geometric mean of 9' "$work/out" || fail "nothing compared: $(cat "$work/out")"
expect 0 '' "${kernels[@]}" --filter 'matmul odd' --compare "$work/before.jsonl" --json
grep -qF '"ratio":' "$work/out" || fail "nothing compared: $(cat "$work/out")"
refuse 1 'no-such-file' "${kernels[@]}" --json --compare "$work/no-such-file"
(head -n 1 "$work/before.jsonl" && echo '{}') >"$work/bad.jsonl"
refuse 1 'line 2' "${kernels[@]}" --json --compare "$work/bad.jsonl"
expect 2 "no operation has 'nothing'" "${kernels[@]}" --filter nothing -o "$work/nothing.jsonl"
[ ! -e "$work/nothing.jsonl" ] || fail "a report of nothing was kept"
refuse 2 'repeats' "$SMALTI_BENCH" kernels --repeats 0
refuse 2 'precision' "$SMALTI_BENCH" kernels --precision f64

stages=("$SMALTI_BENCH" stages --repeats 1)
expect 0 '' "${stages[@]}" --t5 3,5 --dit 32x48 --vae 32x48 --encode 48x32 --train 32x48 -o "$work/stages.jsonl"
lines stages "$work/stages.jsonl"
for name in 't5 3 tokens' 't5 5 tokens' 'dit 32x48' 'decode 32x48' 'encode 48x32' 'train 32x48'; do
    grep -qF -e "\"name\":\"$name\"" "$work/stages.jsonl" || fail "no $name in: $(cat "$work/stages.jsonl")"
    grep -qE "^$name +[0-9]" "$work/out" || fail "no $name in: $(cat "$work/out")"
done
for key in flops_per_second peak fraction; do
    grep -qF "\"$key\":" "$work/stages.jsonl" || fail "no $key in: $(cat "$work/stages.jsonl")"
done
expect 0 '' "${stages[@]}" --dit 32x48 --plain --precision bf16 --json --compare "$work/stages.jsonl"
grep -qF '"name":"dit 32x48 plain"' "$work/out" || fail "nothing plain in: $(cat "$work/out")"
! grep -qF '"fraction":' "$work/out" || fail "bf16 against the peak of f32: $(cat "$work/out")"
grep -qF '"runtime":' "$work/out" || fail "no cost of the runtime in: $(cat "$work/out")"
grep -qF '"ratio":' "$work/out" || fail "nothing compared in: $(cat "$work/out")"
expect 0 '' "${stages[@]}" --dit 32x48 --precision w8a8 --json
grep -qF '"name":"dit 32x48"' "$work/out" || fail "no product of integers in: $(cat "$work/out")"
expect 0 '' "${stages[@]}" --t5 5 --text-encoder-precision int8
expect 0 '' "${stages[@]}" --t5 5 --text-encoder-precision w8a8
expect 1 'only --dit has it' "${stages[@]}" --t5 5 --dit 32x48 --precision w8a8
seq 3 100 >"$work/lengths"
expect 0 '' "${stages[@]}" --lengths "$work/lengths"
grep -qF 't5 64 captions' "$work/out" || fail "not the first 64: $(cat "$work/out")"

# Components alone.
embedded=$SMALTI_MODELS/tesserae
mkdir "$work/alone"
ln -s "$embedded/vae" "$work/alone/vae"
expect 0 '' "${stages[@]}" -m "$work/alone" --vae 32x32 --encode 32x32
expect 1 'transformer/config.json' "${stages[@]}" -m "$work/alone" --dit 32x32
rm "$work/alone/vae"
ln -s "$embedded/transformer" "$work/alone/transformer"
expect 0 '' "${stages[@]}" -m "$work/alone" --dit 32x32

expect 2 'multiples of 16' "${stages[@]}" --dit 40x32
refuse 2 'expected' "${stages[@]}" --t5 0
refuse 2 'expected' "${stages[@]}" --dit 32
refuse 2 'one worker' "${stages[@]}" --plain --cpus 2
refuse 2 'unexpected operand' "${stages[@]}" dit
echo 'three' >"$work/lengths"
refuse 2 'lengths' "${stages[@]}" --lengths "$work/lengths"

generate=("$SMALTI_BENCH" generate --repeats 1 --steps 2)
expect 0 '' "${generate[@]}" --size 32x48 -o "$work/generate.jsonl"
lines generate "$work/generate.jsonl"
grep -qE '^generate 32x48 2 steps +[0-9]' "$work/out" || fail "no line: $(cat "$work/out")"
expect 0 '' "${generate[@]}" --size 32x48 --json --compare "$work/generate.jsonl"
for key in text denoising decoding peak_bytes ratio; do
    grep -qF "\"$key\":" "$work/out" || fail "no $key in: $(cat "$work/out")"
done
refuse 1 'expected "command"' "${generate[@]}" --json --compare "$work/stages.jsonl"
expect 2 'scheduler' "${generate[@]}" --scheduler nosuch
expect 1 'no-such-model' "${generate[@]}" -m "$work/no-such-model"

# What training gains by each measure: every line, features that are computed in the first two alone, and nothing stays in TMPDIR.
train=("$SMALTI_BENCH" train --repeats 1 --batch 2 --cpus 1 --picture-size 200)
mkdir "$work/tmp"
TMPDIR=$work/tmp expect 0 '' "${train[@]}" -o "$work/train.jsonl"
[ -z "$(ls "$work/tmp")" ] || fail "left: $(ls "$work/tmp")"
lines train "$work/train.jsonl"
python3 - "$work/train.jsonl" <<'END_OF_PROGRAM' || fail "lines: $(cat "$work/train.jsonl")"
import json, sys
lines = [json.loads(line) for line in open(sys.argv[1])][1:]
assert len(lines) == 10 and [0 < line["extracting"] < 1 for line in lines] == [True] * 2 + [False] * 8
for line in lines:
    assert abs(line["items_per_second"] * line["seconds"] - 1) < 1e-9 and line["peak_bytes"] > 1 << 20
    assert 0 < line["busy"] <= 1 and 0 <= line["waiting"] < 1 and 0 < line["updating"] < 1
    assert ("bound" in line) == ("f16" not in line["name"])
by_kind = {line["name"].startswith(("not", "mapped")): line["stored_bytes"] for line in lines}
assert by_kind[True] > by_kind[False] > 1000
END_OF_PROGRAM
TMPDIR=$work/no-such refuse 1 'no-such' "${train[@]}"
TMPDIR=$work/tmp "${train[@]}" --repeats 1000 >"$work/out" 2>"$work/err" &
process=$!
until grep -qs '"step":2' "$work"/tmp/*/run/log.jsonl; do
    kill -0 $process || fail "it ended: $(cat "$work/err")"
    sleep 0.1
done
kill -TERM $process
status=0
wait $process || status=$?
[ $status -eq 1 ] || fail "status $status after SIGTERM: $(cat "$work/err")"
grep -q 'stopped by SIGTERM' "$work/err" || fail "no words after SIGTERM: $(cat "$work/err")"
[ -z "$(ls "$work/tmp")" ] || fail "left in TMPDIR: $(ls "$work/tmp")"
refuse 2 'img-size' "${train[@]}" --img-size 100

# Extraction by many processes, as it is simulated, where it is known: work that is shared evenly, a start that is not
# shared, storage and a lock that let one through at a time, and names that each look at all shards.
while read -r expected options; do
    read -ra options <<<"$options"
    found=$(python3 "$SMALTI_TESTDATA/../../bench/extract_processes.py" --items 10000 --shard 100 --spread 0 --start 0 --claim 0 \
        --commit 0 --each 0 --read 0 --write 0 "${options[@]}")
    [ "${found// /,}" = "$expected" ] || fail "extract_processes ${options[*]}: $found"
done <<'CASES'
4,10.00,1000.0,1.000 --rate 250 4
4,20.00,500.0,0.625 --rate 250 --start 10 4
4,10.00,1000.0,0.250 --rate 1e6 --write 60 --read 40 --storage 1e5 4
4,20.00,500.0,0.250 --rate 1e6 --claim 0.1 --commit 0.1 4
1,9.00,33.3,1.000 --items 300 --rate 100 --each 1 1
CASES
