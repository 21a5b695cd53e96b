#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Whatever happens at any call that touches the directory where a command works (it is killed or stopped there, the call
# fails, the disk is full), the same command brings the directory to where it would have been without. SMALTI_TEST_FULL=1
# takes every call, else some.
# shellcheck source=command.sh
. "$(dirname "$0")/command.sh"
cd "$work"
RANDOM=1 # the same samples each time
tools=$(dirname "$SMALTI")/tests
fault=$(dirname "$SMALTI")/.libs/libfault.so
if sanitized; then
    echo "SKIPPED: a library cannot come before AddressSanitizer"
    exit 77
fi

# disturbed FAULT COMMAND...: its status, 137 if it was killed; what is stopped goes on. Its words go to err.
disturbed() {
    local status=0
    SMALTI_FAULT=$1 SMALTI_FAULT_IN=made SMALTI_FAULT_COUNT=$work/count LD_PRELOAD=$fault "${@:2}" >said 2>err &
    local process=$!
    if [ "${1%:*}" = any-stop ]; then
        while read -r _ _ state _ <"/proc/$process/stat" && [ "$state" != Z ]; do
            if [ "$state" = T ]; then kill -CONT $process; fi
            sleep 0.01
        done 2>/dev/null
    fi
    { wait $process || status=$?; } 2>/dev/null
    return $status
}

# survives NAME SAMPLES PREPARE COMPARE OK COMMAND...: faults at the first and SAMPLES other calls of the command, and at
# every fsync. It works in the directory made, ends with the status OK if nobody disturbs it and leaves what COMPARE
# accepts. PREPARE makes what it begins with.
survives() {
    local name=$1 samples=$2 prepare=$3 compare=$4 ok=$5 runs=0
    shift 5
    for kind in sync any-kill any-eio any-enospc any-stop; do
        rm -rf made
        $prepare
        local status=0
        disturbed $kind:0 "$@" || status=$?
        [ $status -eq "$ok" ] || fail "$name: status $status: $(cat err)"
        $compare || fail "$name: not right when nobody disturbs it"
        local calls step=1 number
        calls=$(cat count)
        [ -n "${SMALTI_TEST_FULL:-}" ] || [ $kind = sync ] || step=$((calls / samples + 1))
        for ((number = 1; number <= calls; number += number > 1 ? step : 1 + RANDOM % step)); do
            rm -rf made
            $prepare
            local what="$name, SMALTI_FAULT=$kind:$number of $calls"
            status=0
            disturbed $kind:$number "$@" || status=$?
            cp err first
            case $kind:$status in
            any-kill:137 | any-stop:"$ok" | *:"$ok" | any-e*:[13] | sync:[13]) ;;
            *) fail "$what: status $status: $(cat first)" ;;
            esac
            [ $status -ne "$ok" ] || $compare || fail "$what: it said that all was well: $(cat first)"
            status=0
            "$@" >said 2>err || status=$?
            [ $status -eq "$ok" ] || fail "$what: then status $status: $(cat err); before: $(cat first)"
            $compare || fail "$what: $(cat first); then: $(cat differences)"
            local left # a claim that could not be removed is nobody's; the next run takes it away
            left=$(find made -name '*.part' -o -path 'made/claims/*' -o -path 'made/.share/claims/*')
            [ -z "$left" ] || fail "$what: left $left"
            runs=$((runs + 1))
        done
    done
    [ $runs -gt 0 ] || fail "$name: no calls in the directory"
    echo "$name: $runs faults"
}

# Exports: every byte.
printf '%s\n' 000.png a/000.png b/000.png b/c/a.b.jpg d.jpeg 6.png 7.png 8.png 9.png 10.png >keys
"$tools/make_directory" features f16 prompt,sharegpt4v 4 3 2 <keys
is_exported() { diff -r --exclude=.lock "whole-$format" made >differences 2>&1; }
for format in pixart safetensors webdataset; do
    export=("$SMALTI" export features -f "$format" -q -o)
    [ $format = pixart ] || export=("$SMALTI" export features -f "$format" --shard-bytes 6000 -q -o)
    "${export[@]}" whole-$format
    survives "export -f $format" 10 : is_exported 0 "${export[@]}" made
done

