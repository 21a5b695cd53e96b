# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
# shellcheck disable=SC2154 # what scripts/study sets
# A step of training over 1 to 64 GPUs, by strategy and by the links between them; beside published steps.

links=(8x8xA100-InfiniBand 8x8xA100-PCIe 64xA100-Ethernet)
results=$root/docs/studies/training.csv

# step MACHINE GPUS STRATEGY BATCH OPTION...: seconds of a step, GiB of the fullest GPU, GB that all GPUs receive in a step, and
# the one that receives most, GB that come to main memory, the bound by transfers, and tasks; with commas between.
step() {
    local machine=$1 count=$2 strategy=$3 batch=$4
    shift 4
    "$SMALTI" simulate train --machine "$machine" --gpus "$count" --strategy "$strategy" --batch "$batch" --json "$@" | awk '
        function number(text, key) { return match(text, "\"" key "\":[-0-9.e+]+") ? substr(text, RSTART + length(key) + 3, RLENGTH - length(key) - 3) + 0 : 0 }
        {
            steps = 2
            n = split(substr($0, index($0, "\"memories\":")), memory, /},{/) # main memory, then the GPUs
            for (i = 2; i <= n; i++) {
                peak = number(memory[i], "peak"); to = number(memory[i], "to")
                if (peak > fullest) fullest = peak
                if (to > most) most = to
                sum += to
            }
            printf "%.4g,%.1f,%.2f,%.2f,%.2f,%.3g,%d\n", number($0, "step"), fullest / 2 ^ 30, sum / 1e9 / steps, most / 1e9 / steps,
                number(memory[1], "to") / 1e9 / steps, number($0, "transfer_bound") / steps, number($0, "tasks")
        }'
}
export -f step

# --blocking is for more than one node of eight GPUs alone: with it all exchanges have the rate of a GPU's part of the network.

# growing: 8 samples and a lane for each GPU. The largest numbers are for the fastest links alone.
growing() {
    local machine count exchanges
    for machine in "${links[@]}"; do
        for count in 1 2 4 8 16 32 64; do
            for exchanges in '' ' --blocking'; do
                case $count,$machine,$exchanges in
                32,"${links[0]}", | 64,"${links[0]}", | [1-8],*, | 16,*) ;;
                *) continue ;;
                esac
                echo "growing,$machine,$count,data,$((8 * count)),--model sigma-512 --precision bf16 --lanes $count$exchanges"
            done
        done
    done
}

# fixed: 8 samples in all. Shards and 64 GPUs make the most tasks: their larger numbers are for the fastest links alone.
fixed() {
    local machine count strategy exchanges
    for machine in "${links[@]}"; do
        while read -r count strategy; do
            case $machine,$strategy in
            8x8xA100-InfiniBand,*) ;;
            *,tensor | *,hybrid:data8.tensor4 | *,hybrid:data8.patch8) [ "$count" -le 4 ] || continue ;;
            esac
            for exchanges in '' ' --blocking'; do
                [ "$count" -gt 8 ] || [ -z "$exchanges" ] || continue
                echo "fixed,$machine,$count,$strategy,8,--model sigma-512 --precision bf16$exchanges"
            done
        done <<'END'
1 data
2 data
2 patch
2 ring
2 tensor
4 data
4 patch
4 tensor
4 hybrid:data2.patch2
8 data
8 patch
8 ring
8 tensor
8 hybrid:data4.patch2
8 hybrid:data4.tensor2
16 hybrid:data8.patch2
16 hybrid:data8.ring2
16 hybrid:data8.tensor2
32 hybrid:data8.patch4
32 hybrid:data8.tensor4
64 hybrid:data8.patch8
END
    done
}

# large: 8 samples of 2048 pixels, each GPU's tokens in one band, and with parts of data one sample in each at a time.
large() {
    local count strategy micro
    while read -r count strategy micro; do
        echo "large,${links[0]},$count,$strategy,8,--model sigma-2k --precision bf16 --tile-tokens 16384 --micro $micro"
    done <<'END'
1 data 1
2 data 2
2 patch 2
4 data 4
4 patch 2
8 data 8
8 patch 2
8 ring 2
8 hybrid:data4.patch2 8
16 hybrid:data8.patch2 8
32 hybrid:data8.patch4 8
64 hybrid:data8.patch8 8
END
}

