/* SPDX-License-Identifier: Apache-2.0 */
#include "smalti/version.h"

_Static_assert(sizeof(SMALTI_VERSION) == sizeof(PACKAGE_VERSION), "configure.ac has another version");

const char *smalti_version(void)
{
	return PACKAGE_VERSION;
}
