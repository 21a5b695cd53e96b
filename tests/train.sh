#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# `smalti train`: runs that are killed, stopped, refused or out of room go on to the bytes of an undisturbed one, whatever
# computes them.
# shellcheck source=command.sh
. "$(dirname "$0")/command.sh"
trap 'umount "$work/disk" 2>/dev/null || true; rm -rf "$work"' EXIT
cd "$work"
export SEED=${SEED:-$RANDOM} # said where it fails
RANDOM=$SEED
kills=12
[ -z "${SMALTI_TEST_FULL:-}" ] || kills=50
if sanitized; then kills=3; fi

data=$SMALTI_TESTDATA/extract/InternData/data_info.json
"$SMALTI" extract "$data" -k prompt --img-size 256 --shard-items 5 -q -o features
"$SMALTI" extract "$data" -k prompt --img-size 128 --shard-items 5 --range 0:3 -q -o more
small_config 2 16 >config.json
train=("$SMALTI" train features more --init config.json --steps 9 --batch 3 --warmup 2 --lr 1e-3 --save-every 2 --ema 0.9)

# Once, to the end: what is there, and that evaluation and log say what there is to say.
expect 0 'step 9, ema: mse' "${train[@]}" --held-out more --held-out-items 2 --evaluate-every 4 --keep 0 -o whole
[ "$(cd whole && echo step-*)" = "step-2 step-4 step-6 step-8 step-9" ] || fail "checkpoints: $(ls whole)"
[ "$(grep -c '"loss"' whole/log.jsonl)" -eq 9 ] || fail "not 9 steps in the log"
python3 - whole <<'END_OF_PROGRAM' || fail "checkpoints in the log: $(grep checkpoint whole/log.jsonl)"
import glob, json, os, sys
lines = [json.loads(line) for line in open(sys.argv[1] + "/log.jsonl") if '"checkpoint"' in line]
files = glob.glob(f"{sys.argv[1]}/{lines[-1]['checkpoint']}/**/*.safetensors", recursive=True)
header = sum(8 + int.from_bytes(open(file, "rb").read(8), "little") for file in files)
assert lines[-1]["bytes"] == sum(map(os.path.getsize, files)) - header and lines[-1]["seconds"] > 0, lines[-1]
END_OF_PROGRAM
[ "$(grep -c '"evaluation"' whole/log.jsonl)" -eq 8 ] || fail "not 8 evaluations in the log"
expect 0 '' "${train[@]}" -o whole -q
expect 0 '' "$SMALTI" generate --transformer whole/step-9/ema -p "a red circle" -s 64x64 --steps 1 -o one.png

# More steps than were asked for at first, from the end of an epoch on.
cp -r whole extended
expect 0 '' "${train[@]}" --steps 11 -q -o extended
expect 0 '' "${train[@]}" --steps 11 -q -o longer
same longer/step-11 extended/step-11

# Whatever computes them.
variant() {
    rm -rf variant
    expect 0 '' "${train[@]}" "$@" --keep 1 -q -o variant
    same whole/step-9 variant/step-9
    [ "$(cd variant && echo step-*)" = step-9 ] || fail "--keep 1 keeps $(ls variant)"
}
variant --cpus 1 --micro 1
variant --cpus 2 --micro 3 --sched dmda --prefetch 1
variant --cpus 2 --sched eager --recompute block
variant --cpus 2 --recompute auto

# As many blocks are computed again as a memory limit asks for, and where no number of them helps nothing is begun.
limited() {
    "$SMALTI" train features --steps 1 --batch 2 --micro 2 --warmup 0 --cpus 2 "$@"
}
expect 0 '' limited -q -o kept
refuse 2 'MB or more' limited --recompute auto --memory-limit 1M -o again
least=$(sed -n 's/.*expected \([0-9]*\) MB or more.*/\1/p' err)
refuse 1 'needs ' limited --recompute auto --memory-limit "${least}M" -o again
grep -q 'give a smaller --micro' err || fail "no remedy: $(cat err)"
needed=$(sed -n 's/.* needs \([0-9]*\) MB .*/\1/p' err)
refuse 1 "needs $needed MB" limited --recompute auto --memory-limit "$((needed - 1))M" -o again
for limit in "$needed" $((needed + 8)) $((2 * needed)); do
    expect 0 "MB of $limit at most: " limited --recompute auto --memory-limit "${limit}M" -o again
    sed -n 's/.*at most: \([0-9]*\) of 6 blocks.*/\1/p' err >>blocks
    same kept/step-1 again/step-1
    rm -r again
