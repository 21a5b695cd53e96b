#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# `smalti export` to a disk that is full, whatever it has room for: one line, then, with more room, the same command
# makes what an undisturbed run has made.
# shellcheck source=command.sh
. "$(dirname "$0")/command.sh"
make_directory=${SMALTI%/*}/tests/make_directory
trap 'umount "$work/disk" 2>/dev/null || true; rm -rf "$work"' EXIT
cd "$work"
mkdir disk
if ! mount -t tmpfs -o size=1m none disk 2>/dev/null; then
    echo "SKIPPED: no tmpfs can be mounted here"
    exit 77
fi

# Images of many pages: where one found no room, there is some for a smaller file.
seq -f 'item-%05g.png' 0 39 >keys
"$make_directory" features f16 prompt,sharegpt4v 200 20 7 <keys
for format in pixart safetensors webdataset; do
    export=("$SMALTI" export features -f "$format" -q)
    [ $format = pixart ] || export+=(--shard-bytes 60000)
    expect 0 '' "${export[@]}" -o whole-$format
    for room in 8k 60k 100k 148k 152k 200k 300k 304k; do
        mount -o remount,size=$room disk
        refuse 1 'No space left on device' "${export[@]}" -o disk/out
        [ -z "$(find disk -name '*.part')" ] || fail "$format, $room: left $(find disk -name '*.part')"
        refuse 1 'No space left on device' "${export[@]}" -o disk/out
        mount -o remount,size=100m disk
        expect 0 '' "${export[@]}" -o disk/out
        same whole-$format disk/out
        rm -r disk/out
    done
done
