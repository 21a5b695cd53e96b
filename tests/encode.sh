#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# `smalti encode`: images of every kind become latents, and back; what is wrong is said in one line.
# shellcheck source=command.sh
. "$(dirname "$0")/command.sh"
cd "$work"
images=$SMALTI_TESTDATA/pictures

encode() {
    timeout 900 "$SMALTI" encode "$@"
}

# holds FILE TENSOR SHAPE: f32, in a safetensors file.
holds() {
    local header
    header=$(tail -c +9 "$1" | head -c "$(od -An -tu8 -N8 "$1" | tr -d ' ')")
    [[ $header == *"\"$2\":{\"dtype\":\"F32\",\"shape\":[$3],"* ]] || fail "$1: no $2 [$3]: $header"
}

# One image: mean and deviation; the same whatever the workers, the policy and the kind of file.
expect 0 '1 image in' encode "$images/plain.png" -o plain.safetensors
grep -qF ': plain.safetensors' err || fail "the file is not named: $(cat err)"
[ "$(files .)" = "err out plain.safetensors" ] || fail "files: $(files .)"
holds plain.safetensors mean 4,4,5
holds plain.safetensors std 4,4,5
expect 0 '' encode "$images/plain.png" --tile-rows 3 -o one.safetensors --sched eager --cpus 1 -q
[ ! -s err ] || fail "--quiet says $(cat err)"
expect 0 '' encode "$images/plain.png" --tile-rows 3 -o two.safetensors
cmp one.safetensors two.safetensors
encode "$images/plain.png" -o - -q >stdout.safetensors
cmp plain.safetensors stdout.safetensors

# The same pixels in another file, turned by its orientation, or cropped about the centre.
for image in palette.png deep.png alpha.png lossless.webp turned-{2..8}.png odd.png; do
    expect 0 '' encode "$images/$image" -o same.safetensors
    cmp plain.safetensors same.safetensors || fail "$image: other latents"
done
grep -qF 'odd.png: cropped from 45x35 to 40x32 pixels' err || fail "cropping is not told: $(cat err)"
for image in plain.jpg cmyk.jpg; do
    expect 0 '' encode "$images/$image" -o same.safetensors
    holds same.safetensors mean 4,4,5
done

# An .npy file holds the means alone.
expect 0 '' encode "$images/plain.png" -o plain.npy
head -c 128 plain.npy | grep -qaF "'descr': '<f4', 'fortran_order': False, 'shape': (4, 4, 5)"
cmp <(tail -c 320 plain.npy) <(tail -c 640 plain.safetensors | head -c 320)
encode "$images/plain.png" --format npy -o - -q | cmp plain.npy

# Latents are drawn by the seed.
expect 0 '' encode "$images/plain.png" --sample -o seed-0.safetensors
expect 0 '' encode "$images/plain.png" --sample --seed 0 -o again.safetensors
expect 0 '' encode "$images/plain.png" --sample --seed 1 -o seed-1.safetensors
cmp seed-0.safetensors again.safetensors
! cmp -s seed-0.safetensors seed-1.safetensors || fail "the seed is not used"
holds seed-0.safetensors latents 4,4,5
expect 0 '' encode "$images/plain.png" --sample -o seed-0.npy
expect 0 '' "$SMALTI" decode seed-0.npy -o from-npy.ppm
expect 0 '' "$SMALTI" decode seed-0.safetensors -o from-safetensors.ppm
cmp from-npy.ppm from-safetensors.ppm

# Several of a size in one file, each as it is alone; other sizes do not fit there.
expect 0 '3 images in' encode "$images"/{plain,palette,odd}.png -o three.safetensors
holds three.safetensors mean 3,4,4,5
cmp <(tail -c 1920 three.safetensors | head -c 320) <(tail -c 320 plain.npy)
cmp <(tail -c 1280 three.safetensors | head -c 320) <(tail -c 320 plain.npy)
expect 0 '' encode "$images"/{plain,palette}.png --json -o two.safetensors
[ "$(wc -l <out)" -eq 3 ] || fail "not a line for each image: $(cat out)"
grep -qF 'palette.png","status":"ok","width":40,"height":32,' out || fail "$(cat out)"
grep -qF '{"summary":{"made":2,"skipped":0,"failed":0,' out || fail "$(cat out)"

