#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# `smalti extract`, as people use it: shards, resuming, sharing, limits; what is wrong is said in one line.
# shellcheck source=command.sh
. "$(dirname "$0")/command.sh"
trap 'umount "$work/disk" 2>/dev/null || true; rm -rf "$work"' EXIT
rows=$(dirname "$SMALTI")/tests/store_worker
cd "$work"
list=$SMALTI_TESTDATA/extract/InternData/data_info.json

extract() {
    timeout 900 "$SMALTI" extract "$@"
}

# A directory of features, and the same directory again: nothing is left to do.
expect 0 '14 of 14 items, 14 now in' extract "$list" --img-size 256 --shard-items 4 -o whole
[ "$(find whole -name 'shard-*.h5' | wc -l)" -eq 4 ] || fail "shards: $(files whole)"
for file in extract.json failed.jsonl manifest.json features.h5; do
    [ -e whole/$file ] || fail "no $file in $(files whole)"
done
[ ! -s whole/failed.jsonl ] || fail "failed: $(cat whole/failed.jsonl)"
"$rows" dump whole >whole.txt
expect 0 '14 of 14 items, 0 now in' extract "$list" --img-size 256 -o whole
expect 0 '' extract "$list" --img-size 256 --quiet --json -o whole
[ ! -s err ] || fail "--quiet says $(cat err)"
grep -qF '"done":14,"made":0,"failed":0' out || fail "--json says $(cat out)"

# A log that cannot be written is told of.
if ! sanitized; then
    full=(env SMALTI_FAULT=full:1+ SMALTI_FAULT_IN=unlogged/runs LD_PRELOAD="$(dirname "$SMALTI")/.libs/libfault.so")
    refuse 0 "the run's log is lost: unlogged/runs/" "${full[@]}" "$SMALTI" extract "$list" --img-size 256 -q -o unlogged
    expect 0 'cannot be written: No space left' "${full[@]}" "$SMALTI" extract "$list" --img-size 256 -q --json -o unlogged
    grep -q '"log_lost":"unlogged/runs/.*No space' out || fail "not in the JSON: $(cat out)"
    "$rows" dump unlogged | cmp - whole.txt
fi

# Another policy, one worker, compressed, in parts by several processes: the same rows.
expect 0 '' extract "$list" --img-size 256 --cpus 1 --sched eager --compress always --shard-items 100 -o packed
for part in 2 0 1; do
    expect 0 '' extract "$list" --img-size 256 --shard $part/3 -o parts
done
expect 0 '5 of 5 items' extract "$list" --img-size 256 --range 3:8 -o ranges
expect 0 '' extract "$list" --img-size 256 --start_index 3 --end_index 8 -o indices
"$rows" dump indices | cmp - <("$rows" dump ranges)

# Limits of storage: no faster than they say, and the same rows. A signal ends them.
number() {
    sed "s/.*\"$1\":\([0-9.]*\).*/\1/" out
}
for kind in read written; do
    expect 0 '' extract "$list" --img-size 256 --range 3:8 -q --json -o free-$kind
    bytes=$(number ${kind}_bytes)
    [ "$bytes" -gt 1000 ] || fail "$kind: $bytes bytes"
    expect 0 '' extract "$list" --img-size 256 --range 3:8 -q --json -o slow-$kind "--${kind/written/write}-limit" $((bytes * 2))
    [ "$(number ${kind}_bytes)" -eq "$bytes" ] || fail "$kind: not $bytes bytes: $(cat out)"
    awk "BEGIN { exit !($(number seconds) >= 0.5) }" || fail "$kind: half a second's bytes: $(cat out)"
    "$rows" dump slow-$kind | cmp - <("$rows" dump ranges)
