package lint

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var (
	pathRow  = regexp.MustCompile("(?m)^\\| ([a-z0-9_/]+\\.go) \\| ((?:`\\w+` ?)+)\\|")
	pathCall = regexp.MustCompile("`(\\w+)`")
)

// TestTheWayOfARequestExists finds each call of the section "The way of one request" in the file that the
// page names. It does not follow the code: calls that the page leaves out stay unnoticed.
func TestTheWayOfARequestExists(t *testing.T) {
	page, err := os.ReadFile("../../kvbench/README.md")
	require.NoError(t, err)
	_, section, found := strings.Cut(string(page), "\n## The way of one request\n")
	require.True(t, found)
	section, _, _ = strings.Cut(section, "\n## ")
	calls := 0
	for _, row := range pathRow.FindAllStringSubmatch(section, -1) {
		file, err := parser.ParseFile(token.NewFileSet(), filepath.Join("../..", row[1]), nil, 0)
		require.NoError(t, err)
		declared := map[string]bool{}
		for _, d := range file.Decls {
			if f, ok := d.(*ast.FuncDecl); ok {
				declared[f.Name.Name] = true
			}
		}
		for _, call := range pathCall.FindAllStringSubmatch(row[2], -1) {
			calls++
			assert.True(t, declared[call[1]], "%s declares no %s", row[1], call[1])
		}
	}
	assert.Equal(t, strings.Count(section, ".go | `"), len(pathRow.FindAllString(section, -1)))
	assert.Greater(t, calls, 20)
}
