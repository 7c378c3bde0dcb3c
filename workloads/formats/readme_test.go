package formats

import (
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestReadme compares the table of formats in README with the registered ones.
func TestReadme(t *testing.T) {
	const head = "| recording | blocks | scope of block ids | times |\n|---|---|---|---|\n"
	text, err := os.ReadFile("../README.md")
	require.NoError(t, err)
	_, rest, found := strings.Cut(string(text), head)
	require.True(t, found)
	table, _, _ := strings.Cut(rest, "\n\n")
	rows := strings.Split(table, "\n")
	require.Len(t, rows, len(blockFormats()))
	for i, f := range blockFormats() {
		first, _, _ := strings.Cut(rows[i], " | ")
		assert.Contains(t, first, strings.TrimSuffix(f.name, "'s .lct"))
	}
}
