/* SPDX-License-Identifier: Apache-2.0 */
/* struct NAME_arguments of codelets.def, for kernels: a bool there is a byte. */
typedef long smalti_offload_writer, smalti_offload_reader, smalti_row_source, smalti_row_sink,
    smalti_float_sink;
#define bool uchar
#include "kernels/update_rules.h"
#include "samplers/step.h"

#include "codelets/argument_structs.h"
#undef bool
