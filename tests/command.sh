# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# What tests of the command share; they source it.
set -Eeuo pipefail
trap 'echo "FAILED: line $LINENO: $BASH_COMMAND" >&2' ERR

# shellcheck disable=SC2034 # of the scripts
tests=$(realpath "$(dirname "${BASH_SOURCE[0]}")")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

fail() {
    echo "FAILED: $*" >&2
    exit 1
}

# expect STATUS WORDS COMMAND...: the exit status, and words that stderr holds. Leaves $work/out and $work/err.
expect() {
    local wanted=$1 words=$2 status=0
    shift 2
    "$@" >"$work/out" 2>"$work/err" || status=$?
    [ "$status" -eq "$wanted" ] ||
        fail "${*:0:400}: status $status, expected $wanted: $(head -c 2000 "$work/err")"
    grep -qF -e "$words" "$work/err" || [ -z "$words" ] ||
        fail "${*:0:400}: no '$words' in: $(head -c 2000 "$work/err")"
}

# refuse STATUS WORDS COMMAND...: the same, and that line is all there is to read.
refuse() {
    expect "$@"
    [ "$(wc -l <"$work/err")" -eq 1 ] || fail "$*: not one line on stderr: $(head -c 2000 "$work/err")"
    [ ! -s "$work/out" ] || fail "$*: words on the standard output: $(head -c 2000 "$work/out")"
}

# await_words WORDS FILE: until the file holds them. Half an hour is for a program that never writes them.
await_words() {
    local tries
    for ((tries = 0; tries < 18000; tries++)); do
        ! grep -qsF -e "$1" "$2" || return 0
        sleep 0.1
    done
    fail "no '$1' in $2: $(head -c 2000 "$2")"
}

# files DIRECTORY: all in it, hidden ones too, on one line.
files() {
    (cd "$1" && find . -type f | sed 's,^\./,,' | sort | tr '\n' ' ' | sed 's/ $//')
}

# same DIRECTORY DIRECTORY: the same files with the same bytes.
same() {
    diff -r "$1" "$2" || fail "$1 and $2 differ"
}

# small_config HEADS DIM: the config.json of a transformer of two blocks that trains in seconds.
small_config() {
    cat <<JSON
{"_class_name": "PixArtTransformer2DModel", "activation_fn": "gelu-approximate", "attention_bias": true, "attention_head_dim": $2,
 "caption_channels": 128, "cross_attention_dim": $(($1 * $2)), "in_channels": 4, "interpolation_scale": 1, "norm_elementwise_affine": false,
 "norm_eps": 1e-06, "norm_type": "ada_norm_single", "num_attention_heads": $1, "num_layers": 2, "out_channels": 8, "patch_size": 2,
 "sample_size": 16, "use_additional_conditions": false}
JSON
}

# Whether the program was built with sanitizers. Not by a pipe into grep -q: who writes into it may be killed.
sanitized() {
    grep -qsaF __asan_init "$SMALTI" "$(dirname "$SMALTI")"/.libs/*smalti*
}
