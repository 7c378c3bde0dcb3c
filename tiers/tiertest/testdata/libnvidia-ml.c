/*
 * A library NVML for tests, with the cards of libcuda.c, whose memory and copies it counts if the process uses them:
 *
 *   FAKECUDA_CARDS    number of cards, default 2
 *   FAKECUDA_MEMORY   bytes of each card, default 1 GiB
 *   FAKENVML_OLD      set: the PCIe counters have 32 bits
 */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

enum { OK = 0, INVALID = 2, NOT_SUPPORTED = 3 };
enum { RX_BYTES = 198, TX_BYTES = 197, UNSIGNED_INT = 1, UNSIGNED_LONG_LONG = 3 };

struct memory { unsigned long long total, free, used; };
struct pci { char legacy[16]; unsigned domain, bus, device, id, subsystem; char bus_id[32]; };
struct field { unsigned id, scope; long long time, latency; unsigned type, result; unsigned long long value; };

static char cards[8]; /* a handle is an address in here */

static long setting(const char *name, long otherwise)
{
	const char *text = getenv(name);
	return text && *text ? atol(text) : otherwise;
}

static long long cuda(const char *what, char *card)
{
	void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
	long long (*function)(const char *, int) = library ? dlsym(library, "fakecuda_count") : NULL;
	return function ? function(what, card - cards) : 0;
}

int nvmlInit_v2(void) { return OK; }
int nvmlShutdown(void) { return OK; }
const char *nvmlErrorString(int code) { return code ? "an error of the fake NVML" : "Success"; }
int nvmlSystemGetDriverVersion(char *text, unsigned n) { snprintf(text, n, "580.95.05"); return OK; }
int nvmlDeviceGetCount_v2(unsigned *n) { *n = setting("FAKECUDA_CARDS", 2); return OK; }

int nvmlDeviceGetHandleByIndex_v2(unsigned i, char **card)
{
	*card = cards + i;
	return i < setting("FAKECUDA_CARDS", 2) ? OK : INVALID;
}

int nvmlDeviceGetName(char *card, char *text, unsigned n) { snprintf(text, n, "Fake Card %d", (int)(card - cards)); return OK; }
int nvmlDeviceGetUUID(char *card, char *text, unsigned n) { snprintf(text, n, "GPU-%d", (int)(card - cards)); return OK; }

int nvmlDeviceGetMemoryInfo(char *card, struct memory *m)
{
	m->total = setting("FAKECUDA_MEMORY", 1L << 30);
	m->used = cuda("used", card);
	m->free = m->total - m->used;
	return OK;
}

int nvmlDeviceGetPciInfo_v3(char *card, struct pci *p)
{
	*p = (struct pci){.bus = 0x81 + (card - cards)};
	return OK;
}

int nvmlDeviceGetCurrPcieLinkGeneration(char *card, unsigned *n) { *n = 5; return OK; }
int nvmlDeviceGetMaxPcieLinkGeneration(char *card, unsigned *n) { *n = 5; return OK; }
int nvmlDeviceGetCurrPcieLinkWidth(char *card, unsigned *n) { *n = 8; return OK; }
int nvmlDeviceGetMaxPcieLinkWidth(char *card, unsigned *n) { *n = 16; return OK; }

int nvmlDeviceGetFieldValues(char *card, int n, struct field *f)
{
	for (int i = 0; i < n; i++) {
		f[i].result = f[i].id == RX_BYTES || f[i].id == TX_BYTES ? OK : NOT_SUPPORTED;
		f[i].type = getenv("FAKENVML_OLD") ? UNSIGNED_INT : UNSIGNED_LONG_LONG;
		f[i].value = cuda(f[i].id == RX_BYTES ? "received" : "sent", card);
	}
	return OK;
}