# memory: what a step takes where a GPU has less memory than it would fill.
memory() {
    local model recompute count strategy batch limits limit
    while read -r model recompute count strategy batch limits; do
        for limit in 80 $limits; do
            echo "memory,${links[0]},$count,$strategy,$batch,--model $model --precision bf16 --tile-tokens 16384 --recompute $recompute" \
                "--gpu-memory-limit ${limit}G"
        done
    done <<'END'
sigma-512 none 1 data 8 24 16
sigma-512 none 8 data 8 12 8
sigma-512 none 8 patch 2 12 8
sigma-512 none 8 tensor 2 8 6
sigma-2k none 8 data 8 40 32 24
sigma-2k block 8 data 8 40 32
sigma-2k none 8 patch 2 24 16
sigma-2k none 8 tensor 2 16
END
}

# published: steps of other programs, as near as they can be simulated.
published() {
    local model batch
    echo "published,8xA100-NVLink,8,data,256,--model sigma-256 --precision tf32 --caption-tokens 2"
    echo "published,8xA100-NVLink,8,data,256,--model sigma-256 --precision f32 --caption-tokens 2"
    while read -r model batch; do
        echo "published,4xA100-NVLink,4,data,$batch,--model $model --precision f16 --recompute block"
    done <<'END'
sigma-256 256
sigma-512 128
sigma-1024 48
sigma-2k 4
END
}

# simulations: the results of all, in docs/studies/training.csv.
simulations() {
    echo part,machine,gpus,strategy,batch,options,seconds,fullest_gib,received_gb,most_received_gb,to_main_gb,transfer_bound,tasks
    # shellcheck disable=SC2016 # the inner shell's variables
    { growing && fixed && large && memory && published; } | nl -ba -w1 -s, | xargs -P "$cores" -d '\n' -I{} bash -euo pipefail -c '
        IFS=, read -r number part machine count strategy batch options <<<"{}"
        read -ra words <<<"$options"
        numbers=$(step "$machine" "$count" "$strategy" "$batch" "${words[@]}") || exit 255 # no more are begun
        echo "$number,$part,$machine,$count,$strategy,$batch,$options,$numbers"' | sort -t, -n | cut -d, -f2-
}

# Functions of awk for the tables.
formats='
    function seconds(value) { return value >= 100 ? sprintf("%.0f", value) : sprintf(value >= 10 ? "%.1f" : value >= 1 ? "%.2f" : "%.3f", value) }
    function share(value) { return sprintf("%.0f %%", 100 * value) }
    function blocking(options) { return options ~ /--blocking/ }'

# by_links PART WEAK: a row for each number of GPUs, strategy and way to exchange, a column for each machine.
by_links() {
    awk -F, -v part="$1" -v weak="$2" -v machines="${links[*]}" "$formats"'
        BEGIN {
            count = split(machines, machine, " ")
            print "| GPUs | strategy | exchanges | NVLink, InfiniBand | PCIe | Ethernet | received, GB: all, most | bound by transfers, s | fullest GPU, GiB |"
            print "|---|---|---|---|---|---|---|---|---|" }
        $1 == part {
            row = $3 "," $4 "," (blocking($6) ? "blocking" : $3 > 1 ? "overlapped" : "")
            if (!(row in seen)) { seen[row] = 1; rows[++n] = row }
            time[row, $2] = $7
            if ($3 == 1) one[$2] = $7
            efficiency[row, $2] = one[$2] / $7 / (weak ? 1 : $3)
            if (!blocking($6)) rivals[$3, $2]++
            if (!blocking($6) && (!(($3, $2) in least) || $7 < least[$3, $2])) least[$3, $2] = $7
            bound[row] = bound[row] (bound[row] == "" ? "" : ", ") sprintf("%.2g", $12)
            if ($2 == machine[1]) { received[row] = $9 == 0 ? "" : sprintf("%.1f, %.1f", $9, $10); full[row] = $8 } }
        END {
            for (i = 1; i <= n; i++) {
                split(rows[i], key, ",")
                line = sprintf("| %d | `%s` | %s |", key[1], key[2], key[3])
                for (k = 1; k <= count; k++) {
                    at = rows[i] SUBSEP machine[k]
                    cell = at in time ? seconds(time[at]) " s (" share(efficiency[at]) ")" : ""
                    if (at in time && key[3] == "overlapped" && rivals[key[1], machine[k]] > 1 && time[at] == least[key[1], machine[k]]) cell = "**" cell "**"
                    line = line " " cell " |"
                }
                line = line " " received[rows[i]] " | " (key[1] > 1 ? bound[rows[i]] : "") " | " full[rows[i]] " |"
                print line
            } }' "$results"
}

