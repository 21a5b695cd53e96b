#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Files that are cut short while a command reads them: it ends with an error that names the file and leaves nothing half
# written, or nothing was to be read any more. SMALTI_TEST_FULL=1 cuts at every call that touches them, else at some.
# shellcheck source=command.sh
. "$(dirname "$0")/command.sh"
data=$(realpath "$(dirname "$0")")/data
cd "$work"
trap 'kill -9 $server 2>/dev/null || true; rm -rf "$work"' EXIT
server=
fault=$(dirname "$SMALTI")/.libs/libfault.so
if sanitized; then
    echo "SKIPPED: a library cannot come before AddressSanitizer"
    exit 77
fi

# disturbed FAULT FILE COMMAND...: its status in $status, its words in said and err, what it made in got; it works on the
# directory read.
disturbed() {
    status=0
    rm -rf read got made*
    cp -r whole read
    mkdir got
    SMALTI_FAULT=$1 SMALTI_SHRINK=read/$2 SMALTI_FAULT_IN=read SMALTI_FAULT_COUNT=$work/count \
        LD_PRELOAD=$fault "${@:3}" >said 2>err || status=$?
    find . -maxdepth 1 -name 'made*' -exec mv {} got \;
}

# survives SAMPLES FILE COMMAND...: the file of the directory whole is cut at SAMPLES calls of the command, which names
# what it makes made. At least once it is read afterwards.
survives() {
    local samples=$1 file=$2 step=1 number calls what changed=0
    shift 2
    disturbed shrink:0 "$file" "$@"
    [ $status -eq 0 ] || fail "$*: status $status: $(cat err)"
    rm -rf expected
    mv got expected
    calls=$(cat count)
    [ -n "${SMALTI_TEST_FULL:-}" ] || step=$((calls / samples + 1))
    for ((number = 1; number <= calls; number += step)); do
        disturbed "shrink:$number" "$file" "$@"
        what="$*: $file is cut at call $number of $calls: status $status: $(head -c 1000 err)"
        case $status in
        0) grep -qF "$(basename "$file")" said err || diff -r --exclude=log.jsonl expected got ||
            fail "$what: it said that all was well" ;;
        1 | 3) grep -qF "$(basename "$file")" said err || fail "$what: the file is not named" ;;
        *) fail "$what" ;;
        esac
        ! grep -qF "$(basename "$file")" err || changed=$((changed + 1))
        [ $status -ne 1 ] || leaves_no_part || fail "$what: something is left: $(find got)"
    done
    [ $changed -gt 0 ] || fail "$*: $file is never read behind a cut"
}

# What was made is as it would be without, as far as it goes: whole files, and checkpoints. A list of items whose tensors are not
# there yet is made anew by the next run.
leaves_no_part() {
    local path
    while read -r path; do
        case $path in
        */log.jsonl) continue ;;
        *.jsonl) [ -e "got/${path%.jsonl}.safetensors" ] || continue ;;
        esac
        cmp -s "got/$path" "expected/$path" || return 1
    done < <(cd got && find . -type f ! -name '.[ls]*')
}

# The model, before and while an image is made of it.
mkdir whole
cp -r "$SMALTI_MODELS/tesserae" whole/model
for part in text_encoder/model transformer/diffusion_pytorch_model vae/diffusion_pytorch_model; do
    survives 6 model/$part.safetensors "$SMALTI" generate -m read/model -p a -s 32x32 --steps 1 --seed 1 -q -o made.png
done
survives 8 model/vae/diffusion_pytorch_model.safetensors \
    "$SMALTI" encode -m read/model "$data/extract/InternImgs/000.png" -q -o made.safetensors

# Features.
rm -rf whole
"$SMALTI" extract "$data/extract/InternData/data_info.json" -k prompt --img-size 256 --shard-items 5 -q -o whole
shard='shard-000000000005-000000000010.h5'
survives 24 $shard "$SMALTI" verify read
survives 24 $shard "$SMALTI" retrieve index read -o made -q
survives 24 $shard "$SMALTI" export --format safetensors read -o made -q
small_config 2 16 >config.json
survives 12 $shard "$SMALTI" train read --init config.json --batch 3 --steps 4 --save-every 1 --keep 0 -o made # names rows that it leaves out

# An index, and what is searched for in it.
"$SMALTI" retrieve index whole -o index -q
rm -rf whole
mv index whole
key=$(sed -n '1s/.*"key":"\(.*\)"}/\1/p' whole/items.jsonl)
for file in vectors.safetensors items.jsonl; do
    survives 12 $file "$SMALTI" retrieve query read --like "$key"
done

# A model under a server: requests that need it fail, now and when it was made anew in place, and the server stays.
cp -r "$SMALTI_MODELS/tesserae" served
"$SMALTI" serve -m served --listen 127.0.0.1:0 --cpus 2 >said 2>err &
server=$!
while ! grep -q listening said; do
    kill -0 $server 2>/dev/null || fail "serve: $(cat err)"
    sleep 0.05
done
url=$(sed -n 's/^listening on //p' said)

# asks STATUS PATH CURL-OPTION...: the answer is in $work/answer.
asks() {
    local got
    got=$(curl -sS -m 120 -o answer -w '%{http_code}' "${@:3}" "$url$2")
    [ "$got" = "$1" ] || fail "$2: $got instead of $1: $(head -c 500 answer)"
}
image() {
    asks "$1" /v1/images/generations -H 'Content-Type: application/json' \
        -d '{"prompt":"a red circle","size":"32x32","num_inference_steps":1}'
}
file=served/transformer/diffusion_pytorch_model.safetensors
: >$file
for _ in 1 2; do
    image 500
    grep -qF "$file: changed while it was read: expected" answer || fail "serve: $(cat answer)"
done
asks 200 /health
cp "$SMALTI_MODELS/tesserae/transformer/diffusion_pytorch_model.safetensors" $file
image 500
grep -qF "$file: changed while it was read" answer || fail "serve: $(cat answer)"
asks 200 /v1/models
kill $server
wait $server || fail "serve: $(cat err)"
