# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash disable=SC2154
# What tests of devices share, beside command.sh: images and golden outputs, by the tolerances for CPUs.
programs=$(dirname "$SMALTI")/tests

# latents NAME OPTION...: of a small image.
latents() {
    local name=$1
    shift
    "$SMALTI" generate -p 'a red star' --size 96x64 --steps 3 --save-latents -o "$work/$name.png" -q "$@"
}

# near NAME [ERROR]: the latents are those of the CPU but for rounding, by default of f32.
near() {
    python3 - "$work/cpu.safetensors" "$work/$1.safetensors" "${2:-5e-4}" <<'END_OF_PROGRAM' || fail "$1: other latents than a CPU's"
import array, struct, sys
def values(path):
    data = open(path, "rb").read()
    return array.array("f", data[8 + struct.unpack("<Q", data[:8])[0]:])
expected, found = map(values, sys.argv[1:3])
worst = max(abs(a - b) for a, b in zip(expected, found, strict=True))
sys.exit(not worst <= float(sys.argv[3]) * max(map(abs, expected)))
END_OF_PROGRAM
}

# traced DEVICE: tasks ran there; it is named as a trace does.
traced() {
    local worker
    worker=$(grep -o "\"tid\":[0-9]*,\"name\":\"thread_name\",\"args\":{\"name\":\"$1 " "$work/trace" |
        grep -o '[0-9]*' | head -n 1)
    grep -q "\"ph\":\"X\",\"pid\":1,\"tid\":$worker,.*\"cat\":\"task\"" "$work/trace" || fail "no task on $1"
}

# golden STAGE...: as test_golden names them, on the devices of the environment.
golden() {
    local stage
    for stage; do
        SMALTI_TEST=$stage STARPU_NCPU=1 STARPU_SCHED=lws "$programs/test_golden" >"$work/log" 2>&1 ||
            fail "$stage: $(cat "$work/log")"
    done
}
