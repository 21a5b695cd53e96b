#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# One CUDA device that does everything, as a GPU does beside CPUs: a pass through the transformer is a few commands of the
# host, since what it was told before is repeated as a graph, and the bits are those of commands that are told one by one.
# shellcheck source=command.sh
. "$(dirname "$0")/command.sh"
# shellcheck source=device_images.sh
. "$(dirname "$0")/device_images.sh"

use_standin 'CUDA graphs on a device that is stood in for'
export SMALTI_STANDIN_DEVICES=1 SMALTI_STANDIN_CALLS=$work/calls

# image NAME OPTION...: a small one, alone on the device, which has as many multiprocessors as a large one; then `calls`, `graphs`
# and `nodes` are the host's commands, the graphs among them, and the commands in these.
image() {
    local name=$1
    shift
    rm -f "$work/calls"
    SMALTI_STANDIN_UNITS=${units:-132} "$SMALTI" generate -p 'a red star' --size 48x32 --save-latents -o "$work/$name.png" -q --cuda 1 --cpus 1 \
        "$@"
    read -r _ calls _ graphs _ nodes <"$work/calls"
}

# same NAME: the latents are those of `steps8`.
same() {
    cmp "$work/steps8.safetensors" "$work/$1.safetensors" || fail "$1: other latents"
}

# A step with guidance, behind those that are told and recorded; in bf16, and then in f32, whose emulation is quick.
image rounded4 --steps 4 --precision bf16
before=$calls
image rounded8 --steps 8 --precision bf16
[ $(((calls - before) / 4)) -le 12 ] || fail "$((calls - before)) commands for four steps in bf16"
image told --steps 8 --precision bf16 --grain operation
cmp "$work/rounded8.safetensors" "$work/told.safetensors" || fail 'bf16: other latents'
image steps4 --steps 4
before=$calls
image steps8 --steps 8
echo "a step of the embedded model: $(((calls - before) / 4)) commands; $nodes in $graphs graphs"
[ $(((calls - before) / 4)) -le 12 ] || fail "$((calls - before)) commands for four steps"
[ "$graphs" -ge 4 ] || fail "$graphs graphs in eight steps"

# What a user sees of it.
image counted --steps 8 --json >"$work/json"
grep -qE '"tasks":[0-9]+,"repeated":6,' "$work/json" || fail "no six repeated tasks: $(cat "$work/json")"

# Commands that are told one by one, as operations, blocks, or since a graph cannot be had.
while read -r grain least most; do
    image "$grain" --steps 8 --grain "$grain"
    same "$grain"
    ((least <= graphs && graphs <= most)) || fail "$graphs graphs of $grain"
done <<'GRAINS'
operation 0 0
half-block 56 999
block 56 999
GRAINS
for call in record:1 ends:1 instantiate:2 replay:1 replay:3; do
    SMALTI_STANDIN_FAIL=$call image "$call" --steps 8
    same "$call"
done

# With memory that does not hold the model, so that weights come to other places, and over a hundred passes; another size
# and other steps between.
image limited --steps 8 --gpu-memory-limit 40M
same limited
image hundred --steps 100
[ "$graphs" -ge 90 ] || fail "$graphs graphs in a hundred steps"
image told --steps 100 --grain operation
cmp "$work/hundred.safetensors" "$work/told.safetensors" || fail 'a hundred steps: other latents'
cat >"$work/prompts.jsonl" <<'END_OF_PROMPTS'
{"prompt": "a red star", "num_inference_steps": 8}
{"prompt": "a blue ring", "num_inference_steps": 5, "width": 64, "height": 64}
{"prompt": "a red star", "num_inference_steps": 8, "scheduler": "euler"}
{"prompt": "a red star", "num_inference_steps": 8}
{"prompt": "a green square on black", "num_inference_steps": 3, "guidance_scale": 1}
END_OF_PROMPTS
for grain in auto operation; do
    mkdir "$work/$grain"
    SMALTI_STANDIN_UNITS=132 "$SMALTI" generate -P "$work/prompts.jsonl" --size 48x32 --save-latents -o "$work/$grain/" -q --cuda 1 --cpus 1 \
        --grain $grain
done
for latents in "$work/auto"/*.safetensors; do
    cmp "$latents" "$work/operation/${latents##*/}" || fail "${latents##*/}: other latents by graphs"
done
[ "$(files "$work/auto" | wc -w)" -ge 10 ] || fail "not five images: $(files "$work/auto")"

# Decoding in one band: some 160 commands, and copies of some 100 weights; in bands of four rows twice as many.
image tall --steps 1 --size 96x64 --precision bf16
rm "$work/calls"
SMALTI_STANDIN_UNITS=132 "$SMALTI" decode "$work/tall.safetensors" -o "$work/decoded.png" -q --cuda 1 --cpus 1 --precision bf16
read -r _ calls _ <"$work/calls"
[ "$calls" -le 300 ] || fail "$calls commands for decoding"

# Tiles are as large as the device's memory allows, and smaller beside CPUs: those help a small device, or where a policy is named.
while read -r multiprocessors memory tokens rows policy; do
    units=$multiprocessors image tiles --steps 1 --size 32x256 --gpu-memory-limit "$memory" ${policy:+--sched "$policy"}
    grep -qaF "\"tile_tokens\":$tokens,\"tile_rows\":$rows," "$work/tiles.png" ||
        fail "$multiprocessors, $memory: $(grep -ao '"tile_tokens":[0-9]*,"tile_rows":[0-9]*' "$work/tiles.png")"
done <<'TILES'
132 1G 16384 32
132 4M 4096 8
1 1G 4096 8
132 1G 4096 8 dmdas
TILES

# CPUs take nothing that a large device does.
SMALTI_STANDIN_UNITS=132 latents alone --cuda 1 --cpus 1 --trace "$work/trace"
python3 - "$work/trace" <<'END_OF_PROGRAM' || fail 'a CPU took what the device does'
import json, sys
events = json.load(open(sys.argv[1]))["traceEvents"]
cpu = {e["tid"] for e in events if e["name"] == "thread_name" and e["args"]["name"].startswith("CPU")}
bad = {e["name"] for e in events if e["ph"] == "X" and e.get("cat") == "task" and e["tid"] in cpu} & {"pass", "block", "matmul", "conv", "attention"}
sys.exit(print(*sorted(bad)) if bad else 0)
END_OF_PROGRAM
