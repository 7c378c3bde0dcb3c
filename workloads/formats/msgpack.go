package formats

import (
	"errors"

	"github.com/tinylib/msgp/msgp"
)

// errPacked is the error of bytes that are not one whole msgpack message.
var errPacked = errors.New("no msgpack")

// maxPackedDepth bounds messages within messages.
const maxPackedDepth = 32

// unpackValue reads the first value of b and returns the bytes after it. Integers become int64
// (larger numbers keep their bits), lists become []any, extensions nil. A map becomes
// map[string]any without its keys of other types; the last of equal keys counts, as in Python.
func unpackValue(b []byte, depth int) (v any, rest []byte, err error) {
	if depth > maxPackedDepth {
		return nil, nil, errPacked
	}
	switch msgp.NextType(b) {
	case msgp.IntType, msgp.BoolType, msgp.StrType, msgp.BinType, msgp.Float64Type:
		return msgp.ReadIntfBytes(b)
	case msgp.UintType:
		n, rest, err := msgp.ReadUint64Bytes(b)
		return int64(n), rest, err
	case msgp.Float32Type:
		x, rest, err := msgp.ReadFloat32Bytes(b)
		return float64(x), rest, err
	case msgp.ArrayType:
		n, rest, err := msgp.ReadArrayHeaderBytes(b)
		// Each value has at least one byte, so a false length does not take memory.
		if err != nil || int64(n) > int64(len(rest)) {
			return nil, nil, errPacked
		}
		list := make([]any, n)
		for i := range list {
			if list[i], rest, err = unpackValue(rest, depth+1); err != nil {
				return nil, nil, err
			}
		}
		return list, rest, nil
	case msgp.MapType:
		n, rest, err := msgp.ReadMapHeaderBytes(b)
		object := make(map[string]any)
		for i := uint32(0); err == nil && i < n; i++ {
			var key, value any
			if key, rest, err = unpackValue(rest, depth+1); err == nil {
				value, rest, err = unpackValue(rest, depth+1)
			}
			if name, is := key.(string); is {
				object[name] = value
			}
		}
		return object, rest, err
	}
	rest, err = msgp.Skip(b) // nil or an extension
	return nil, rest, err
}

// unpack reads b as exactly one message.
func unpack(b []byte) (any, error) {
	v, rest, err := unpackValue(b, 0)
	if err == nil && len(rest) > 0 {
		err = errPacked
	}
	return v, err
}
