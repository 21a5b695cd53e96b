/* SPDX-License-Identifier: Apache-2.0
 *
 * What a server decides before anything is computed: what a request says, who may wait, where it listens.
 */
#include "base/base64.h"
#include "harness.h"
#include "serve/serve.h"
#include "trace/recent.h"

static const struct smalti_serve_options options = {.width = 1024,
						    .height = 512,
						    .steps = 50,
						    .images = 5,
						    .limits = {.waiting = 6, .of_client = 4},
						    .request = {.images = 1, .steps = 20, .guidance = 4.5}};

static int read_body(struct smalti_serve_request *request, const char *body, struct smalti_error *error)
{
	return smalti_serve_request_read(request, body, strlen(body), &options, "tesserae", error);
}

static void requests_are_read(void)
{
	static const struct {
		const char *body;
		int64_t width, height, images, steps;
		double guidance;
		bool stream;
	} cases[] = {
	    {"{\"prompt\":\"a\"}", 0, 0, 1, 20, 4.5, false},
	    {"{\"prompt\":\"a\",\"size\":\"1024x512\",\"n\":4,\"num_inference_steps\":50}", 1024, 512, 4, 50,
	     4.5, false},
	    {"{\"prompt\":\"a\",\"size\":\"auto\",\"n\":null,\"user\":\"me\",\"stream\":true}", 0, 0, 1, 20,
	     4.5, true},
	    {"{\"prompt\":\"a\",\"width\":64,\"height\":32,\"guidance_scale\":0}", 64, 32, 1, 20, 0, false},
	    {"{\"prompt\":\"a\",\"num_images_per_prompt\":3,\"model\":\"tesserae\"}", 0, 0, 3, 20, 4.5,
	     false},
	    {"{\"prompt\":\"a\",\n\t\"seed\":\n5,\r\n \"n\" :\n 2}", 0, 0, 2, 20, 4.5, false},
	    {"{\"prompt\":\"a\",\"width\":64.0,\"height\":3.2e1,\"n\":2.0,\"num_inference_steps\":7.0,"
	     "\"seed\":3.0}",
	     64, 32, 2, 7, 4.5, false},
	    {"{\"prompt\":\"a\",\"width\":null,\"height\":null,\"num_inference_steps\":null,"
	     "\"guidance_scale\":null,\"seed\":null,\"scheduler\":null,\"stream\":null}",
	     0, 0, 1, 20, 4.5, false},
	    {"{\"prompt\":\"a\",\"model\":\"\",\"size\":\"\",\"style\":null,\"partial_images\":0,"
	     "\"output_compression\":100,\"input_fidelity\":null}",
	     0, 0, 1, 20, 4.5, false},
	    {"{\"prompt\":\"a\",\"style\":\"\",\"partial_images\":null,\"output_compression\":null,"
	     "\"input_fidelity\":\"low\",\"model\":null,\"quality\":\"\",\"output_format\":\"\"}",
	     0, 0, 1, 20, 4.5, false},
	    {"{\"prompt\":\"a\",\"response_format\":\"b64_json\",\"quality\":\"auto\",\"output_format\":"
	     "\"png\","
	     "\"background\":\"opaque\",\"moderation\":\"low\"}",
	     0, 0, 1, 20, 4.5, false},
	};
	for (int i = 0; i < COUNT(cases); i++) {
		struct smalti_error error = SMALTI_NO_ERROR;
		struct smalti_serve_request read;
		SUCCEEDS(read_body(&read, cases[i].body, &error), &error, cases[i].body);
		const struct smalti_request *request = &read.request;
		CHECK(request->width == cases[i].width && request->height == cases[i].height, cases[i].body);
		CHECK(request->images == cases[i].images && request->steps == cases[i].steps, cases[i].body);
		CHECK(request->guidance == cases[i].guidance && read.stream == cases[i].stream,
		      cases[i].body);
		smalti_serve_request_free(&read);
	}
}

/* A picture of one pixel. */
#define PNG                                                                                                  \
	"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\1\0\0\0\1\b\2\0\0\0\x90wS\xde\0\0\0\fIDATx\x9c"                 \
	"c\xf8\xcf\xc0\0\0\3\1\1\0\xc9\xfe\x92\xef\0\0\0\0IEND\xae"                                          \
	"B`\x82"
