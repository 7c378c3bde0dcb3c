package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kvbench/tiers/privtest"
	"kvbench/tracing"
)

// madeLoads are fio's loads; the job that is distilled from each must do the same.
var madeLoads = []struct {
	name  string
	after string // a command that follows
	args  string
}{
	{"direct-reads", "", "--name=a --direct=1 --rw=randread --bssplit=16k/60:64k/40 " +
		"--ioengine=libaio --iodepth=8"},
	{"buffered-writes", "sync", "--name=a --direct=0 --rw=write --bs=256k --ioengine=psync"},
	{"mixed-fdatasync", "", "--direct=1 --ioengine=libaio --name=r --rw=randread --bs=32k " +
		"--iodepth=6 --name=w --rw=randwrite --bs=128k --iodepth=4 --fdatasync=128"}, // 16 MiB
	{"sequential", "", "--name=a --direct=1 --rw=read --bs=128k --ioengine=libaio --iodepth=4"},
}

// The file of the loads. One pass over it is all the write-back of that load, so its size
// determines the number of requests behind the shares: one of 160 is 0.6 points, one of 1,700 is
// 0.06.
const (
	fileMiB     = 192
	longFileMiB = 2048
)

// traceCommand traces a shell command and returns the trace and the distilled job.
func traceCommand(t testing.TB, dir, command string) (*tracing.Trace, string) {
	t.Helper()
	at := filepath.Join(t.TempDir(), "trace.json")
	traceShell(t, dir, command, at)
	document, err := os.ReadFile(at)
	require.NoError(t, err)
	var r struct {
		Trace tracing.Trace `json:"device_latency_tracing"`
		Job   string        `json:"fio_workload"`
	}
	require.NoError(t, json.Unmarshal(document, &r))
	return &r.Trace, r.Job
}

// side is one trace as it is compared: shares in percent, rates while there was load.
type side struct {
	sizes      [2]map[float64]float64 // percent of the requests, by KiB
	reads      float64
	requests   [2]int64
	sequential [2]float64
	asked      int64   // flushes
	flushes    float64 // per write
	flushRate  float64 // per second
	bandwidth  float64 // bytes/s
	depth      [2]float64
}

func sideOf(tr *tracing.Trace) (s side) {
	p := &tr.Capture
	seconds := float64(p.WindowNS-p.LeadNS-p.TailNS) / 1e9
	shares := func(h tracing.Histogram) map[float64]float64 {
		m := map[float64]float64{}
		for _, b := range h.Buckets {
			m[b.Value] += 100 * float64(b.Count) / float64(h.Count)
		}
		return m
	}
	s.sizes = [2]map[float64]float64{shares(tr.SizeRead), shares(tr.SizeWrite)}
	s.requests = [2]int64{p.Read.Requests, p.Write.Requests}
	s.reads = 100 * float64(p.Read.Requests) / float64(p.Requests())
	for i, d := range []tracing.Direction{p.Read, p.Write} {
		s.sequential[i] = 100 * float64(d.Sequential) / float64(max(1, d.Requests))
		s.depth[i] = d.D2C() / 1e9 / seconds
	}
	s.asked = p.OwnFlushWaits
	s.flushes = float64(p.OwnFlushWaits) / float64(max(1, p.Write.Requests))
	s.flushRate = float64(p.OwnFlushWaits) / seconds
	s.bandwidth = float64(p.Read.Bytes+p.Write.Bytes) / seconds
	return s
}

// off is the largest difference of two distributions in percent.
func off(a, b map[float64]float64) (most float64) {
	both := maps.Clone(a)
	maps.Copy(both, b)
	for at := range both {
		most = max(most, math.Abs(a[at]-b[at]))
	}
	return most
}

