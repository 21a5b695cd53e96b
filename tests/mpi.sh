#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# One image over the processes of an MPI job: under every kind of strategy the bytes are those of one process; what fails
# on one rank fails its images alone, for which no rank does more; signals stop all ranks; ranks that differ are refused;
# a rank that dies ends all, and leaves whole images. SMALTI_TEST_FULL=1: 100 random plans of up to 7 ranks, 100 kills.
# shellcheck source=command.sh
. "$(dirname "$0")/command.sh"
# shellcheck source=device_images.sh
. "$(dirname "$0")/device_images.sh"
# shellcheck source=ranks.sh
. "$(dirname "$0")/ranks.sh"
cd "$work"

if ! for_mpi; then
    echo 'one image over MPI: skipped: this was built without MPI'
    exit 77
fi
use_mpi 900
options=(--size 96x64 --steps 2 --tile-tokens 8 --tile-rows 4 --cpus 1 --save-latents)

cat >prompts <<'LINES'
{"id": "a", "prompt": "a red star above a blue ring"}
{"id": "b", "prompt": "a green square", "seed": 3, "num_images_per_prompt": 2}
{"id": "c", "prompt": "a red star above a blue ring", "width": 64, "height": 96, "guidance_scale": 1}
LINES

# spread RANKS STRATEGY OPTION...: the same files as of one process.
spread() {
    "$SMALTI" generate "${options[@]}" --strategy "$2" "${@:3}" -q -o alone/
    expect 0 '' "${mpirun[@]}" -n "$1" "$SMALTI" generate "${options[@]}" --strategy "$2" "${@:3}" -q -o spread/
    same alone spread
    rm -r alone spread
}

# A batch, and one image: tokens, heads, weights, branches, layers.
spread 2 patch2 -P prompts
while read -r ranks strategy; do
    spread "$ranks" "$strategy" -p 'a red star'
done <<'RUNS'
2 tensor2
3 ulysses4
4 hybrid:cfg2.ring2
2 pipeline2
RUNS

# A list that a job shares with others; what is refused ends all ranks.
shared=(generate "${options[@]}" --strategy patch2 -P prompts -q)
"$SMALTI" "${shared[@]}" -o alone/
expect 0 '' "${mpirun[@]}" -n 2 "$SMALTI" "${shared[@]}" --share -o shared/
diff -r -x .share alone shared
expect 2 'give --steps as it was' "${mpirun[@]}" -n 2 "$SMALTI" "${shared[@]}" --share -o shared/ --steps 3
rm -r alone shared

# A text encoder that is wide enough to be cut: into 4 shards, which the ranks share.
mkdir text
python3 - "$SMALTI_MODELS/tesserae/text_encoder/config.json" <<'END_OF_PROGRAM'
import array, json, random, struct, sys
config = json.load(open(sys.argv[1])) | {"d_ff": 8192, "num_layers": 2}
json.dump(config, open("text/config.json", "w"))
width, inner, ff = config["d_model"], config["num_heads"] * config["d_kv"], config["d_ff"]
shapes = {"shared.weight": (config["vocab_size"], width), "encoder.final_layer_norm.weight": (width,),
          "encoder.block.0.layer.0.SelfAttention.relative_attention_bias.weight": (32, config["num_heads"])}
for i in range(2):
    attention, feed = (f"encoder.block.{i}.layer.{j}." for j in range(2))
    shapes |= {attention + f"SelfAttention.{m}.weight": (inner, width) for m in "qkv"}
    shapes |= {attention + "SelfAttention.o.weight": (width, inner), feed + "DenseReluDense.wo.weight": (width, ff)}
    shapes |= {feed + f"DenseReluDense.wi_{m}.weight": (ff, width) for m in range(2)}
    shapes |= {part + "layer_norm.weight": (width,) for part in (attention, feed)}