done
[ "$(sort -nru blocks)" = "$(cat blocks)" ] || fail "blocks computed again with more and more memory: $(tr '\n' ' ' <blocks)"
[ "$(tail -n 1 blocks)" -eq 0 ] || fail "blocks are computed again where all can be kept"
# So it is under a strategy, whose parts share main memory here.
for strategy in data2 patch2 tensor2; do
    parts=(limited --strategy "$strategy" --tile-tokens 8 -o "$strategy")
    expect 0 '' "${parts[@]}" -q
    mv "$strategy" "$strategy-kept"
    refuse 1 'needs ' "${parts[@]}" --recompute auto --memory-limit "${least}M"
    needed=$(sed -n 's/.* needs \([0-9]*\) MB .*/\1/p' err)
    refuse 1 "needs $needed MB" "${parts[@]}" --recompute auto --memory-limit "$((needed - 1))M"
    expect 0 " MB of $needed at most: " "${parts[@]}" --recompute auto --memory-limit "${needed}M"
    same "$strategy-kept/step-1" "$strategy/step-1"
done
# What does not fit goes to a scratch directory and comes back.
mkdir scratch
expect 0 '' limited --recompute auto --memory-limit "${least}M" --scratch scratch -q -o again
same kept/step-1 again/step-1
[ -z "$(ls -A scratch)" ] || fail "left in scratch: $(ls -A scratch)"
# Where it cannot be written or read, the run ends with the cause, and goes on from its checkpoint.
offloaded() {
    env SMALTI_FAULT="$1" SMALTI_FAULT_IN=scratch LD_PRELOAD="$(dirname "$SMALTI")/.libs/libfault.so" \
        "$SMALTI" train features --steps 2 --batch 2 --micro 2 --warmup 0 --cpus 2 --recompute auto \
        --memory-limit "${least}M" --scratch scratch -q -o again
}
if ! sanitized; then
    for fault in full:1 full:40+ write:60 read-eio:20 read-eio:60+; do
        refuse 1 "scratch directory 'scratch' cannot be " offloaded $fault
        grep -q 'name another one, or allow more memory' err || fail "no remedy: $(cat err)"
        [ -z "$(ls -A scratch)" ] || fail "$fault: left in scratch: $(ls -A scratch)"
        [ "$(cd again && echo step-* .step-*)" = 'step-1 .step-*' ] || fail "$fault: $(ls -A again)"
        same kept/step-1 again/step-1
    done
    expect 0 '' offloaded short:1+
    [ -d again/step-2 ] || fail "short writes: $(ls again)"
fi
refuse 1 "'nowhere': no file can be made there" limited --memory-limit "${least}M" --scratch nowhere -q -o never

# What operations did at last: their arithmetic is the step's, products are in f16, and conversions have bytes.
expect 0 '' limited --precision f16 -q -o narrow
python3 - narrow/log.jsonl <<'END_OF_PROGRAM' || fail "operations: $(cat narrow/log.jsonl)"
import json, sys
lines = [json.loads(line) for line in open(sys.argv[1])]
step, = [line for line in lines if "loss" in line]
done, = [line["operations"] for line in lines if "operations" in line]
flops = sum(one["flops"] for one in done)
assert abs(flops / (step["tflops"] * 1e12 * step["seconds"]) - 1) < 0.01, flops  # the update is not the step's
seconds = [one["seconds"] for one in done]
assert seconds == sorted(seconds, reverse=True) and min(seconds) > 0
assert sum(one["seconds"] for one in done if one["name"] != "deliver") <= sum(step["busy"])  # that is the checkpoint's
by_name = {(one["name"], one["dtype"]): one for one in done}
for name in "attention_backward", "linear_weight", "linear_input", "convert":
    assert by_name[name, "f16"]["count"] > 0 and by_name[name, "f16"]["bytes"] > 0