#define PART(name, data) "--x\r\nContent-Disposition: form-data; name=\"" name "\"\r\n\r\n" data "\r\n"

static void forms_are_read(void)
{
	static const struct {
		const char *body;
		size_t length;
		const char *word; /* NULL: it is right */
	} cases[] = {
	    {BYTES(PART("prompt", "12") PART("image", PNG) PART("strength", "0.5") "--x--\r\n"), NULL},
	    {BYTES(PART("image[]", PNG) PART("prompt", "a\r\n--") PART("mask", PNG) "--x--"), NULL},
	    {BYTES(PART("prompt", "a") "--x--\r\n"), "expected a file"},
	    {BYTES(PART("image", PNG) "--x--\r\n"), "\"prompt\""},
	    {BYTES(PART("image", "PNG") PART("prompt", "a") "--x--\r\n"), "image: "},
	    {BYTES(PART("image", PNG) PART("image", PNG) PART("prompt", "a") "--x--\r\n"), "found more"},
	    {BYTES(PART("image", PNG) PART("prompt", "a") PART("n", "1,\"id\":2") "--x--\r\n"), "\"n\""},
	    {BYTES(PART("image", PNG) PART("prompt", "a") PART("prompt", "b") "--x--"), "one such field"},
	    {BYTES(PART("image", PNG) PART("prompt", "a\0b") "--x--"), "without NUL"},
	    {BYTES(PART("image", PNG) PART("prompt", "a")), "end with the delimiter"},
	    {BYTES(PART("image", PNG) "--x"), "end with the delimiter"},
	    {BYTES(PART("image", PNG) "--xx\r\n"), "end of line behind"},
	    {BYTES("--x\r\nContent-Type: text/plain\r\n\r\na\r\n--x--"), "name="},
	    {BYTES("--x\r\n"), "end with the delimiter"},
	    {BYTES("--\r\n"), "its delimiter"},
	    {BYTES("{}"), "its delimiter"},
	};
	for (int i = 0; i < COUNT(cases); i++) {
		struct smalti_error error = SMALTI_NO_ERROR;
		struct smalti_serve_request read;
		const int status = smalti_serve_edit_read(&read, cases[i].body, cases[i].length, &options,
							  "tesserae", &error);
		const char *what = cases[i].word ? cases[i].word : "a form";
		if (cases[i].word)
			CHECK(status == -1 && strstr(error.message, cases[i].word), error.message);
		else
			SUCCEEDS(status, &error, what);
		CHECK(status < 0 || (read.request.image && read.request.image_width == 1), what);
		smalti_serve_request_free(&read);
	}
}

