#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A device that is lost in the middle of a batch: at every kind of call, under policies that choose differently, and at
# random moments (SMALTI_TEST_FULL=1: 100 of them). Images without data there are made, the others fail with a message
# that names the device; nothing hangs, what is asked for later is made on what is left, and --resume makes what
# failed. On PoCL's devices, in a build for CUDA on the stand-in's.
# shellcheck source=command.sh
. "$(dirname "$0")/command.sh"
# shellcheck source=device_images.sh
. "$(dirname "$0")/device_images.sh"

if [ -e "$(dirname "$SMALTI")/.libs/libstandin.so" ]; then
    use_standin 'lost devices'
    export SMALTI_STANDIN_DEVICES=2
    kind=cuda name=CUDA library=''
    calls='step:500 launch:400 product:150 copy:60 record:80 query:1500 malloc:6'
else
    use_pocl 'lost devices'
    library=$(dirname "$SMALTI")/.libs/liblose_opencl.so
    kind=opencl name=OpenCL
    calls='launch:400 write:80 read:30 marker:60 query:300 buffer:80'
fi
prompts=(-p 'a red star' -p b -p c -p d -p e -p f -p g -p h -p i -p j -p k -p l) # more than are in work at a time
images=$((${#prompts[@]} / 2))

# batch NAME OPTION...: a batch of small images into $work/NAME. Without guidance they share no text, which would take all
# of them with it.
batch() {
    mkdir -p "$work/$1"
    timeout -k 5 900 "$SMALTI" generate "${prompts[@]}" --size 96x64 --steps 2 --guidance 1 --save-latents -o "$work/$1/" -q "${@:2}"
}

# near_cpu: the images that there are.
near_cpu() {
    local file
    for file in "$work"/lost/*.safetensors; do
        [ ! -e "$file" ] || near "lost/$(basename "$file" .safetensors)" 5e-4 "cpu/$(basename "$file" .safetensors)"
    done
}

# lose CALL DEVICES POLICY OPTION...: its exit status and messages fit the images that it made, and these those of the
# CPU.
lose() {
    local status=0 began=$SECONDS
    rm -rf "$work/lost"
    SMALTI_LOSE=$1 LD_PRELOAD=$library batch lost --$kind "$2" --cpus 1 --sched "$3" "${@:4}" 2>"$work/err" ||
        status=$?
    made=$(find "$work/lost" -name '*.png' | wc -l)
    case $status in
    0) [ "$made" -eq "$images" ] ;;
    1) [ "$made" -eq 0 ] ;;
    3) [ "$made" -gt 0 ] && [ "$made" -lt "$images" ] ;;
    *) false ;;
    esac || fail "$*: status $status with $made images: $(cat "$work/err")"
    [ "$made" -eq "$images" ] || grep -q "$name [0-9].*: " "$work/err" ||
        fail "$*: no word of a lost device: $(cat "$work/err")"
    near_cpu
    echo "$*: $made of $images images, $((SECONDS - began)) s"
}

batch cpu --$kind 0 --cpus 1
lose any:0 2 lws # measures transfers once; nothing is lost
for call in $calls; do
    lose "$call" 2 lws
    [ "$made" -gt 0 ] || fail "$call: no image, though the batch went on without the device"
done
for policy in eager dmda random modular-heft; do lose any:2500 2 $policy; done
# Spread by strategies; then --resume makes what failed.
strategies=('' patch ring ulysses tensor cfg hybrid:cfg2.ring2)
runs=3
[ -z "${SMALTI_TEST_FULL:-}" ] || runs=100
for ((run = 0; run < runs; run++)); do
    strategy=${strategies[RANDOM % ${#strategies[@]}]}
    devices=$((1 + RANDOM % 2))
    options=(${strategy:+--strategy "$strategy"} --resume)
    lose any:$((500 + RANDOM % 4000)) $devices lws "${options[@]}"
    batch lost --$kind $devices --cpus 1 "${options[@]}"
    near_cpu
    [ "$(find "$work/lost" -name '*.png' | wc -l)" -eq "$images" ] || fail "--resume has made $(files "$work/lost")"
done

# A device that is lost when a session opens is no session's.
SMALTI_LOSE=any:1 LD_PRELOAD=$library expect 1 ' is lost: ' timeout -k 5 900 "$SMALTI" generate -p a -o "$work/x.png" --$kind 1
# What results depend on is not taken from elsewhere.
SMALTI_LOSE=launch:40 LD_PRELOAD=$library expect 1 '' timeout -k 5 900 \
    "$SMALTI" generate "${prompts[@]}" --size 96x64 --steps 2 -o "$work/lost/" --$kind 1 --cpus 1 --reproducible
