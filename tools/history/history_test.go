package history

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// commits are synthetic ones: six trials each, of a spread, and a loss from one of them on.
func commits(r *rand.Rand, n, step int, loss, spread float64) (list []Entry) {
	for i := range n {
		level := 1e9
		if step > 0 && i+1 >= step {
			level *= 1 - loss
		}
		e := Entry{Commit: fmt.Sprintf("c%d", i+1), Machine: "lab7", Benchmark: "StorageCeiling",
			Better: map[string]int{"read-B/s": 1}, Values: map[string][]float64{}}
		for range 6 {
			e.Values["read-B/s"] = append(e.Values["read-B/s"], level*(1+spread*r.NormFloat64()))
		}
		list = append(list, e)
	}
	return list
}

func TestTheCommitThatChangedIsNamed(t *testing.T) {
	const seed = 20260908
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 1))
	named := 0
	for range 100 {
		s := Arrange(commits(r, 30, 17, 0.08, 0.03), nil, 0.05)[0]
		if len(s.Changes) == 1 && s.Points[s.Changes[0].At].Commit == "c17" {
			named++
			assert.InDelta(t, -0.08, s.Changes[0].Ratio, 0.03)
		}
	}
	t.Logf("%d of 100 histories of 30 commits with a loss of 8 %% at the 17th name the 17th, and no "+
		"other (spread 3 %%)", named)
	assert.GreaterOrEqual(t, named, 90)
	found := 0
	for range 400 {
		found += len(Arrange(commits(r, 30, 0, 0, 0.03), nil, 0.05)[0].Changes)
	}
	t.Logf("%d changes in 400 histories without one", found)
	assert.LessOrEqual(t, found, 29, "5 %% and what chance adds to 20")
	two := commits(r, 20, 0, 0, 0.01)
	for i, e := range commits(r, 40, 21, 0.1, 0.01)[20:] {
		e.Commit = fmt.Sprintf("d%d", i+1)
		two = append(two, e)
	}
	for i, e := range commits(r, 20, 0, 0, 0.01) {
		e.Commit = fmt.Sprintf("e%d", i+1)
		two = append(two, e)
	}
	var at []string
	s := Arrange(two, nil, 0.05)[0]
	for _, c := range s.Changes {
		at = append(at, s.Points[c.At].Commit)
	}
	assert.Equal(t, []string{"d1", "e1"}, at, "worse, and mended")
}

func TestSeriesAreOfOneMachineAndOneSetting(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	list := commits(r, 3, 0, 0, 0.01)
	list[1].Machine = "lab8"
	list[2].Settings = map[string]string{"io": "buffered"}
	list = append(list, list[0])
	list[3].Settings = map[string]string{"io": "direct"}
	list[3].Values = map[string][]float64{"read-B/s": {1}, "read-p95-sec": {2}}
	all := Arrange(list, []string{"read-p95-sec"}, 0.05)
	var names []string
	for _, s := range all {
		names = append(names, fmt.Sprint(s.Machine, " ", s.Name(all), " ", s.Unit, " ",
			len(s.Points)))
	}
	assert.Equal(t, []string{"lab7 StorageCeiling [io=buffered] read-B/s 2", "lab8 StorageCeiling read-B/s 1",
		"lab7 StorageCeiling [io=direct] read-B/s 1",
		"lab7 StorageCeiling [io=direct] read-p95-sec 1"}, names)
}

// Names of commits may be anything, and stay told apart on an axis.
func TestNamesOfCommits(t *testing.T) {
	hash := strings.Repeat("0123456789abcdef", 4)[:40]
	for name, want := range map[string][2]string{
		hash:                     {"0123456789ab", "0123456"},
		strings.Repeat("ß", 20):  {strings.Repeat("ß", 20), "…" + strings.Repeat("ß", 8)},
		"v1.12.3":                {"v1.12.3", "v1.12.3"},
		"Ausgabe-März-17":        {"Ausgabe-März-17", "…-März-17"},
		strings.Repeat("xy", 20): {strings.Repeat("xy", 20), "…xyxyxyxy"},
		"":                       {"", ""},
	} {
		assert.Equal(t, want, [2]string{short(name, 12), tick(name)}, name)
	}
}

func TestAFileGrowsAtItsEnd(t *testing.T) {
	path := filepath.Join(t.TempDir(), "history.jsonl")
	list := commits(rand.New(rand.NewPCG(1, 2)), 2, 0, 0, 0.01)
	require.NoError(t, Add(path, list[:1]))
	require.NoError(t, Add(path, list[1:]))
	have, err := ReadFile(path)
	require.NoError(t, err)
	assert.Equal(t, list, have)
	assert.ErrorContains(t, Add(path, list[1:]), "has StorageCeiling of commit c2 on lab7 already")
	_, err = Read(strings.NewReader("{\"commit\":\"a\"}\n"), "f")
	assert.ErrorContains(t, err, "f:1: an entry has a commit, a machine and a benchmark")
}

// FuzzRead: a file that was merged by hand is read or refused, and what is read can be shown.
func FuzzRead(f *testing.F) {
	f.Add([]byte(`{"commit":"a","machine":"m","benchmark":"B","values":{"read-B/s":[1,2]}}`))
	f.Add([]byte("\n{}"))
	f.Fuzz(func(_ *testing.T, data []byte) {
		list, err := Read(bytes.NewReader(data), "f")
		if err == nil && len(list) < 100 {
			all := Arrange(list, []string{"x"}, 0.05)
			Text(all)
			Page(all)
		}
	})
}
