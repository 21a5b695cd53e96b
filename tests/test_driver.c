/* SPDX-License-Identifier: Apache-2.0
 *
 * A driver that has only what each has: what the device does in place of the other functions, and the memory
 * of scratch and locals.
 */
#include "harness.h"
#include "smalti/session.h"
#include "template_driver.h"

#include <math.h>

static struct smalti_device *device;

/* Opens a device whose share of memory is `share` bytes. StarPU, which counts memory, is running. */
static struct smalti_session *open_device(int64_t share)
{
	struct smalti_error error = SMALTI_NO_ERROR;
	const struct smalti_session_options options = {.cpus = 1};
	struct smalti_session *session = smalti_session_open(&options, &error);
	SUCCEEDS(session ? 0 : -1, &error, "session");
	device = session ? template_driver.open(0, &error) : NULL;
	if (!device)
		return session;
	device->driver = &template_driver;
	device->share = share;
	starpu_memory_allocate(device->memory_node, (size_t)share, STARPU_MEMORY_OVERFLOW);
	return session;
}

static void close_device(struct smalti_session *session)
{
	struct smalti_error error = SMALTI_NO_ERROR;
	smalti_device_memory_close(device);
	CHECK(template_driver_allocations(device) == 0, "all memory was released");
	template_driver.close(device);
	SUCCEEDS(smalti_session_close(session, &error), &error, "close");
}

static void only_what_it_has(void)
{
	struct smalti_error error = SMALTI_NO_ERROR;
	struct smalti_session *session = open_device(1 << 20);
	if (!session || !device)
		return;
	const struct smalti_device_product plain = {.dtype = SMALTI_F32, .result = SMALTI_F32},
					   half = {.dtype = SMALTI_F32, .result = SMALTI_F16},
					   integers = {.dtype = SMALTI_I8, .result = SMALTI_F32};
	CHECK(smalti_device_makes(device, &plain), "products of f32");
	CHECK(!smalti_device_makes(device, &half), "no products to f16");
	CHECK(!smalti_device_makes(device, &integers), "no products of integers");
	CHECK(smalti_device_operands(device, SMALTI_BF16) == SMALTI_F32, "operands of bf16 become f32");
	CHECK(!smalti_device_has_convolution(device, &(struct smalti_device_convolution){.rows = 1}),
	      "no convolution");
	CHECK(!smalti_device_has_sdpa(device, &(struct smalti_device_sdpa){.heads = 1}), "no attention");
	CHECK(!smalti_device_attends_tile(device, &(struct smalti_device_attend_tile){.heads = 1}),
	      "no attention of a tile");
	CHECK(!smalti_device_can_repeat(device), "no repeats");
	CHECK(isnan(smalti_device_utilisation(device, 0)), "no utilisation");
	const struct smalti_launch launch = {.kernel = "scale_rows", .groups = 1, .threads = 1};
	FAILS(smalti_device_launch(device, &launch, NULL, 0, NULL, 0, &error), &error, SMALTI_EUNSUPPORTED,
	      "a kernel", "scale_rows");
	error = (struct smalti_error)SMALTI_NO_ERROR;
	SUCCEEDS(smalti_device_launch(device, &(struct smalti_launch){.kernel = "scale_rows"}, NULL, 0, NULL,
				      0, &error),
		 &error, "no group launches nothing");
	close_device(session);
}

static void products(void)
{
	struct smalti_error error = SMALTI_NO_ERROR;
	struct smalti_session *session = open_device(1 << 20);
	if (!session || !device)
		return;
	/* two products of [2, 3] by [2, 3] transposed, the second one's operands turned, added to 1 */
	float x[] = {1, 2, 3, 4, 5, 6}, w[] = {1, 0, 2, 0, 1, 1}, y[] = {1, 1, 1, 1};
	const float expected[] = {8, 6, 17, 12};
	const struct smalti_device_memory xs = {x, sizeof(x)}, ws = {w, sizeof(w)}, ys = {y, sizeof(y)};
	const struct smalti_device_product product = {.rows = 2,
						      .in = 3,
						      .out = 2,
						      .x_stride = 3,
						      .w_stride = 3,
						      .y_stride = 2,
						      .adds = true,
						      .dtype = SMALTI_F32,
						      .result = SMALTI_F32};
	SUCCEEDS(smalti_device_product(device, &product, &xs, &ws, &ys, &error), &error, "product");
	for (int i = 0; i < COUNT(expected); i++)
		CHECK(y[i] == expected[i], "an element");
	struct smalti_device_product none = product;
	none.rows = 0;
	SUCCEEDS(smalti_device_product(device, &none, NULL, NULL, NULL, &error), &error,
		 "a product of no rows touches nothing");
	close_device(session);
}

static void memory(void)
{
	struct smalti_error error = SMALTI_NO_ERROR;
	struct smalti_session *session = open_device(3000);
	if (!session || !device)
		return;
	smalti_device_begin_step(device);
	const struct smalti_device_memory *small = smalti_device_scratch(device, 0, 500, &error);
	CHECK(small && small->bytes == 500, "scratch");
	CHECK(smalti_device_scratch(device, 0, 400, &error) == small && small->bytes == 500,
	      "less scratch is the same memory");
	CHECK(smalti_device_scratch(device, 0, 600, &error) == small && small->bytes == 600, "more is new");
	const struct smalti_device_memory *local = smalti_device_take(device, 1000, &error),
					  *other = smalti_device_take(device, 1000, &error);
	CHECK(local && other && local != other, "two locals");
	smalti_device_give(device, local);
	CHECK(smalti_device_take(device, 1000, &error) == local, "given memory is taken again");
	CHECK(template_driver_allocations(device) == 3, "without an allocation");
	smalti_device_give(device, local);
	const struct smalti_device_memory *large = smalti_device_take(device, 2000, &error);
	CHECK(large && template_driver_allocations(device) == 3, "the idle local made room for a large one");
	CHECK(smalti_device_scratch(device, 0, 600, &error) == small, "this step's scratch stayed");
	smalti_device_set_lane(device, 1);
	CHECK(smalti_device_scratch(device, 0, 600, &error) != small, "another lane has scratch of its own");
	smalti_device_give(device, other);
	smalti_device_give(device, large);
	close_device(session);
}

static const struct test tests[] = {
    {"only what it has", only_what_it_has},
    {"products", products},
    {"memory", memory},
};

TEST_MAIN("a driver of few functions", tests)
