#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# `smalti generate`: where images go, what they say of themselves, what is reported.
# shellcheck source=command.sh
. "$(dirname "$0")/command.sh"
cd "$work"

generate() {
    "$SMALTI" generate --steps 2 --size 32x32 "$@"
}

# text WORDS FILE: the metadata holds them.
text() {
    grep -qaF -e "$1" "$2" || fail "$2: no $1"
}

# One image: the default name, a name, a directory, the standard output; the same bytes everywhere.
expect 0 '1 image in' generate -p 'a red star'
[ "$(files .)" = "err image.png out" ] || fail "files: $(files .)"
[ "$(head -c 8 image.png | od -An -tx1)" = ' 89 50 4e 47 0d 0a 1a 0a' ] || fail "no PNG"
grep -qF 'image.png' err || fail "the path is not shown: $(cat err)"
expect 0 '' generate -p 'a red star' -o named.png -q
[ ! -s err ] || fail "--quiet says $(cat err)"
expect 0 '' generate -p 'a red star' -o directory/
mkdir existing
expect 0 '' generate -p 'a red star' -o existing
generate -p 'a red star' -o - -q >stdout.png
for file in named.png directory/1.png existing/1.png stdout.png; do
    cmp image.png "$file"
done

# What the pixels depend on, exactly; no other request has the same text.
text '"prompt":"a red star","negative_prompt":"","seed":0,"image":0,"images":1,"width":32,"height":32' image.png
text '"num_inference_steps":2,"guidance_scale":4.5,"scheduler":"dpm++","noise":"f32","cleaning":"basic"' image.png
grep -qaE '"tile_tokens":[0-9]+,"tile_rows":[0-9]+,"precision":"f32","model":"[0-9a-f]{32}"' image.png
grep -qaE 'Software.smalti [0-9]' image.png
expect 0 '' generate -p 'ein grüner Ring' --seed -1 --scheduler euler --noise f16 --guidance 1 -o other.png
text '"prompt":"ein grüner Ring"' other.png
text '"seed":18446744073709551615' other.png
text '"guidance_scale":1,"scheduler":"euler","noise":"f16"' other.png

# diffusers' names of the arguments.
expect 0 '' "$SMALTI" generate --prompt 'ein grüner Ring' --seed -1 --scheduler euler --noise f16 --guidance-scale 1 \
    --num-inference-steps 2 --width 32 --height 32 --num-images-per-prompt 1 --negative-prompt '' -o aliases.png
cmp other.png aliases.png

# Several: numbers as names, images of one prompt from one stream of noise.
expect 0 '3 images in' generate -p 'a red star' -p two -p three -o several/
[ "$(files several)" = "1.png 2.png 3.png" ] || fail "files: $(files several)"
cmp image.png several/1.png
expect 0 '' generate -p 'a red star' --images 2 -o images/
[ "$(files images)" = "1-0.png 1-1.png" ] || fail "files: $(files images)"
! cmp -s images/1-0.png images/1-1.png || fail "both images are the same"

# Lines win over options; blank lines count; text files are prompts as they stand.
cat >lines.jsonl <<'LINES'
{"id": "star", "prompt": "a red star", "seed": 7}

{"prompt": "a ring", "width": 48, "height": 16, "num_inference_steps": 3, "guidance_scale": 0, "scheduler": "ddim", "negative_prompt": "a heart"}
LINES
expect 0 '' generate --prompts lines.jsonl --seed 9 -o lines/
[ "$(files lines)" = "3.png star.png" ] || fail "files: $(files lines)"
text '"seed":7,' lines/star.png
text '"negative_prompt":"a heart","seed":9,"image":0,"images":1,"width":48,"height":16,"num_inference_steps":3' lines/3.png
printf 'a red star\n' | expect 0 '' generate --prompts - -o stdin/
cmp image.png stdin/1.png
printf 'a red star' >line
expect 0 '' generate --prompts line -o line.png
cmp image.png line.png

# One bad line of several is named, the others are made.
printf '{"prompt": "a"}\n{"prompt": 5}\n{"prompt": "b", "width": 5}\n{"prompt": "c", "scheduler": "x"}\n' >some.jsonl
expect 3 'some.jsonl:2: ' generate --prompts some.jsonl -o some/
[ "$(files some)" = "1.png" ] || fail "files: $(files some)"
for line in 3 4; do
    grep -qF "some.jsonl:$line: " err || fail "line $line is not named: $(cat err)"
done

