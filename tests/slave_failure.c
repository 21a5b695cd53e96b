/* SPDX-License-Identifier: Apache-2.0 */
/* Looks up a token that is there and one that is not, each in a task group of its own, and says what became
 * of them. For sessions whose only workers are slaves (tests/slaves.sh). */
#include "codelets/codelets.h"
#include "smalti/session.h"

static void look_up(struct smalti_session *session, int32_t id)
{
	static const float table[2] = {1, 2};
	struct smalti_error error = SMALTI_NO_ERROR;
	struct smalti_task_group *group = smalti_task_group_new(session, "lookup", 0, &error);
	if (!group) {
		puts(error.message);
		return;
	}
	struct smalti_tile *tiles[] = {smalti_tile_upload(group, 1, sizeof(id), &id),
				       smalti_tile_upload(group, 2, sizeof(table[0]), table),
				       smalti_tile_new(group, 1, sizeof(table[0]))};
	smalti_insert(embed_tokens, group, (.ids = tiles[0], .table = tiles[1], .y = tiles[2]), .tokens = 1,
		      .dim = 1, .vocabulary = 2, .columns = 1, .dtype = SMALTI_F32);
	for (size_t i = 0; i < COUNT_OF(tiles); i++)
		smalti_tile_release(tiles[i]);
	smalti_task_group_close(group, NULL, NULL);
	smalti_task_group_wait(group);
	puts(smalti_task_group_status(group, &error) < 0 ? error.message : "done");
	smalti_task_group_free(group);
}

int main(void)
{
	struct smalti_error error = SMALTI_NO_ERROR;
	struct smalti_session *session = smalti_session_open(NULL, &error);
	if (session) {
		look_up(session, 1);
		look_up(session, 2);
	}
	if (session && smalti_session_close(session, &error) == 0)
		return EXIT_SUCCESS;
	puts(error.message);
	return EXIT_FAILURE;
}
