#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# `smalti decode`: latents become images, streamed into files that are whole or not there.
# shellcheck source=command.sh
. "$(dirname "$0")/command.sh"
cd "$work"
golden=$SMALTI_TESTDATA/golden

# In the bands that generate has.
decode() {
    timeout 900 "$SMALTI" decode --tile-rows 8 "$@"
}

# safetensors DTYPE SHAPE: of one tensor "latents"; its numbers come from the standard input.
safetensors() {
    local data=numbers header
    cat >$data
    header="{\"latents\":{\"dtype\":\"$1\",\"shape\":[$2],\"data_offsets\":[0,$(wc -c <$data)]}}"
    printf '%b\0\0\0\0\0\0' "\\x$(printf %02x $((${#header} % 256)))\\x$(printf %02x $((${#header} / 256)))"
    printf %s "$header"
    cat $data
}

zeros() {
    head -c "$1" /dev/zero
}

# What generate kept becomes the very image that it made.
expect 0 '' "$SMALTI" generate -p 'a red star' --size 96x64 --steps 2 --save-latents -o star.png
expect 0 '1 image in' decode star.safetensors -o again.png
grep -qF ': again.png' err || fail "the file is not named: $(cat err)"
expect 0 '' decode star.safetensors -o star.ppm
expect 0 '' "$SMALTI" encode star.png -o one.npy
expect 0 '' "$SMALTI" encode again.png -o other.npy
cp one.npy star.npy
cmp one.npy other.npy

# The same whatever the workers, the policy and where it goes; nothing else is written.
mkdir directory
expect 0 '' decode star.safetensors --tile-rows 3 --bits 16 -o one.ppm -q --sched eager --cpus 1
[ ! -s err ] || fail "--quiet says $(cat err)"
expect 0 '' decode star.safetensors --tile-rows 3 --bits 16 -o two.ppm
cmp one.ppm two.ppm
expect 0 '' decode star.safetensors -o directory/star.ppm
expect 0 '' decode star.safetensors --format ppm -o directory/
decode star.safetensors --format ppm -o - -q >stdout.ppm
[ "$(files directory)" = star.ppm ] || fail "files: $(files directory)"
cmp star.ppm directory/star.ppm
cmp star.ppm stdout.ppm
[ "$(head -n 3 star.ppm | tr '\n' ' ')" = 'P6 96 64 255 ' ] || fail "$(head -n 3 star.ppm)"
[ "$(wc -c <star.ppm)" -eq $((13 + 96 * 64 * 3)) ] || fail "size: $(wc -c <star.ppm)"
decode star.safetensors -o - -q | cmp again.png

# 16 bits: the same levels, finer.
expect 0 '' decode star.safetensors --bits 16 -o deep.ppm
expect 0 '' decode star.safetensors --bits 16 -o deep.png
[ "$(head -n 3 deep.ppm | tr '\n' ' ')" = 'P6 96 64 65535 ' ] || fail "$(head -n 3 deep.ppm)"
[ "$(wc -c <deep.ppm)" -eq $((15 + 96 * 64 * 6)) ] || fail "size: $(wc -c <deep.ppm)"
tail -c +14 star.ppm | od -An -v -tu1 -w1 >levels
worst=$(tail -c +16 deep.ppm | od -An -v -tu2 --endian=big -w2 | paste levels - |
    awk '{ d = $1 * 257 - $2; d = d < 0 ? -d : d; if (d > m) m = d } END { print m }')
{ [ "$worst" -gt 0 ] && [ "$worst" -le 129 ]; } || fail "16 bits differ by $worst of 65535"

# Other bands are the same image but for rounding, other precisions nearly.
expect 0 '' decode star.safetensors --tile-rows 1 -o bands.ppm
expect 0 '' decode star.safetensors --precision bf16 -o bf16.ppm
expect 0 '' decode star.safetensors --precision f16 -o f16.ppm
expect 0 '' decode star.safetensors --raw -o raw.ppm
differ() {
    cmp -l "$1" "$2" | awk '{ n++ } END { print n + 0 }'
}
[ "$(differ star.ppm bands.ppm)" -le 20 ] || fail "bands: $(differ star.ppm bands.ppm) values differ"
[ "$(differ star.ppm f16.ppm)" -gt 0 ] || fail "f16 is f32"
[ "$(differ star.ppm f16.ppm)" -le 1000 ] || fail "f16: $(differ star.ppm f16.ppm) values differ"
[ "$(differ star.ppm raw.ppm)" -gt 1000 ] || fail "--raw is not used"