// inTurn traces a load, runs its job unchanged and traces that, too.
func inTurn(t testing.TB, l *privtest.Loop, mib int, load, after, seconds string) (
	a, b side, job string) {
	t.Helper()
	file := filepath.Join(l.Dir, "data")
	timed := fmt.Sprintf(" --filename=%s --size=%dM --output=/dev/null ", file, mib)
	if after == "" {
		timed += "--time_based --runtime=" + seconds + " "
	} else {
		after = "; " + after + " -f " + file
	}
	first, job := traceCommand(t, l.Dir, "fio --norandommap --group_reporting"+timed+load+after)
	at := filepath.Join(t.TempDir(), "made.fio")
	require.NoError(t, os.WriteFile(at, []byte(job), 0o644))
	second, _ := traceCommand(t, l.Dir, "GLIBC_TUNABLES=glibc.malloc.hugetlb=1 fio"+timed+at)
	return sideOf(first), sideOf(second), job
}

// laidOut is a disk of known times with a written file.
func laidOut(t testing.TB, mib int) *privtest.Loop {
	t.Helper()
	privtest.Root(t)
	_, err := exec.LookPath("fio")
	privtest.Need(t, err)
	l := privtest.LoopFS(t, mib+40+mib/16, privtest.LoopOptions{NoJournal: true,
		Times: privtest.Times{Read: 2 * time.Millisecond, Write: 3 * time.Millisecond}})
	out, err := exec.Command("fio", "--name=layout", "--filename="+filepath.Join(l.Dir, "data"),
		"--rw=write", "--bs=1M", fmt.Sprintf("--size=%dM", mib), "--direct=1").CombinedOutput()
	require.NoError(t, err, "%s", out)
	return l
}

// TestJobsOfMadeLoads runs the distilled jobs unchanged on this machine, and expects the shares of
// the traced load: they do not depend on speed.
func TestJobsOfMadeLoads(t *testing.T) {
	if testing.Short() {
		t.Skip("takes half a minute")
	}
	for _, made := range madeLoads {
		t.Run(made.name, func(t *testing.T) {
			t.Parallel() // most of the time they wait for a clock
			l := laidOut(t, fileMiB)
			a, b, job := inTurn(t, l, fileMiB, made.args, made.after, "1")
			for dir := range 2 {
				n := [2]float64{float64(a.requests[dir]), float64(b.requests[dir])}
				// Two samples of one distribution differ by chance, too.
				chance := 100 * math.Sqrt(1/max(1, n[0])+1/max(1, n[1]))
				assert.LessOrEqual(t, off(a.sizes[dir], b.sizes[dir]), 3+chance,
					"%v\n%v\n%s", a.sizes[dir], b.sizes[dir], job)
				assert.InDelta(t, a.sequential[dir], b.sequential[dir], 5, "%s", job)
			}
			if a.asked > 3 {
				assert.InEpsilon(t, a.flushes, b.flushes, 0.1, "%s", job)
			}
		})
	}
}

// BenchmarkJobsOfMadeLoads shows how near the jobs come on a disk of known times: shares in points,
// rates as the job's ÷ the load's.
//
//	go test ./tools/kvreport -run '^$' -bench JobsOfMadeLoads -benchtime 1x
func BenchmarkJobsOfMadeLoads(b *testing.B) {
	l := laidOut(b, longFileMiB)
	for _, made := range madeLoads {
		b.Run(made.name, func(b *testing.B) {
			for b.Loop() {
				before, after, job := inTurn(b, l, longFileMiB, made.args, made.after,
					"15")
				b.Logf("%s", job)
				b.ReportMetric(0, "ns/op")
				b.ReportMetric(float64(before.requests[0]+before.requests[1]), "requests")
				points := math.Abs(before.reads - after.reads)
				b.ReportMetric(points, "mix-points")
				for dir, name := range []string{"read", "write"} {
					if len(before.sizes[dir]) == 0 {
						continue
					}
					b.ReportMetric(off(before.sizes[dir], after.sizes[dir]), name+"-size-points")
					b.ReportMetric(after.depth[dir]/before.depth[dir], name+"-depth-ratio")
				}
				b.ReportMetric(after.bandwidth/before.bandwidth, "bandwidth-ratio")
				if before.asked > 3 { // the single flush at the end of a load is no rate
					b.ReportMetric(after.flushRate/before.flushRate, "flush-ratio")
				}
			}
		})
	}
}
