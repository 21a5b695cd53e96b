#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Where little is allowed, `smalti` does its work or says in one line why not: it does not hang, nor end with the
# words of a library. SMALTI_TEST_FULL=1 takes every step of the limits and every command.
# shellcheck source=command.sh
. "$(dirname "$0")/command.sh"
unset STARPU_HOME XDG_CACHE_HOME STARPU_PERF_MODEL_DIR
full=${SMALTI_TEST_FULL:-}
mkdir "$work/home" "$work/out.d"
chmod 755 "$work"
chmod 777 "$work/out.d"
export HOME=$work/home SMALTI_MODEL_DIR=$SMALTI_MODELS/tesserae
skipped=()

skip() {
    skipped+=("$1")
}

# The arguments of each command; taken by name.
# shellcheck disable=SC2034
{
    generate=(generate --prompt "a red star on a blue background" --size 64x64 --steps 1 -q --cpus 1 -o "$work/out.d/a.png")
    extract=(extract "$SMALTI_TESTDATA/extract/InternData/data_info.json" --img-size 256 -q --cpus 1 -o "$work/out.d/f")
    decode=(decode "$work/a.safetensors" -q --cpus 1 -o "$work/out.d/b.png")
    encode=(encode "$work/a.png" -q --cpus 1 -o "$work/out.d/b.safetensors")
    topology=(topology)
}
commands=(generate extract)
[ -z "$full" ] || commands=(generate extract decode encode topology)

# well WHAT COMMAND...: the command ends in time, with 0 or with one line and 1, 2 or 3.
well() {
    local what=$1 status=0
    shift
    timeout -k 1 900 "$@" >"$work/out" 2>"$work/err" || status=$?
    case $status in
    0 | 1 | 2 | 3) ;;
    127) grep -qF 'error while loading shared libraries' "$work/err" || fail "$what: $(cat "$work/err")" && return ;;
    *) fail "$what: status $status: $(head -c 2000 "$work/err")" ;;
    esac
    [ "$status" -eq 0 ] || [ "$(wc -l <"$work/err")" -eq 1 ] ||
        fail "$what: status $status and not one line: $(head -c 2000 "$work/err")"
    ! grep -qE '\[starpu\]|libstarpu|terminate called' "$work/err" || fail "$what: $(head -c 2000 "$work/err")"
    rm -rf "$work/out.d/"*
}

# works WHAT COMMAND...: the same, and with 0 and without a word.
works() {
    expect 0 '' timeout -k 1 900 "${@:2}"
    [ ! -s "$work/err" ] || fail "$1: words on stderr: $(head -c 2000 "$work/err")"
    rm -rf "$work/out.d/"*
}

# limited OPTION VALUE WHAT: every command under that ulimit.
limited() {
    local name
    for name in "${commands[@]}"; do
        local -n arguments=$name
        # shellcheck disable=SC2016 # expanded by the inner shell
        well "ulimit $1 $2 $name" sh -c 'ulimit "$1" "$2" && shift 2 && exec "$@"' sh "$1" "$2" "$SMALTI" \
            "${arguments[@]}"
    done
}

expect 0 '' "$SMALTI" generate --prompt "a red star" --size 64x64 --steps 1 --save-latents -o "$work/a.png" -q

# Memory. A sanitizer maps more than any limit, and is linked so that it can be told.
if sanitized; then
    skip "limits to memory: sanitizers need terabytes of addresses"
else
    steps=(100 200 450 900)
    [ -z "$full" ] || steps=(100 140 200 280 400 560 750 1000 1400 2000)
    for megabytes in "${steps[@]}"; do
        limited -v "${megabytes}000"
    done
    for megabytes in "${steps[@]:0:3}"; do
        limited -d "${megabytes}000"
    done
    # shellcheck disable=SC2016 # expanded by the inner shell
    works 'ulimit -v 900 MB' sh -c 'ulimit -v 900000 && exec "$@"' sh "$SMALTI" "${generate[@]}"
    for megabytes in 350 420; do
        # shellcheck disable=SC2016 # expanded by the inner shell
        well "ulimit -v $megabytes MB and a scratch directory" sh -c 'ulimit -v "$1" && shift && exec "$@"' sh \
            "${megabytes}000" "$SMALTI" "${generate[@]}" --size 768x768 --memory-limit 260M --scratch "$work/out.d"
    done
fi
for megabytes in 1 200; do
    well "STARPU_LIMIT_CPU_MEM=$megabytes" env STARPU_LIMIT_CPU_MEM=$megabytes "$SMALTI" "${generate[@]}"
done

# Descriptors and processors.
files=(1 4 8 16)
[ -z "$full" ] || files=({1..16})
for count in "${files[@]}"; do
    limited -n "$count"
done
cpu=$(taskset -cp $$ | sed 's/.*: *//; s/[-,].*//')
works 'one core' taskset -c "$cpu" "$SMALTI" generate --prompt "a red star" --size 64x64 --steps 1 -q -o "$work/out.d/a.png"
taskset -c "$cpu" "$SMALTI" generate --prompt "a red star" --size 64x64 --steps 1 -q -o "$work/out.d/a.png" \
    --cpus 2 2>"$work/err"
