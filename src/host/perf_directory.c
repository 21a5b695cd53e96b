/* SPDX-License-Identifier: Apache-2.0 */
#include "host/perf_directory.h"
#include "base/file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <time.h>

enum {
	MAX_PATH = 160,  /* StarPU cuts paths at 255 characters, with its own names */
	ROOM = 32 << 10, /* bytes that StarPU may write */
	YOUNG = 2,       /* seconds in which another process may still write a file */
	PATIENCE = 50,   /* looks at such a file */
	PAUSE = 20000,   /* microseconds between them */
	HOST = 65,       /* as StarPU cuts the name */
};

static const char bus[] = "bus", codelets[] = "codelets";

static bool make_directories(const char *path)
{
	char part[MAX_PATH + 16];
	snprintf(part, sizeof(part), "%s/", path);
	for (char *end = strchr(part + 1, '/'); end; end = strchr(end + 1, '/')) {
		*end = '\0';
		if (mkdir(part, S_IRWXU) < 0 && access(part, F_OK) < 0)
			return false;
		*end = '/';
	}
	return true;
}

/* Tells whether a new file can be made in the directory and filled. Others may write there, too: nobody else
 * has, or can guess, the file's name. */
static bool takes_a_file(const char *directory)
{
	static const char zeros[ROOM], end[] = ".part";
	char probe[MAX_PATH + 64];
	snprintf(probe, sizeof(probe), "%s/.smalti.XXXXXX%s", directory, end);
	const int file = mkostemps(probe, (int)strlen(end), O_CLOEXEC);
	if (file < 0)
		return false;
	const bool written = write(file, zeros, sizeof(zeros)) == (ssize_t)sizeof(zeros);
	const bool closed = close(file) == 0;
	unlink(probe);
	return written && closed;
}

static void host_name(char name[HOST])
{
	const char *forced = getenv("STARPU_HOSTNAME");
	name[0] = name[HOST - 1] = '\0';
	if (forced && *forced)
		snprintf(name, HOST, "%s", forced);
	else if (gethostname(name, HOST - 1) == 0)
		name[strcspn(name, ".")] = '\0';
}

/* Tells whether a file is complete. StarPU's files are text: one that a full disk cut, or an empty one, has
 * no last newline. A link never is: StarPU would write to its target. */
static bool is_complete(int directory, const char *name, bool *young)
{
	struct stat info;
	char last = '\n';
	*young = false;
	const int file = /* StarPU writes it, too */
	    openat(directory, name, O_RDWR | O_CLOEXEC | O_NONBLOCK | O_NOFOLLOW);
	if (file < 0)
		return errno == ENOENT;
	bool complete = fstat(file, &info) == 0 && S_ISREG(info.st_mode);
	if (complete)
		complete = info.st_size > 0 && pread(file, &last, 1, info.st_size - 1) == 1 && last == '\n';
	if (!complete)
		*young = time(NULL) - info.st_mtime < YOUNG;
	close(file);
	return complete;
}

/* Tells whether it stays incomplete while another process may be writing it. */
static bool stays_incomplete(int directory, const char *name)
{
	bool young;
	for (int look = 0; look < PATIENCE; look++) {
		if (is_complete(directory, name, &young))
			return false;
		if (!young)
			break;
		usleep(PAUSE);
	}
	return true;
}

/* Tells whether the name is one of this host's files: HOST.bandwidth of the bus, MODEL.HOST of codelets. */
static bool is_of_host(const char *name, const char *host, bool of_bus)
{
	const size_t length = strlen(name), part = strlen(host);
	if (!part || length <= part + 1)
		return false;
	if (of_bus)
		return strncmp(name, host, part) == 0 && name[part] == '.';
	return name[length - part - 1] == '.' && strcmp(name + length - part, host) == 0;
}

/* Removes the host's files in the directory: the incomplete ones, and with `all` the others, too. Returns how
 * many were incomplete, -1 if one cannot be removed. */
static int clean_files(const char *path, bool of_bus, bool all)
{
	char host[HOST];
	int bad = 0;
	bool removed = true;
	host_name(host);
	SCOPED(closedir) DIR *directory = opendir(path);
	if (!directory)
		return errno == ENOENT ? 0 : -1;
	for (const struct dirent *entry; (entry = readdir(directory));) {
		if (!is_of_host(entry->d_name, host, of_bus))
			continue;
		const bool broken = !all && stays_incomplete(dirfd(directory), entry->d_name);
		bad += broken;
		if ((broken || all) && unlinkat(dirfd(directory), entry->d_name, 0) < 0 && errno != ENOENT)
			removed = false;
	}
	return removed ? bad : -1;
}

