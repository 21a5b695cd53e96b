/* SPDX-License-Identifier: Apache-2.0 */
#include "cuda/memory.h"

#include "sanitized.h"

#include <cstdarg>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <string>
#include <vector>

namespace
{
enum {
	MOST_DEVICES = 4,
	MARK = 0xda00,
	MARK_SHIFT = 48,
	GUARD_BYTES = SANITIZED ? 0 : 64 /* behind each block; it must not change */
};

struct block {
	char *memory;
	size_t bytes;
};

std::map<uintptr_t, block> blocks; /* by the program's addresses */
size_t used[MOST_DEVICES];

long number_of(const char *variable, long otherwise, long most)
{
	const char *value = getenv(variable);
	const long number = value ? atol(value) : otherwise;
	if (number < 1 || number > most)
		standin_refuse("%s has to be from 1 to %ld", variable, most);
	return number;
}

uintptr_t marked(const char *memory, int device)
{
	return reinterpret_cast<uintptr_t>(memory) | static_cast<uintptr_t>(MARK + device) << MARK_SHIFT;
}
} // namespace

void standin_refuse(const char *format, ...)
{
	va_list list;
	va_start(list, format);
	fputs("stand-in: ", stderr);
	vfprintf(stderr, format, list);
	fputc('\n', stderr);
	abort();
}

int standin_device_count(void)
{
	static const long count = number_of("SMALTI_STANDIN_DEVICES", 1, MOST_DEVICES);
	return static_cast<int>(count);
}

size_t standin_memory_total(void)
{
	static const long mebibytes = number_of("SMALTI_STANDIN_MEMORY", 1024, 1 << 20);
	return static_cast<size_t>(mebibytes) << 20;
}

size_t standin_memory_free(int device)
{
	return standin_memory_total() - used[device];
}

void *standin_allocate(int device, size_t bytes)
{
	void *memory;
	if (bytes > standin_memory_free(device) || posix_memalign(&memory, 256, bytes + GUARD_BYTES) != 0)
		return nullptr;
	memset(memory, 0xff, bytes + GUARD_BYTES);
	char *const real = static_cast<char *>(memory);
	blocks[marked(real, device)] = {real, bytes};
	used[device] += bytes;
	return reinterpret_cast<void *>(marked(real, device));
}

void standin_release(void *memory)
{
	const auto found = blocks.find(reinterpret_cast<uintptr_t>(memory));
	if (found == blocks.end())
		standin_refuse("%p is released, which no allocation gave or which is released already",
			       memory);
	const block block = found->second;
	for (size_t i = block.bytes; i < block.bytes + GUARD_BYTES; i++)
		if (block.memory[i] != '\xff')
			standin_refuse("something wrote behind the %zu bytes at %p", block.bytes, memory);
	used[standin_device_of(memory)] -= block.bytes;
	blocks.erase(found);
	free(block.memory);
}

int standin_device_of(const void *address)
{
	const long device = static_cast<long>(reinterpret_cast<uintptr_t>(address) >> MARK_SHIFT) - MARK;
	return device >= 0 && device < MOST_DEVICES ? static_cast<int>(device) : -1;
}

char *standin_at(const void *address, int device, size_t bytes, const char *user)
{
	const auto at = reinterpret_cast<uintptr_t>(address);
	if (standin_device_of(address) != device)
		standin_refuse("%s on device %d has the address %p of %s", user, device, address,
			       standin_device_of(address) < 0 ? "the host" : "another device");
	const auto next = blocks.upper_bound(at);
	const auto found = next == blocks.begin() ? blocks.end() : std::prev(next);
	if (found == blocks.end() || at - found->first > found->second.bytes ||
	    bytes > found->second.bytes - (at - found->first))
		standin_refuse("%s on device %d has %zu bytes at %p, which are not, or no longer, allocated",
			       user, device, bytes, address);
	return found->second.memory + (at - found->first);
}

bool standin_fails(const char *what)
{
	static std::map<std::string, long> calls;
	const char *wanted = getenv("SMALTI_STANDIN_FAIL");
	const size_t length = strlen(what);
	if (!wanted || strncmp(wanted, what, length) != 0 || wanted[length] != ':')
		return false;
	return ++calls[what] == atol(wanted + length + 1);
}

bool standin_lost(const char *what, int device)
{
	static std::recursive_mutex mutex;
	static std::vector<bool> lost(MOST_DEVICES);
	static long calls;
	const char *const wanted = getenv("SMALTI_LOSE"), *const number =
							      wanted ? strchr(wanted, ':') : nullptr;
	if (!number)
		return false;
	const std::lock_guard<std::recursive_mutex> held(mutex);
	const std::string name(wanted, number);
	if ((name == "any" || name == what) && ++calls == atol(number + 1))
		lost[static_cast<size_t>(device)] = true;
	return lost[static_cast<size_t>(device)];
}