# Made at the size of a bin of the same aspect ratio, then resized and cropped; a size that is a bin stays.
cp -r "$SMALTI_MODELS/tesserae" binned
chmod -R u+w binned
sed -i 's/"sample_size": 16/"sample_size": 32/' binned/transformer/config.json
binned() {
    expect 0 '' "$SMALTI" generate --steps 2 -p 'a red star' -m binned "$@"
}
binned --size 100x60 --resolution-binning --save-latents -o bin.png
text '"width":100,"height":60,"use_resolution_binning":true' bin.png
grep -qaF '"shape":[1,4,24,40]' bin.safetensors
binned --size 320x192 -o plain.png
binned --size 320x192 --resolution-binning -o same.png
cmp <("$SMALTI" encode plain.png -o - --format npy) <("$SMALTI" encode same.png -o - --format npy)
echo '{"prompt": "a red star", "width": 100, "height": 60, "use_resolution_binning": true}' >binned.jsonl
expect 0 '' "$SMALTI" generate --steps 2 -m binned --prompts binned.jsonl -o line.png
cmp bin.png line.png
refuse 1 'found 128' generate -p 'a red star' --resolution-binning -o wrong.png
refuse 1 'give one of both' "$SMALTI" generate -p 'a red star' -m binned --resolution-binning --latents bin.safetensors -o wrong.png

# What is not read of a prompt, once: words past its last token, and those that the model was not trained on.
long=$(printf 'a red star %.0s' {1..150})
expect 0 'prompt 2: only the first 299 tokens of the prompt are read, which leaves out "' \
    generate -p 'a red star' -p "${long}a green ring" --images 2 -o unread/
[ "$(grep -c 'smalti generate: ' err)" -eq 1 ] || fail "not once: $(cat err)"
expect 0 '' generate -p "${long}a green ring" --images 2 -o unread/ --json
[ "$(grep -cE '"cut":"[a-z ]* a green ring","seconds"' out)" -eq 2 ] || fail "cut: $(cat out)"
expect 0 '' generate -p "${long:0:1094}" -o unread.png # 299 words, a token each
! grep -q leaves err || fail "299 tokens: $(cat err)"
expect 0 'leaves out "s"' generate -p "${long:0:1096}" -o unread.png
expect 0 'smalti generate: words that the model was not trained on: tree, beside, grey, häuser' \
    generate -p $'A Tree,\nbeside a grey tree on the left; Häuser' -o unread.png
expect 0 '' generate -p 'a tree' -o unread.png --json
grep -qF '"unknown_words":"tree"' out
for option in -q "--transformer=$SMALTI_MODELS/tesserae/transformer"; do
    expect 0 '' generate -p 'a tree' -o unread.png "$option"
    ! grep -q trained err || fail "$option: $(cat err)"
done

# Reports for programs.
expect 3 '' generate --prompts some.jsonl -o some/ --json
[ "$(wc -l <out)" -eq 5 ] || fail "not five lines: $(cat out)"
grep -qF '{"id":"1","file":"some/1.png","status":"ok","seed":0,"width":32,"height":32,"image":0,"seconds":' out
[ "$(grep -c '"status":"failed","error":"some.jsonl:[234]: ' out)" -eq 3 ] || fail "failures: $(cat out)"
tail -n 1 out | grep -qE '^\{"summary":\{"made":1,"skipped":0,"failed":3,"seconds":[0-9.]+\}\}$'
expect 1 'standard output' sh -c 'exec "$@" >/dev/full' sh "$SMALTI" generate --steps 1 --size 16x16 -p a --json -o full.png

# Latents out, and in again: shape, content, size.
expect 0 '' generate -p 'a red star' --save-latents -o kept.png
expect 0 '' generate -p 'a red star' --save-latents -o kept/
cmp kept.safetensors kept/1.safetensors
cmp kept.png image.png
[ "$(wc -c <kept.safetensors)" -eq $((8 + 72 + 4 * 4 * 4 * 4)) ] || fail "size: $(wc -c <kept.safetensors)"
grep -qaF '{"latents":{"dtype":"F32","shape":[1,4,4,4],"data_offsets":[0,256]}}' kept.safetensors
expect 0 '' "$SMALTI" generate --steps 2 --latents kept.safetensors -p 'a red star' -o again.png
text '"width":32,"height":32' again.png
text '"latents":"' again.png
! cmp -s again.png image.png || fail "the latents are not used"
refuse 1 'latents: expected 1x4x8x8' generate --size 64x64 --latents kept.safetensors -p 'a red star' -o wrong.png

# Another tiling or precision is another plan, and says so; workers and policies are not in the file.
expect 0 '' generate -p 'a red star' --sched eager --cpus 1 -o eager.png
cmp image.png eager.png
expect 0 '' generate -p 'a red star' --precision bf16 --tile-tokens 3 --tile-rows 1 -o plan.png
text '"tile_tokens":3,"tile_rows":1,"precision":"bf16"' plan.png
expect 0 '' generate -p 'a red star' --trace trace.json -o traced.png
grep -qF '"traceEvents"' trace.json

expect 0 '' "$SMALTI" generate --help
grep -qF -e '--resume' out
