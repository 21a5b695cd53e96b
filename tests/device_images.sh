# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash disable=SC2154
# What tests of devices share, beside command.sh: PoCL's devices, images and golden outputs, by the tolerances for CPUs.
programs=$(dirname "$SMALTI")/tests

# use_pocl WHAT [DEVICES]: has OpenCL's devices be two (or so many) of PoCL's, which `topology` then shows; without them
# WHAT is skipped.
use_pocl() {
    local devices=${2:-2} names
    printf -v names '%*s' "$devices" ''
    export STARPU_HOME=$work POCL_DEVICES=${names// /basic } STARPU_OPENCL_ON_CPUS=1 STARPU_WORKERS_NOBIND=1
    ! "$SMALTI" topology --opencl "$devices" --cpus 1 >"$work/topology" 2>"$work/err" || return 0
    grep -q 'without OpenCL\|OpenCL devices: expected' "$work/err" || fail "$(cat "$work/err")"
    echo "$1: skipped: $(cat "$work/err")"
    exit 77
}

# use_standin WHAT: has CUDA's libraries be those of tests/cuda; without them WHAT is skipped.
use_standin() {
    local standin name
    standin=$(dirname "$SMALTI")/.libs/libstandin.so
    if [ ! -e "$standin" ]; then
        echo "$1: skipped: this was built without CUDA"
        exit 77
    fi
    if ! grep -qa 'libcudart\.so\.13' "$(dirname "$standin")/libsmalti.so"; then
        echo "$1: skipped: the libraries of tests/cuda are those of CUDA 13"
        exit 77
    fi
    mkdir "$work/libraries"
    for name in cudart.so.13 cublas.so.13 cublasLt.so.13 cudnn.so.9 nvidia-ml.so.1; do ln -s "$standin" "$work/libraries/lib$name"; done
    export LD_LIBRARY_PATH=$work/libraries${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
    export STARPU_HOME=$work STARPU_WORKERS_NOBIND=1
}

# latents NAME OPTION...: of a small image.
latents() {
    local name=$1
    shift
    "$SMALTI" generate -p 'a red star' --size 96x64 --steps 3 --save-latents -o "$work/$name.png" -q "$@"
}

# near NAME [ERROR [OF]]: the latents are those of the CPU (OF) but for rounding, by default of f32.
near() {
    python3 - "$work/${3:-cpu}.safetensors" "$work/$1.safetensors" "${2:-5e-4}" <<'END_OF_PROGRAM' || fail "$1: other latents than a CPU's"
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

# golden POLICY STAGE...: as test_golden names them, `images` those of test_generate, `images from images`
# those of DDIM, one with a mask; on the devices of the environment.
golden() {
    local policy=$1 stage
    shift
    for stage; do
        local program=test_golden case=$stage
        case $stage in
        images) program=test_generate case='outputs of the reference' ;;
        'images from images') program=test_image_to_image case='equal to the reference with DDIM' ;;
        esac
        SMALTI_TEST=$case STARPU_NCPU=1 STARPU_SCHED=$policy "$programs/$program" >"$work/log" 2>&1 ||
            fail "$stage by $policy: $(cat "$work/log")"
        grep -q 'tests  *1  *1  *1 ' "$work/log" || fail "$program has no case '$case'"
    done
}
