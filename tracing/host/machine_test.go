package host

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// fakeMachine is a machine made of files: /proc, /sys and what else a test writes.
type fakeMachine struct {
	t *testing.T
	machine
}

// machineOf has these files and so many processors.
func machineOf(t *testing.T, cpus int, files map[string]string) fakeMachine {
	t.Helper()
	root, err := filepath.EvalSymlinks(t.TempDir())
	require.NoError(t, err)
	f := fakeMachine{t, machine{Root: Root(root), affinity: func() int { return cpus }}}
	for name, text := range files {
		f.write(name, text)
	}
	return f
}

// newFakeMachine has one directory on the given device, and nodes of devices.
func newFakeMachine(t *testing.T, mountinfo string, at identity, nodes map[string][2]uint32,
) fakeMachine {
	t.Helper()
	f := machineOf(t, 1, map[string]string{"/proc/self/mountinfo": mountinfo})
	f.identify = func(string) (identity, error) { return at, nil }
	f.blockNode = func(path string) (uint32, uint32, error) {
		n, ok := nodes[path]
		if !ok {
			return 0, 0, errors.New("no such node")
		}
		return n[0], n[1], nil
	}
	return f
}

func (f fakeMachine) write(path, text string) {
	f.t.Helper()
	path = f.Path(path)
	require.NoError(f.t, os.MkdirAll(filepath.Dir(path), 0o755))
	require.NoError(f.t, os.WriteFile(path, []byte(text), 0o644))
}

func (f fakeMachine) link(from, to string) {
	f.t.Helper()
	from = f.Path(from)
	require.NoError(f.t, os.MkdirAll(filepath.Dir(from), 0o755))
	require.NoError(f.t, os.Symlink(f.Path(to), from))
}

const someStat = "100 0 800 5 50 0 1600 7 0 9 12 0 0 0 0 0 0\n"

// disk makes a whole device with its entries in /sys/block and /sys/dev/block.
func (f fakeMachine) disk(dir, number, stat string) {
	f.write(dir+"/dev", number+"\n")
	f.write(dir+"/stat", stat)
	f.write(dir+"/queue/iostats", "1\n")
	f.link("/sys/dev/block/"+number, dir)
	f.link("/sys/block/"+filepath.Base(dir), dir)
}

func (f fakeMachine) partition(dir, number string) {
	f.write(dir+"/partition", "1\n")
	f.write(dir+"/dev", number+"\n")
	f.write(dir+"/stat", "1 0 1 0 1 0 1 0 0 0 0\n")
	f.link("/sys/dev/block/"+number, dir)
}

func (f fakeMachine) device() Device {
	f.t.Helper()
	d, err := f.backingDevice("/mnt/kv")
	require.NoError(f.t, err)
	return d
}

func TestRootIsEmptyWhereNothingIs(t *testing.T) {
	r := Root(t.TempDir())
	assert.Empty(t, r.Text("a/b"))
	assert.Nil(t, r.Integer("a"))
	assert.Nil(t, r.Names("a"))
	assert.False(t, r.Exists("a"))
	require.NoError(t, os.WriteFile(r.Path("a"), []byte(" 7\n"), 0o600))
	assert.EqualValues(t, 7, *r.Integer("a"))
	assert.Equal(t, []string{"a"}, r.Names())
}

func TestKiB(t *testing.T) {
	m := machineOf(t, 1, map[string]string{
		"/status": "Name:\tkv\nVmHWM:\t    2048 kB\nVmRSS:\t  12 kB\nBad:\tx kB\n",
	})
	assert.EqualValues(t, 2<<20, m.KiB("VmHWM", "/status"))
	assert.EqualValues(t, 12<<10, m.KiB("VmRSS", "/status"))
	assert.Zero(t, m.KiB("Bad", "/status"))
	assert.Zero(t, m.KiB("VmSwap", "/status"))
}

func TestPrivileges(t *testing.T) {
	with := func(caps string) Privileges {
		return machineOf(t, 1, map[string]string{
			"/proc/self/status":             "Name:\tx\nCapEff:\t" + caps + "\nCapBnd:\t0\n",
			"/sys/kernel/btf/vmlinux":       "12345",
			"/sys/kernel/security/lockdown": "none [integrity] confidentiality\n",
		}).Privileges()
	}
	both := Privileges{Known: true, TypeInformation: 5, Lockdown: "integrity"}
	assert.Equal(t, both, with("000000c000000000"))
	assert.Equal(t, both, with("0000000000200000"), "CAP_SYS_ADMIN stands for both")
	assert.Equal(t, []string{"CAP_BPF", "CAP_PERFMON"}, with("0000000000000001").Missing)
	assert.Equal(t, []string{"CAP_PERFMON"}, with("0000008000000000").Missing)
	assert.Equal(t, Privileges{}, machineOf(t, 1, nil).Privileges(), "nothing is known")
}