random.seed(1)
some = array.array("f", (random.uniform(-0.2, 0.2) for _ in range(10007)))
header, data = {}, bytearray()
for name, shape in shapes.items():
    count = shape[0] * (shape[1] if len(shape) > 1 else 1)
    header[name] = {"dtype": "F32", "shape": shape, "data_offsets": [len(data), len(data) + 4 * count]}
    data += (some * (count // len(some) + 1))[:count].tobytes()
header = json.dumps(header).encode()
open("text/model.safetensors", "wb").write(struct.pack("<Q", len(header)) + header + data)
END_OF_PROGRAM
spread 2 patch2 -P prompts --text-encoder text
spread 3 hybrid:cfg2.ring3 -p 'a red star' --text-encoder text
expect 0 '' "${mpirun[@]}" -n 2 "$SMALTI" generate "${options[@]}" -p a --text-encoder text --trace trace -q -o text.png
for rank in '' .1; do
    [ "$(grep -o '"name":"attend_heads"' "trace$rank" | wc -l)" -ge 4 ] || fail "trace$rank: no heads of the text encoder"
done

# one_of WORD...: at random.
one_of() { echo "${@:1+RANDOM%$#:1}"; }

# Plans at random: prime numbers of ranks, shares that are uneven or 0, fewer tokens than ranks, a single row of them. The
# same bytes by three policies and, of exact ones, what one process makes within the tolerance of golden latents.
plans=2 most=3
if [ -n "${SMALTI_TEST_FULL:-}" ]; then plans=100 most=7; else RANDOM=1; fi
for ((plan = 0; plan < plans; plan++)); do
    ranks=$((2 + RANDOM % (most - 1))) tokens=$(one_of patch ring patch ring displaced masked naive naive-columns naive-alternating)
    strategy=hybrid:cfg$(one_of 1 2).$(one_of ulysses tensor)$((1 + RANDOM % 5)).$tokens$((1 + RANDOM % 5))
    shares=$(one_of 1 2 5)
    for ((rank = 1; rank < ranks; rank++)); do shares+=:$(one_of 0 1 3 4); done
    random=(-p 'a red star' --size "$(one_of 16x16 272x16 48x80 112x80)" --steps 2 --cpus 1 --tile-tokens 5 --save-latents)
    echo "$ranks ranks, --strategy $strategy --shares $shares ${random[*]}"
    for policy in lws eager dmda; do
        expect 0 '' "${mpirun[@]}" -n "$ranks" "$SMALTI" generate "${random[@]}" --strategy "$strategy" --shares "$shares" \
            --sched $policy -q -o $policy/
    done
    "$SMALTI" generate "${random[@]}" --strategy patch1 -q -o one/
    same lws eager
    same lws dmda
    case $tokens in patch | ring) near lws/1 5e-4 one/1 ;; esac
    rm -r lws eager dmda one
done

# Cut again between steps, with what the sampler keeps.
again=(-p 'a red star' --size 96x64 --steps 4 --cpus 1 --tile-tokens 5 --save-latents --scheduler sa-solver -q)
for policy in lws eager; do
    expect 0 '' "${mpirun[@]}" -n 2 "$SMALTI" generate "${again[@]}" --strategy hybrid:cfg2.ring2 --shares 1:1,3:1@2,1:4@4 \
        --sched $policy -o $policy/
done
"$SMALTI" generate "${again[@]}" --strategy patch1 -o one/
same lws eager
near lws/1 5e-4 one/1
rm -r lws eager one

# From an image, whose pixels go to all ranks, and of which a mask keeps parts.
pictures=$SMALTI_TESTDATA/golden/img2img
from=(-p 'a red star' --size 96x64 --steps 4 --cpus 1 --tile-tokens 8 --tile-rows 4 --save-latents --scheduler heun -q
    --image "$pictures/photo.png" --mask "$pictures/mask.png" --strength 0.7)
expect 0 '' "${mpirun[@]}" -n 2 "$SMALTI" generate "${from[@]}" -o from2.png
"$SMALTI" generate "${from[@]}" --strategy patch2 -o from1.png
cmp from1.safetensors from2.safetensors || fail 'an image makes another one on two ranks'

# Tokens, as many parts as ranks, if nothing is said.
expect 0 '' "${mpirun[@]}" -n 2 "$SMALTI" generate -p a "${options[@]}" -q -o two/
"$SMALTI" generate -p a "${options[@]}" -q -o one/ --strategy patch2
cmp one/1.safetensors two/1.safetensors || fail 'patch2 is not what two ranks make by default'

expect 0 '' "${mpirun[@]}" -n 2 "$SMALTI" generate -p a "${options[@]}" --plan
grep -q '^rank 1 ' out || fail "--plan: $(cat out)"

# Auto: what the metadata name makes the image again, to the byte; a rank that is four times as slow has less, first by
# what is on paper, then as measured, which other programs disturb.
# told KEY IMAGE: what the metadata say.
told() {
    grep -aom 1 "\"$1\":\"[^\"]*\"" "$2" | cut -d '"' -f 4
}
for ranks in 2 3; do
    auto=("${mpirun[@]}" -n "$ranks" "$SMALTI" generate -P prompts "${options[@]}" -q)
    expect 0 '' "${auto[@]}" --strategy auto -o auto/
    for image in auto/*.png; do
        id=${image##*/} id=${id%.png} strategy=$(told strategy "$image") shares=$(told shares "$image")
        [[ $strategy =~ ^(hybrid:)?(patch|ring|ulysses|tensor|cfg)[1-9] ]] || fail "$image: auto became '$strategy'"
        [[ $shares =~ ^[0-9.]+(:[0-9.]+)+$ ]] || fail "$image: auto became shares of '$shares'"
        grep "\"id\": \"${id%-*}\"" prompts >line
        expect 0 '' "${mpirun[@]}" -n "$ranks" "$SMALTI" generate -P line "${options[@]}" -q --strategy "$strategy" \
            --shares "$shares" -o named/
        cmp "$image" "named/${image##*/}" || fail "$strategy $shares: another image than by auto"
        rm -r named
    done
    rm -r auto
