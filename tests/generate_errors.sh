#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# `smalti generate`: what is wrong is said in one line, at once, and no file is left.
# shellcheck source=command.sh
. "$(dirname "$0")/command.sh"

out=$work/images
mkdir "$out"

# Seconds, not minutes: of what is refused here nothing may be computed first.
generate() {
    timeout 900 "$SMALTI" generate --steps 2 "$@"
}

# wrong STATUS WORDS OPTION...: refused, nothing made.
wrong() {
    local wanted=$1 words=$2
    shift 2
    refuse "$wanted" "$words" generate "$@" -o "$out/"
    [ -z "$(files "$out")" ] || fail "$*: left $(files "$out")"
}

# The command line: status 2.
for size in 0 -1 15 1000000000 0x0 -1x-1 15x16 16x15 1000000000x1000000000 16x 16x16x16 99999999999999999999x16; do
    wrong 2 '--size: ' -p a --size "$size"
done
wrong 2 'no prompt'
wrong 2 'exclude each other' -p a --prompts b
wrong 2 'dpm++' -p a --scheduler nosuch
wrong 2 'lws' -p a --sched nosuch
wrong 2 'raw, basic, full' -p a --clean maybe
wrong 2 'f32, bf16' -p a --precision f64
wrong 2 '--steps' -p a --steps 0
wrong 2 '--images' -p a --images 0
wrong 2 '--guidance' -p a --guidance nan
wrong 2 '--seed' -p a --seed 18446744073709551616
wrong 2 'CPU workers' -p a --cpus 100000
wrong 2 'UTF-8' -p $'a\xff'
wrong 2 'did you mean' -p a --pormpts x
wrong 2 'operand' a

# Outputs.
refuse 2 'directory' generate -p a -p b
refuse 2 "end it with" generate -p a -p b -o "$out/x"
refuse 2 "end it with '/'" generate -p a -p b -o "$out/x.png"
refuse 2 'cannot be combined' generate -p a --json -o -
for name in x.jpg x.webp x png; do
    refuse 2 'expected a name that ends in .png' generate -p a -o "$out/$name"
done
mkfifo "$work/pipe.png"
refuse 1 'expected a file' generate -p a -o "$work/pipe.png"
refuse 1 'cannot be made' generate -p a -o "$out/missing/x.png"
refuse 1 'No such file' generate -p a -o "$out/missing/directory/"
mkdir -p "$work/taken/1.png"
refuse 1 'found a directory' generate -p a -o "$work/taken/"
[ -z "$(files "$work/taken")" ] || fail "left $(files "$work/taken")"

# Prompts.
: >"$work/empty"
printf '\n \n' >"$work/blank"
printf '{"prompt": "a"\n' >"$work/bad.jsonl"
head -c 1048577 /dev/zero | tr '\0' a >"$work/long"
wrong 1 'no prompts' --prompts "$work/empty"
wrong 1 'no prompts' --prompts "$work/blank"
wrong 1 'bad.jsonl:1: ' --prompts "$work/bad.jsonl"
wrong 1 'long:1: ' --prompts "$work/long"
wrong 1 'directory' --prompts "$work"
wrong 1 'No such file' --prompts "$work/missing"
expect 1 'standard input: no prompts' generate --prompts - -o "$out/" </dev/null
wrong 1 'needs about' -p a --size 100000x100000
wrong 2 'memory limit' -p a --memory-limit 2M
wrong 1 'needs about' -p a --memory-limit 256M --size 4096x4096
wrong 1 'steps or more' -p a --steps 1 --scheduler ddim
wrong 1 'empty: ' -p a --latents "$work/empty"
wrong 1 'No such file' -p a --latents "$work/missing"
wrong 1 'expected a tensor "latents"' -p a --latents "$SMALTI_TESTDATA/golden/t5.safetensors"

# Models: a copy with one file changed each time.
model=$work/model

# change FILE COMMAND...: what the command makes of the file takes its place.
change() {
    local file=$1
    shift
    rm -rf "$model"
    cp -r "$SMALTI_MODELS/tesserae" "$model"
    chmod -R u+w "$model"
    LC_ALL=C "$@" <"$SMALTI_MODELS/tesserae/$file" >"$model/$file"
}

# broken WORDS FILE COMMAND...
broken() {
    local words=$1 file=$2
    shift
    change "$@"
    wrong 1 "$words" -p a -m "$model"
    grep -qF -e "${file%/*}" "$work/err" || fail "$file: not named: $(cat "$work/err")"
}

# huge: a header of 2^63-1 bytes.
huge() {
    printf '\377\377\377\377\377\377\377\177'
    tail -c +9
}

weights=diffusion_pytorch_model.safetensors
wrong 1 'no such directory' -p a -m "$work/missing"
wrong 1 'No such file' -p a --vae "$work/missing"
for file in text_encoder/model.safetensors "transformer/$weights" "vae/$weights"; do
    broken '' "$file" head -c 100000
    broken '' "$file" head -c 7
    broken 'header' "$file" huge
    broken '' "$file" true
    broken '' "$file" sed 's/"shape":\[/"shape":}/'
    broken 'dtype' "$file" sed 's/"F16"/"F61"/'
    broken 'neither F32' "$file" sed 's/"F16"/"I16"/g'
done
broken 'pos_embed.proj.bias' "transformer/$weights" sed 's/pos_embed.proj.bias/pos_embed.proj.bais/'
broken 'decoder.conv_in.bias' "vae/$weights" sed 's/decoder.conv_in.bias/decoder.conv_in.bais/'
broken 'is missing' text_encoder/model.safetensors sed 's/shared.weight/shared.waight/'
broken '[144, 256]' "transformer/$weights" sed 's/\[144,256\]/[256,144]/'
for file in text_encoder transformer vae; do
    broken '' "$file/config.json" head -c 300
    broken '' "$file/config.json" true
    broken '' "$file/config.json" sed 's/: \([0-9]\)/: -\1/'
done
broken '' scheduler/scheduler_config.json head -c 100
broken '_class_name' scheduler/scheduler_config.json sed 's/DPMSolver/Nosuch/'
broken 'sample_size' transformer/config.json sed 's/"sample_size": [0-9]*/"sample_size": 1e99/'
change model_index.json head -c 50
wrong 1 'model_index.json' -p a -m "$model"
broken '' tokenizer/spiece.model head -c 100000
broken '' tokenizer/spiece.model true
broken '' tokenizer/spiece.model head -c 50
rm -r "$model/tokenizer/spiece.model"
mkdir "$model/tokenizer/spiece.model"
wrong 1 'spiece.model' -p a -m "$model"

# Weights that are readable and yet no numbers.
damage() {
    head -c -1000
    head -c 1000 /dev/zero | tr '\0' '\377'
}
change "transformer/$weights" damage
wrong 1 'not finite' -p a -m "$model"
change "vae/$weights" damage
wrong 1 'not finite' -p a -m "$model"

# A name that no file can have, that of latents too: before anything is computed.
printf -v long '%0296d.png' 0
printf -v nearly '%0250d.png' 0
refuse 1 'File name too long' generate -p a -s 4096x4096 --steps 1000 -o "$work/$long"
refuse 1 'File name too long' generate -p a -s 4096x4096 --steps 1000 --save-latents -o "$work/$nearly"
