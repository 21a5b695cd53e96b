#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# What was built for CUDA, on 1 to 4 devices that the libraries of tests/cuda stand in for: images under policies that
# choose differently, golden outputs, every operation, transfers, and calls of CUDA that fail.
# shellcheck source=command.sh
. "$(dirname "$0")/command.sh"
# shellcheck source=device_images.sh
. "$(dirname "$0")/device_images.sh"

use_standin 'CUDA on devices that are stood in for'
export SMALTI_TEST_DRIVER=cuda

SMALTI_STANDIN_DEVICES=2 STARPU_WORKERS_CUDAID=1 "$SMALTI" topology --cpus 1 >"$work/topology" 2>&1
[ "$(grep -o '^  CUDA [0-9][0-9.]*' "$work/topology")" = '  CUDA 1.0' ] ||
    fail "other devices than STARPU_WORKERS_CUDAID says: $(cat "$work/topology")"

# cuDNN's version, where it is there.
! grep -qa 'libcudnn\.so\.9' "$(dirname "$SMALTI")/.libs/libsmalti.so" || grep -q '^  cuDNN *9\.[0-9]*\.[0-9]* ' "$work/topology" ||
    fail "no version of cuDNN: $(cat "$work/topology")"

# Each number of devices, with memory that does not hold all tiles, too.
latents cpu --cuda 0 --cpus 1
while read -r devices policy limit; do
    export SMALTI_STANDIN_DEVICES=$devices
    [ "$("$SMALTI" topology --cpus 1 2>/dev/null | grep -c '^  CUDA [0-3]\.0 ')" -eq "$devices" ] ||
        fail "not $devices devices"
    latents "$policy" --cuda "$devices" --cpus 1 --sched "$policy" --trace "$work/trace" ${limit:+--gpu-memory-limit "$limit"}
    near "$policy"
    for ((device = 0; device < devices; device++)); do
        [ "$policy" != eager ] || traced "CUDA $device.0"
    done
done <<'RUNS'
1 lws
2 eager
3 dmda 64M
4 dmdas
RUNS
# The limit of one device alone, less than what StarPU takes at a time.
STARPU_LIMIT_CUDA_0_MEM=48 SMALTI_STANDIN_DEVICES=1 latents limited --cuda 1 --cpus 1
near limited
# A device that has no more than that: StarPU would ask for its next piece for ever.
SMALTI_STANDIN_MEMORY=96 SMALTI_STANDIN_DEVICES=1 latents little --cuda 1 --cpus 1
near little
# From one device to another without a way through memory, where one image is spread over them.
SMALTI_STANDIN_DEVICES=2 latents ring --cuda 2 --cpus 1 --strategy ring --tile-tokens 8 --trace "$work/trace"
near ring
grep -q '"from":1,"to":2,"bytes":[1-9]' "$work/trace" || fail "no transfer between devices"
# Each device's utilisation, as the driver's library has it: that of two samples.
for share in 0.02 0.04; do
    grep -q "\"devices\":.*\"utilisation\":$share," "$work/trace" || fail "no utilisation of $share: $(tail -n 1 "$work/trace")"
done
# A step of training has that since the step before.
"$SMALTI" extract "$SMALTI_TESTDATA/extract/InternData/data_info.json" -k prompt --img-size 128 -q -o "$work/features"
SMALTI_STANDIN_DEVICES=2 "$SMALTI" train "$work/features" -o "$work/run" --steps 1 --batch 1 -q --cuda 2 --cpus 1
grep -q '"loss":.*"devices":\[{"name":"CUDA 0.*"utilisation":0.02},{"name":"CUDA 1.*"utilisation":0.04}\]' "$work/run/log.jsonl" ||
    fail "no utilisation in a step: $(cat "$work/run/log.jsonl")"
rm "$work/libraries/libnvidia-ml.so.1"
SMALTI_STANDIN_DEVICES=1 latents unknown --cuda 1 --cpus 1 --trace "$work/trace"
! grep -q '"utilisation"' "$work/trace" || fail "a utilisation without the driver's library"