# There and back: the image that a decoder made comes back nearly as it was.
golden=$SMALTI_TESTDATA/golden/generate
expect 0 '' "$SMALTI" decode "$golden/00.safetensors" -o there.ppm
expect 0 '' "$SMALTI" decode "$golden/00.safetensors" -o there.png
expect 0 '' encode there.png -o there.safetensors
expect 0 '' "$SMALTI" decode there.safetensors --key mean --raw -o back.ppm
# What encode writes, decode reads: the mean is not scaled, with --raw or without.
for options in '' '--raw' '--key mean'; do
    # shellcheck disable=SC2086 # words
    expect 0 '' "$SMALTI" decode there.safetensors $options -o again.ppm
    cmp back.ppm again.ppm
done
expect 0 'decode these means with --raw' encode "$images/plain.png" -o there.npy
expect 1 'encode --sample' "$SMALTI" generate -p a --latents there.safetensors -o never.png
[ "$(head -c 15 there.ppm)" = "$(head -c 15 back.ppm)" ] || fail "sizes: $(head -c 15 back.ppm)"
psnr=$(paste <(tail -c +16 there.ppm | od -An -v -tu1 -w1) <(tail -c +16 back.ppm | od -An -v -tu1 -w1) |
    awk '{ s += ($1 - $2)^2 } END { print s ? int(10 * log(255^2 * NR / s) / log(10)) : 99 }')
[ "$psnr" -ge 20 ] || fail "there and back: $psnr dB"

# What is wrong: one line, at once, and no file.
mkdir made
# wrong STATUS WORDS OPTION...
wrong() {
    local wanted=$1 words=$2
    shift 2
    refuse "$wanted" "$words" encode "$@"
    [ -z "$(files made)" ] || fail "$*: left $(files made)"
}
out=made/x.safetensors
wrong 2 'name an image' -o $out
wrong 2 'give -o' "$images/plain.png"
wrong 2 'standard input' - -o $out
wrong 2 '.safetensors or .npy' "$images/plain.png" -o made/x.png
wrong 2 'is a directory' "$images/plain.png" -o made/
wrong 2 'is a directory' "$images/plain.png" -o made
wrong 2 '--seed' "$images/plain.png" --seed 1 -o $out
wrong 2 '--json' "$images/plain.png" --json -o -
wrong 2 'f32, bf16' "$images/plain.png" --precision f64 -o $out
wrong 2 'lws' "$images/plain.png" --sched nosuch -o $out
wrong 2 'did you mean' "$images/plain.png" --smaple -o $out
wrong 1 'cannot be made' "$images/plain.png" -o made/missing/x.npy
wrong 1 'expected a file' "$images/plain.png" --format npy -o /dev/null
wrong 1 'No such file' missing.png -o $out
wrong 1 'no such directory' "$images/plain.png" --vae missing -o $out
wrong 1 'directory' "$images" -o $out
wrong 1 'one.png: an image of 1x1' "$images/one.png" -o $out
wrong 1 'line.png: an image of 100000x1' "$images/line.png" -o $out
wrong 1 '200000x200000' "$images/bomb.png" -o $out
wrong 1 'of memory at least' "$images/large.png" -o $out
wrong 1 'encode them one by one' "$images/plain.png" "$images/turned-6.png" there.png -o $out
for image in plain.png plain.jpg lossless.webp; do
    for bytes in 0 3 40; do
        head -c $bytes "$images/$image" >"cut-$image"
        wrong 1 "cut-$image" "cut-$image" -o $out
    done
    head -c -20 "$images/$image" >"cut-$image"
    wrong 1 "cut-$image" "cut-$image" -o $out
done
wrong 1 'cut-plain.png' "$images/plain.png" cut-plain.png -o $out
printf 'GIF89a..........' >x.gif
wrong 1 'GIF' x.gif -o $out

# A file that is there stays as it was when the new one fails.
expect 0 '' encode "$images/plain.png" -o made/kept.npy
cp made/kept.npy kept.npy
expect 1 'cut-plain.png' encode cut-plain.png -o made/kept.npy
[ "$(files made)" = kept.npy ] || fail "left $(files made)"
cmp made/kept.npy kept.npy
rm made/kept.npy

# A full disk, a closed pipe.
limited() {
    (
        ulimit -f 40 # KiB: enough for StarPU's own files
        exec "$@"
    )
}
many=("$golden"/00.png{,,,,,,,,,,,})
expect 1 'File too large' limited "$SMALTI" encode "${many[@]}" -o made/x.npy
[ -z "$(files made)" ] || fail "left $(files made)"
to_full_disk() {
    "$@" >/dev/full
}
to_nobody() {
    "$@" | true
}
expect 1 'No space left' to_full_disk "$SMALTI" encode "$images/plain.png" -o -
expect 1 'Broken pipe' to_nobody "$SMALTI" encode "$images/plain.png" -o -


expect 0 '' "$SMALTI" encode --help
grep -qF -e '--sample' out
