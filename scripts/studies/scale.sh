# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
# shellcheck disable=SC2154 # what scripts/study sets
# A dataset of a million captions extracted whole.

# extraction NAME OPTION...: extracts, verifies, and prints a row of the table, from the log of the run.
extraction() {
    local name=$1 directory=$work/features began
    shift
    "$SMALTI" extract -q "$@" -o "$directory"
    began=$SECONDS
    "$SMALTI" verify "$directory" >&2
    awk -v name="$name" -v verified=$((SECONDS - began)) '
        function number(key) { return match($0, "\"" key "\":[0-9.]+") ? substr($0, RSTART + length(key) + 3, RLENGTH - length(key) - 3) + 0 : 0 }
        /"resident":/ { t[++n] = number("t"); resident[n] = number("resident"); items[n] = number("items"); stored = number("stored")
            if (resident[n] > peak) peak = resident[n] }
        function at(share, i) { i = 1; while (items[i] < share * items[n]) i++; return resident[i] / 1e6 }
        END { printf "| %s | %d | %.0f s | %.0f | %.1f | %.1f | %.1f | %.1f | %.2f GB | %d s |\n", name, items[n], t[n], items[n] / t[n],
            at(0.1), at(0.5), at(0.9), peak / 1e6, stored / 1e9, verified }' "$directory"/runs/*.jsonl
    sed -nE "s/.*\"resident\":([0-9]+),\"items\":([0-9]+).*/$name \1 \2/p" "$directory"/runs/*.jsonl >>"$work/samples"
    rm -r "$directory"
}

# growth SAMPLES: lines NAME BYTES ITEMS as a picture of megabytes over items.
growth() {
    awk '
        { if (!($1 in seen)) { seen[$1] = 1; name[++names] = $1 }
          n[$1]++; mb[$1, n[$1]] = $2 / 1e6; items[$1, n[$1]] = $3
          if ($2 / 1e6 > top) top = $2 / 1e6 }
        END {
            split("#2b6cb0 #c05621", color, " ")
            print "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 600 260\" font-family=\"sans-serif\" font-size=\"12\">"
            print "<rect width=\"600\" height=\"260\" fill=\"#fff\"/><text x=\"8\" y=\"18\">resident memory, MB</text>"
            for (grid = 0; grid <= 4; grid++)
                printf "<path d=\"M50 %d H590\" stroke=\"#dfe3e8\"/><text x=\"44\" y=\"%d\" text-anchor=\"end\">%.0f</text>\n",
                    230 - 50 * grid, 234 - 50 * grid, top * grid / 4
            for (i = 1; i <= names; i++) {
                last = n[name[i]]
                printf "<path fill=\"none\" stroke=\"%s\" stroke-width=\"1.5\" d=\"", color[i]
                for (k = 1; k <= last; k += 1 + int(last / 500))
                    printf "%s%.1f %.1f", k == 1 ? "M" : "L", 50 + 540 * items[name[i], k] / items[name[i], last], 230 - 200 * mb[name[i], k] / top
                printf "\"/><text x=\"%d\" y=\"250\" fill=\"%s\">%s: 0 to %d</text>\n", 50 + 250 * (i - 1), color[i], name[i], items[name[i], last] }
            print "</svg>" }' "$1"
}

scale() {
    work=$(mktemp -d)
    captions 1200000 >"$work/captions.jsonl"
    echo "| | items | time | a second | MB after a tenth | after half | after nine tenths | at most | written | verified in |"
    echo "|---|---|---|---|---|---|---|---|---|---|"
    extraction captions --t5 "$work/captions.jsonl"
    "${PYTHON:-python3}" "$root/scripts/tesserae/draw" 100000 1 "$work/images"
    extraction images --vae "$work/images/scenes.jsonl" --img-size 128
    growth "$work/samples" >"$root/docs/studies/scale.svg"
    rm -r "$work"
}
