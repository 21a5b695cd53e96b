/* SPDX-License-Identifier: Apache-2.0 */
/* Writes a machine's four files for StarPU's simulation: the links' bandwidths and latencies, which
 * scheduling policies believe, SimGrid's platform, which decides the time of a transfer, and a configuration.
 */
#include "base/file.h"
#include "simulation/machine.h"

static const double at_once = 1e15; /* bytes a second */

/* Returns the link between two memories; 0 is main memory, g + 1 that of GPU g. */
static struct smalti_machine_link link_of(const struct smalti_simulated_machine *m, int64_t from, int64_t to)
{
	if (from == 0 || to == 0)
		return m->pcie;
	return m->blocking ? m->exchange : smalti_machine_between(m, from - 1, to - 1);
}

/* Returns a factor near 1 of a link's rate. A GPU copies from the memory that has the highest rate, of equal
 * ones from the first. Measured rates are never equal, so each GPU copies from another one; here the nearest
 * before it, in a circle. Otherwise the first GPU would send all. */
static double preference(const struct smalti_simulated_machine *m, int64_t from, int64_t to)
{
	const double difference = 1e-5;
	const int64_t gpus = smalti_machine_gpus(m);
	return from == 0 || to == 0 ? 1 : 1 + difference * (double)((from - to + gpus) % gpus) / (double)gpus;
}

/* Writes a matrix of the links. StarPU skips the last row and the last column. */
static void write_matrix(FILE *file, const struct smalti_simulated_machine *m, bool latencies)
{
	const int64_t memories = smalti_machine_gpus(m) + 1;
	fputs("# from \\ to\n", file);
	for (int64_t from = 0; from <= memories; from++)
		for (int64_t to = 0; to <= memories; to++) {
			const bool inside = from < memories && to < memories;
			const struct smalti_machine_link link =
			    inside ? link_of(m, from, to) : (struct smalti_machine_link){0, 0};
			if (!inside)
				fputs("nan", file);
			else if (from == to)
				fputs("0", file);
			else
				fprintf(file, "%.6f",
					latencies ? link.latency * 1e6
						  : link.bandwidth * preference(m, from, to) * 1e-6);
			fputc(to == memories ? '\n' : '\t', file);
		}
}

static void write_bandwidths(FILE *file, const struct smalti_simulated_machine *m)
{
	write_matrix(file, m, false);
}

static void write_latencies(FILE *file, const struct smalti_simulated_machine *m)
{
	write_matrix(file, m, true);
}

/* Writes a file that must exist. */
static void write_config(FILE *file, const struct smalti_simulated_machine *m)
{
	fprintf(file, "# %s\n", m->name);
}

static void write_hosts(FILE *file, const struct smalti_simulated_machine *m)
{
	const int64_t gpus = smalti_machine_gpus(m);
	fputs("<host id=\"MAIN\" speed=\"1f\"/>\n<host id=\"RAM\" speed=\"1f\"/>\n", file);
	/* a GPU's worker takes one of the CPUs */
	for (int64_t cpu = 0; cpu < m->cpu.count + gpus; cpu++)
		fprintf(file, "<host id=\"CPU%lld\" speed=\"1f\"/>\n", (long long)cpu);
	for (int64_t gpu = 0; gpu < gpus; gpu++) {
		const struct smalti_machine_kind *kind = smalti_machine_gpu(m, gpu);
		fprintf(file,
			"<host id=\"CUDA%lld\" speed=\"1f\"><prop id=\"model\" value=\"%s\"/>"
			"<prop id=\"memsize\" value=\"%.0f\"/><prop id=\"memcpy_peer\" "
			"value=\"1\"/></host>\n",
			(long long)gpu, kind->name, kind->memory);
	}
}

static void write_link(FILE *file, const char *kind, int64_t from, int64_t to, double bandwidth,
		       double latency)
{
	fprintf(file, "<link id=\"%s%lld-%lld\" bandwidth=\"%.0fBps\" latency=\"%.9fs\"/>\n", kind,
		(long long)from, (long long)to, bandwidth, latency);
}

/* Writes the links from and to each GPU (0: the other end), of each pair, of each node. */
static void write_links(FILE *file, const struct smalti_simulated_machine *m)
{
	const int64_t gpus = smalti_machine_gpus(m);
	for (int64_t node = 0; gpus && node < m->nodes; node++) {
		write_link(file, "host", node, node, m->host, 0);
		if (m->nodes > 1) {
			write_link(file, "sends", node, node, m->network.bandwidth, m->network.latency / 2);
			write_link(file, "gets", node, node, m->network.bandwidth, m->network.latency / 2);
		}
	}
	if (m->blocking)
		write_link(file, "free", 0, 0, at_once, 0);
	for (int64_t gpu = 1; gpu <= gpus; gpu++) {
		write_link(file, "pcie", 0, gpu, m->pcie.bandwidth, m->pcie.latency);
		write_link(file, "pcie", gpu, 0, m->pcie.bandwidth, m->pcie.latency);
		if (m->nvswitch.bandwidth > 0) {
			write_link(file, "nvswitch", 0, gpu, m->nvswitch.bandwidth, m->nvswitch.latency / 2);
			write_link(file, "nvswitch", gpu, 0, m->nvswitch.bandwidth, m->nvswitch.latency / 2);
		}
		for (int64_t to = 1; m->nvlink.bandwidth > 0 && to <= gpus; to++)
			if (to != gpu)
				write_link(file, "nvlink", gpu, to, m->nvlink.bandwidth, m->nvlink.latency);
	}
}

