/* SPDX-License-Identifier: Apache-2.0 */
#include "datasets.h"

#include <cjson/cJSON.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

const char *const dataset_keys[DATASET_CAPTIONS] = {"prompt", "longer"};

static FILE *create(const char *directory, const char *path)
{
	char full[1024];
	snprintf(full, sizeof(full), "%s/%s", directory, path);
	for (char *slash = strchr(full + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
		*slash = '\0';
		mkdir(full, 0777);
		*slash = '/';
	}
	FILE *file = fopen(full, "wb");
	if (!file) {
		perror(full);
		exit(1);
	}
	return file;
}

void dataset_write_file(const char *directory, const char *path, const void *bytes, size_t length)
{
	FILE *file = create(directory, path);
	fwrite(bytes, 1, length, file);
	fclose(file);
}

static void write_object(FILE *file, const struct dataset_item *item, bool pretty)
{
	cJSON *object = cJSON_CreateObject();
	cJSON_AddNumberToObject(object, "ratio", 1.25);
	cJSON_AddStringToObject(object, "path", item->path);
	for (int i = 0; i < DATASET_CAPTIONS; i++)
		cJSON_AddStringToObject(object, dataset_keys[i], item->captions[i]);
	char *text = pretty ? cJSON_Print(object) : cJSON_PrintUnformatted(object);
	fputs(text, file);
	free(text);
	cJSON_Delete(object);
}

static void write_json(const char *directory, const struct dataset_item *items, int count)
{
	FILE *file = create(directory, "data_info.json");
	for (int i = 0; i < count; i++) {
		fputs(i ? ", " : "[\n", file);
		write_object(file, &items[i], true);
	}
	fputs("\n]\n", file);
	fclose(file);
}

static void write_lines(const char *directory, const struct dataset_item *items, int count)
{
	FILE *file = create(directory, "list.jsonl");
	for (int i = 0; i < count; i++) {
		write_object(file, &items[i], false);
		fputs("\n", file);
	}
	fclose(file);
}

static void write_field(FILE *file, const char *text, char end)
{
	const bool quoted = strpbrk(text, "\",\t\r\n") != NULL;
	if (quoted)
		fputc('"', file);
	for (; *text; text++) {
		if (*text == '"')
			fputc('"', file);
		fputc(*text, file);
	}
	if (quoted)
		fputc('"', file);
	fputc(end, file);
}

static void write_table(const char *directory, const char *name, char separator,
			const struct dataset_item *items, int count)
{
	FILE *file = create(directory, name);
	fprintf(file, "%s%c%s%cpath%cratio\r\n", dataset_keys[0], separator, dataset_keys[1], separator,
		separator);
	for (int i = 0; i < count; i++) {
		write_field(file, items[i].captions[0], separator);
		write_field(file, items[i].captions[1], separator);
		write_field(file, items[i].path, separator);
		fputs("1.25\r\n", file);
	}
	fclose(file);
}

static void write_csv(const char *directory, const struct dataset_item *items, int count)
{
	write_table(directory, "list.csv", ',', items, count);
}

static void write_tsv(const char *directory, const struct dataset_item *items, int count)
{
	write_table(directory, "list.tsv", '\t', items, count);
}

/* The path with another extension. */
static void beside(const char *path, const char *extension, char name[512])
{
	snprintf(name, 512, "%.*s.%s", (int)(strrchr(path, '.') - path), path, extension);
}

static char *second_caption(const struct dataset_item *item)
{
	cJSON *object = cJSON_CreateObject();
	cJSON_AddStringToObject(object, dataset_keys[1], item->captions[1]);
	char *text = cJSON_PrintUnformatted(object);
	cJSON_Delete(object);
	return text;
}

/* The first caption in a file of its own, the second in an object. */
static void write_directory(const char *directory, const struct dataset_item *items, int count)
{
	for (int i = 0; i < count; i++) {
		char name[512], *second = second_caption(&items[i]);
		dataset_write_file(directory, items[i].path, items[i].path, strlen(items[i].path));
		beside(items[i].path, dataset_keys[0], name);
		dataset_write_file(directory, name, items[i].captions[0], strlen(items[i].captions[0]));
		beside(items[i].path, "json", name);
		dataset_write_file(directory, name, second, strlen(second));
		free(second);
	}
}

void dataset_tar_header(unsigned char block[512], char type, const char *name, uint64_t bytes)
{
	memset(block, 0, 512);
	memcpy(block, name, strlen(name) < 100 ? strlen(name) : 100);
	memcpy(block + 100, "0000644\0000000000\0000000000", 24);
	if (bytes >> 33) { /* eight octets behind a mark */
		block[124] = 0x80;
		for (int i = 0; i < 8; i++)
			block[135 - i] = (unsigned char)(bytes >> 8 * i);
	} else {
		snprintf((char *)block + 124, 12, "%011llo", (unsigned long long)bytes);
	}
	memcpy(block + 136, "00000000000", 12);
	memset(block + 148, ' ', 8);
	block[156] = (unsigned char)type;
	memcpy(block + 257, "ustar\00000", 8);
	unsigned sum = 0;
	for (int i = 0; i < 512; i++)
		sum += block[i];
	snprintf((char *)block + 148, 8, "%06o", sum);
}

void dataset_write_member(FILE *tar, char type, const char *name, const void *bytes, size_t length)
{
	static const char zeros[512];
	unsigned char block[512];
	if (strlen(name) > 100) /* GNU's way */
		dataset_write_member(tar, 'L', "././@LongLink", name, strlen(name) + 1);
	dataset_tar_header(block, type, name, length);
	fwrite(block, 1, 512, tar);
	fwrite(bytes, 1, length, tar);
	fwrite(zeros, 1, (512 - length % 512) % 512, tar);
}

static void write_tar(const char *directory, const struct dataset_item *items, int count)
{
	FILE *tar = create(directory, "set.tar");
	for (int i = 0; i < count; i++) {
		char name[512], *second = second_caption(&items[i]);
		beside(items[i].path, dataset_keys[0], name);
		dataset_write_member(tar, '0', name, items[i].captions[0], strlen(items[i].captions[0]));
		dataset_write_member(tar, '0', items[i].path, items[i].path, strlen(items[i].path));
		beside(items[i].path, "json", name);
		dataset_write_member(tar, '0', name, second, strlen(second));
		free(second);
	}
	static const char end[1024];
	fwrite(end, 1, sizeof(end), tar);
	fclose(tar);
}

const struct dataset_format dataset_formats[DATASET_FORMATS] = {
    {"JSON", "data_info.json", write_json}, {"JSON Lines", "list.jsonl", write_lines},
    {"CSV", "list.csv", write_csv},         {"TSV", "list.tsv", write_tsv},
    {"folder", "", write_directory},        {"tar", "set.tar", write_tar},
};

struct smalti_dataset *dataset_open(const char *directory, const char *file, bool images,
				    struct smalti_error *error)
{
	static char path[1024];
	snprintf(path, sizeof(path), "%s%s%s", directory, *file ? "/" : "", file);
	const struct smalti_dataset_options options = {.paths = (const char *const[]){path},
						       .path_count = 1,
						       .captions = {dataset_keys[0], dataset_keys[1]},
						       .caption_count = DATASET_CAPTIONS,
						       .images = images};
	return smalti_dataset_open(&options, error);
}