# Several, one of them, half types, a tensor by its name.
zeros 192 | safetensors F32 2,4,2,3 >two.safetensors
zeros 48 | safetensors BF16 4,2,3 >small.safetensors
expect 0 '2 images in' decode two.safetensors -o several/
[ "$(files several)" = "two-0.png two-1.png" ] || fail "files: $(files several)"
cmp several/two-0.png several/two-1.png
expect 0 '' decode two.safetensors --index 1 -o several/
expect 0 '' decode two.safetensors --index 1 -o single.png
expect 0 '' decode small.safetensors --key latents -o small.png
cmp several/two-0.png single.png
cmp small.png single.png
expect 0 '' decode two.safetensors --json -o several/
[ "$(wc -l <out)" -eq 3 ] || fail "not a line for each image: $(cat out)"
grep -qF '{"file":"several/two-1.png","status":"ok","width":24,"height":16,' out || fail "$(cat out)"
expect 0 '' decode two.safetensors --index 0 --trace trace.json -o traced.png
grep -qF '"traceEvents"' trace.json

# What is wrong: one line, at once, and no file.
mkdir made
# wrong STATUS WORDS OPTION...
wrong() {
    local wanted=$1 words=$2
    shift 2
    refuse "$wanted" "$words" decode "$@"
    [ -z "$(files made)" ] || fail "$*: left $(files made)"
}
wrong 2 'one file of latents, found 0' -o made/x.png
wrong 2 'one file of latents, found 2' star.safetensors star.safetensors -o made/x.png
wrong 2 'standard input' - -o made/x.png
wrong 2 'give -o' star.safetensors
wrong 2 '.png or .ppm' star.safetensors -o made/x.jpg
wrong 2 "end it with '/'" two.safetensors -o made/x.png
wrong 2 '--json' star.safetensors --json -o -
wrong 2 'expected 0 to 1, found 2' two.safetensors --index 2 -o made/x.png
wrong 2 '8, 16' star.safetensors --bits 12 -o made/x.png
wrong 2 'f32, bf16' star.safetensors --precision f64 -o made/x.png
wrong 2 'lws' star.safetensors --sched nosuch -o made/x.png
wrong 2 'did you mean' star.safetensors --tiel-rows 1 -o made/x.png
wrong 1 'cannot be made' star.safetensors -o made/missing/x.png
wrong 1 'expected a file' star.safetensors --format png -o /dev/null
wrong 2 'no name' star.npy --key latents -o made/x.png
wrong 1 'No such file' missing.safetensors -o made/x.png
wrong 1 'no such directory' star.safetensors -m missing -o made/x.png
wrong 1 'directory' directory -o made/x.png
zeros $((2 * 4 * 1024 * 1024)) | safetensors F16 4,1024,1024 >huge.safetensors
wrong 1 'of memory at least' huge.safetensors --memory-limit 192M -o made/x.png
wrong 1 'nosuch' star.safetensors --key nosuch -o made/x.png
wrong 1 '"latents"' "$golden/t5.safetensors" -o made/x.png
# bad WORDS DTYPE SHAPE BYTES: latents of a shape that is none.
bad() {
    zeros "$4" | safetensors "$2" "$3" >bad.safetensors
    wrong 1 "$1" bad.safetensors -o made/x.png
    grep -qF 'bad.safetensors' err || fail "not named: $(cat err)"
}
bad 'axes' F32 6 24
bad 'axes' F32 2,3 24
bad 'axes' F32 1,1,4,2,3 96
bad '' F32 4,0,3 0
bad '' F32 0,4,2,3 0
bad 'channels' F32 3,2,3 72
bad 'channels' F32 1,16,2,3 384
bad '' I32 4,2,3 96
for bytes in 0 7 60; do
    head -c $bytes star.safetensors >cut.safetensors
    wrong 1 'cut.safetensors' cut.safetensors -o made/x.png
done
printf 'hello, world' >text.npy
wrong 1 'text.npy' text.npy -o made/x.png

# Numbers that are none are named with their place; the others of a batch are made.
{ zeros 60 && printf '\0\0\300\177' && zeros 128; } | safetensors F32 2,4,2,3 >nan.safetensors
expect 3 'nan.safetensors: item 0, channel 2, row 1, column 0: ' decode nan.safetensors -o partly/
[ "$(files partly)" = nan-1.png ] || fail "left $(files partly)"
cmp partly/nan-1.png single.png
wrong 1 'column 0: a finite number was expected, found nan' nan.safetensors --index 0 -o made/x.png
{ zeros 188 && printf '\0\0\200\377'; } | safetensors F32 2,4,2,3 >inf.safetensors
wrong 1 'item 1, channel 3, row 1, column 2: ' inf.safetensors --index 1 -o made/x.png
grep -qF 'found -inf' err || fail "$(cat err)"

