package filetier_test

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"kvbench/tiers"
	"kvbench/tiers/content"
	"kvbench/tiers/filetier"
	"kvbench/tiers/tiertest"
	"kvbench/tiers/workdir"
)

// onlyFile returns the file of the only entry of a directory.
func onlyFile(t *testing.T, d *workdir.Dir) string {
	t.Helper()
	files, err := filepath.Glob(d.Path() + "/??/*")
	require.NoError(t, err)
	require.Len(t, files, 1)
	return files[0]
}

func TestFileTierTellsWhatItFoundOnTheDisk(t *testing.T) {
	for _, direct := range []bool{true, false} {
		t.Run(fmt.Sprint("direct=", direct), func(t *testing.T) {
			d := tiertest.Dir(t)
			tier := tiertest.Files(t, filetier.Config{Dir: d, Direct: direct})
			assert.Equal(t, !direct, tier.Traits().CountsAtCommit)
			assert.Contains(t, tier.Traits().Description, " I/O on ")
			x := tiertest.Transfer(t, chunk, 2)
			o := tiers.Object{Key: "u1/c1/t1", Gen: 3, Size: 2*chunk + 5000}
			_, _, err := x.Write(t.Context(), tier, nil, o)
			require.NoError(t, err)
			path := onlyFile(t, d)
			var mismatch *content.MismatchError

			flip(t, path, chunk+17)
			_, _, err = x.Read(t.Context(), tier, nil, o)
			require.ErrorAs(t, err, &mismatch)
			assert.EqualValues(t, chunk+17, mismatch.Offset)
			assert.Equal(t, o.Key, mismatch.Key)
			flip(t, path, chunk+17)
			_, _, err = x.Read(t.Context(), tier, nil, o)
			require.NoError(t, err)

			// An earlier version of the same key, complete, under the current version's name.
			old := make([]byte, o.Size)
			tiertest.Content.Fill(old, tiers.Object{Key: o.Key, Gen: 1, Size: o.Size}, 0)
			require.NoError(t, os.WriteFile(path, append(old, make([]byte, 4096)...), 0o644))
			_, _, err = x.Read(t.Context(), tier, nil, o)
			require.ErrorAs(t, err, &mismatch)
			assert.ErrorContains(t, mismatch, "stale version: these are the bytes of generation 1")

			x.Verify = content.VerifyNone
			require.NoError(t, os.Truncate(path, 2*chunk+1000))
			_, _, err = x.Read(t.Context(), tier, nil, o)
			require.ErrorIs(t, err, io.ErrUnexpectedEOF)
			assert.ErrorContains(t, err, path)

			require.NoError(t, os.Remove(path))
			_, _, err = x.Read(t.Context(), tier, nil, o)
			require.ErrorIs(t, err, tiers.ErrNotFound)
			require.ErrorIs(t, err, unix.ENOENT)
			var op *tiers.OpError
			require.ErrorAs(t, err, &op)
			assert.Equal(t, path, op.Path)
		})
	}
}

func flip(t *testing.T, path string, off int64) {
	t.Helper()
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	require.NoError(t, err)
	defer f.Close()
	var b [1]byte
	_, err = f.ReadAt(b[:], off)
	require.NoError(t, err)
	b[0] ^= 0x10
	_, err = f.WriteAt(b[:], off)
	require.NoError(t, err)
	require.NoError(t, f.Sync())
}

func TestFileTierRefusesToFollowALink(t *testing.T) {
	d := tiertest.Dir(t)
	tier := tiertest.Files(t, filetier.Config{Dir: d})
	x := tiertest.Transfer(t, chunk, 1)
	o := tiers.Object{Key: "k", Gen: 1, Size: 4096}
	_, _, err := x.Write(t.Context(), tier, nil, o)
	require.NoError(t, err)
	path := onlyFile(t, d)
	require.NoError(t, tier.Remove(t.Context(), o))
	precious := filepath.Join(t.TempDir(), "precious")
	require.NoError(t, os.WriteFile(precious, []byte("mine"), 0o644))
	require.NoError(t, os.Symlink(precious, path))
	_, _, err = x.Write(t.Context(), tier, nil, o)
	require.ErrorIs(t, err, unix.EEXIST)
	_, _, err = x.Read(t.Context(), tier, nil, o)
	require.Error(t, err)
	text, err := os.ReadFile(precious)
	require.NoError(t, err)
	assert.Equal(t, "mine", string(text))
	require.NoError(t, os.Remove(path))
}

func TestAClosedTierTakesNothing(t *testing.T) {
	tier := tiertest.Files(t, filetier.Config{Layout: tiertest.Layouts["slots"]})
	w, err := tier.Create(t.Context(), tiers.Object{Key: "k", Size: 4096})
	require.NoError(t, err)
	require.NoError(t, w.Commit(t.Context()))
	r, err := tier.Open(t.Context(), tiers.Object{Key: "k"})
	require.NoError(t, err)
	require.NoError(t, r.Close())
	_, err = request(t, r, 0, 4096)
	assert.ErrorIs(t, err, tiers.ErrClosed)
	assert.ErrorIs(t, w.Commit(t.Context()), tiers.ErrClosed)
	require.NoError(t, tier.Close())
	_, err = tier.Create(t.Context(), tiers.Object{Key: "l", Size: 4096})
	assert.ErrorIs(t, err, tiers.ErrClosed)
}
