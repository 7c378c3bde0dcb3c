package fio

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"
	"github.com/stretchr/testify/require"

	"kvbench/tools/golden"
	"kvbench/tracing"
)

// shown are the lines of a job that differ between jobs.
var shown = regexp.MustCompile(`(?m)^(# fio job |# WARNING|description=|exitall|\[[^g]|#?rate_iops=|` +
	`(rw|rwmixread|bssplit|percentage_random|iodepth.*|thinktime.*|fdatasync)=).*\n`)

// TestScript runs testdata/jobs:
//
//	job [ARGUMENT…]  the job of ten traced seconds, without the lines that all jobs have. Lines of the
//	                 input change the trace, as golden.Changed describes. The arguments are:
//	  read=(REQUESTS,DEPTH) write=(REQUESTS,DEPTH)  requests of 64 KiB
//	  SIDE-sizes=(BYTES,COUNT,…)                    other sizes; SIDE is read or write
//	  SIDE-calls=(BYTES,COUNT,…)                    calls on files
//	  mount=(READ,WRITE) bytes=(READ,WRITE)         a mount's transfer sizes, and what was moved
//	  in-flight=N memory
//	split sizes=(BYTES,COUNT,…) [sequential]  the shares of sizes, with the mean bytes before and after
func TestScript(t *testing.T) {
	datadriven.RunTest(t, "testdata/jobs", func(t *testing.T, d *datadriven.TestData) string {
		if d.Cmd == "split" {
			h := sizesIn(t, d.CmdArgs[0].Vals)
			shares, note := split(h, 4096, d.HasArg("sequential"))
			return fmt.Sprintf("%s: %.4g of %.4g bytes\n%s", splitText(shares), mean(shares),
				1024**h.Mean, note)
		}
		tr, in := tracedFor(t, d)
		job, err := Job(tr, in)
		if err != nil {
			return err.Error() + "\n"
		}
		return strings.Join(shown.FindAllString(job, -1), "")
	})
}

// tracedFor makes the trace and the input of a job.
func tracedFor(t *testing.T, d *datadriven.TestData) (*tracing.Trace, Input) {
	const window = 10 * time.Second
	tr := &tracing.Trace{Capture: tracing.Capture{Status: tracing.StatusTraced, Device: "nvme0n1",
		WindowNS: int64(window), IdleKnown: true}}
	var in Input
	dirs := map[string]*tracing.Direction{"read": &tr.Capture.Read, "write": &tr.Capture.Write}
	histograms := map[string]*tracing.Histogram{"read-sizes": &tr.SizeRead, "write-sizes": &tr.SizeWrite,
		"read-calls": &tr.VFSReadSize, "write-calls": &tr.VFSWriteSize}
	for _, a := range d.CmdArgs {
		v := numbers(t, a.Vals)
		switch a.Key {
		case "read", "write":
			n := int64(v[0])
			*dirs[a.Key] = tracing.Direction{Requests: n, Bytes: n << 16, D2CNS: int64(v[1] * float64(window))}
			*histograms[a.Key+"-sizes"] = sizes(map[int64]int64{64 << 10: n})
		case "mount":
			in.ReadSize, in.WriteSize = int64(v[0]), int64(v[1])
		case "bytes":
			in.ReadBytes, in.WriteBytes = int64(v[0]), int64(v[1])
		case "in-flight":
			in.Concurrency = v[0]
		case "memory":
			in.InMemory = true
		default:
			*histograms[a.Key] = sizesIn(t, a.Vals)
		}
	}
	text, err := json.Marshal(tr)
	require.NoError(t, err)
	changed := &tracing.Trace{}
	require.NoError(t, json.Unmarshal(golden.Changed(t, text, d.Input), changed))
	return changed, in
}

func numbers(t *testing.T, texts []string) (list []float64) {
	for _, text := range texts {
		v, err := strconv.ParseFloat(text, 64)
		require.NoError(t, err)
		list = append(list, v)
	}
	return list
}

// sizesIn is a distribution of sizes in bytes, each followed by its count.
func sizesIn(t *testing.T, texts []string) tracing.Histogram {
	counts, v := map[int64]int64{}, numbers(t, texts)
	sum := 0.0
	for i := 0; i < len(v); i += 2 {
		counts[int64(v[i])] = int64(v[i+1])
		sum += v[i] * v[i+1] / 1024
	}
	h := sizes(counts)
	h.Mean = new(sum / float64(h.Count))
	return h
}
