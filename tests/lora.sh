#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Adapters: the images and latents of peft's and diffusers' models; merged and of single prompts; resumed; through the server
# many of them by turns, each as alone, in flat memory; what is wrong is refused. SMALTI_TEST_FULL=1: 1,000 requests.
# shellcheck source=command.sh
. "$(dirname "$0")/command.sh"

golden=$SMALTI_TESTDATA/golden/lora
cd "$work"
trap 'kill -9 ${server:-} 2>/dev/null || true; rm -rf "$work"' EXIT

# The reference's images, by the option and by a line's own key.
image=(-q --size 128x128 --steps 10 --seed 5 --save-latents --transformer "$SMALTI_TESTDATA/golden/transformer-2")
prompt='a blue heart below a green star on a yellow background'
merged() {
    "$SMALTI" generate "${image[@]}" -p "$prompt" -o "merged/$1.png" "${@:2}"
}
mkdir merged
merged base
merged peft --lora "$golden/peft"
merged diffusers --lora "$golden/diffusers"
merged diffusers-plain --lora "$golden/diffusers-plain"
merged old --lora "$golden/old"
merged flat --lora "$golden/flat/lora.safetensors"
merged dora --lora "$golden/dora"
merged dora-0.5 --lora "$golden/dora:0.5"
merged mix --lora "$golden/peft:0.7" --lora "$golden/flat/lora.safetensors:-0.5"
# line ID [LORA]
line() {
    echo "{\"id\": \"$1\", \"prompt\": \"$prompt\"${2:+, \"lora\": \"$2\"}}"
}
{
    line base
    line peft "$golden/peft"
    line diffusers "$golden/diffusers"
    line diffusers-plain "$golden/diffusers-plain"
    line old "$golden/old"
    line flat "$golden/flat/lora.safetensors"
    line mix "$golden/peft:0.7,$golden/flat/lora.safetensors:-0.5"
} >lines.jsonl
"$SMALTI" generate "${image[@]}" -P lines.jsonl -o single/
PYTHONPATH=$tests python3 - "$golden" <<'END' || fail "the reference's images"
import os, sys
from outputs import pixels, tensors
reference = tensors(sys.argv[1] + "/forward.safetensors")
for directory in "merged", "single":
    for file in sorted(os.listdir(directory)):
        name, kind = file.rsplit(".", 1)
        if kind == "safetensors":
            found, expected = tensors(f"{directory}/{file}")["latents"], reference[name + ".latents"]
            error = max(abs(a - b) for a, b in zip(found, expected)) / max(map(abs, expected))
            assert len(found) == len(expected) and error <= 5e-4, (directory, name, error)
        elif os.path.exists(f"{sys.argv[1]}/{file}"):
            off = [abs(a - b) for a, b in zip(pixels(f"{directory}/{file}")[2], pixels(f"{sys.argv[1]}/{file}")[2])]
            assert max(off) <= 2 and sum(o > 1 for o in off) == 0 and sum(o > 0 for o in off) <= len(off) / 100, (name, max(off))
END
cmp merged/base.png single/base.png
! cmp -s single/base.png single/peft.png || fail "the adapter changes nothing"

# Beside weights in 8 bits, which merging would round anew, an adapter of all images has the bits of a single prompt's. DoRA is
# merged there, too.
for type in int8 fp8; do "$SMALTI" quantize -q "$golden/../transformer-2" $type --type $type; done
line peft "$golden/peft" >one.jsonl
beside() {
    local name=$1
    shift
    "$SMALTI" generate "${image[@]}" -p "$prompt" -o "beside/$name.png" --lora "$golden/peft" "$@"
    "$SMALTI" generate "${image[@]}" -P one.jsonl -o "beside/$name-prompt/" "$@"
    cmp "beside/$name.safetensors" "beside/$name-prompt/peft.safetensors" || fail "$name: --lora has not the bits of the prompt's"
    "$SMALTI" generate "${image[@]}" -p "$prompt" -o "beside/$name-base.png" "$@"
    ! cmp -s "beside/$name.png" "beside/$name-base.png" || fail "$name: the adapter changes nothing"
}
mkdir beside
beside int8 --transformer int8
beside fp8 --transformer fp8
beside w8a8 --precision w8a8
"$SMALTI" generate "${image[@]}" -p "$prompt" -o beside/dora.png --lora "$golden/dora" --transformer int8
! cmp -s beside/dora.png beside/int8-base.png || fail "DoRA changes nothing"
PYTHONPATH=$tests python3 - <<'END' || fail "an adapter beside 8 bits"
from outputs import tensors
merged, beside = (tensors(f"{name}.safetensors")["latents"] for name in ("merged/peft", "beside/int8"))
error = max(abs(a - b) for a, b in zip(merged, beside)) / max(map(abs, merged))
print(f"    beside int8: {error:.1e} of the largest latent from f32")
assert error <= 0.05, error
END

# An image is known by its adapters' values and weights: the same are skipped, others are made again.
again() {
    "$SMALTI" generate "${image[@]}" -P "$1" -o single/ --resume --json
}
[ "$(again lines.jsonl | grep -c '"status":"skipped"')" -eq 7 ] || fail "not all were skipped: $(again lines.jsonl)"
line peft "$golden/peft:0.5" >other.jsonl
cp single/peft.png before.png
[ "$(again other.jsonl | grep -c '"status":"skipped"')" -eq 0 ] || fail "another weight was skipped"
! cmp -s before.png single/peft.png || fail "another weight changes nothing"

