/* SPDX-License-Identifier: Apache-2.0 */
#include "rt/tile_forms.h"
#include "host/tile_memory.h"
#include "rt/places.h"
#include "rt/session.h"
#include "rt/task_group.h"

#include <starpu.h>

struct smalti_formed {
	struct smalti_tile_forms forms;
	pthread_mutex_t lock;
	void *memory; /* the CPU's form, once made */
	struct smalti_task_group *task_group;
	struct smalti_pool *pool;
	bool counted; /* StarPU counts it as used main memory */
};

/* StarPU's interface. Main memory, the tile's home, has the forms and makes the CPU's on demand; a device has
 * its form at `handle` (an address, or a cl_mem). StarPU keeps a freed tile's
 * interface with a device's memory for another tile of as many bytes; `formed` is invalid then. */
struct interface {
	enum starpu_data_interface_id id;
	struct smalti_formed *formed;
	uintptr_t handle;
	int64_t bytes[SMALTI_DEVICE_KINDS];
};

struct smalti_formed *smalti_formed_new(struct smalti_task_group *task_group,
					const struct smalti_tile_forms *forms, struct smalti_error *error)
{
	struct smalti_formed *formed = smalti_calloc(1, sizeof(*formed), error);
	if (!formed)
		return NULL;
	formed->forms = *forms;
	formed->task_group = task_group;
	formed->pool = task_group->session->pool;
	pthread_mutex_init(&formed->lock, NULL);
	return formed;
}

int64_t smalti_formed_bytes(const struct smalti_formed *formed, enum smalti_device_kind kind)
{
	return formed->forms.bytes[kind];
}

void smalti_formed_free(struct smalti_formed *formed)
{
	if (!formed)
		return;
	if (formed->memory && formed->counted)
		starpu_memory_deallocate(STARPU_MAIN_RAM, (size_t)formed->forms.bytes[SMALTI_DEVICE_CPU]);
	if (formed->memory)
		smalti_tile_memory_release(formed->pool, formed->memory);
	pthread_mutex_destroy(&formed->lock);
	free(formed);
}

static void *make(const struct smalti_formed *formed, enum smalti_device_kind kind,
		  struct smalti_error *error)
{
	const struct smalti_tile_forms *forms = &formed->forms;
	const int64_t bytes = forms->bytes[kind];
	void *memory = smalti_tile_memory_acquire(formed->pool, bytes, error);
	if (!memory || forms->make(forms->source, kind, memory, bytes, error) == 0)
		return memory;
	smalti_tile_memory_release(formed->pool, memory);
	return NULL;
}

const void *smalti_formed_memory(struct smalti_formed *formed, struct smalti_error *error)
{
	const struct smalti_tile_forms *forms = &formed->forms;
	HOLD_MUTEX(&formed->lock);
	if (!formed->memory && (formed->memory = make(formed, SMALTI_DEVICE_CPU, error)) && formed->counted)
		starpu_memory_allocate(STARPU_MAIN_RAM, (size_t)forms->bytes[SMALTI_DEVICE_CPU],
				       STARPU_MEMORY_OVERFLOW);
	return formed->memory;
}

static bool is_home(unsigned node)
{
	return starpu_node_get_kind((int)node) == STARPU_CPU_RAM;
}

static struct interface *interface_on(starpu_data_handle_t handle, unsigned node)
{
	return starpu_data_get_interface_on_node(handle, node);
}

static void register_everywhere(starpu_data_handle_t handle, int home, void *interface)
{
	(void)home;
	for (unsigned node = 0; node < STARPU_MAXNODES; node++)
		*interface_on(handle, node) = *(struct interface *)interface;
}

static void unregister(starpu_data_handle_t handle)
{
	smalti_formed_free(interface_on(handle, STARPU_MAIN_RAM)->formed);
}

static starpu_ssize_t allocate(void *interface, unsigned node)
{
	struct interface *i = interface;
	if (is_home(node))
		return 0;
	const int64_t bytes = i->bytes[smalti_memory_kind(node)];
	i->handle = starpu_malloc_on_node(node, (size_t)bytes);
	return i->handle ? (starpu_ssize_t)bytes : -ENOMEM;
}

static void give_back(void *interface, unsigned node)
{
	struct interface *i = interface;
	if (!is_home(node))
		starpu_free_on_node(node, i->handle, (size_t)i->bytes[smalti_memory_kind(node)]);
	i->handle = 0;
}

