package iotrace

import (
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
	stampColumn = iota
	operationColumn
	bytesColumn
	tierColumn
	keyColumn
	phaseColumn
)

const (
	// maxBytes bounds one object; sums of what can be in flight stay inside 64 bits.
	maxBytes  = 1 << 50
	wantBytes = "a whole number of bytes, at most 1125899906842624"
	maxTier   = 2
	maxKey    = 4096
	wantKey   = "a key of at most 4096 bytes"
)
