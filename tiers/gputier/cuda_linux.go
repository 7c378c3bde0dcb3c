//go:build cgo && linux

package gputier

/*
#cgo LDFLAGS: -ldl
#include <dlfcn.h>
#include <stddef.h>

#define FUNCTIONS \
	F(cuInit, (unsigned flags)) \
	F(cuDriverGetVersion, (int *version)) \
	F(cuGetErrorName, (int code, const char **name)) \
	F(cuGetErrorString, (int code, const char **text)) \
	F(cuDeviceGetCount, (int *count)) \
	F(cuDeviceGet, (int *device, int ordinal)) \
	F(cuDeviceGetName, (char *name, int length, int device)) \
	F(cuDeviceGetPCIBusId, (char *id, int length, int device)) \
	F(cuDevicePrimaryCtxRetain, (void **context, int device)) \
	F(cuDevicePrimaryCtxRelease_v2, (int device)) \
	F(cuCtxSetCurrent, (void *context)) \
	F(cuMemGetInfo_v2, (size_t *free, size_t *total)) \
	F(cuMemAlloc_v2, (unsigned long long *at, size_t bytes)) \
	F(cuMemFree_v2, (unsigned long long at)) \
	F(cuMemHostRegister_v2, (void *at, size_t bytes, unsigned flags)) \
	F(cuMemHostUnregister, (void *at)) \
	F(cuMemcpyHtoDAsync_v2, (unsigned long long to, const void *from, size_t bytes, void *stream)) \
	F(cuMemcpyDtoHAsync_v2, (void *to, unsigned long long from, size_t bytes, void *stream)) \
	F(cuStreamSynchronize, (void *stream))

#define F(name, arguments) static int (*name)arguments;
FUNCTIONS
#undef F

static const char *load(void) {
	void *library = dlopen("libcuda.so.1", RTLD_NOW);
	if (!library)
		return dlerror();
#define F(name, arguments) if (!(name = dlsym(library, #name))) return dlerror();
	FUNCTIONS
#undef F
	return NULL;
}

static int init(void) { return cuInit(0); }
static int version(int *v) { return cuDriverGetVersion(v); }
static int devices(int *n) { return cuDeviceGetCount(n); }
static int get(int *device, int i) { return cuDeviceGet(device, i); }
static int name(char *text, int n, int device) { return cuDeviceGetName(text, n, device); }
static int bus(char *text, int n, int device) { return cuDeviceGetPCIBusId(text, n, device); }
static int retain(void **context, int device) { return cuDevicePrimaryCtxRetain(context, device); }
static int release(int device) { return cuDevicePrimaryCtxRelease_v2(device); }

static void explain(int code, const char **name, const char **text) {
	cuGetErrorName(code, name);
	cuGetErrorString(code, text);
}

// A context is current on one thread, and each call may be on another one.
#define IN(context, call) int code = cuCtxSetCurrent(context); return code ? code : (call)

static int info(void *context, size_t *free, size_t *total) { IN(context, cuMemGetInfo_v2(free, total)); }
static int take(void *context, unsigned long long *at, size_t n) { IN(context, cuMemAlloc_v2(at, n)); }
static int give(void *context, unsigned long long at) { IN(context, cuMemFree_v2(at)); }

// Memory is registered for the contexts of all cards (CU_MEMHOSTREGISTER_PORTABLE).
static int pin(void *context, void *at, size_t n) { IN(context, cuMemHostRegister_v2(at, n, 1)); }
static int unpin(void *context, void *at) { IN(context, cuMemHostUnregister(at)); }

// Each thread has a stream of its own (CU_STREAM_PER_THREAD), so that copies do not wait for each other.
static int move(void *context, int write, unsigned long long at, void *host, size_t n) {
	void *stream = (void *)2;
	int code = cuCtxSetCurrent(context);
	if (!code)
		code = write ? cuMemcpyHtoDAsync_v2(at, host, n, stream) : cuMemcpyDtoHAsync_v2(host, at, n, stream);
	return code ? code : cuStreamSynchronize(stream);
}
*/
import "C"

import (
	"cmp"
	"errors"
	"fmt"
	"sync"
	"unsafe"

	"kvbench/tiers"
	"kvbench/tracing/host"
)

