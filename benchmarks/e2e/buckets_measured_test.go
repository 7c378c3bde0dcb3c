//go:build measure

package e2e

// What the client of object stores costs, and how fast it is, beside plain loops. These need a
// machine of their own: go test -tags measure ./benchmarks/e2e -run Measured -v

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kvbench/tiers/objecttier/s3double"
)

// loopOutcome is what benchmarks/e2e/objectloop prints, and what a run of the suite is made into.
type loopOutcome struct {
	Size       int64   `json:"size"`
	Bytes      int64   `json:"bytes"`
	Requests   int64   `json:"requests"`
	Seconds    float64 `json:"seconds"`
	CPUSeconds float64 `json:"cpu_seconds"`
	PeakRSS    int64   `json:"peak_rss_bytes"`
}

func (o loopOutcome) perByte() float64 { return o.CPUSeconds / float64(o.Bytes) }
func (o loopOutcome) rate() float64    { return float64(o.Bytes) / o.Seconds }

// programs are built once for a test.
func programs(t *testing.T) (loop, server string) {
	dir := t.TempDir()
	out, err := exec.Command("go", "build", "-o", dir+"/", "./objectloop",
		moduleRoot+"/tiers/objecttier/s3double/serve").CombinedOutput()
	require.NoError(t, err, string(out))
	return filepath.Join(dir, "objectloop"), filepath.Join(dir, "serve")
}

// serve starts the double as a process of its own, whose processor time is then not the client's.
// End it before the next one is started: what it holds lies in this machine's memory.
func serve(t *testing.T, server string) (url string, end func()) {
	cmd := exec.Command(server, "-anonymous", "-bucket", bucket)
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	end = sync.OnceFunc(func() { _ = cmd.Process.Signal(os.Interrupt); _ = cmd.Wait() })
	t.Cleanup(end)
	line, err := bufio.NewReader(out).ReadString('\n')
	require.NoError(t, err)
	return strings.TrimSpace(line), end
}

// suiteWindow is a window of StorageCeiling, whose objects are a sixteenth of what it may read but
// 8 MiB at most, or a quarter of what each stream may write: 8 MiB of 16 streams are half a GiB,
// which is what the loops have. Mixed reads and writes in equal shares.
func suiteWindow(t *testing.T, url, op string, size int64, inFlight int,
	window string) loopOutcome {
	b := newObjectBench(t)
	footprint := float64(16*size) / (1 << 30)
	if size == 8<<20 {
		footprint = float64(4*size*int64(inFlight)) / (1 << 30)
	}
	bench, share := "StorageCeiling/op=read$", "1"
	switch op {
	case "put":
		footprint = float64(4*size*int64(inFlight)) / (1 << 30)
		bench, share = "StorageCeiling/op=churn$", "0"
	case "mixed": // half of it is to read
		footprint = float64(2*4*size*int64(inFlight)) / (1 << 30)
		bench, share = "StorageCeiling/op=churn$", "0.5"
	}
	args := append(b.objects([]string{url}), "-division=open", "-test.bench="+bench,
		"-read-share="+share, "-test.benchtime="+window, "-storage-capacity-gb=16",
		fmt.Sprintf("-ceiling-size-gb=%g", footprint), fmt.Sprintf("-workers=%d", inFlight))
	if size < 256<<10 { // the default's pieces are no larger, but with many streams smaller
		args = append(args, fmt.Sprintf("-chunk-size=%dKiB", size>>10))
	}
	b.ok(args...)
	r := theResult(t, b.results)
	read, write := r.StorageTraffic()
	require.Equal(t, size, r.PlainIO.FileBytes)
	moved := map[string]int64{"get": read.Bytes, "put": write.Bytes,
		"mixed": read.Bytes + write.Bytes}[op]
	return loopOutcome{Size: size, Bytes: moved, Requests: moved / size,
		Seconds:    time.Duration(r.WindowNS).Seconds(),
		CPUSeconds: time.Duration(r.Harness.CPUNS).Seconds(), PeakRSS: *r.Harness.PeakRSSBytes}
}

