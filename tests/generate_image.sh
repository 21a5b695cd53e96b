#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# `smalti generate` from an image: options, lines of prompts, metadata and --resume.
# shellcheck source=command.sh
. "$(dirname "$0")/command.sh"
golden=$(cd "$(dirname "$0")" && pwd)/data/golden/img2img
cd "$work"

generate() {
    "$SMALTI" generate --size 48x32 --steps 4 -q "$@"
}

# refuse WORDS OPTION...: fails, and says so.
refuse() {
    local words=$1
    shift
    ! generate "$@" 2>err || fail "$* was not refused"
    grep -qF -- "$words" err || fail "$*: $(cat err)"
}

refuse 'image: missing.png' -p a --image missing.png
refuse 'mask: ' -p a --image "$golden/init.png" --mask "$golden/cases.jsonl"
refuse 'strength: needs an image' -p a --strength 0.5
refuse 'leaves none' -p a --image "$golden/init.png" --strength 0.1
refuse 'multiples of 16' -p a --image "$golden/init.png" --size 50x32

# Options and the keys of lines ask for the same; a line wins over the options.
generate -p 'a red star' --image "$golden/photo.png" --strength 0.75 --mask "$golden/mask.png" --keep-original -o one.png
cat >lines.jsonl <<LINES
{"id": "one", "prompt": "a red star", "image": "$golden/photo.png", "strength": 0.75, "mask": "$golden/mask.png", "keep_original": true}
{"id": "two", "prompt": "a red star"}
{"id": "three", "prompt": "a red star", "strength": 1}
{"id": "bad", "prompt": "a red star", "image": "missing.png"}
LINES
! generate -P lines.jsonl --image "$golden/init.png" -o images/ 2>err || fail "the bad line was made"
grep -qF 'lines.jsonl:4: image: missing.png' err || fail "bad line: $(cat err)"
cmp one.png images/one.png
for name in two three; do
    grep -qaF '"init_image":"128x128 ' images/$name.png || fail "$name: no digest of the image"
done
grep -qaF '"strength":0.8' images/two.png || fail 'two: the default strength'
grep -qaF '"keep_original":true' one.png || fail 'one: keep_original'
! cmp -s images/two.png images/three.png || fail 'the strength changes nothing'

# A line begins with the image of an earlier one, also where an older file has that name; --resume then makes nothing.
cat >chain.jsonl <<LINES
{"id": "first", "prompt": "a red star"}
{"id": "second", "prompt": "a blue ring", "image": "./chain/first.png", "strength": 0.75}
{"id": "third", "prompt": "a yellow heart", "image": "chain/second.png", "mask": "chain/first.png", "strength": 1}
LINES
for ((run = 0; run < 2; run++)); do
    generate -P chain.jsonl -o chain/
    generate -p 'a blue ring' --image chain/first.png --strength 0.75 -o link.png
    cmp link.png chain/second.png || fail 'the second image is not that of the first'
    cp chain/third.png "third-$run.png"
    cp "$golden/photo.png" chain/first.png
    cp "$golden/photo.png" chain/second.png
done
cmp third-0.png third-1.png || fail 'a line began with an older file'
generate -P chain.jsonl -o chain/ --resume 2>err && fail 'a foreign image was replaced'
rm chain/*
generate -P chain.jsonl -o chain/
"$SMALTI" generate --size 48x32 --steps 4 -P chain.jsonl -o chain/ --resume --json >out
[ "$(grep -c '"status":"skipped"' out)" -eq 3 ] || fail "made again: $(cat out)"

# --resume makes again what begins with another image.
generate -p 'a red star' --image "$golden/init.png" -o again/
stat -c %i again/1.png >first
generate -p 'a red star' --image "$golden/init.png" -o again/ --resume
stat -c %i again/1.png >second
cmp first second || fail 'the same was made again'
generate -p 'a red star' --image "$golden/photo.png" -o again/ --resume
stat -c %i again/1.png >third
! cmp -s first third || fail 'another image was not made'
