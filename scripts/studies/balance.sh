# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
# An image on two workers of different speed beside their bound.

# heterogeneous CASE TRACE: generates an image on workers of different speed: fast or slow alone; an MPI job of both, by strategy and
# shares (ring.3:1); or both in one process, by the policy's name.
heterogeneous() {
    local fast=4 slow=12 # the fast one leaves cores to the rest, too
    local command=("$SMALTI" generate -p 'a red star above a blue ring' --size 512x512 --steps 6 --tile-tokens 128 -q
        -o "$2.png" --trace "$2")
    case $1 in
    fast | slow) SMALTI_SLOWDOWN=cpu0:${!1} "${command[@]}" --cpus 1 ;;
    *.*)
        command+=(--cpus 1 --strategy "${1%.*}" --shares "${1#*.}")
        mpirun --oversubscribe --bind-to none -n 1 -x SMALTI_SLOWDOWN=cpu0:$fast "${command[@]}" \
            : -n 1 -x SMALTI_SLOWDOWN=cpu0:$slow "${command[@]}"
        ;;
    *) SMALTI_SLOWDOWN=cpu0:$fast,cpu1:$slow "${command[@]}" --cpus 2 --sched "$1" ;;
    esac
}

balance() {
    local work case cases=(fast slow ring.1:1 patch.1:1 ring.3:1 patch.3:1 lws dmdas)
    have mpirun || die "mpirun is needed (Debian: openmpi-bin)"
    as_ranks
    work=$(mktemp -d)
    for case in "${cases[@]}" "${cases[@]}" "${cases[@]}" "${cases[@]}" "${cases[@]}"; do # in turns: the machine's pace changes
        heterogeneous "$case" "$work/trace" 2>"$work/err" || die "$case: $(cat "$work/err")"
        echo "$case $(steady "$work/trace")"
    done | tee "$work/all" >&2
    awk '
        function median(of, case, i, j, x) {
            for (i = 1; i <= rounds; i++) { x[i] = of[case, i]; for (j = i; j > 1 && x[j - 1] > x[j]; j--) { t = x[j]; x[j] = x[j - 1]; x[j - 1] = t } }
            return (x[int((rounds + 1) / 2)] + x[int(rounds / 2) + 1]) / 2 }
        $1 == "fast" { rounds++ }
        !($1 in seen) { seen[$1] = 1; order[++n] = $1 }
        { step[$1, rounds] = $2 }
        END {
            for (r = 1; r <= rounds; r++) {
                bound = 1 / (1 / step["fast", r] + 1 / step["slow", r])
                for (i = 1; i <= n; i++) part[order[i], r] = 100 * bound / step[order[i], r] }
            print "| | a step | of the bound |\n|---|---|---|"
            for (i = 1; i <= n; i++) printf "| `%s` | %.3f s | %.0f %% |\n", order[i], median(step, order[i]), median(part, order[i]) }' \
        "$work/all"
    rm -r "$work"
}
