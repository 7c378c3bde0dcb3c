/*
 * A CUDA driver for tests: cards whose memory is main memory. The environment, which is read at each call, says how it behaves:
 *
 *   FAKECUDA_CARDS    number of cards, default 2
 *   FAKECUDA_MEMORY   bytes of each card, default 1 GiB
 *   FAKECUDA_FAIL     FUNCTION:CODE:N  from its N-th call on, counted from when this was set, a function returns an error
 *   FAKECUDA_SLOW     microseconds that each copy takes longer
 *   FAKECUDA_LOG      file to which each change of what is held is appended: alloc, register or context, and the new count
 *
 * It is strict: copies need a context on their thread and memory that is allocated, and what is freed has to be there.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { OK = 0, INVALID = 1, NO_MEMORY = 2, NO_DEVICE = 100, BAD_DEVICE = 101, NO_CONTEXT = 201, REGISTERED = 712, NOT_REGISTERED = 713 };
enum { CARDS = 8, RANGES = 64 };

static struct range { char *at; size_t bytes; int card; } allocated[RANGES], registered[RANGES];
static int contexts[CARDS]; /* how often each is retained; a context is the address of its count */
static long long moved[CARDS][2]; /* bytes sent and received */
static __thread int *current;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

static long setting(const char *name, long otherwise)
{
	const char *text = getenv(name);
	return text && *text ? atol(text) : otherwise;
}

static void record(const char *what, int count)
{
	const char *path = getenv("FAKECUDA_LOG");
	FILE *f = path && *path ? fopen(path, "a") : NULL;
	if (f) {
		fprintf(f, "%s %d\n", what, count);
		fclose(f);
	}
}

static int failure(const char *function)
{
	static char before[256];
	static int calls;
	const char *text = getenv("FAKECUDA_FAIL");
	size_t n = strlen(function);
	int code = 0, from = 0, result = OK;
	if (!text || !*text)
		return OK;
	pthread_mutex_lock(&mutex);
	if (strcmp(before, text)) {
		snprintf(before, sizeof before, "%s", text);
		calls = 0;
	}
	if (!strncmp(text, function, n) && text[n] == ':' && sscanf(text + n, ":%d:%d", &code, &from) == 2 && ++calls >= from)
		result = code;
	pthread_mutex_unlock(&mutex);
	return result;
}

#define MAY_FAIL do { int code = failure(__func__); if (code) return code; } while (0)

static int add(struct range *list, const char *what, char *at, size_t bytes, int card)
{
	int count = 0, free = -1;
	for (int i = 0; i < RANGES; i++) {
		if (list[i].at)
			count++;
		else
			free = i;
		if (list[i].at && at < list[i].at + list[i].bytes && list[i].at < at + bytes)
			return REGISTERED;
	}
	if (free < 0)
		return NO_MEMORY;
	list[free] = (struct range){at, bytes, card};
	record(what, count + 1);
	return OK;
}

static int drop(struct range *list, const char *what, char *at)
{
	int count = 0, found = 0;
	for (int i = 0; i < RANGES; i++) {
		if (list[i].at == at && at) {
			list[i].at = NULL;
			found = 1;
		}
		count += list[i].at != NULL;
	}
	if (found)
		record(what, count);
	return found ? OK : NOT_REGISTERED;
}

static size_t memory(void) { return setting("FAKECUDA_MEMORY", 1L << 30); }

static size_t used(int card)
{
	size_t sum = 0;
	for (int i = 0; i < RANGES; i++)
		if (allocated[i].at && allocated[i].card == card)
			sum += allocated[i].bytes;
	return sum;
}

int cuInit(unsigned flags) { MAY_FAIL; return flags ? INVALID : setting("FAKECUDA_CARDS", 2) ? OK : NO_DEVICE; }
int cuDriverGetVersion(int *version) { MAY_FAIL; *version = 13000; return OK; }
int cuDeviceGetCount(int *count) { MAY_FAIL; *count = setting("FAKECUDA_CARDS", 2); return OK; }

int cuDeviceGet(int *device, int ordinal)
{
	MAY_FAIL;
	*device = ordinal;
	return ordinal < 0 || ordinal >= setting("FAKECUDA_CARDS", 2) ? BAD_DEVICE : OK;
}

int cuDeviceGetName(char *name, int length, int device)
{
	MAY_FAIL;
	snprintf(name, length, "Fake Card %d", device);
	return OK;
}

int cuDeviceGetPCIBusId(char *id, int length, int device)
{
	MAY_FAIL;
	snprintf(id, length, "0000:%02X:00.0", 0x81 + device);
	return OK;
}

int cuDevicePrimaryCtxRetain(void **context, int device)
{
	MAY_FAIL;
	pthread_mutex_lock(&mutex);
	*context = &contexts[device];
	record("context", ++contexts[device]);
	pthread_mutex_unlock(&mutex);
	return OK;
}

int cuDevicePrimaryCtxRelease_v2(int device)
{
	MAY_FAIL;
	pthread_mutex_lock(&mutex);
	int result = contexts[device] ? OK : NO_CONTEXT;
	if (!result)
		record("context", --contexts[device]);
	pthread_mutex_unlock(&mutex);
	return result;
}

