package sizing

import (
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kvbench/kvbench/params"
	"kvbench/kvbench/result"
	"kvbench/kvbench/units"
	"kvbench/tiers"
)

// moves is the rate of n requests of c bytes at a time on a drive, by the formula of
// tiers.DeviceModel.
func moves(bandwidth, iops float64, latency time.Duration, n int, c int64) float64 {
	pass := float64(c) / bandwidth
	if iops > 0 {
		pass = max(pass, 1/iops)
	}
	return min(float64(c)/pass, float64(n)*float64(c)/(latency.Seconds()+pass))
}

// plainRuns are the runs of the help text, on a drive that equals the model.
func plainRuns(d tiers.DeviceModel) []measured {
	var runs []measured
	for _, at := range []struct {
		name  string
		n     int
		chunk int64
	}{{"StorageCeiling", 64, units.MiB}, {"StorageCeiling", 64, 16 * units.KiB},
		{"StorageCeiling", 16, 16 * units.KiB}, {"Tier", 1, 256 * units.KiB}} {
		k := kind{at.name + "/op=read", at.n, at.chunk, 64 * units.MiB, false}
		runs = append(runs, measured{k, moves(d.Read, d.ReadIOPS, d.ReadLatency, at.n, at.chunk), 0,
			nil})
		k.name = at.name + "/op=write"
		runs = append(runs, measured{k, 0,
			moves(d.Write, d.WriteIOPS, d.WriteLatency, at.n, at.chunk), nil})
	}
	half := 0.5 / (0.5/d.Read + 0.5/d.Write)
	if d.Duplex {
		half = min(d.Read, d.Write)
	}
	mixed := kind{"StorageCeiling/op=mixed", 64, units.MiB, 64 * units.MiB, false}
	return append(runs, measured{mixed, half, half, nil})
}

// For any drive the runs lead back to its parameters.
func TestParametersAreFoundAgain(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	rnd := rand.New(rand.NewPCG(seed, 1))
	for range 2000 {
		d := tiers.DeviceModel{
			Read:         float64((200 + rnd.Int64N(14000)) * units.MiB),
			Write:        float64((200 + rnd.Int64N(7000)) * units.MiB),
			Duplex:       rnd.IntN(2) == 0,
			Parallelism:  params.DefaultParallelism,
			ReadLatency:  time.Duration(60+rnd.IntN(300)) * time.Microsecond,
			WriteLatency: time.Duration(60+rnd.IntN(300)) * time.Microsecond,
		}
		if rnd.IntN(2) == 0 { // no bound for 1 MiB, reached by fewer than 16 of 16 KiB at a time
			enough := func(rate float64) float64 {
				return math.Floor(rate / float64(units.MiB) * (1.2 + 0.6*rnd.Float64()))
			}
			d.ReadIOPS, d.WriteIOPS = enough(d.Read), enough(d.Write)
		}
		got, err := derive(plainRuns(d))
		require.NoError(t, err)
		require.Equal(t, d.Read, got.device.Read)
		require.Equal(t, d.Write, got.device.Write)
		require.Equal(t, d.Duplex, got.device.Duplex, "%+v", d)
		require.InDelta(t, d.ReadIOPS, got.device.ReadIOPS, 1, "%+v: %s", d,
			strings.Join(got.reasons, "\n"))
		require.InDelta(t, d.WriteIOPS, got.device.WriteIOPS, 1, "%+v: %s", d,
			strings.Join(got.reasons, "\n"))
		require.InDelta(t, d.ReadLatency, got.device.ReadLatency, float64(2*time.Microsecond),
			"%+v: %s", d, strings.Join(got.reasons, "\n"))
		require.InDelta(t, d.WriteLatency, got.device.WriteLatency, float64(2*time.Microsecond),
			"%+v: %s", d, strings.Join(got.reasons, "\n"))
		again, err := params.ParseDevice(params.FormatDevice(got.device))
		require.NoError(t, err, "what it prints is what -simulate-device takes")
		require.Equal(t, got.device, again)
	}
}

