package load

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kvbench/tools/golden"
	"kvbench/tracing"
	"kvbench/tracing/fio"
)

const bpftraceTexts = "testdata/bpftrace"

// readText parses one of testdata/bpftrace. bpftrace 0.17 printed them while fio ran on a loop
// device, with a script that has the probes and maps of the Python benchmark's:
//
//	drifted      randrw, 70 % reads of 4k/50:16k/30:128k/20, writes of 64k, depth 8, for 6 s
//	ended-early  reads of 128k at depth 16, for 8 s until the script ended before fio did
//	negative     four writers of 64k with fsync=8, for 6 s
func readText(t *testing.T, name string) *Bpftrace {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(bpftraceTexts, name+".txt"))
	require.NoError(t, err)
	b, err := parseBpftrace(string(text), "x.txt")
	require.NoError(t, err)
	return b
}

// textOf makes a text of single histograms, each "name: low high count, …".
func textOf(hists ...string) string {
	var b strings.Builder
	for _, h := range hists {
		name, rows, _ := strings.Cut(h, ": ")
		fmt.Fprintf(&b, "@%s:\n", name)
		for row := range strings.SplitSeq(rows, ", ") {
			f := strings.Fields(row)
			if len(f) == 2 {
				fmt.Fprintf(&b, "[%s]  %s |@@|\n", f[0], f[1])
				continue
			}
			fmt.Fprintf(&b, "[%s, %s)  %s |@@|\n", f[0], f[1], f[2])
		}
		b.WriteString("\n")
	}
	return b.String()
}

func distilled(t *testing.T, b *Bpftrace, window time.Duration, title string) string {
	t.Helper()
	tr, about := b.Trace(window)
	job, err := fio.Job(tr, fio.Input{Title: title, About: about})
	require.NoError(t, err)
	return job
}

func jobOf(t *testing.T, text string, window time.Duration) string {
	t.Helper()
	b, err := parseBpftrace(text, "x.txt")
	require.NoError(t, err)
	return distilled(t, b, window, "")
}

func TestFioJobsOfRealBpftraceTexts(t *testing.T) {
	for _, c := range []struct {
		text   string
		window time.Duration
	}{{"drifted", 0}, {"drifted", 6 * time.Second}, {"ended-early", 0},
		{"ended-early", 8 * time.Second}, {"negative", 0}, {"negative", 6 * time.Second}} {
		name := c.text
		if c.window > 0 {
			name += "-window"
		}
		t.Run(name, func(t *testing.T) {
			b := readText(t, c.text)
			job := distilled(t, b, c.window, "the bpftrace text "+c.text)
			golden.Check(t, "bpftrace/"+name+".fio", job)
			assert.Equal(t, job, distilled(t, b, c.window, "the bpftrace text "+c.text),
				"Trace changes nothing in the text")
		})
	}
}

// depthIn is the depth of a job, of reads and writes together.
func depthIn(t *testing.T, job string) (sum int) {
	t.Helper()
	all := regexp.MustCompile(`(?m)^iodepth=(\d+)$`).FindAllStringSubmatch(job, -1)
	require.NotEmpty(t, all, job)
	for _, m := range all {
		n, err := strconv.Atoi(m[1])
		require.NoError(t, err)
		sum += n
	}
	return sum
}

func TestBpftraceDepth(t *testing.T) {
	const load = "bssplit_read_kb: 128 256 1000"
	d2c := "d2c_read_us: 1K 2K 1000" // 1.536 s in all
	times := func(n int, every time.Duration) string {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, "@d[1, %d]: %d\n", i, 5e9+i*int(every))
		}
		return b.String()
	}
	for _, c := range []struct {
		name, text string
		window     time.Duration
		depth      int
		says       string
	}{
		{"a given window", textOf(load, d2c, "qd_read: 1 1000") + "@inflight_read: 0\n",
			100 * time.Millisecond, 15, "÷ the given window of 100ms"},
		{"times left over", textOf(load, d2c) + times(40, 5*time.Millisecond*8), 0, 1,
			"which the times of requests left over span"},
		{"too few of them", textOf(load, d2c) + times(19, 100*time.Millisecond), 0, guessDepth,
			"is a guess"},
		{"a second in which all began", textOf(load, d2c) + times(40, time.Millisecond), 0,
			guessDepth, "is a guess"},
		{"neither", textOf(load, d2c), 0, guessDepth, "is a guess"},
		{"no device times make a window useless", textOf(load), time.Second, guessDepth,
			"is a guess"},
		{"fio's limit", textOf(load, d2c), time.Millisecond, 256, "cut to 256"},
		{"one absurd device time does not count", textOf(load, "d2c_read_us: 1K 2K 999, 8M 16M 1"),
			time.Second, 2, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			job := jobOf(t, c.text, c.window)
			assert.Equal(t, c.depth, depthIn(t, job), job)
			assert.Contains(t, job, c.says)
		})
	}
}