assert by_name["ln_modulate", "f32"]["flops"] > 0 and not any(one["dtype"] == "bf16" for one in done)
END_OF_PROGRAM

# Killed at any moment.
made=0
while [ "$made" -lt "$kills" ]; do
    rm -rf killed
    for (( ; made < kills; made++)); do
        "${train[@]}" --save-every 1 -q -o killed 2>err &
        process=$!
        sleep "0.$((RANDOM % 9))$((RANDOM % 10))"
        kill -KILL $process 2>/dev/null || break
        wait $process 2>/dev/null || true
    done
    wait
    expect 0 '' "${train[@]}" --save-every 1 -q -o killed
    same whole/step-9 killed/step-9
    [ -z "$(find killed -name '*.part')" ] || fail "SEED=$SEED: left $(find killed -name '*.part')"
done

# Stopped by a signal: the step is made and saved.
"${train[@]}" --steps 100000 --keep 2 -o stopped 2>stopped.err &
process=$!
for ((i = 0; i < 300; i++)); do
    [ ! -d stopped/step-2 ] || break
    sleep 0.1
done
expect 2 'trains there' "${train[@]}" -o stopped
expect 0 ' left' "$SMALTI" report stopped -o live.html
grep -q '"pace":\[100000,[0-9.e+-]*,[0-9]' live.html || fail "no time left: $(grep -o '"pace":[^]]*' live.html)"
kill -INT $process
status=0
wait $process || status=$?
[ $status -eq 1 ] || fail "status $status after SIGINT"
grep -q 'the same command goes on from there' stopped.err || fail "no words after SIGINT: $(cat stopped.err)"
expect 0 ', not running' "$SMALTI" report stopped -o live.html
grep -q '"pace":\[100000,[0-9.e+-]*,null' live.html || fail "time left: $(grep -o '"pace":[^]]*' live.html)"

# Each shape's own batches, with what waits for them.
expect 0 '' "${train[@]}" --bucket shape -q -o buckets
rm -rf buckets/step-9 buckets/step-8
expect 0 '' "${train[@]}" --bucket shape -q -o buckets-whole
expect 0 '' "${train[@]}" --bucket shape -q -o buckets
same buckets-whole/step-9 buckets/step-9

# Captions that are dropped become rows of the padded empty text, as many as they have; a run goes on with them, and with
# others where it is told to.
dropping=("${train[@]}" --caption-dropout 0.5 --keep 0)
expect 0 '' "${dropping[@]}" -q -o own
expect 0 '' "${dropping[@]}" --null-tokens caption -q -o padded
python3 - own/step-9/null_caption.safetensors padded/step-9/null_caption.safetensors <<'END_OF_PROGRAM' || fail "null captions"
import json, sys
def rows(path):
    with open(path, "rb") as file:
        header = json.loads(file.read(int.from_bytes(file.read(8), "little")))
        values = file.read()
    tokens, width = header["hidden_states"]["shape"]
    return [values[4 * width * i:4 * width * (i + 1)] for i in range(tokens)]
own, padded = map(rows, sys.argv[1:])
assert len(own) == 1 and len(padded) == 300 and padded[0] == own[0], len(padded)
assert padded[1] != own[0] and set(padded[1:]) == {padded[1]}
END_OF_PROGRAM
if cmp -s {own,padded}/step-9/transformer/diffusion_pytorch_model.safetensors; then fail "--null-tokens changes nothing"; fi
cp -r padded stopped-padded
rm -r stopped-padded/step-{6,8,9}
expect 0 '' "${dropping[@]}" --null-tokens caption -q -o stopped-padded
same padded/step-9 stopped-padded/step-9
refuse 2 'null_tokens = "caption", now it is "own": give --null-tokens' "${dropping[@]}" -o padded
refuse 2 'null_tokens = "own", now it is "caption": give --null-tokens' "${dropping[@]}" --null-tokens caption -o own
expect 0 'goes on with other options' "${dropping[@]}" --allow-change --steps 10 -o padded
expect 0 'goes on with other options' "${dropping[@]}" --null-tokens caption --allow-change --steps 10 -o own
cmp own/step-10/null_caption.safetensors padded/step-9/null_caption.safetensors || fail "not the padded null caption"
cmp padded/step-10/null_caption.safetensors own/step-9/null_caption.safetensors || fail "not the own null caption"

