#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# `smalti export`: what it writes is read back by NumPy and Python's own readers of tar and zip as PixArt's loader
# and webdataset would; names that lead astray, full disks, signals and kills.
# shellcheck source=command.sh
. "$(dirname "$0")/command.sh"
cd "$work"
make_directory=${SMALTI%/*}/tests/make_directory
python=/usr/bin/python3

export_features() {
    timeout 900 "$SMALTI" export "$@"
}

# says WORDS: on stderr of the last command.
says() {
    grep -qF -e "$1" err || fail "no '$1' in: $(cat err)"
}

# features DIRECTORY DTYPE CAPTIONS LATENT_HEIGHT SHARD_ITEMS FAILED <KEYS
features() {
    "$make_directory" "$@"
}

printf '%s\n' 000.png a/000.png b/000.png b/c/a.b.jpg d.jpeg 'odd <key> é.webp' x.png.d/e.JPG 000000007 \
    ../up.png /.//./e.png >keys
features f16 f16 prompt,sharegpt4v 4 3 2 <keys
features f32 f32 long_prompt_ 0 100 -1 <keys
features bf16 bf16 '' 5 4 1 <keys

# What Python reads. Its formulas are those of features_directory.h, its names those of PixArt's loader.
cat >reader.py <<'END'
import io, json, os, re, struct, sys, tarfile, zipfile
import numpy as np

def values(start, modulus, shape):
    count = int(np.prod(shape))
    return ((start + np.arange(count)) % modulus / 4 - 7).astype(np.float32).reshape(shape)

def text(index, caption):
    tokens = 1 + (7 * index + caption) % 20
    return values(index + caption, 61, (tokens, 24))

def image(index, height):
    return values(index, 59, (8, height + index % 3, 3))

def saved(array):
    stream = io.BytesIO()
    np.save(stream, array)
    return stream.getvalue()

def loader_name(path, extension):
    name = '_'.join(path.rsplit('/', 1))
    for old in ('.png', '.jpg', '.webp', '.jpeg', '.JPEG', '.JPG'):
        name = name.replace(old, extension)
    return name

def pixart(root, keys, failed, captions, height):
    expected = {'.smalti-export.json'}
    for index, key in enumerate(keys):
        if index == failed or key.startswith('/'):
            continue
        for caption, directory in enumerate(captions):
            path = os.path.join(directory, loader_name(key, '.npz'))
            expected.add(os.path.normpath(path))
            found = np.load(os.path.join(root, path))
            value = text(index, caption)
            feature = np.zeros((1, 20, 24), np.float16)
            feature[0, :len(value)] = value
            mask = np.zeros((1, 20), np.int16)
            mask[0, :len(value)] = 1
            assert sorted(found.keys()) == ['attention_mask', 'caption_feature'], path
            for name, array in (('caption_feature', feature), ('attention_mask', mask)):
                assert found[name].dtype == array.dtype and np.array_equal(found[name], array), path
                assert zipfile.ZipFile(os.path.join(root, path)).read(name + '.npy') == saved(array), path
            assert zipfile.ZipFile(os.path.join(root, path)).testzip() is None
        if height:
            path = os.path.join('img_sdxl_vae_features_256resolution_ms_new', loader_name(key, '.npy'))
            expected.add(os.path.normpath(path))
            with open(os.path.join(root, path), 'rb') as file:
                assert file.read() == saved(image(index, height)), path
            assert np.load(os.path.join(root, path)).dtype == np.float32
    there = {os.path.relpath(os.path.join(directory, name), root)
             for directory, _, names in os.walk(root) for name in names}
    assert there == expected, there ^ expected

def items(keys, failed):
    return [(index, key) for index, key in enumerate(keys) if index != failed]

def check_item(item, index, key, captions, height):
    assert item['index'] == index and item['key'] == key, item
    for number, caption in enumerate(captions):
        assert item['captions'][caption]['ids'] == list(range(3, 3 + len(text(index, number)))), item
        assert item['captions'][caption]['tokens'] == len(text(index, number)), item
    if height:
        size = item['picture']
        assert (size['height'], size['width'], size['ratio']) == (8 * (height + index % 3), 80, 0.25), size

def webdataset(root, keys, failed, captions, height, dtype):
    left = items(keys, failed)
    for shard in sorted(name for name in os.listdir(root) if name.endswith('.tar')):
        groups = []
        for member in tarfile.open(os.path.join(root, shard)):
            base, extension = re.match(r'^((?:.*/|)[^.]+)[.]([^/]*)$', member.name).groups()
            data = tarfile.open(os.path.join(root, shard)).extractfile(member).read()
            if not groups or groups[-1][0] != base:
                groups.append((base, {}))
            groups[-1][1][extension] = data
        assert groups
        for base, members in groups:
            index, key = left.pop(0)
            assert int(base) == index
            item = json.loads(members.pop('json'))
            check_item(item, index, key, captions, height)
            for number, caption in enumerate(captions):
                name = item['captions'][caption]['features']
                array = text(index, number).astype(dtype)
                assert members.pop(name) == saved(array), name
            if height:
                name = item['picture']['features']
                assert members.pop(name) == saved(image(index, height).astype(dtype)), name
            assert not members
    assert not left, left

