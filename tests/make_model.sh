#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# `smalti-bench make-model`: the whole of a model that paints, or nothing.
# shellcheck source=command.sh
. "$(dirname "$0")/command.sh"
trap 'umount "$work/disk" 2>/dev/null || true; rm -rf "$work"' EXIT
cd "$work"

make=("$SMALTI_BENCH" make-model)
tiny=("${make[@]}" --geometry tiny)
parts="scheduler/scheduler_config.json text_encoder/config.json text_encoder/model.safetensors"
parts+=" tokenizer/special_tokens_map.json tokenizer/spiece.model tokenizer/tokenizer_config.json"
parts+=" transformer/config.json transformer/diffusion_pytorch_model.safetensors"
parts+=" vae/config.json vae/diffusion_pytorch_model.safetensors"

for dtype in f32 f16 bf16; do
    expect 0 '' "${tiny[@]}" --dtype "$dtype" "$dtype"
    [ "$(files $dtype)" = "model_index.json $parts" ] || fail "$dtype holds $(files $dtype)"
    grep -q "\"dtype\":\"${dtype^^}\"" "$dtype"/vae/*.safetensors || fail "$dtype: no ${dtype^^} in the file"
    expect 0 '' "$SMALTI" generate --model "$dtype" -p 'a red star' --size 64x48 --steps 2 -o "$dtype.png"
    [ -s "$dtype.png" ] || fail "no $dtype.png"
done
[ "$(stat -c %a f16/vae)" = "$(stat -c %a f16)" ] || fail "other rights in the parts"
expect 0 '' "${tiny[@]}" again # f16 is the default
same f16 again

# The other layout of the same weights paints the same.
expect 0 '' "${tiny[@]}" -q --shard-size 20000 shards
[ -e shards/transformer/diffusion_pytorch_model.safetensors.index.json ] || fail "no shards: $(files shards)"
expect 0 '' "$SMALTI" generate --model shards -p 'a red star' --size 64x48 --steps 2 -o shards.png
cmp f16.png shards.png

expect 0 '' "${tiny[@]}" --only dit,vae some
[ "$(files some)" = "model_index.json scheduler/scheduler_config.json $(cut -d' ' -f7- <<<"$parts")" ] ||
    fail "some holds $(files some)"
tr -d ' \t\n' <some/model_index.json | grep -qF '"text_encoder":[null,null]' || fail "an index of all"
same f16/vae some/vae
expect 0 '' "${tiny[@]}" --only t5 --t5-layers 1 text
[ ! -e text/vae ] || fail "text holds $(files text)"
expect 0 '' "$SMALTI" generate --model f16 --text-encoder text/text_encoder -p x --size 64x48 --steps 1 -o one.png

# A directory with other things in it, a slash at its end.
mkdir other
echo mine >other/notes
expect 0 '' "${tiny[@]}" other/
[ "$(cat other/notes)" = mine ] || fail "another file was touched"

# Nothing is overwritten, nothing half made.
for part in text_encoder transformer vae tokenizer scheduler model_index.json; do
    rm -rf there && mkdir there && echo mine >"there/$part"
    refuse 2 "there/$part: is there already" "${tiny[@]}" there
    [ "$(files there)" = "$part" ] || fail "left $(files there)"
done
refuse 1 'No such file or directory' "${tiny[@]}" none/below
refuse 1 'File exists' "${tiny[@]}" other/notes
refuse 2 '--geometry is missing' "${make[@]}" new
refuse 2 "sigma-3" "${make[@]}" --geometry sigma-3 new
refuse 2 'one directory was expected' "${tiny[@]}"
refuse 2 'one directory was expected' "${tiny[@]}" new new2
refuse 2 "'clip' is none of t5, dit and vae" "${tiny[@]}" --only vae,clip new
refuse 2 "'' is none of t5, dit and vae" "${tiny[@]}" --only vae, new
refuse 2 'dtype' "${tiny[@]}" --dtype f64 new
refuse 2 't5-layers' "${tiny[@]}" --t5-layers -1 new
refuse 1 'File too large' bash -c 'ulimit -f 100; exec "$@"' - "${tiny[@]}" new
[ ! -e new ] || fail "new is there: $(files new)"

mkdir disk
if mount -t tmpfs -o size=400k none disk 2>/dev/null; then
    refuse 1 'No space left on device' "${tiny[@]}" disk/model
    refuse 1 'No space left on device' "${tiny[@]}" disk
    [ "$(find disk -mindepth 1 | wc -l)" -eq 0 ] || fail "left $(find disk)"
    mount -o remount,size=2m disk
    expect 0 '' "${tiny[@]}" disk
    same f16 disk
fi

# A signal: the real geometry takes long enough to be stopped in it.
"${make[@]}" -g sigma-512 --only dit stopped 2>err &
pid=$!
for _ in $(seq 100); do
    [ -z "$(find stopped -name '*.part' 2>/dev/null || true)" ] || break
    sleep 0.05
done
kill -INT $pid
status=0
wait $pid || status=$?
[ $status -eq 1 ] || fail "stopped with $status: $(cat err)"
grep -q 'stopped by SIGINT, nothing was made' err || fail "no reason: $(cat err)"
[ ! -e stopped ] || fail "left $(files stopped)"