static void wrong_requests_say_why(void)
{
	static const struct {
		const char *body;
		enum smalti_code code;
		const char *first, *second;
	} cases[] = {
	    {"", SMALTI_EFORMAT, "not valid JSON", NULL},
	    {"[1]", SMALTI_EFORMAT, "expected an object", "an array"},
	    {"{\"n\":1}", SMALTI_EFORMAT, "\"prompt\"", "missing"},
	    {"{\"prompt\":\"a\",\"steps\":3}", SMALTI_EFORMAT, "unknown key \"steps\"",
	     "num_inference_steps"},
	    {"{\"prompt\":\"a\",\"n\":5}", SMALTI_EINVAL, "\"n\" is 5", "4 at most"},
	    {"{\"prompt\":\"a\",\"n\":0}", SMALTI_EFORMAT, "\"n\"", "0"},
	    {"{\"prompt\":\"a\",\"n\":1,\"num_images_per_prompt\":1}", SMALTI_EINVAL, "\"n\"", "exclude"},
	    {"{\"prompt\":\"a\",\"num_inference_steps\":51}", SMALTI_EINVAL, "51", "50 at most"},
	    {"{\"prompt\":\"a\",\"size\":\"2048x64\"}", SMALTI_EINVAL, "\"width\" is 2048", "1024 at most"},
	    {"{\"prompt\":\"a\",\"size\":\"64x1024\"}", SMALTI_EINVAL, "\"height\" is 1024", "512 at most"},
	    {"{\"prompt\":\"a\",\"size\":\"8x64\"}", SMALTI_EINVAL, "\"size\"", "16"},
	    {"{\"prompt\":\"a\",\"size\":\"large\"}", SMALTI_EINVAL, "\"size\"", "large"},
	    {"{\"prompt\":\"a\",\"size\":\"64x64\",\"width\":64}", SMALTI_EINVAL, "\"size\"", "exclude"},
	    {"{\"prompt\":\"a\",\"model\":\"dall-e-3\"}", SMALTI_ENOENT, "dall-e-3", "tesserae"},
	    {"{\"prompt\":\"a\",\"response_format\":\"url\"}", SMALTI_EUNSUPPORTED, "response_format", "url"},
	    {"{\"prompt\":\"a\",\"guidance_scale\":NaN}", SMALTI_EFORMAT, "guidance_scale", "found NaN"},
	    {"{\"prompt\":\"a\",\"width\":32.5,\"height\":32}", SMALTI_EFORMAT, "width", "found 32.5"},
	    {"{\"prompt\":\"a\",\"style\":\"vivid\"}", SMALTI_EUNSUPPORTED, "style", "vivid"},
	    {"{\"prompt\":\"a\",\"partial_images\":2}", SMALTI_EUNSUPPORTED, "partial_images", "2"},
	    {"{\"prompt\":\"a\",\"output_compression\":50}", SMALTI_EUNSUPPORTED, "compression", "50"},
	    {"{\"prompt\":\"a\",\"input_fidelity\":\"high\"}", SMALTI_EUNSUPPORTED, "fidelity", "high"},
	    {"{\"prompt\":\"a\",\"stream\":1}", SMALTI_EFORMAT, "stream", "1"},
	    {"{\"prompt\":\"\\ud800\"}", SMALTI_EFORMAT, "JSON", NULL},
	};
	for (int i = 0; i < COUNT(cases); i++) {
		struct smalti_error error = SMALTI_NO_ERROR;
		struct smalti_serve_request read;
		const int status = read_body(&read, cases[i].body, &error);
		FAILS(status, &error, cases[i].code, cases[i].body, cases[i].first, cases[i].second, NULL);
		smalti_serve_request_free(&read);
	}
}

struct waiter {
	const char *client;
	int64_t images;
};

static void put_all(struct smalti_serve_queue *queue, struct smalti_serve_waiting *waiting,
		    const struct waiter *waiters, int count)
{
	for (int i = 0; i < count; i++) {
		waiting[i] = (struct smalti_serve_waiting){.images = waiters[i].images};
		CHECK(smalti_serve_queue_put(queue, waiters[i].client, i, &waiting[i]) ==
			  SMALTI_SERVE_ADMITTED,
		      waiters[i].client);
	}
}

static void models_have_names(void)
{
	static const char hash[] = "0123456789abcdef0123456789abcdef01234567";
	static const char *const cases[][2] = {
	    {"/a/models/tesserae", "tesserae"},
	    {"tesserae", "tesserae"},
	    {"/", ""},
	    {"/hub/models--org--some-name/snapshots/%s", "org/some-name"},
	    {"/hub/models--name/snapshots/%s", "name"},
	    {"/hub/models--a--b/snapshots/%s/transformer", "transformer"},
	    {"/models--a--b/snapshots", "snapshots"},
	    {"/hub/mine/snapshots/%s", hash},
	    {"snapshots/%s", hash},
	    {"models--a--b/snapshots/%s", "a/b"},
	};
	for (int i = 0; i < COUNT(cases); i++) {
		struct smalti_error error = SMALTI_NO_ERROR;
		const char *place = strchr(cases[i][0], '%');
		char path[200];
		snprintf(path, sizeof(path), "%.*s%s%s", place ? (int)(place - cases[i][0]) : 200,
			 cases[i][0], place ? hash : "", place ? place + 2 : "");
		char *name = smalti_serve_model_name(path, &error);
		CHECK(name && strcmp(name, cases[i][1]) == 0, path);
		free(name);
	}
}

/* Image by image: who asked for much waits behind who asked for little. */
static void clients_take_turns(void)
{
	static const struct waiter waiters[] = {{"a", 4}, {"a", 1}, {"b", 1}, {"c", 2}, {"c", 1}};
	static const struct {
		int request;
		int64_t turn;
	} order[] = {{0, 1}, {2, 1}, {3, 1}, {1, 2}, {4, 2}, {0, 3}, {3, 3}, {0, 4}, {0, 5}};
	struct smalti_serve_waiting waiting[COUNT(waiters)], late = {.images = 1};
	struct smalti_serve_queue queue;
	smalti_serve_queue_open(&queue, &(struct smalti_serve_limits){.waiting = 100, .of_client = 100});
	put_all(&queue, waiting, waiters, COUNT(waiters));
	CHECK(queue.waiting == 9 && smalti_serve_queue_untouched(&queue) == &waiting[0], "images");
	for (int i = 0; i < COUNT(order); i++) {
		const struct smalti_serve_waiting *taken = smalti_serve_queue_take(&queue);
		const int request = order[i].request;
		CHECK(taken == &waiting[request] && taken->turn == order[i].turn, "an image");
		CHECK(taken->taken + taken->images == waiters[request].images, "of so many");
		CHECK(taken->waits == (taken->images > 0), "it leaves with its last image");
	}
	CHECK(!smalti_serve_queue_take(&queue) && queue.waiting == 0, "empty");
	CHECK(!smalti_serve_queue_untouched(&queue), "nothing has not begun");
	smalti_serve_queue_done(&queue, &waiting[1], 2);
	smalti_serve_queue_done(&queue, &waiting[0], 1);
	CHECK(smalti_serve_queue_put(&queue, "b", 9, &late) == SMALTI_SERVE_ADMITTED, "one more");
	CHECK(smalti_serve_queue_take(&queue)->turn == 3, "it goes before the last two, not before all");
	smalti_serve_queue_close(&queue);
}

/* Who has enough in work waits for his own, and holds up nobody. */
static void a_place_is_left_for_others(void)
{
	static const struct waiter waiters[] = {{"a", 4}, {"b", 1}, {"c", 1}};
	struct smalti_serve_waiting waiting[COUNT(waiters)];
	struct smalti_serve_queue queue;
	smalti_serve_queue_open(&queue,
				&(struct smalti_serve_limits){.waiting = 100, .of_client = 100, .active = 2});
	put_all(&queue, waiting, waiters, 1);
	for (int i = 0; i < 2; i++)
		CHECK(smalti_serve_queue_take(&queue) == &waiting[0], "a has room");
	CHECK(!smalti_serve_queue_take(&queue) && queue.waiting == 2, "a has two in work");
	put_all(&queue, waiting + 1, waiters + 1, 2);
	CHECK(smalti_serve_queue_take(&queue) == &waiting[1], "b");
	smalti_serve_queue_done(&queue, &waiting[0], 1);
	CHECK(smalti_serve_queue_take(&queue) == &waiting[0], "a has room again");
	CHECK(smalti_serve_queue_take(&queue) == &waiting[2], "c");
	CHECK(!smalti_serve_queue_take(&queue) && queue.waiting == 1, "one of a");
	CHECK(smalti_serve_queue_leave(&queue, &waiting[0]), "it leaves");
	smalti_serve_queue_close(&queue);
}

/* Those whose clients are gone make room at once. */
static void who_leaves_does_not_wait(void)
{
	static const struct waiter waiters[] = {{"a", 4}, {"a", 3}, {"b", 3}};
	struct smalti_serve_waiting waiting[COUNT(waiters)], late = {.images = 4};
	struct smalti_serve_queue queue;
	smalti_serve_queue_open(&queue, &(struct smalti_serve_limits){.waiting = 10, .of_client = 7});
	put_all(&queue, waiting, waiters, COUNT(waiters));
	CHECK(smalti_serve_queue_put(&queue, "a", 5, &late) == SMALTI_SERVE_TOO_MANY, "a has enough");
	CHECK(smalti_serve_queue_put(&queue, "c", 5, &late) == SMALTI_SERVE_FULL, "it is full");
	CHECK(smalti_serve_queue_take(&queue) == &waiting[0], "one image of the first");
	CHECK(smalti_serve_queue_leave(&queue, &waiting[0]), "the rest of it");
	CHECK(!smalti_serve_queue_leave(&queue, &waiting[0]), "once");
	CHECK(smalti_serve_queue_put(&queue, "a", 5, &late) == SMALTI_SERVE_ADMITTED, "there is room");
	CHECK(smalti_serve_queue_leave(&queue, &waiting[1]) && smalti_serve_queue_leave(&queue, &late), "a");
	for (int i = 0; i < 3; i++)
		CHECK(smalti_serve_queue_take(&queue) == &waiting[2], "those of b");
	CHECK(!smalti_serve_queue_take(&queue) && queue.waiting == 0, "empty");
	smalti_serve_queue_close(&queue);
}

/* With more addresses than are remembered nobody is turned away, and who has asked for most is remembered. */
static void strangers_are_forgotten_first(void)
{
	enum { STRANGERS = 10000 };
	struct smalti_serve_queue queue;
	smalti_serve_queue_open(&queue,
				&(struct smalti_serve_limits){.waiting = 6, .of_client = 3, .rate = 2});
	for (int i = 0; i < STRANGERS + 2; i++) {
		char name[32];
		struct smalti_serve_waiting waiting = {.images = 1};
		snprintf(name, sizeof(name), i < 2 ? "greedy" : "%d", i);
		CHECK(smalti_serve_queue_put(&queue, name, 0, &waiting) == SMALTI_SERVE_ADMITTED, name);
		CHECK(smalti_serve_queue_take(&queue) == &waiting, name);
		smalti_serve_queue_done(&queue, &waiting, waiting.turn);
	}
	struct smalti_serve_waiting waiting = {.images = 1};
	CHECK(queue.client_count < STRANGERS, "memory is bounded");
	CHECK(smalti_serve_queue_put(&queue, "greedy", 0, &waiting) == SMALTI_SERVE_TOO_FAST, "greedy");
	smalti_serve_queue_close(&queue);
}

static void limits_hold(void)
{
	static const struct {
		const char *client;
		double now;
		int64_t images;
		enum smalti_serve_admission admission;
	} cases[] = {
	    {"a", 0, 3, SMALTI_SERVE_ADMITTED},  {"a", 0, 1, SMALTI_SERVE_TOO_MANY},
	    {"b", 0, 2, SMALTI_SERVE_ADMITTED},  {"c", 0, 2, SMALTI_SERVE_FULL},
	    {"b", 1, 1, SMALTI_SERVE_ADMITTED},  {"b", 2, 1, SMALTI_SERVE_TOO_FAST},
	    {"b", 31, 1, SMALTI_SERVE_TOO_MANY}, /* two in a minute: one more after half of it */
	    {"c", 31, 1, SMALTI_SERVE_FULL},
	};
	struct smalti_serve_waiting waiting[COUNT(cases)];
	struct smalti_serve_queue queue;
	smalti_serve_queue_open(&queue,
				&(struct smalti_serve_limits){.waiting = 6, .of_client = 3, .rate = 2});
	for (int i = 0; i < COUNT(cases); i++) {
		char what[32];
		snprintf(what, sizeof(what), "case %d", i);
		waiting[i] = (struct smalti_serve_waiting){.images = cases[i].images};
		CHECK(smalti_serve_queue_put(&queue, cases[i].client, cases[i].now, &waiting[i]) ==
			  cases[i].admission,
		      what);
	}
	for (int i = 0; i < 6; i++) {
		const struct smalti_serve_waiting *taken = smalti_serve_queue_take(&queue);
		CHECK(taken, "what was admitted");
		smalti_serve_queue_done(&queue, taken, taken->turn);
	}
	CHECK(smalti_serve_queue_put(&queue, "d", 1000, &waiting[0]) == SMALTI_SERVE_ADMITTED, "room again");
	CHECK(queue.client_count == 1, "clients without anything to remember are forgotten");
	CHECK(smalti_serve_queue_take(&queue) == &waiting[0], "d");
	smalti_serve_queue_close(&queue);
}

static void addresses_are_read(void)
{
	static const struct {
		const char *text;
		int family; /* 0: refused */
		uint16_t port;
		bool local;
	} cases[] = {
	    {"127.0.0.1:8000", AF_INET, 8000, true},
	    {"localhost:0", AF_INET, 0, true},
	    {"127.9.9.9:1", AF_INET, 1, true},
	    {"0.0.0.0:80", AF_INET, 80, false},
	    {"10.1.2.3:65535", AF_INET, 65535, false},
	    {"[::1]:8000", AF_INET6, 8000, true},
	    {"[::]:8000", AF_INET6, 8000, false},
	    {"127.0.0.1", 0, 0, false},
	    {":8000", 0, 0, false},
	    {"127.0.0.1:65536", 0, 0, false},
	    {"127.0.0.1:-1", 0, 0, false},
	    {"::1:8000", 0, 0, false},
	    {"[]:8000", 0, 0, false},
	    {"example:8000", 0, 0, false},
	    {"", 0, 0, false},
	};
	for (int i = 0; i < COUNT(cases); i++) {
		struct smalti_serve_address address;
		struct smalti_error error = SMALTI_NO_ERROR;
		const int status = smalti_serve_address_read(&address, cases[i].text, &error);
		if (!cases[i].family) {
			FAILS(status, &error, SMALTI_EINVAL, cases[i].text, "--listen", cases[i].text, NULL);
			continue;
		}
		SUCCEEDS(status, &error, cases[i].text);
		CHECK(address.any.sa_family == cases[i].family && address.local == cases[i].local,
		      cases[i].text);
		CHECK(ntohs(address.four.sin_port) == cases[i].port, cases[i].text);
	}
}

/* A name that a foreign site can have lead here is not of this machine. */
static void names_of_this_machine_are_known(void)
{
	static const struct {
		const char *text;
		bool local;
	} hosts[] =
	    {
		{"localhost", true},
		{"LocalHost:8000", true},
		{"localhost:", true},
		{"127.0.0.1", true},
		{"127.1.2.3:65535", true},
		{"[::1]", true},
		{"[::1]:8000", true},
		{"[0:0:0:0:0:0:0:1]:1", true},
		{"", false},
		{":8000", false},
		{"evil.example", false},
		{"evil.example:8000", false},
		{"localhost.evil.example", false},
		{"127.0.0.1.evil.example", false},
		{"evil.example:127.0.0.1", false},
		{"localhost:8000.evil.example", false},
		{"localhost@evil.example", false},
		{"evil.example#localhost", false},
		{"128.0.0.1", false},
		{"10.0.0.1:8000", false},
		{"0.0.0.0", false},
		{"127.0.0.256", false},
		{"127.0.0.1 ", false},
		{"127.0.0.1,evil.example", false},
		{"2130706433", false},
		{"[", false},
		{"[]", false},
		{"[::]:8000", false},
		{"[::1", false},
		{"[::1]8000", false},
		{"[::1].evil.example", false},
		{"[fe80::1]", false},
		{"::1", false},
		{"[::1%lo]", false},
		{"[0000000000000000000000000000000000000000000000000000000000000000::1]", false},
		{"localhostlocalhostlocalhostlocalhostlocalhostlocalhostlocalhost", false},
	    },
	  origins[] = {
	      {"http://localhost:3000", true},
	      {"HTTPS://127.0.0.1", true},
	      {"http://[::1]:8000", true},
	      {"http://evil.example", false},
	      {"http://localhost.evil.example", false},
	      {"http://localhost:8000/", false},
	      {"http://localhost http://evil.example", false},
	      {"ftp://localhost", false},
	      {"localhost", false},
	      {"null", false},
	      {"", false},
	  };
	for (int i = 0; i < COUNT(hosts); i++)
		CHECK(smalti_serve_is_local(hosts[i].text) == hosts[i].local, hosts[i].text);
	for (int i = 0; i < COUNT(origins); i++)
		CHECK(smalti_serve_is_local_origin(origins[i].text) == origins[i].local, origins[i].text);
}