# Sample images are those of smalti generate, to the byte, and change no bit of the run.
sampling=("${train[@]}" --keep 0 --sample-prompt "a red circle" --sample-prompt "blue squares" --sample-size 64x48
    --sample-steps 2)
check_samples() {
    local of=$1 step
    shift
    for step in "$@"; do
        expect 0 '' "$SMALTI" generate --transformer "sampled/step-$step/$of" -p "a red circle" -p "blue squares" \
            --size 64x48 --steps 2 "${precise[@]}" -q -o generated/
        cmp generated/1.png "sampled/samples/step-$step/1.png" || fail "step $step: another first image"
        cmp generated/2.png "sampled/samples/step-$step/2.png" || fail "step $step: another second image"
        rm -r generated
    done
}
precise=()
expect 0 'step 9: 2 sample images in sampled/samples/step-9' "${sampling[@]}" --sample-every 4 -o sampled
same whole/step-9 sampled/step-9
[ "$(files sampled/samples)" = "step-0/1.png step-0/2.png step-4/1.png step-4/2.png step-8/1.png step-8/2.png step-9/1.png step-9/2.png" ] ||
    fail "samples: $(files sampled/samples)"
check_samples ema 0 4 9
if cmp -s sampled/samples/step-{0,9}/1.png; then fail "9 steps change no image"; fi
# They are encoded once.
count() {
    python3 -c 'import json, sys
for line in map(json.loads, open(sys.argv[1])):
    done = {one["name"]: one["count"] for one in line.get("operations", [])}
    if done: print(done["attend_heads"])' "$1/log.jsonl"
}
expect 0 '' "${sampling[@]}" -o seldom -q
[ "$(files seldom/samples)" = "step-0/1.png step-0/2.png step-9/1.png step-9/2.png" ] || fail "samples: $(files seldom/samples)"
[ "$(count seldom)" -eq "$(count sampled)" ] || fail "texts are encoded $(count sampled) and $(count seldom) times"
# What was not made of the last checkpoint is made by who goes on.
rm -r sampled/step-{6,8,9} sampled/samples/step-9
mv sampled/samples shown
mkdir -p sampled/samples
cp -r shown/step-0 sampled/samples
expect 0 '' "${sampling[@]}" --sample-every 4 -o sampled -q
diff -r shown/step-4 sampled/samples/step-4 || fail "another image of step 4"
diff -r shown/step-8 sampled/samples/step-8 || fail "another image of step 8"
same whole/step-9 sampled/step-9
rm -r sampled/samples/step-9
expect 0 '' "${sampling[@]}" --sample-every 4 -o sampled -q
check_samples ema 9
# Without an average, in another precision.
rm -r sampled
precise=(--precision bf16 --seed 5)
expect 0 '' "${sampling[@]}" "${precise[@]}" --ema 0 -o sampled -q
check_samples transformer 0 9
# The page has them.
expect 0 '' "$SMALTI" report seldom -o samples.html
python3 - <<'END_OF_PROGRAM' || fail "samples on the page"
import base64, json, re
page = open("samples.html", encoding="utf-8").read()
data = json.loads(re.search(r'<script id="data" type="application/json">(.*?)</script>', page, re.S)[1])
assert [(one["step"], one["prompt"], one["width"]) for one in data["samples"]] == [
    (step, prompt, 64) for step in (0, 9) for prompt in ("a red circle", "blue squares")], data["samples"]
for one in data["samples"]:
    image = base64.b64decode(one["image"].removeprefix("data:image/png;base64,"), validate=True)
    assert image.startswith(b"\x89PNG") and image[16:24] == bytes([0, 0, 0, 64, 0, 0, 0, 48])
END_OF_PROGRAM
# What cannot be made is refused before the first step.
refuse_early() {
    refuse "$@" -q -o early
    [ "$(echo early/step-*)" = early/step-0 ] || fail "steps were made: $(ls early)"
    rm -r early
}
refuse_early 1 'sample images: an image of 4096x4096 needs about' "${sampling[@]}" --sample-size 4096x4096 --memory-limit 200M
cp -r "$SMALTI_MODELS/tesserae" blind
rm -r blind/vae
refuse_early 1 'sample images: blind/vae/config.json' "${sampling[@]}" -m blind
expect 0 '' "${sampling[@]}" --recompute auto --memory-limit 200M -q -o beside
same whole/step-9 beside/step-9
cmp beside/samples/step-9/1.png seldom/samples/step-9/1.png || fail "another image beside a trainer with a memory limit"