func TestBpftraceRequests(t *testing.T) {
	const d2c = "d2c_read_us: 64 128 500"
	t.Run("dispatches beyond the completions, nothing left over: issued again", func(t *testing.T) {
		job := jobOf(t, textOf("bssplit_read_kb: 1K 2K 1000", d2c, "bssplit_write_kb: 4 8 500",
			"d2c_write_us: 4 8 500"), time.Second)
		assert.Contains(t, job, "500 of 1500 dispatches were not the first of their request")
		assert.Contains(t, job, "\nrwmixread=50\n", "of requests, not of dispatches")
	})
	t.Run("left over: lost", func(t *testing.T) {
		var left strings.Builder
		for i := range 400 {
			fmt.Fprintf(&left, "@d[1, %d]: 7\n", i)
		}
		job := jobOf(t, textOf("bssplit_read_kb: 1K 2K 1000", d2c, "bssplit_write_kb: 4 8 500",
			"d2c_write_us: 4 8 500")+left.String(), time.Second)
		assert.Contains(t, job, "lost the completions of 500 of 1500 requests")
		assert.Contains(t, job, "\nrwmixread=67\n")
	})
	t.Run("requests below 1 KiB are left out, where there are others", func(t *testing.T) {
		job := jobOf(t, textOf("bssplit_write_kb: 0 500, 4 8 500"), 0)
		assert.Contains(t, job, "bssplit=4k/100\n")
		assert.Contains(t, job, "500 requests of less than 1 KiB were left out")
		assert.Contains(t, jobOf(t, textOf("bssplit_write_kb: 0 500"), 0),
			"bssplit=512/100\n")
	})
	t.Run("shares sum to 100 whatever the counts", func(t *testing.T) {
		job := jobOf(t, textOf("bssplit_read_kb: 4 8 1, 8 16 1, 16 32 1, 32 64 100000"), 0)
		assert.Contains(t, job, "bssplit=32k/100\n")
		assert.Contains(t, jobOf(t, textOf("bssplit_read_kb: 4 8 1, 8 16 1, 16 32 1"), 0),
			"bssplit=4k/34:8k/33:16k/33\n")
	})
	t.Run("keys of one map are added up", func(t *testing.T) {
		job := jobOf(t, textOf("bssplit_read_kb[nvme0n1, fio]: 4 8 75",
			"bssplit_read_kb[nvme1n1, fio]: 4 8 15, 16 32 10"), 0)
		assert.Contains(t, job, "bssplit=4k/90:16k/10\n")
		assert.Contains(t, job, "the histograms have keys")
	})
	t.Run("the wrapper's line names the process", func(t *testing.T) {
		b, err := parseBpftrace("Tracing process: vllm\nBlock layer: all "+
			"devices (unfiltered)\n---\nAttaching 3 probes...\n^C\n\n"+
			textOf("bssplit_read_kb: 4 8 75"), "x.txt")
		require.NoError(t, err)
		tr, _ := b.Trace(0)
		assert.Equal(t, "vllm", tr.Capture.Watched)
	})
}

func TestParseBpftraceReadsWhatBpftracePrints(t *testing.T) {
	b, err := parseBpftrace("Lost 3 events\r\n@bssplit_read_kb: \r\n"+
		"(..., 0)    2 |@|\r\n[0]   1 |@ |\r\n[1]  2 |@ |\r\n[512, 1K)  3 |@@ |\r\n[1K, 2K)  4 "+
		"|@ |\r\n"+
		"WARNING: between\r\n[512K, 1M)  0 ||\r\n\r\n@lba_read_gb: \n[5110, 5K)  1 |@|\n"+
		"[5K, 5130)  1 |@|\n[8000, ...)  2 |@@|\n@x: 7\n@y[1,2]: a string\n"+
		"@s: count 10, average 5, total 50\n@usecs: \n[some, thing) else\n@d2c_read_us[a]b]: "+
		"\n[2, 4) 1 |@|\n",
		"x.txt")
	require.NoError(t, err)
	tr, _ := b.Trace(0)
	bucket := func(low, high float64, n int64) tracing.Bucket {
		return tracing.Bucket{Range: [2]float64{low, high}, Count: n}
	}
	assert.EqualValues(t, 2, b.below["bssplit_read_kb"])
	assert.Equal(t, []tracing.Bucket{bucket(1, 2, 2), bucket(512, 1024, 3), bucket(1024, 2048, 4)},
		tr.SizeRead.Buckets)
	assert.Equal(t, []tracing.Bucket{bucket(5110, 5120, 1), bucket(5120, 5130, 1),
		bucket(8000, 8010, 2)}, tr.LBARead.Buckets)
	assert.EqualValues(t, 1, tr.D2CRead.Count)
}