func TestRulesAreCareful(t *testing.T) {
	full := func(name string, n int, chunk int64, read, write float64) measured {
		return measured{kind{name, n, chunk, 64 * units.MiB, false}, read * float64(units.MiB),
			write * float64(units.MiB), nil}
	}
	_, err := derive([]measured{full("Tier/op=read", 1, units.MiB, 100, 0)})
	require.ErrorContains(t, err, "op=write")

	d, err := derive([]measured{
		full("a", 8, units.MiB, 1000, 0), full("a", 8, units.MiB, 1200, 0),
		full("a", 8, units.MiB, 100, 0), full("b", 8, units.MiB, 0, 500),
	})
	require.NoError(t, err)
	assert.Equal(t, tiers.DeviceModel{Read: float64(1000 * units.MiB),
		Write: float64(500 * units.MiB), Parallelism: 128}, d.device, "the median of three trials")
	assert.Contains(t, strings.Join(d.reasons, "\n"), "one medium is assumed")

	// The number in flight that a sweep finds, and the size of files, differ from trial to trial.
	found := func(n int, read float64) measured {
		m := full("a", n, units.MiB, read, 0)
		m.entry, m.found = m.entry/int64(n), true
		return m
	}
	d, err = derive([]measured{found(16, 1000), found(8, 1200), found(32, 100),
		full("b", 8, units.MiB, 0, 500)})
	require.NoError(t, err)
	assert.Equal(t, float64(1000*units.MiB), d.device.Read, "the median of three trials")
	assert.Contains(t, d.reasons[0], "a, 16 × 1MiB at a time: 1000 MiB/s", "and of which it is")

	// One at a time is the fastest: its time gives no latency, because bandwidth may explain all of
	// it.
	d, err = derive([]measured{full("a", 8, units.MiB, 1900, 0),
		full("b", 1, units.MiB, 2000, 0), full("d", 8, units.MiB, 0, 500)})
	require.NoError(t, err)
	assert.Zero(t, d.device.ReadLatency)
	assert.Contains(t, strings.Join(d.reasons, "\n"), "read-latency   not known, because no run "+
		"moved more than this one: b, 1 × 1MiB at a time: 2000 MiB/s")

	// More requests of the same size did help: latency, not IOPS.
	d, err = derive([]measured{
		full("a", 64, units.MiB, 1000, 0), full("b", 4, 16*units.KiB, 125, 0),
		full("b", 8, 16*units.KiB, 240, 0), full("c", 8, units.MiB, 0, 500),
	})
	require.NoError(t, err)
	assert.Zero(t, d.device.ReadIOPS)
	// 4 × 16 KiB at 125 MiB/s are 500 µs each, 15.6 µs of them on the medium.
	assert.InDelta(t, 484*time.Microsecond, d.device.ReadLatency, float64(time.Microsecond))
	assert.Contains(t, strings.Join(d.reasons, "\n"), "not known without a run of -workers 1",
		"writes that fill the drive tell no latency")

	// One at a time reaches the bandwidth: the rate of small requests is not for lack of others.
	d, err = derive([]measured{
		full("a", 8, units.MiB, 400, 0), full("b", 8, 64*units.KiB, 62.5, 0),
		full("c", 1, units.MiB, 390, 0), full("d", 8, units.MiB, 0, 200),
	})
	require.NoError(t, err)
	assert.EqualValues(t, 1000, d.device.ReadIOPS)
	assert.InDelta(t, 64*time.Microsecond, d.device.ReadLatency, float64(time.Microsecond))

	// 400 MiB/s in slices of 100 ms: 40 of 1 MiB in 160 µs each, and the next one waits.
	limited := full("a", 1, units.MiB, 400, 0)
	limited.kind.entry = units.MiB
	limited.times = []float64{160e-6, 900e-6, 0.0938}
	d, err = derive([]measured{limited, full("d", 8, units.MiB, 0, 200)})
	require.NoError(t, err)
	assert.Equal(t, 100*time.Millisecond, d.device.Slice)
	limited.times = []float64{2400e-6, 2700e-6, 0.0938}
	d, err = derive([]measured{limited, full("d", 8, units.MiB, 0, 200)})
	require.NoError(t, err)
	assert.Zero(t, d.device.Slice, "a hiccup is no slice")

	// A drive that scales worse than the model has no bound of IOPS.
	d, err = derive([]measured{
		full("a", 16, units.MiB, 3400, 0), full("b", 1, units.MiB, 1500, 0),
		full("c", 2, units.MiB, 2400, 0), full("d", 8, units.MiB, 0, 500),
	})
	require.NoError(t, err)
	assert.Zero(t, d.device.ReadIOPS)
}

