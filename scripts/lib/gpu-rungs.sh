# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
# shellcheck disable=SC2034,SC2154,SC2317 # what scripts/gpu-check sets and reads, and functions that part() calls
# The rungs of scripts/gpu-check, and how each is measured. A rung is a function rung_N; the line above it says what it answers.

tests=(attend_tile devices device_linear device_tiles transfers fusion device_plans cudnn retrieve golden generate)

# Lists the rungs with what they answer.
list_rungs() {
    sed -n -e '/^# Rung: /{s/^# Rung: //;h}' -e '/^rung_[0-9]/{s/rung_\([0-9]*\).*/\1/;G;s/\n/  /p}' "$root/scripts/lib/gpu-rungs.sh"
}

# bounded COMMAND...: ends it when the part has taken too long.
bounded() {
    timeout -k 5 "$limit" "$@"
}

# part NAME SECONDS COMMAND...: a row of the report; the command's output is kept in a log.
limit=0
part() {
    local name=$1 log=$logs/${1// /-}.log status=0 start=$SECONDS result
    limit=$2
    shift 2
    "$@" >"$log" 2>&1 || status=$?
    case $status in
    0) result=passed ;;
    77) result="skipped: $(tail -n 1 "$log")" ;;
    124 | 137) result="**still running after $limit s**" ;;
    *) result="**failed ($status): $(tail -n 1 "$log")**" ;;
    esac
    [[ $status = 0 || $status = 77 ]] || failed=1
    say "$name: $result, $((SECONDS - start)) s"
    echo "| $rung | $name | $result | $((SECONDS - start)) |" >>"$report"
}

# one_test NAME SECONDS [CASE]: a test program, or one of its tables.
one_test() {
    part "test_$1${3:+ $3}" "$2" env ${3:+SMALTI_TEST="$3"} timeout -k 5 "$2" "$build/tests/test_$1"
}

# golden SECONDS PROGRAM CASE: on one GPU and one CPU.
golden() {
    part "golden $3" "$1" env SMALTI_TEST="$3" STARPU_NCUDA=1 STARPU_NCPU=1 STARPU_SCHED=eager timeout -k 5 "$1" "$build/tests/test_$2"
}

# model NAME OPTION...: a model of the real width, once.
model() {
    [ -d "$work/$1" ] || part "model $1" 120 bounded "$build/smalti-bench" make-model -q "${@:2}" "$work/$1"
}

# stages NAME SECONDS OPTION...: medians of what a user waits for, in bf16, on the model of the real width.
stages() {
    model sigma -g sigma-1024 --only dit,vae
    part "$1" "$2" bounded "$build/smalti-bench" stages -m "$work/sigma" --precision bf16 --cuda 1 --repeats 9 \
        -o "$logs/${1// /-}.jsonl" "${@:3}"
}

# peers SCRIPT ARGUMENT...: of bench/peers, on the GPU.
peers() {
    "${PYTHON:-python3}" -c 'import diffusers, torch; assert torch.cuda.is_available(), "PyTorch finds no GPU"' || return 77
    bounded "${PYTHON:-python3}" "$root/bench/peers/$1" --device cuda "${@:2}"
}

# beside STAGE SIZES SECONDS [OPTION]...: Smalti's beside PyTorch's, eager and compiled, in turns.
beside() {
    model sigma -g sigma-1024 --only dit,vae
    part "beside PyTorch $1" "$3" peers compare.py --smalti-bench "$build/smalti-bench" --libraries torch,compile --rounds 3 --model "$work/sigma" "${@:4}" "$1" bfloat16 "$2"
}

# profile MODEL OPTION...: seconds by kernel of the last commands of a stage, by NVIDIA's profiler.
profile() {
    have ncu || { echo "ncu is not installed" && return 77; }
    bounded ncu --target-processes all --clock-control none --csv --metrics gpu__time_duration.sum \
        "$build/smalti-bench" stages -m "$work/$1" --precision bf16 --cuda 1 --cpus 1 --repeats 1 "${@:2}" >"$work/profile.csv" || return
    awk -F'","' '
        /^"[0-9]/ { name[++count] = $5; sub(/\(.*/, "", name[count]); time[count] = $NF; gsub(/[",]/, "", time[count]) }
        END {
            # The stage is run twice: behind its plans'"'"' choice, its commands are the same as before.
            for (i = int(count / 2) + 1; i <= count; i++) { sum[name[i]] += time[i]; times[name[i]]++; all += time[i] }
            printf "%d commands, %.3f ms\n", count - int(count / 2), all / 1e6
            for (n in sum) printf "%10.3f ms %6d  %s\n", sum[n] / 1e6, times[n], n | "sort -rn"
        }' "$work/profile.csv"
    cp "$work/profile.csv" "$logs/profile$(printf '%s' "${@:2}").csv"
}

