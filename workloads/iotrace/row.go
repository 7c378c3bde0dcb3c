package iotrace

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"kvbench/workloads/formats"
)

// Row is one operation of an I/O trace.
type Row struct {
	// At counts from the first usable row of a file that is read, and from the beginning of one
	// that is written. It never goes back.
	At        time.Duration
	Operation Operation
	Bytes     int64
	Tier      int // 0 gpu, 1 cpu, 2 storage
	Key       string
	Phase     string // Prefill, Decode or Evict
}

// Operation is what a row does.
type Operation uint8

// The operations. The Python benchmark writes the first two: what it evicts it reads and writes
// elsewhere, and what it drops leaves no row.
const (
	Read Operation = iota
	Write
	Delete
)

var operations = [...]string{"Read", "Write", "Delete"}

// String returns the operation as files spell it.
func (o Operation) String() string { return operations[o] }

// Header is the first line of an I/O trace.
const Header = "Timestamp,Operation,Object_Size_Bytes,Tier,Key,Phase"

// columns are those of the header, which is also their order where a file has none.
var columns = formats.Columns{Kind: "an I/O trace", Names: strings.Split(Header, ","),
	Required: 6, Places: []int{0, 1, 2, 3, 4, 5}}

const (
	// maxBytes bounds one object; sums of what can be in flight stay inside 64 bits.
	maxBytes = 1 << 50
	maxTier  = 2
	maxKey   = 4096
)

// fields are the columns in the order of Header: what may stand there, and how a row takes it that
// has those before it.
var fields = [...]struct {
	want string
	read func(r *Row, text string) bool
}{
	{"seconds, 0 to 9000000000", func(r *Row, text string) bool {
		at, err := formats.SecondsStamp(text)
		r.At = at
		return err == nil
	}},
	{"Read, Write or Delete", func(r *Row, text string) bool {
		named := func(name string) bool { return strings.EqualFold(name, text) }
		i := slices.IndexFunc(operations[:], named)
		r.Operation = Operation(max(0, i))
		return i >= 0
	}},
	{"a whole number of bytes, at most 1125899906842624", func(r *Row, text string) bool {
		n, err := strconv.ParseInt(strings.TrimSuffix(text, ".0"), 10, 64)
		r.Bytes = n
		return err == nil && n >= 0 && n <= maxBytes && (n > 0 || r.Operation != Write)
	}},
	{"Tier-0, Tier-1 or Tier-2", func(r *Row, text string) bool {
		n, err := strconv.Atoi(strings.TrimPrefix(strings.ToLower(text), "tier-"))
		r.Tier = n
		return err == nil && n >= 0 && n <= maxTier
	}},
	{"a key of at most 4096 bytes", func(r *Row, text string) bool {
		r.Key = text
		return text != "" && len(text) <= maxKey
	}},
	{"Prefill, Decode, Evict or Both", func(r *Row, text string) bool {
		r.Phase = phaseOf(text, r.Operation)
		return r.Phase != ""
	}},
}

// phaseOf returns the phase in our spelling, "" for one that nobody writes. The Python benchmark
// reads a prefix in the phase of the whole request, which is Both when that prefills and decodes:
// such a read serves the decode.
func phaseOf(text string, op Operation) string {
	for _, phase := range [...]string{"Prefill", "Decode", "Evict"} {
		if strings.EqualFold(text, phase) {
			return phase
		}
	}
	switch {
	case !strings.EqualFold(text, "Both"):
		return ""
	case op == Write:
		return "Prefill"
	}
	return "Decode"
}
