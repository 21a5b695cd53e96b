#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Command lines put together at random from good and bad values: each ends soon, with a status that is documented,
# says in one line what is wrong, and leaves no file behind that is not what was asked for.
# SMALTI_TEST_FULL=1 tries 300 instead of 24, SMALTI_TEST_SEED another row of them.
# shellcheck source=command.sh
. "$(dirname "$0")/command.sh"
cd "$work"
RANDOM=${SMALTI_TEST_SEED:-1}
lines=24
[ -z "${SMALTI_TEST_FULL:-}" ] || lines=300

# What options are given: COMMAND OPTION VALUES, good ones and bad ones mixed. A value of "" is no value at all.
table='
generate --prompt red star|a|täst|
generate --negative-prompt a heart|
generate --prompts prompts|prompts.jsonl|bad.jsonl|blank|missing|/dev/null
generate --size 16x16|32x16|17x33|15x16|0x0|16|-1x16|99999999999999999999x16
generate --width 16|40|15|x
generate --seed 0|-1|18446744073709551615|18446744073709551616|1.5
generate --images 1|2|0|-3
generate --num-inference-steps 1|2|3|0|1001|two
generate --guidance 0|1|4.5|-1|nan|1e9
generate --scheduler euler|ddim|dpm++|lcm|sa-solver|unipc|heun|ddpm|dpm|nosuch
generate --noise f16|bf16|f64
generate --clean raw|full|strip|some
generate --latents kept.safetensors|prompts|missing
generate --precision bf16|f32|int8
generate --model missing|prompts|.
generate --vae missing
generate --variant fp16
generate --sched eager|dmda|nosuch
generate --cpus 1|2|-1|100000
generate --memory-limit 300M|2M|12Q|100000G
generate --scratch .|missing
generate --tile-tokens 1|7|0|-1
generate --tile-rows 1|3|-2
generate --json
generate --quiet
generate --resume
generate --save-latents
generate --resolution-binning
generate --unknown
generate --pro x
decode --index 0|1|-1
decode --key latents|nosuch
decode --raw
decode --bits 8|16|12
decode --format png|ppm|gif
decode --tile-rows 1|2|-1
decode --memory-limit 100M|64M|1M|2T
decode --precision bf16|f8
decode --store bf16|f8
decode --json
decode --quiet
decode --plan
decode --model missing|.
encode --format npy|safetensors|png
encode --orientation exif|stored|left
encode --tile-rows 1|2|0
encode --memory-limit 100M|1M
encode --json
encode --quiet
encode --plan
encode --vae-model missing
'
# The command with what it always has: sometimes an operand, and where the result goes.
declare -A operands=([generate]='|||x' [decode]='kept.safetensors|kept.npy|prompts|missing||kept.npy kept.npy'
    [encode]='image.png|prompts|missing||image.png image.png')
declare -A outputs=([generate]='out/|out/x.png|out/x.jpg|out/missing/x.png|-|'
    [decode]='out/|out/x.png|out/x.ppm|out/x.gif|-|' [encode]='out/x.npy|out/x.safetensors|out/x|-|')

# pick TEXT: one of its parts between bars.
pick() {
    local parts
    mapfile -t parts < <(tr '|' '\n' <<<"$1")
    picked=${parts[RANDOM % ${#parts[@]}]}
}

# compose: a random command line in `line`.
compose() {
    local commands=(generate generate decode encode) command option values row rows
    command=${commands[RANDOM % 4]}
    line=("$command")
    [ "$command" != generate ] || [ $((RANDOM % 8)) -eq 0 ] || line+=(--prompt 'a red star' --size 32x32 --steps 2)
    mapfile -t rows < <(grep "^$command " <<<"$table")
    for ((count = RANDOM % 4; count > 0; count--)); do
        row=${rows[RANDOM % ${#rows[@]}]}
        read -r _ option values <<<"$row"
        line+=("$option")
        pick "$values"
        [ -z "$picked" ] || line+=("$picked")
    done
    pick "${operands[$command]}"
    # shellcheck disable=SC2206
    line+=($picked)
    pick "${outputs[$command]}"
    [ -z "$picked" ] || line+=(-o "$picked")
}

printf 'a red star\na ring\n' >prompts
printf '{"prompt": "a", "width": 16, "id": "one"}\n{"prompt": "b", "height": 32}\n' >prompts.jsonl
printf '{"prompt": "a"}\n{"prompt": 7}\n{"prompt": "b", "width": 3}\n' >bad.jsonl
printf ' \n\n' >blank
expect 0 '' "$SMALTI" generate -p 'a red star' --steps 1 --size 32x32 --save-latents -o kept.png
expect 0 '' "$SMALTI" encode kept.png -o kept.npy --format npy
cp kept.png image.png
rm out err
before=$(files .)

for ((try = 0; try < lines; try++)); do
    compose
    rm -rf out
    mkdir out
    status=0
    timeout 900 "$SMALTI" "${line[@]}" >stdout 2>stderr </dev/null || status=$?
    shown="smalti ${line[*]@Q} (line $try): status $status"
    left=$(files out)
    [[ $status =~ ^[0-3]$ ]] || fail "$shown: $(head -c 2000 stderr)"
    [ "$status" -ne 2 ] || [ "$(wc -l <stderr)" -eq 1 ] || fail "$shown: not one line: $(head -c 2000 stderr)"
    [ "$status" -eq 0 ] || grep -q '^smalti ' stderr || fail "$shown: no word why: $(head -c 2000 stderr)"
    case $status in 1 | 2) [ -z "$left" ] || fail "$shown: left $left" ;; esac
    [[ $left != *.part* ]] || fail "$shown: left $left"
    rm -rf out stdout stderr image.safetensors
    [ -f "image.png" ] || fail "$shown: the image is gone"
    cp kept.png image.png # the default name of an image
    [ "$(files .)" = "$before" ] || fail "$shown: left $(files .)"
done
