#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# `smalti bench`: each of its commands runs and says what it should; how fast is not looked at.
# shellcheck source=command.sh
. "$(dirname "$0")/command.sh"

for words in 'help bench' 'bench --help' 'bench -h' 'bench help'; do
    # shellcheck disable=SC2086 # words
    expect 0 '' "$SMALTI" $words
    grep -qF 'smalti bench COMMAND' "$work/out" || fail "$words: no usage: $(cat "$work/out")"
    grep -q '^  kernels ' "$work/out" || fail "$words: no list of commands: $(cat "$work/out")"
done
for words in 'help bench kernels' 'bench help kernels' 'bench kernels --help'; do
    # shellcheck disable=SC2086 # words
    expect 0 '' "$SMALTI" $words
    grep -qF 'Usage: smalti bench kernels [OPTION]' "$work/out" || fail "$words: $(cat "$work/out")"
done
expect 0 '' "$SMALTI" bench --man
grep -qF '.BR smalti\-bench\-kernels (1)' "$work/out" || fail "the group's page: $(cat "$work/out")"
expect 0 '' "$SMALTI" bench kernels --man
grep -qF '.TH smalti\-bench\-kernels 1' "$work/out" || fail "the command's page: $(cat "$work/out")"
expect 0 '' "$SMALTI" bench --version
expect 2 'Usage: smalti bench COMMAND' "$SMALTI" bench
refuse 2 "smalti bench: unknown command 'kernel', did you mean 'kernels'?; try 'smalti bench --help'" \
    "$SMALTI" bench kernel
refuse 2 "unknown command 'kernel'" "$SMALTI" help bench kernel
refuse 2 "did you mean 'bench'?" "$SMALTI" bensh
refuse 2 "unexpected operand 'now'; try 'smalti bench kernels --help'" "$SMALTI" bench kernels now


# lines COMMAND FILE: its reader takes it; the first line has the machine.
lines() {
    local key
    for key in "\"command\":\"bench $1\"" '"cpu":' '"isa":' '"features":' '"oneDNN":' '"version":'; do
        head -n 1 "$2" | grep -qF -e "$key" || fail "no $key in: $(head -n 1 "$2")"
    done
    [ "$(wc -l <"$2")" -gt 1 ] || fail "nothing was measured: $(cat "$2")"
}

kernels=("$SMALTI" bench kernels --repeats 1)
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
grep -qF 'geometric mean of 4' "$work/out" || fail "nothing compared: $(cat "$work/out")"
expect 0 '' "${kernels[@]}" --filter 'matmul odd' --compare "$work/before.jsonl" --json
grep -qF '"ratio":' "$work/out" || fail "nothing compared: $(cat "$work/out")"
refuse 1 'no-such-file' "${kernels[@]}" --json --compare "$work/no-such-file"
(head -n 1 "$work/before.jsonl" && echo '{}') >"$work/bad.jsonl"
refuse 1 'line 2' "${kernels[@]}" --json --compare "$work/bad.jsonl"
expect 2 "no operation has 'nothing'" "${kernels[@]}" --filter nothing -o "$work/nothing.jsonl"
[ ! -e "$work/nothing.jsonl" ] || fail "a report of nothing was kept"
refuse 2 'repeats' "$SMALTI" bench kernels --repeats 0
refuse 2 'precision' "$SMALTI" bench kernels --precision f64
