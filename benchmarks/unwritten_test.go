package benchmarks

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kvbench/kvbench/result"
)

// saying returns what f says on standard error.
func saying(t *testing.T, f func()) string {
	t.Helper()
	file, err := os.CreateTemp(t.TempDir(), "")
	require.NoError(t, err)
	old := os.Stderr
	os.Stderr = file
	defer func() { os.Stderr = old }()
	f()
	_, err = file.Seek(0, io.SeekStart)
	require.NoError(t, err)
	text, err := io.ReadAll(file)
	require.NoError(t, err)
	return string(text)
}

// TestAResultThatIsNotWrittenIsTold once: when it is given up, or with the last words.
func TestAResultThatIsNotWrittenIsTold(t *testing.T) {
	for how, end := range map[string]func(*session){
		"given up":       func(s *session) { s.unwritten.giveUp(nil, errors.New("a disk hangs")) },
		"another signal": func(s *session) { s.lastWords() },
	} {
		t.Run(how, func(t *testing.T) {
			s := &session{}
			r := &result.Result{Name: "MaxStorageStress", Benchmark: "MaxStorageStress"}
			s.unwritten.begin(r)
			s.unwritten.goesTo("/res/x.json")
			assert.Contains(t, saying(t, func() { end(s) }),
				"the result of MaxStorageStress may be nowhere else than here, because of this: ")
			other := &result.Result{}
			assert.Equal(t, []*result.Result{other},
				s.unwritten.untold([]*result.Result{r, other}), "it is told once")
			assert.Empty(t, saying(t, s.lastWords))
		})
	}
}

// TestNoResultIsSaid: a second signal in the window leaves none, and none that is half written.
func TestNoResultIsSaid(t *testing.T) {
	s := &session{}
	assert.Empty(t, saying(t, s.lastWords), "no trial was begun")
	path := filepath.Join(t.TempDir(), "kvcache_results_1.json")
	part := filepath.Join(filepath.Dir(path), ".kvcache_results_1.json8697")
	require.NoError(t, os.WriteFile(part, []byte("{"), 0o600))
	saving.Store(path)
	defer saving.Store("")
	s.unwritten.clear()
	assert.Equal(t, "\nno result of this trial was written, because another signal came\n",
		saying(t, s.lastWords))
	assert.NoFileExists(t, part)
	s.unwritten.end(nil)
	assert.Empty(t, saying(t, s.lastWords), "the trial is over")
	r := &result.Result{}
	s.unwritten.begin(r)
	s.unwritten.end(nil)
	assert.Empty(t, saying(t, s.lastWords), "its result is safe")
	assert.Equal(t, []*result.Result{r}, s.unwritten.untold([]*result.Result{r}))
}

// TestWhereAResultLies: who looks at the file of one that was given up would hang, too.
func TestWhereAResultLies(t *testing.T) {
	var u unwritten
	u.begin(&result.Result{})
	u.goesTo("/res/x.json")
	saying(t, func() { u.giveUp(nil, errors.New("a disk hangs")) })
	assert.Empty(t, u.path())
	u.end(nil) // it answered at last
	assert.Equal(t, "/res/x.json", u.path())
	u.clear()
	assert.Empty(t, u.path())
}
