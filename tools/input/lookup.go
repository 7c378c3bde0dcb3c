package input

import (
	"encoding/json"
	"strings"
)

// Lookup returns the value under a dotted path of keys in the result file: string, float64, bool, map or list, or nil
// where the file has no such key, the key is null, or there is no file.
func (rec *Record) Lookup(path string) any {
	if len(rec.Raw) == 0 {
		return nil
	}
	if rec.top == nil {
		rec.top, rec.decoded = map[string]json.RawMessage{}, map[string]any{}
		_ = json.Unmarshal(rec.Raw, &rec.top) // it was valid when it was read
	}
	first, rest, _ := strings.Cut(path, ".")
	v, ok := rec.decoded[first]
	if !ok {
		raw, known := rec.top[first]
		if known {
			_ = json.Unmarshal(raw, &v)
		}
		rec.decoded[first] = v
	}
	for rest != "" && v != nil {
		var key string
		key, rest, _ = strings.Cut(rest, ".")
		object, ok := v.(map[string]any)
		if !ok {
			return nil
		}
		v = object[key]
	}
	return v
}

// Float is Lookup for numbers.
func (rec *Record) Float(path string) (float64, bool) {
	v, ok := rec.Lookup(path).(float64)
	return v, ok
}

// Parameter returns the value in force of a parameter, nil where it is unknown.
func (rec *Record) Parameter(name string) any {
	if rec.Result == nil {
		return nil
	}
	for _, p := range rec.Result.Parameters {
		if p.Name == name {
			return p.Value
		}
	}
	return nil
}
