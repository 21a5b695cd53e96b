#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Step caches: what they skip is in the metadata; lines, resume and the server know them; tables are measured, kept beside each
# other and checked; what cannot be is refused.
# shellcheck source=command.sh
. "$(dirname "$0")/command.sh"
cd "$work"

# text KEY FILE: a text of a PNG.
text() {
    python3 "$tests/outputs.py" "$@"
}

# The embedded model has a table for its defaults. What was skipped is said, with its bounds, and changes the image.
small=(-q --size 64x64 -p 'a red star on a white background')
"$SMALTI" generate "${small[@]}" -o full.png
"$SMALTI" generate "${small[@]}" --step-cache bound:0.04 -o bound.png --json >said
"$SMALTI" generate "${small[@]}" --step-cache first-block:0 -o nothing.png
"$SMALTI" generate "${small[@]}" --step-cache bound:0.04 --tile-tokens 5 --cpus 1 --grain operation -o tiled.png
[ -z "$(text step_cache full.png)" ] || fail "a step cache in an image without"
[ "$(text step_cache nothing.png)" = '{"calls":40,"skipped":[]}' ] || fail "$(text step_cache nothing.png)"
cmp <(tail -c 2000 full.png) <(tail -c 2000 nothing.png) || fail "a cache that skips nothing changes the image"
! cmp -s <(tail -c 2000 full.png) <(tail -c 2000 bound.png) || fail "a cache that skips changes nothing"
python3 - "$(text step_cache bound.png)" "$(text parameters bound.png)" "$(head -1 said)" "$(text step_cache tiled.png)" <<'END' || fail "what was skipped"
import json, sys
steps, parameters, line, tiled = map(json.loads, sys.argv[1:])
assert steps["calls"] == 40 and 2 <= len(steps["skipped"]) <= 20, steps
assert all(0 < step < 19 and branch in (0, 1) and 0 < value <= 0.04 for step, branch, value in steps["skipped"]), steps
assert parameters["step_cache"].startswith("bound:0.04 of ") and len(parameters["step_cache"]) == 30, parameters
assert line["calls"] == 40 and line["skipped_calls"] == len(steps["skipped"]), line
assert [call[:2] for call in tiled["skipped"]] == [call[:2] for call in steps["skipped"]], tiled
END

# Lines have their own; an image is known by it.
i=0
for cache in null '"bound:0.04"' '"first-block:0.1"'; do
    echo "{\"prompt\": \"a blue ring\", \"id\": \"i$((i++))\", \"step_cache\": $cache}"
done >lines.jsonl
"$SMALTI" generate -q --size 32x32 -P lines.jsonl -o lines/
[ "$("$SMALTI" generate --size 32x32 -P lines.jsonl -o lines/ --resume --json | grep -c '"status":"skipped"')" -eq 3 ]
sed -i 's/0\.04/0.03/' lines.jsonl
[ "$("$SMALTI" generate --size 32x32 -P lines.jsonl -o lines/ --resume --json | grep -c '"status":"skipped"')" -eq 2 ]

# Tables of other steps and guidance lie beside each other; the same one is replaced; the file is sealed.
printf 'a red star\na green heart on a black background\n' >prompts
measure() {
    "$SMALTI" step-cache -P prompts --size 32x32 -o tables.json "$@"
}
measure --steps 4 --seed 7 >out
grep -q 'tables.json: a table of 4 steps, measured on 2 images' out
measure -q --steps 5 --guidance 1
measure -q --steps 4 --seed 8
[ "$(grep -c '"model":' tables.json)" -eq 2 ] || fail "not two tables"
"$SMALTI" generate "${small[@]}" --steps 5 --guidance 1 --step-cache bound:9 --step-cache-table tables.json -o five.png
[ "$(text step_cache five.png | python3 -c 'import json, sys; print([s for s, b, v in json.load(sys.stdin)["skipped"]])')" = '[1, 2, 3]' ]
refuse 1 'none of its 2 tables is of this model in f32 with the scheduler "dpm++", 6 steps' \
    "$SMALTI" generate "${small[@]}" --steps 6 --step-cache bound:9 --step-cache-table tables.json
