#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# `smalti retrieve`: an index of captions and one of images, queries of every kind, what is refused, what is left behind.
# shellcheck source=command.sh
. "$(dirname "$0")/command.sh"
cd "$work"
query=("$SMALTI" retrieve query --cpus 1)

# Images with their captions, drawn by the embedded model, each a little different in its other caption.
mkdir images
for colour in red green blue; do
    for shape in star circle; do
        echo "{\"path\": \"$colour-$shape.png\", \"prompt\": \"a $colour $shape on a white background\", \"long\": \"a large $colour $shape on a white background\"}"
        echo "{\"id\": \"$colour-$shape\", \"prompt\": \"a $colour $shape on a white background\"}" >>prompts
    done
done >images/list.jsonl
"$SMALTI" generate -P prompts --size 64x64 --steps 2 -q -o images/
"$SMALTI" extract images/list.jsonl -k prompt,long --img-size 256 --compress never -o features -q

expect 0 '6 items in' "$SMALTI" retrieve index features -o captions
expect 0 '6 items in' "$SMALTI" retrieve index features --of images -o pictures
[ "$(files captions)" = 'index.json items.jsonl vectors.safetensors' ] || fail "files: $(files captions)"

# best WORDS COMMAND...: the first item that is found.
best() {
    expect 0 '' "${@:2}"
    [ "$(sed -n '2s/^ *[^ ]*  //p' out)" = "$1" ] || fail "${*:2}: $1 is not first in: $(cat out)"
}
best red-star.png "${query[@]}" captions 'a red star on a white background'
best blue-circle.png "${query[@]}" captions --like blue-circle.png
best green-circle.png "${query[@]}" pictures --like green-circle.png
echo 'a green star on a white background' | best green-star.png "${query[@]}" captions -P -
best red-star.png "${query[@]}" captions -P prompts
[ "$(grep -c '^a ' out)" -eq 6 ] || fail "not six queries: $(cat out)"

# Its own features find every item; those of the other caption find what the rates say.
expect 0 '' "${query[@]}" pictures --features features --quiet
grep -q 'R@1 1.0000, R@5 1.0000, R@10 1.0000, MRR 1.0000' out || fail "rates: $(cat out)"
expect 0 '' "${query[@]}" captions --features features -k long --json
[ "$(grep -c '"matches"' out)" -eq 6 ] || fail "not six lines: $(cat out)"
grep -q '"summary":{"queries":6,"without":0,"pairs":6,' out || fail "no summary: $(cat out)"
expect 0 '' "${query[@]}" captions --like red-star.png --top 100 --json
[ "$(grep -o '"score"' out | wc -l)" -eq 6 ] || fail "not all six: $(cat out)"

# More than there are takes no memory.
if ! sanitized; then
    seq -f 'a star and %.0f' 2000 >many
    (ulimit -v 16000000 && "${query[@]}" captions -P many --top 1048576 --json) >out || fail "--top beyond the items"
    [ "$(head -n 1 out | grep -o '"score"' | wc -l)" -eq 6 ] || fail "not all six: $(head -n 1 out)"
fi

