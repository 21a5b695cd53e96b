/* SPDX-License-Identifier: Apache-2.0 */
#include "rt/transfers.h"

#include <starpu.h>

int smalti_transfers_take(struct smalti_transfer transfers[SMALTI_MOST_LINKS])
{
	int count = 0;
	for (int link = 0; link < starpu_bus_get_count() && count < SMALTI_MOST_LINKS; link++) {
		struct starpu_profiling_bus_info info; /* taking it sets it to 0 */
		starpu_bus_get_profiling_info(link, &info);
		if (info.transfer_count)
			transfers[count++] = (struct smalti_transfer){
			    .from = starpu_bus_get_src(link),
			    .to = starpu_bus_get_dst(link),
			    .bytes = (int64_t)info.transferred_bytes,
			    .count = info.transfer_count,
			};
	}
	return count;
}