# Extraction: the rows, and all that is said of them.
has_rows() {
    "$tools/store_worker" dump "$1" >dumped && cmp dumped "$2" && "$SMALTI" verify -q "$1"
} >differences 2>&1
images=(000.png a/000.png b/000.png gray.png tiny.png absent.png)
for i in {0..5}; do
    ln -s "$SMALTI_TESTDATA/extract/InternImgs/${images[i]}" "$i.png"
    echo "{\"path\": \"$i.png\", \"prompt\": \"a red circle on a blue square\"}"
done >data.jsonl
extract=("$SMALTI" extract data.jsonl --img-size 256 --shard-items 4 --cpus 1 -q -o)
expect 3 '' "${extract[@]}" whole
"$tools/store_worker" dump whole >whole.txt
[ "$(wc -l <whole.txt)" -eq 6 ] || fail "an undisturbed run made $(wc -l <whole.txt) rows"
is_extracted() { has_rows made whole.txt; }
survives extract 6 : is_extracted 3 "${extract[@]}" made

# All is there but what says so.
cp -r whole unlisted
rm unlisted/manifest.json unlisted/features.h5
take_unlisted() { cp -r unlisted made; }
survives 'the end of extract' 20 take_unlisted is_extracted 3 "${extract[@]}" made

# A list that has grown.
head -n 3 data.jsonl >fewer.jsonl
expect 0 '' "$SMALTI" extract fewer.jsonl --img-size 256 --shard-items 4 --cpus 1 -q -o begun
begin() { cp -r begun made; }
survives 'extract --append' 6 begin is_extracted 3 "${extract[@]}" made --append

# What the machine cannot at the moment is no failure of an item: the run stops, and the next one has them all.
mkdir images
for i in {0..4}; do cp "$i.png" images; done
sed 's,"\(.\).png","images/\1.png",; 6d' data.jsonl >later.jsonl
for kind in open-emfile open-enfile open-eacces open-enomem read-eio read-estale; do
    extract=("$SMALTI" extract later.jsonl --img-size 256 --cpus 1 -q -o "$kind")
    refuse 1 images/ env SMALTI_FAULT=$kind:1+ SMALTI_FAULT_IN=images LD_PRELOAD="$fault" "${extract[@]}"
    [ ! -s $kind/failed.jsonl ] || fail "$kind: $(cat $kind/failed.jsonl)"
    expect 0 '' "${extract[@]}"
done

# A repair, after which the lost rows are made again.
"$tools/store_worker" fill filled 60 20
"$tools/store_worker" dump filled >filled.txt
cp -r filled damaged
printf 'x' | dd of=damaged/shard-000000000020-000000000040.h5 bs=1 seek=3000 conv=notrunc status=none
ln damaged/shard-000000000000-000000000020.h5 damaged/shard-000000000010-000000000012.h5
rm damaged/manifest.json damaged/failed.jsonl
touch damaged/.extract.json.1-0.part
damage() { cp -r damaged made; }
is_repaired() {
    rm -rf repaired
    cp -r made repaired
    "$tools/store_worker" fill repaired 60 20 && has_rows repaired filled.txt
}
survives 'verify --repair' 8 damage is_repaired 0 "$SMALTI" verify --repair -q made

# A directory with nothing to repair loses nothing.
fill() { cp -r filled made; }
is_whole() { has_rows made filled.txt; }
survives 'verify --repair of a whole directory' 6 fill is_whole 0 "$SMALTI" verify --repair -q made

# Training: every byte of the last checkpoint. (Its log is worth less than the run.)
cat >tiny.json <<'JSON'
{"_class_name": "PixArtTransformer2DModel", "norm_type": "ada_norm_single", "num_attention_heads": 1, "attention_head_dim": 16, "num_layers": 1,
 "in_channels": 4, "out_channels": 8, "cross_attention_dim": 16, "caption_channels": 128, "sample_size": 16, "interpolation_scale": 1,
 "use_additional_conditions": false}
JSON
"$SMALTI" extract "$SMALTI_TESTDATA/extract/InternData/data_info.json" -k prompt --img-size 256 --cpus 1 -q -o train-features
train=("$SMALTI" train train-features --init tiny.json --steps 3 --batch 2 --save-every 1 --keep 2 --cpus 1 -q -o)
"${train[@]}" whole-run
is_trained() { diff -r whole-run/step-3 made/step-3 >differences 2>&1; }
survives train 5 : is_trained 0 "${train[@]}" made

