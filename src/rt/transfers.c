/* SPDX-License-Identifier: Apache-2.0 */
#include "rt/transfers.h"

#include "rt/session.h"

#include <starpu.h>

const struct smalti_transfer *smalti_transfers(struct smalti_session *session, int *count)
{
	*count = starpu_bus_get_count();
	for (int link = 0; link < *count; link++) {
		struct smalti_transfer *transfer = &session->transfers[link];
		struct starpu_profiling_bus_info info; /* reading it resets it to 0 */
		starpu_bus_get_profiling_info(link, &info);
		transfer->from = starpu_bus_get_src(link);
		transfer->to = starpu_bus_get_dst(link);
		transfer->bytes += (int64_t)info.transferred_bytes;
		transfer->count += info.transfer_count;
	}
	return session->transfers;
}