# A log that cannot be written is told of, and the run goes on without it; one that was cut loses that line alone.
mkdir unlogged
ln -s /dev/full unlogged/log.jsonl
lost='unlogged/log.jsonl: cannot be written: No space left on device'
expect 0 "$lost: the run goes on without it" "${train[@]}" --steps 1 -o unlogged
refuse 0 "$lost" "${train[@]}" --steps 2 -q -o unlogged
expect 0 "$lost" "${train[@]}" --steps 3 -q --json -o unlogged
grep -q "\"log_lost\":\"$lost\"" out || fail "not in the JSON: $(cat out)"
rm unlogged/log.jsonl
expect 0 '' "${train[@]}" --steps 4 -q --json -o unlogged
if grep -q log_lost out; then fail "lost: $(cat out)"; fi
truncate -s -20 unlogged/log.jsonl
expect 0 '' "${train[@]}" -q -o unlogged
same whole/step-9 unlogged/step-9
[ "$(grep -c '^{"training":1' unlogged/log.jsonl)" -eq 2 ] || fail "the log: $(cut -c 1-60 unlogged/log.jsonl)"
expect 0 '' "$SMALTI" report unlogged -o cut.html
grep -q '"processes":2,"unreadable":1}' cut.html || fail "the report: $(grep -o '"processes":.*' cut.html)"

# Other options and other features are refused by name.
refused() {
    refuse 2 "$1" "${train[@]}" "${@:2}" -o whole
}
refused 'seed = "0", now it is "7": give --seed' --seed 7
refused 'optimizer.rate = 0.001, now it is 0.002: give --lr' --lr 2e-3
refused 'batch = 3, now it is 4: give --batch' --batch 4
refuse 2 'features.shards' "$SMALTI" train more "${train[@]:4}" -o whole
sed 's/"caption_channels": 128/"caption_channels": 64/' config.json >narrow.json
refuse 2 '128 wide, the transformer takes 64' "$SMALTI" train features --init narrow.json -o narrow
cp -r "$SMALTI_MODELS/tesserae" other
sed -i 's/"scaling_factor": [0-9.]*/"scaling_factor": 0.5/' other/vae/config.json
refuse 2 'other/vae/config.json has 0.5' "$SMALTI" train features -m other -o scaled
refuse 2 "has no caption 'tags': its captions are prompt" "${train[@]}" -k tags -o tags
refuse 2 'no place for the run' "$SMALTI" train features
refuse 2 'precision: expected one of f32, bf16, f16, found w8a8' "${train[@]}" --precision w8a8 -o integers
refuse 1 'no directory of features' "$SMALTI" train . -o nothing
cp -r whole changed
expect 0 'goes on with other options' "${train[@]}" --lr 2e-3 --allow-change --steps 10 -o changed

# Features of another text encoder of the same width are refused.
cp -r "$SMALTI_MODELS/tesserae" other-text
python3 - <<'END'
with open("other-text/text_encoder/model.safetensors", "r+b") as file:
    size = int.from_bytes(file.read(8), "little")
    file.seek(8 + size)
    first = file.read(1)
    file.seek(8 + size)
    file.write(bytes([first[0] ^ 1]))
END
refuse 2 'the features of captions are of the text encoder' "$SMALTI" train features -m other-text -o other-text-run

# A loss that is not finite ends the run, and leaves the checkpoint before.
expect 1 'not finite, first in ' "${train[@]}" --lr 1e6 --steps 100 --clip 0 --warmup 0 --save-every 1 -o diverged
# The layer is named whose values are not: here one weight of it is NaN, behind the header that tells where.
cp -r whole/step-9/transformer nan
python3 - <<'END'
import json
with open("nan/diffusion_pytorch_model.safetensors", "r+b") as file:
    size = int.from_bytes(file.read(8), "little")
    begin = json.loads(file.read(size))["transformer_blocks.1.ff.net.2.weight"]["data_offsets"][0]
    file.seek(8 + size + begin)
    file.write(b"\0\0\xc0\x7f")
