#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Parquet files as JSON Lines, a line per row, which smalti extract reads:

    python3 parquet_to_jsonl.py --images pictures data/*.parquet > data.jsonl
    smalti extract data.jsonl --images pictures -o features

The first picture of a row (bytes, or an object of "bytes" and "path" as data sets of Hugging Face have it) is written
to a file in the folder of --images, and "path" names it; without --images it is left out. No file is overwritten: one
that is there has to hold the same picture. Another table's pictures may go to the same folder under other names:

    python3 parquet_to_jsonl.py --images pictures --prefix more- more/*.parquet > more.jsonl

Values that JSON does not have are texts, or null. Some rows are in memory at a time. Needs pyarrow.
"""

import argparse
import json
import math
import os
import sys

BATCH_ROWS = 256
# What pictures' files begin with, whatever they were called.
EXTENSIONS = ((b"\xff\xd8\xff", ".jpg"), (b"\x89PNG", ".png"), (b"RIFF", ".webp"), (b"GIF8", ".gif"),
              (b"II*\0", ".tif"), (b"MM\0*", ".tif"))


def extension(data):
    return next((ending for start, ending in EXTENSIONS if data.startswith(start)), None)


def picture(value):
    """The bytes of a picture, or None if the value is none."""
    if isinstance(value, dict):
        value = value.get("bytes")
    return value if isinstance(value, bytes) and extension(value) else None


def plain(value):
    """The value as JSON has it; bytes are null. A picture that is not in the table is its path."""
    if isinstance(value, dict):
        return value["path"] if set(value) == {"bytes", "path"} else {key: plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    if isinstance(value, bytes) or (isinstance(value, float) and not math.isfinite(value)):
        return None
    return value if value is None or isinstance(value, (str, int, float)) else str(value)


def keep(path, data):
    """Puts the picture there, whole or not at all."""
    if os.path.exists(path):
        with open(path, "rb") as file:
            if file.read() != data:
                raise FileExistsError(f"{path}: another picture is there: name another folder, or a --prefix")
        return
    part = path + ".part"
    with open(part, "wb") as file:
        file.write(data)
    os.rename(part, path)


def convert_row(row, number, images, prefix=""):
    """The object of a row; its first picture goes to the folder `images`, if that is not None."""
    item = {name: plain(value) for name, value in row.items() if picture(value) is None}
    data = next((data for data in map(picture, row.values()) if data is not None), None)
    if images is not None and data is not None:
        item["path"] = f"{prefix}{number:09d}{extension(data)}"
        keep(os.path.join(images, item["path"]), data)
    return item


def convert(rows, output, images, prefix=""):
    """Rows, as objects, to lines; returns how many."""
    count = 0
    for row in rows:
        json.dump(convert_row(row, count, images, prefix), output, ensure_ascii=False, separators=(",", ":"))
        output.write("\n")
        count += 1
    return count


def check_columns(path, names, parts, columns):
    """A dot leads to a part of a column; `parts` are those that have none themselves."""
    for column in columns or ():
        if not any(part == column or part.startswith(column + ".") for part in parts):
            raise ValueError(f"{path}: has no column {column}; there are {', '.join(names)}")


def read_rows(paths, columns):
    from pyarrow import parquet
    for path in paths:
        with parquet.ParquetFile(path) as file:
            parts = [file.schema.column(number).path for number in range(len(file.schema))]
            check_columns(path, file.schema_arrow.names, parts, columns)
            for batch in file.iter_batches(BATCH_ROWS, columns=columns):
                yield from batch.to_pylist()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parquet", nargs="+", help="files, in this order")
    parser.add_argument("--images", metavar="DIR", help="folder for pictures, made if need be; smalti extract "
                        "takes the same option")
    parser.add_argument("--prefix", metavar="TEXT", default="", help="what pictures' names begin with, so that several "
                        "tables' pictures can be in one folder")
    parser.add_argument("--columns", metavar="NAME,...", help="these columns only")
    options = parser.parse_args()
    if options.images:
        os.makedirs(os.path.dirname(os.path.join(options.images, options.prefix)), exist_ok=True)
    sys.stdout.reconfigure(encoding="utf-8")
    columns = options.columns.split(",") if options.columns else None
    try:
        convert(read_rows(options.parquet, columns), sys.stdout, options.images, options.prefix)
    except ImportError:
        sys.exit("parquet_to_jsonl.py: pyarrow is needed: python3 -m pip install pyarrow")
    except (OSError, ValueError) as cause:
        sys.exit(f"parquet_to_jsonl.py: {cause}")


if __name__ == "__main__":
    main()
