package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The job is written whole or not at all.
func TestTraceWritesItsJob(t *testing.T) {
	var out strings.Builder
	c := &Call{stdout: &out}
	file := filepath.Join(t.TempDir(), "x.fio")
	require.NoError(t, c.writeTraced("[job]\n", file))
	assert.Equal(t, "fio job: "+file+"\n", out.String())
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	assert.Equal(t, "[job]\n", string(text))
	out.Reset()
	require.NoError(t, c.writeTraced("[job]\n", "-"))
	assert.Equal(t, "\n[job]\n", out.String())
	require.NoError(t, c.writeTraced("", ""))
}