/* Removes all of the bus's files if one is incomplete: StarPU measures it as a whole. */
static bool clean_bus(const char *path)
{
	const int bad = clean_files(path, true, false);
	return bad == 0 || (bad > 0 && clean_files(path, true, true) >= 0);
}

/* Cleans a directory for each version of StarPU's format. */
static bool clean_codelets(const char *path)
{
	bool clean = true;
	SCOPED(closedir) DIR *directory = opendir(path);
	for (const struct dirent *entry; directory && (entry = readdir(directory));) {
		char below[MAX_PATH + 300];
		if (entry->d_name[0] == '.')
			continue;
		snprintf(below, sizeof(below), "%s/%s", path, entry->d_name);
		clean = clean_files(below, false, false) >= 0 && clean;
	}
	return clean;
}

/* Tells whether StarPU can use the directory; removes incomplete files from it. */
static bool prepare(const char *path)
{
	static const char *const parts[] = {bus, codelets};
	char below[MAX_PATH + 16];
	if (strlen(path) > MAX_PATH)
		return false;
	for (int i = 0; i < 2; i++) {
		snprintf(below, sizeof(below), "%s/%s", path, parts[i]);
		if (!make_directories(below) || !takes_a_file(below))
			return false;
		if (!(i ? clean_codelets(below) : clean_bus(below)))
			return false;
	}
	return true;
}

/* Returns StarPU's own choice; NULL: none, or no memory. */
static char *usual_path(struct smalti_error *error)
{
	static const char *const homes[] = {"XDG_CACHE_HOME", "STARPU_HOME", "HOME"};
	for (int i = 0; i < 3; i++) {
		const char *home = getenv(homes[i]);
		if (home) /* a home that does not exist is not made */
			return *home == '/' && (i == 0 || access(home, F_OK) == 0)
				   ? smalti_format(error, "%s/.starpu/sampling", home)
				   : NULL;
	}
	return NULL;
}

static char *temporary_path(void)
{
	const char *const places[] = {getenv("TMPDIR"), "/tmp", "/dev/shm", getenv("XDG_RUNTIME_DIR"),
				      "/var/tmp"};
	struct smalti_error ignored = SMALTI_NO_ERROR;
	for (size_t i = 0; i < COUNT_OF(places); i++) {
		char *path = places[i] && *places[i] == '/'
				 ? smalti_format(&ignored, "%s/smalti-starpu.XXXXXX", places[i])
				 : NULL;
		if (path && mkdtemp(path)) {
			if (prepare(path))
				return path;
			struct smalti_perf_directory useless = {.path = path, .own = true};
			smalti_perf_directory_close(&useless);
			continue;
		}
		free(path);
	}
	return NULL;
}

static int choose(struct smalti_perf_directory *directory, struct smalti_error *error)
{
	const char *named = getenv("STARPU_PERF_MODEL_DIR");
	directory->path = named ? smalti_format(error, "%s", named) : usual_path(error);
	if (directory->path && prepare(directory->path))
		return 0;
	free(directory->path);
	directory->path = NULL;
	if (named)
		return smalti_fail(
		    error, SMALTI_EIO,
		    "the environment's STARPU_PERF_MODEL_DIR: '%s' cannot be written to, or is full", named);
	directory->path = temporary_path();
	directory->own = true;
	if (directory->path)
		return 0;
	return smalti_fail(error, SMALTI_EIO,
			   "StarPU has no directory for its measurements: neither the home directory nor "
			   "/tmp can be written "
			   "to; name one by STARPU_HOME");
}

int smalti_perf_directory_open(struct smalti_perf_directory *directory,
			       struct smalti_environment *environment, struct smalti_error *error)
{
	if (choose(directory, error) < 0)
		return -1;
	/* Without XDG_CACHE_HOME StarPU would look into the usual directory, too. */
	if (smalti_environment_set(environment, "STARPU_PERF_MODEL_DIR", directory->path, error) == 0 &&
	    smalti_environment_set(environment, "XDG_CACHE_HOME", directory->path, error) == 0 &&
	    smalti_environment_set(environment, "STARPU_PERF_MODEL_PATH", NULL, error) == 0 &&
	    smalti_environment_set(environment, "STARPU_MPI_HOSTNAMES", NULL, error) == 0)
		return 0;
	smalti_perf_directory_close(directory);
	return -1;
}

bool smalti_perf_directory_writable(const struct smalti_perf_directory *directory)
{
	char below[MAX_PATH + 16];
	snprintf(below, sizeof(below), "%s/%s", directory->path, codelets);
	return make_directories(below) && takes_a_file(below);
}

void smalti_perf_directory_close(struct smalti_perf_directory *directory)
{
	if (directory->own && directory->path)
		smalti_remove_directory(directory->path);
	free(directory->path);
	*directory = (struct smalti_perf_directory){NULL, false};
}