// TestMeasuredClients compares medians of KVTEST_TURNS turns, 5 where that is not set, of
// KVTEST_SIZE (in KiB) and KVTEST_OP alone where those are set. Ratios are those of turns: whatever
// else the machine does for a while it does to all that are in the turn.
func TestMeasuredClients(t *testing.T) {
	loop, server := programs(t)
	turns := 5
	if n, err := strconv.Atoi(os.Getenv("KVTEST_TURNS")); err == nil {
		turns = n
	}
	for _, c := range []struct {
		size     int64
		inFlight int
	}{{8 << 20, 16}, {64 << 10, 64}, {4 << 20, 320}} {
		for _, op := range []string{"get", "put", "mixed"} {
			large := c.inFlight == 320 // which is about memory alone
			// Loops have a second before their window, which the suite's plain I/O has not: the
			// edge is a smaller part of a longer one.
			window := map[bool]string{true: "8s", false: "3s"}[c.size == 8<<20]
			if only := os.Getenv("KVTEST_SIZE"); only != "" && only != fmt.Sprint(c.size>>10) {
				continue
			}
			if only := os.Getenv("KVTEST_OP"); only != "" && only != op {
				continue
			}
			names, objects := []string{"bare", "signed", "minio", "minio-unsigned", "suite"}, 4
			switch {
			case op == "mixed" && !large:
				continue
			case op == "mixed":
				names = []string{"suite"}
			case large: // of 320 loops, each of which has two objects at most
				names, objects = []string{"bare", "suite"}, 1
			}
			all := map[string][]loopOutcome{}
			for range turns {
				for _, name := range names {
					url, end := serve(t, server)
					var o loopOutcome
					if name == "suite" {
						o = suiteWindow(t, url, op, c.size, c.inFlight, window)
					} else {
						text, err := exec.Command(loop, "-endpoint", url, "-bucket", bucket, "-op", op,
							"-client", name, "-size", fmt.Sprint(c.size), "-in-flight",
							fmt.Sprint(c.inFlight), "-objects", fmt.Sprint(objects), "-time",
							window).Output()
						require.NoError(t, err)
						require.NoError(t, json.Unmarshal(text, &o))
					}
					end()
					all[name] = append(all[name], o)
				}
			}
			median := func(name string, f func(loopOutcome) float64) float64 {
				var v []float64
				for _, o := range all[name] {
					v = append(v, f(o))
				}
				slices.Sort(v)
				return v[len(v)/2]
			}
			for _, name := range names {
				t.Logf("%s %4d KiB x %3d %-15s %6.3f cpu-s/GiB %8.0f MiB/s %6.0f MiB", op,
					c.size>>10, c.inFlight, name, median(name, loopOutcome.perByte)*(1<<30),
					median(name, loopOutcome.rate)/(1<<20), median(name,
						func(o loopOutcome) float64 { return float64(o.PeakRSS) })/(1<<20))
			}
			// against is the median of what the suite has over another one, in the same turn.
			against := func(name string, f func(loopOutcome) float64) float64 {
				var v []float64
				for turn, o := range all["suite"] {
					v = append(v, f(o)/f(all[name][turn]))
				}
				slices.Sort(v)
				t.Logf("%s %4d KiB x %3d suite over %s: %.2f", op, c.size>>10, c.inFlight, name, v)
				return v[len(v)/2]
			}
			switch {
			case large:
				assert.LessOrEqual(t, median("suite", func(o loopOutcome) float64 {
					return float64(o.PeakRSS)
				}), float64(128<<20), op)
			case c.size == 8<<20:
				assert.LessOrEqual(t, against("bare", loopOutcome.perByte),
					map[string]float64{"get": 1.7, "put": 1.15}[op], op)
				assert.GreaterOrEqual(t, against("bare", loopOutcome.rate), 0.95, op)
			default:
				assert.GreaterOrEqual(t, against("signed", loopOutcome.rate), 0.80, op)
			}
		}
	}
}

// entries is the log of a double about entries: neither the marker nor what a proof has made.
func entries(d *s3double.Double) (all []s3double.Entry) {
	for _, e := range d.Log() {
		if ownKey.MatchString(e.Key) {
			all = append(all, e)
		}
	}
	return all
}

// TestMeasuredFailover: of four endpoints one dies and returns, and the rate of the others shows it
// for a second at most.
func TestMeasuredFailover(t *testing.T) {
	d := double(t, s3double.Config{}, 4)
	b := newObjectBench(t)
	begun := time.Now()
	p := b.start(append(b.objects(d.URLs()), "-division=open", "-test.bench=StorageCeiling/op=read$",
		"-test.benchtime=50s", "-storage-capacity-gb=2", "-ceiling-size-gb=0.25", "-workers=16")...)
	var killed, returned time.Duration
	for _, step := range []struct {
		at time.Duration
		do func()
	}{
		{10 * time.Second, func() { killed = time.Since(begun); d.Endpoints()[2].Kill() }},
		{15 * time.Second, func() {
			returned = time.Since(begun)
			require.NoError(t, d.Endpoints()[2].Return())
		}},
	} {
		time.Sleep(time.Until(begun.Add(step.at)))
		step.do()
	}
	o := p.end()
	require.Zero(t, o.code, o.stderr)
	counts := make([]int64, 4)
	var rate []int64 // bytes that ended, by half seconds
	again := time.Duration(0)
	for _, e := range entries(d) {
		if e.Op != s3double.Get || e.Status/100 != 2 {
			continue
		}
		if e.Ended < killed {
			counts[e.Endpoint]++
		}
		if e.Endpoint == 2 && e.Begun > returned && again == 0 {
			again = e.Begun - returned
		}
		for int(e.Ended/(500*time.Millisecond)) >= len(rate) {
			rate = append(rate, 0)
		}
		rate[e.Ended/(500*time.Millisecond)] += e.BytesOut
	}
	total := counts[0] + counts[1] + counts[2] + counts[3]
	for i, n := range counts {
		assert.InDelta(t, 0.25, float64(n)/float64(total), 0.01, i)
	}
	assert.LessOrEqual(t, again, 31*time.Second)
	assert.Positive(t, again)
	at := int(killed / (500 * time.Millisecond))
	before := slices.Sorted(slices.Values(rate[at-8 : at]))[4]
	slow := 0
	for _, r := range rate[at : at+20] {
		if float64(r) < 0.6*float64(before) {
			slow++
		}
	}
	assert.LessOrEqual(t, slow, 2, "half seconds below 60 %% of the rate: %v", rate)
	for name, op := range theResult(t, b.results).Objects.Operations {
		if name != "connect" { // to the one that is dead
			assert.Zero(t, op.Failed, name)
		}
	}
}
