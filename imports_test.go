package kvbench_test

import (
	"fmt"
	"go/parser"
	"go/token"
	"io/fs"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const module = "kvbench"

// room is what the packages below one directory may import of this module. They may always import each other.
type room struct {
	may   []string // rooms
	tests []string // rooms that only its tests may import
}

// rooms is the house: workloads, tiers and tracing know nobody, kvbench joins them, benchmarks and tools stand at the edge
// and are imported by nobody. The parameter table is a room of its own because both edges share it.
var rooms = map[string]room{
	"workloads":         {},
	"tiers":             {tests: []string{"internal/privtest"}},
	"tracing":           {tests: []string{"internal/privtest"}},
	"params":            {may: []string{"workloads", "tiers"}},
	"kvbench":           {may: []string{"workloads", "tiers", "tracing"}, tests: []string{"internal/privtest"}},
	"benchmarks":        {may: []string{"workloads", "tiers", "tracing", "kvbench", "params"}, tests: []string{"internal/privtest"}},
	"tools":             {may: []string{"workloads", "tiers", "tracing", "kvbench", "params"}, tests: []string{"internal/privtest"}},
	"internal/privtest": {},
}

func TestImportsClimbOneWay(t *testing.T) {
	seen := map[string]bool{}
	require.NoError(t, filepath.WalkDir(".", func(file string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if name := d.Name(); d.IsDir() && file != "." && (name == "testdata" || strings.HasPrefix(name, ".") || strings.HasPrefix(name, "_")) {
			return filepath.SkipDir
		}
		if d.IsDir() || !strings.HasSuffix(file, ".go") {
			return nil
		}
		// Parsed rather than listed by the go command: files of every platform and build tag count.
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ImportsOnly)
		if err != nil {
			return err
		}
		for _, spec := range parsed.Imports {
			imported, err := strconv.Unquote(spec.Path.Value)
			if err != nil {
				return err
			}
			assert.Empty(t, objection(filepath.ToSlash(file), imported))
		}
		assert.Empty(t, objection(filepath.ToSlash(file), ""))
		seen[roomOf(path.Dir(filepath.ToSlash(file)))] = true
		return nil
	}))
	for name := range rooms {
		assert.True(t, seen[name] || name == "tools", "no file found in %s: the rule is stale or the walk is broken", name)
	}
}

func TestObjectionsNameTheRule(t *testing.T) {
	for _, c := range []struct{ file, imports, want string }{
		{"kvbench/run.go", "kvbench/tiers", ""},
		{"tiers/faults/faults.go", "kvbench/tiers", ""},
		{"tiers/file_test.go", "kvbench/internal/privtest", ""},
		{"workloads/users.go", "math/rand/v2", ""},
		{"imports_test.go", "go/parser", ""},
		{"tiers/file.go", "kvbench/internal/privtest", "tiers/file.go imports kvbench/internal/privtest: only tests of tiers may"},
		{"workloads/users.go", "kvbench/tiers", "workloads/users.go imports kvbench/tiers: workloads may import nothing of this module"},
		{"params/table_test.go", "kvbench/kvbench", "params/table_test.go imports kvbench/kvbench: params may import workloads, tiers"},
		{"kvbench/run.go", "kvbench/benchmarks", "kvbench/run.go imports kvbench/benchmarks: kvbench may import workloads, tiers, tracing"},
		{"extra/x.go", "", "extra/x.go: the room extra has no rule: add it to rooms in imports_test.go with what it may import, and to the package map of README.md"},
		{"kvbench/run.go", "kvbench/internal/odd", "kvbench/run.go imports kvbench/internal/odd: kvbench may import workloads, tiers, tracing"},
	} {
		assert.Equal(t, c.want, objection(c.file, c.imports), "%s imports %s", c.file, c.imports)
	}
}

// objection says what is wrong with a file (imported empty) or with one of its imports, or nothing.
func objection(file, imported string) string {
	dir := path.Dir(file)
	if dir == "." {
		return "" // this test
	}
	from := roomOf(dir)
	rule, known := rooms[from]
	if !known {
		return fmt.Sprintf("%s: the room %s has no rule: add it to rooms in imports_test.go with what it may import, and to the package map of README.md", file, from)
	}
	rest, ours := strings.CutPrefix(imported, module+"/")
	if !ours {
		return ""
	}
	to := roomOf(rest)
	switch {
	case to == from || slices.Contains(rule.may, to):
		return ""
	case slices.Contains(rule.tests, to) && strings.HasSuffix(file, "_test.go"):
		return ""
	case slices.Contains(rule.tests, to):
		return fmt.Sprintf("%s imports %s: only tests of %s may", file, imported, from)
	case len(rule.may) == 0:
		return fmt.Sprintf("%s imports %s: %s may import nothing of this module", file, imported, from)
	default:
		return fmt.Sprintf("%s imports %s: %s may import %s", file, imported, from, strings.Join(rule.may, ", "))
	}
}

// roomOf is the top-level directory; below internal every package is a room.
func roomOf(dir string) string {
	first, rest, _ := strings.Cut(dir, "/")
	if first == "internal" && rest != "" {
		second, _, _ := strings.Cut(rest, "/")
		return first + "/" + second
	}
	return first
}