// res is the file of a plain run.
func res(t *testing.T, dir, name string, workers, depth int, read, write float64, entry int64,
	change ...func(*result.Result)) {
	t.Helper()
	r := &result.Result{Name: name, Benchmark: strings.Split(name, "/")[0],
		Status: result.StatusComplete, SchemaVersion: result.SchemaVersion}
	r.Workload.Workers, r.IO.Depth, r.IO.ChunkBytes = workers, depth, 1<<20
	tier := result.Tier{Level: "storage"}
	tier.Read.BytesPerSecond, tier.Write.BytesPerSecond = &read, &write
	r.Tiers = []result.Tier{tier}
	r.EntrySizes.Read.Max = &entry
	r.Environment.Hostname, r.Environment.Device = "h", &result.Device{Name: "nvme0n1"}
	for _, f := range change {
		f(r)
	}
	path := filepath.Join(dir, strings.NewReplacer("/", "_").Replace(name),
		fmt.Sprintf("%d", workers), "trial_0", "rank_0")
	require.NoError(t, os.MkdirAll(path, 0o777))
	require.NoError(t, r.WriteJSON(filepath.Join(path, "kvcache_results_20260101_000000.json")))
}

func TestCommandPrintsTheText(t *testing.T) {
	dir := t.TempDir()
	const mib = 1 << 20
	res(t, dir, "StorageCeiling/op=read", 16, 1, 2000*mib, 0, 64*mib)
	res(t, dir, "StorageCeiling/op=write", 16, 1, 0, 1000*mib, 64*mib)
	res(t, dir, "Tier/tier=storage/op=read/size=16MiB", 1, 1, 1000*mib, 0, 16*mib)
	// one chunk is all there is in flight
	res(t, dir, "Tier/tier=storage/op=read/size=1MiB", 1, 8, 800*mib, 0, mib)
	res(t, dir, "MaxStorageStress", 16, 1, 9000*mib, 9000*mib, 64*mib) // of no use here
	warn := func(err error) { t.Error(err) }
	drive, err := Device([]string{dir}, nil, warn)
	require.NoError(t, err)
	assert.Equal(t, "read=2000MiB/s,write=1000MiB/s,read-latency=500us,write-latency=0s,parallelism=128\n",
		drive.Text())
	assert.EqualValues(t, 2000*mib, drive.ReadRate)
	assert.EqualValues(t, 500000, drive.ReadLatencyNS)
	assert.Contains(t, drive.Reasons,
		"read-latency   Tier/tier=storage/op=read/size=16MiB, 1 × 1MiB at a time: 1000 MiB/s, "+
			"that is 1ms for each, of which the medium needs 500µs")
	assert.Len(t, drive.Reasons, 8)

	_, err = Device(nil, nil, warn)
	assert.Error(t, err)
	empty := t.TempDir()
	res(t, empty, "MaxStorageStress", 16, 1, 9000*mib, 9000*mib, 64*mib)
	_, err = Device([]string{empty}, nil, warn)
	assert.ErrorContains(t, err, "no run of StorageCeiling")
}

