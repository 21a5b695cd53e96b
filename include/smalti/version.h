/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/** @file
 * Which Smalti this is. While the first number is 0, the second changes with the interface; a program that
 * was built against one version compares SMALTI_VERSION with smalti_version(). Safe on any thread.
 */

/* What public headers begin and end with: their functions are C's, and visible outside of the library. */
/* clang-format off */
#ifdef __cplusplus
#define SMALTI_BEGIN_DECLS _Pragma("GCC visibility push(default)") extern "C" {
#define SMALTI_END_DECLS   } _Pragma("GCC visibility pop")
#else
#define SMALTI_BEGIN_DECLS _Pragma("GCC visibility push(default)")
#define SMALTI_END_DECLS   _Pragma("GCC visibility pop")
#endif
/* clang-format on */

SMALTI_BEGIN_DECLS

/** Of the headers. @{ */
#define SMALTI_VERSION_MAJOR 0
#define SMALTI_VERSION_MINOR 1
#define SMALTI_VERSION_PATCH 0
#define SMALTI_VERSION       "0.1.0"
/** @} */

/** Of the library, such as "0.1.0". Static storage. */
const char *smalti_version(void);

SMALTI_END_DECLS