int cuCtxSetCurrent(void *context)
{
	MAY_FAIL;
	current = context;
	return !context || *current ? OK : NO_CONTEXT;
}

int cuMemGetInfo_v2(size_t *free, size_t *total)
{
	MAY_FAIL;
	if (!current)
		return NO_CONTEXT;
	pthread_mutex_lock(&mutex);
	*total = memory();
	*free = *total - used(current - contexts);
	pthread_mutex_unlock(&mutex);
	return OK;
}

int cuMemAlloc_v2(unsigned long long *at, size_t bytes)
{
	MAY_FAIL;
	if (!current)
		return NO_CONTEXT;
	int result = NO_MEMORY, card = current - contexts;
	char *mem = NULL;
	pthread_mutex_lock(&mutex);
	if (bytes <= memory() - used(card) && (mem = malloc(bytes)))
		result = add(allocated, "alloc", mem, bytes, card);
	pthread_mutex_unlock(&mutex);
	*at = (unsigned long long)mem;
	return result;
}

int cuMemFree_v2(unsigned long long at)
{
	MAY_FAIL;
	if (!current)
		return NO_CONTEXT;
	pthread_mutex_lock(&mutex);
	int result = drop(allocated, "alloc", (char *)at);
	pthread_mutex_unlock(&mutex);
	if (!result)
		free((char *)at);
	return result;
}

int cuMemHostRegister_v2(void *at, size_t bytes, unsigned flags)
{
	MAY_FAIL;
	if (!current || !flags)
		return current ? INVALID : NO_CONTEXT;
	pthread_mutex_lock(&mutex);
	int result = add(registered, "register", at, bytes, 0);
	pthread_mutex_unlock(&mutex);
	return result;
}

int cuMemHostUnregister(void *at)
{
	MAY_FAIL;
	if (!current)
		return NO_CONTEXT;
	pthread_mutex_lock(&mutex);
	int result = drop(registered, "register", at);
	pthread_mutex_unlock(&mutex);
	return result;
}

static int copy(char *device, char *to, const char *from, size_t bytes)
{
	int result = INVALID;
	if (!current)
		return NO_CONTEXT;
	pthread_mutex_lock(&mutex);
	for (int i = 0; i < RANGES; i++) {
		struct range *r = &allocated[i];
		if (r->at && r->card == current - contexts && device >= r->at && device + bytes <= r->at + r->bytes)
			result = OK;
	}
	pthread_mutex_unlock(&mutex);
	if (result)
		return result;
	if (setting("FAKECUDA_SLOW", 0))
		usleep(setting("FAKECUDA_SLOW", 0));
	memcpy(to, from, bytes);
	__atomic_add_fetch(&moved[current - contexts][to == device], bytes, __ATOMIC_RELAXED);
	return OK;
}

/* What the fake NVML reports. */
long long fakecuda_count(const char *what, int card)
{
	if (!strcmp(what, "used"))
		return used(card);
	return __atomic_load_n(&moved[card][!strcmp(what, "received")], __ATOMIC_RELAXED);
}

int cuMemcpyHtoDAsync_v2(unsigned long long to, const void *from, size_t bytes, void *stream)
{
	MAY_FAIL;
	return stream ? copy((char *)to, (char *)to, from, bytes) : INVALID;
}

int cuMemcpyDtoHAsync_v2(void *to, unsigned long long from, size_t bytes, void *stream)
{
	MAY_FAIL;
	return stream ? copy((char *)from, to, (char *)from, bytes) : INVALID;
}

int cuStreamSynchronize(void *stream) { MAY_FAIL; return stream ? OK : INVALID; }

static const struct { int code; const char *name, *text; } errors[] = {
	{INVALID, "CUDA_ERROR_INVALID_VALUE", "invalid argument"},
	{NO_MEMORY, "CUDA_ERROR_OUT_OF_MEMORY", "out of memory"},
	{46, "CUDA_ERROR_DEVICE_UNAVAILABLE", "CUDA-capable device(s) is/are busy or unavailable"},
	{NO_DEVICE, "CUDA_ERROR_NO_DEVICE", "no CUDA-capable device is detected"},
	{BAD_DEVICE, "CUDA_ERROR_INVALID_DEVICE", "invalid device ordinal"},
	{NO_CONTEXT, "CUDA_ERROR_INVALID_CONTEXT", "invalid device context"},
	{214, "CUDA_ERROR_ECC_UNCORRECTABLE", "uncorrectable ECC error encountered"},
	{700, "CUDA_ERROR_ILLEGAL_ADDRESS", "an illegal memory access was encountered"},
	{800, "CUDA_ERROR_NOT_PERMITTED", "operation not permitted"},
};

int cuGetErrorName(int code, const char **name)
{
	for (size_t i = 0; i < sizeof errors / sizeof *errors; i++)
		if (errors[i].code == code) {
			*name = errors[i].name;
			return OK;
		}
	*name = NULL;
	return INVALID;
}

int cuGetErrorString(int code, const char **text)
{
	for (size_t i = 0; i < sizeof errors / sizeof *errors; i++)
		if (errors[i].code == code) {
			*text = errors[i].text;
			return OK;
		}
	*text = NULL;
	return INVALID;
}
