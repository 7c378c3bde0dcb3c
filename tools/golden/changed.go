package golden

import (
	"encoding/json"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"gopkg.in/yaml.v3"
)

var quantity = regexp.MustCompile(`(-?[0-9.]+)(KiB|MiB|GiB|us|ms|s)\b`)

var unit = map[string]float64{"KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30, "us": 1e3, "ms": 1e6,
	"s": 1e9}

// Value reads YAML with sizes and times as people write them: 2GiB is bytes, 30ms nanoseconds.
func Value(t testing.TB, text string) (v any) {
	t.Helper()
	text = quantity.ReplaceAllStringFunc(text, func(s string) string {
		m := quantity.FindStringSubmatch(s)
		n, err := strconv.ParseFloat(m[1], 64)
		require.NoError(t, err)
		return strconv.FormatFloat(n*unit[m[2]], 'f', -1, 64)
	})
	require.NoError(t, yaml.Unmarshal([]byte(text), &v), text)
	return v
}

// Changed is a JSON object with other values: each line is a dotted path, a colon and a Value. In a
// list a path has an index, or the name of an object in it.
func Changed(t testing.TB, object []byte, lines string) []byte {
	t.Helper()
	var all any
	require.NoError(t, json.Unmarshal(object, &all))
	for line := range strings.Lines(lines) {
		path, text, _ := strings.Cut(line, ": ")
		all = with(all, strings.Split(path, "."), Value(t, text))
	}
	text, err := json.Marshal(all)
	require.NoError(t, err)
	return text
}

// with puts a value below a path.
func with(at any, path []string, v any) any {
	if len(path) == 0 {
		return v
	}
	if list, is := at.([]any); is {
		i, err := strconv.Atoi(path[0])
		if err != nil {
			i = slices.IndexFunc(list, func(x any) bool { return x.(map[string]any)["name"] == path[0] })
		}
		list[i] = with(list[i], path[1:], v)
		return list
	}
	m, is := at.(map[string]any)
	if !is {
		m = map[string]any{}
	}
	m[path[0]] = with(m[path[0]], path[1:], v)
	return m
}
