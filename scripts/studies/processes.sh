# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
# shellcheck disable=SC2154 # what scripts/study sets
# One directory extracted by several processes.

# together COUNT: seconds of so many processes that extract into one directory.
together() {
    local began process processes=()
    began=$(date +%s.%N)
    for ((process = 0; process < $1; process++)); do
        SMALTI_SLOWDOWN=cpu0:50 "$SMALTI" extract -q --t5 --cpus 1 --shard-items 32 "$work/captions.jsonl" -o "$work/of-$1" &
        processes+=($!)
    done
    for process in "${processes[@]}"; do
        wait "$process"
    done
    awk -v began="$began" -v ended="$(date +%s.%N)" 'BEGIN { print ended - began }'
}

# rows DIRECTORY: a digest of what it has of its items, in their order.
rows() {
    PYTHONPATH=$root/python "${PYTHON:-python3}" -c '
import hashlib, sys
from smalti_features import Features
digest = hashlib.sha256()
for row in Features(sys.argv[1], complete=True):
    text = row.texts["prompt"]
    digest.update(row.key.encode() + text.ids.tobytes() + text.values.tobytes())
print(digest.hexdigest())' "$1"
}

# shared OPTION... PROCESSES: seconds, items a second and the efficiency of processes that share a directory, simulated.
shared() {
    "${PYTHON:-python3}" "$root/bench/extract_processes.py" "$@"
}

# A hundred million captions of 40 tokens through T5-XXL, and as many images of 512 x 512 pixels, on GPUs.
many_processes() {
    local kind row each=() storage shard count
    printf '\n| | storage | shards of |'
    printf ' %s |' 10 100 300 1000
    printf '\n|---|---|---|---|---|---|---|\n'
    while read -r kind row; do
        read -ra each <<<"$row"
        for storage in 1 10 100; do
            for shard in 1024 8192; do
                printf '| %s | %s GB/s | %s |' "$kind" $storage $shard
                for count in 10 100 300 1000; do
                    shared --items 100000000 --shard $shard --storage ${storage}e9 "${each[@]}" $count |
                        awk '{ printf " %.0f %% |", 100 * $4 }'
                done
                echo
            done
        done
    done <<'ROWS'
captions --rate 400 --read 200 --write 330e3 --start 60
images --rate 40 --read 500e3 --write 132e3 --start 5
ROWS
}

processes() {
    local count seconds alone='' simulated
    work=$(mktemp -d)
    captions 5120 >"$work/captions.jsonl"
    echo "| processes | time | items a second | efficiency | simulated |"
    echo "|---|---|---|---|---|"
    for count in 1 2 4 8 16; do
        seconds=$(together $count)
        "$SMALTI" verify "$work/of-$count" >&2
        [ "$(rows "$work/of-$count")" = "$(rows "$work/of-1")" ] || die "$count processes gave other rows than one"
        alone=${alone:-$seconds}
        simulated=$(shared --items 5120 --shard 32 --rate "$(awk -v t="$alone" 'BEGIN { print 5120 / t }')" $count)
        awk -v n=$count -v t="$seconds" -v alone="$alone" -v simulated="${simulated##* }" 'BEGIN {
            printf "| %d | %.1f s | %.0f | %.0f %% | %.0f %% |\n", n, t, 5120 / t, 100 * alone / t / n, 100 * simulated }'
    done
    rm -r "$work"
    many_processes
}