def safetensors(root, keys, failed, captions, height, dtype):
    left = items(keys, failed)
    for shard in sorted(name for name in os.listdir(root) if name.endswith('.safetensors')):
        data = open(os.path.join(root, shard), 'rb').read()
        length, = struct.unpack('<Q', data[:8])
        header, body = json.loads(data[8:8 + length]), data[8 + length:]
        def tensor(name):
            entry = header.pop(name)
            begin, end = entry['data_offsets']
            assert entry['dtype'] == dtype
            if dtype == 'BF16':
                wide = np.frombuffer(body[begin:end], '<u2').astype('<u4') << 16
                return wide.view('<f4').reshape(entry['shape'])
            return np.frombuffer(body[begin:end], '<f2' if dtype == 'F16' else '<f4').reshape(entry['shape'])
        with open(os.path.join(root, shard.replace('.safetensors', '.jsonl'))) as lines:
            for line in lines:
                index, key = left.pop(0)
                item = json.loads(line)
                check_item(item, index, key, captions, height)
                for number, caption in enumerate(captions):
                    name = 't5/%s/%s' % (caption, key)
                    assert item['captions'][caption]['features'] == name
                    assert np.array_equal(tensor(name), text(index, number)), name
                if height:
                    assert np.array_equal(tensor('vae/' + key), image(index, height)), key
        assert not header
    assert not left, left

keys = open('keys').read().splitlines()
both = ['prompt', 'sharegpt4v']
directories = ['caption_features_new', 'sharegpt4v_caption_features_new']
eval(sys.argv[1])
END
reads() {
    $python reader.py "$1" || fail "$1"
}
$python -c 'import numpy' 2>/dev/null || exit 77

# All formats of all types, and what is said.
expect 3 "item '/.//./e.png': its features would lie outside" export_features f16 -f pixart -o pixart-f16
says '10 items in'
says '24 files written, 1 without features, 1 failed: pixart-f16'
reads "pixart('pixart-f16', keys, 2, directories, 4)"
expect 3 '' export_features f32 -f pixart -o pixart-f32 -q
reads "pixart('pixart-f32', keys, -1, ['long__caption_features_new'], 0)"
expect 3 '' export_features bf16 -f pixart -o pixart-bf16 --json
[ "$(wc -l <out)" -eq 2 ] || fail "$(cat out)"
grep -qF '"status":"failed"' out
grep -qF '"complete":true' out
reads "pixart('pixart-bf16', keys, 1, [], 5)"
for size in 1 2000 1G; do
    expect 0 '' export_features f16 -f webdataset --shard-bytes $size -o tar-f16-$size
    reads "webdataset('tar-f16-$size', keys, 2, both, 4, '<f2')"
    expect 0 '' export_features bf16 -f webdataset --shard-bytes $size -o tar-bf16-$size
    reads "webdataset('tar-bf16-$size', keys, 1, [], 5, '<f4')"
    expect 0 '' export_features f16 -f safetensors --shard-bytes $size -o st-f16-$size
    reads "safetensors('st-f16-$size', keys, 2, both, 4, 'F16')"
    expect 0 '' export_features bf16 -f safetensors --shard-bytes $size -o st-bf16-$size
    reads "safetensors('st-bf16-$size', keys, 1, [], 5, 'BF16')"
done
expect 0 '' export_features f32 -f safetensors -o st-f32 --json
grep -qF '"items":10,"before":0,"total":10,"failed":0,"empty":0,"files":2,"complete":true' out || fail "$(cat out)"
reads "safetensors('st-f32', keys, -1, ['long_prompt_'], 0, 'F32')"
[ "$(files st-f16-1 | wc -w)" -eq 19 ] || fail "not a shard per item: $(files st-f16-1)"
[ "$(files tar-f16-1G)" = ".smalti-export.json features-000000.tar" ] || fail "$(files tar-f16-1G)"

# A second time there is nothing to do, nothing else goes there, and nothing changes.
cp -r tar-f16-2000 before
expect 0 '10 items, complete before' export_features f16 -f webdataset --shard-bytes 2000 -o tar-f16-2000
refuse 2 'an export in another format' export_features f16 -f safetensors --shard-bytes 2000 -o tar-f16-2000
refuse 2 'in files of another size' export_features f16 -f webdataset -o tar-f16-2000
refuse 2 'of other features' export_features f32 -f webdataset --shard-bytes 2000 -o tar-f16-2000
same before tar-f16-2000
expect 0 '10 items in' export_features f16 -f webdataset --shard-bytes 2000 -o tar-f16-2000 --restart
same before tar-f16-2000

# Two items of one name: told before anything is there.
printf '%s\n' p/q.png r.png p/q.jpg >collide.keys
features colliding f16 prompt 0 2 -1 <collide.keys
refuse 2 "items 'p/q.png' and 'p/q.jpg' would both be p_q.npy" export_features colliding -f pixart -o nothing
[ ! -e nothing ] || fail "there is $(files nothing)"
expect 0 '' export_features colliding -f webdataset -o colliding-tar
printf '%s\n' a.png ./a.png >collide.keys
features the-same f16 prompt 0 2 -1 <collide.keys
expect 0 '' export_features the-same -f pixart -o the-same-pixart # a.npy and ._a.npy
printf '%s\n' a/b/c.png a//b/c.png >collide.keys
features shorter f16 prompt 0 2 -1 <collide.keys
refuse 2 "items 'a/b/c.png' and 'a//b/c.png' would both be" export_features shorter -f pixart -o nothing