static void pass(FILE *file, const char *kind, int64_t from, int64_t to)
{
	fprintf(file, "<link_ctn id=\"%s%lld-%lld\"/>", kind, (long long)from, (long long)to);
}

/* Writes a route between GPUs, from 1 on. */
static void pass_between(FILE *file, const struct smalti_simulated_machine *m, int64_t from, int64_t to)
{
	const int64_t node = smalti_machine_node(m, from - 1), other = smalti_machine_node(m, to - 1);
	if (m->blocking) { /* the receiver's task has this time */
		pass(file, "free", 0, 0);
	} else if (node == other && m->nvlink.bandwidth > 0) {
		pass(file, "nvlink", from, to);
	} else if (node == other && m->nvswitch.bandwidth > 0) {
		pass(file, "nvswitch", from, 0);
		pass(file, "nvswitch", 0, to);
	} else {
		pass(file, "pcie", from, 0);
		pass(file, "pcie", 0, to);
		if (node == other) {
			pass(file, "host", node, node);
		} else {
			pass(file, "sends", node, node);
			pass(file, "gets", other, other);
		}
	}
}

static void write_route(FILE *file, const struct smalti_simulated_machine *m, int64_t from, int64_t to)
{
	char names[2][32];
	const int64_t ends[2] = {from, to};
	for (int i = 0; i < 2; i++)
		snprintf(names[i], sizeof(names[i]), ends[i] ? "CUDA%lld" : "RAM", (long long)ends[i] - 1);
	fprintf(file, "<route src=\"%s\" dst=\"%s\" symmetrical=\"NO\">", names[0], names[1]);
	if (from && to) {
		pass_between(file, m, from, to);
	} else {
		const int64_t node = smalti_machine_node(m, (from ? from : to) - 1);
		pass(file, "pcie", from, to);
		pass(file, "host", node, node);
	}
	fputs("</route>\n", file);
}

static void write_platform(FILE *file, const struct smalti_simulated_machine *m)
{
	const int64_t memories = smalti_machine_gpus(m) + 1;
	fputs("<?xml version='1.0'?>\n<!DOCTYPE platform SYSTEM \"https://simgrid.org/simgrid.dtd\">\n"
	      "<platform version=\"4.1\">\n<config>\n"
	      "<prop id=\"network/TCP-gamma\" value=\"-1\"/>\n"
	      "<prop id=\"network/latency-factor\" value=\"1\"/>\n"
	      "<prop id=\"network/bandwidth-factor\" value=\"1\"/>\n"
	      "<prop id=\"network/weight-S\" value=\"0.0\"/>\n"
	      "<prop id=\"network/crosstraffic\" value=\"0\"/>\n</config>\n"
	      "<zone id=\"AS0\" routing=\"Full\">\n",
	      file);
	write_hosts(file, m);
	write_links(file, m);
	for (int64_t from = 0; from < memories; from++)
		for (int64_t to = 0; to < memories; to++)
			if (from != to)
				write_route(file, m, from, to);
	fputs("</zone>\n</platform>\n", file);
}

static const struct {
	const char *suffix;
	void (*write)(FILE *file, const struct smalti_simulated_machine *machine);
} files[] = {
    {"config", write_config},
    {"bandwidth", write_bandwidths},
    {"latency", write_latencies},
    {"platform.v4.xml", write_platform},
};

int smalti_machine_write(const struct smalti_simulated_machine *machine, const char *directory,
			 const char *name, struct smalti_error *error)
{
	SCOPED(free) char *bus = smalti_format(error, "%s/bus", directory);
	int status = bus ? smalti_make_directory(bus, error) : -1;
	for (size_t i = 0; i < COUNT_OF(files) && status == 0; i++) {
		SCOPED(free) char *path = smalti_format(error, "%s/%s.%s", bus, name, files[i].suffix);
		struct smalti_writer *writer = path ? smalti_writer_open(path, error) : NULL;
		if (!writer)
			return -1;
		files[i].write(smalti_writer_stream(writer), machine);
		status = smalti_writer_place(writer, error);
	}
	return status;
}
