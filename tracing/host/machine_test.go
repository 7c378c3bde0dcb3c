package host

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestKiB(t *testing.T) {
	m := rootOf(t, map[string]string{
		"/status": "Name:\tkv\nVmHWM:\t    2048 kB\nVmRSS:\t  12 kB\nBad:\tx kB\n",
	})
	assert.EqualValues(t, 2<<20, m.KiB("VmHWM", "/status"))
	assert.EqualValues(t, 12<<10, m.KiB("VmRSS", "/status"))
	assert.Zero(t, m.KiB("Bad", "/status"))
	assert.Zero(t, m.KiB("VmSwap", "/status"))
}

// rootOf is a tree of these files.
func rootOf(t *testing.T, files map[string]string) Root {
	t.Helper()
	r := Root(t.TempDir())
	for name, text := range files {
		require.NoError(t, os.MkdirAll(filepath.Dir(r.Path(name)), 0o755))
		require.NoError(t, os.WriteFile(r.Path(name), []byte(text), 0o600))
	}
	return r
}

func TestPrivileges(t *testing.T) {
	with := func(caps string) Privileges {
		return rootOf(t, map[string]string{
			"/proc/self/status":             "Name:\tx\nCapEff:\t" + caps + "\nCapBnd:\t0\n",
			"/sys/kernel/btf/vmlinux":       "types",
			"/sys/kernel/security/lockdown": "none [integrity] confidentiality\n",
		}).Privileges()
	}
	both := Privileges{TypeInformation: true, Lockdown: "integrity"}
	assert.Equal(t, both, with("000000c000000000"))
	assert.Equal(t, both, with("0000000000200000"), "CAP_SYS_ADMIN stands for both")
	assert.Equal(t, []string{"CAP_BPF", "CAP_PERFMON"}, with("0000000000000001").Missing)
	assert.Equal(t, []string{"CAP_PERFMON"}, with("0000008000000000").Missing)
	assert.Equal(t, Privileges{}, rootOf(t, nil).Privileges(), "nothing is known")
}

func TestOnlineCPUs(t *testing.T) {
	r := rootOf(t, map[string]string{"/proc/stat": "cpu 1 2\ncpu0 1 2\ncpu3 1 2\nintr 7\n"})
	assert.Equal(t, 2, r.OnlineCPUs())
	assert.Zero(t, rootOf(t, nil).OnlineCPUs())
}

func TestReadLimitsHere(t *testing.T) {
	l := ReadLimits()
	assert.Positive(t, l.Cores)
	assert.Positive(t, l.MemoryLimit)
	assert.NotEmpty(t, l.CoresSource)
	assert.NotEmpty(t, l.MemoryLimitSource)
	assert.LessOrEqual(t, l.MemoryAvailable, l.MemoryLimit)
}