// TestClientsOfOneHostAreOneRun: the rates of two clients on one drive are added; clients of two
// hosts have two drives.
func TestClientsOfOneHostAreOneRun(t *testing.T) {
	write := func(hosts ...string) string {
		dir := t.TempDir()
		rate := float64(units.GiB)
		for i := range 2 * len(hosts) {
			rank, op := i/2, []string{"read", "write"}[i%2]
			tier := result.Tier{Level: "storage", Read: result.TierTraffic{BytesPerSecond: &rate}}
			if op == "write" {
				tier.Read, tier.Write = tier.Write, tier.Read
			}
			r := &result.Result{SchemaVersion: result.SchemaVersion, Status: result.StatusComplete,
				Benchmark: "StorageCeiling", Name: "StorageCeiling/op=" + op,
				Division: result.DivisionOpen, Rank: rank, Ranks: 2, Count: 1,
				StartTime:   fmt.Sprintf("2026-09-08T12:00:0%dZ", i),
				Nonce:       fmt.Sprint(i),
				IO:          result.IO{ChunkBytes: int(units.MiB), Depth: 1},
				Workload:    result.Workload{Workers: 8},
				Environment: result.Environment{Hostname: hosts[rank]},
				Tiers:       []result.Tier{tier},
			}
			path := filepath.Join(dir, fmt.Sprint(i), "kvcache_results_20260908_120000.json")
			require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
			require.NoError(t, r.WriteJSON(path))
		}
		return dir
	}
	var warned []string
	warn := func(err error) { warned = append(warned, err.Error()) }
	drive, err := Device([]string{write("node0", "node0")}, nil, warn)
	require.NoError(t, err)
	assert.Contains(t, drive.SimulateDevice, "read=2GiB/s")
	assert.Empty(t, warned)
	_, err = Device([]string{write("node0", "node1")}, nil, warn)
	require.Error(t, err)
	assert.Contains(t, strings.Join(warned, "\n"), "its ranks ran on several hosts")
}

// TestRunsOfOneDriveOnly refuses runs that would describe a cache or a drive that does not exist,
// and names each run.
func TestRunsOfOneDriveOnly(t *testing.T) {
	dir := t.TempDir()
	const mib = 1 << 20
	one := func(name string, change func(*result.Result)) {
		res(t, dir, name, 16, 1, 2000*mib, 0, 64*mib, change)
	}
	one("StorageCeiling/op=read", func(*result.Result) {})
	one("StorageCeiling/op=a", func(r *result.Result) { r.IO.Mode = "buffered" })
	one("StorageCeiling/op=b", func(r *result.Result) {
		r.DeviceCounters.ServedFromCache, r.DeviceCounters.ReadRatio = new(true), new(0.03)
		r.DeviceCounters.Device = "nvme0n1"
	})
	one("StorageCeiling/op=c", func(r *result.Result) { r.Environment.Hostname = "other" })
	one("StorageCeiling/op=d", func(r *result.Result) { r.Environment.Device.Name = "sda" })
	one("StorageCeiling/op=e", func(r *result.Result) {
		r.Environment.Filesystem.InMemory, r.Environment.Filesystem.Type = true, "tmpfs"
	})
	one("StorageCeiling/op=f", func(r *result.Result) { r.IO.Roots = make([]result.Root, 2) })
	_, err := Device([]string{dir}, nil, func(err error) { t.Error(err) })
	for _, says := range []string{
		"StorageCeiling/op=a was written and read through the page cache (-io buffered)",
		"StorageCeiling/op=b was served from a cache: nvme0n1 read 3% of its bytes",
		"StorageCeiling/op=e was on tmpfs, whose files lie in memory",
		"StorageCeiling/op=f was spread over 2 directories",
		"different machines: h (StorageCeiling/op=a), other (StorageCeiling/op=c)",
		"different drives: nvme0n1 (StorageCeiling/op=a), sda (StorageCeiling/op=d)",
	} {
		assert.ErrorContains(t, err, says)
	}
}

// A rate belongs to the times of its own trial: medians of each direction would mix two trials.
func TestATrialKeepsItsRatesAndTimes(t *testing.T) {
	at := kind{name: "StorageCeiling/op=mixed", outstanding: 8, chunk: 1 << 20, entry: 1 << 24}
	runs := []measured{{at, 6, 1, []float64{1}}, {at, 1, 9, []float64{2}}, {at, 5, 6, []float64{3}}}
	assert.Equal(t, []measured{runs[1]}, middles(runs))
}
