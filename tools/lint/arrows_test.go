package lint

import (
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"maps"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// mostUpward is how many of the arrows between the files of a package may run up. A file has an
// arrow to another whose functions, methods, types, variables or constants it names. Where no order
// of the files has all arrows run down, a reader has to know one file before he can read another
// that he needs for it; a type and what its methods make of it are such a pair, and no more than a
// handful of them can be remembered.
const mostUpward = 6

func TestThePartsOfAPackageHaveAnOrder(t *testing.T) {
	wrong := map[string]string{}
	for dir, arrows := range fileArrows(t) {
		files := slices.Sorted(maps.Keys(arrows))
		if up := upward(files, arrows); len(up) > mostUpward {
			wrong[dir] = fmt.Sprintf("%d arrows between its files run up, at most %d; move what "+
				"is named to the file below, or files together:\n\t%s", len(up), mostUpward,
				strings.Join(up, "\n\t"))
		}
	}
	judge(t, "arrows", wrong)
}

// fileArrows are, for each package, what each of its files names of each other, as the compiler
// sees them on this platform.
func fileArrows(t *testing.T) map[string]map[string]map[string][]string {
	t.Helper()
	cmd := exec.Command("go", "list", "-export", "-deps",
		"-json=ImportPath,Dir,Export,GoFiles,DepOnly", "./...")
	cmd.Dir, cmd.Stderr = root, os.Stderr
	out, err := cmd.Output()
	require.NoError(t, err)
	exports := map[string]string{}
	type listed struct {
		ImportPath, Dir, Export string
		GoFiles                 []string
		DepOnly                 bool
	}
	var ours []listed
	for dec := json.NewDecoder(strings.NewReader(string(out))); ; {
		var p listed
		if err := dec.Decode(&p); errors.Is(err, io.EOF) {
			break
		} else {
			require.NoError(t, err)
		}
		exports[p.ImportPath] = p.Export
		if !p.DepOnly {
			ours = append(ours, p)
		}
	}
	all := map[string]map[string]map[string][]string{}
	set := token.NewFileSet()
	// One importer reads the exports of each package once.
	config := types.Config{Importer: importer.ForCompiler(set, "gc",
		func(path string) (io.ReadCloser, error) { return os.Open(exports[path]) })}
	for _, p := range ours {
		var trees []*ast.File
		arrows := map[string]map[string][]string{}
		for _, name := range p.GoFiles {
			tree, err := parser.ParseFile(set, filepath.Join(p.Dir, name), nil,
				parser.SkipObjectResolution)
			require.NoError(t, err)
			trees, arrows[name] = append(trees, tree), map[string][]string{}
		}
		info := &types.Info{Uses: map[*ast.Ident]types.Object{}}
		pkg, err := config.Check(p.ImportPath, set, trees, info)
		require.NoError(t, err)
		file := func(at token.Pos) string { return filepath.Base(set.Position(at).Filename) }
		for id, object := range info.Uses {
			_, function := object.(*types.Func) // a method has no place in the package's scope
			if object.Pkg() != pkg || !function && object.Parent() != pkg.Scope() {
				continue
			}
			if from, to := file(id.Pos()), file(object.Pos()); from != to &&
				!slices.Contains(arrows[from][to], object.Name()) {
				arrows[from][to] = append(arrows[from][to], object.Name())
			}
		}
		all[strings.TrimPrefix(p.ImportPath, module+"/")] = arrows
	}
	return all
}

// upward lists the arrows that run up in the order of the files that has fewest of them, and of
// such orders in that where they name least. The order is built from the ground: of every set of
// files the best order is known, and its top file is one of them. No package has so many files that
// their sets would be too many.
func upward(files []string, arrows map[string]map[string][]string) (list []string) {
	best := make([]int, 1<<len(files))
	top := make([]int, len(best))
	const arrow = 1 << 20                // weighs more than all names
	weights := make([][]int, len(files)) // to each file from each other
	for i, to := range files {
		weights[i] = make([]int, len(files))
		for j, from := range files {
			if names := len(arrows[from][to]); names > 0 && j != i {
				weights[i][j] = arrow + names
			}
		}
	}
	for set := 1; set < len(best); set++ {
		best[set] = math.MaxInt
		for i, weight := range weights {
			if set>>i&1 == 0 {
				continue
			}
			up := best[set&^(1<<i)]
			for j, w := range weight { // who stands below and uses it has an arrow up
				up += w * (set >> j & 1)
			}
			if up < best[set] {
				best[set], top[set] = up, i
			}
		}
	}
	for set := len(best) - 1; set > 0; set &^= 1 << top[set] {
		to := files[top[set]]
		for j, from := range files {
			if names := arrows[from][to]; len(names) > 0 && from != to && set>>j&1 == 1 {
				list = append(list, fmt.Sprintf("%s → %s: %s", from, to,
					strings.Join(slices.Sorted(slices.Values(names)), " ")))
			}
		}
	}
	return list
}

func TestUpwardFindsTheBestOrder(t *testing.T) {
	x, pqr := []string{"x"}, []string{"p", "q", "r"}
	arrows := map[string]map[string][]string{
		"a": {"b": pqr, "c": x}, "b": {"c": pqr}, "c": {"d": pqr}, "d": {"a": {"z", "y"}},
	}
	assert.Equal(t, []string{"d → a: y z"}, upward([]string{"a", "b", "c", "d"}, arrows))
	delete(arrows, "d")
	assert.Empty(t, upward([]string{"a", "b", "c"}, arrows))
}