done
slow=(env SMALTI_SLOWDOWN=cpu0:4 "$SMALTI" generate -P prompts "${options[@]}" --shares auto -q -o slow/)
# Other programs may disturb what the ranks measure: of some attempts, each without what was measured before, one shows it.
has_less() {
    local known
    rm -rf .starpu
    for known in paper models; do
        rm -rf slow
        expect 0 '' "${mpirun[@]}" -n 1 "$SMALTI" "${slow[@]:3}" : -n 1 "${slow[@]}"
        share=$(told shares slow/a.png)
        echo "a rank of a quarter of the speed, by $known: $share"
        case $known in
        paper) [[ $share == 1:0.[1-4]* ]] || return ;;
        models) [[ $share == 1:0.* ]] || return ;;
        esac
    done
}
for attempt in {1..19} last; do
    ! has_less || break
    [ "$attempt" != last ] || fail "a rank of a quarter of the speed has shares of $share"
done
[ "$(find .starpu -name 'smalti_fused_*' | wc -l)" -ge 2 ] || fail 'the ranks have left no measurements'

# Only rank 0 has files, and its failures are said once.
expect 1 'nowhere: cannot be opened' "${mpirun[@]}" -n 2 "$SMALTI" generate -P nowhere
[ "$(grep -c nowhere err)" -eq 1 ] || fail "said by both: $(cat err)"
expect 1 'expected cfg of 2 at most' "${mpirun[@]}" -n 2 "$SMALTI" generate -p a --cpus 1 --strategy cfg3 -o x.png
expect 2 'does not run over several processes of MPI' "${mpirun[@]}" -n 2 "$SMALTI" export features
expect 1 'the ranks do not do the same' "${mpirun[@]}" -n 1 "$SMALTI" generate -p a --cpus 1 -o x.png : \
    -n 1 "$SMALTI" generate -p a --cpus 1 -o x.png --precision bf16
expect 2 'rank 1 on ' "${mpirun[@]}" -n 1 "$SMALTI" generate -p a --cpus 1 -o x.png : \
    -n 1 env STARPU_SCHED=nonsense "$SMALTI" generate -p a --cpus 1 -o x.png
