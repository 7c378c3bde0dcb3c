package tracing

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestReadmeHasTheHistograms expects README's table of the histograms, a row for those with the same meaning.
func TestReadmeHasTheHistograms(t *testing.T) {
	var rows []string
	for i, k := range Kinds {
		if i > 0 && Kinds[i-1].What == k.What {
			rows[len(rows)-1] = strings.Replace(rows[len(rows)-1], " |", ", "+k.Key+" |", 1)
			continue
		}
		rows = append(rows, fmt.Sprintf("| %s | %s | %s |\n", k.Key, k.Units, k.What))
	}
	readme, err := os.ReadFile("README.md")
	require.NoError(t, err)
	want := "| histogram | unit | meaning |\n|---|---|---|\n" + strings.Join(rows, "")
	assert.Contains(t, string(readme), want, "the table is\n%s", want)
}