/* Moves it to fresh memory, `to`. */
static void move_allocation(void *to, void *from, unsigned node)
{
	(void)node;
	*(struct interface *)to = *(struct interface *)from;
	((struct interface *)from)->handle = 0;
}

static void reuse_allocation(void *to, const void *from, unsigned node)
{
	(void)node;
	((struct interface *)to)->handle = ((const struct interface *)from)->handle;
}

#ifdef SMALTI_SIMGRID
static int fetch(struct smalti_formed *formed, uintptr_t to, unsigned node)
{
	return starpu_interface_copy((uintptr_t)formed, 0, STARPU_MAIN_RAM, to, 0, node,
				     (size_t)formed->forms.bytes[smalti_memory_kind(node)], NULL);
}
#else
/* Makes the form in main memory and copies it synchronously: the staging memory is freed then. */
static int fetch(struct smalti_formed *formed, uintptr_t to, unsigned node)
{
	struct smalti_error error = SMALTI_NO_ERROR;
	const enum smalti_device_kind kind = smalti_memory_kind(node);
	void *staging = make(formed, kind, &error);
	if (!staging) {
		smalti_task_group_fail(formed->task_group, &error);
		return 0;
	}
	starpu_interface_copy((uintptr_t)staging, 0, STARPU_MAIN_RAM, to, 0, node,
			      (size_t)formed->forms.bytes[kind], NULL);
	smalti_tile_memory_release(formed->pool, staging);
	return 0;
}
#endif

/* Copies to other memories. Main memory, the home, is always up to date, and needs no copy back. */
static int copy(void *from, unsigned from_node, void *to, unsigned to_node, void *async)
{
	const struct interface *source = from, *target = to;
	struct smalti_formed *formed = source->formed;
	const enum smalti_device_kind kind = smalti_memory_kind(to_node);
	if (is_home(to_node))
		return 0;
	starpu_interface_data_copy(from_node, to_node, (size_t)formed->forms.bytes[kind]);
	if (is_home(from_node))
		return fetch(formed, target->handle, to_node);
	return starpu_interface_copy(source->handle, 0, from_node, target->handle, 0, to_node,
				     (size_t)formed->forms.bytes[kind], async);
}

/* Returns the bytes of a transfer: of the form that devices have. */
static size_t get_size(starpu_data_handle_t handle)
{
	return (size_t)interface_on(handle, STARPU_MAIN_RAM)->bytes[SMALTI_DEVICE_GPU];
}

static uint32_t footprint(starpu_data_handle_t handle)
{
	return starpu_hash_crc32c_be_n(&(size_t){get_size(handle)}, sizeof(size_t), 0);
}

static int compare(void *one, void *other)
{
	const struct interface *a = one, *b = other;
	return a->bytes[SMALTI_DEVICE_GPU] == b->bytes[SMALTI_DEVICE_GPU];
}

static const struct starpu_data_copy_methods copies = {.any_to_any = copy};

static struct starpu_data_interface_ops operations = {
    .register_data_handle = register_everywhere,
    .unregister_data_handle = unregister,
    .allocate_data_on_node = allocate,
    .free_data_on_node = give_back,
    .cache_data_on_node = move_allocation,
    .reuse_data_on_node = reuse_allocation,
    .copy_methods = &copies,
    .get_size = get_size,
    .footprint = footprint,
    .compare = compare,
    .interfaceid = STARPU_UNKNOWN_INTERFACE_ID,
    .interface_size = sizeof(struct interface),
    .name = "SMALTI_FORMS_INTERFACE",
};

void smalti_formed_register(struct smalti_formed *formed, void *handle)
{
	starpu_data_register_ops(&operations);
	struct interface interface = {.id = operations.interfaceid, .formed = formed};
	memcpy(interface.bytes, formed->forms.bytes, sizeof(interface.bytes));
	formed->counted = true;
	starpu_data_register(handle, STARPU_MAIN_RAM, &interface, &operations);
}

struct smalti_device_memory smalti_formed_device_memory(const void *interface)
{
	const struct interface *i = interface;
	return (struct smalti_device_memory){(void *)i->handle, i->bytes[SMALTI_DEVICE_GPU]};
}

struct smalti_formed *smalti_formed_of(const void *interface)
{
	const struct interface *i = interface;
	return i->id == operations.interfaceid ? i->formed : NULL;
}
