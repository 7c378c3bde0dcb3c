package ring

import (
	"errors"
	"fmt"
	"sync/atomic"
	"unsafe"

	"golang.org/x/sys/unix"
)

// MaxBuffers is how many registered buffers a Ring can have.
const MaxBuffers = 256

// MaxBuffer is the largest size of a registered buffer, in bytes.
const MaxBuffer = 1 << 30

// Ring is an io_uring.
type Ring struct {
	Mode string // the names of its setup flags: "SINGLE_ISSUER, DEFER_TASKRUN"
	fd   int
	mem  []byte // of both queues
	sqes []byte // of the requests

	// The submission queue: the kernel moves head, we tail.
	sqHead, sqTail *uint32
	requests       []Request
	next           uint32 // tail with what the kernel has not seen yet

	// The completion queue: the kernel moves tail, we head.
	cqHead, cqTail *uint32
	completions    []Completion

	buffers bool       // the table of registered buffers exists
	vec     unix.Iovec // of the buffer being registered: not on a stack, which may move
}

// modes are tried in this order. With SINGLE_ISSUER the kernel takes no locks. With DEFER_TASKRUN it
// completes requests only when the thread asks for events, instead of interrupting it (Linux 6.1).
// COOP_TASKRUN interrupts the thread less than the default (5.19).
var modes = []struct {
	flags uint32
	name  string
}{
	{setupSingleIssuer | setupDeferTaskrun, "SINGLE_ISSUER, DEFER_TASKRUN"},
	{setupSingleIssuer | setupCoopTaskrun, "SINGLE_ISSUER, COOP_TASKRUN"},
	{setupCoopTaskrun, "COOP_TASKRUN"},
	{0, "no flags"},
}

// New makes a Ring with that many submission entries, a power of two up to 4096, and twice as many
// completion entries. The calling goroutine must be locked to its thread and make all further
// calls. The error matches errors.ErrUnsupported if the system has no io_uring or does not allow it.
func New(entries int) (*Ring, error) {
	r := &Ring{}
	var p setup
	var errno unix.Errno
	for _, mode := range modes {
		p = setup{flags: mode.flags | setupSubmitAll}
		var fd uintptr
		fd, _, errno = unix.Syscall(unix.SYS_IO_URING_SETUP, uintptr(entries),
			uintptr(unsafe.Pointer(&p)), 0)
		if r.fd, r.Mode = int(fd), mode.name; errno != unix.EINVAL {
			break
		}
	}
	switch errno {
	case 0:
	case unix.ENOSYS, unix.EPERM, unix.EINVAL, unix.EACCES:
		return nil, fmt.Errorf("io_uring_setup: %w (%w): it needs Linux 5.18, 0 in "+
			"/proc/sys/kernel/io_uring_disabled, and no seccomp filter (such as Docker's) or security "+
			"module that forbids it", errno, errors.ErrUnsupported)
	default:
		return nil, fmt.Errorf("io_uring_setup with %d entries: %w", entries, errno)
	}
	if err := r.share(&p); err != nil {
		return nil, errors.Join(err, r.Close())
	}
	return r, nil
}

// share maps the queues into the process.
func (r *Ring) share(p *setup) (err error) {
	const need = featureSingleMmap | featureNoDrop // both since Linux 5.5
	if p.features&need != need {
		return fmt.Errorf("io_uring of this kernel lacks features (has %#x): %w", p.features,
			errors.ErrUnsupported)
	}
	size := max(p.sq.arrayOrFlags+p.sqEntries*4,
		p.cq.droppedOrEntries+p.cqEntries*uint32(unsafe.Sizeof(Completion{})))
	const prot, flags = unix.PROT_READ | unix.PROT_WRITE, unix.MAP_SHARED | unix.MAP_POPULATE
	if r.mem, err = unix.Mmap(r.fd, offsetRings, int(size), prot, flags); err != nil {
		return fmt.Errorf("map the queues of an io_uring: %w", err)
	}
	r.sqes, err = unix.Mmap(r.fd, offsetEntries,
		int(p.sqEntries)*int(unsafe.Sizeof(Request{})), prot, flags)
	if err != nil {
		return fmt.Errorf("map the requests of an io_uring: %w", err)
	}
	word := func(at uint32) *uint32 { return (*uint32)(unsafe.Pointer(&r.mem[at])) }
	r.sqHead, r.sqTail = word(p.sq.head), word(p.sq.tail)
	r.cqHead, r.cqTail = word(p.cq.head), word(p.cq.tail)
	r.requests = unsafe.Slice((*Request)(unsafe.Pointer(&r.sqes[0])), p.sqEntries)
	r.completions = unsafe.Slice((*Completion)(unsafe.Pointer(&r.mem[p.cq.droppedOrEntries])),
		p.cqEntries)
	// The queue holds indices of requests. Each place always holds its own index.
	array := unsafe.Slice(word(p.sq.arrayOrFlags), p.sqEntries)
	for i := range array {
		array[i] = uint32(i)
	}
	r.next = atomic.LoadUint32(r.sqTail)
	return nil
}

