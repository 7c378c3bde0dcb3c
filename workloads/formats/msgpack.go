package formats

import (
	"encoding/binary"
	"errors"
	"math"
)

// errPacked is the error of bytes that are no message, or not all of one.
var errPacked = errors.New("no msgpack")

// maxPackedDepth bounds messages within messages.
const maxPackedDepth = 32

// packed reads msgpack (github.com/msgpack/msgpack/blob/master/spec.md) from memory: nil, booleans,
// int64 (larger numbers keep their bits), float64, string, []byte, []any and map[string]any, whose
// other keys are left out; extensions become nil. What it returns does not share the memory, but
// bytes do.
type packed []byte

// take returns the next n bytes.
func (p *packed) take(n uint64) ([]byte, error) {
	if n > uint64(len(*p)) {
		return nil, errPacked
	}
	b := (*p)[:n]
	*p = (*p)[n:]
	return b, nil
}

// number reads a big-endian integer of so many bytes.
func (p *packed) number(bytes uint64) (n uint64, err error) {
	b, err := p.take(bytes)
	for _, c := range b {
		n = n<<8 | uint64(c)
	}
	return n, err
}

// value reads the next value.
func (p *packed) value(depth int) (any, error) {
	b, err := p.take(1)
	if err != nil || depth > maxPackedDepth {
		return nil, errPacked
	}
	// sized reads a length of so many bytes, and what has it.
	sized := func(bytes uint64, read func(n uint64) (any, error)) (any, error) {
		n, err := p.number(bytes)
		if err != nil {
			return nil, err
		}
		return read(n)
	}
	list := func(n uint64) (any, error) { return p.list(n, depth) }
	object := func(n uint64) (any, error) { return p.object(n, depth) }
	// Lengths have 1, 2 or 4 bytes, numbers and extensions 1, 2, 4 or 8 (16), by the last bits.
	switch c := b[0]; {
	case c <= 0x7f:
		return int64(c), nil
	case c >= 0xe0:
		return int64(int8(c)), nil
	case c <= 0x8f:
		return object(uint64(c & 0x0f))
	case c <= 0x9f:
		return list(uint64(c & 0x0f))
	case c <= 0xbf:
		return p.text(uint64(c & 0x1f))
	case c == 0xc0:
		return nil, nil
	case c == 0xc2 || c == 0xc3:
		return c == 0xc3, nil
	case c >= 0xc4 && c <= 0xc6:
		return sized(1<<(c-0xc4), func(n uint64) (any, error) { return p.take(n) })
	case c >= 0xc7 && c <= 0xc9: // and a byte of type
		return sized(1<<(c-0xc7), func(n uint64) (any, error) { return p.skip(n + 1) })
	case c == 0xca:
		n, err := p.number(4)
		return float64(math.Float32frombits(uint32(n))), err
	case c == 0xcb:
		n, err := p.number(8)
		return math.Float64frombits(n), err
	case c >= 0xcc && c <= 0xcf:
		n, err := p.number(1 << (c - 0xcc))
		return int64(n), err
	case c >= 0xd0 && c <= 0xd3:
		n, err := p.number(1 << (c - 0xd0))
		unused := 64 - 8<<(c-0xd0)
		return int64(n<<unused) >> unused, err
	case c >= 0xd4 && c <= 0xd8:
		return p.skip(1<<(c-0xd4) + 1)
	case c >= 0xd9 && c <= 0xdb:
		return sized(1<<(c-0xd9), p.text)
	case c == 0xdc || c == 0xdd:
		return sized(2<<(c-0xdc), list)
	case c == 0xde || c == 0xdf:
		return sized(2<<(c-0xde), object)
	}
	return nil, errPacked // 0xc1 is nobody's
}

func (p *packed) text(n uint64) (any, error) {
	b, err := p.take(n)
	return string(b), err
}

func (p *packed) skip(n uint64) (any, error) {
	_, err := p.take(n)
	return nil, err
}

// list reads n values. A length is whatever somebody wrote: no more memory is taken than there are
// bytes for, of which a value needs one at least.
func (p *packed) list(n uint64, depth int) (any, error) {
	if n > uint64(len(*p)) {
		return nil, errPacked
	}
	list := make([]any, 0, n)
	for range n {
		v, err := p.value(depth + 1)
		if err != nil {
			return nil, err
		}
		list = append(list, v)
	}
	return list, nil
}

// object reads n pairs. Of keys that stand twice the last one counts, as in Python.
func (p *packed) object(n uint64, depth int) (any, error) {
	if n > uint64(len(*p))/2 {
		return nil, errPacked
	}
	object := make(map[string]any)
	for range n {
		key, err := p.value(depth + 1)
		if err != nil {
			return nil, err
		}
		v, err := p.value(depth + 1)
		if err != nil {
			return nil, err
		}
		if name, is := key.(string); is {
			object[name] = v
		}
	}
	return object, nil
}

// unpack reads one message that is all of b.
func unpack(b []byte) (any, error) {
	p := packed(b)
	v, err := p.value(0)
	if err == nil && len(p) > 0 {
		err = errPacked
	}
	return v, err
}

// frame is the length that stands before a message.
func frame(b []byte) int64 { return int64(binary.BigEndian.Uint32(b)) }