# repeats: an image whose passes are repeated as graphs has the bits of one whose commands are given one by one.
repeats() {
    local grain
    for grain in pass operation; do
        bounded "$build/smalti" generate -p 'a red star above a blue ring on a white background' --cuda 1 --cpus 1 --precision bf16 \
            --grain "$grain" --save-latents --json -o "$work/$grain.png" || return
    done | tee "$work/repeats"
    grep -qE '"repeated":[1-9]' "$work/repeats" || { echo 'nothing was repeated' && return 1; }
    cmp "$work/pass.safetensors" "$work/operation.safetensors"
}

# as_a_user: an image, features of captions and images, and steps of training: all on the GPU, and the steps on a CPU, too,
# which are to be the same but for rounding.
as_a_user() {
    local smalti=$build/smalti device
    bounded "$smalti" generate -p 'a red star above a blue ring on a white background' --seed 1 --cuda 1 --cpus 1 -q -o "$logs/star.png" || return
    bounded "$smalti" extract "$SMALTI_TESTDATA/extract/InternData/data_info.json" -k prompt --img-size 256 -q --cuda 1 --cpus 1 \
        -m "$SMALTI_MODELS/tesserae" -o "$work/features" || return
    for device in 'cpu --cuda 0' 'gpu --cuda 1' 'gpu-bf16 --cuda 1 --precision bf16' 'gpu-f16 --cuda 1 --precision f16'; do
        # shellcheck disable=SC2086 # a name and options
        set -- $device
        bounded "$smalti" train "$work/features" -m "$SMALTI_MODELS/tesserae" --steps 4 --batch 4 --lanes 4 --cpus 1 -q \
            -o "$work/$1" "${@:2}" || return
        cp "$work/$1/log.jsonl" "$logs/train-$1.jsonl"
    done
    awk -F'[:,]' '
        FNR == 1 { file++; step = 0 }
        /"loss"/ {
            for (i = 1; i < NF; i++) if ($i ~ /"loss"/) loss = $(i + 1)
            step++
            if (file == 1) cpu[step] = loss
            else {
                error = loss / cpu[step] - 1
                tolerance = file == 2 ? 5e-5 : 5e-2
                print FILENAME, "step", step, "loss", loss, "beside", cpu[step]
                if (error > tolerance || error < -tolerance) bad = 1
                compared++
            }
        }
        END { if (bad || compared != 12) { print "other losses than the CPU" "\x27" "s"; exit 1 } }' \
        "$logs"/train-{cpu,gpu,gpu-bf16,gpu-f16}.jsonl
}

# sanitizer TOOL: over every operation, on small extents.
sanitizer() {
    have compute-sanitizer || { echo "compute-sanitizer is not installed" && return 77; }
    SMALTI_TEST='operations on devices' bounded compute-sanitizer --tool "$1" --error-exitcode 9 "$build/tests/test_devices"
}

# Rung: whether products, attention, convolutions and all other operations are right
rung_1() {
    one_test attend_tile 60
    one_test device_linear 40
    one_test cudnn 60
    one_test devices 120
}

# Rung: whether stages in bf16 and repeated passes are right
rung_2() {
    golden 60 golden 'DiT, bf16'
    golden 60 golden 'VAE decoder, bf16'
    part graphs 60 repeats
}

# Rung: what attention by Smalti's kernels and by cuDNN takes, on shapes of real models
rung_3() {
    part attention 90 env SMALTI_TEST=speed SMALTI_TEST_SPEED=1 timeout -k 5 90 "$build/tests/test_attend_tile"
}

# Rung: a GPU alone: steps at 512 to 4096 px and decoding
rung_4() {
    stages 'a GPU alone' 120 --cpus 1 --dit 512x512,1024x1024,2048x2048 --vae 512x512,1024x1024,2048x2048
    stages 'a GPU alone 4096' 90 --cpus 1 --dit 4096x4096 --repeats 2
}

# Rung: where a step's and a decoding's time goes, by kernel
rung_5() {
    model sigma -g sigma-1024 --only dit,vae
    part 'profile of a step 512' 90 profile sigma --dit 512x512
    part 'profile of a step 1024' 90 profile sigma --dit 1024x1024
    part 'profile of decoding 1024' 90 profile sigma --vae 1024x1024
}

# Rung: where the time of gradients and of captions goes, by kernel
rung_6() {
    model sigma -g sigma-1024 --only dit,vae
    model t5 -g sigma-1024 --only t5 --t5-layers 4
    part 'profile of gradients 512' 90 profile sigma --train 512x512
    part 'profile of captions 4096' 90 profile t5 --t5 4096
}

