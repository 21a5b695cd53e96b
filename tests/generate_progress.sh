#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# `smalti generate`: who waits for long is told what is being done, how much of it, and how long it will take.
# shellcheck source=command.sh
. "$(dirname "$0")/command.sh"
cd "$work"

mkfifo pipe

# long WORDS OPTION...: a job too long to wait for, until a line on stderr, which is a pipe, matches.
long() {
    local words=$1 line found=
    shift
    "$SMALTI" generate --steps 1000 --size 512x512 "$@" <&0 2>pipe &
    while [ -z "$found" ] && read -r -t 300 line; do
        [[ $line =~ ^$words$ ]] && found=$line
    done <pipe
    kill -KILL $!
    wait $! || true
    [ -n "$found" ] || fail "$*: no line like $words, at last: ${line:-none}"
}

long '[0-9]+ %, denoising step [0-9]+ of 1000, [0-9:]+ ?s? left' -p 'a red star' -o one.png
long '0/3 images, [0-9]+ %, denoising step [0-9]+ of 1000, [0-9:]+ ?s? left' -p 'a red star' --images 3 -o many/
printf 'a red star\n%.0s' 1 2 3 |
    long '0 images, denoising step [0-9]+ of 1000' --prompts - -o unknown/

# Nothing of it with --quiet, nor from a job of a moment.
for option in --quiet --json; do
    expect 0 '' "$SMALTI" generate --steps 1 --size 32x32 -p 'a red star' "$option" -o short.png
    [ ! -s "$work/err" ] || fail "$option: $(cat "$work/err")"
done