# What cannot be is refused, quickly and in one line.
small=(--size 16x16 --steps 1 -p 'a red star' -o x.png)
refuse 1 "nowhere: cannot be opened" "$SMALTI" generate -q "${small[@]}" --lora nowhere
refuse 1 "no adapter here" "$SMALTI" generate -q "${small[@]}" --lora "$work"
refuse 1 "not a safetensors file" "$SMALTI" generate -q "${small[@]}" --lora "$golden/peft/adapter_config.json"
expect 2 "found nothing" "$SMALTI" generate -q "${small[@]}" --lora :2
cp -r "$golden/peft" bad
head -c 100000 "$golden/peft/adapter_model.safetensors" >bad/adapter_model.safetensors
refuse 1 "bad/adapter_model.safetensors" "$SMALTI" generate -q "${small[@]}" --lora bad
for lora in "$golden/dora" "$golden/t5/lora.safetensors"; do
    echo "{\"prompt\": \"a red star\", \"lora\": \"$lora\"}" >refused.jsonl
    expect 1 "give it to all, with --lora" "$SMALTI" generate -q --size 16x16 --steps 1 -P refused.jsonl -o refused/
done
echo "{\"prompt\": \"a red star\", \"lora\": \"$golden/peft\"}" >twice.jsonl
expect 1 "adapters of all images already" "$SMALTI" generate -q --size 16x16 --steps 1 -P twice.jsonl -o refused/ --lora "$golden/peft"
"$SMALTI" generate -q "${small[@]}" --lora "$golden/t5/lora.safetensors"

# Twenty adapters in random turns through the server: each image as alone.
adapters=()
for i in {0..19}; do
    from=(peft diffusers old)
    cp -r "$golden/${from[i % 3]}" "adapter-$i"
    adapters+=(--lora "a$i=adapter-$i")
    echo "{\"id\": \"a$i\", \"prompt\": \"a red star\", \"seed\": $i, \"lora\": \"adapter-$i:0.$((i + 1))\"}"
done >alone.jsonl
"$SMALTI" generate -q --size 32x32 --steps 2 -P alone.jsonl -o alone/
: >said
refuse 2 "expected NAME=PATH" "$SMALTI" serve --listen 127.0.0.1:0 --lora adapter-1
refuse 2 "given twice" "$SMALTI" serve --listen 127.0.0.1:0 --lora a=adapter-1 --lora a=adapter-2
refuse 1 "nowhere" "$SMALTI" serve --listen 127.0.0.1:0 --lora a=nowhere
"$SMALTI" serve --listen 127.0.0.1:0 --cpus 2 --max-waiting 2000 --max-waiting-of-client 2000 "${adapters[@]}" >said 2>err &
server=$!
await_words listening said
requests=100
[ -z "${SMALTI_TEST_FULL:-}" ] || requests=1000
python3 - "$(sed 's/.*://' said)" $server $requests <<'END' || fail "the server's images: $(cat err)"
import json, random, sys, threading, urllib.error, urllib.request
port, server, requests = sys.argv[1], sys.argv[2], int(sys.argv[3])
def ask(body):
    request = urllib.request.Request(f"http://127.0.0.1:{port}/v1/images/generations", json.dumps(body).encode(),
                                     {"Content-Type": "application/json", "Accept": "image/png"})
    try:
        return urllib.request.urlopen(request, timeout=600).read()
    except urllib.error.HTTPError as error:
        return error.read()
def megabytes():
    return int(next(line for line in open(f"/proc/{server}/status") if line.startswith("VmRSS")).split()[1]) / 1024
random.seed(1)
turns = [i % 20 for i in range(requests)]
random.shuffle(turns)
wrong, lock, sizes = [], threading.Lock(), []
def pixels(png):  # the metadata differ by the adapters' names
    return png[png.find(b"IDAT"):]
def client():
    while True:
        with lock:
            if not turns:
                return
            i = turns.pop()
            sizes.append(megabytes())
        png = ask({"prompt": "a red star", "seed": i, "size": "32x32", "num_inference_steps": 2, "lora": f"a{i}:0.{i + 1}"})
        if pixels(png) != pixels(open(f"alone/a{i}.png", "rb").read()):
            wrong.append((i, png[:200]))
threads = [threading.Thread(target=client) for _ in range(6)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
assert not wrong, wrong[:3]
half, end = max(sizes[:len(sizes) // 2]), max(sizes[len(sizes) // 2:])
assert end <= half + 60, ("memory grows", half, end)
for lora, words in ("b", b"no adapter"), ("adapter-1", b"no adapter"), ("", b"no adapter"), ("a1,", b"no adapter"), (3, b"lora"), \
        ("a1:x", b"NAME:WEIGHT"), ("a1:2:3", b"NAME:WEIGHT"), ("a1:", b"NAME:WEIGHT"), ("a1:1e9", b"NAME:WEIGHT"):
    answer = ask({"prompt": "a red star", "lora": lora})
    assert words in answer, (lora, answer[:300])
print(f"{requests} requests, {half:.0f} MB, then {end:.0f} MB")
END
kill $server
wait $server || fail "status $?: $(cat err)"

# Features of a text encoder with an adapter, which the directory knows; one that does not change the text encoder is refused.
data=$SMALTI_TESTDATA/extract/InternData/data_info.json
extract=("$SMALTI" extract "$data" --t5 -k prompt --shard-items 50 -q)
"${extract[@]}" -o plain
"${extract[@]}" -o adapted --lora "$golden/t5/lora.safetensors"
"${extract[@]}" -o adapted --lora "$golden/t5/lora.safetensors"
! cmp -s plain/shard-*.h5 adapted/shard-*.h5 || fail "the adapter changes no feature"
expect 2 "text" "${extract[@]}" -o adapted
expect 2 "text" "${extract[@]}" -o adapted --lora "$golden/t5/lora.safetensors:0.5"
expect 2 "does not change the text encoder" "${extract[@]}" -o other --lora "$golden/peft"