func TestParseBpftraceRefuses(t *testing.T) {
	const head = "@bssplit_read_kb:\n[4, 8)  7 |@@|\n"
	for _, c := range []struct{ name, text, says string }{
		{"nothing", "", "1: the text ends without a bucket"},
		{"another script", "Attaching 1 probe...\n@usecs:\n[4, 8)  7 |@@|\n",
			"3: the text ends without a bucket of @bssplit_read_kb"},
		{"an empty histogram", "@bssplit_read_kb:\n\n", "2: the text ends without a bucket"},
		{"a bucket cut in its bar", head + "[8, 16)  7 |@@",
			"3: @bssplit_read_kb: \"[8, 16)  7 |@@\" is no bucket, or cut off"},
		{"a bucket cut in its range", head + "[8, 1",
			"3: @bssplit_read_kb: \"[8, 1\" is no bucket, or cut off"},
		{"a count that is none", head + "[8, 16)  many |@@|",
			"3: @bssplit_read_kb: \"[8, 16)  many |@@|\" is no bucket"},
		{"a negative count", head + "[8, 16)  -7 |@@|",
			"3: @bssplit_read_kb: \"[8, 16)  -7 |@@|\" is no bucket"},
		{"bounds that fall", head + "[16, 8)  7 |@@|",
			"3: @bssplit_read_kb: \"[16, 8)  7 |@@|\" is no bucket: its bounds are not two " +
				"rising numbers"},
		{"bounds that are none", head + "[8, 16X)  7 |@@|",
			"3: @bssplit_read_kb: \"[8, 16X)  7 |@@|\" is no bucket"},
		{"a single value that is none", head + "[x]  7 |@@|",
			"3: @bssplit_read_kb: \"[x]  7 |@@|\" is no bucket"},
		{"a request of a GiB", head + "[1M, 2M)  7 |@@|",
			"3: @bssplit_read_kb: no request has 1048576 KiB: is the map in KiB?"},
		{"two runs in one text", head + head, "3: @bssplit_read_kb comes again after line 1"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := parseBpftrace(c.text, "x.txt")
			require.ErrorContains(t, err, "x.txt:"+c.says)
		})
	}
}

// FuzzParseBpftrace asserts that no text makes a job that fio cannot run: shares sum to 100, the
// depth is in fio's range.
func FuzzParseBpftrace(f *testing.F) {
	for _, name := range []string{"drifted", "ended-early", "negative"} {
		text, err := os.ReadFile(filepath.Join(bpftraceTexts, name+".txt"))
		require.NoError(f, err)
		f.Add(string(text), int64(6*time.Second))
	}
	f.Add(textOf("bssplit_read_kb: 0 3, 4 8 7, 1K 2K 8", "d2c_read_us: 1 4, 8M 16M 1",
		"qd_read: 1M 2M 5"), int64(0))
	f.Add("@bssplit_write_kb[a]:\n(..., 0) 3 |@|\n[512, 1K) 4 |@|\n[8000, ...) 1 "+
		"||\n@inflight_write: -7\n@d[1,2]: 3\n", int64(1))
	split := regexp.MustCompile(`(?m)^bssplit=(\S+)$`)
	f.Fuzz(func(t *testing.T, text string, window int64) {
		_ = attached.MatchString(text)
		b, err := parseBpftrace(text, "x.txt")
		if err != nil {
			return
		}
		tr, about := b.Trace(time.Duration(max(0, window)))
		job, err := fio.Job(tr, fio.Input{Title: "x", About: about})
		if err != nil {
			t.Fatalf("a text with sizes makes no job: %v", err)
		}
		if d := depthIn(t, job); d < 1 || d > 2*256 {
			t.Errorf("depth %d", d)
		}
		all := split.FindAllStringSubmatch(job, -1)
		require.NotEmpty(t, all, job)
		sides := strings.Split(all[0][1], ",")
		for _, m := range all[1:] {
			sides = append(sides, m[1])
		}
		for _, side := range sides {
			sum := 0
			for part := range strings.SplitSeq(side, ":") {
				_, share, _ := strings.Cut(part, "/")
				n, err := strconv.Atoi(share)
				require.NoError(t, err)
				sum += n
			}
			assert.Equal(t, 100, sum, job)
		}
	})
}