END
for tiles in 0 16; do
    expect 1 'not finite, first in transformer_blocks.1.ff.net.2 of item ' \
        "$SMALTI" train features --transformer nan --steps 2 --batch 2 --tile-tokens $tiles -o nan-$tiles
done
# So is the layer whose gradients alone are not: its MLP gives 0, but the slope of one hidden value is beyond f32.
cp -r whole/step-9/transformer steep
python3 - <<'END'
import json, struct
with open("steep/diffusion_pytorch_model.safetensors", "r+b") as file:
    size = int.from_bytes(file.read(8), "little")
    tensors = json.loads(file.read(size))
    def put(name, value, first=0, step=1, end=None):
        begin, behind = tensors["transformer_blocks.1." + name]["data_offsets"]
        for i in range(first, end or (behind - begin) // 4, step):
            file.seek(8 + size + begin + 4 * i)
            file.write(struct.pack("<f", value))
    width = tensors["transformer_blocks.1.scale_shift_table"]["shape"][1]
    columns = tensors["transformer_blocks.1.ff.net.2.weight"]["shape"][1]
    put("ff.net.0.proj.weight", 0, end=width)
    put("ff.net.0.proj.bias", 0, end=1)
    put("ff.net.2.weight", 0)
    put("ff.net.2.weight", 1e38, step=columns)
    put("ff.net.2.bias", 0)
    put("scale_shift_table", 1e10, first=5 * width)
END
expect 1 'not finite, first in the gradients of transformer_blocks.1.ff.net.0.proj: ' \
    "$SMALTI" train features --transformer steep --steps 2 --batch 2 -o steep-run
# A damaged checkpoint is named.
cp -r whole damaged
printf 'x' | dd of=damaged/step-9/optimizer.safetensors bs=1 seek=5000 conv=notrunc status=none
refuse 1 'step-9/optimizer.safetensors: it is not as it was written; the checkpoint is damaged: remove its directory' \
    "${train[@]}" --steps 11 -o damaged
rm -r damaged/step-9
for part in transformer ema; do
    sed -i 's/"num_layers": 2/"num_layers": 1/' damaged/step-8/$part/config.json
    refuse 1 "step-8/$part/config.json: it is not as it was written" "${train[@]}" -o damaged
    cp config.json damaged/step-8/$part/config.json
done
expect 0 '' "${train[@]}" -q -o damaged
same whole/step-9 damaged/step-9
# Nothing of it is where the options ask for another state.
sed 's/"num_layers": 2/"num_layers": 1/' config.json >short.json
refuse 2 'optimizer.safetensors: tensor ' "${train[@]}" -q --steps 10 --allow-change --optimizer came -o whole
grep -q 'begin another run .*(--transformer)' err || fail "no remedy: $(cat err)"
refuse 2 'model.safetensors: ' "${train[@]}" -q --steps 10 --allow-change --init short.json -o whole

# A damaged row is named and left out.
cp -r features rotten
shard=$(echo rotten/shard-000000000000-*.h5)
printf 'rot' | dd of="$shard" bs=1 seek=$(($(stat -c %s "$shard") / 2)) conv=notrunc status=none
expect 0 'left out: ' "$SMALTI" train rotten "${train[@]:4}" -o rotten-run
refuse 1 'or have it left out by --damaged skip' "$SMALTI" train rotten "${train[@]:4}" --damaged refuse -q -o rotten-refused

# A disk that is full: one line, and with more room the same command goes on.
mkdir disk
if mount -t tmpfs -o size=100m none disk 2>/dev/null; then
    for room in 4k 300k 1300k; do
        mount -o remount,size=$room disk
        refuse 1 'No space left on device' "${train[@]}" -q -o disk/run
        [ -z "$(find disk -name '*.part')" ] || fail "$room: left $(find disk -name '*.part')"
        mount -o remount,size=100m disk
        expect 0 '' "${train[@]}" -q -o disk/run
        same whole/step-9 disk/run/step-9
        rm -r disk/run
    done
fi
