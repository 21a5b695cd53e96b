#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Usage: installed.sh PROGRAMS_DIRECTORY EXAMPLE.C, with CC, CXX, and smalti.pc in PKG_CONFIG_PATH.
# What `make installcheck` runs on the installed tree: each header stands alone in C and C++, the
# library exports nothing but its own names, the documented example links by smalti.pc alone and
# paints with the installed model, and so does the command.
set -euo pipefail

programs=$(realpath "$1")
example=$(realpath "$2")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
export STARPU_HOME=$work
unset SMALTI_MODEL_DIR

read -ra flags < <(pkg-config --cflags --libs smalti)
libraries=$(pkg-config --variable=libdir smalti)
for header in "$(pkg-config --variable=includedir smalti)"/smalti/*.h; do
    line="#include <smalti/${header##*/}>"
    $CC -std=c11 -Wall -Wextra -Wpedantic -Werror "${flags[@]}" -fsyntax-only -x c - <<<"$line"
    $CXX -std=c++11 -Wall -Wextra -Wpedantic -Werror "${flags[@]}" -fsyntax-only -x c++ - <<<"$line"
done

# Nothing is found where only the builder could read it.
for file in "$programs/smalti" "$programs/smalti-bench" "$libraries/libsmalti.so"; do
    outside=$(ldd "$file" | awk '$3 ~ /^\// { print $3 }' | xargs realpath |
        grep -vE "^(/usr)?/lib|^/usr/local/|^$(realpath "$libraries")/" || true)
    [ -z "$outside" ] || { echo "$file needs $outside" && exit 1; }
    # shellcheck disable=SC2016
    ! readelf -d "$file" | grep -E 'R(UN)?PATH' | grep -vE 'path: \[\$ORIGIN/[a-z0-9./_-]*\]' || exit 1
done

foreign=$(nm -D --defined-only "$libraries/libsmalti.so" | awk '$3 !~ /^smalti_/ { print $3 }')
[ -z "$foreign" ] || { echo "libsmalti.so exports $foreign" && exit 1; }

$CC -std=c11 -Wall -Wextra -Werror "$example" "${flags[@]}" -o example
prompt="a green heart on a black background"
LD_LIBRARY_PATH=$libraries ./example "$prompt" >example.ppm
[ "$(head -n 2 example.ppm | tail -n 1)" = "128 128" ]
[ "$(wc -c <example.ppm)" -eq $((15 + 128 * 128 * 3)) ]
! LD_LIBRARY_PATH=$libraries ./example "$prompt" >/dev/full 2>err || exit 1
grep -qF 'cannot be written' err
"$programs/smalti" generate --prompt "$prompt" -o command.png
[ -s command.png ]
"$programs/smalti-bench" generate --size 32x32 --steps 1 --repeats 1
[ -f "$(pkg-config --variable=prefix smalti)/share/smalti/slurm/extract.sbatch" ]

# Another user, who has no home and may not look into the builder's, with the tree moved elsewhere.
[ "$(id -u)" -eq 0 ] || { echo "not root: the command of another user is not tried" && exit 0; }
chmod 755 "$work"
cp -r "$(pkg-config --variable=prefix smalti)" everyone
chmod -R a+rX everyone
install -d -o 65534 images
as_another() {
    env -i PATH=/usr/bin:/bin HOME=/nonexistent setpriv --reuid=65534 --regid=65534 --clear-groups "$@"
}
moved=$work/everyone/$(realpath --relative-to="$(pkg-config --variable=prefix smalti)" "$programs")/smalti
as_another "$moved" generate --prompt "$prompt" --quiet -o images/other.png 2>words
[ ! -s words ] || { cat words && exit 1; }
cmp command.png images/other.png
