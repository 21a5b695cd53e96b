# SPDX-License-Identifier: Apache-2.0
"""parquet_to_jsonl.py DIRECTORY: what python/parquet_to_jsonl.py makes of rows, and, if pyarrow is there, of a file. The
exit status is 77 if it is not."""

import datetime
import io
import json
import os
import subprocess
import sys

source = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "python")
sys.path.insert(0, source)
import parquet_to_jsonl as tool  # noqa: E402

PNG, JPEG = b"\x89PNG and more", b"\xff\xd8\xff and more"
# A row, its line with a folder for pictures, and the picture's bytes.
CASES = (
    ({"url": "u", "caption": "d\u00e9j\u00e0 \"vu\"\n"}, {"url": "u", "caption": "d\u00e9j\u00e0 \"vu\"\n"}, None),
    ({"image": {"bytes": PNG, "path": "x/y.jpg"}, "text": "t"}, {"text": "t", "path": "000000001.png"}, PNG),
    ({"jpg": JPEG, "path": "old", "n": 3}, {"path": "000000002.jpg", "n": 3}, JPEG),
    ({"image": {"bytes": None, "path": "x/y.jpg"}}, {"image": "x/y.jpg"}, None),
    ({"hash": b"\0\1", "score": float("nan"), "ok": True, "none": None},
     {"hash": None, "score": None, "ok": True, "none": None}, None),
    ({"day": datetime.date(2026, 1, 2), "tags": ["a", b"b"], "more": {"f": float("inf"), "i": 1}},
     {"day": "2026-01-02", "tags": ["a", None], "more": {"f": None, "i": 1}}, None),
)


def expect(found, expected):
    assert found == expected, f"\nfound    {found}\nexpected {expected}"


def check_rows(folder):
    lines = io.StringIO()
    expect(tool.convert((row for row, _, _ in CASES), lines, folder), len(CASES))
    for line, (_, expected, data) in zip(lines.getvalue().splitlines(), CASES, strict=True):
        expect(json.loads(line), expected)
        if data:
            with open(os.path.join(folder, expected["path"]), "rb") as file:
                expect(file.read(), data)
    expect(tool.convert_row(CASES[1][0], 0, None), {"text": "t"})
    check_kept(folder)


def check_kept(folder):
    """No picture takes another one's place; the same conversion can be done again."""
    row, line, _ = CASES[1]
    expect(tool.convert_row(row, 1, folder), line)
    other = {"image": {"bytes": PNG + b"!"}}
    try:
        tool.convert_row(other, 1, folder)
        raise AssertionError("a picture was overwritten")
    except FileExistsError as cause:
        assert "000000001.png" in str(cause) and "--prefix" in str(cause), cause
    expect(tool.convert_row(other, 1, folder, "more-"), {"path": "more-000000001.png"})
    for name, data in (("000000001.png", PNG), ("more-000000001.png", PNG + b"!")):
        with open(os.path.join(folder, name), "rb") as file:
            expect(file.read(), data)
    parts = ["image.bytes", "image.path", "caption", "x.y"]
    tool.check_columns("a.parquet", ["image", "caption", "x.y"], parts, ["image.bytes", "x.y", "image"])
    for column in "nosuch", "caption.bytes", "image.nosuch", "x", "":
        try:
            tool.check_columns("a.parquet", ["image", "caption"], parts[:3], ["caption", column])
            raise AssertionError(f"a column that there is not was taken: {column}")
        except ValueError as cause:
            expect(str(cause), f"a.parquet: has no column {column}; there are image, caption")


def run(*arguments):
    return subprocess.run([sys.executable, os.path.join(source, "parquet_to_jsonl.py"), *arguments],
                          capture_output=True, text=True)


def check_files(folder):
    import pyarrow
    from pyarrow import parquet
    paths = [os.path.join(folder, name) for name in ("a.parquet", "b.parquet")]
    for number, path in enumerate(paths):
        rows = [{"caption": f"{number} {i}", "image": {"bytes": PNG, "path": None}} for i in range(300)]
        parquet.write_table(pyarrow.Table.from_pylist(rows), path, row_group_size=100)
    images = os.path.join(folder, "made", "pictures")
    done = run("--images", images, *paths)
    expect((done.returncode, done.stderr), (0, ""))
    expect([json.loads(line) for line in done.stdout.splitlines()],
           [{"caption": f"{i // 300} {i % 300}", "path": f"{i:09d}.png"} for i in range(600)])
    expect(len(os.listdir(images)), 600)
    expect(json.loads(run("--columns", "caption", paths[1]).stdout.splitlines()[5]), {"caption": "1 5"})
    expect(json.loads(run("--columns", "image.path", paths[1]).stdout.splitlines()[5]), {"image": {"path": None}})
    for columns in "caption,nosuch", "caption.bytes":
        unknown = run("--columns", columns, paths[1])
        expect((unknown.returncode, "there are caption, image" in unknown.stderr), (1, True))
    again = run("--images", images, paths[1])
    expect((again.returncode, again.stderr), (0, ""))
    beside = run("--images", images, "--prefix", "more/", paths[1])
    expect((beside.returncode, len(os.listdir(os.path.join(images, "more")))), (0, 300))
    with open(paths[0], "wb") as file:
        file.write(b"PAR1 nonsense")
    broken = run(paths[0])
    expect((broken.returncode, broken.stderr.count("\n")), (1, 1))


check_rows(sys.argv[1])
try:
    import pyarrow  # noqa: F401
except ImportError:
    missing = run("absent.parquet")
    assert missing.returncode == 1 and "pyarrow is needed" in missing.stderr, missing.stderr
    print("no pyarrow: files are not tested, rows are")
    sys.exit(77)
check_files(sys.argv[1])
