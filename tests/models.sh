#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Model folders as other programs leave them: what can be used, and what to do about the rest.
# shellcheck source=command.sh
. "$(dirname "$0")/command.sh"
cd "$work"

generate() {
    "$SMALTI" generate -p 'a red star on a white background' --steps 2 --size 32x32 "$@"
}

# Of the embedded model, to be written to.
copy() {
    rm -rf model
    cp -r "$SMALTI_MODELS/tesserae" model
    chmod -R u+w model
}

# What transformers 5 saves: tokenizer.json alone.
copy
rm model/tokenizer/*
cp "$SMALTI_TESTDATA/tokenizer/tokenizer.json" model/tokenizer/
expect 0 '' generate --save-latents -o embedded.png
expect 0 '' generate --save-latents -o saved.png -m model
cmp embedded.safetensors saved.safetensors
rm model/tokenizer/*
refuse 1 'neither spiece.model nor tokenizer.json' generate -m model
