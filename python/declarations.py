#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""declarations.py DIRECTORY: what Smalti's public headers in it declare, as cffi reads it: smalti/declarations.h is this of
include/smalti, and tests/python.sh compares them."""

from __future__ import annotations

import re
import sys
from pathlib import Path

# Those that the package calls, in the order in which they include each other.
HEADERS = ("version", "error", "session", "model", "generate", "vae", "features", "extract")


def declarations(directory: Path) -> str:
    text = "\n".join((directory / f"{name}.h").read_text(encoding="utf-8") for name in HEADERS)
    text = re.sub(r"/\*.*?\*/", " ", text, flags=re.DOTALL)
    constants = re.findall(r"^#define[ \t]+(\w+)[ \t]+(\d+)[ \t]*$", text, flags=re.MULTILINE)
    text = re.sub(r"^#(?:.*\\\n)*.*$", "", text, flags=re.MULTILINE)
    text = re.sub(r"\bSMALTI_(BEGIN|END)_DECLS\b", "", text)
    text = re.sub(r"\s+", " ", text).strip().replace("; ", ";\n")
    lines = [f"#define {name} {value}" for name, value in constants] + [text]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    sys.stdout.write(declarations(Path(sys.argv[1])))
