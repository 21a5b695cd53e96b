#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# `smalti report`: one page that stands alone, whatever the keys and logs say.
# shellcheck source=command.sh
. "$(dirname "$0")/command.sh"
cd "$work"

report() {
    timeout 60 "$SMALTI" report "$@"
}

# log NAME HOST BEGAN LAST: of a process that made ten items a second.
log() {
    {
        printf '{"run":1,"program":"smalti","host":"%s","pid":7,"began":%s,"policy":"lws",' "$2" "$3"
        printf '"workers":["CPU 0","<i>"],"options":{"o":"</pre><script>alert(1)</script>"}}\n'
        for t in 1 2 3; do
            printf '{"t":%d,"resident":%d,"items":%d,"captions":%d,"tokens":%d,"pictures":%d,"pixels":%d,' \
                $t $((t << 20)) $((t * 10)) $((t * 10)) $((t * 100)) $((t * 10)) $((t * 655360))
            printf '"failures":0,"rows":0,"bytes":0,"waiting":1,"computing":2,"finished":3,"text":%d,' $t
            printf '"decode":%d,"vae":%d,"write":%d,"busy":[%d,0]}\n' $t $t $t $t
        done
        printf '{"t":3,"lengths":[[3,10],[30,20]],"bins":[[256,256,30]]}\n%s' "$4"
    } >"features/runs/$1.jsonl"
}

"${SMALTI%/*}/tests/make_folder" features f16 prompt 4 3 1 <<'END'
a.png
</td><script>alert(1)</script>.png
c&d.png
END

# Before anything is logged, then with three processes: two at a time, one that was killed, one of another day.
rm -rf features/runs
expect 0 '' report features -o page.html
grep -qF 'no log of any process' page.html
mkdir features/runs
log a node-1 1700000000 '{"t":3,"end":"finished"}'
log b '<b>node' 1700000001.5 '{"t":3,"it'
log c node-1 1700086400 '{"t":3,"end":"stopped"}'
echo nonsense >features/runs/d.jsonl
printf '{"run":1,"host":"idle","pid":9,"began":1700200000,"workers":[]}\n{"t":1,"end":"finished"}\n' >features/runs/e.jsonl
echo hidden >features/runs/.e.jsonl
expect 0 '' report features
mv report.html page.html
[ -z "$(cat err out)" ] || fail "it says $(cat err out)"
for words in '>2023-11-14 22:13:20 UTC<' '2 processes' '1 process<' 'node-1:7' '&lt;b&gt;node:7' '>stopped<' \
    'Items per second' 'Tokens per second' 'Pixels per second' 'Memory' 'Queues' 'Stages' 'Workers' 'Caption lengths' \
    'Bins' '256×256' '&lt;i&gt;' '1 files in runs/' '1 lines of its log' '<td>picture</td>' 'a &lt;b&gt;test' \
    '<code>&lt;/td&gt;&lt;script&gt;alert(1)&lt;/script&gt;.png</code>' '&lt;/pre&gt;&lt;script&gt;'; do
    grep -qF -e "$words" page.html || fail "no $words"
done
grep -qF 'no end: killed, or still at work' page.html
[ "$(grep -c 'idle:9' page.html)" -eq 1 ] || fail "what did nothing has charts"

# Nothing of it is run or loaded, and tags match.
for words in '<script' 'http:' 'https:' 'src=' 'href=' 'url(' '@import' 'onload' '<td>nan' 'NaN' 'nan' 'inf'; do
    if grep -v 'http-equiv' page.html | grep -qF -e "$words"; then fail "there is $words"; fi
done
for tag in html body table tr td details summary svg figure p div code pre h2 h3; do
    [ "$(grep -o "<${tag}[ >]" page.html | wc -l)" -eq "$(grep -o "</${tag}>" page.html | wc -l)" ] || fail "tag $tag"
done
if /usr/bin/python3 -c 'import xml' 2>/dev/null; then
    /usr/bin/python3 - <<'END' || fail "SVG"
import re, xml.etree.ElementTree as tree
page = open('page.html', encoding='utf-8').read()
found = re.findall(r'<svg.*?</svg>', page, re.S)
assert len(found) >= 15, len(found)
for svg in found:
    tree.fromstring(svg)
END
fi
report features -o - | cmp - page.html

# What is wrong is said in one line; what was there stays.
mkdir empty
refuse 2 'name one folder' report
refuse 2 'name one folder' report a b
refuse 1 'empty: not a folder of features' report empty -o page.html
refuse 1 'missing: not a folder of features' report missing -o page.html
refuse 1 'cannot be created' report features -o missing/page.html
limited() {
    (
        ulimit -f 1
        exec "$@"
    )
}
refuse 1 'cannot be written' limited "$SMALTI" report features -o page.html
report features -o - | cmp - page.html
[[ "$(files .)" != *.part* ]] || fail "left $(files .)"
to_full_disk() {
    "$@" >/dev/full
}
expect 1 'No space left' to_full_disk "$SMALTI" report features -o -
