/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/** @file
 * Which Smalti this is. While the first number is 0, the second changes with the interface; a program that
 * was built against one version compares SMALTI_VERSION with smalti_version(). Safe on any thread.
 */

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

/** Of the headers. @{ */
#define SMALTI_VERSION_MAJOR 0
#define SMALTI_VERSION_MINOR 1
#define SMALTI_VERSION_PATCH 0
#define SMALTI_VERSION       "0.1.0"
/** @} */

/** Of the library, such as "0.1.0". Static storage. */
const char *smalti_version(void);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif
