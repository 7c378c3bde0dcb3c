package content

import (
	"bytes"
	"crypto/aes"
	"fmt"
	"sync"

	"kvbench/tiers"
)

// Verify says how much of a read is compared with the expected content.
type Verify uint8

// The three depths of verification.
const (
	VerifyNone   Verify = iota // nothing
	VerifySample               // one 4 KiB block per chunk, at an offset derived from key and offset
	VerifyFull                 // every byte
)

// String returns "none", "sample" or "full", the values of -verify.
func (v Verify) String() string { return [...]string{"none", "sample", "full"}[v] }

// MismatchError reports that a read returned other bytes than were written.
type MismatchError struct {
	Key    string
	Gen    uint64 // the expected generation
	Offset int64  // of the first wrong byte, in the entry
	What   string // what the read returned instead
}

func (e *MismatchError) Error() string {
	return fmt.Sprintf("wrong data in entry %s (generation %d) at offset %d: %s", e.Key, e.Gen,
		e.Offset, e.What)
}

// staleSearch is how many earlier generations a mismatch is compared with: about a fifth of a
// second's work, done once, since a mismatch ends the trial.
const staleSearch = 1 << 20

// scratch buffers hold the expected content, piece by piece.
var scratch = sync.Pool{New: func() any { return new([16 << 10]byte) }}

// Check compares p with the bytes of o at offset off and returns nil or a *MismatchError for the
// first byte that differs.
func (c *Content) Check(p []byte, o tiers.Object, off int64) error {
	buf := scratch.Get().(*[16 << 10]byte)
	defer scratch.Put(buf)
	s := c.stream(o, off)
	for at := 0; at < len(p); at += len(buf) {
		got := p[at:min(at+len(buf), len(p))]
		want := buf[:len(got)]
		fill(s, want)
		if !bytes.Equal(got, want) {
			return c.mismatch(got, want, o, off+int64(at))
		}
	}
	return nil
}

// CheckSample compares one 4 KiB block of p, the chunk of o at offset off. The block's place depends on
// key and offset alone, and differs between entries and chunks.
func (c *Content) CheckSample(p []byte, o tiers.Object, off int64) error {
	at := int(samplePlace(o.Key, off)%uint64((len(p)+blockSize-1)/blockSize)) * blockSize
	return c.Check(p[at:min(at+blockSize, len(p))], o, off+int64(at))
}

// samplePlace hashes key and offset with FNV-1a: stable over runs and free of allocation.
func samplePlace(key string, off int64) uint64 {
	h := uint64(14695981039346656037)
	for i := range len(key) {
		h = (h ^ uint64(key[i])) * 1099511628211
	}
	h = (h ^ uint64(off)) * 1099511628211
	return h ^ h>>32
}

// mismatch describes the first difference between got and want, which start at off in o.
func (c *Content) mismatch(got, want []byte, o tiers.Object, off int64) error {
	i := 0
	for got[i] == want[i] {
		i++
	}
	e := &MismatchError{Key: o.Key, Gen: o.Gen, Offset: off + int64(i),
		What: fmt.Sprintf("byte is %#02x, should be %#02x", got[i], want[i])}

	// Compare the first whole AES block from there on.
	from := i + int(-e.Offset&(aes.BlockSize-1))
	if from+aes.BlockSize > len(got) {
		return e
	}
	near, old := got[from:from+aes.BlockSize], make([]byte, aes.BlockSize)
	if bytes.Equal(near, old) {
		e.What = "only zeros: never written, or lost"
		return e
	}
	for n := 0; o.Gen > 0 && n < staleSearch; n++ {
		o.Gen--
		start(o).add(uint64(off+int64(from)) / aes.BlockSize).put(old)
		if c.block.Encrypt(old, old); bytes.Equal(old, near) {
			e.What = fmt.Sprintf("stale version: these are the bytes of generation %d", o.Gen)
			break
		}
	}
	return e
}
