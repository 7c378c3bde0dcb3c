package params

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kvbench/kvbench/units"
	"kvbench/tracing/host"
)

// TestSeveralDirectories can be said in each layer, and mean the same.
func TestSeveralDirectories(t *testing.T) {
	want := []string{"/a", "/b"}
	for name, v := range map[string]*Values{
		"flags":       good(t, Inputs{}, "-cache-dir=/a", "-cache-dir=/b"),
		"one flag":    good(t, Inputs{}, "-cache-dir=/a, /b"),
		"environment": good(t, Inputs{Env: environment("KVBENCH_CACHE_DIR", "/a,/b")}),
		"file": good(t, Inputs{}, "-config="+writeFile(t, "c.yaml",
			"parameters:\n  cache-dir: /a,/b\n")),
		"a list in a file": good(t, Inputs{}, "-config="+writeFile(t, "c.yaml",
			"parameters:\n  cache-dir: [/a, /b]\n")),
	} {
		assert.Equal(t, want, v.CacheDirs, name)
		assert.Equal(t, "/a", v.CacheDir(), name)
		assert.Equal(t, "/a,/b", v.Text("cache-dir"), name)
	}
	v := good(t, Inputs{Env: environment("KVBENCH_CACHE_DIR", "/c,/d")}, "-cache-dir=/a")
	assert.Equal(t, []string{"/a"}, v.CacheDirs, "the strongest layer has all of them")
	assert.Empty(t, good(t, Inputs{}).CacheDirs)
	v = good(t, Inputs{Base: "/base"}, "-cache-dir=a", "-cache-dir=b")
	assert.Equal(t, []string{"/base/a", "/base/b"}, v.CacheDirs)
	v = good(t, Inputs{}, `-cache-dir=/a\,b`)
	assert.Equal(t, []string{"/a,b"}, v.CacheDirs)
	assert.Equal(t, `/a\,b`, v.Text("cache-dir"), "as it can be given again")
}

func TestDirectoriesThatCannotShare(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.Symlink(dir, filepath.Join(dir, "link")))
	for _, c := range []struct {
		bench, want string
		args        []string
	}{
		{"", "different directories (/a/ is the same directory as /a)", []string{"-cache-dir=/a,/a/"}},
		{"", "(/a/b is inside of /a)", []string{"-cache-dir=/a,/a/b"}},
		{"", "(/a/b is inside of /a)", []string{"-cache-dir=/a/b,/a"}},
		{"", "(" + dir + "/link/x is the same directory as " + dir + "/x)",
			[]string{"-cache-dir=" + dir + "/x", "-cache-dir=" + dir + "/link/x"}},
		{"", `(a comma in a name is \,)`, []string{"-cache-dir=/data/kv,old"}},
		{"", "none of which is empty", []string{"-cache-dir=/a,,/b"}},
		{"", "one s3://BUCKET/PREFIX alone", []string{"-cache-dir=/a,s3://bucket/x"}},
		{"", "one s3://BUCKET/PREFIX alone", []string{"-cache-dir=s3://bucket/x,s3://bucket/y"}},
		{"MaxStorageStress", "one directory in the closed division",
			[]string{"-cache-dir=/a,/b", "-division=closed"}},
		{"Checkpoint", "one directory with Checkpoint", []string{"-cache-dir=/a,/b"}},
		{"BlockTrace", "packed=N with several directories",
			[]string{"-cache-dir=/a,/b", "-layout=kvbm-slots", "-cpu-mem-gb=1"}},
		{"", "block with several directories", []string{"-cache-dir=/a,/b",
			"-enable-latency-tracing", "-latency-trace-level=file"}},
	} {
		in := Inputs{}
		if c.bench != "" {
			in.Bench = bench(t, c.bench)
		}
		texts := wrong(t, in, c.args...)
		assert.Len(t, texts, 1, c.args)
		assert.Contains(t, texts[0], c.want, c.args)
	}
	// Names that only begin alike are beside each other.
	good(t, Inputs{}, "-cache-dir=/a/kv", "-cache-dir=/a/kv2")
}

// TestSharesOfDirectories: all of them take what the smallest can, with room for a hash's whims,
// and those on one filesystem share its room.
func TestSharesOfDirectories(t *testing.T) {
	disk := func(free int64) host.Filesystem {
		return host.Filesystem{Type: "xfs", Total: 2000 * units.GiB, Free: free * units.GiB}
	}
	dirs := []string{"/a", "/b"}
	on := []host.Filesystem{disk(1000), disk(400)}
	bytes, shares, err := ChooseShares(dirs, on, []int{1, 1}, 0, true)
	require.NoError(t, err)
	assert.EqualValues(t, 540*units.GiB, bytes, "0.9 × 2 × (400 − 5 %% of 2000)")
	assert.EqualValues(t, 300*units.GiB, shares[1].Room)
	assert.EqualValues(t, 900*units.GiB, shares[0].Room)
	assert.EqualValues(t, 90*units.GiB, shares[0].Floor)

	bytes, shares, err = ChooseShares(dirs, on, []int{2, 2}, 100*units.GiB, false)
	require.NoError(t, err)
	assert.EqualValues(t, 100*units.GiB, bytes, "as it was given")
	assert.Equal(t, []Share{{Room: 500 * units.GiB}, {Room: 200 * units.GiB}}, shares)

	_, shares, err = ChooseShares(dirs, []host.Filesystem{disk(400), disk(400)}, []int{2, 2},
		100*units.GiB, false)
	require.NoError(t, err)
	assert.EqualValues(t, 200*units.GiB, shares[0].Room, "half of one filesystem")

	_, _, err = ChooseShares(dirs, on, []int{1, 1}, 900*units.GiB, false)
	assert.ErrorContains(t, err, "-storage-capacity-gb: must be at most 400 (the xfs filesystem "+
		"of /b has 400 GiB free for 1 rank), given 450: each of 2 directories takes an "+
		"equal part")
	bytes, _, err = ChooseShares(dirs, []host.Filesystem{disk(1), disk(400)}, []int{1, 1},
		4*units.GiB, true)
	require.NoError(t, err)
	assert.EqualValues(t, units.GiB, bytes, "what nobody typed shrinks")
}