[ ! -e x.png ] || fail 'an image, though the ranks differed'

# A full disk, where rank 0 writes.
mkdir full
expect 1 'No space left on device' "${mpirun[@]}" \
    -n 1 env SMALTI_FAULT=full:1+ SMALTI_FAULT_IN=full LD_PRELOAD="$(dirname "$SMALTI")/.libs/libfault.so" \
    "$SMALTI" generate -P prompts "${options[@]}" -q -o full/ : -n 1 "$SMALTI" generate -P prompts "${options[@]}" -q -o full/
[ -z "$(files full)" ] || fail "left behind: $(files full)"

# die NAME SIGNAL: rank 1 gets it when an image is there; all end, and what is there is whole.
die() {
    local process
    local command=("$SMALTI" generate -P many "${options[@]}" --strategy patch2 -q -o "$1/")
    "${mpirun[@]}" -n 1 "${command[@]}" : -n 1 sh -c 'echo $$ >pid && exec "$@"' sh "${command[@]}" >said 2>&1 &
    process=$!
    until [ -n "$(find "$1" -name '*.png' 2>/dev/null)" ]; do sleep 0.1; done
    kill "-$2" "$(cat pid)"
    local began=$SECONDS
    ! wait "$process" || fail "$1: all is well, though a rank has died"
    ended_itself "$began"
    while read -r image; do same_image "$image" "whole-patch2/${image##*/}"; done < <(find "$1" -name '*.png')
}

# begin RANKS COMMAND...: in the background; returns when they have begun.
begin() {
    rm -f pid.*
    # shellcheck disable=SC2016 # the inner shell's variables
    "${mpirun[@]}" -n "$1" sh -c 'echo $$ >"pid.$OMPI_COMM_WORLD_RANK" && exec "$@"' sh "${@:2}" >said 2>&1 &
    process=$!
    until [ "$(cat pid.* 2>/dev/null | wc -l)" -eq "$1" ]; do sleep 0.01; done
}

# ended STATUS WORDS: of the ranks that have begun.
ended() {
    local status=0
    wait $process || status=$?
    { [ $status -eq "$1" ] && grep -qF "$2" said; } || fail "status $status, expected $1 and '$2': $(cat said)"
}

# same_image IMAGE IMAGE: with their latents.
same_image() {
    cmp "$1" "$2" || fail "$1 is not $2"
    cmp "${1%.png}.safetensors" "${2%.png}.safetensors" || fail "the latents of $1 are not those of $2"
}

for i in {1..12}; do echo "a red star $i"; done >many
"$SMALTI" generate -P many "${options[@]}" --strategy patch2 -q -o whole-patch2/
die killed KILL

# Any rank at any moment, under any strategy: what is there is whole, and --resume makes the rest.
began=$(date +%s%N)
expect 0 '' "${mpirun[@]}" -n 2 "$SMALTI" generate -P many "${options[@]}" --strategy patch2 -q -o some/
milliseconds=$((($(date +%s%N) - began) / 1000000))
kills=4
[ -z "${SMALTI_TEST_FULL:-}" ] || kills=100
for ((run = 0; run < kills; run++)); do
    rm -rf some
    strategy=$(one_of patch2 ring3 ulysses2 tensor3 hybrid:cfg2.ring2 displaced2 pipeline2)
    ranks=$((2 + RANDOM % 2)) victim=$((RANDOM % ranks)) moment=$((RANDOM % milliseconds))
    batch=("$SMALTI" generate -P many "${options[@]}" --strategy "$strategy" -q)
    [ -e "whole-$strategy" ] || "${batch[@]}" -o "whole-$strategy/"
    begin $ranks "${batch[@]}" -o some/
    sleep "$((moment / 1000)).$(printf %03d $((moment % 1000)))"
    kill -KILL "$(cat pid.$victim)" 2>killed.err || true
    killed=$SECONDS
    wait $process || true
    echo "$strategy, rank $victim of $ranks killed after $moment ms: $((SECONDS - killed)) s"
    ended_itself $killed
    for image in some/*.png; do [ ! -e "$image" ] || same_image "$image" "whole-$strategy/${image##*/}"; done
    expect 0 '' "${mpirun[@]}" -n $ranks "${batch[@]}" --resume -o some/
    same some "whole-$strategy"
