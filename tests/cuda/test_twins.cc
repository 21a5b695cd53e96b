/* SPDX-License-Identifier: Apache-2.0
 *
 * Tests what executes device kernels on CPUs: its barriers, and kernels without and with them. */
extern "C" {
#include "harness.h"
}
#include "cuda/fibers.h"
#include "cuda/twins.h"

#include <cmath>
#include <csignal>
#include <cstring>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/dtype_enum.h"
#include "kernels/epilogue.h"
#include "kernels/many.h"
#include "kernels/moments.h"
typedef unsigned char uchar;
#include "kernels/device/arguments.h"
#include "kernels/device/parts.h"

static void run(const char *kernel, unsigned groups, unsigned threads, std::vector<void *> parameters)
{
	const standin_twin *twin = standin_find_twin(kernel);
	CHECK(twin && twin->parameters.size() == parameters.size(), kernel);
	if (twin)
		standin_run_twin(twin, groups, threads, parameters.data());
}

/* Adds up, in each thread, what all had before the barrier. */
static void add_up(void *argument)
{
	static int values[100];
	const unsigned i = standin_fiber();
	for (int round = 0; round < 3; round++) {
		int sum = 0;
		values[i] = round + 1;
		standin_barrier();
		for (int value : values)
			sum += value;
		standin_barrier();
		static_cast<int *>(argument)[i] = sum;
	}
}

static void barriers(void)
{
	int sums[100];
	for (int time = 0; time < 3; time++) {
		memset(sums, 0, sizeof(sums));
		standin_fibers(100, add_up, sums);
		for (int sum : sums)
			CHECK(sum == 300, "a sum over all threads");
	}
}

/* Threads go on in the order of their numbers; the last one is the one that lets others. @{ */
static unsigned turns;

static bool is_next(void *thread)
{
	return *static_cast<unsigned *>(thread) == turns;
}

static void take_turn(void *argument)
{
	unsigned thread = standin_fiber();
	if (thread == 0) {
		standin_let_others();
		static_cast<unsigned *>(argument)[0] = turns;
		return;
	}
	thread--;
	standin_wait_until(is_next, &thread);
	static_cast<unsigned *>(argument)[thread + 1] = turns++;
}
/* @} */

static void conditions(void)
{
	for (int time = 0; time < 3; time++) {
		unsigned order[100] = {};
		turns = 0;
		standin_fibers(100, take_turn, order);
		for (unsigned i = 1; i < 100; i++)
			CHECK(order[i] == i - 1, "in the order of their numbers");
		CHECK(order[0] == 99, "the last one");
	}
}

static bool is_never(void *)
{
	return false;
}

static void wait_for_nothing(void *)
{
	standin_wait_until(is_never, nullptr);
}

static void leave_early(void *)
{
	if (standin_fiber() != 0)
		standin_barrier();
}

/* Runs the threads in their own process, which must abort. */
static void abort_in(void (*body)(void *))
{
	int status = 0;
	const pid_t child = fork();
	if (child == 0) {
		const struct rlimit none = {0, 0};
		setrlimit(RLIMIT_CORE, &none);
		signal(SIGABRT, SIG_DFL);
		fclose(stderr);
		standin_fibers(2, body, nullptr);
		_exit(0);
	}
	CHECK(waitpid(child, &status, 0) == child && WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT,
	      "aborted");
}

static void missed_barrier(void)
{
	abort_in(leave_early);
	abort_in(wait_for_nothing);
}

static void without_barriers(void)
{
	const int count = 1000;
	std::vector<float> x(count), y(count, NAN);
	silu_arguments arguments = {};
	arguments.count = count;
	test_fill(x.data(), count, 0.1, 0);
	float *from = x.data(), *to = y.data();
	run("silu", (count + 255) / 256, 256, {&from, &to, &arguments});
	for (int i = 0; i < count; i++)
		CHECK(fabsf(to[i] - from[i] / (1 + expf(-from[i]))) < 1e-6f, "silu");
}

static void normalise(const char *kernel, unsigned threads)
{
	const int rows = 3, dim = 1152;
	std::vector<float> x(rows * dim), modulation(2 * dim), y(rows * dim, NAN);
	ln_modulate_arguments arguments = {};
	arguments.rows = rows;
	arguments.dim = dim;
	arguments.shift_row = 1;
	arguments.epsilon = 1e-6f;
	arguments.dtype = SMALTI_F32;
	test_fill(x.data(), rows * dim, 0.1, 0);
	test_fill(modulation.data(), 2 * dim, 0.3, 1);
	float *from = x.data(), *factors = modulation.data();
	float *to = y.data();
	run(kernel, rows, threads, {&from, &factors, &to, &arguments});
	for (int row = 0; row < rows; row++) {
		const float *in = from + row * dim;
		double mean = 0, squares = 0;
		for (int i = 0; i < dim; i++)
			mean += (double)in[i] / dim;
		for (int i = 0; i < dim; i++)
			squares += ((double)in[i] - mean) * ((double)in[i] - mean) / dim;
		for (int i = 0; i < dim; i++) {
			const double norm = ((double)in[i] - mean) / sqrt(squares + 1e-6);
			const double expected = norm * (1 + (double)factors[i]) + (double)factors[dim + i];
			CHECK(fabs((double)to[row * dim + i] - expected) < 1e-5, kernel);
		}
	}
}

static void with_barriers(void)
{
	normalise("ln_modulate", 128);
}

/* Checks 144 eights: each thread has one, or one or two. */
static void with_shuffles(void)
{
	normalise("ln_modulate_f32", 160);
	normalise("ln_modulate_f32", 96);
}

static const struct test tests[] = {
    {"barriers", barriers},
    {"conditions", conditions},
    {"a missed barrier", missed_barrier},
    {"a kernel without barriers", without_barriers},
    {"a kernel with barriers", with_barriers},
    {"a kernel with shuffles", with_shuffles},
};

int main(void)
{
	return test_main("twins", tests, COUNT(tests));
}
