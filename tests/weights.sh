#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Models whose weights have 8 bits and less: fp8, LLM.int8, GGUF (docs/weights.md).
# shellcheck source=command.sh
. "$(dirname "$0")/command.sh"
cd "$work"
golden=$SMALTI_TESTDATA/golden

generate() {
    "$SMALTI" generate --steps 2 --size 32x32 -p 'a red star' "$@"
}

# encoder NAME FILE AS: a directory with the weights under the name AS, and a config.json.
encoder() {
    mkdir "$1"
    cp "$SMALTI_MODELS/tesserae/text_encoder/config.json" "$1"
    cp "$golden/$2" "$1/$3"
}

# Each form makes an image, other than the embedded model's but for bits, and nothing is said to be left.
generate -q -o embedded.png
for name in fp8 fp8-scaled llm-int8; do
    encoder $name quant/t5-$name.safetensors model.safetensors
    expect 0 '1 image in' generate --text-encoder $name -o $name.png
    ! grep -q 'not used' err || fail "$name: $(cat err)"
    ! cmp -s embedded.png $name.png || fail "$name: the embedded encoder's image"
done

# A GGUF file is named, or alone in its directory, with a config.json or without.
encoder gguf gguf/t5-q8_0.gguf any-name.gguf
expect 0 '1 image in' generate --text-encoder gguf -o gguf.png
! grep -q 'not used' err || fail "gguf: $(cat err)"
generate -q --text-encoder "$golden/gguf/t5-q8_0.gguf" -o named.png
cmp <(tail -c 300 gguf.png) <(tail -c 300 named.png)
printf '{"prompt": "a"}\n' >list.jsonl
expect 0 '' "$SMALTI" extract list.jsonl --t5 --text-encoder "$golden/gguf/t5-q4_0.gguf" -o features
cp "$golden/gguf/t5-q4_0.gguf" gguf/other.gguf
refuse 1 'gguf: has several GGUF files' generate --text-encoder gguf
refuse 1 '"general.architecture" is "t5encoder", only "pixart"' generate --transformer "$golden/gguf/t5-q4_0.gguf"
refuse 1 'types.gguf' generate --text-encoder "$golden/gguf/types.gguf"

# A file that lost its scales is refused, not read without them.
encoder unscaled quant/t5-fp8-scaled.safetensors model.safetensors
sed -i 's/SelfAttention.k.scale_weight/SelfAttention.k.scale_wei_ht/' unscaled/model.safetensors
refuse 1 'SelfAttention.k.weight is F8_E4M3 without its scale' generate --text-encoder unscaled

# A code of fp8 that is no number is refused, by the tensor's name.
encoder nan quant/t5-fp8.safetensors model.safetensors
python3 - <<'END'
import json, struct
with open("nan/model.safetensors", "r+b") as file:
    size = struct.unpack("<Q", file.read(8))[0]
    entry = json.loads(file.read(size))["encoder.block.1.layer.0.SelfAttention.q.weight"]
    file.seek(8 + size + entry["data_offsets"][0] + 100)
    file.write(b"\x7f")
END
refuse 1 'SelfAttention.q.weight has values that are not finite' generate --text-encoder nan

# What smalti quantize writes makes images; it appears whole or not at all.
for type in int8 fp8; do
    for component in text_encoder transformer; do
        expect 0 '' "$SMALTI" quantize "$SMALTI_MODELS/tesserae/$component" $type-$component --type $type
        grep -q "^$type-$component: [0-9]* matrices in $type, " out || fail "$(cat out)"
    done
    expect 0 '1 image in' generate --text-encoder $type-text_encoder --transformer $type-transformer -o $type.png
    ! grep -q 'not used' err || fail "$type: $(cat err)"
done
refuse 1 'int8-transformer: exists' "$SMALTI" quantize "$SMALTI_MODELS/tesserae/transformer" int8-transformer
expect 0 '' "$SMALTI" quantize -q "$SMALTI_MODELS/tesserae" whole
expect 0 '1 image in' generate -m whole -o whole.png
cmp whole.png int8.png
refuse 1 'is neither of a T5 text encoder nor' "$SMALTI" quantize "$SMALTI_MODELS/tesserae/vae" vae
refuse 1 'hf download PixArt-alpha/PixArt-Sigma' "$SMALTI" quantize PixArt-alpha/PixArt-Sigma whole-8
refuse 2 'found 1' "$SMALTI" quantize "$SMALTI_MODELS/tesserae/vae"
[ -z "$(find . -name '*.part')" ] || fail "left $(find . -name '*.part')"

# A plan counts the memory that the weights take: those of the blocks have 8 bits here, elsewhere 32.
held() { generate --plan --json "$@" | sed -n 's/.*"weights":\([0-9.]*\).*/\1/p'; }
for type in int8 fp8; do
    whole=$(held) few=$(held --transformer $type-transformer)
    awk -v whole="$whole" -v few="$few" 'BEGIN { exit !(few > 0 && few < 0.4 * whole) }' || fail "$type: $few of $whole bytes"
done

# The text encoder's weights become integers on request; an image says so by its model.
generate -q --text-encoder-precision int8 -o eight.png
! cmp -s embedded.png eight.png || fail 'the text encoder is not int8'
generate -q --text-encoder-precision stored -o stored.png
cmp embedded.png stored.png
model() { grep -qaoE '"model":"[0-9a-f]{32}"' "$1" && grep -aoE '"model":"[0-9a-f]{32}"' "$1" | head -1; }
[ "$(model eight.png)" != "$(model embedded.png)" ] || fail 'both are of one model'
generate -q --text-encoder-precision w8a8 -o rounded.png
! cmp -s rounded.png eight.png || fail 'the text encoder does not round its inputs'
[ "$(model rounded.png)" != "$(model eight.png)" ] || fail 'w8a8 and int8 are of one model'
refuse 2 'stored, int8, w8a8' generate --text-encoder-precision f8

# Products of integers: another image, of the same model; what cannot have them refuses.
generate -q --precision w8a8 -o w8a8.png
! cmp -s embedded.png w8a8.png || fail 'w8a8 is f32'
grep -qaF '"precision":"w8a8"' w8a8.png
generate -q --precision w8a8 --transformer int8-transformer -o written.png
generate -q --precision w8a8-bf16 -o w8a8-bf16.png
! cmp -s w8a8.png w8a8-bf16.png || fail 'w8a8-bf16 is w8a8'
grep -qaF '"precision":"w8a8-bf16"' w8a8-bf16.png
refuse 1 'precision w8a8-bf16' "$SMALTI" encode "$SMALTI_TESTDATA/extract/InternImgs/wide.png" --precision w8a8-bf16 -o no.safetensors
refuse 1 'w8a8' "$SMALTI" encode "$SMALTI_TESTDATA/extract/InternImgs/wide.png" --precision w8a8 -o no.safetensors
refuse 2 'precision: expected' "$SMALTI" extract list.jsonl --t5 --precision w8a8 -o no