grep -qF '2 workers share 1 processor' "$work/err" || fail "2 workers on one core: $(cat "$work/err")"

# Homes.
for home in /none/such /proc relative ''; do
    works "HOME=$home" env HOME="$home" "$SMALTI" "${generate[@]}"
done
works 'no HOME' env -u HOME "$SMALTI" "${generate[@]}"
works 'no TMPDIR' env TMPDIR=/none/such "$SMALTI" "${generate[@]}"

if [ "$(id -u)" -ne 0 ] || ! unshare --mount true 2>/dev/null; then
    skip "full and read-only file systems: not root, or no mount namespaces"
else
    # Someone without a home of their own, and from copies that everybody may read.
    chmod 700 "$work/home"
    mkdir -m 755 "$work/copy"
    ldd "$SMALTI" | sed -n 's/.*=> \(.*\/libstarpu[^ ]*\) .*/\1/p' | xargs -r cp -Lt "$work/copy"
    cp -r "$SMALTI" "$SMALTI_MODEL_DIR" "$work/copy"
    chmod -R go=u-w "$work/copy"
    other=(env LD_LIBRARY_PATH="$work/copy" SMALTI_MODEL_DIR="$work/copy/tesserae" setpriv --reuid=65534 --regid=65534
        --clear-groups "$work/copy/smalti")
    if "${other[@]}" --version >/dev/null 2>&1; then
        for home in "$work/home" /root /none /usr; do
            works "another user, HOME=$home" env HOME="$home" "${other[@]}" "${generate[@]}"
        done
    else
        skip "another user: may not read the command or its libraries"
    fi
    # A home that is full, and later is not: what was left there does no harm.
    for size in 40k 64m; do
        # shellcheck disable=SC2016 # expanded by the inner shell
        works "a full home of $size" unshare --mount sh -c '
            mount -t tmpfs -o size='$size' tmpfs "$HOME" && { cat /dev/zero >"$HOME/filler" 2>/dev/null || true; } &&
            "$@" && mount -o remount,size=80m "$HOME" && "$@"' sh "$SMALTI" "${generate[@]}" --sched dmda
    done
    # shellcheck disable=SC2016 # expanded by the inner shell
    works 'no /sys' unshare --mount sh -c 'mount -t tmpfs tmpfs /sys && exec "$@"' sh "$SMALTI" "${generate[@]}"
    # Nothing can be written but the directory of the results.
    # shellcheck disable=SC2016 # expanded by the inner shell
    read_only=(unshare --mount sh -c 'mount -t tmpfs tmpfs "$1" && shift &&
        for directory in /dev/shm /run /var/tmp /tmp; do
            mount --bind $directory $directory && mount -o remount,bind,ro $directory || exit 77
        done && mount -o remount,bind,ro / && exec "$@"' sh "$work/out.d")
    if "${read_only[@]}" true 2>/dev/null; then
        well 'a read-only root' "${read_only[@]}" "$SMALTI" "${generate[@]}"
    else
        skip "a read-only root: it cannot be made"
    fi
fi

# A memory control group: it is the machine's size, and nobody is killed.
group=
for directory in /sys/fs/cgroup/memory /sys/fs/cgroup; do
    name=$directory/smalti-test-$$
    if [ -n "$group" ] || ! mkdir "$name" 2>/dev/null; then
        continue
    fi
    for limit in memory.limit_in_bytes memory.max; do
        if [ -w "$name/$limit" ] && echo $((300 << 20)) 2>/dev/null >"$name/$limit"; then
            group=$name
        fi
    done
    [ -n "$group" ] || rmdir "$name"
done
if [ -z "$group" ]; then
    skip "a memory control group: none can be made"
else
    trap 'rmdir "$group" 2>/dev/null; rm -rf "$work"' EXIT
    # shellcheck disable=SC2016 # expanded by the inner shell
    inside=(sh -c 'echo $$ >"$1/cgroup.procs" && shift && exec "$@"' sh "$group")
    works 'a control group' "${inside[@]}" "$SMALTI" "${generate[@]}"
    expect 0 '' "${inside[@]}" "$SMALTI" topology
    grep -qF '300 MiB allowed' "$work/out" || fail "the group's memory is not told: $(cat "$work/out")"
    expect 1 '300 MB are allowed' "${inside[@]}" "$SMALTI" generate --prompt x --size 4096x4096 --steps 1 -q \
        -o "$work/out.d/a.png"
    "$SMALTI" extract "$SMALTI_TESTDATA/extract/InternData/data_info.json" -k prompt --img-size 256 -q -o "$work/features"
    expect 1 'MB of memory, but 300 MB are allowed: give --recompute auto, ' "${inside[@]}" "$SMALTI" train "$work/features" \
        --batch 8 --micro 8 --steps 1 -q -o "$work/out.d/run"
    expect 1 'though every block is computed again, but 300 MB are allowed: give a smaller --micro' "${inside[@]}" "$SMALTI" \
        train "$work/features" --batch 64 --micro 64 --recompute block --steps 1 -q -o "$work/out.d/run"
fi

for reason in "${skipped[@]}"; do
    echo "skipped: $reason"
done
