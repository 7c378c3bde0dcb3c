package load

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kvbench/tools/golden"
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

// TestBpftraceScript runs testdata/texts. The input is a text: as bpftrace prints it, or in short:
//
//	NAME: LOW HIGH COUNT, VALUE COUNT …  a histogram
//
// job [window=100ms] prints what the fio job has of it, and parse what was read, or the error.
func TestBpftraceScript(t *testing.T) {
	fields := regexp.MustCompile(`(?m)^(# requests|# mean depth|# WARNING|rw=|rwmixread|bssplit|iodepth=).*\n`)
	datadriven.RunTest(t, "testdata/texts", func(t *testing.T, d *datadriven.TestData) string {
		b, err := parseBpftrace(bpftraceText(d.Input), "x.txt")
		if err != nil {
			return err.Error() + "\n"
		}
		window := time.Duration(0)
		if text := ""; d.HasArg("window") {
			d.ScanArgs(t, "window", &text)
			window, err = time.ParseDuration(text)
			require.NoError(t, err)
		}
		if d.Cmd == "parse" {
			tr, _ := b.Trace(window)
			var out strings.Builder
			fmt.Fprintf(&out, "%q\n", tr.Capture.Watched)
			for _, h := range tr.All() {
				fmt.Fprintf(&out, "%s: %d below 0\n", h.Key, b.below[h.Key])
				for _, bucket := range h.Buckets {
					fmt.Fprintln(&out, bucket.Range, bucket.Count)
				}
			}
			return out.String()
		}
		return strings.Join(fields.FindAllString(distilled(t, b, window, ""), -1), "")
	})
}

// bpftraceText makes a text of its short form.
func bpftraceText(short string) string {
	var text strings.Builder
	for line := range strings.Lines(short) {
		if regexp.MustCompile(`^[a-z0-9_]+(\[.*\])?: \d`).MatchString(line) {
			text.WriteString(textOf(strings.TrimSpace(line)))
		} else {
			text.WriteString(line)
		}
	}
	return text.String()
}