refuse 1 'none of its 2 tables is of this model in bf16' \
    "$SMALTI" generate "${small[@]}" --steps 4 --precision bf16 --step-cache bound:9 --step-cache-table tables.json
sed 's/"images":	2/"images":	3/' tables.json >torn.json
refuse 1 'torn.json' "$SMALTI" generate "${small[@]}" --steps 4 --step-cache bound:9 --step-cache-table torn.json
refuse 1 'nowhere.json: is not there' "$SMALTI" generate "${small[@]}" --step-cache bound:9 --step-cache-table nowhere.json

# The embedded model's bounds hold on other images; a check changes no bit.
"$SMALTI" step-cache -q -P prompts --check bound:0.04 --json >check
"$SMALTI" step-cache -P prompts -i 1 --size 32x32 --check first-block:0.12 >checked
grep -q 'calls skipped' checked || fail "$(cat checked)"
grep -q 'times as fast' checked || fail "$(cat checked)"
python3 - <<'END' || fail "the check: $(cat check)"
import json
check = json.load(open("check"))
assert check["images"] == 2 and check["calls"] == 80 and 4 <= check["skipped"] == check["bounds"] <= 40, check
assert check["broken"] == 0 and 0 < check["worst_error_by_bound"] <= 1, check
END

# What cannot be is refused.
refuse 1 'expected bound:X or first-block:X' "$SMALTI" generate "${small[@]}" --step-cache fast
refuse 1 'expected bound:X or first-block:X' "$SMALTI" generate "${small[@]}" --step-cache bound:-1
refuse 1 'expected no strategy, or an exact one' "$SMALTI" generate "${small[@]}" --step-cache first-block:1 --strategy displaced2 --shares 1
expect 2 'no prompts: give --prompts' "$SMALTI" step-cache
echo '{"prompt": "a", "seed": 3}' >seed.jsonl
refuse 1 'seed.jsonl:1: expected "prompt" and "id" alone' "$SMALTI" step-cache -P seed.jsonl
refuse 1 'expected a prompt or more' "$SMALTI" step-cache -P /dev/null
"$SMALTI" step-cache -q -P prompts -o nowhere/tables.json --steps 2 --size 32x32 2>err && fail "a table in no directory"
grep -q 'nowhere/tables.json' err

# A server's request has its own; what is wrong is the client's fault.
"$SMALTI" serve --listen 127.0.0.1:0 --cpus 1 >said 2>err &
server=$!
trap 'kill -9 $server 2>/dev/null || true; rm -rf "$work"' EXIT
await_words listening said
ask() {
    curl -sS -H 'Accept: image/png' -H 'Content-Type: application/json' "http://127.0.0.1:$(sed 's/.*://' said)/v1/images/generations" \
        -d "{\"prompt\": \"a red star\", \"size\": \"64x64\", \"num_inference_steps\": 4, \"step_cache\": $1}" -o "$2"
}
ask '"first-block:9"' served.png
text step_cache served.png | grep -q '"calls":8' || fail "served: $(head -c 300 served.png)"
ask '"fast"' refused
grep -q 'expected bound:X' refused || fail "$(cat refused)"
ask '"bound:1"' refused
grep -q 'measure one with smalti step-cache' refused || fail "$(cat refused)"
kill $server
wait $server || fail "the server ended with $?"

# Many at a time, cancelled in the middle: quickly, and nothing is left half made.
for i in {1..40}; do echo "a red star $i"; done >many
timeout -s INT 2 "$SMALTI" generate -q -P many --size 256x256 --step-cache bound:0.04 -o many/ 2>err || true
for image in many/*.png; do
    [ ! -e "$image" ] || [ -n "$(text parameters "$image")" ] || fail "$image is not whole"
done
[ -z "$(find many -name '*.tmp*' -o -name '.*' -type f)" ] || fail "left: $(ls -A many)"