# Memory that devices copy from is not given back: without a limit a quarter of what may be used is left to it.
python3 - "$work/large.safetensors" <<'END_OF_PROGRAM'
import json, struct, sys
bytes_of = 4 * 4 * 1024 * 1024
head = json.dumps({"latents": {"dtype": "F32", "shape": [1, 4, 1024, 1024], "data_offsets": [0, bytes_of]}}).encode()
open(sys.argv[1], "wb").write(struct.pack("<Q", len(head)) + head + bytes(bytes_of))
END_OF_PROGRAM
(
    ulimit -v 6500000
    SMALTI_STANDIN_DEVICES=1 SMALTI_STANDIN_UNITS=132 "$SMALTI" decode "$work/large.safetensors" --cuda 1 --cpus 1 --plan >"$work/log"
)
read -r _ most _ < <(grep '^memory' "$work/log")
[ "$most" -le $((6500000 * 3 / 4 / 1024)) ] || fail "a plan of $most MiB: $(head -5 "$work/log")"

# Other precisions, and results that do not depend on the policy.
export SMALTI_STANDIN_DEVICES=2
for precision in f16 tf32; do
    latents $precision --cuda 2 --cpus 1 --precision $precision
    near $precision 5e-2
done
for policy in eager lws; do
    latents "again-$policy" --cuda 2 --cpus 1 --sched $policy --reproducible
done
cmp "$work/again-eager.safetensors" "$work/again-lws.safetensors" || fail "--reproducible: other results by another policy"

STARPU_NCUDA=2 golden lws 'T5, f32' 'VAE decoder, f32' 'VAE encoder, bf16' 'T5, tf32' 'VAE encoder, tf32'
for program in test_device_linear test_devices test_device_tiles test_fusion test_slowdown; do
    SMALTI_STANDIN_DEVICES=4 STARPU_SUBALLOCATOR=0 "$programs/$program" >"$work/log" 2>&1 || fail "$program: $(cat "$work/log")"
