/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/base.h"

enum { SMALTI_GGUF_NAME = 256 };

/* Writes the name that transformers has for a tensor of a T5 encoder: llama.cpp's names, and those of
 * stable-diffusion.cpp, which differ by a prefix. A name that is neither stays as it is. */
void smalti_gguf_t5_name(const char *name, char present[SMALTI_GGUF_NAME]);
