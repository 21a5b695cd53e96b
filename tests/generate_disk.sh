#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# `smalti generate`: a disk that takes no more fails the images that do not fit, and leaves no part of them.
# shellcheck source=command.sh
. "$(dirname "$0")/command.sh"
trap 'umount "$work/disk" 2>/dev/null || true; rm -rf "$work"' EXIT
cd "$work"

cat >prompts.jsonl <<'LINES'
{"id": "small", "prompt": "a red star", "width": 16, "height": 16}
{"id": "large", "prompt": "a red star above a blue ring", "width": 512, "height": 384}
{"id": "last", "prompt": "a green heart", "width": 16, "height": 16}
LINES
command=("$SMALTI" generate --prompts prompts.jsonl --steps 2 --save-latents)
expect 0 '' "${command[@]}" -o whole/

# limited KIB COMMAND...: no file may grow larger.
limited() {
    (
        ulimit -f "$1"
        shift
        exec "$@"
    )
}

# partly DIRECTORY: the small images are there, the large one is not, nor any part of it.
partly() {
    grep -qE "large.*: (File too large|No space left on device)" err || fail "no reason: $(cat err)"
    [ "$(grep -cv ' %, ' err)" -eq 2 ] || fail "not one failure and the sum: $(cat err)"
    [ "$(files "$1")" = "last.png last.safetensors small.png small.safetensors" ] ||
        fail "left $(files "$1")"
    for file in "$1"/*; do
        cmp "$file" "whole/${file##*/}"
    done
}

expect 3 '2 images' limited 40 "${command[@]}" -o limited/
partly limited
mkdir traces
expect 1 'File too large' limited 40 "$SMALTI" generate -p 'a red star' -s 512x384 --steps 2 -o one.png
[ ! -e one.png ] || fail "one.png is there"
expect 1 'traces/t.json: cannot be written: File too large' \
    limited 40 "$SMALTI" generate -p 'a red star' --steps 8 -o one.png --trace traces/t.json
[ -z "$(files traces)" ] || fail "a part of a trace: $(files traces)"
expect 0 '2 made earlier' "${command[@]}" -o limited/ --resume
same whole limited

mkdir disk
if mount -t tmpfs -o size=24k none disk 2>/dev/null; then
    expect 3 '2 images' "${command[@]}" -o disk/
    partly disk
    mount -o remount,size=1m disk
    expect 0 '2 made earlier' "${command[@]}" -o disk/ --resume
    same whole disk
    # What does not fit into memory, nor into the scratch directory.
    rm disk/*
    offloaded=("$SMALTI" generate -p 'a red star' -s 512x512 --steps 1 --memory-limit 192M --scratch disk -q -o no.png)
    refuse 1 "scratch directory 'disk' has " "${offloaded[@]}"
    mount -o remount,size=17m disk
    refuse 1 "scratch directory 'disk' cannot be written: No space left on device: name another one" "${offloaded[@]}"
    [ -z "$(ls -A disk)" ] || fail "left in the scratch directory: $(ls -A disk)"
    [ ! -e no.png ] || fail "no.png is there"
fi
