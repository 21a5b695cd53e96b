#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Runs every command of the README, of the page that sets up, of the tour and of the tutorials, and checks the files that they
# make. The images that they and the help's examples generate show what was asked for.
set -euo pipefail

root=$(cd "$SMALTI_TESTDATA/../.." && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir "$work/build"
printf '#!/bin/sh\nexec "%s" "$@"\n' "$SMALTI" >"$work/build/smalti"
printf '#!/bin/sh\nexec "%s" "$@"\n' "$SMALTI_BENCH" >"$work/build/smalti-bench"
chmod +x "$work"/build/*
export STARPU_OPENCL_ON_CPUS=1 POCL_DEVICES=basic STARPU_WORKERS_NOBIND=1 # devices wherever PoCL is

fail() {
    echo "FAILED: $*"
    exit 1
}

# enter NAME: a directory that looks like the top of the source tree.
enter() {
    mkdir "$work/$1" && cd "$work/$1"
    ln -s "$work/build" "$root/docs" "$root/models" "$root/scripts" .
    mkdir tests && ln -s "$SMALTI_TESTDATA" tests/data
}

# run_all FILE: each line is a command that succeeds, but for one that is killed on purpose.
run_all() {
    local command
    while read -r command; do
        echo "$SECONDS s: $command"
        PATH=$work/build:$PATH bash -c "$command" </dev/null >out 2>err || [[ $command = *KILL* ]] || fail "$(cat err)"
    done <"$1"
}

made() {
    local file
    for file in "$@"; do [ -s "$file" ] || fail "no $file"; done
}

enter all
for page in README.md docs/install.md docs/tour.md; do
    grep -E '^    build/smalti(-bench)? ' "$root/$page" >commands || fail "$page has no commands"
    run_all commands
done
made star.png diamond.png device.png images/8.png rings/1-3.png rings/1-3.safetensors ring.png ring.safetensors again.png \
    trace.json heart.png features/features.h5 report.html InternData/caption_features_new/000.npz

# The help's examples with the embedded model, and the README's first image.
printf '#!/bin/sh\ncat >piped.png\n' >build/display
chmod +x build/display
mkdir help && cd help
"$SMALTI" generate --help | grep "^    smalti generate -p '" >commands
[ "$(wc -l <commands)" -ge 3 ] || fail 'the help has no examples'
sed -n 's/^    scripts.quickstart \(".*"\)$/smalti generate -o quick.png -p \1/p' "$root/README.md" >>commands
run_all commands
cd ..
"${SMALTI%/*}/tests/shown" star.png diamond.png int8.png device.png images/*.png rings/*.png heart.png help/*.png help/rings/*.png

# The tutorials: each indented line outside of a block of output is a command. Fewer and smaller images do.
simulate=(simulate --machine 1xA100-PCIe --model sigma-256 --steps 1)
for page in images features policies; do
    enter $page
    awk '/^```/ {output = !output} !output && sub(/^    /, "")' "$root/docs/tutorial-$page.md" | sed -e ':more; /\\$/ {N; s/\\\n *//; b more}' |
        grep -vE '^(scripts/(packages|build) |job=|sbatch |tail )' |
        sed -E 's/head -(1000|300)/head -8/; s/KILL [0-9]+/KILL 2/; s/512x512/64x64/; s/--shard-items 32/--shard-items 2/g
            s/--batch 16/--batch 2/; s/(retrieve train .*)/\1 --steps 5 --held-out 0/; s/(schedule .*)/\1 --repeats 1 --warm 0/' >commands
    [ "$(wc -l <commands)" -ge 5 ] || fail "tutorial-$page.md has no commands"
    if ! "$SMALTI" "${simulate[@]}" >out 2>&1; then # scripts/build --simgrid has not been here
        sed -i -E '/simulate|--machine|--compare/d' commands
    fi
    run_all commands
done
made ../images/thousand/8.png ../images/found.html ../features/small.html ../features/small-pixart/caption_features_new \
    ../features/small-run/log.jsonl slow.html lws.png

# Configured in itself, a checkout could be built nowhere else.
status=0
"$root/scripts/build" -C . >out 2>err || status=$?
[ $status -eq 2 ] || fail "scripts/build -C .: status $status: $(cat err)"
grep -q 'a folder of its own' err || fail "scripts/build -C .: $(cat err)"
