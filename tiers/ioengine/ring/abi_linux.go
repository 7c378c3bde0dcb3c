package ring

// Operations of a Request.
const (
	Fsync         = 3
	ReadFixed     = 4
	WriteFixed    = 5
	SyncFileRange = 8
	Read          = 22
	Write         = 23
	Fadvise       = 24
)

// Flags of a Request, and of single operations.
const (
	FlagAsync = 1 << 4 // execute on a kernel thread

	FsyncData = 1 << 0 // OpFlags of Fsync: fdatasync
)

// Request is a submission queue entry.
type Request struct {
	Op       uint8
	Flags    uint8
	Priority uint16
	FD       int32
	Off      uint64
	Addr     uint64
	Len      uint32
	OpFlags  uint32
	User     uint64 // copied to the completion
	Buffer   uint16 // of ReadFixed and WriteFixed: index of the registered buffer
	_        uint16
	_        uint32
	_        [2]uint64
}

// Completion is a completion queue entry.
type Completion struct {
	User   uint64
	Result int32 // the system call's result; an error is a negative errno
	Flags  uint32
}

// Setup flags: see io_uring_setup(2).
const (
	setupSubmitAll    = 1 << 7
	setupCoopTaskrun  = 1 << 8
	setupSingleIssuer = 1 << 12
	setupDeferTaskrun = 1 << 13
)

const (
	enterGetEvents = 1 << 0

	featureSingleMmap = 1 << 0
	featureNoDrop     = 1 << 1

	offsetRings   = 0
	offsetEntries = 0x10000000

	registerBuffers2      = 15
	registerBuffersUpdate = 16
	registerSparse        = 1 << 0
)

// offsets of the parts of a queue in the shared memory.
type offsets struct {
	head, tail, mask, entries uint32
	flagsOrOverflow           uint32 // flags of the submission queue, overflow of the other
	droppedOrEntries          uint32 // dropped of the submission queue, entries of the other
	arrayOrFlags              uint32
	_                         uint32
	_                         uint64
}

type setup struct {
	sqEntries, cqEntries, flags uint32
	_, _                        uint32
	features                    uint32
	_                           [4]uint32
	sq, cq                      offsets
}

type resources struct {
	count, flags uint32
	_            uint64
	data, tags   uint64
}

type update struct {
	at, _      uint32
	data, tags uint64
	count, _   uint32
}
