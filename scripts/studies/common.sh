# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
# shellcheck disable=SC2154 # what scripts/study sets
# What several studies share: simulated and measured times, traces, captions. Sourced by scripts/study, not run.

# gpus MACHINE: how many it has.
gpus() {
    "$SMALTI" simulate --machines | awk -v name="$1" '$1 == name { for (i = 1; i < NF; i++) if ($(i + 1) == "x") n += $i; print n }'
}

# simulate MACHINE STRATEGY PIXELS: seconds of 20 steps of both branches in half precision.
simulate() {
    local count side=$(($3 / 16)) strategy=()
    count=$(gpus "$1")
    local tile=$(((side * side + count - 1) / count))
    [ "$count" -gt 1 ] || [ $tile -lt 4096 ] || tile=4096
    [ -z "$2" ] || strategy=(--strategy "$2")
    "$SMALTI" simulate --machine "$1" --model sigma-1024 --size "$3x$3" --precision f16 --steps 4 --tile-tokens "$tile" \
        "${strategy[@]}" | awk '$1 == "a" && $2 == "step" { print 20 * $3 }'
}
export -f simulate gpus

# many: lines MACHINE,STRATEGY,PIXELS… of standard input with ",SECONDS" behind them, in their order.
many() {
    # shellcheck disable=SC2016 # the inner shell's variables
    nl -ba -w1 -s, | xargs -P "$cores" -d '\n' -I{} bash -euo pipefail -c '
        IFS=, read -r number machine strategy pixels rest <<<"{}"
        seconds=$(simulate "$machine" "$strategy" "$pixels") || exit 255 # no more are begun
        echo "$number,$machine,$strategy,$pixels,$rest,$seconds"' | sort -t, -n | cut -d, -f2-
}

# makespan MACHINE POLICY OPTION...: simulated seconds.
makespan() {
    local machine=$1 policy=$2
    shift 2
    "$SMALTI" simulate --machine "$machine" --sched "$policy" --json "$@" | grep -oE '"makespan":[0-9.e+-]+' | cut -d: -f2
}

# measured POLICY OPTION...: seconds of an image on this machine.
measured() {
    local policy=$1
    shift
    STARPU_OPENCL_ON_CPUS=1 STARPU_WORKERS_NOBIND=1 POCL_DEVICES='basic basic' "$SMALTI" generate --sched "$policy" \
        -p 'a red star above a blue ring' -q --json -o "$work/image.png" "$@" | grep -oE '"seconds":[0-9.]+' | head -n 1 | cut -d: -f2
}

# as_ranks: has processes of an MPI job share this machine.
as_ranks() {
    export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_plm_rsh_agent=/bin/false
    export STARPU_WORKERS_NOBIND=1 STARPU_MPI_NOBIND=1 STARPU_SILENT=1
}

# span TRACE: seconds from the first task to the end of the last.
span() {
    awk '
        function number(key) { return match($0, "\"" key "\":[0-9.]+") ? substr($0, RSTART + length(key) + 3, RLENGTH) + 0 : -1 }
        /"cat":"task"/ { start = number("ts"); end = start + number("dur")
            if (!n++ || start < first) first = start
            if (end > last) last = end }
        END { print (last - first) / 1e6 }' "$1"
}

# steady TRACE: seconds of a step, and of them those in which the worker has no task; without the first and the last step.
steady() {
    awk '
        function number(key) { return match($0, "\"" key "\":[0-9.]+") ? substr($0, RSTART + length(key) + 3, RLENGTH) + 0 : -1 }
        /"cat":"task"/ && /"layer":/ {
            stage = number("stage"); start[++n] = number("ts"); busy[n] = number("dur")
            end = start[n] + busy[n]
            if (end > last[stage]) last[stage] = end
            if (stage > most) most = stage }
        END {
            for (i = 1; i <= n; i++) if (start[i] >= last[1] && start[i] < last[most - 1]) sum += busy[i]
            span = last[most - 1] - last[1]
            print span / (most - 2) / 1e6, (span - sum) / (most - 2) / 1e6 }' "$1"
}

# captions COUNT: as many lines for smalti extract, of 5 to 18 words; always the same.
captions() {
    awk -v count="$1" 'BEGIN {
        words = split("a an old the small red blue quiet bright cat house river mountain photo painting of in on under beside " \
            "with morning light snow street portrait child holding flowers wooden table window distant harbour", word, " ")
        state = 1
        for (i = 0; i < count; i++) {
            text = "number " i
            state = state * 16807 % 2147483647
            for (left = 3 + state % 14; left > 0; left--) {
                state = state * 16807 % 2147483647
                text = text " " word[1 + state % words] }
            printf "{\"path\":\"%d.png\",\"prompt\":\"%s\"}\n", i, text } }'
}
