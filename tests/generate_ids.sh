#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# `smalti generate`: ids name the files; alike is not the same, the same is refused.
# shellcheck source=command.sh
. "$(dirname "$0")/command.sh"

generate() {
    "$SMALTI" generate --steps 1 --size 16x16 --guidance 1 "$@" 2>"$work/err"
}

for i in {000..127}; do
    echo "{\"id\": \"$i\", \"prompt\": \"a red star\"}"
done >"$work/alike.jsonl"
generate --prompts "$work/alike.jsonl" -o "$work/alike/" || fail "$(cat "$work/err")"
[ "$(find "$work/alike" -name '*.png' | wc -l)" -eq 128 ] || fail "not 128 images"

cat >"$work/same.jsonl" <<'LINES'
{"id": "a", "prompt": "first"}
{"id": "a", "prompt": "second"}
{"prompt": "without an id it is named after its line"}
{"id": "3", "prompt": "which somebody else wants too"}
{"id": "b", "prompt": "several", "num_images_per_prompt": 2}
{"id": "b-1", "prompt": "is one of them already"}
LINES
status=0
generate --prompts "$work/same.jsonl" -o "$work/same/" || status=$?
[ "$status" -eq 3 ] || fail "status $status, expected 3"
for line in 2 4 6; do
    grep -qF "same.jsonl:$line: " "$work/err" || fail "line $line was not refused: $(cat "$work/err")"
done
[ "$(cd "$work/same" && echo *)" = "3.png a.png b-0.png b-1.png" ] || fail "files: $(ls "$work/same")"
