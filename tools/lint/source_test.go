package lint

import (
	"flag"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

// module is the import path of the root, which lies two directories above this package.
const (
	module = "kvbench"
	root   = "../.."
)

// source is one Go file.
type source struct {
	path    string // from the root
	text    string
	tree    *ast.File
	files   *token.FileSet
	imports []string
}

func (s *source) dir() string          { return path.Dir(s.path) }
func (s *source) isTest() bool         { return strings.HasSuffix(s.path, "_test.go") }
func (s *source) line(p token.Pos) int { return s.files.Position(p).Line }

// texts are the lines of string literals that go over several lines: texts for people, whose width
// is part of what they look like.
func (s *source) texts() map[int]bool {
	lines := map[int]bool{}
	ast.Inspect(s.tree, func(n ast.Node) bool {
		if lit, ok := n.(*ast.BasicLit); ok && lit.Kind == token.STRING {
			for l, last := s.line(lit.Pos()), s.line(lit.End()); l < last; l++ {
				lines[l], lines[last] = true, true
			}
		}
		return true
	})
	return lines
}

// lines are those of the file, without line ends.
func (s *source) lines() []string { return strings.Split(strings.TrimSuffix(s.text, "\n"), "\n") }

// read parses every Go file of the module, rather than what the go command lists: files of all
// platforms and build tags count. What a compiler for another language generated (_bpfel.go) does
// not.
var read = sync.OnceValues(func() ([]*source, error) {
	var all []*source
	err := filepath.WalkDir(root, func(file string, d fs.DirEntry, err error) error {
		name := d.Name()
		switch {
		case err != nil:
			return err
		case d.IsDir() && file != root &&
			(name == "testdata" || strings.HasPrefix(name, ".") || strings.HasPrefix(name, "_")):
			return filepath.SkipDir
		case d.IsDir() || !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_bpfel.go"):
			return nil
		}
		text, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(root, file)
		if err != nil {
			return err
		}
		s := &source{path: filepath.ToSlash(rel), text: string(text), files: token.NewFileSet()}
		if s.tree, err = parser.ParseFile(s.files, file, text,
			parser.ParseComments|parser.SkipObjectResolution); err != nil {
			return err
		}
		for _, spec := range s.tree.Imports {
			imported, err := strconv.Unquote(spec.Path.Value)
			if err != nil {
				return err
			}
			s.imports = append(s.imports, imported)
		}
		all = append(all, s)
		return nil
	})
	return all, err
})

func sources(t *testing.T) []*source {
	t.Helper()
	all, err := read()
	require.NoError(t, err)
	require.Greater(t, len(all), 100, "the walk is broken")
	return all
}

// packages are the directories that hold Go files other than tests, with those.
func packages(t *testing.T) map[string][]*source {
	t.Helper()
	all := map[string][]*source{}
	for _, s := range sources(t) {
		if !s.isTest() {
			all[s.dir()] = append(all[s.dir()], s)
		}
	}
	return all
}

// update rewrites the list of exceptions: to shorten it, never to get a rule out of the way.
var update = flag.Bool("update", false, "rewrite testdata/exceptions.txt")

const exceptions = "testdata/exceptions.txt"

// judge reports what breaks a rule, by file, package or arrow, but for what exceptions.txt excuses
// in lines "rule name". A line that excuses nothing has to go, so that the list only becomes
// shorter.
func judge(t *testing.T, rule string, wrong map[string]string) {
	t.Helper()
	text, err := os.ReadFile(exceptions)
	require.NoError(t, err)
	var others []string
	excused := map[string]bool{}
	for line := range strings.Lines(string(text)) {
		if name, ok := strings.CutPrefix(strings.TrimSpace(line), rule+" "); ok {
			excused[name] = true
		} else {
			others = append(others, line)
		}
	}
	if *update {
		for name := range wrong {
			others = append(others, rule+" "+name+"\n")
		}
		slices.Sort(others)
		require.NoError(t, os.WriteFile(exceptions, []byte(strings.Join(others, "")), 0o644))
		return
	}
	for _, name := range slices.Sorted(maps.Keys(wrong)) {
		if !excused[name] {
			t.Errorf("%s: %s", name, wrong[name])
		}
	}
	for name := range excused {
		if _, needed := wrong[name]; !needed {
			t.Errorf("%s: nothing is wrong with it any more: go test ./tools/lint -update takes "+
				"it out of %s", name, exceptions)
		}
	}
}