# of_large: the table of 2048 pixels.
of_large() {
    awk -F, "$formats"'
        BEGIN { print "| GPUs | strategy | a step | received, GB: all, most | fullest GPU, GiB | tasks |\n|---|---|---|---|---|---|" }
        $1 == "large" {
            if ($3 == 1) one = $7
            printf "| %d | `%s` | %s s (%s) | %.1f, %.1f | %.1f | %d |\n", $3, $4, seconds($7), share(one / $7 / $3), $9, $10, $8, $13 }' "$results"
}

# of_memory: a row for each size of the memory.
of_memory() {
    awk -F, "$formats"'
        BEGIN { print "| pixels | GPUs | strategy | samples | memory | a step | | moved out, GB |\n|---|---|---|---|---|---|---|---|" }
        $1 == "memory" {
            limit = $6; sub(/.*--gpu-memory-limit /, "", limit); sub(/G/, "", limit)
            if (limit == 80) whole = $7
            printf "| %d | %d | `%s`%s | %d | %s | %s s | %s | %s |\n", $6 ~ /2k/ ? 2048 : 512, $3, $4, $6 ~ /block/ ? ", recomputed" : "", $5,
                limit == 80 ? "80 GiB, fills " $8 : limit " GiB, fills " $8, seconds($7), limit == 80 ? "" : sprintf("%.2f", $7 / whole),
                $11 < 0.1 ? "" : sprintf("%.1f", $11) }' "$results"
}

# of_published: the published steps beside simulated ones, in the order of published().
of_published() {
    grep '^published,' "$results" | cut -d, -f7 | paste -d'|' - <(
        cat <<'END'
DiT-XL/2, 256 px, 256 samples on eight A100, TF32, VAE in the step|1.23
... f32|1.96
PixArt-Σ, 256 px, four Ascend 910\*, 256 samples, recomputed, T5 and VAE in the step|2.907
... 512 px, 128 samples|3.817
... 1024 px, 48 samples|7.042
... 2048 px, 4 samples|8.772
END
    ) | awk -F'|' "$formats"'
        BEGIN { print "| what | simulated | published | |\n|---|---|---|---|" }
        { printf "| %s | %s s | %s s | %+.0f %% |\n", $2, seconds($1), $3, 100 * ($1 / $3 - 1) }'
}

training() {
    simulations >"$results.new"
    mv "$results.new" "$results"
    printf 'A batch that grows, 8 samples of 512 pixels and a lane for each GPU: seconds of a step, and the efficiency, the time of one GPU / the time.\n\n'
    by_links growing 1
    printf '\nA batch of 8 samples of 512 pixels in 8 lanes: seconds of a step, and the efficiency, the time of one GPU / GPUs / the time.\n\n'
    by_links fixed ''
    printf '\nA batch of 8 samples of 2048 pixels, on %s:\n\n' "\`${links[0]}\`"
    of_large
    printf '\nGPUs with less memory, on %s:\n\n' "\`${links[0]}\`"
    of_memory
    printf '\nPublished steps:\n\n'
    of_published
}
