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

expect 0 '' "$SMALTI" bench kernels