// cures are what the user can do about errors, by code.
var cures = map[int]string{
	2: "give a smaller -gpu-mem-gb, or end the processes that use the card (nvidia-smi lists them)",
	46: "another process has the card for itself: end it (nvidia-smi lists it), or allow several with " +
		"nvidia-smi -c 0",
	100: "nvidia-smi -L lists the cards; a container needs --gpus all, and CUDA_VISIBLE_DEVICES hides cards",
	802: "the card's fabric is not ready: see systemctl status nvidia-fabricmanager",
	803: "the driver's library and its kernel module have different versions: restart the machine, or " +
		"start the container anew",
}

// failed returns the error of a call, with the driver's text and the cure. It returns nil for CUDA_SUCCESS.
func failed(code C.int, format string, args ...any) error {
	if code == 0 {
		return nil
	}
	var name, text *C.char
	C.explain(code, &name, &text)
	message := fmt.Sprintf("%s: %s (%s)", fmt.Sprintf(format, args...),
		cmp.Or(C.GoString(name), fmt.Sprint("error ", code)), cmp.Or(C.GoString(text), "unknown to the driver"))
	if cure := cures[int(code)]; cure != "" {
		message += "; " + cure
	}
	return errors.New(message)
}

// start loads the driver's library.
var start = sync.OnceValue(func() error {
	if why := C.load(); why != nil {
		return fmt.Errorf("load the CUDA driver: %s; libcuda.so.1 comes with the NVIDIA driver, in a "+
			"container with --gpus all", C.GoString(why))
	}
	return failed(C.init(), "cuInit")
})

func count() (int, error) {
	if err := start(); err != nil {
		return 0, err
	}
	var n C.int
	err := failed(C.devices(&n), "cuDeviceGetCount")
	return int(n), err
}

// cuda is a device.
type cuda struct {
	index   int
	device  C.int
	context unsafe.Pointer
	at      C.ulonglong // the allocated memory, 0 = none
}

func open(index int) (device, error) {
	if err := start(); err != nil {
		return nil, err
	}
	d := &cuda{index: index}
	err := failed(C.get(&d.device, C.int(index)), "cuDeviceGet of card %d", index)
	if err == nil {
		err = failed(C.retain(&d.context, d.device), "cuDevicePrimaryCtxRetain of card %d", index)
	}
	return d, err
}

func (d *cuda) card() (c Card, err error) {
	var name, address [256]C.char
	var version C.int
	var free, total C.size_t
	for _, code := range []C.int{C.version(&version), C.name(&name[0], 256, d.device),
		C.bus(&address[0], 256, d.device), C.info(d.context, &free, &total)} {
		err = errors.Join(err, failed(code, "describe card %d", d.index))
	}
	return Card{Name: C.GoString(&name[0]), Address: host.PCIAddress(C.GoString(&address[0])),
		CUDA:  fmt.Sprintf("%d.%d", version/1000, version%1000/10),
		Bytes: int64(total), Free: int64(free)}, err
}

func (d *cuda) allocate(bytes int64) error {
	code := C.take(d.context, &d.at, C.size_t(bytes))
	return failed(code, "cuMemAlloc of %d bytes (-gpu-mem-gb) on card %d", bytes, d.index)
}

func (d *cuda) copy(op tiers.Op, off int64, b []byte) error {
	write := C.int(0)
	if op == tiers.Write {
		write = 1
	}
	code := C.move(d.context, write, d.at+C.ulonglong(off), start0(b), C.size_t(len(b)))
	return failed(code, "copy %d bytes (%s) at offset %d of card %d", len(b), op, off, d.index)
}

func start0(b []byte) unsafe.Pointer { return unsafe.Pointer(unsafe.SliceData(b)) }

func (d *cuda) register(b []byte) error {
	return failed(C.pin(d.context, start0(b), C.size_t(len(b))), "cuMemHostRegister of %d bytes", len(b))
}

func (d *cuda) unregister(b []byte) error {
	return failed(C.unpin(d.context, start0(b)), "cuMemHostUnregister")
}

func (d *cuda) close() (err error) {
	if d.at != 0 {
		err = failed(C.give(d.context, d.at), "cuMemFree on card %d", d.index)
		d.at = 0
	}
	return errors.Join(err, failed(C.release(d.device), "cuDevicePrimaryCtxRelease of card %d", d.index))
}
