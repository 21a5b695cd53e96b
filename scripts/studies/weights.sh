# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
# shellcheck disable=SC2154 # what scripts/study sets
# What the embedded model loses by weights, and inputs, of fewer bits.

weights() {
    SMALTI_LIBRARY=$(dirname "$SMALTI")/.libs/libsmalti.so.0 PYTHONPATH=$root/python "${PYTHON:-python3}" "$root/scripts/studies/weights.py" \
        "$SMALTI" 512
}