# The page has each query, and of each item a small copy, or why there is none.
sed -i 's/"index":0,"key":"[^"]*"/"index":0,"key":"<b>.png"/' captions/items.jsonl
expect 1 'is damaged' "${query[@]}" captions 'a star' --page found.html
[ ! -e found.html ] || fail "a page of nothing"
"$SMALTI" retrieve index features -o captions2 -q
"$SMALTI" generate -p 'a red <star>' --size 400x48 --steps 1 -o images/red-circle.png -q
rm images/red-star.png
"${query[@]}" captions2 'a <star>' 'b' --top 6 --page found.html --images images >out
[ "$(grep -c '<h2>' found.html)" -eq 2 ] || fail "queries of the page"
grep -qF '<h2>a &#60;star&#62;</h2>' found.html || fail "the query's text on the page"
[ "$(grep -o 'src="data:image/png;base64,' found.html | wc -l)" -eq 10 ] || fail "images of the page"
grep -qF '<img width="160" height="19"' found.html || fail "a small copy of 400x48"
grep -qF '<img width="64" height="64"' found.html || fail "a small image keeps its size"
grep -qF '<small>images/red-star.png: ' found.html || fail "the image that is gone"
# Nothing from outside of the directory comes onto the page, whatever the keys are; links within it do.
cp images/red-circle.png secret.png
mkdir -p shut/within
cp images/red-circle.png shut/within/plain.png
ln -s within/plain.png shut/linked.png
ln -s ../secret.png shut/link.png
ln -s .. shut/up
ln -s shut door
whole=$(realpath secret.png)
for key in within/plain.png linked.png within/../linked.png ../secret.png link.png up/secret.png "$whole" . ..; do
    echo "{\"path\": \"$key\", \"prompt\": \"a star\"}"
done >shut/keys.jsonl
"$SMALTI" extract shut/keys.jsonl -k prompt --t5 --cpus 1 -q -o keyed
"$SMALTI" retrieve index keyed -o keyed-index -q
for directory in shut door; do
    "${query[@]}" keyed-index 'a star' --top 9 --page found.html --images $directory >out
    [ "$(grep -o 'src="data:image/png;base64,' found.html | wc -l)" -eq 3 ] || fail "images of the page: $(grep -o '<small>[^<]*' found.html)"
    for key in ../secret.png link.png up/secret.png . ..; do
        grep -qF "<small>$directory/$key: is not shown, for it leads out of $directory</small>" found.html || fail "$key: $(grep -o '<small>[^<]*' found.html)"
    done
    grep -qF "<small>$directory/$whole: cannot be opened" found.html || fail "$whole: $(grep -o '<small>[^<]*' found.html)"
done
rm -r keyed keyed-index shut door secret.png
refuse 2 '--images goes with --page' "${query[@]}" captions2 a --images images
refuse 2 '--page and --quiet exclude' "${query[@]}" captions2 a --page found.html --quiet
rm -r captions captions2
"$SMALTI" retrieve index features -o captions -q

# The same bytes again, whatever the workers.
"$SMALTI" retrieve index features -o again -q
for file in vectors.safetensors items.jsonl; do cmp captions/$file again/$file; done
"${query[@]}" captions 'a star' >one
"$SMALTI" retrieve query --cpus 2 --sched eager captions 'a star' >two
cmp one two

# Projections: the same bytes whatever the workers; then texts find images, and images texts.
train=("$SMALTI" retrieve train features -k prompt --steps 40 --warmup 5 --lr 0.01 --dim 16 --held-out 0)
expect 0 '40 steps on 6 pairs' "${train[@]}" -o projections --cpus 1
[ "$(files projections)" = 'log.jsonl projections.json projections.safetensors' ] || fail "files: $(files projections)"
"${train[@]}" -o projections2 --cpus 2 --sched eager -q
same projections projections2
"$SMALTI" retrieve index features --of images -p projections -o joint -q
"$SMALTI" retrieve index features -k prompt -p projections2 -o texts -q
cmp joint/projections.safetensors projections/projections.safetensors
rm -r projections2
for name in red-star green-circle blue-star; do
    best $name.png "${query[@]}" joint "a ${name/-/ } on a white background"
    best $name.png "${query[@]}" joint --like $name.png --from texts
    best $name.png "${query[@]}" texts --like $name.png --from joint
done
expect 0 '' "${query[@]}" joint --features features --by captions -k prompt --quiet
grep -q 'R@1 1.0000' out || fail "rates of captions: $(cat out)"
expect 0 '' "${query[@]}" texts --features features --by images --json
grep -q '"R@1":1,' out || fail "rates of images: $(cat out)"
expect 0 'pairs held out' "$SMALTI" retrieve train features -k long --steps 3 --held-out 0.5 --seed 3 -o half
grep -q 'images by text: R@1' err || fail "no rates: $(cat err)"
grep -q '"held_out":{"pairs":' half/log.jsonl || fail "no rates in the log"
refuse 2 'not made with the same projections' "${query[@]}" joint --like red-star.png --from captions
refuse 2 'make the index with --projections' "${query[@]}" captions --features features --by images
refuse 2 '--by: has a meaning with --features only' "${query[@]}" joint a --by images
refuse 2 '--from: has a meaning with --like only' "${query[@]}" joint a --from texts
refuse 2 'has projections already' "${train[@]}" -o projections -q
refuse 2 'no place for the projections' "$SMALTI" retrieve train features
refuse 2 'name directories of features' "$SMALTI" retrieve train -o none
refuse 1 'has no projections, for it has no projections.json' "$SMALTI" retrieve index features -p half/none -o none
refuse 2 'training takes two' "$SMALTI" retrieve train features -k prompt --held-out 0.9 --seed 1 -o few -q
rm -rf few
mkdir half/part
refuse 1 'has no projections' "$SMALTI" retrieve index features -p half/part -o none
for file in projections.safetensors projections.json; do
    cp -r projections broken
    printf 'x' | dd of=broken/$file bs=1 seek=100 conv=notrunc status=none
    refuse 1 "broken/$file" "$SMALTI" retrieve index features -p broken -o none
    rm -r broken
done
cp -r joint broken
printf 'x' | dd of=broken/projections.safetensors bs=1 seek=300 conv=notrunc status=none
refuse 1 'broken/projections.safetensors: is damaged' "${query[@]}" broken a
rm -r broken

# Reranking, of images that the transformer has a say in: both scores, the same bytes whatever the workers; captions of
# features as prompts.
mkdir drawn
cp images/list.jsonl drawn
"$SMALTI" generate -P prompts --size 128x128 --steps 12 -q -o drawn/
"$SMALTI" extract drawn/list.jsonl -k prompt --img-size 128 --compress never -o scenes -q
"$SMALTI" retrieve index scenes -o asked -q
rerank=("${query[@]}" asked --rerank 4 --timesteps 4)
star='a red star on a white background'
expect 0 '' "${rerank[@]}" "$star" --top 3 --json
cp out reranked
[ "$(grep -o '"denoising"' out | wc -l)" -eq 3 ] || fail "not three scores: $(cat out)"
grep -q '"matches":\[{"index":0,"key":"red-star.png","score":[^}]*,"denoising":' out || fail "not first: $(cat out)"
grep -q '"rerank_seconds":' out || fail "no time: $(cat out)"
scores() { grep -o '"key":"[^"]*"\|"denoising":[^,}]*' "$1"; }
for policy in eager lws; do
    "$SMALTI" retrieve query --cpus 2 --sched $policy asked --rerank 4 --timesteps 4 "$star" --top 3 --json >out
    cmp <(scores reranked) <(scores out) || fail "other scores under $policy"
done
expect 0 '' "${rerank[@]}" "$star" --seed 5 --top 3 --json
cmp -s <(scores reranked) <(scores out) && fail "another seed has the same noise"
expect 0 '' "${rerank[@]}" "$star" --top 6 --page found.html
[ "$(grep -c '^ .* [0-9-]*\.[0-9]*  [a-z]' out)" -eq 4 ] || fail "not four with a second score: $(cat out)"
[ "$(grep -c ' -  [a-z]' out)" -eq 2 ] || fail "not two without: $(cat out)"
[ "$(grep -o '<b>-*0\.[0-9]*</b>' found.html | wc -l)" -eq 4 ] || fail "second scores of the page"
expect 0 '' "${query[@]}" asked --features scenes --rerank 6 --timesteps 4 --quiet
grep -q 'R@1 1.0000' out || fail "rates, reranked: $(cat out)"
mv scenes moved
refuse 1 'the features that asked was made of: scenes: ' "${rerank[@]}" a
expect 0 '' "${rerank[@]}" "$star" --top 3 --latents moved --json
cmp <(scores reranked) <(scores out) || fail "other scores of the moved features"
mv moved scenes
"$SMALTI" extract drawn/list.jsonl -k prompt --vae --img-size 128 --compress never -o pixels -q
expect 0 '' "${rerank[@]}" "$star" --top 3 --latents pixels --json
"$SMALTI" extract drawn/list.jsonl -k prompt --t5 --compress never -o words -q
refuse 2 'words: has no features of images' "${rerank[@]}" a --latents words
tac drawn/list.jsonl >drawn/tsil.jsonl
"$SMALTI" extract drawn/tsil.jsonl -k prompt --img-size 128 --compress never -o turned -q
refuse 2 ", in asked it is '" "${rerank[@]}" a --latents turned
cp -r "$SMALTI_MODELS/tesserae" other
sed -i 's/"scaling_factor": [0-9.]*/"scaling_factor": 0.5/' other/vae/config.json
refuse 2 ', other/vae is ' "${rerank[@]}" a --vae-model other/vae
sed -i 's/"layer_norm_epsilon": [^,]*/"layer_norm_epsilon": 0.001/' other/text_encoder/config.json
refuse 2 'is of the model' "${rerank[@]}" a --text-encoder other/text_encoder
refuse 2 ', other/text_encoder is ' "${rerank[@]}" --text-encoder other/text_encoder \
    --features scenes
sed -i 's/"prediction_type": "epsilon"/"prediction_type": "v_prediction"/' other/scheduler/scheduler_config.json
rm -r other/vae other/text_encoder
cp -r "$SMALTI_MODELS/tesserae/vae" "$SMALTI_MODELS/tesserae/text_encoder" other
refuse 1 'other/scheduler/scheduler_config.json: reranking expects a "prediction_type" of epsilon' "${rerank[@]}" a -m other
refuse 2 '--rerank: needs texts to search for' "${rerank[@]}" --like red-star.png
refuse 2 '--rerank: needs texts to search for' "${query[@]}" joint --rerank 4 --features features --by images
for option in '--latents scenes' '--timesteps 3' '--seed 1' '--transformer x' '--vae-model x' '--precision bf16'; do
    # shellcheck disable=SC2086
    refuse 2 "${option% *}: has a meaning with --rerank only" "${query[@]}" asked a $option
done
refuse 2 '--rerank' "${query[@]}" asked a --rerank 0
refuse 2 '--timesteps' "${query[@]}" asked a --rerank 3 --timesteps 1001
rm -r other pixels words turned reranked drawn scenes asked

# A full disk leaves no projections, and the same command then makes them.
(ulimit -f 1; trap '' XFSZ; ! "${train[@]}" --dim 200 -o full -q 2>err) || fail "a full disk is no failure"
[ ! -e full/projections.json ] || fail "projections on a full disk"
"${train[@]}" --dim 200 -o full -q

refuse 2 'is an index already' "$SMALTI" retrieve index features -o captions
refuse 2 'name one directory of features' "$SMALTI" retrieve index
refuse 2 'no place for the index' "$SMALTI" retrieve index features
refuse 2 "no caption 'none'" "$SMALTI" retrieve index features -k none -o none
refuse 1 'no directory of features' "$SMALTI" retrieve index images -o none
refuse 2 'expected one of prompts, --like or --features' "${query[@]}" captions
refuse 2 'expected one of prompts, --like or --features' "${query[@]}" captions a --like red-star.png
refuse 2 "has no item 'nobody'" "${query[@]}" captions --like nobody
refuse 2 'which texts cannot be compared with' "${query[@]}" pictures 'a red star'
refuse 1 'no index, for it has no index.json' "${query[@]}" images a
refuse 2 "unknown command 'find'" "$SMALTI" retrieve find
[ ! -e none ] || fail 'a directory, though nothing was made'

# A damaged row is left out and said; a damaged index is refused.
for at in {2000..40000..1000}; do
    rm -rf damaged
    cp -r features damaged
    printf 'x' | dd of="$(find damaged -name 'shard-*.h5')" bs=1 seek="$at" conv=notrunc status=none
    "$SMALTI" verify --json damaged >found || true
    if grep -q '"row"' found; then break; fi
done
expect 3 'left out: ' "$SMALTI" retrieve index damaged -o rest
[ "$(wc -l <rest/items.jsonl)" -eq 5 ] || fail "not five items: $(cat rest/items.jsonl)"
for file in vectors.safetensors items.jsonl index.json; do
    cp -r captions broken
    printf 'x' | dd of=broken/$file bs=1 seek=100 conv=notrunc status=none
    expect 1 "broken/$file" "${query[@]}" broken a
    rm -r broken
done

# A reader that has gone ends it.
"${query[@]}" captions --features features 2>gone | head -1 >first
[ -s first ] || fail "no first line: $(cat gone)"
