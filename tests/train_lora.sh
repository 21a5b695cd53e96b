#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# `smalti train --lora-rank`: an adapter in peft's form, which generates; runs that are killed go on to its bytes, whatever
# computes them; sample images; what cannot be is refused.
# shellcheck source=command.sh
. "$(dirname "$0")/command.sh"
cd "$work"
export SEED=${SEED:-$RANDOM} # said where it fails
RANDOM=$SEED
kills=4
[ -z "${SMALTI_TEST_FULL:-}" ] || kills=20
if sanitized; then kills=1; fi

data=$SMALTI_TESTDATA/extract/InternData/data_info.json
"$SMALTI" extract "$data" -k prompt --img-size 256 --shard-items 5 -q -o features
train=("$SMALTI" train features --lora-rank 4 --lora-alpha 8 --steps 5 --batch 2 --warmup 0 --lr 1e-3 --save-every 2 --ema 0.9)

# The adapter: its form, and an image that the base does not make; sample images are those of its average.
expect 0 '' "${train[@]}" --sample-prompt 'a red circle' --sample-every 5 --sample-steps 2 --sample-size 64x64 -o whole
python3 - whole/step-5 <<'END' || fail "the adapter's form"
import json, struct, sys
def header(path):
    data = open(path, "rb").read()
    return json.loads(data[8:8 + struct.unpack("<Q", data[:8])[0]])
config = json.load(open(sys.argv[1] + "/adapter/adapter_config.json"))
tensors = {name: entry["shape"] for name, entry in header(sys.argv[1] + "/adapter/adapter_model.safetensors").items()
           if name != "__metadata__"}
assert (config["peft_type"], config["r"], config["lora_alpha"], config["bias"]) == ("LORA", 4, 8, "none"), config
assert len(config["target_modules"]) == 48 and len(tensors) == 96, (len(config["target_modules"]), len(tensors))
for module in config["target_modules"]:
    assert tensors[f"base_model.model.{module}.lora_A.weight"] == [4, 144], module
    assert tensors[f"base_model.model.{module}.lora_B.weight"] == [144, 4], module
END
image=(-p 'a red circle' --size 64x64 --steps 2 -q)
"$SMALTI" generate "${image[@]}" -o base.png
"$SMALTI" generate "${image[@]}" --lora whole/step-5/adapter -o adapter.png
"$SMALTI" generate "${image[@]}" --lora whole/step-5/ema -o ema.png
! cmp -s base.png adapter.png || fail "the adapter changes nothing"
for part in adapter ema; do # in diffusers' form they are the same; α/r is 2
    "$SMALTI" generate "${image[@]}" --lora whole/step-5/$part/pytorch_lora_weights.safetensors -o diffusers.png
    cmp $part.png diffusers.png || fail "$part is another adapter in diffusers' form"
done
cmp ema.png whole/samples/step-5/1.png || fail "the sample image is another one"

# Whatever computes it, and however often it is killed.
variant() {
    rm -rf variant
    expect 0 '' "${train[@]}" "$@" -q -o variant
    same whole/step-5 variant/step-5
}
variant --cpus 1 --micro 1
variant --cpus 2 --sched eager --recompute block
variant --cpus 2 --recompute auto
for ((kill = 0; kill < kills; kill++)); do
    rm -rf killed
    { timeout -s KILL "0.$((RANDOM % 9 + 1))" "${train[@]}" -q -o killed || true; } 2>/dev/null
    expect 0 '' "${train[@]}" -q -o killed
    same whole/step-5 killed/step-5
done

# All that PixArt's script changes, in bf16; other lists; what is not one.
small=(--steps 1 --batch 1 --warmup 0 -q)
expect 0 '' "$SMALTI" train features "${small[@]}" --lora-rank 2 --lora-targets all --precision bf16 -o all
expect 0 '' "$SMALTI" generate "${image[@]}" --lora all/step-1/adapter -o all.png
expect 0 '' "$SMALTI" train features "${small[@]}" --lora-rank 2 --lora-targets to_q,ff.net.2 --optimizer came -o some
expect 2 "no matrix of the transformer is called 'to_x'" "$SMALTI" train features "${small[@]}" --lora-rank 2 \
    --lora-targets to_q,to_x -o none
expect 2 "--lora-rank" "$SMALTI" train features --steps 9 --batch 2 --warmup 0 --lr 1e-3 -q -o whole
expect 2 "--lora-alpha" "${train[@]}" --lora-alpha 4 --steps 9 -q -o whole
# A base of eight bits is decoded; training all of it is refused.
expect 0 '' "$SMALTI" quantize -q "$SMALTI_MODELS/tesserae/transformer" int8
expect 0 '' "${train[@]}" --transformer int8 -q --sample-prompt 'a red circle' --sample-every 5 --sample-steps 2 \
    --sample-size 64x64 -o eight
"$SMALTI" generate "${image[@]}" --transformer int8 --lora eight/step-5/ema -o eight.png
cmp eight.png eight/samples/step-5/1.png || fail "the sample image of a base of eight bits is another one"
! cmp -s ema.png eight.png || fail "a base of eight bits changes nothing"
expect 1 'an adapter (--lora-rank) leaves them as they are' "$SMALTI" train features "${small[@]}" --transformer int8 -o full
small_config 2 16 >config.json
expect 2 "an adapter changes weights that there are" "$SMALTI" train features "${small[@]}" --lora-rank 2 --init config.json -o none

# Its memory: less than that of the transformer, whose gradients and optimizer it does not have.
needs() {
    rm -rf need
    expect 0 'of 400 at most' "$SMALTI" train features --steps 1 --batch 2 --micro 2 --warmup 0 --cpus 2 --recompute auto \
        --memory-limit 400M -o need "$@"
    sed -n 's/.* \([0-9]*\) MB of 400 at most.*/\1/p' err
}
all=$(needs) adapter=$(needs --lora-rank 4)
[ "$adapter" -lt "$all" ] || fail "an adapter needs $adapter MB, and the transformer $all"
half=$(needs --lora-rank 4 --precision bf16)
[ "$half" -lt "$adapter" ] || fail "an adapter needs $half MB in bf16, and $adapter in f32"