done
# Attention by the kernels for compute capability 9.0, of which a device of two multiprocessors runs two groups; one of 8.0
# does without them.
SMALTI_STANDIN_UNITS=2 "$programs/test_attend_tile" >"$work/log" 2>&1 || fail "test_attend_tile: $(cat "$work/log")"
! grep -q skipped "$work/log" || fail "test_attend_tile: $(cat "$work/log")"
for test in 'attend_tile:tiles of keys' 'devices:operations on devices: convolutions and attention'; do
    SMALTI_STANDIN_MAJOR=8 SMALTI_TEST=${test#*:} "$programs/test_${test%%:*}" >"$work/log" 2>&1 || fail "8.0, $test: $(cat "$work/log")"
done
SMALTI_STANDIN_DEVICES=4 STARPU_SUBALLOCATOR=0 SMALTI_TEST='weights come once' "$programs/test_transfers" >"$work/log" 2>&1 ||
    fail "test_transfers: $(cat "$work/log")"
SMALTI_STANDIN_DEVICES=2 SMALTI_TEST='searched on devices' "$programs/test_retrieve" >"$work/log" 2>&1 ||
    fail "test_retrieve: $(cat "$work/log")"
! grep -q skipped "$work/log" || fail "test_retrieve: $(cat "$work/log")"
SMALTI_STANDIN_DEVICES=1 SMALTI_TEST='a quarter of the weights' "$programs/test_device_plans" >"$work/log" 2>&1 ||
    fail "test_device_plans: $(cat "$work/log")"
# A linear layer whose result has 16 bits launches no kernel: its products make it, one for each part of its weight.
SMALTI_STANDIN_FAIL=launch:1 SMALTI_TEST='results of 16 bits' "$programs/test_device_linear" >"$work/log" 2>&1 ||
    fail "a kernel: $(cat "$work/log")"
# It and products of integers make as many products as the test counts.
for test in 'results of 16 bits' 'products of integers'; do
    export SMALTI_TEST=$test
    "$programs/test_device_linear" >"$work/log" 2>&1 || fail "$test: $(cat "$work/log")"
    products=$(sed -n 's/^ *\([0-9]*\) products$/\1/p' "$work/log")
    SMALTI_STANDIN_FAIL=product:$((products + 1)) "$programs/test_device_linear" >"$work/log" 2>&1 ||
        fail "$test: more than $products products: $(cat "$work/log")"
    ! SMALTI_STANDIN_FAIL=product:$products "$programs/test_device_linear" >"$work/log" 2>&1 || fail "$test: fewer than $products products"
done
unset SMALTI_TEST
# Without cuDNN, whose graphs compute convolutions and attention otherwise, and where it refuses a plan that it made, or
# computes by it what is wrong.
for call in cudnn:1 graph:1 values:1; do
    SMALTI_STANDIN_FAIL=$call SMALTI_TEST='operations on devices: convolutions and attention' "$programs/test_devices" >"$work/log" 2>&1 ||
        fail "$call: $(cat "$work/log")"
done

# An extraction computes less at a time where a device that does everything has less memory, with the same rows, and ends where
# that does not hold one image.
export SMALTI_STANDIN_DEVICES=1
extraction=("$SMALTI" extract "$SMALTI_TESTDATA/extract/InternData/data_info.json" --cuda 1 --cpus 1 --dtype f32)
while read -r kind limit sizes; do
    SMALTI_STANDIN_UNITS=132 "${extraction[@]}" "--$kind" --img-size 128 --range 0:2 --gpu-memory-limit "$limit" -o "$work/$kind-$limit" \
        >"$work/log" 2>&1 || fail "extract --$kind, $limit: $(cat "$work/log")"
    grep -q "^smalti extract: $sizes, by .* of CUDA 0\.0 (stand-in .*); shards of 1024 items$" "$work/log" ||
        fail "extract --$kind, $limit: not $sizes: $(cat "$work/log")"
    ! grep -q 'too large' "$work/log" || fail "extract --$kind, $limit: on a CPU: $(cat "$work/log")"
    "$programs/store_worker" dump "$work/$kind-$limit" >"$work/rows"
    [ -e "$work/rows-$kind" ] || cp "$work/rows" "$work/rows-$kind"
    cmp "$work/rows" "$work/rows-$kind" || fail "extract --$kind, $limit: other rows"
done <<'SIZES'
t5 512M captions in packs of 4096 tokens
t5 16M captions in packs of 512 tokens
t5 2M captions in packs of 64 tokens
vae 256M 8 images at a time
vae 16M 1 image at a time
SIZES
SMALTI_STANDIN_UNITS=132 expect 1 'encoding an image of 128x128 needs ' "${extraction[@]}" --vae --img-size 128 --gpu-memory-limit 8M -o "$work/none"
grep -q 'CUDA 0\.0 (stand-in .* bytes at least, but [0-9]* are free beside the weights: raise --gpu-memory-limit, or' "$work/err" ||
    fail "not what there is: $(cat "$work/err")"

# A call that fails ends the images that need it with its message, and no others.
while read -r call words; do
    SMALTI_STANDIN_FAIL=$call expect 1 "$words" timeout 900 "$SMALTI" generate -p a --size 96x64 --steps 2 \
        -o "$work/failed.png" -q --cuda 1 --cpus 1 --reproducible
    [ ! -e "$work/failed.png" ] || fail "$call: an image all the same"
done <<'WORDS'
busy:1 CUDA-capable device(s) is/are busy or unavailable
launch:40 too many resources requested for launch
product:30 cuBLASLt says
graph:2 cuDNN says
WORDS
mkdir "$work/images"
SMALTI_STANDIN_FAIL=product:60 expect 3 'cuBLASLt says' timeout 900 "$SMALTI" generate -p 'a star' -p 'a red star' \
    --size 96x64 --steps 2 -o "$work/images/" --cuda 1 --cpus 1 --reproducible
[ "$(files "$work/images" | wc -w)" -eq 1 ] || fail "not one image beside one that failed"