/* One person has as many IPv6 addresses as he likes, of one network. */
static void a_network_is_one_client(void)
{
	static const struct {
		const char *address, *name;
	} cases[] = {{"[2001:db8:1:2::3]:1", "2001:db8:1:2::"},
		     {"[2001:db8:1:2:ffff:ffff:ffff:ffff]:2", "2001:db8:1:2::"},
		     {"[2001:db8:1:3::3]:1", "2001:db8:1:3::"},
		     {"10.1.2.3:4", "10.1.2.3"}};
	for (int i = 0; i < COUNT(cases); i++) {
		struct smalti_serve_address address;
		struct smalti_error error = SMALTI_NO_ERROR;
		char name[INET6_ADDRSTRLEN];
		SUCCEEDS(smalti_serve_address_read(&address, cases[i].address, &error), &error,
			 cases[i].address);
		smalti_serve_address_name(&address.any, name);
		CHECK(strcmp(name, cases[i].name) == 0, cases[i].address);
	}
}

/* Those of RFC 4648. */
static void base64_is_as_the_standard_says(void)
{
	static const char *const cases[][2] = {{"", ""},
					       {"f", "Zg=="},
					       {"fo", "Zm8="},
					       {"foo", "Zm9v"},
					       {"foob", "Zm9vYg=="},
					       {"fooba", "Zm9vYmE="},
					       {"foobar", "Zm9vYmFy"},
					       {"\xff\xfe\xfd", "//79"}};
	for (int i = 0; i < COUNT(cases); i++) {
		struct smalti_error error = SMALTI_NO_ERROR;
		char *text = smalti_base64(cases[i][0], (int64_t)strlen(cases[i][0]), &error);
		CHECK(text && strcmp(text, cases[i][1]) == 0, cases[i][1]);
		free(text);
	}
}

/* The last ones are kept, and read from any of them on. */
static void recent_tasks_are_kept(void)
{
	struct smalti_session session = {0};
	struct smalti_error error = SMALTI_NO_ERROR;
	struct smalti_recent_task tasks[8];
	FAILS(smalti_recent_keep(&session, INT64_MAX, &error), &error, SMALTI_EINVAL, "too many", "kept",
	      NULL, NULL);
	error = (struct smalti_error)SMALTI_NO_ERROR;
	SUCCEEDS(smalti_recent_keep(&session, 4, &error), &error, "recent tasks");
	static const struct {
		int64_t from, max, count, first, next;
	} cases[] = {
	    {0, 8, 4, 2, 6}, {3, 2, 2, 3, 5}, {6, 8, 0, 0, 6}, {INT64_MAX, 8, 4, 2, 6}, {7, 8, 4, 2, 6}};
	int64_t from = 1000000;
	CHECK(smalti_recent_read(session.recent, &from, 8, tasks) == 0 && from == 0, "none");
	for (int i = 0; i < 6; i++)
		smalti_recent_add(session.recent, i % 2, "matmul", "image 1", 0.5);
	for (int i = 0; i < COUNT(cases); i++) {
		from = cases[i].from;
		const int64_t count = smalti_recent_read(session.recent, &from, cases[i].max, tasks);
		CHECK(count == cases[i].count && from == cases[i].next, "how many there are");
		CHECK(!count || tasks[0].number == cases[i].first, "the first one");
	}
	from = 0;
	smalti_recent_read(session.recent, &from, 8, tasks);
	CHECK(tasks[3].worker == 1 && tasks[3].ended - tasks[3].began == 0.5, "the last one");
	smalti_recent_free(session.recent);
}

static const struct test tests[] = {
    {"requests are read", requests_are_read},
    {"forms are read", forms_are_read},
    {"wrong requests say why", wrong_requests_say_why},
    {"models have names", models_have_names},
    {"clients take turns", clients_take_turns},
    {"a place is left for others", a_place_is_left_for_others},
    {"who leaves does not wait", who_leaves_does_not_wait},
    {"strangers are forgotten first", strangers_are_forgotten_first},
    {"limits hold", limits_hold},
    {"addresses are read", addresses_are_read},
    {"a network is one client", a_network_is_one_client},
    {"names of this machine are known", names_of_this_machine_are_known},
    {"base64 is as the standard says", base64_is_as_the_standard_says},
    {"recent tasks are kept", recent_tasks_are_kept},
};

TEST_PROGRAM()
{
	return test_main("serve", tests, COUNT(tests));
}
