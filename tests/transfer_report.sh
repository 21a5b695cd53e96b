#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# What came to each of two OpenCL devices (PoCL's) in a pass, as --json and a trace tell it, is to the byte what the plan
# says; in a decoding, rows at the borders, statistics and keys. Decoding and encoding by shares are spread over both, and
# have the bits of one.
# shellcheck source=command.sh
. "$(dirname "$0")/command.sh"
# shellcheck source=device_images.sh
. "$(dirname "$0")/device_images.sh"
use_pocl 'what comes to devices'

while read -r strategy shares; do
    "$SMALTI" generate -p 'a red star' --size 96x64 --steps 3 --tile-tokens 5 --opencl 2 --cpus 1 --strategy "$strategy" \
        --shares "$shares" --json -q -o "$work/image.png" --trace "$work/trace" >"$work/report" 2>"$work/err" || fail "$strategy: $(cat "$work/err")"
    python3 - "$work/report" "$work/trace" <<'END_OF_PROGRAM' || fail "$strategy: another account than the plan's: $(cat "$work/report")"
import json, sys
places = json.loads(open(sys.argv[1]).readline())["places"]
arrivals = json.load(open(sys.argv[2]))["arrivals"]
assert len(places) == 3 and any(place["planned"] for place in places)
assert any("halo" in place["decoding"] for place in places)
for place in places:
    assert place["planned"] == place["pass"], place
    assert place["name"] == "CPUs" or place["weights"] > 0
    of = [row for row in arrivals if row["place"] == place["name"]]
    for stage, bytes in (3, place["pass"]), (4, place["decoding"]):
        row = next((row for row in of if row.get("stage") == stage), {})
        assert all(row.get(kind) == value for kind, value in bytes.items()), (row, bytes)
    assert not place["planned"] or any(row.get("planned") for row in of)
END_OF_PROGRAM
done <<'RUNS'
patch 0:1:1
ring 0:1:1,0:3:1@2
ulysses 0:1:1
tensor 0:1:1
pipeline 0:1:1
RUNS

# alone_and_shared OPTION... FILE: what a command writes, by one device and by both.
alone_and_shared() {
    local command=("$SMALTI" "${@:1:$#-1}" --tile-rows 2 --opencl 2 --cpus 1 --reproducible -q)
    "${command[@]}" --shares 0:1:0 -o "$work/alone.${*: -1}" 2>"$work/err" || fail "$1: $(cat "$work/err")"
    "${command[@]}" --shares 0:3:1 -o "$work/shared.${*: -1}" --trace "$work/trace" 2>"$work/err" || fail "$1: $(cat "$work/err")"
    cmp "$work/alone.${*: -1}" "$work/shared.${*: -1}" || fail "$1: other bits by shares"
    traced 'OpenCL 0'
    traced 'OpenCL 1'
}
latents small --cpus 1
alone_and_shared decode "$work/small.safetensors" png
alone_and_shared encode "$work/small.png" safetensors
expect 1 'shares: expected 3 ' "$SMALTI" decode "$work/small.safetensors" --opencl 2 --cpus 1 --shares 1:1 -q -o "$work/x.png"
