#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# What `make installcheck` runs on the installed tree, with CC, CXX and the folder of smalti.pc in
# PKG_CONFIG_PATH: each header stands alone in C and C++, the library exports only its own names, a
# program that knows nothing but smalti.pc links and runs.
set -euo pipefail

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
read -ra cflags < <(pkg-config --cflags smalti)
read -ra libs < <(pkg-config --libs smalti)
includes=$(pkg-config --variable=includedir smalti)
libdir=$(pkg-config --variable=libdir smalti)

for header in "$includes"/smalti/*.h; do
    line="#include <smalti/${header##*/}>"
    echo "$line" | $CC -std=c11 -Wall -Wextra -Wpedantic -Werror "${cflags[@]}" -fsyntax-only -x c -
    echo "$line" | $CXX -std=c++11 -Wall -Wextra -Wpedantic -Werror "${cflags[@]}" -fsyntax-only -x c++ -
    echo "$line"
done >program.c

foreign=$(nm -D --defined-only "$libdir/libsmalti.so" | awk '$3 !~ /^smalti_/ { print $3 }')
[ -z "$foreign" ] || { echo "libsmalti.so exports $foreign" && exit 1; }

cat >>program.c <<'END'
int main(void)
{
	struct smalti_error error = SMALTI_NO_ERROR;
	return error.code;
}
END
$CC -std=c11 -Wall -Wextra -Werror "${cflags[@]}" program.c -o program -Wl,--no-as-needed "${libs[@]}"
LD_LIBRARY_PATH=$libdir ./program
