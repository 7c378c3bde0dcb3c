//go:build cgo && linux

package nvml

/*
#cgo LDFLAGS: -ldl
#include <dlfcn.h>

// The structures of nvml.h.
struct memory { unsigned long long total, free, used; };
struct pci { char legacy[16]; unsigned domain, bus, device, id, subsystem; char bus_id[32]; };
struct field {
	unsigned id, scope;
	long long time, latency;
	unsigned type, result;
	unsigned long long value;
};

#define FUNCTIONS \
	F(nvmlInit_v2, (void)) \
	F(nvmlSystemGetDriverVersion, (char *text, unsigned length)) \
	F(nvmlDeviceGetCount_v2, (unsigned *count)) \
	F(nvmlDeviceGetHandleByIndex_v2, (unsigned index, void **card)) \
	F(nvmlDeviceGetName, (void *card, char *text, unsigned length)) \
	F(nvmlDeviceGetUUID, (void *card, char *text, unsigned length)) \
	F(nvmlDeviceGetMemoryInfo, (void *card, struct memory *m)) \
	F(nvmlDeviceGetPciInfo_v3, (void *card, struct pci *p)) \
	F(nvmlDeviceGetCurrPcieLinkGeneration, (void *card, unsigned *n)) \
	F(nvmlDeviceGetMaxPcieLinkGeneration, (void *card, unsigned *n)) \
	F(nvmlDeviceGetCurrPcieLinkWidth, (void *card, unsigned *n)) \
	F(nvmlDeviceGetMaxPcieLinkWidth, (void *card, unsigned *n)) \
	F(nvmlDeviceGetFieldValues, (void *card, int count, struct field *f))

#define F(name, arguments) static int (*name)arguments;
FUNCTIONS
#undef F
static const char *(*nvmlErrorString)(int code);

static const char *load(void) {
	void *library = dlopen("libnvidia-ml.so.1", RTLD_NOW);
	if (!library || !(nvmlErrorString = dlsym(library, "nvmlErrorString")))
		return dlerror();
#define F(name, arguments) if (!(name = dlsym(library, #name))) return dlerror();
	FUNCTIONS
#undef F
	int code = nvmlInit_v2();
	return code ? nvmlErrorString(code) : 0;
}

struct card {
	char driver[96], name[96], uuid[96];
	struct memory memory;
	struct pci pci;
	unsigned generation, most_generation, width, most_width;
	struct field received, sent;
};

static unsigned count(void) {
	unsigned n = 0;
	nvmlDeviceGetCount_v2(&n);
	return n;
}

// What the library refuses remains 0.
static void describe(unsigned index, struct card *c) {
	void *card;
	if (nvmlDeviceGetHandleByIndex_v2(index, &card))
		return;
	nvmlSystemGetDriverVersion(c->driver, sizeof c->driver);
	nvmlDeviceGetName(card, c->name, sizeof c->name);
	nvmlDeviceGetUUID(card, c->uuid, sizeof c->uuid);
	nvmlDeviceGetMemoryInfo(card, &c->memory);
	nvmlDeviceGetPciInfo_v3(card, &c->pci);
	nvmlDeviceGetCurrPcieLinkGeneration(card, &c->generation);
	nvmlDeviceGetMaxPcieLinkGeneration(card, &c->most_generation);
	nvmlDeviceGetCurrPcieLinkWidth(card, &c->width);
	nvmlDeviceGetMaxPcieLinkWidth(card, &c->most_width);
	c->received.id = 198; // NVML_FI_DEV_PCIE_COUNT_RX_BYTES
	c->sent.id = 197;     // NVML_FI_DEV_PCIE_COUNT_TX_BYTES
	nvmlDeviceGetFieldValues(card, 1, &c->received);
	nvmlDeviceGetFieldValues(card, 1, &c->sent);
}
*/
import "C"

import (
	"fmt"
	"sync"

	"kvbench/tracing/host"
)

// start loads the library and starts it, once per process.
var start = sync.OnceValue(func() error {
	if why := C.load(); why != nil {
		return fmt.Errorf("NVML: %s; libnvidia-ml.so.1 comes with the NVIDIA driver", C.GoString(why))
	}
	return nil
})

// Cards returns the cards of this machine.
func Cards() (list []Card, err error) {
	if err := start(); err != nil {
		return nil, err
	}
	for i := range C.count() {
		var c C.struct_card
		C.describe(i, &c)
		card := Card{Name: C.GoString(&c.name[0]), UUID: C.GoString(&c.uuid[0]),
			Driver:        C.GoString(&c.driver[0]),
			Address:       fmt.Sprintf("%04x:%02x:%02x.0", c.pci.domain, c.pci.bus, c.pci.device),
			ReceivedBytes: counter(c.received), SentBytes: counter(c.sent), Source: "NVML"}
		if c.memory.total > 0 {
			card.MemoryBytes, card.UsedBytes = new(int64(c.memory.total)), new(int64(c.memory.used))
		}
		if c.generation > 0 && c.width > 0 {
			card.Link = &host.Link{Address: card.Address, Generation: int(c.generation), Width: int(c.width),
				MaxGeneration: int(c.most_generation), MaxWidth: int(c.most_width)}
		}
		list = append(list, card)
	}
	return list, nil
}

// counter returns a counter, nil if the card has none, or one of 32 bits, which overflows within a second.
func counter(f C.struct_field) *int64 {
	const long, longLong = 2, 3 // nvmlValueType_t
	if f.result != 0 || f._type != long && f._type != longLong {
		return nil
	}
	return new(int64(f.value))
}
