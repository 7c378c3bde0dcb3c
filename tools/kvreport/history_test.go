package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestHistory: thirty commits are added one by one, and the seventeenth lost 8 %.
func TestHistory(t *testing.T) {
	path := filepath.Join(t.TempDir(), "history.jsonl")
	for i := range 30 {
		speed := 1e9 * (1 + 0.003*float64((i*7)%5-2))
		if i+1 >= 17 {
			speed *= 0.92
		}
		in := file(t, header, lines("StorageCeiling/op=read", "read-B/s", speed, 6))
		code, _, errs := call("", "history", "add", path, "-commit", fmt.Sprintf("commit%d", i+1),
			"-machine", "lab7", in)
		require.Equal(t, Done, code, errs)
	}
	code, out, errs := call("", "history", "show", path)
	require.Equal(t, Done, code, errs)
	assert.Regexp(t, `lab7 +StorageCeiling/op=read +read-B/s +30 +\d+ MiB/s +\d+ MiB/s +`+
		`commit17: -[78]\.\d% \(p [0-9.e-]+\) WORSE\n$`, out)
	_, out, _ = call("", "history", "show", path, "-metric", "read-p95-ns")
	assert.Equal(t, 3, strings.Count(out, "\n"))
	page := filepath.Join(t.TempDir(), "history.html")
	code, _, errs = call("", "history", "show", path, "-o", page)
	require.Equal(t, Done, code, errs)
	text := textOf(t, page)
	assert.Contains(t, text, "commit17: -")
	assert.Contains(t, text, "StorageCeiling/op=read on lab7")
	in := file(t, header, lines("StorageCeiling/op=read", "read-B/s", 1e9, 6))
	for want, args := range map[string][]string{
		"say what to do":                  {"add"},
		"add needs -commit C and results": {"add", path, in},
		"for show":                        {"add", path, in, "-commit", "x", "-o", "y"},
		"neither -commit nor -machine":    {"show", path, "-commit", "x"},
		"-alpha":                          {"show", path, "-alpha", "2"},
		"there is no history in it":       {"show", path + ".not"},
		"give -machine NAME":              {"add", path, in, "-commit", "x"},
		"of commit commit3 on lab7 already": {"add", path, in, "-commit", "commit3", "-machine",
			"lab7"},
	} {
		code, _, errs := call("", append([]string{"history"}, args...)...)
		assert.Equal(t, Usage, code, want)
		assert.Contains(t, errs, want)
	}
	data, err := os.ReadFile(path)
	require.NoError(t, err)
	assert.Equal(t, 30, strings.Count(string(data), "\n"), "what is refused is not added")
}