# Rung: the CPUs beside a GPU, by default
rung_7() {
    stages 'a GPU and the CPUs' 120 --dit 512x512,1024x1024,2048x2048 --vae 512x512,1024x1024
}

# Rung: PyTorch's eager and compiled modes beside Smalti
rung_8() {
    part roofline 60 peers roofline.py
    beside dit 512x512,1024x1024,2048x2048 240
    beside decode 1024x1024,2048x2048 200
}

# Rung: gradients by PyTorch's modes beside Smalti
rung_9() {
    beside train 512x512 200 --samples 4
}

# Rung: the other operations: moves, plans, search, and golden stages in f32, tf32 and f16
rung_10() {
    local name stage
    for name in device_tiles transfers fusion device_plans; do one_test $name 120; done
    golden 60 retrieve 'searched on devices'
    for stage in 'T5, f32' 'T5, bf16' 'DiT, f32' 'DiT, tf32' 'DiT, f16' 'VAE decoder, f32' 'VAE decoder, tf32' 'VAE encoder, bf16'; do
        golden 60 golden "$stage"
    done
    golden 120 generate 'outputs of the reference'
}

# Rung: images, features and training as a user makes them
rung_11() {
    part 'as a user' 200 as_a_user
}

# Rung: whole images from the prompt, and where their time goes
rung_12() {
    model whole -g sigma-1024
    part 'whole images' 180 bounded "$build/smalti-bench" generate -m "$work/whole" --precision bf16 --cuda 1 --cpus 4 -s 1024x1024 \
        --repeats 5 -o "$logs/whole-images.jsonl"
    part 'trace of an image' 60 bounded "$build/smalti" generate -m "$work/whole" --precision bf16 --cuda 1 --cpus 4 -s 512x512 \
        -p 'a red star' -q -o "$work/traced.png" --trace "$logs/trace.json"
}

# Rung: the text encoder's and training's share of the peak
rung_13() {
    model t5 -g sigma-1024 --only t5 --t5-layers 4
    printf '300\n%.0s' {1..14} >"$work/lengths"
    part 'text encoder' 90 bounded "$build/smalti-bench" stages -m "$work/t5" --precision bf16 --cuda 1 --cpus 1 --t5 300,4096 --lengths "$work/lengths" --repeats 9
    stages 'gradients' 120 --cpus 1 --train 512x512 --samples 4 --repeats 3
}

# decoding SIDE LIMIT: random latents, once; says what the card has in use at most, in MiB.
decoding() {
    local latents=$work/latents.safetensors status=0 watch
    python3 - "$latents" $(($1 / 8)) <<'END_OF_PROGRAM' || return
import array, json, random, struct, sys
side = int(sys.argv[2])
row = array.array("f", [random.gauss(0, 1) for _ in range(side)])
head = json.dumps({"latents": {"dtype": "F32", "shape": [1, 4, side, side], "data_offsets": [0, 16 * side * side]}}).encode()
open(sys.argv[1], "wb").write(struct.pack("<Q", len(head)) + head + row.tobytes() * (4 * side))
END_OF_PROGRAM
    (while sleep 0.5; do nvidia-smi --query-gpu=memory.used --format=csv,noheader,nounits; done >"$work/used") &
    watch=$!
    time bounded "$build/smalti" decode "$latents" -m "$work/sigma" --precision bf16 --cuda 1 --cpus 4 --gpu-memory-limit "$2" -q -o "$work/large.png" || status=$?
    kill "$watch"
    echo "$1x$1 within $2: $(sort -n "$work/used" | tail -n 1) MiB in use at most"
    return $status
}

# Rung: large images in bounded memory
rung_14() {
    model sigma -g sigma-1024 --only dit,vae
    part 'decoding 8192' 200 decoding 8192 24G
}

# Rung: compute-sanitizer over every operation
rung_15() {
    local tool
    for tool in memcheck racecheck; do part $tool 240 sanitizer $tool; done
}

# The tables of what was measured.
tables() {
    local log
    for log in attention a-GPU-alone a-GPU-alone-4096 profile-of-a-step-512 profile-of-a-step-1024 profile-of-decoding-1024 profile-of-gradients-512 profile-of-captions-4096 a-GPU-and-the-CPUs \
        roofline beside-PyTorch-dit beside-PyTorch-decode beside-PyTorch-train \
        whole-images text-encoder gradients decoding-8192 topology; do
        [ -s "$logs/$log.log" ] || continue
        printf '\n### %s\n\n' "${log//-/ }"
        sed 's/^/    /' "$logs/$log.log"
    done
}
