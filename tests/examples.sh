#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Every example of every help page, man page and page of docs runs: tests/examples.py.
# shellcheck source=command.sh
. "$(dirname "$0")/command.sh"
export STARPU_HOME=$work/starpu PYTHONDONTWRITEBYTECODE=1
mkdir "$work/starpu" "$work/examples"
python3 "$(dirname "$0")/examples.py" "$work/examples"
