#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Model directories as other programs leave them: what can be used, and what to do about the rest.
# shellcheck source=command.sh
. "$(dirname "$0")/command.sh"
cd "$work"

generate() {
    "$SMALTI" generate -p 'a red star on a white background' --steps 2 --size 32x32 "$@"
}

# Of the embedded model, to be written to.
copy() {
    rm -rf model
    cp -r "$SMALTI_MODELS/tesserae" model
    chmod -R u+w model
}

# What transformers 5 saves: tokenizer.json alone.
copy
rm model/tokenizer/*
cp "$SMALTI_TESTDATA/tokenizer/tokenizer.json" model/tokenizer/
expect 0 '' generate --save-latents -o embedded.png
expect 0 '' generate --save-latents -o saved.png -m model
cmp embedded.safetensors saved.safetensors
rm model/tokenizer/*
refuse 1 'neither spiece.model nor tokenizer.json' generate -m model

# Its class of the tokenizer, whose files decide.
copy
sed -i 's/"T5Tokenizer\(Fast\)\?"/"TokenizersBackend"/' model/model_index.json
grep -q TokenizersBackend model/model_index.json
expect 0 '' generate --save-latents -o saved.png -m model
cmp embedded.safetensors saved.safetensors

# A pipeline that was saved with another scheduler: the class in its index, as diffusers has it.
copy
expect 0 '' generate --save-latents -o embedded.png -m model --scheduler euler
sed -i 's/DPMSolverMultistepScheduler/EulerDiscreteScheduler/' model/model_index.json
expect 0 '' generate --save-latents -o saved.png -m model
cmp embedded.safetensors saved.safetensors
grep -qaF '"scheduler":"euler"' saved.png

# A scheduler that there is not is no reason to refuse a model of which another one is asked for.
for file in model_index.json scheduler/scheduler_config.json; do
    copy
    sed -i 's/DPMSolverMultistepScheduler/PNDMScheduler/' model/$file
    [ $file = model_index.json ] || sed -i -z 's/"scheduler": \[[^]]*\]/"scheduler": [null, null]/' model/model_index.json
    refuse 1 PNDMScheduler generate -m model
    refuse 1 'ask for another one, for instance "dpm++": --scheduler' generate -m model
    expect 0 '' generate --save-latents -o saved.png -m model --scheduler euler
    cmp embedded.safetensors saved.safetensors
    expect 0 '' generate -o saved.png -m model --scheduler-config "$SMALTI_MODELS/tesserae/scheduler"
    expect 0 '' "$SMALTI" generate -m model -P - -s 32x32 -o images/ \
        <<<'{"prompt": "x", "num_inference_steps": 1, "scheduler": "dpm++"}'
done

# add_tensor FILE NAME: an empty one, at the head of a safetensors file.
add_tensor() {
    local entry="\"$2\":{\"dtype\":\"F32\",\"shape\":[0],\"data_offsets\":[0,0]}," length byte
    length=$(($(od -An -t u8 -N 8 "$1") + ${#entry}))
    for byte in 0 8 16 24 32 40 48 56; do
        # shellcheck disable=SC2059 # the format is the byte
        printf "\\x$(printf %02x $((length >> byte & 255)))"
    done >changed
    printf '{%s' "$entry" >>changed
    tail -c +10 "$1" >>changed
    mv changed "$1"
}

# What is in the files and not used is named once, unless other programs always leave it there.
weights=diffusion_pytorch_model.safetensors
copy
add_tensor model/text_encoder/model.safetensors decoder.block.0.layer.0.layer_norm.weight
add_tensor model/text_encoder/model.safetensors encoder.embed_tokens.weight
add_tensor model/transformer/$weights pos_embed.pos_embed
expect 0 '' generate -m model -o same.png
! grep -q 'not used' err || fail "$(cat err)"
add_tensor model/transformer/$weights transformer_blocks.0.attn1.to_q.lora_A.weight
add_tensor model/vae/$weights $'x\\u001b[2Jy'
expect 0 'model/transformer: 1 tensor is not used: transformer_blocks.0.attn1.to_q.lora_A.weight; merge LoRA' \
    generate -m model -o same.png
grep -qF 'model/vae: 1 tensor is not used: x?[2Jy' err || fail "$(cat err)"
expect 0 '' generate -m model -q -o same.png
[ ! -s err ] || fail "--quiet says $(cat err)"
expect 0 'model/vae: 1 tensor is not used' "$SMALTI" decode embedded.safetensors -m model -o decoded.png
for i in 0 1 2 3 4; do
    add_tensor model/text_encoder/model.safetensors encoder.other.$i
done
expect 0 'model/text_encoder: 5 tensors are not used: encoder.other.0, encoder.other.1, encoder.other.2, ...; model' \
    generate -m model -o same.png
printf '{"prompt": "a"}\n' >list.jsonl
expect 0 'smalti extract: model/text_encoder: 5 tensors are not used' "$SMALTI" extract list.jsonl --t5 -m model -o named

# LoRA weights that are not merged, alone and in the model; one file for a component.
copy
sed -i 's/"transformer_blocks.0.attn1.to_q.weight"/"transformer_blocks.0.attn1.to_q.base_layer.weight"/' model/transformer/$weights
header=$(od -An -t u8 -N 8 model/transformer/$weights)
# shellcheck disable=SC2059 # the format is the bytes
printf "\\x$(printf %02x $(((header + 11) & 255)))\\x$(printf %02x $(((header + 11) >> 8 & 255)))" |
    dd of=model/transformer/$weights conv=notrunc status=none
refuse 1 "attn1.to_q.weight [144, 144] is missing; LoRA weights are beside it, not merged: merge them with peft's merge_and_unload()" generate -m model
mkdir adapter
touch adapter/adapter_config.json adapter/adapter_model.safetensors
for option in --transformer --vae -m; do
    refuse 1 'adapter: holds LoRA weights (adapter_config.json), no model: give them to --lora' generate $option adapter
done
for part in vae transformer text-encoder tokenizer scheduler-config; do
    refuse 1 'adapter_model.safetensors: is a single file; the directory of one component was expected' \
        generate --$part adapter/adapter_model.safetensors
done

# Hugging Face's cache: its folder, a model's name, and a link to what was not downloaded.
copy
hub=hub/models--me--tiny
mkdir -p $hub/refs $hub/snapshots
mv model $hub/snapshots/0123
printf 0123 >$hub/refs/main
refuse 1 "$hub: is a folder of Hugging Face's cache; the model is in $hub/snapshots/0123" generate -m $hub
refuse 1 "the model is in $hub/snapshots/0123" "$SMALTI" decode embedded.safetensors -m $hub -o no.png
refuse 1 "the model is in $hub/snapshots/0123" "$SMALTI" extract list.jsonl --t5 -m $hub -o features
HF_HOME=$work refuse 1 "me/tiny: no such directory; Hugging Face's cache has a model of that name: give $work/$hub/snapshots/0123" \
    generate -m me/tiny
HF_HUB_CACHE=$work/hub HF_HOME=/nowhere refuse 1 "give $work/$hub/snapshots/0123" generate -m me/tiny
HF_HOME=/nowhere refuse 1 'hf download me/tiny' generate -m me/tiny
mv $hub/refs $hub/no-refs # as a download of another revision leaves it
HF_HOME=$work refuse 1 "give $work/$hub/snapshots/0123" generate -m me/tiny
mkdir $hub/snapshots/4567
HF_HOME=$work refuse 1 'hf download me/tiny' generate -m me/tiny
rmdir $hub/snapshots/4567
mv $hub/no-refs $hub/refs
expect 0 '' generate -m $hub/snapshots/0123 -o same.png
ln -sf ../../../blobs/gone $hub/snapshots/0123/transformer/$weights
refuse 1 "$weights: cannot be opened: it is a link to ../../../blobs/gone, which is not there" generate -m $hub/snapshots/0123
ln -sf ../../../blobs/gone $hub/snapshots/0123/vae/config.json
refuse 1 'vae/config.json: cannot be opened: it is a link to' "$SMALTI" decode embedded.safetensors -m $hub/snapshots/0123 -o no.png

# What is not a pipeline's directory is named, and what to do about it.
refuse 1 'hf download PixArt-alpha/PixArt-Sigma-XL-2-512-MS --local-dir DIR' \
    generate -m PixArt-alpha/PixArt-Sigma-XL-2-512-MS
refuse 1 'hf download a/b-c' "$SMALTI" decode embedded.safetensors -m a/b-c -o no.png
refuse 1 'hf download a/b-c' "$SMALTI" extract list.jsonl --t5 -m a/b-c -o features
copy
refuse 1 'give the directory that it lies in' generate -m model/transformer
for file in model/transformer/$weights single.ckpt single.pth; do
    [ -e "$file" ] || : >"$file"
    refuse 1 "$file: is a single file" generate -m "$file"
    refuse 1 "$file: is a single file" "$SMALTI" decode embedded.safetensors -m "$file" -o no.png
done
rm model/model_index.json
refuse 1 'model: has no model_index.json' generate -m model

# Weights in files that are not read, and pointers to files.
copy
mv model/transformer/$weights model/transformer/diffusion_pytorch_model.bin
refuse 1 'model/transformer/diffusion_pytorch_model.bin: such files are not read' generate -m model
copy
mv model/text_encoder/model.safetensors model/text_encoder/pytorch_model.bin
refuse 1 'save_pretrained()' generate -m model
pointer='version https://git-lfs.github.com/spec/v1\noid sha256:0123456789abcdef\nsize 7\n'
for file in vae/$weights text_encoder/model.safetensors tokenizer/spiece.model; do
    copy
    printf '%b' "$pointer" >"model/$file"
    refuse 1 "model/$file: is a pointer of Git LFS, not the file: run \"git lfs pull\"" generate -m model
done
