/* SPDX-License-Identifier: Apache-2.0 */
#include "graphs/layers/tape.h"
#include "codelets/codelets.h"

static struct smalti_variable *variable_of(const struct smalti_tape *tape, struct smalti_value value)
{
	return &tape->variables[value.number - 1];
}

/* Returns where a value's gradient at a part is. */
static struct smalti_tile **gradient_at(const struct smalti_tape *tape, struct smalti_value value, int part)
{
	return &tape->gradients[(value.number - 1) * tape->parts + part];
}

static void release_variable(struct smalti_tape *tape, int64_t i)
{
	struct smalti_variable *v = &tape->variables[i];
	smalti_tile_release(v->tile);
	v->tile = NULL;
	for (int part = 0; part < tape->parts; part++) {
		struct smalti_tile **gradient = &tape->gradients[i * tape->parts + part];
		if (!v->lent)
			smalti_tile_release(*gradient);
		*gradient = NULL;
	}
	v->lent = false;
}

void smalti_tape_free(struct smalti_tape *tape)
{
	for (int64_t i = 0; i < tape->variable_count; i++)
		release_variable(tape, i);
	for (int64_t i = 0; i < tape->count; i++)
		free(tape->list[i].keys);
	for (int part = 0; tape->barrier && part < tape->parts; part++)
		smalti_tile_release(tape->barrier[part]);
	free(tape->barrier);
	free(tape->variables);
	free(tape->gradients);
	free(tape->list);
	free(tape->written);
	*tape = (struct smalti_tape){.records = false};
}

void smalti_tape_go(struct smalti_tape *tape, int part)
{
	tape->part = part;
	smalti_task_group_place(tape->task_group, tape->place[part]);
	smalti_task_group_behind(tape->task_group, tape->barrier ? tape->barrier[part] : NULL);
}

/* Makes the list of barriers; false, with the task group broken, without memory. */
static bool has_barriers(struct smalti_tape *tape)
{
	if (!tape->barrier)
		tape->barrier =
		    smalti_task_group_calloc(tape->task_group, tape->parts, sizeof(struct smalti_tile *));
	return tape->barrier;
}

void smalti_tape_barrier(struct smalti_tape *tape)
{
	struct smalti_task_group *task_group = tape->task_group;
	const int here = tape->part;
	if (!tape->bounded || !has_barriers(tape))
		return;
	for (int part = 0; part < tape->parts; part++) {
		smalti_tape_go(tape, part);
		smalti_task_group_behind(task_group, NULL);
		if (!tape->barrier[part])
			tape->barrier[part] = smalti_tile_new(task_group, 1, sizeof(float));
		smalti_insert(clear, task_group, (.y = tape->barrier[part]), .bytes = sizeof(float));
	}
	smalti_tape_go(tape, here);
}

/* Forward */

/* Makes room for one more element of a list of `count`; false, with the task group broken, without memory. */
static bool grow(const struct smalti_tape *tape, void *list, int64_t count, int64_t bytes)
{
	struct smalti_error error = SMALTI_NO_ERROR;
	if (smalti_grow(list, count, bytes, &error) == 0)
		return true;
	smalti_task_group_break(tape->task_group, &error);
	return false;
}

/* Returns the number of a new variable; 0, with the task group broken, without memory. */
static int64_t add_variable(struct smalti_tape *tape, int64_t count)
{
	const int64_t i = tape->variable_count, each = tape->parts * (int64_t)sizeof(struct smalti_tile *);
	if (!grow(tape, &tape->gradients, i, each) ||
	    !grow(tape, &tape->variables, i, sizeof(*tape->variables)))
		return 0;
	memset(tape->gradients + i * tape->parts, 0, (size_t)each);
	tape->variables[i] =
	    (struct smalti_variable){.count = count, .part = tape->part, .record = -1, .held = true};
	return ++tape->variable_count;
}

struct smalti_value smalti_value_declare(struct smalti_tape *tape, int64_t rows, int64_t columns,
					 enum smalti_dtype dtype)
{
	const int64_t number = tape->records ? add_variable(tape, rows * columns) : 0;
	return (struct smalti_value){NULL, rows, columns, dtype, number};
}

/* Sets a value's tile. */
static void give_tile(const struct smalti_tape *tape, struct smalti_value *value, struct smalti_tile *tile)
{
	value->tile = tile;
	if (value->number > 0)
		variable_of(tape, *value)->tile = tile;
}

static struct smalti_tile *new_tile(const struct smalti_tape *tape, const struct smalti_value *value)
{
	return smalti_tile_new(tape->task_group, value->rows,
			       value->columns * smalti_dtype_bytes(value->dtype));
}

struct smalti_value smalti_value_new(struct smalti_tape *tape, int64_t rows, int64_t columns,
				     enum smalti_dtype dtype)
{
	struct smalti_value value = smalti_value_declare(tape, rows, columns, dtype);
	give_tile(tape, &value, new_tile(tape, &value));
	return value;
}

void smalti_value_set_constant(struct smalti_tape *tape, struct smalti_value value, bool constant)
{
	if (value.number > 0)
		variable_of(tape, value)->constant = constant;
}

