#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# `smalti decode` in little memory: a plan says what it takes, the same bands give the same image, scratch leaves
# nothing behind.
# shellcheck source=command.sh
. "$(dirname "$0")/command.sh"
cd "$work"

# Latents [4, 128, 128] of F16 between 0.13 and 0.65: digits, two by two.
header='{"latents":{"dtype":"F16","shape":[4,128,128],"data_offsets":[0,131072]}}'
seq 30000 | tr -d '\n' >digits
{
    printf '%b\0\0\0\0\0\0\0%s' "\\x$(printf %02x ${#header})" "$header"
    head -c 131072 digits
} >latents.safetensors

decode() {
    timeout 900 "$SMALTI" decode latents.safetensors --tile-rows 2 "$@"
}

# least OPTION...: megabytes that a refusal names.
least() {
    expect 1 'MB of memory at least' decode --memory-limit 192M -o x.png "$@"
    sed 's/.* needs \([0-9]*\) MB of memory at least.*/\1/' err
}

# A plan is printed and nothing done; it needs no output.
expect 0 '' decode --plan
grep -qE '^decoding 1024x1024 pixels in bands of [0-9]+ latent rows$' out || fail "no plan: $(cat out)"
grep -qE '^decoder\.conv_out +1024 +1024 +3 ' out || fail "no list of maps: $(cat out)"
expect 0 '' decode --plan --json --memory-limit 300M
grep -q '"plan":{"tile_rows":.*"storage":"recompute"' out || fail "no JSON: $(cat out)"
expect 1 'MB of memory at least' decode --plan --memory-limit 192M
expect 0 '' "$SMALTI" generate -p star --steps 1 --size 64x64 -o image.png
expect 0 '' "$SMALTI" encode --plan image.png
grep -qE '^encoding 64x64 pixels' out || fail "no plan: $(cat out)"

# The limit that a refusal names is enough, and the same bands give the same bytes.
mkdir scratch
expect 0 '' decode -o plenty.ppm
memory=$(least)
expect 0 '' decode -o little.ppm --memory-limit "${memory}M"
cmp plenty.ppm little.ppm
on_disk=$(least --scratch scratch)
[ "$on_disk" -lt "$memory" ] || fail "scratch saves nothing: $on_disk of $memory MB"
expect 0 '' decode -o offloaded.ppm --memory-limit "${on_disk}M" --scratch scratch
cmp plenty.ppm offloaded.ppm
[ -z "$(ls -A scratch)" ] || fail "left in scratch: $(ls -A scratch)"

# A full scratch disk ends it, and nothing stays; nor does it after a kill.
expect 1 "'missing'" decode -o x.ppm --memory-limit "${on_disk}M" --scratch missing
full() {
    (
        ulimit -f 4096
        decode -o x.ppm --memory-limit "${on_disk}M" --scratch scratch
    )
}
expect 1 "scratch directory 'scratch' cannot be written: File too large" full
"$SMALTI" decode latents.safetensors --tile-rows 2 -o x.ppm --memory-limit "${on_disk}M" --scratch scratch &
sleep 0.3
kill -KILL $! || fail "it ended before it could be killed"
wait $! 2>/dev/null || true
[ -z "$(ls -A scratch)" ] || fail "left in scratch: $(ls -A scratch)"
[ ! -e x.ppm ] || fail "half an image is there"
