//go:build !cgo || !linux || nonvml

package nvml

import (
	"os"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestProgram(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("PATH", dir)
	_, err := Cards()
	assert.ErrorContains(t, err, "this build has no NVML")
	script := "#!/bin/sh\necho '00000000:81:00.0, NVIDIA H200, GPU-1, 580.95.05, 143771, 4'\n" +
		"echo '00000000:82:00.0, NVIDIA H200, GPU-2, 580.95.05, [N/A], [N/A]'\necho a warning\n"
	require.NoError(t, os.WriteFile(dir+"/nvidia-smi", []byte(script), 0o755))
	cards, err := Cards()
	require.NoError(t, err)
	assert.Equal(t, []Card{
		{Name: "NVIDIA H200", UUID: "GPU-1", Driver: "580.95.05", Address: "0000:81:00.0",
			MemoryBytes: new(int64(143771 << 20)), UsedBytes: new(int64(4 << 20)), Source: "nvidia-smi"},
		{Name: "NVIDIA H200", UUID: "GPU-2", Driver: "580.95.05", Address: "0000:82:00.0",
			Source: "nvidia-smi"},
	}, cards)
}
