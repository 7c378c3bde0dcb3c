package formats

import (
	"flag"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestReadme compares the table of formats in README with the registered ones. -rewrite updates it.
func TestReadme(t *testing.T) {
	const path, head = "../README.md", "| recording | blocks | scope of block ids | times |\n|---|---|---|---|\n"
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	before, rest, found := strings.Cut(string(text), head)
	require.True(t, found)
	table, after, _ := strings.Cut(rest, "\n\n")
	var want []string
	for _, f := range blockFormats() {
		want = append(want, "| "+f.doc+" |")
	}
	if flag.Lookup("rewrite").Value.String() == "true" {
		require.NoError(t, os.WriteFile(path, []byte(before+head+strings.Join(want, "\n")+"\n\n"+after), 0o644))
		return
	}
	require.Equal(t, strings.Join(want, "\n"), table)
}