# Indexes and projections: what lies there is not taken for one, or is whole; then the same command makes it.
# is_made SAMPLES NAME COMMAND...: NAME is what says that it is complete.
is_made() {
    local samples=$1 description=$2 kind calls number step what runs=0
    shift 2
    rm -rf made whole-index
    "$@"
    mv made whole-index
    for kind in any-kill any-eio sync any-enospc; do
        rm -rf made
        disturbed $kind:0 "$@" || fail "$*: $(cat err)"
        calls=$(cat count) step=1
        [ -n "${SMALTI_TEST_FULL:-}" ] || step=$((calls / samples + 1))
        for ((number = 1; number <= calls; number += step)); do
            what="$*, SMALTI_FAULT=$kind:$number of $calls"
            rm -rf made
            status=0
            disturbed $kind:$number "$@" || status=$?
            [ $status -eq 0 ] || [ $status -eq 1 ] || [ $status -eq 137 ] || fail "$what: status $status: $(cat err)"
            if [ ! -e "made/$description" ]; then
                [ $status -ne 0 ] || fail "$what: it said that all was well"
                expect 0 '' "$@"
            fi
            diff -r --exclude=.lock whole-index made || fail "$what"
            runs=$((runs + 1))
        done
    done
    echo "${*:2:2}: $runs faults"
}
is_made 8 index.json "$SMALTI" retrieve index train-features --of images -q -o made
is_made 8 projections.json "$SMALTI" retrieve train train-features --steps 2 --batch 4 --cpus 1 -q -o made

# Two at once, one of them stopped at a call meanwhile: the index is whole, and that of one that said so.
"$SMALTI" extract "$SMALTI_TESTDATA/extract/InternData/data_info.json" -k prompt --img-size 512 --cpus 1 -q -o other-features
index=("$SMALTI" retrieve index --of images -q -o)
"${index[@]}" whole-train train-features
"${index[@]}" whole-other other-features
rm -rf made
disturbed any-kill:0 "${index[@]}" made train-features || fail "$(cat err)"
calls=$(cat count) step=1 refused=0
[ -n "${SMALTI_TEST_FULL:-}" ] || step=$((calls / 15 + 1))
for ((number = 1; number <= calls; number += step)); do
    rm -rf made
    SMALTI_FAULT=any-stop:$number SMALTI_FAULT_IN=made LD_PRELOAD=$fault "${index[@]}" made train-features >said 2>first &
    process=$!
    while read -r _ _ state _ <"/proc/$process/stat" && [ "$state" != T ] && [ "$state" != Z ]; do sleep 0.01; done 2>/dev/null
    status=0 other=0
    "${index[@]}" made other-features 2>err || other=$?
    kill -CONT $process 2>/dev/null || true
    wait $process || status=$?
    what="retrieve index, stopped at call $number of $calls: status $status and $other: $(cat first err)"
    case $status:$other in
    0:2) diff -r made whole-train || fail "$what" ;;
    2:0) diff -r made whole-other || fail "$what" ;;
    *) fail "$what" ;;
    esac
    ! grep -q 'makes an index there' err || refused=$((refused + 1))
done
[ $refused -gt 0 ] || fail "nobody was told who makes an index"
echo "retrieve index, two at once, one stopped: $refused refused"

# Images: every byte.
for i in {1..4}; do
    echo "{\"id\": \"p$i\", \"prompt\": \"a red star\", \"seed\": $i}"
done >prompts.jsonl
generate=("$SMALTI" generate --prompts prompts.jsonl -s 16x16 --steps 2 --save-latents --cpus 1 -q --resume -o)
"${generate[@]}" whole-images/
# shellcheck disable=SC2317 # called by survives
is_generated() { diff -r -x .share whole-images made >differences 2>&1; }
begin_images() {
    mkdir made
    cp whole-images/p2.* made
}
survives 'generate --resume' 6 begin_images is_generated 0 "${generate[@]}" made/
survives 'generate --share' 5 begin_images is_generated 0 "${generate[@]/--resume/--share}" made/