static bool can_make_again(const struct smalti_tape *tape, const struct smalti_variable *v)
{
	return v->record >= 0 && tape->list[v->record].layer->again;
}

void smalti_value_release(struct smalti_tape *tape, struct smalti_value *value)
{
	if (value->number == 0) {
		smalti_tile_release(value->tile);
	} else {
		struct smalti_variable *v = variable_of(tape, *value);
		v->held = false;
		if (!tape->keeps_all && (!v->read || can_make_again(tape, v))) {
			smalti_tile_release(v->tile);
			v->tile = NULL;
		}
	}
	*value = (struct smalti_value){.tile = NULL};
}

/* Returns the place of a new record; NULL, with the task group broken, without memory. */
static struct smalti_record *add_record(struct smalti_tape *tape, const struct smalti_record *record)
{
	if (!grow(tape, &tape->list, tape->count, sizeof(*tape->list))) {
		free(record->keys);
		return NULL;
	}
	struct smalti_record *added = &tape->list[tape->count++];
	*added = *record;
	added->part = tape->part;
	return added;
}

static bool is_constant(const struct smalti_tape *tape, struct smalti_value value)
{
	return value.number == 0 || variable_of(tape, value)->constant;
}

static bool is_trained(struct smalti_weight *weight)
{
	bool trained = false;
	for (int i = 0; weight && smalti_weight_part(weight, i); i++)
		trained |= smalti_weight_parameter(weight, i) >= 0;
	return trained;
}

/* Tells whether a record's result depends on nothing that is trained, and on no value that has a gradient. */
static bool makes_constant(const struct smalti_tape *tape, const struct smalti_record *r)
{
	bool constant = is_constant(tape, r->x) && is_constant(tape, r->added) &&
			is_constant(tape, r->modulation) && !is_trained(r->table);
	for (int64_t i = 0; r->keys && i < r->count; i++)
		constant &= is_constant(tape, r->keys[i]);
	return constant && !(r->linear && (is_trained(r->linear->weight) || is_trained(r->linear->bias)));
}

void smalti_tape_record(struct smalti_tape *tape, const struct smalti_record *record)
{
	if (!tape->records || !add_record(tape, record) || record->y.number == 0)
		return;
	struct smalti_variable *y = variable_of(tape, record->y);
	y->constant = (y->constant || !record->adds) && makes_constant(tape, record);
	if (!record->adds)
		y->record = tape->count - 1;
}

struct smalti_value smalti_tape_make(struct smalti_tape *tape, struct smalti_record *record)
{
	record->y = smalti_value_new(tape, record->y.rows, record->y.columns, record->y.dtype);
	record->layer->again(tape, record, record->y.tile);
	smalti_tape_record(tape, record);
	return record->y;
}

void smalti_tape_reads(struct smalti_tape *tape, struct smalti_value value)
{
	if (value.number > 0)
		variable_of(tape, value)->read = true;
}

/* Tasks: the backward meets their ends first. */

static void end_task(struct smalti_tape *tape, const struct smalti_record *record)
{
	(void)record;
	smalti_fuse_end(tape->task_group);
	smalti_task_group_at(tape->task_group, -1, -1);
}

static void begin_task(struct smalti_tape *tape, const struct smalti_record *record)
{
	smalti_task_group_at(tape->task_group, record->at.layer, record->at.band);
	smalti_fuse_begin(tape->task_group, &record->fusion);
}

static const struct smalti_layer task_begins = {NULL, end_task}, task_ends = {NULL, begin_task};

void smalti_tape_begin_task(struct smalti_tape *tape, const struct smalti_fusion *fusion,
			    const char *backward)
{
	smalti_fuse_begin(tape->task_group, fusion);
	struct smalti_record record = {
	    .layer = &task_begins, .fusion = *fusion, .row = tape->open, .at = tape->task_group->now};
	record.fusion.name = backward;
	record.fusion.flops *= 2;
	if (tape->records && add_record(tape, &record))
		tape->open = tape->count - 1;
}

void smalti_tape_end_task(struct smalti_tape *tape)
{
	smalti_fuse_end(tape->task_group);
	if (!tape->records || tape->open < 0)
		return;
	struct smalti_record record = tape->list[tape->open];
	record.layer = &task_ends;
	tape->open = record.row;
	add_record(tape, &record);
}

/* Backward */

void smalti_tape_drop(struct smalti_tape *tape, struct smalti_tape_mark mark)
{
	for (int64_t i = mark.variable; i < tape->variable_count; i++) {
		tape->variables[i].record = -1;
		if (!tape->variables[i].held)
			release_variable(tape, i);
	}
	while (tape->count > mark.record)
		free(tape->list[--tape->count].keys);
}

void smalti_tape_forget(struct smalti_tape *tape, struct smalti_value value)
{
	if (value.number > 0)
		release_variable(tape, value.number - 1);
}

