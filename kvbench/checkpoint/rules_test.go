package checkpoint

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kvbench/kvbench/result"
	"kvbench/tiers"
	"kvbench/tiers/content"
	files "kvbench/workloads/checkpoint"
)

func specOf(t testing.TB, key string, accelerators int, scale int64) files.Spec {
	t.Helper()
	m, err := files.Find(key)
	require.NoError(t, err)
	s, err := files.New(m, accelerators, scale)
	require.NoError(t, err)
	return s
}

// broken names the rules that were not kept, and with a question mark those that are unknown.
func broken(rules []result.CheckpointRule) string {
	var list []string
	for _, r := range rules {
		switch {
		case r.OK == nil:
			list = append(list, r.Name+"?")
		case !*r.OK:
			list = append(list, r.Name)
		}
	}
	return strings.Join(list, ", ")
}

// TestRules reports all differences from the closed division at once.
func TestRules(t *testing.T) {
	cold := []result.CheckpointRun{{Bytes: 100, Cold: new(true)}}
	good := Facts{Op: tiers.Write, Writes: 10, Reads: 10, PerHost: 8, Apart: true, Memory: 180e9,
		Spec: specOf(t, "8b", 0, 1), Verify: content.VerifySample}
	read := func(f Facts) Facts {
		f.Op, f.Runs, f.Gap = tiers.Read, cold, new(int64(200*time.Millisecond))
		return f
	}
	for _, c := range []struct {
		change func(*Facts)
		want   string
	}{
		{func(*Facts) {}, ""},
		{func(f *Facts) { *f = read(*f) }, ""},
		{func(f *Facts) { f.Writes = 0 }, ""},
		{func(f *Facts) { f.Writes = 5 }, "writes"},
		{func(f *Facts) { f.PerHost = 4 }, "accelerators per host"},
		{func(f *Facts) { f.Apart = false }, "results"},
		{func(f *Facts) { f.Memory = 0 }, "accelerator memory"},
		{func(f *Facts) { f.Memory = 10e9 }, "accelerator memory"},
		{func(f *Facts) { f.Verify = content.VerifyNone }, "verification"},
		{func(f *Facts) { *f = read(*f); f.Gap = new(int64(29 * time.Second)) }, ""},
		{func(f *Facts) { *f = read(*f); f.Gap = new(int64(31 * time.Second)) }, "gap"},
		{func(f *Facts) { *f = read(*f); f.Gap = new(int64(-2 * time.Second)) }, "gap"},
		{func(f *Facts) { *f = read(*f); f.Gap = nil }, "gap?"},
		{func(f *Facts) { *f = read(*f); f.Runs = []result.CheckpointRun{{}} }, "cold reads?"},
		{func(f *Facts) {
			*f = read(*f)
			f.Runs = []result.CheckpointRun{{Cold: new(true)}, {Cold: new(false)}, {}}
		}, "cold reads"},
		{func(f *Facts) {
			*f = read(*f)
			f.Spec, f.Writes, f.Reads, f.PerHost = specOf(t, "70b", 8, 64), 5, 3, 4
			f.Apart, f.Memory, f.Verify = false, 0, content.VerifyNone
			f.Gap, f.Runs = new(int64(31*time.Second)), []result.CheckpointRun{{Cold: new(false)}}
		}, "scale, accelerators, accelerators per host, writes, reads, results, accelerator " +
			"memory, verification, gap, cold reads"},
	} {
		f := good
		c.change(&f)
		assert.Equal(t, c.want, broken(f.Rules()))
	}
}

func TestNotesAndWarnings(t *testing.T) {
	f := Facts{Spec: specOf(t, "70b", 8, 1)}
	assert.Equal(t, "[8 of 64 accelerators: not valid under the newest rules]",
		fmt.Sprint(f.Notes()))
	f.Spec = specOf(t, "1t", 0, 1)
	assert.Contains(t, fmt.Sprint(f.Notes()), "7/6")
	f = Facts{Op: tiers.Write, Spec: specOf(t, "8b", 0, 1)}
	assert.Empty(t, f.Notes())
	assert.Empty(t, f.Warnings(), "a write has none")

	f = Facts{Op: tiers.Read, Spec: specOf(t, "8b", 0, 1), Writes: 1, HostMemory: 64 << 30,
		PerHost: 8, Buffered: true, Flush: FlushNone, Gap: new(int64(-2 * time.Second))}
	assert.Equal(t, []string{
		"reading began 2.0 s before the last write ended, by the wall clocks: they differ",
		"reads may have come from the page cache: 105 GiB were written through it here, which is " +
			"less than 3 times the memory of 64 GiB; give -checkpoint-flush"}, f.Warnings())
	f.Gap, f.Writes = new(int64(31*time.Second)), 10
	f.PerHost = 1 // ten checkpoints, of which this host wrote an eighth
	assert.Contains(t, fmt.Sprint(f.Warnings()), "131 GiB were written through it here")
	f.PerHost = 2
	assert.Equal(t, []string{"reading began 31.0 s after the last write ended, at most 30 s may " +
		"pass"}, f.Warnings())
	f.Gap, f.Runs = nil, []result.CheckpointRun{{Cold: new(false)}, {Cold: new(true)}}
	assert.Equal(t, []string{"reads of checkpoints: 1 of 2 came from memory; give -io direct, " +
		"-fadvise dontneed or -checkpoint-flush"}, f.Warnings())
}
