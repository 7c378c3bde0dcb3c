//go:build linux && (amd64 || arm64)

package collector

import (
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kvbench/tracing/bpf"
)

// syscallPrefix is the prefix of the kernel's functions for system calls.
var syscallPrefix = map[string]string{
	"amd64": "__x64_sys_", "arm64": "__arm64_sys_",
}[runtime.GOARCH]

func TestProgramsNameWhatTheyAttachTo(t *testing.T) {
	spec, err := bpf.LoadTrace()
	require.NoError(t, err)
	for way, want := range map[string]string{
		byFexit: "vfs_read fsync", byTracepoint: "sys_exit",
	} {
		at := slices.IndexFunc(fileWays, func(w struct{ way, programs string }) bool {
			return w.way == way
		})
		names := namesOf(spec, fileWays[at].programs)
		var to []string
		for i, n := range names {
			to = append(to, strings.TrimPrefix(spec.Programs[n].AttachTo, syscallPrefix))
			end := strings.Contains(n, "_out_") || strings.HasSuffix(n, "_exit")
			assert.Equal(t, i < len(names)/2, end, "%s: ends come first", n)
		}
		assert.Subset(t, to, strings.Fields(want), way)
	}
	for _, n := range slices.Concat(blockPrograms(kernelFacts{}, watchSpec{mode: watchSet}),
		blockPrograms(kernelFacts{haveStart: true}, watchSpec{comm: [commLength]byte{1}})) {
		assert.NotEmpty(t, spec.Programs[n].AttachTo, n)
	}
}
