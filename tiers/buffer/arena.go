package buffer

import (
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"unsafe"

	"kvbench/tiers"
)

const (
	// HugePage is the size of a huge page on amd64 and on arm64 with 4 KiB base pages.
	HugePage = 2 << 20
	// PageSize is the alignment that direct I/O needs everywhere; buffers start and end on it.
	PageSize = 4096
)

// Arena is memory outside the Go heap, aligned to 2 MiB and in huge pages where the system grants
// them: a device accepts a limited number of segments per request, and 1 MiB in 4 KiB pages is 256
// segments.
//
// The system provides the memory when it is first touched. Under the race detector arenas are on the
// heap, because the detector does not see other memory. The owner divides the memory among its users.
type Arena struct {
	mem    []byte // aligned, of the requested length
	mapped []byte // the whole mapping, for unmap; nil on the heap
	reason string // why there are no huge pages; empty if they were granted
	placed string // result of the placement on NUMA nodes; empty if none was requested
}

// NewArena reserves bytes of address space. It fails only if the system refuses the address space.
//
// With one NUMA node the memory comes from that node, with several it is interleaved, while they have
// free memory. Without nodes it comes from the node of the thread that touches it first. See
// [Arena.Placed].
func NewArena(bytes int64, nodes ...int) (*Arena, error) {
	if bytes <= 0 || bytes != int64(int(bytes)) {
		return nil, fmt.Errorf("reserve an arena of %d bytes: the size must be positive and fit "+
			"the address space", bytes)
	}
	a, err := newArena(int(bytes))
	if err == nil && len(nodes) > 0 {
		a.place(nodes)
	}
	return a, err
}

// place binds the memory, which is still untouched, to NUMA nodes.
func (a *Arena) place(nodes []int) {
	numbers := strings.Trim(fmt.Sprint(nodes), "[]")
	if a.mapped == nil {
		a.placed = "anywhere: the race detector needs the heap"
	} else if err := bind(a.mapped, nodes); err != nil {
		a.placed = fmt.Sprintf("anywhere: mbind to node %s: %v (in a container it may need "+
			"CAP_SYS_NICE)", numbers, err)
	} else {
		a.placed = "node " + numbers
	}
}

// Placed describes the NUMA nodes of the memory, or why it is not on the requested nodes; empty if none
// were requested.
func (a *Arena) Placed() string { return a.placed }

// Bytes returns the arena's memory. It must not be used after Close.
func (a *Arena) Bytes() []byte { return a.mem }

// HugePages describes how much of the arena is in huge pages now, or why none is.
func (a *Arena) HugePages() string {
	if a.reason != "" {
		return a.reason
	}
	got, err := hugeBytes(a.mem)
	if err != nil {
		return fmt.Sprintf("asked for, unknown whether granted: %v", err)
	}
	return fmt.Sprintf("%d of %d MiB in huge pages", got>>20, len(a.mem)>>20)
}

// Close releases the memory, which must not be in use. Closing twice is harmless.
func (a *Arena) Close() error {
	a.mem = nil
	m := a.mapped
	a.mapped = nil
	return unmap(m)
}

// Touch makes the system provide memory now and not inside the measured window. It uses all
// processors, because clearing the pages takes the time.
func Touch(mem []byte) {
	part := tiers.AlignUp(len(mem)/runtime.GOMAXPROCS(0)+1, HugePage)
	var wg sync.WaitGroup
	for mem := range slices.Chunk(mem, part) {
		wg.Go(func() {
			for i := 0; i < len(mem); i += PageSize {
				mem[i] = 0
			}
		})
	}
	wg.Wait()
}

// Aligned returns n bytes of b that start on a multiple of align.
func Aligned(b []byte, n, align int) []byte {
	at := 0
	if odd := int(address(b) % uintptr(align)); odd != 0 {
		at = align - odd
	}
	return b[at : at+n : at+n]
}

func address(b []byte) uintptr { return uintptr(unsafe.Pointer(unsafe.SliceData(b))) }