# What f16 has not is no image; a VAE that is said to have it is computed in f32.
for _ in {1..96}; do
    printf '\0\044\164\111' # 1e6
done | safetensors F32 1,4,4,6 >large.safetensors
expect 0 '' decode large.safetensors --raw -o large.png
wrong 1 'computing in f16: it has none beyond 65504, so choose the precision bf16 or f32' \
    large.safetensors --raw --precision f16 -q -o made/x.png
cp -r "$SMALTI_MODELS/tesserae/vae" vae
chmod -R u+w vae
sed -i 's/"force_upcast": false/"force_upcast": true/' vae/config.json
expect 0 '' decode large.safetensors --raw --precision f16 --vae vae -o upcast.png
cmp upcast.png large.png
wrong 1 'precision tf32: only CUDA devices have it, and there is none: choose f32' star.safetensors --precision tf32 -o made/x.png

# Weights that are readable and yet no numbers; no decoder at all.
weights=vae/diffusion_pytorch_model.safetensors
sed -i 's/decoder.conv_in.bias/decoder.conv_in.bais/' $weights
wrong 1 'decoder.conv_in.bias' star.safetensors --vae vae -o made/x.png
{ head -c -20000 "$SMALTI_MODELS/tesserae/$weights" && zeros 20000 | tr '\0' '\377'; } >$weights
wrong 1 'not finite' star.safetensors --vae vae -o made/x.png

# Numbers that no model can compute with: it is not the weights alone that may be the cause.
for _ in {1..64}; do printf '\xe6\xb1\x61\x7f'; done | safetensors F32 1,4,4,4 >huge.safetensors
too_large='are damaged; or the latents, with values up to 3e+38, are too large'
wrong 1 "$too_large" huge.safetensors -o made/x.png
refuse 1 "$too_large" "$SMALTI" generate -p 'a red star' --steps 2 --latents huge.safetensors -o made/x.png

# A full disk, a closed pipe, a signal: half a file is none.
limited() {
    (
        ulimit -f 34 # KiB: enough for StarPU's own files
        exec "$@"
    )
}
expect 1 'File too large' limited "$SMALTI" decode star.safetensors --bits 16 -o made/x.ppm
[ -z "$(files made)" ] || fail "left $(files made)"
cp star.ppm made/x.ppm
expect 1 'File too large' limited "$SMALTI" decode star.safetensors --bits 16 --raw -o made/x.ppm
cmp star.ppm made/x.ppm
rm made/x.ppm
to_full_disk() {
    "$@" >/dev/full
}
to_nobody() {
    "$@" | true
}
expect 1 'No space left' to_full_disk "$SMALTI" decode star.safetensors -o -
expect 1 'No space left' to_full_disk "$SMALTI" decode star.safetensors --plan
expect 1 'No space left' to_full_disk "$SMALTI" decode star.safetensors --plan --json
expect 1 'Broken pipe' to_nobody "$SMALTI" decode star.safetensors --format ppm -o -
zeros $((4 * 4 * 256 * 256)) | safetensors F32 4,256,256 >large.safetensors
for signal in INT TERM; do
    env --default-signal=INT "$SMALTI" decode large.safetensors --tile-rows 4 -o made/x.ppm 2>err &
    for ((i = 0; i < 300; i++)); do
        [ -z "$(files made)" ] || break
        sleep 0.1
    done
    kill -$signal $!
    status=0
    wait $! || status=$?
    [ $status -eq 1 ] || fail "SIG$signal: status $status: $(cat err)"
    grep -qF "stopped by SIG$signal: 0 images made, 1 left" err || fail "$(cat err)"
    [ -z "$(files made)" ] || fail "SIG$signal: left $(files made)"
done


# Who waits for long is told how much is done and how long it will take.
mkfifo pipe
"$SMALTI" decode large.safetensors -o made/x.ppm 2>pipe &
found=
while [ -z "$found" ] && read -r -t 300 line; do
    [[ $line =~ ^[0-9]+\ %,\ decoding,\ [0-9:]+\ ?s?\ left$ ]] && found=$line
done <pipe
kill -KILL $!
wait $! || true
[ -n "$found" ] || fail "no progress, at last: ${line:-none}"

expect 0 '' "$SMALTI" decode --help
grep -qF -e '--raw' out
