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

// Arena is memory outside the Go heap, aligned to 2 MiB and in huge pages where the system gives
// them: a device takes a limited number of segments per request, and 1 MiB in 4 KiB pages is 256 of
// them.
//
// Memory is taken from the system when it is first touched. Under the race detector arenas lie on
// the heap, because it does not see other memory. An Arena is plain memory: who uses which part is
// the owner's affair.
type Arena struct {
	mem    []byte // aligned, as long as asked for
	mapped []byte // what was mapped, to unmap; nil on the heap
	reason string // why there are no huge pages; empty when they were granted
	placed string // what became of the wish for NUMA nodes; empty when there was none
}

// NewArena reserves bytes of address space. It is an error only when the system refuses the address
// space.
//
// Of the NUMA nodes given its memory comes from the one, or from several in turn, as long as they
// have any; without nodes from that of the thread that touches it first. See
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

// place binds the memory, which nothing has touched yet, to NUMA nodes.
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

// Placed says in words on which NUMA nodes the memory lies, or why not on those that were asked
// for; empty when none were.
func (a *Arena) Placed() string { return a.placed }

// Bytes is the arena's memory. It must not be used after Close.
func (a *Arena) Bytes() []byte { return a.mem }

// HugePages says in words how much of the arena lies in huge pages now, or why none does.
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

// Close gives the memory back. Nothing may use it any more. Closing twice is harmless.
func (a *Arena) Close() error {
	a.mem = nil
	m := a.mapped
	a.mapped = nil
	return unmap(m)
}

// Touch makes the system provide memory now instead of inside the measured window, on all
// processors: a page has to be cleared, which is all the time that it takes.
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
