/* SPDX-License-Identifier: Apache-2.0 */
#include "graphs/deliver.h"
#include "codelets/codelets.h"
#include "ranks/ranks.h"

void smalti_deliver_to_all(struct smalti_task_group *task_group, struct smalti_tile *tile, int64_t count,
			   void *to)
{
	const int ranks = smalti_ranks_count(), place = task_group->place;
	for (int rank = 0; rank < ranks; rank++) {
		if (ranks > 1)
			smalti_task_group_place(task_group, rank);
		smalti_insert(deliver, task_group, (.x = tile), .count = count, .sink = smalti_copy_floats,
			      .user = to);
	}
	smalti_task_group_place(task_group, place);
}