// Next returns an empty request that the next Enter submits, or nil if the queue is full until then.
func (r *Ring) Next() *Request {
	if r.next-atomic.LoadUint32(r.sqHead) == uint32(len(r.requests)) {
		return nil
	}
	q := &r.requests[r.next&uint32(len(r.requests)-1)]
	r.next++
	*q = Request{}
	return q
}

// Enter submits all requests since the last Enter, and returns when at least wait completions can be
// reaped, or after a signal. Requests that the kernel did not take, because memory was short or too
// many completions were not reaped, are submitted by the next Enter.
func (r *Ring) Enter(wait int) error {
	atomic.StoreUint32(r.sqTail, r.next)
	n := r.next - atomic.LoadUint32(r.sqHead)
	// Ask for events also with wait 0: only then does the kernel run deferred work and deliver
	// completions that had overflowed.
	_, _, errno := unix.Syscall6(unix.SYS_IO_URING_ENTER, uintptr(r.fd), uintptr(n),
		uintptr(max(0, wait-r.ready())), enterGetEvents, 0, 0)
	switch errno {
	case 0, unix.EINTR, unix.EAGAIN, unix.EBUSY: // EAGAIN: no memory; EBUSY: reap first
		return nil
	}
	return fmt.Errorf("io_uring_enter with %d requests: %w", n, errno)
}

// ready returns how many completions can be reaped without a system call.
func (r *Ring) ready() int {
	return int(atomic.LoadUint32(r.cqTail) - atomic.LoadUint32(r.cqHead))
}

// Reap calls each for all completions in the queue. It does not wait.
func (r *Ring) Reap(each func(Completion)) {
	head, tail := atomic.LoadUint32(r.cqHead), atomic.LoadUint32(r.cqTail)
	for ; head != tail; head++ {
		c := r.completions[head&uint32(len(r.completions)-1)]
		atomic.StoreUint32(r.cqHead, head+1)
		each(c)
	}
}

// SetBuffer registers memory as buffer i, 0 to MaxBuffers-1, or unregisters the buffer if mem is nil.
// Requests in flight keep an unregistered buffer until they complete. The kernel locks the pages in
// memory, which counts against RLIMIT_MEMLOCK of processes without CAP_IPC_LOCK.
func (r *Ring) SetBuffer(i int, mem []byte) error {
	if !r.buffers {
		table := resources{count: MaxBuffers, flags: registerSparse}
		if err := r.register(registerBuffers2, unsafe.Pointer(&table),
			unsafe.Sizeof(table)); err != nil {
			return fmt.Errorf("make a table of io_uring buffers: %w", err)
		}
		r.buffers = true
	}
	r.vec = unix.Iovec{}
	if len(mem) > 0 {
		r.vec.Base = &mem[0]
		r.vec.SetLen(len(mem))
	}
	u := update{at: uint32(i), data: uint64(uintptr(unsafe.Pointer(&r.vec))), count: 1}
	err := r.register(registerBuffersUpdate, unsafe.Pointer(&u), unsafe.Sizeof(u))
	if err != nil {
		return fmt.Errorf("register %d bytes as an io_uring buffer: %w", len(mem), err)
	}
	return nil
}

func (r *Ring) register(what uintptr, arg unsafe.Pointer, size uintptr) error {
	_, _, errno := unix.Syscall6(unix.SYS_IO_URING_REGISTER, uintptr(r.fd), what, uintptr(arg),
		size, 0, 0)
	if errno != 0 {
		return errno
	}
	return nil
}

// Close closes the Ring. Requests in flight may still execute; their completions are lost.
func (r *Ring) Close() error {
	var errs []error
	for _, mem := range [][]byte{r.sqes, r.mem} {
		if mem != nil {
			errs = append(errs, unix.Munmap(mem))
		}
	}
	r.sqes, r.mem = nil, nil
	return errors.Join(append(errs, unix.Close(r.fd))...)
}
