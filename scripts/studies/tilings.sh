# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
# shellcheck disable=SC2154 # what scripts/study sets
# Scheduling policies over tilings and numbers of workers, measured.

tilings() {
    local output
    output=$(mktemp)
    "$root/build/smalti-bench" schedule --sched lws,prio,dmda,dmdas,locality --tile-tokens 16,32,64,128 --cpus 1,2 --size 256x256 \
        --steps 4 --repeats 5 --images 2 -o "$output" >&2
    tail -n +2 "$output" | sed -E 's/.*"name":"sched ([a-z]+), tile-tokens ([0-9]+), cpus ([0-9]+)".*"seconds":([0-9.e-]+).*/\3 \2 \1 \4/' |
        sort -k 1,1n -k 2,2n -s | awk '
        function say() {
            line = ""
            for (i = 1; i <= n; i++) line = line sprintf(" %s%.3g s%s |", time[i] == least ? "**" : "", time[i], time[i] == least ? "**" : "")
            printf "| %d | %d |%s\n", workers, tile, line
        }
        NR == 1 { workers = $1; tile = $2 }
        $1 != workers || $2 != tile {
            if (!headed++) {
                line = rule = ""
                for (i = 1; i <= n; i++) { line = line " `" name[i] "` |"; rule = rule "---|" }
                printf "| workers | `--tile-tokens` |%s\n|---|---|%s\n", line, rule
            }
            say(); n = 0; least = 1e9; workers = $1; tile = $2
        }
        { name[++n] = $3; time[n] = $4; if (n == 1 || $4 < least) least = $4 }
        END { say() }'
    rm "$output"
}
