#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Every command of `build` in the README succeeds, and what it and the help paint shows what was asked for.
set -euo pipefail

root=$SMALTI_TESTDATA/../..
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir "$work/build"
printf '#!/bin/sh\nexec "%s" "$@"\n' "$SMALTI" >"$work/build/smalti"
printf '#!/bin/sh\nexec "%s" "$@"\n' "$SMALTI_BENCH" >"$work/build/smalti-bench"
chmod +x "$work"/build/*
ln -s "$(cd "$root/docs" && pwd)" "$work/docs"
mkdir "$work/tests" && ln -s "$SMALTI_TESTDATA" "$work/tests/data"
cd "$work"

grep -E '^    build/smalti(-bench)? ' "$root/README.md" >commands
[ "$(wc -l <commands)" -ge 5 ] || { echo "FAILED: the README has no commands" && exit 1; }
export STARPU_OPENCL_ON_CPUS=1 POCL_DEVICES=basic STARPU_WORKERS_NOBIND=1 # devices wherever PoCL is
while read -r command; do
    echo "$command"
    bash -c "$command" </dev/null >out 2>err || { echo "FAILED: $(cat err)" && exit 1; }
done <commands
for image in diamond.png device.png images/8.png rings/1-3.png rings/1-3.safetensors ring.png ring.safetensors again.png trace.json heart.png features/features.h5 \
    report.html InternData/caption_features_new/000.npz; do
    [ -s "$image" ] || { echo "FAILED: no $image" && exit 1; }
done

# The help's examples with the embedded model, and the README's first image.
printf '#!/bin/sh\ncat >piped.png\n' >build/display
chmod +x build/display
mkdir help && cd help
"$SMALTI" generate --help | grep "^    smalti generate -p '" >commands
[ "$(wc -l <commands)" -ge 3 ] || { echo "FAILED: the help has no examples" && exit 1; }
sed -n 's/^    scripts.quickstart \(".*"\)$/smalti generate -o quick.png -p \1/p' "$root/README.md" >>commands
while read -r command; do
    echo "$command"
    PATH=$work/build:$PATH bash -c "$command" </dev/null >out 2>err || { echo "FAILED: $(cat err)" && exit 1; }
done <commands
cd ..
"${SMALTI%/*}/tests/shown" diamond.png device.png images/*.png rings/*.png heart.png help/*.png help/rings/*.png