done
"$SMALTI" extract "$list" --img-size 256 -q -o endless --read-limit 1 2>err &
process=$!
until grep -qs '"t"' endless/runs/*; do sleep 0.05; done
kill $process
status=0
wait $process || status=$?
[ $status -le 3 ] || fail "status $status after a signal: $(cat err)"
expect 0 '' extract "$list" --img-size 256 --shard-bytes 60K -o ranges
[ "$(find ranges -name 'shard-*.h5' | wc -l)" -gt 3 ] || fail "shards: $(files ranges)"
extract "$list" --img-size 256 --shard-items 1 --quiet -o shared &
extract "$list" --img-size 256 --shard-items 1 --quiet -o shared
wait $! || fail "the other process failed"
for directory in packed parts ranges shared; do
    "$rows" dump $directory | cmp - whole.txt || fail "$directory: other rows"
done

# A number of items that is decided once: by whoever of two that begin at once comes first, for those that go on with
# more memory, who by themselves would have more.
sizes() {
    sed 's/.*"sizes":{"pack_tokens":0,"pack_pictures":\([0-9]*\),"shard_items":\([0-9]*\),"memory":[0-9]*,"memory_of":"main memory"}.*/\1 \2/' "$1"
}
decided=("$list" --vae --img-size 256 --shard-items auto --quiet --json)
extract "${decided[@]}" --memory-limit 280M --shard 0/2 -o decided >one &
extract "${decided[@]}" --memory-limit 280M --shard 1/2 -o decided >two
wait $! || fail "the other process failed"
read -r images items <<<"$(sizes one)"
[[ $(sizes two) = "$images $items" && $images -eq $items && $items -lt 8 ]] ||
    fail "not the same sizes: $(cat one two)"
