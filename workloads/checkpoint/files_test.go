package checkpoint

import (
	"crypto/sha256"
	_ "embed"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// lists was made by lists.py in the same directory, which shares no code with this package.
//
//go:embed testdata/lists.txt
var lists string

func TestListsAreThoseOfTheIndependentScript(t *testing.T) {
	n := 0
	for line := range strings.Lines(lists) {
		var key, digest string
		var accelerators, files int
		var scale, bytes int64
		_, err := fmt.Sscan(line, &key, &accelerators, &scale, &files, &bytes, &digest)
		require.NoError(t, err)
		t.Run(fmt.Sprintf("%s on %d at %d", key, accelerators, scale), func(t *testing.T) {
			s := spec(t, key, accelerators, scale)
			gotFiles, gotBytes := s.Totals()
			assert.Equal(t, files, gotFiles)
			assert.Equal(t, bytes, gotBytes)
			assert.Equal(t, digest, sum(s))
			for a := range accelerators {
				for _, f := range s.Files(a) {
					assert.Regexp(t, "^(?:"+s.Pattern()+")$", Step(a+1)+"/"+f.Name)
				}
			}
		})
		n++
	}
	assert.Equal(t, 22, n)
}

// TestListsAreThoseOfTheRules compares with numbers of the reference's own code: files and bytes of
// the whole checkpoint, the first digits of the list's SHA-256, the smallest and the largest bytes
// of an accelerator, and the bytes of the first eight accelerators.
func TestListsAreThoseOfTheRules(t *testing.T) {
	for _, want := range []struct {
		key         string
		n           int
		files       int
		bytes       int64
		digest      string
		least, most string
		files8      int
		bytes8      int64
		parameters  int64
	}{
		{"8b", 8, 16, 112_425_623_552, "5609559d39a96a6a", "13.088", "13.088",
			16, 112_425_623_552, 8_030_261_248},
		{"70b", 64, 128, 978_406_572_032, "660fb8d0fdde3b1e", "14.238", "14.238",
			16, 122_300_821_504, 69_882_617_856},
		{"405b", 512, 1544, 5_682_508_791_808, "7676dca546c93645", "8.860", "12.318",
			48, 105_811_532_800, 405_853_388_800},
		{"1t", 1024, 2072, 16_564_174_094_592, "b2d7a729ce92272b", "12.913", "17.966",
			32, 154_322_342_880, 1_183_035_102_480},
	} {
		t.Run(want.key, func(t *testing.T) {
			s := spec(t, want.key, 0, 1)
			files, bytes := s.Totals()
			assert.Equal(t, want.n, s.Accelerators)
			assert.Equal(t, want.files, files)
			assert.Equal(t, want.bytes, bytes)
			assert.Equal(t, want.digest, sum(s)[:16])
			assert.Equal(t, want.parameters, s.Parameters())
			var each []int64
			for a := range s.Accelerators {
				n := int64(0)
				for _, f := range s.Files(a) {
					n += f.Bytes
				}
				each = append(each, n)
			}
			gib := func(n int64) string { return fmt.Sprintf("%.3f", float64(n)/(1<<30)) }
			assert.Equal(t, want.least, gib(slices.Min(each)))
			assert.Equal(t, want.most, gib(slices.Max(each)))
			files, bytes = spec(t, want.key, 8, 1).Totals()
			assert.Equal(t, want.files8, files)
			assert.Equal(t, want.bytes8, bytes)
		})
	}
}

func TestAStreamIsOneFile(t *testing.T) {
	s, err := NewStream(5 << 30)
	require.NoError(t, err)
	assert.Regexp(t, "^(?:"+s.Pattern()+")$", Step(10)+"/stream.bin")
	assert.Equal(t, []File{{"stream.bin", 5 << 30}}, s.Files(0))
	files, bytes := s.Totals()
	assert.Equal(t, []int64{1, 5 << 30}, []int64{int64(files), bytes})
	assert.Equal(t, []any{"ckpt_stream", 1, 1, false}, []any{s.Folder(), s.Data(),
		s.Model.Accelerators(), s.Subset()})
	_, err = NewStream(0)
	assert.Error(t, err)
}

func TestASubsetHasTheFilesOfTheWhole(t *testing.T) {
	for _, m := range Models() {
		whole, part := spec(t, m.Key, 0, 1), spec(t, m.Key, 3, 1)
		for a := range part.Accelerators {
			assert.Equal(t, whole.Files(a), part.Files(a))
		}
		assert.True(t, part.Subset())
		assert.False(t, whole.Subset())
	}
}

func TestScaledFilesAreWholePages(t *testing.T) {
	for _, scale := range []int64{2, 64, 256, MaxScale} {
		exact, scaled := spec(t, "405b", 8, 1), spec(t, "405b", 8, scale)
		for a := range exact.Accelerators {
			for i, f := range exact.Files(a) {
				got := scaled.Files(a)[i].Bytes
				assert.Zero(t, got%4096)
				assert.GreaterOrEqual(t, got*scale, f.Bytes)
				assert.Less(t, (got-4096)*scale, f.Bytes)
			}
		}
	}
}

func TestWhatIsNoCheckpointIsRefusedAtOnce(t *testing.T) {
	m, err := Find("LLAMA3-70B")
	require.NoError(t, err)
	_, err = New(m, 65, 0)
	assert.ErrorContains(t, err, "65 accelerators for llama3-70b: need 1 to 64, or a multiple of 8")
	assert.ErrorContains(t, err, "a scale of 1/0: need 1/1 to 1/65536")
	_, err = New(m, 72, 1)
	assert.NoError(t, err)
	_, err = Find("7b")
	assert.EqualError(t, err, `there is no checkpoint of "7b", but of 8b, 70b, 405b, 1t`)
}

func spec(t *testing.T, key string, accelerators int, scale int64) Spec {
	t.Helper()
	m, err := Find(key)
	require.NoError(t, err)
	s, err := New(m, accelerators, scale)
	require.NoError(t, err)
	return s
}

// sum is the SHA-256 of a checkpoint's list: a line of name, TAB and bytes for each file, sorted.
func sum(s Spec) string {
	var lines []string
	for a := range s.Accelerators {
		for _, f := range s.Files(a) {
			lines = append(lines, fmt.Sprintf("%s\t%d\n", f.Name, f.Bytes))
		}
	}
	slices.Sort(lines)
	return fmt.Sprintf("%x", sha256.Sum256([]byte(strings.Join(lines, ""))))
}