done

# Signals to all ranks, as srun sends them, or to one: what is in work is finished, and nothing else begun.
for i in {1..300}; do echo "a red star $i"; done >endless
for ranks in '0 1' '1'; do
    rm -rf some
    begin 2 "$SMALTI" generate -P endless "${options[@]}" --strategy patch2 -q -o some/
    until [ -n "$(find some -name '*.png' 2>/dev/null)" ]; do sleep 0.01; done
    for rank in $ranks; do kill -TERM "$(cat "pid.$rank")"; done
    case $ranks in
    1) ended 1 'stopped by rank 1 on ' ;;
    *) ended 1 'stopped by SIGTERM: ' ;;
    esac
    for image in whole-patch2/*.png; do [ ! -e "some/${image##*/}" ] || same_image "some/${image##*/}" "$image"; done
    { [ -e some/1.png ] && [ ! -e some/300.png ]; } || fail "not finished, or begun: $(files some)"
done

# A second one drops it, on all ranks.
echo '{"id": "small", "prompt": "a", "width": 64, "height": 64, "num_inference_steps": 1}' >pair
echo '{"id": "large", "prompt": "a", "width": 512, "height": 512, "num_inference_steps": 400}' >>pair
for ranks in '0 1' 0 1; do
    rm -rf some
    begin 2 "$SMALTI" generate -P pair --cpus 1 --strategy patch2 -q -o some/
    until [ -e some/small.png ]; do sleep 0.1; done
    for pause in 2 0; do
        for rank in $ranks; do kill -INT "$(cat "pid.$rank")"; done
        sleep $pause
    done
    ended 1 '' # in time, or without waiting
    [ "$(files some)" = small.png ] || fail "not dropped: $(files some)"
done

# A device that is lost on rank 1, in a build for OpenCL: early, while StarPU tries each operation there.
library=$(dirname "$SMALTI")/.libs/liblose_opencl.so
export POCL_DEVICES=basic STARPU_OPENCL_ON_CPUS=1
if [ -e "$library" ] && "$SMALTI" topology --opencl 1 --cpus 1 >said 2>&1; then
    batch=("$SMALTI" generate -P many --guidance 1 "${options[@]}" --strategy patch2 -q)
    # Rank 0 hears of a failure at some moment: of images that failed, one at least was hardly decoded, in one run of a few.
    drops() {
        local status=0
        rm -rf lost
        "${mpirun[@]}" -n 1 "${batch[@]}" --trace trace -o lost/ : -n 1 env SMALTI_LOSE=launch:12 LD_PRELOAD="$library" \
            "${batch[@]}" --opencl 1 -o lost/ >said 2>&1 || status=$?
        { [ $status -eq 3 ] && grep -q 'rank 1 on .*: OpenCL 0 ' said; } || fail "status $status: $(cat said)"
        python3 - <<'END_OF_PROGRAM'
import collections, json, os, statistics
seconds = collections.Counter()
for event in json.load(open("trace"))["traceEvents"]:
    if event.get("cat") == "task" and event["args"].get("stage") == 3: # decoding, which is rank 0's
        seconds[int(event["args"]["request"].removeprefix("image "))] += event["dur"]
made = {number: os.path.exists(f"lost/{number + 1}.png") for number in seconds}
of = {was: [seconds[number] for number in seconds if made[number] == was] for was in (True, False)}
assert min(of[False]) < statistics.median(of[True]) / 5, of
END_OF_PROGRAM
    }
    for attempt in {1..29} last; do
        ! drops || break
        [ "$attempt" != last ] || fail "rank 0 went on with images that had failed: $(files lost)"
    done
    expect 0 '' "${mpirun[@]}" -n 2 "${batch[@]}" --resume -o lost/
    [ "$(find lost -name '*.png' | wc -l)" -eq 12 ] || fail "--resume has made $(files lost)"
fi
