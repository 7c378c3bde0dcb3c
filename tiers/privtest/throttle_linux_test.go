package privtest

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// fakeCgroups writes files as the kernel would have them below the mount point.
func fakeCgroups(t *testing.T, files map[string]string) (root string) {
	t.Helper()
	root = t.TempDir()
	for name, text := range files {
		path := filepath.Join(root, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		require.NoError(t, os.WriteFile(path, []byte(text), 0o644))
	}
	return root
}

func TestThrottlingInEitherVersion(t *testing.T) {
	const controllers, down = "cgroup.controllers", "cgroup.subtree_control"
	for name, c := range map[string]struct {
		files   map[string]string
		parent  string
		unified bool
		down    string // what subtree_control holds afterwards
		group   map[string]string
	}{
		"v1": {
			map[string]string{"blkio/" + v1Read: ""}, "blkio", false, "",
			map[string]string{v1Read: "7:3 1000", v1Write: "7:3 2000"},
		},
		"v1 beside v2": { // hybrid: v2 has the controllers that v1 has not
			map[string]string{"blkio/" + v1Read: "", "unified/" + controllers: ""}, "blkio", false,
			"", map[string]string{v1Read: "7:3 1000", v1Write: "7:3 2000"},
		},
		"v2": {
			map[string]string{controllers: "cpuset cpu io memory\n", down: "cpu io\n"}, "", true,
			"cpu io\n", map[string]string{"io.max": "7:3 rbps=1000 wbps=2000"},
		},
		"v2, not handed down": {
			map[string]string{controllers: "io\n", down: "cpu\n"}, "", true, "+io",
			map[string]string{"io.max": "7:3 rbps=1000 wbps=2000"},
		},
	} {
		root := fakeCgroups(t, c.files)
		th, err := throttle(root, &Loop{Major: 7, Minor: 3}, Rates{Read: 1000, Write: 2000})
		require.NoError(t, err, name)
		assert.Equal(t, filepath.Join(root, c.parent), filepath.Dir(th.group), name)
		assert.Equal(t, c.unified, th.unified, name)
		text, _ := os.ReadFile(filepath.Join(root, down))
		assert.Equal(t, c.down, string(text), name)
		rules, err := os.ReadDir(th.group)
		require.NoError(t, err)
		assert.Len(t, rules, len(c.group), name)
		for file, rule := range c.group {
			text, err := os.ReadFile(filepath.Join(th.group, file))
			require.NoError(t, err, name)
			assert.Equal(t, rule, string(text), name)
		}

		// Who is inside goes back to the parent.
		require.NoError(t, os.WriteFile(th.procs(), []byte("41\n"), 0o644))
		_ = th.remove() // of a real one: here its files are in the way
		back, err := os.ReadFile(filepath.Join(root, c.parent, "cgroup.procs"))
		require.NoError(t, err, name)
		assert.Equal(t, "41", string(back), name)
	}

	th, err := throttle(fakeCgroups(t, map[string]string{"cgroup.controllers": "io\n",
		"cgroup.subtree_control": "io\n"}), &Loop{Major: 7},
		Rates{Write: 5, ReadIOPS: 7})
	require.NoError(t, err)
	text, _ := os.ReadFile(filepath.Join(th.group, "io.max"))
	assert.Equal(t, "7:0 wbps=5 riops=7", string(text), "no limit is none")
	th.Lift(t)
	text, err = os.ReadFile(filepath.Join(th.group, "io.max"))
	require.NoError(t, err)
	assert.Equal(t, "7:0 wbps=max riops=max", string(text))

	_, err = throttle(fakeCgroups(t, map[string]string{controllers: "cpu memory\n"}), &Loop{},
		Rates{Read: 1})
	assert.ErrorContains(t, err, "needs blkio of cgroup v1 or io of v2")
}
