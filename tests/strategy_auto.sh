#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# --strategy auto and --shares auto: on one place what an image is without them, on two OpenCL devices (PoCL's) an exact
# strategy by the devices' speed, which an image's metadata names: by that it is made again, to the bit.
# shellcheck source=command.sh
. "$(dirname "$0")/command.sh"
# shellcheck source=device_images.sh
. "$(dirname "$0")/device_images.sh"

# told KEY NAME: what the metadata of an image says.
told() {
    grep -aom 1 "\"$1\":\"[^\"]*\"" "$work/$2.png" | cut -d '"' -f 4
}

latents cpu --cpus 1
latents alone --cpus 1 --strategy auto
cmp "$work/cpu.safetensors" "$work/alone.safetensors" || fail 'auto on one place: another image'
[ "$(told strategy alone) $(told shares alone)" = 'patch1 1' ] || fail "on one place: $(told strategy alone) $(told shares alone)"

use_pocl 'auto on devices'
devices=(--opencl 2 --cpus 1 --reproducible)
refuse_auto=("$SMALTI" generate -p 'a red star' --size 64x48 --steps 1 -o "$work/refused.png" "${devices[@]}")
expect 1 'strategy auto: expected an exact strategy' "${refuse_auto[@]}" --strategy auto --gpu-memory-limit 3M
expect 1 'or auto' "${refuse_auto[@]}" --shares automatic
expect 1 'expected a name (patch, ring)' "${refuse_auto[@]}" --strategy auto --shares 1,1@2

latents auto "${devices[@]}" --strategy auto
near auto
[[ $(told strategy auto) =~ ^(hybrid:)?(patch|ring|ulysses|tensor|cfg) ]] || fail "auto became $(told strategy auto)"
latents again "${devices[@]}" --strategy "$(told strategy auto)" --shares "$(told shares auto)"
cmp "$work/auto.png" "$work/again.png" || fail "$(told strategy auto) $(told shares auto): another image, or metadata"

# A plan says what each device bears, and makes nothing: both halves of 24 tokens get the other's keys and values, f32
# [12, 144], in 5 blocks of both branches and once in the first one. tests/test_transfers has what StarPU moves.
"$SMALTI" generate -p 'a red star' --size 96x64 "${devices[@]}" --strategy patch --plan --json -o "$work/none.png" \
    >"$work/plan.json" || fail "--plan"
[ "$(grep -o "\"bytes_keys\":$((2 * 12 * 144 * 4 * 11))," "$work/plan.json" | wc -l)" -eq 2 ] || fail "--plan: $(cat "$work/plan.json")"
[ ! -e "$work/none.png" ] || fail "--plan made an image"
shown=$("$SMALTI" generate -p 'a red star' --strategy ulysses "${devices[@]}" --plan) || fail "--plan"
[[ $shown == *CPUs*'OpenCL 0'*'OpenCL 1'* ]] || fail "--plan: $shown"

export SMALTI_SLOWDOWN=opencl1:3
latents shares "${devices[@]}" --shares auto
near shares
[ "$(told shares shares)" = 0:1:0.33 ] || fail "one device is three times as slow: $(told shares shares)"