# Keys that lead out of the directory, are too long, or have a file where others have a directory.
{
    printf '%s\n' ../../out.png /out.png /tmp/../out.png ok.png ok/../../../out.png .. ../.. . / a a/b/c.png
    printf '%0300d.png\n' 0
} >astray.keys
features astray f16 prompt 4 100 -1 <astray.keys
mkdir -p deep/er
expect 3 "item '../../out.png': its features would lie outside" export_features astray -f pixart -o deep/er/out
[ "$(files deep/er/out/caption_features_new)" = ".._.. _ _out.npz a ok.npz" ] || fail "astray: $(files deep)"
[ "$(files deep | wc -w)" -eq 11 ] || fail "astray: $(files deep)"
says "item 'a/b/c.png'"
says 'is a file, but has to be a directory'
says 'longer than 255 bytes'
expect 0 '' export_features astray -f safetensors -o astray-st
expect 0 '' export_features astray -f webdataset -o astray-tar

# What is wrong with the command or its directories.
mkdir empty
refuse 2 'no format' export_features f16 -o x
refuse 2 'give -o' export_features f16 -f pixart
refuse 2 'name one directory' export_features -f pixart -o x
refuse 2 'name one directory' export_features f16 f32 -f pixart -o x
refuse 2 'no meaning for pixart' export_features f16 -f pixart --shard-bytes 1M -o x
refuse 2 'pixart, safetensors, webdataset' export_features f16 -f npz -o x
refuse 2 'is the directory of features itself' export_features f16 -f pixart -o ./f16/
refuse 1 'missing' export_features missing -f pixart -o x
refuse 1 'empty' export_features empty -f pixart -o x
refuse 1 'keys' export_features keys -f pixart -o x
refuse 1 'keys' export_features f16 -f pixart -o keys/x
refuse 1 'keys' export_features f16 -f webdataset -o keys
[ ! -e x ] || fail "made x"
echo '{"format": "pixart"' >"st-f32/.smalti-export.json"
refuse 1 'st-f32/.smalti-export.json' export_features f32 -f safetensors -o st-f32
expect 0 '' export_features f32 -f safetensors -o st-f32 --restart
expect 0 '' "$SMALTI" export --help
grep -qF 'smalti export features' out

# A damaged row is left out and named.
cp -r f32 damaged
shard=$(ls damaged/*.h5)
$python - "$shard" <<'END'
import sys, numpy as np
data = bytearray(open(sys.argv[1], 'rb').read())
value = ((1 + np.arange(24)) % 61 / 4 - 7).astype('<f4').tobytes() # of item 1
data[data.index(value) + 2] ^= 1
open(sys.argv[1], 'wb').write(data)
END
for format in safetensors webdataset pixart; do
    expect 3 "$shard" export_features damaged -f $format -o damaged-$format
done
expect 3 '' export_features damaged -f safetensors -o damaged-safetensors
reads "safetensors('damaged-safetensors', keys, 1, ['long_prompt_'], 0, 'F32')"

# Full disks, and files that cannot grow: one line, no half file; then it goes on.
seq -f 'item-%05g.png' 0 399 >keys
features many f16 prompt 4 100 -1 <keys
for format in pixart safetensors webdataset; do
    shards=()
    [ $format = pixart ] || shards=(--shard-bytes 20000)
    expect 0 '400 items' export_features many -f $format "${shards[@]}" -o whole-$format
    limited() {
        (
            ulimit -f 1
            exec "$@"
        )
    }
    [ $format = pixart ] ||
        refuse 1 'File too large' limited "$SMALTI" export many -f $format "${shards[@]}" -o part-$format -q
    # Killed again and again, each time later; stopped; then to the end.
    for seconds in 0.01 0.02 0.03 0.04 0.05 0.06 0.08 0.1; do
        "$SMALTI" export many -f $format "${shards[@]}" -o part-$format -q &
        sleep $seconds
        kill -KILL $! 2>/dev/null || true
        wait $! 2>/dev/null || true
    done
    "$SMALTI" export many -f $format "${shards[@]}" -o part-$format 2>err &
    sleep 0.05
    kill -INT $! 2>/dev/null || true
    wait $! || grep -qF 'stopped by SIGINT' err || fail "$(cat err)"
    expect 0 '400 items' export_features many -f $format "${shards[@]}" -o part-$format
    same whole-$format part-$format
    # Killed between its last file and the end.
    : >part-$format/.lock
    expect 0 '' export_features many -f $format "${shards[@]}" -o part-$format
    same whole-$format part-$format
done
to_full_disk() {
    "$@" >/dev/full
}
expect 1 'No space left' to_full_disk "$SMALTI" export many -f webdataset -o full --json -q
