#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The order of directories as docs/architecture.md draws it: no file includes a header of a directory that is not in a
# line below its own, and no object of the build needs a symbol of such a directory.
# shellcheck source=command.sh
. "$(dirname "$0")/command.sh"
source=$(cd "$(dirname "$0")/.." && pwd)
cd "$(dirname "$SMALTI")"

# FILE WHAT: what is allowed all the same, behind the reason.
exceptions='
# Device kernels are given the structs of the operations, which are made of the rows of codelets.def.
src/kernels/device/arguments.h codelets/argument_structs.h
'

# The lines of the drawing, the lowest one last: "NUMBER DIRECTORY" each.
awk '/uses only those in the lines below/ { on = 1; next }
    on && /^    / { n++; for (i = 1; i <= NF; i++) print -n, $i; next }
    n { exit }' "$source/docs/architecture.md" >"$work/order"

# Every directory with sources is drawn once.
(
    cd "$source"
    find src codelets graphs include bench policies simulator -name '*.[ch]' | sed -E 's,^src/,,; s,/.*,,' | sort -u
) >"$work/there"
cut -d' ' -f2 "$work/order" | sort | diff - "$work/there" >"$work/out" || fail "drawn (<) and there (>): $(cat "$work/out")"

# includes: "FILE INCLUDED" for each line that includes a header of Smalti's.
includes() {
    cd "$source"
    grep -rE '^ *# *include ["<]' src codelets graphs include bench policies simulator |
        sed -nE 's,^([^:]*): *# *include ["<]([^">]*/[^">]*)[">].*,\1 \2,p'
}

# sources: "OBJECT SOURCE" for each object of the build that has a source here; others are left from older builds.
sources() {
    local object name file
    find src codelets graphs bench policies simulator -name '*.o' | sort | while read -r object; do
        name=${object##*/}
        name=${name%.o}
        file=${object%/*}
        file=${file%/.libs}/${name##*_la-}
        [ ! -e "$source/$file.c" ] || echo "$object $file.c"
        [ ! -e "$source/$file.cc" ] || echo "$object $file.cc"
    done
}

# symbols: "FILE SYMBOL OWNER" for each symbol that an object needs and another directory's has.
symbols() {
    sources >"$work/sources"
    cut -d' ' -f1 "$work/sources" | xargs nm -A -P 2>"$work/err" | sed 's/: / /' |
        awk 'NR == FNR { file[$1] = $2; next }
            $3 == "U" { needs[$2] = needs[$2] " " file[$1]; next }
            $3 ~ /[A-TV-Z]/ { owner[$2] = file[$1] }
            END {
                for (symbol in needs) {
                    count = split(needs[symbol], users, " ")
                    for (i = 1; i <= count && symbol in owner; i++) print users[i], symbol, owner[symbol]
                }
            }' "$work/sources" -
}

# judge: of lines "FILE WHAT [OWNER]" it prints those whose owner, WHAT itself unless named, is not below.
judge() {
    awk 'function directory(path, parts) {
            split(path, parts, "/")
            return parts[1] == "src" ? parts[2] : parts[1] == "smalti" ? "include" : parts[1]
        }
        NR == FNR { line[$2] = $1; next }
        {
            from = directory($1)
            to = directory(NF > 2 ? $3 : $2)
            if (from != to && to in line) { seen++; if (line[to] >= line[from]) print $1, $2 }
        }
        END { if (seen < 500) print "looked at", seen + 0 }' "$work/order" -
}

{
    includes | judge
    symbols | judge
} | sort -u >"$work/found"
grep -E '^[^#]' <<<"$exceptions" | sort | diff - "$work/found" >"$work/out" ||
    fail "not below (>), or an exception that is none (<): $(cat "$work/out")"
