/* SPDX-License-Identifier: Apache-2.0 */
#include "store/store.h"

/* floor(part × length / parts), without the product */
static int64_t cut(int64_t length, int64_t part, int64_t parts)
{
	const int64_t rest = length % parts;
	return length / parts * part + (int64_t)((__int128)rest * part / parts);
}

struct smalti_range smalti_range_part(const struct smalti_range *range, int64_t part, int64_t parts)
{
	const int64_t length = range->end - range->first;
	return (struct smalti_range){range->first + cut(length, part, parts),
				     range->first + cut(length, part + 1, parts)};
}
