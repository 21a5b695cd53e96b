#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# With --reproducible results repeat to the bit on two OpenCL devices (PoCL's) and a CPU, whatever the policy; devices of
# different kinds are refused.
# shellcheck source=command.sh
. "$(dirname "$0")/command.sh"
# shellcheck source=device_images.sh
. "$(dirname "$0")/device_images.sh"
use_pocl 'reproducible results on devices'
cd "$work"
policies='eager dmda lws'

# repeat NAME TIMES OPTION...: an image under each policy so many times; all are NAME.png.
repeat() {
    local name=$1 times=$2 policy run
    shift 2
    for policy in $policies; do
        for ((run = 0; run < times; run++)); do
            "$SMALTI" generate -p 'a red star' --size 64x48 --steps 2 --save-latents -o again.png -q --opencl 2 --cpus 1 \
                --reproducible --sched "$policy" "$@"
            [ -f "$name.png" ] || cp again.png "$name.png"
            cmp "$name.png" again.png || fail "$name, $policy, run $run: another image"
        done
    done
}

repeat image 5 --trace trace
for kind in OpenCL CPU; do
    worker=$(grep -o "\"tid\":[0-9]*,\"name\":\"thread_name\",\"args\":{\"name\":\"$kind 0" trace | grep -o '[0-9]*' | head -n 1)
    grep "\"ph\":\"X\",\"pid\":1,\"tid\":$worker,.*\"cat\":\"task\"" trace | grep -o '"name":"[a-z_0-9]*"' | sort -u >"$kind"
done
[ -s CPU ] || fail "nothing ran on the CPU"
grep -q '"matmul"' OpenCL || fail "a product is not on devices: $(cat OpenCL)"
! grep -E '"(matmul|attention|conv|rmsnorm|convert)"' CPU || fail "what devices have a form of ran on a CPU"
repeat f16 1 --precision f16
repeat joined 1 --grain block
repeat shares 1 --shares 1:1:1
repeat cut-again 1 --strategy ring --shares 1:1:1,0:3:1@2
grep -aq '"shares":"1:1:1,0:3:1@2"' again.png || fail 'the metadata have other shares'

# The other commands.
cp again.safetensors latents.safetensors
for policy in $policies; do
    for command in 'decode latents.safetensors -o decoded' 'encode image.png -o encoded'; do
        read -ra words <<<"$command"
        suffix=png
        [ "${words[0]}" = decode ] || suffix=safetensors
        "$SMALTI" "${words[@]::3}" "${words[3]}-$policy.$suffix" -q --opencl 2 --cpus 1 --reproducible --sched "$policy"
        cmp "${words[3]}-$policy.$suffix" "${words[3]}-eager.$suffix" || fail "$command under $policy"
    done
done

refuse 1 'devices of one kind' env POCL_DEVICES='basic pthread' "$SMALTI" generate -p a -o x.png --opencl 2 --reproducible

# Without devices it changes nothing.
"$SMALTI" generate -p a --size 32x32 --steps 1 -o plain.png -q
"$SMALTI" generate -p a --size 32x32 --steps 1 -o plainly.png -q --reproducible
cmp plain.png plainly.png