grep -q "	\"shard_items\":	$items\$" decided/extract.json || fail "not $items items: $(cat decided/extract.json)"
extract "${decided[@]}" --retry-failed -o decided >two
[ "$(sizes two)" = "8 $items" ] || fail "other memory, other shards: $(cat two)"
for log in decided/runs/*; do
    head -n 1 "$log" | grep -q "\"sizes\":{.*\"shard_items\":$items," || fail "a run's log: $(head -n 1 "$log")"
done
extract "${decided[@]}" -o undisturbed >two
[ "$(sizes two)" = "8 8" ] || fail "shards of one pack: $(cat two)"
"$rows" dump undisturbed | cmp - <("$rows" dump decided) || fail "decided: other rows"
# As without it, in a directory that was begun so.
expect 0 'shards of 1024 items' extract "$list" --img-size 256 --shard-items auto -o whole
for number in -1 -2 auto2 AUTO '' 1.5 1e3 0x10 1073741825 99999999999999999999; do
    refuse 2 "--shard-items: expected auto or a whole number from 0 to 1073741824, found '$number'" \
        extract "$list" "--shard-items=$number" -o x
done
refuse 2 "exclude each other" extract "$list" --shard-items auto --shard-bytes 1M -o x
refuse 1 'main memory: encoding an image of 2880x2880 needs ' extract "$list" --vae --img-size 2880 --memory-limit 300M -o x
grep -q ' bytes at least, but [0-9]* are free beside the weights: raise --memory-limit, or ' err || fail "no remedy: $(cat err)"
[ ! -e x ] || fail "a directory was made for nothing: $(files x)"

# One kind of features; several captions.
expect 0 '' extract "$list" --t5 -k prompt,sharegpt4v --dtype bf16 -o texts
"$rows" dump texts >texts.txt
parts=(--tokenizer "$SMALTI_MODELS/tesserae/tokenizer" --text-encoder "$SMALTI_MODELS/tesserae/text_encoder")
expect 0 '' extract "$list" --t5 -k prompt -k sharegpt4v --dtype bf16 "${parts[@]}" -o components
"$rows" dump components | cmp - texts.txt
mkdir no-model
refuse 1 'no-model/model_index.json: is not there, and no text encoder alone says how many tokens' extract "$list" --t5 --model no-model "${parts[@]}" -o x
expect 0 '' extract "$list" --t5 --model no-model "${parts[@]}" --max-tokens 300 --range 0:1 -o alone
expect 0 '' extract "$list" --vae --img-size 512 --fit stretch --orientation stored --dtype f32 -o images

# A directory of images with captions beside them, a list from another place.
mkdir photos && cp "$SMALTI_TESTDATA"/extract/InternImgs/{000,gray}.png photos/
echo 'a red star' >photos/000.txt
expect 3 'photo-features/failed.jsonl' extract photos --img-size 256 -o photo-features
grep -qF '"key":"gray.png","stage":"caption","reason":"no caption under \"txt\"; --caption-key' photo-features/failed.jsonl || fail "$(cat photo-features/failed.jsonl)"
echo 'a blue ring' >photos/gray.txt
expect 3 '' extract photos --img-size 256 -o photo-features
expect 0 '2 of 2 items' extract photos --img-size 256 --retry-failed -o photo-features
[ ! -s photo-features/failed.jsonl ] || fail "still failed: $(cat photo-features/failed.jsonl)"
printf '{"path": "gray.png", "prompt": "a ring"}\n' >list.jsonl
expect 0 '1 of 1 items' extract list.jsonl --images photos --img-size 256 -o list-features

# Several tars by their names, by braces, in a directory, and one through a pipe: the same rows.
mkdir tars && tar -cf tars/00000.tar -C photos --sort=name . && cp tars/00000.tar tars/00001.tar
echo '{}' >tars/00000_stats.json
expect 0 '4 of 4 items' extract tars --img-size 256 -o tars-directory
expect 0 '4 of 4 items' extract tars/00000.tar tars/00001.tar --img-size 256 -o tars-names
expect 0 '4 of 4 items, 0 now' extract 'tars/{00000..00001}.tar' --img-size 256 -o tars-names
expect 0 '2 of 2 items' extract tars/00001.tar --img-size 256 -o tar-name
"$rows" dump tars-directory >tars.txt
"$rows" dump tars-names | cmp - tars.txt || fail 'names of tars: other rows'
expect 0 '2 of 2 items, 0 now' extract - --img-size 256 -o tar-name < <(cat tars/00001.tar)
mkdir gzip && gzip -c tars/00000.tar >gzip/00000.tar.gz && gzip -c tars/00001.tar >gzip/00001.tgz
expect 0 '4 of 4 items' extract gzip --img-size 256 -o gzip-directory
"$rows" dump gzip-directory | cmp - tars.txt || fail 'compressed tars: other rows'
expect 0 '2 of 2 items, 0 now' extract - --img-size 256 -o tar-name < <(cat gzip/00001.tgz)
(
    cd photos
    expect 0 '1 of 1 items, 0 now' extract - --img-size 256 -o ../list-features < <(cat ../list.jsonl)
)

printf 'II*\0' >tiff.tif && echo t >tiff.txt && tar -cf tiff.tar tiff.tif tiff.txt
expect 3 '' extract - --img-size 256 -o tiff-features < <(cat tiff.tar)
grep -qF '"reason":"tiff.tif: a TIFF file cannot be read' tiff-features/failed.jsonl || fail "$(cat tiff-features/failed.jsonl)"

# A tar whose items are in several places, and one whose names end before their numbers do.
mkdir dots
for i in 0.25 0.5; do cp photos/000.png "dots/img $i.png" && echo t >"dots/img $i.txt"; done
cp photos/000.* dots/
tar -cf dots.tar -C dots 'img 0.25.png' 'img 0.25.txt' 'img 0.5.png' 'img 0.5.txt'
expect 0 '; 1 passed over, such as img 0.5.png of dots.tar: dots-images' extract dots.tar --vae --img-size 256 -o dots-images
refuse 1 'alone; the first has 25.png, 25.txt, 5.png, 5.txt' extract dots.tar --img-size 256 -o x
tar -rf dots.tar -C dots 000.png 000.txt
expect 3 'passed over 3 members, such as img 0.25.txt of dots.tar' extract dots.tar --img-size 256 --json -o dots-features
grep -qF '"passed_over":3,"first_passed_over":"img 0.25.txt of dots.tar"' out || fail "$(cat out)"
grep -qF 'another key; found: 25.png, 25.txt, 5.png, 5.txt"' dots-features/failed.jsonl || fail "$(cat dots-features/failed.jsonl)"
tar -cf split.tar -C photos 000.png gray.png 000.txt gray.txt
expect 3 '4 failures' extract split.tar --img-size 256 -o split-features
[ "$(grep -cE '"reason":"[^;]*; its members are in several places of the tar: pack it with tar --sort=name"' split-features/failed.jsonl)" -eq 4 ] ||
    fail "$(cat split-features/failed.jsonl)"
expect 0 '2 of 2 items' extract split.tar --vae --img-size 256 -o split-images

# What cannot be done is said: images that are not read, a directory of nothing.
cp photos/gray.png photos/scan.TIF
expect 0 'passed over 1 .tif' extract photos --img-size 256 -o photo-features
mkdir empty
refuse 1 'empty: no item in it' extract empty -o x
refuse 1 'no item in it' extract - -o x <<<'[]'

# A signal completes what is under way; the same command goes on.
for ((i = 0; i < 4000; i++)); do echo "{\"id\": \"$i\", \"prompt\": \"a red star number $i\"}"; done >many.jsonl
"$SMALTI" extract many.jsonl --t5 --shard-items 50 --quiet -o many 2>err &
process=$!
until compgen -G 'many/shard-*' >/dev/null; do
    sleep 0.05
    kill -0 $process 2>/dev/null || fail "ended by itself: $(cat err)"
done
kill -INT $process
status=0
wait $process || status=$?
[ $status -eq 1 ] || fail "status $status after SIGINT: $(cat err)"
grep -qF 'stopped by SIGINT' err || fail "SIGINT: $(cat err)"
[ -z "$(ls many/claims)" ] || fail "claims are left: $(ls many/claims)"
expect 0 '4000 of 4000 items' extract many.jsonl --t5 --shard-items 50 -o many
[ "$("$rows" dump many | wc -l)" -eq 4000 ] || fail "not every row is there"

# A disk that takes no more, as far as this machine can make one.
(
    ulimit -f 64
    expect 1 'File too large' extract "$list" --img-size 256 --dtype f32 --shard-items 14 -o limited
)
[ -z "$(find limited -name '*.part')" ] || fail "left $(files limited)"
expect 0 '' extract "$list" --img-size 256 --dtype f32 -o limited
if [ "$(id -u)" -eq 0 ] && mkdir disk && mount -t tmpfs -o size=200k none disk 2>/dev/null; then
    expect 1 'No space left on device' extract "$list" --img-size 256 --shard-items 5 --dtype f32 -o disk/features
    [ -z "$(find disk -name '*.part')" ] || fail "left $(files disk)"
    mount -o remount,size=8m disk
    expect 0 '' extract "$list" --img-size 256 --shard-items 5 --dtype f32 -o disk/features
    "$rows" dump disk/features >disk.txt
    "$rows" dump limited | cmp - disk.txt
fi

# What is wrong.
refuse 2 'no data set' extract
refuse 2 'have the same name' extract "$list" "$list" -o x
refuse 2 'give -o DIR' extract "$list"
refuse 2 "expected START:END with START below END, as in 0:1000, found '5'" extract "$list" --range 5 -o x
refuse 2 "expected START:END with START below END" extract "$list" --range 5:5 -o x
refuse 2 "--range excludes --start-index" extract "$list" --range 5:6 --start_index 5 -o x
refuse 2 "expected I/N with I from 0 to N - 1, as in 3/16, found '3/3'" extract "$list" --shard 3/3 -o x
refuse 2 "prompt is there twice" extract "$list" -k prompt,prompt -o x
refuse 2 "exclude each other" extract "$list" --shard-items 1 --shard-bytes 1M -o x
refuse 2 'was made with type = "f16", now it is "f32": give --dtype as it was' extract "$list" --img-size 256 --dtype f32 -o whole
for changed in '--img-size 512' '--fit stretch' '--orientation stored' '--clean full' '--max-tokens 9' '--precision bf16' \
    '--caption-key sharegpt4v' '--t5'; do
    # shellcheck disable=SC2086
    refuse 2 "${changed%% *}" extract "$list" --img-size 256 -o whole $changed
done
refuse 2 'give the data set (with --append' extract many.jsonl --img-size 256 -o whole

# What a directory is of: the captions too, and the instruction set, which nothing but SMALTI_MAX_ISA decides.
for ((i = 0; i < 30; i++)); do echo "{\"path\": \"$i.png\", \"prompt\": \"a red circle $i\"}"; done >thirty.jsonl
head -n 24 thirty.jsonl >grown.jsonl
text=(--t5 --shard-items 10 -q)
extract thirty.jsonl "${text[@]}" -o at_once
SMALTI_MAX_ISA=generic extract grown.jsonl "${text[@]}" --range 0:10 -o mixed
"$SMALTI" topology --json >machine
if ! grep -q '"isa":.*"generic"' machine; then
    refuse 2 'was made with isa = "generic", now it is' extract grown.jsonl "${text[@]}" -o mixed
    extract grown.jsonl "${text[@]}" --allow-mixed-isa -o mixed
    expect 0 '' "$SMALTI" verify mixed
fi
DNNL_MAX_CPU_ISA=SSE41 DNNL_DEFAULT_FPMATH_MODE=ANY extract thirty.jsonl "${text[@]}" -o governed
"$rows" dump at_once >at_once.txt
"$rows" dump governed | cmp - at_once.txt || fail "DNNL_MAX_CPU_ISA changes values"
extract grown.jsonl "${text[@]}" --range 0:10 -o grown
sed 's/circle 17/square 17/' grown.jsonl >other.jsonl
refuse 2 'give the captions as it was' extract other.jsonl "${text[@]}" -o grown
extract grown.jsonl "${text[@]}" -o grown

# More items at its end, and nothing else.
files_before=$(cd grown && sha256sum shard-*)
refuse 2 'give the data set (with --append' extract thirty.jsonl "${text[@]}" -o grown
sed 's/circle 17/square 17/' thirty.jsonl >other.jsonl
refuse 2 'list.captions' extract other.jsonl "${text[@]}" --append -o grown
grep -qF 'give the captions as it was' err || fail "a changed caption: $(cat err)"
tail -n +2 thirty.jsonl >other.jsonl
refuse 2 'list.keys' extract other.jsonl "${text[@]}" --append -o grown
expect 0 '' "$SMALTI" verify grown
extract thirty.jsonl "${text[@]}" --append --range 0:24 -o grown
expect 1 '' "$SMALTI" verify grown
grep -q 'items 24 to 29 are not committed' out || fail "verify: $(cat out)"
extract thirty.jsonl "${text[@]}" -o grown # the directory is of the longer list from here on
expect 0 '' "$SMALTI" verify grown
(cd grown && sha256sum -c --quiet <<<"$files_before") || fail "shards of before were touched"
"$rows" dump grown | cmp - at_once.txt || fail "a directory that has grown has other rows"
refuse 2 'list.items' extract grown.jsonl "${text[@]}" --append -o grown
extract thirty.jsonl "${text[@]}" --append -o grown
extract thirty.jsonl "${text[@]}" --append -o begun
"$rows" dump begun | cmp - at_once.txt || fail "--append of a new directory"
refuse 2 'img' extract "$list" --img-size 300 -o x
refuse 1 'nowhere.json: cannot be opened' extract nowhere.json -o x
refuse 1 'model_index.json' extract "$list" -m "$work" -o x
refuse 1 'this is a device, pipe or socket' extract <(echo hello) -o x
echo hello >hello.txt
refuse 1 'expected a PixArt data_info.json' extract hello.txt -o x
[ ! -e x ] || fail "a directory was made for nothing: $(files x)"
