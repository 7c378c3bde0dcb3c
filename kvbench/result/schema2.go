package result

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"fmt"
	"math"
	"strconv"
	"strings"
)

// renamed has one line per renamed key of schema 2: the old key, the new key and a factor. Keys
// without a line have the same name, or are derived (see [Result.Python]).
//
//go:embed schema2.txt
var renamed string

// upgraded parses a result of schema 2. That schema has some numbers only in the keys of the Python
// benchmark.
func upgraded(data []byte) (*Result, error) {
	var tree map[string]any
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber() // a float64 would round large counts
	if err := d.Decode(&tree); err != nil {
		return nil, err
	}
	for line := range strings.Lines(renamed) {
		w := append(strings.Fields(line), "1")
		if len(w) < 3 || w[0] == "#" {
			continue
		}
		from, key := below(tree, w[0], false)
		v, ok := from[key]
		if !ok || v == nil {
			continue
		}
		if factor, _ := strconv.ParseFloat(w[2], 64); factor != 1 {
			number, _ := v.(json.Number)
			n, _ := number.Float64()
			v = json.Number(fmt.Sprint(int64(math.Round(n * factor))))
		}
		to, key := below(tree, w[1], true)
		to[key] = v
	}
	data, err := json.Marshal(tree)
	if err != nil {
		return nil, err
	}
	r := &Result{}
	err = json.Unmarshal(data, r)
	r.SchemaVersion = SchemaVersion
	// Schema 2 counted these together with the lookups, and wrote unknown rates as 0.
	r.Moved.OwnFound -= r.Lookups.Hits
	r.Moved.OwnGone -= r.Lookups.Misses
	if r.WindowNS == 0 {
		r.Requests.RequestsPerSecond, r.Requests.TokensPerSecond = nil, nil
	}
	if r.Requests.StorageLatencyNS == 0 {
		r.Requests.StorageTokensPerSecond = nil
	}
	return r, err
}

// below returns the object that has the last key of a path, and that key. With make it creates
// missing objects, else it returns nil for these.
func below(tree map[string]any, path string, make bool) (object map[string]any, key string) {
	for {
		first, rest, deeper := strings.Cut(path, ".")
		if !deeper {
			return tree, first
		}
		next, ok := tree[first].(map[string]any)
		if !ok {
			if !make {
				return nil, ""
			}
			next = map[string]any{}
			tree[first] = next
		}
		tree, path = next, rest
	}
}
