package workloads

import (
	"encoding/binary"
	"fmt"
	"math/bits"
)

// Digest is one of what requests asked for and what was decided about it: a sum over them, so that
// the order in which they come does not count. It proves nothing against an attacker who wants two
// loads to look alike: its functions are quick, not strong. The zero value has seen nothing. It is
// not safe for concurrent use.
type Digest struct {
	requests int64
	sum      uint64
}

// Add adds a request, its plan, and what was decided about each operation of that, by whatever
// number. It takes 16 ns an operation (BenchmarkDigest, one core of an EPYC), and several times
// that where all cores fetch keys from memory.
func (d *Digest) Add(r *Request, plan []Op, decided func(i int) uint8) {
	h := fold(fold(fold(uint64(r.User), uint64(r.Seq)), uint64(r.Conversation)), uint64(r.Turn))
	for i := range plan {
		op := &plan[i]
		h = fold(foldText(h, op.Key), uint64(op.Bytes))
		h = fold(h, uint64(op.Times)<<24|uint64(op.Kind)<<16|uint64(op.Purpose)<<8|
			uint64(decided(i)))
	}
	d.requests++
	d.sum += h
}

// String is 16 hexadecimal digits, or nothing where there were no requests.
func (d Digest) String() string {
	if d.requests == 0 {
		return ""
	}
	return fmt.Sprintf("%016x", fold(d.sum, uint64(d.requests)))
}

// What two results' digests are compared for is whether the same load met the same cache: on other
// storage, with another version of the program. A difference says no more than that there is one.

// fold takes a number into a hash: both halves of a product, as wyhash does
// (https://github.com/wangyi-fudan/wyhash). The constants are its own, and keep zeros from staying.
func fold(h, v uint64) uint64 {
	hi, lo := bits.Mul64(h^0xa0761d6478bd642f, v^0xe7037ed1a0b428db)
	return hi ^ lo
}

// foldText takes a text into a hash, eight bytes at a time, and its length.
func foldText(h uint64, s string) uint64 {
	n := len(s)
	for ; len(s) >= 8; s = s[8:] {
		h = fold(h, binary.LittleEndian.Uint64([]byte(s[:8])))
	}
	var rest [8]byte
	copy(rest[:], s)
	return fold(fold(h, binary.LittleEndian.Uint64(rest[:])), uint64(n))
}
