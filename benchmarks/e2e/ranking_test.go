package e2e

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kvbench/kvbench/result"
)

// TestEnginesAreRanked: trials of all lines take turns, though their lines stand together, and one
// table ranks them.
func TestEnginesAreRanked(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	trace, err := filepath.Abs(testdata + "/mooncake-small.jsonl")
	require.NoError(t, err)
	args := append(b.places(), "-test.bench=Engines", "-test.count=2", "-division=open",
		"-model=tiny-1b", "-storage-capacity-gb=0.25", "-test.benchtime=20x",
		"-block-trace-path="+trace)
	o := b.ok(append(args, "-sweep=engine=lmcache,sglang,mooncake")...)
	line := regexp.MustCompile(`(?m)^BenchmarkEngines/engine=(\w+)\S*\s.* found-tok/s`)
	var lines []string
	for _, m := range line.FindAllStringSubmatch(o.stdout, -1) {
		lines = append(lines, m[1])
	}
	assert.Equal(t, []string{"lmcache", "lmcache", "sglang", "sglang", "mooncake", "mooncake"},
		lines)
	var results []*result.Result
	for _, path := range resultFiles(t, b.results) {
		results = append(results, readResult(t, path))
	}
	slices.SortFunc(results, func(x, y *result.Result) int {
		return strings.Compare(x.StartTime, y.StartTime)
	})
	require.Len(t, results, 6)
	for i := range 3 {
		assert.Equal(t, results[i].Name, results[5-i].Name, "the second round goes back")
		assert.Equal(t, []int{0, 1}, []int{results[i].Trial, results[5-i].Trial})
		assert.InDelta(t, *results[i].BlockCache.HitRatio, *results[5-i].BlockCache.HitRatio, 0.2)
	}
	text, err := os.ReadFile(filepath.Join(b.results, "ranking.txt"))
	require.NoError(t, err)
	assert.Contains(t, o.stderr, string(text))
	assert.Regexp(t, `(?m)^ranking +found tok/s +interval`, string(text))
	for _, engine := range []string{"lmcache", "sglang", "mooncake"} {
		assert.Regexp(t, `(?m)^ +engine=`+engine+` +[0-9,]+ +– `, string(text))
	}
	assert.Contains(t, string(text), "benchstat -col /engine")

	o = b.run(append(args, "-sweep=workers=1,2")...)
	assert.Equal(t, 2, o.code)
	assert.Contains(t, o.stderr, "-sweep: must be of engine or layout")
}
