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

// lists was made by lists.py in the same directory, which shares no code with this package. The digests
// of the four whole models at a scale of 1 are those of lists that the reference's own code made.
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
			m, _ := Find(key)
			assert.Equal(t, accelerators < m.Accelerators(), s.Subset())
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

func TestWhatIsNoCheckpointIsRefusedAtOnce(t *testing.T) {
	m, err := Find("LLAMA3-70B")
	require.NoError(t, err)
	_, err = New(m, 65, 1)
	assert.ErrorContains(t, err, "65 accelerators for llama3-70b: need 1 to 64, or a multiple of 8")
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
