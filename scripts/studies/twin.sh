# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
# shellcheck disable=SC2154 # what scripts/study sets
# Training and extraction on this machine, simulated and measured.

# prepare: 48 pictures with one caption each, and their features at two sizes; 4000 captions, which are all alike; sets
# `tokens`, those of each.
prepare() {
    local size caption='a red star above a blue ring on a white background'
    seq 4000 | sed "s|.*|{\"path\": \"&.png\", \"prompt\": \"$caption\"}|" >"$work/list-4000.jsonl"
    mkdir "$work/pictures"
    "$SMALTI" generate -p "$caption" -s 256x256 -i 48 --steps 1 -q -o "$work/pictures/"
    find "$work/pictures" -name '*.png' | sort |
        sed "s|.*|{\"path\": \"&\", \"prompt\": \"$caption\"}|" >"$work/list-48.jsonl"
    for size in 128 256; do
        tokens=$("$SMALTI" extract "$work/list-48.jsonl" --img-size $size -o "$work/features-$size" -q --json |
            sed 's/.*"tokens":\([0-9]*\).*/\1/')
    done
    tokens=$((tokens / 48))
}

# real JOB SIZE ITEMS OPTION...: seconds of one run on this machine, whose trace is in $work/trace: of training of a step, the
# median of the last ones; of an extraction from its first task to its last.
real() {
    local job=$1 size=$2 items=$3
    shift 3
    rm -rf "$work/out"
    case $job in
    train)
        "$SMALTI" train "$work/features-$size" -o "$work/out" --steps 12 --warmup 0 --trace "$work/trace" -q "$@"
        sed -n 's/.*"loss".*"seconds":\([0-9.e-]*\).*/\1/p' "$work/out/log.jsonl" | tail -n 9 | sort -g | sed -n 5p
        ;;
    extract)
        "$SMALTI" extract "$work/list-$items.jsonl" -o "$work/out" --img-size "$size" --trace "$work/trace" -q "$@"
        span "$work/trace"
        ;;
    esac
}

# simulated JOB SIZE ITEMS TRACES OPTION...: the same seconds, on the machine of the traces.
simulated() {
    local job=$1 size=$2 items=$3 traces=$4
    shift 4
    local what=(--size "${size}x$size") key=step
    [ "$job" = train ] || what=(--img-size "$size" --size 256x256 --items "$items") key=makespan
    "$SMALTI" simulate "$job" --machine "$work/machine.json" --measured "$traces" --caption-tokens "$tokens" "${what[@]}" --json "$@" |
        sed "s/.*\"$key\":\([0-9.e+-]*\).*/\1/"
}

twin() {
    local round number job size precision items options traces cases=$root/docs/studies/twin.csv
    local tokens
    work=$(mktemp -d)
    prepare
    for round in {1..9}; do
        number=0
        while IFS=, read -r job size precision items options; do
            number=$((number + 1))
            read -ra options <<<"$options"
            real "$job" "$size" "$items" --precision "$precision" "${options[@]}" >"$work/seconds" 2>"$work/err" </dev/null ||
                die "$job $size ${options[*]}: $(cat "$work/err")"
            # the first round warms the caches; half of the others are predicted from the other half
            if [ "$round" -gt 1 ] && [ $((round % 2)) -eq 0 ]; then
                mkdir -p "$work/$precision-${options[1]}"
                mv "$work/trace" "$work/$precision-${options[1]}/$number.$round.json"
            elif [ "$round" -gt 1 ]; then
                cat "$work/seconds" >>"$work/$number"
            fi
        done < <(tail -n +2 "$cases")
    done
    number=0
    while IFS=, read -r job size precision items options; do
        number=$((number + 1))
        read -ra options <<<"$options"
        traces=$(find "$work/$precision-${options[1]}" -type f | sort | paste -sd,)
        "$SMALTI" simulate --measured "$traces" --precision "$precision" --calibrate "$work/machine.json"
        echo "$job|$size|$precision|${options[*]}|$(sort -g "$work/$number" | xargs)|$(simulated "$job" "$size" "$items" "$traces" \
            --precision "$precision" "${options[@]}")"
    done < <(tail -n +2 "$cases") | awk -F'|' '
        BEGIN { print "| job | size | precision | options | measured | simulated | error |\n|---|---|---|---|---|---|---|" }
        { n = split($5, t, " "); real = (t[int((n + 1) / 2)] + t[int(n / 2) + 1]) / 2; error = 100 * ($6 / real - 1)
          size = error < 0 ? -error : error; sum += size; if (size > worst) worst = size
          printf "| `%s` | %s | %s | `%s` | %.3g s (%.3g to %.3g) | %.3g s | %+.1f %% |\n", $1, $2, $3, $4, real, t[1], t[n], $6, error }
        END { printf "\nMean error of %d cases %.1f %%, the largest %.1f %%.\n", NR, sum / NR, worst }'
    rm -r "$work"
}
