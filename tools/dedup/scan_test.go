package dedup

import (
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kvbench/tools/golden"
)

// block is the block size of these tests, in bytes.
const block = 4096

func write(t *testing.T, path string, data []byte) string {
	t.Helper()
	require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
	require.NoError(t, os.WriteFile(path, data, 0o644))
	return path
}

func random(seed uint64, n int) []byte {
	r := rand.NewChaCha8([32]byte{byte(seed), byte(seed >> 8)})
	b := make([]byte, n)
	_, _ = r.Read(b)
	return b
}

func TestKnownDuplicates(t *testing.T) {
	dir := t.TempDir()
	a := random(1, 100*block)
	write(t, filepath.Join(dir, "a"), a)
	write(t, filepath.Join(dir, "sub/copy of half of a"), a[:50*block])
	write(t, filepath.Join(dir, "zeros"), make([]byte, 10*block))
	write(t, filepath.Join(dir, "short"), a[:100])      // padded, so equal to nothing
	write(t, filepath.Join(dir, "shifted"), a[1:block]) // the same bytes, not the same block
	r, err := Scan([]string{dir}, block, DefaultKept)
	require.NoError(t, err)
	assert.Empty(t, r.Problems)
	assert.Equal(t, []int64{5, 162, 10, 1},
		[]int64{r.Files, r.Blocks, r.ZeroBlocks, r.SampledOneIn})
	assert.Equal(t, 59.0, r.DuplicateBlocks, "50 of the copy and 9 zeros")
	assert.Zero(t, r.PlusMinusShare)
	golden.Check(t, "known.golden.json", golden.JSON(t, r))
	golden.Check(t, "known.golden", r.Text())
}

// TestBlockSizes: the smaller the blocks, the more of them are equal. A block that is partly a hole is read
// with its zeros.
func TestBlockSizes(t *testing.T) {
	dir := t.TempDir()
	a := random(3, 256<<10)
	write(t, filepath.Join(dir, "a"), append(a, a[4096:128<<10]...)) // 124 KiB again, 4 KiB displaced
	for size, want := range map[int64]float64{512: 248, 4096: 31, 8192: 0, MaxBlock: 0} {
		require.NoError(t, CheckBlock(size))
		r, err := Scan([]string{dir}, size, DefaultKept)
		require.NoError(t, err)
		assert.Equal(t, want, r.DuplicateBlocks, size)
		assert.Equal(t, (380<<10+size-1)/size, r.Blocks, size)
	}
	for _, size := range []int64{0, 256, 6000, 2 << 20} {
		assert.Error(t, CheckBlock(size), size)
	}
	path := write(t, filepath.Join(dir, "holes"), make([]byte, 0))
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	require.NoError(t, err)
	_, err = f.WriteAt(random(4, 4096), 512<<10+8192)
	require.NoError(t, err)
	require.NoError(t, f.Truncate(1<<20))
	require.NoError(t, f.Sync())
	require.NoError(t, f.Close())
	r, err := Scan([]string{path}, 128<<10, DefaultKept)
	require.NoError(t, err)
	assert.EqualValues(t, 1<<20, r.Bytes+r.HoleBytes)
	assert.Equal(t, r.Bytes, r.Blocks*r.BlockBytes)
	assert.EqualValues(t, 1, r.Blocks-r.ZeroBlocks)
}

// TestHolesAreNoDuplicates: preallocated extents take no bytes on the device.
func TestHolesAreNoDuplicates(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "slots")
	f, err := os.Create(path)
	require.NoError(t, err)
	for i, at := range []int64{0, 64 << 20} { // beyond any preallocation of the filesystem's own
		_, err = f.WriteAt(random(uint64(i), 10*block), at)
		require.NoError(t, err)
	}
	require.NoError(t, f.Truncate(128<<20))
	require.NoError(t, f.Sync()) // extents are decided when they are written back
	require.NoError(t, f.Close())
	r, err := Scan([]string{dir}, block, DefaultKept)
	require.NoError(t, err)
	assert.Equal(t, int64(128<<20), r.Bytes+r.HoleBytes)
	if r.HoleBytes == 0 {
		t.Skip("this filesystem does not tell its holes")
	}
	assert.GreaterOrEqual(t, r.Blocks, int64(20))
	assert.Zero(t, r.DuplicateBlocks-max(0, float64(r.ZeroBlocks-1)), "but zeros around the data")
	assert.Contains(t, r.Text(), "holes  ")
}

func TestLinksAreReadOnce(t *testing.T) {
	dir := t.TempDir()
	path := write(t, filepath.Join(dir, "a"), random(2, 10*block))
	require.NoError(t, os.Link(path, filepath.Join(dir, "b")))
	require.NoError(t, os.Symlink(path, filepath.Join(dir, "c")))
	r, err := Scan([]string{dir, path}, block, DefaultKept)
	require.NoError(t, err)
	assert.EqualValues(t, 10, r.Blocks)
	assert.Zero(t, r.DuplicateBlocks)
	link := filepath.Join(t.TempDir(), "link")
	require.NoError(t, os.Symlink(dir, link))
	r, err = Scan([]string{link}, block, DefaultKept)
	require.NoError(t, err)
	assert.EqualValues(t, 10, r.Blocks, "a link that is named is followed")
}

// TestEstimatesCoverTheTruth draws contents with a known share of duplicates, counts them with a
// small sample, and checks how often the interval holds the true share.
func TestEstimatesCoverTheTruth(t *testing.T) {
	const seed, runs, blocks = 7, 200, 40_000
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	covered := 0
	for range runs {
		c := newCounter(1024)
		distinct := make(map[uint64]bool)
		pool := uint64(10_000 + r.IntN(100_000))
		key := r.Uint64()
		for range blocks {
			// A mixed number stands for the hash of a content.
			h := mix(key ^ r.Uint64N(pool))
			distinct[h] = true
			c.add(h)
		}
		assert.LessOrEqual(t, len(c.seen), 1024)
		assert.Positive(t, c.shift)
		truth := float64(blocks - len(distinct))
		if n, d := c.duplicates(); n-d <= truth && truth <= n+d {
			covered++
		}
	}
	t.Logf("%d of %d intervals hold the truth", covered, runs)
	assert.GreaterOrEqual(t, covered, runs*90/100)
}

// mix is the finalizer of splitmix64.
func mix(x uint64) uint64 {
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

func TestSamplingFindsNoDuplicatesWhereThereAreNone(t *testing.T) {
	c := newCounter(1024)
	for i := range uint64(100_000) {
		c.add(mix(i + 1))
	}
	n, plusMinus := c.duplicates()
	assert.Zero(t, n)
	assert.Zero(t, plusMinus)
}