int smalti_tape_begin_backward(struct smalti_tape *tape, struct smalti_tile *const *const *weights,
			       int64_t parameters, bool add)
{
	tape->weights = weights;
	tape->parameters = parameters;
	tape->written = smalti_task_group_calloc(tape->task_group, parameters, tape->parts);
	if (!tape->written)
		return -1;
	memset(tape->written, add, (size_t)(parameters * tape->parts));
	return 0;
}

void smalti_tape_backward(struct smalti_tape *tape, struct smalti_tape_mark mark)
{
	while (tape->count > mark.record) {
		const struct smalti_record r = tape->list[--tape->count];
		const bool skipped = r.y.number > 0 && is_constant(tape, r.y);
		if (!skipped && !smalti_task_group_broken(tape->task_group)) {
			smalti_tape_go(tape, r.part);
			r.layer->backward(tape, &r);
		}
		if (!r.adds)
			smalti_tape_forget(tape, r.y);
		smalti_tape_forget(tape, r.lse);
		free(r.keys);
	}
}

struct smalti_tile *smalti_tape_tile(struct smalti_tape *tape, struct smalti_value value)
{
	if (value.number == 0)
		return value.tile;
	struct smalti_variable *v = variable_of(tape, value);
	if (!v->tile && can_make_again(tape, v)) {
		const struct smalti_record *record = &tape->list[v->record];
		const int part = tape->part;
		smalti_tape_go(tape, record->part);
		v->tile = new_tile(tape, &record->y);
		record->layer->again(tape, record, v->tile);
		smalti_tape_go(tape, part);
	}
	return v->tile;
}

void smalti_tape_add(struct smalti_tape *tape, int64_t count, struct smalti_tile *x, bool add,
		     struct smalti_tile *y)
{
	if (add)
		smalti_insert(add, tape->task_group, (.x = x, .y = y), .count = count);
	else
		smalti_insert(copy, tape->task_group, (.x = x, .y = y),
			      .bytes = count * (int64_t)sizeof(float));
}

/* Adds the gradients of all parts to the first of them that there is, at the value's part. */
struct smalti_tile *smalti_tape_gradient(struct smalti_tape *tape, struct smalti_value value)
{
	const struct smalti_variable *v = variable_of(tape, value);
	const int here = tape->part;
	struct smalti_tile **sum = NULL;
	for (int n = 0; n < tape->parts; n++) {
		struct smalti_tile **part = gradient_at(tape, value, (v->part + n) % tape->parts);
		if (!*part)
			continue;
		if (sum) {
			smalti_tape_go(tape, v->part);
			smalti_tape_add(tape, v->count, *part, true, *sum);
			smalti_tape_go(tape, here);
			smalti_tile_release(*part);
			*part = NULL;
		}
		sum = sum ? sum : part;
	}
	return sum ? *sum : NULL;
}

struct smalti_tile *smalti_tape_into(struct smalti_tape *tape, struct smalti_value value, bool *add)
{
	return is_constant(tape, value) ? NULL : smalti_tape_into_any(tape, value, add);
}

struct smalti_tile *smalti_tape_into_any(struct smalti_tape *tape, struct smalti_value value, bool *add)
{
	struct smalti_tile **gradient = gradient_at(tape, value, tape->part);
	*add = *gradient != NULL;
	if (!*gradient)
		*gradient =
		    smalti_tile_new(tape->task_group, value.rows, value.columns * (int64_t)sizeof(float));
	return *gradient;
}

struct smalti_tile *smalti_tape_onto(struct smalti_tape *tape, struct smalti_value value)
{
	bool add;
	struct smalti_tile *gradient = smalti_tape_into_any(tape, value, &add);
	if (!add)
		smalti_insert(clear, tape->task_group, (.y = gradient),
			      .bytes = value.rows * value.columns * (int64_t)sizeof(float));
	return gradient;
}

void smalti_tape_hand_over(struct smalti_tape *tape, struct smalti_value from, struct smalti_value to)
{
	struct smalti_tile *sum = smalti_tape_gradient(tape, from);
	if (is_constant(tape, to) || !sum)
		return;
	struct smalti_tile **gradient = gradient_at(tape, to, tape->part);
	if (*gradient) {
		smalti_tape_add(tape, variable_of(tape, to)->count, sum, true, *gradient);
		return;
	}
	*gradient = sum;
	for (int part = 0; part < tape->parts; part++)
		if (*gradient_at(tape, from, part) == sum)
			*gradient_at(tape, from, part) = NULL;
}

void smalti_tape_lend(struct smalti_tape *tape, struct smalti_value from, struct smalti_value to)
{
	*gradient_at(tape, to, tape->part) = smalti_tape_gradient(tape, from);
	variable_of(tape, to)->lent = true;
}

struct smalti_tile *smalti_tape_weight(struct smalti_tape *tape, const struct smalti_weight *weight,
				       int index, bool *add)
{
	const int64_t parameter = smalti_weight_parameter(weight, index);
	if (parameter < 0)
		return NULL;
	bool *written = &tape->written[tape->part * tape->parameters + parameter];
	*add = *written;
	*written = true;
	return tape->weights[tape->part][parameter];
}
