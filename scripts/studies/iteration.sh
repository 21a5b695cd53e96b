# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
# shellcheck disable=SC2154 # what scripts/study sets
# What an iteration of training takes on an A800, by what is computed in it.

batch=20 card=1xA800-PCIe

# number KEY: of the JSON on standard input.
number() { grep -oE "\"$1\":[0-9.e+-]+" | head -n 1 | cut -d: -f2; }

# training PIXELS OPTION...: simulated seconds of a step, and GiB of the GPU at most.
training() {
    local pixels=$1 model=sigma-1024
    shift
    [ "$pixels" -gt 512 ] || model=sigma-$pixels
    "$SMALTI" simulate train --machine $card --model "$model" --size "${pixels}x$pixels" --batch $batch --json "$@" >"$work/step.json"
    awk -v step="$(number step <"$work/step.json")" -v peak="$(grep -oE '"peak":[0-9]+' "$work/step.json" | tail -n 1 | cut -d: -f2)" \
        'BEGIN { print step, peak / 2 ^ 30 }'
}

# captions ITEMS OPTION...: simulated seconds in which the text encoder computes so many captions, with the loading of its weights.
captions() {
    local items=$1
    shift
    "$SMALTI" simulate extract --machine $card --model sigma-512 --t5 --items "$items" --caption-tokens 290 --json "$@" | number makespan
}

# caption OPTION...: simulated seconds of a caption whose encoder's weights are there.
caption() {
    awk "BEGIN { print ($(captions 80 "$@") - $(captions 20 "$@")) / 60 }"
}

# encoding PIXELS: TFLOP of the VAE's encoder for a picture.
encoding() {
    "$SMALTI" encode "$work/$1.png" -m "$work/model" --plan --json | number flops | awk '{ print $1 / 1e12 }'
}

# picture PIXELS: a black one.
picture() {
    "${PYTHON:-python3}" - "$1" "$work/$1.png" <<'END_OF_PROGRAM'
import struct, sys, zlib
side, path = int(sys.argv[1]), sys.argv[2]
def chunk(kind, data):
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
rows = zlib.compress(bytes((1 + 3 * side) * side))
open(path, "wb").write(b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", side, side, 8, 2, 0, 0, 0)) + chunk(b"IDAT", rows) +
                       chunk(b"IEND", b""))
END_OF_PROGRAM
}

# column PIXELS: the cells of a size, one a line.
column() {
    local f32 f16 kept gpu cpu image
    picture "$1"
    f32=$(training "$1" --precision f32 --recompute block)
    f16=$(training "$1" --precision f16 --recompute block)
    kept=$(training "$1" --precision f16 --recompute none)
    gpu=$(caption --precision f16)
    cpu=$(caption --precision f32 --gpus 0)
    image=$(encoding "$1")
    awk -v batch=$batch -v f32="$f32" -v f16="$f16" -v kept="$kept" -v gpu="$gpu" -v cpu="$cpu" -v image="$image" '
        function cell(seconds) { printf seconds < 10 ? "%.2f s\n" : "%.0f s\n", seconds }
        BEGIN {
            split(f32, a, " "); split(f16, b, " "); split(kept, c, " ")
            vae = image / 15 # TFLOP/s of the card in f32
            cell(a[1] + batch * (cpu + vae)); cell(a[1] + batch * (gpu + vae)); cell(a[1] + batch * vae); cell(a[1]); cell(b[1]); cell(c[1])
            printf "%.0f GiB\n%.0f GiB\n%.0f GiB\n", a[2], b[2], c[2] }'
}

iteration() {
    work=$(mktemp -d)
    "${SMALTI%/*}/smalti-bench" make-model -q -g sigma-512 --hollow "$work/model"
    cat >"$work/names" <<'END'
all computed in the iteration, the captions on 8 cores in f32, all else in f32
... the captions on the GPU, in f16
captions' features stored
images' features stored, too
f16 with loss scaling
activations kept instead of computed again
memory of the GPU in f32
... in f16
... in f16, activations kept
END
    for pixels in 256 512 1024; do column $pixels >"$work/column.$pixels"; done
    echo "| | 256 px | 512 px | 1024 px |"
    echo "|---|---|---|---|"
    paste -d'|' "$work/names" "$work"/column.256 "$work"/column.512 "$work"/column.1024 | sed 's/|/ | /g; s/^/| /; s/$/ |/'
    rm -r "$work"
}
