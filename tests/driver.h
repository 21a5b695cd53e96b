/* SPDX-License-Identifier: Apache-2.0
 *
 * The devices that a test asks for: SMALTI_TEST_DRIVER's (opencl, the default, or cuda). Those are PoCL's, or
 * CUDA's stand-ins, unless the environment says otherwise: processors, which have their own measurements. */
#pragma once

#include "base/base.h"
#include "smalti/session.h"

static inline bool test_cuda(void)
{
	const char *name = getenv("SMALTI_TEST_DRIVER");
	return name && strcmp(name, "cuda") == 0;
}

static inline void test_ask_for(struct smalti_session_options *options, int64_t devices)
{
	options->cuda = test_cuda() ? devices : 0;
	options->opencl = test_cuda() ? 0 : devices;
	setenv("POCL_DEVICES", "basic basic", 0);
	setenv("STARPU_OPENCL_ON_CPUS", "1", 0);
	setenv("STARPU_WORKERS_NOBIND", "1", 0);
	setenv("STARPU_HOSTNAME", "devices", 0);
}

/* Drivers allocate through C++'s library. AddressSanitizer does not see who called it, so that suppressions
 * by the driver's name (lsan.supp) do not work. Weak: one program has several such tests. */
const char *__lsan_default_suppressions(void);
__attribute__((weak)) const char *__lsan_default_suppressions(void)
{
	return "leak:libstdc++\n";
}
