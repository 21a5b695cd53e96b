# SPDX-License-Identifier: Apache-2.0
"""The command `smalti` of the wheel."""

import os
import sys
from pathlib import Path


def main() -> None:
    program = str(Path(__file__).with_name("installed") / "bin/smalti")
    os.execv(program, [program, *sys.argv[1:]])
