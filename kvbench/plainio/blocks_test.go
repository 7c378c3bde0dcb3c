package plainio

import (
	"context"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kvbench/kvbench/result"
	"kvbench/tiers"
	"kvbench/tiers/clock"
	"kvbench/tiers/filetier"
	"kvbench/tiers/ioengine"
	"kvbench/tiers/tiertest"
)

// asking notes the places of requests.
type asking struct {
	tiers.Files
	traits tiers.Traits
	mu     sync.Mutex
	asked  []place
	made   int // objects
	opened int // readers
}

type place struct {
	key  string
	op   tiers.Op
	off  int64
	size int
}

func (a *asking) Traits() tiers.Traits { return a.traits }

func (a *asking) Create(ctx context.Context, objs ...tiers.Object) (tiers.Writer, error) {
	w, err := a.Files.Create(ctx, objs...)
	a.made++
	return askingWriter{w, asked{a, objs[0].Key, tiers.Write, w}}, err
}

func (a *asking) Open(ctx context.Context, objs ...tiers.Object) (tiers.Reader, error) {
	r, err := a.Files.Open(ctx, objs...)
	a.opened++
	return askingReader{r, asked{a, objs[0].Key, tiers.Read, r}}, err
}

// small returns the places of requests smaller than a filling one.
func (a *asking) small(size int) []place {
	return slices.DeleteFunc(slices.Clone(a.asked), func(p place) bool { return p.size > size })
}

type asked struct {
	a   *asking
	key string
	op  tiers.Op
	to  tiers.Submitter
}

func (x asked) submit(io *tiers.IO) {
	x.a.mu.Lock()
	x.a.asked = append(x.a.asked, place{x.key, x.op, io.Off, io.N})
	x.a.mu.Unlock()
	x.to.Submit(io)
}

type askingWriter struct {
	tiers.Writer
	asked
}

func (w askingWriter) Submit(io *tiers.IO) { w.submit(io) }

type askingReader struct {
	tiers.Reader
	asked
}

func (r askingReader) Submit(io *tiers.IO) { r.submit(io) }

// blocksInVirtualTime runs Blocks over a drive whose requests take a millisecond and their transfer
// time, 16 pages per millisecond reading and 8 writing.
func blocksInVirtualTime(t *testing.T, seed uint64, window time.Duration, limit int, r *Blocks,
	workers int) (*result.Result, *asking) {
	tiertest.OneThread(t)
	t.Helper()
	v := clock.NewVirtual()
	tier := drive(v)
	a := &asking{Files: tier, traits: tier.Traits()}
	cfg := virtual(v, a, 1<<40, workers).lasting(window)
	cfg.Seed, cfg.Limit = seed, int64(limit)
	res, err := runPlain(t.Context(), cfg, r)
	require.NoError(t, err)
	return res, a
}

func TestBlocksGoAnywhereInsideFilesThatAreThere(t *testing.T) {
	const footprint, size = 64 << 20, 4 * page
	for _, op := range []tiers.Op{tiers.Read, tiers.Write} {
		res, a := blocksInVirtualTime(t, 7, time.Second, 0,
			&Blocks{Op: op, Size: size, Footprint: footprint}, 3)
		assert.Equal(t, result.StatusComplete, res.Status, res.Error)
		assert.Equal(t, fieldFillers, a.made, "files of 4 MiB, and none in the window")
		asked := a.small(size)
		require.Greater(t, len(asked), 1000)
		places := map[place]int{}
		for _, p := range asked {
			assert.Equal(t, op, p.op)
			assert.Equal(t, size, p.size)
			assert.True(t, p.off%size == 0 && p.off >= 0 &&
				p.off+size <= footprint/fieldFillers, p.off)
			places[p]++
		}
		assert.Greater(t, len(places), len(asked)*7/10, "of 4096 places, drawn with return")
		n, traffic := int64(len(asked)), res.Tiers[0].Read
		// A request takes a millisecond and what three in turn take to pass; one medium for all.
		each := time.Millisecond + 4*time.Second/16000
		if op == tiers.Write {
			traffic, each = res.Tiers[0].Write, time.Millisecond+4*time.Second/8000
		}
		assert.InDelta(t, n, traffic.Requests, 3, "but for those at the end")
		assert.Equal(t, traffic.Requests, traffic.Operations)
		assert.Equal(t, traffic.Requests*size, traffic.Bytes)
		assert.Equal(t, traffic.Bytes, traffic.EntryBytes)
		assert.Equal(t, res.Completions(), traffic.Operations)
		assert.InEpsilon(t, 3/each.Seconds(), *res.PlainIO.RequestsPerSecond, 0.02)
		assert.InDelta(t, 3, *traffic.MeanInFlight, 0.01)
		assert.EqualValues(t, size, res.PlainIO.BlockBytes)
		assert.EqualValues(t, 4<<20, res.PlainIO.FileBytes)
		assert.Equal(t, result.WriteDeviceRequest, res.IO.WriteDevice)
		lat := res.Latency.Levels["storage"].Read.Request
		if op == tiers.Write {
			lat = res.Latency.Levels["storage"].Write.Request
		}
		assert.Equal(t, traffic.Requests, lat.Count)
		assert.InEpsilon(t, each, *lat.P50, 0.05)
		assert.InEpsilon(t, res.Harness.WorkerBusyNS, res.Harness.Busy.StorageNS, 0.01)
	}
}

// Each lane reads with descriptors of its own, as long as they are few. Where the requests go does not
// depend on the lanes.
func TestLanesHaveDescriptors(t *testing.T) {
	asked := func(lanes int) (opened int, places []place) {
		v := clock.NewVirtual()
		tier := drive(v)
		a := &asking{Files: tier, traits: tier.Traits()}
		cfg := virtual(v, a, 1<<40, 4).lasting(time.Second)
		cfg.Lanes, cfg.Limit = lanes, 100
		tiertest.OneThread(t)
		_, err := runPlain(t.Context(), cfg,
			&Blocks{Op: tiers.Read, Size: page, Footprint: 16 << 20})
		require.NoError(t, err)
		return a.opened, a.small(page)
	}
	one, same := asked(1)
	assert.Equal(t, fieldFillers, one)
	three, places := asked(3)
	assert.Equal(t, 3*fieldFillers, three)
	assert.ElementsMatch(t, same, places)
	many, _ := asked(1 << 20)
	assert.Equal(t, mostReaders, many)
}

func TestBlocksGoWhereTheirSeedSays(t *testing.T) {
	const size = page
	where := func(seed uint64) []place {
		_, a := blocksInVirtualTime(t, seed, time.Second, 0,
			&Blocks{Op: tiers.Read, Size: size, Footprint: 16 << 20}, 4)
		return a.small(size)
	}
	one := where(1)
	assert.Equal(t, one, where(1))
	assert.NotEqual(t, one, where(2))
}

func TestBlocksCanBeCounted(t *testing.T) {
	res, _ := blocksInVirtualTime(t, 1, time.Hour, 777,
		&Blocks{Op: tiers.Write, Size: page, Footprint: 16 << 20}, 5)
	assert.Equal(t, result.EndedByCount, res.EndedBy)
	assert.EqualValues(t, 777, res.Completions())
	assert.EqualValues(t, 777*page, res.Tiers[0].Write.Bytes)
	assert.EqualValues(t, 777, res.Latency.Levels["storage"].Write.Request.Count)
	units := map[string]float64{}
	for _, m := range res.Metrics() {
		units[m.Unit] = m.Value
	}
	assert.InEpsilon(t, 777/time.Duration(res.WindowNS).Seconds(), units["io/s"], 1e-9)
}

// Requests that memory completes do not measure the storage.
func TestBlocksNeedDirectIO(t *testing.T) {
	v := clock.NewVirtual()
	tier := drive(v)
	a := &asking{Files: tier, traits: tier.Traits()}
	a.traits.CountsAtCommit = true
	_, err := runPlain(t.Context(), virtual(v, a, 1<<40, 1).lasting(time.Second),
		&Blocks{Op: tiers.Read, Size: page, Footprint: 64 << 20})
	assert.ErrorContains(t, err, "requests inside files need direct I/O")
	assert.Empty(t, a.asked)
}

// The latency of single requests is measured before the window, with requests of the routine's own
// size: in its files if it reads some.
func TestSingleRequestsBeforeTheWindow(t *testing.T) {
	tiertest.OneThread(t)
	read, write := time.Millisecond+time.Millisecond/16, time.Millisecond+time.Millisecond/8
	for name, c := range map[string]struct {
		routine Routine
		pages   time.Duration // of a request
		own     bool          // reads objects of the measurement
	}{
		"ceiling": {&Ceiling{ReadShare: 1, Footprint: 64 * page, InFlight: 2}, 1, false},
		"writes":  {&Ceiling{Footprint: 64 * page, InFlight: 2}, 1, true},
		"tier":    {&Tier{Level: tiers.Storage, Size: page, Footprint: 64 * page}, 1, false},
		"removal": {&Removal{Ceiling: Ceiling{Footprint: 64 * page}}, 1, false},
		"blocks":  {&Blocks{Op: tiers.Read, Size: 4 * page, Footprint: 64 << 20}, 4, false},
		"written": {&Blocks{Op: tiers.Write, Size: 4 * page, Footprint: 64 << 20}, 4, true},
	} {
		t.Run(name, func(t *testing.T) {
			v := clock.NewVirtual()
			tier := drive(v)
			a := &asking{Files: tier, traits: tier.Traits()}
			cfg := virtual(v, a, 1<<30, 2).lasting(time.Second)
			cfg.Unloaded = 300 * time.Millisecond
			res, err := runPlain(t.Context(), cfg, c.routine)
			require.NoError(t, err)
			u := res.Harness.Unloaded
			require.NotEmpty(t, u.Read, u.Reason)
			require.NotEmpty(t, u.Write, u.Reason)
			l, w := u.Read[len(u.Read)-1], u.Write[len(u.Write)-1]
			assert.InDelta(t, read+(c.pages-1)*time.Millisecond/16, l.NS, 2)
			assert.InDelta(t, write+(c.pages-1)*time.Millisecond/8, w.NS, 2)
			assert.EqualValues(t, c.pages*page, l.RequestBytes)
			// A tenth of the window: half of it for each direction.
			took := int64(0)
			for _, l := range u.Read {
				took += l.Requests * l.NS
			}
			assert.InDelta(t, 50*time.Millisecond, took, float64(2*write*c.pages))
			measured := 0
			for _, p := range a.asked {
				if p.op == tiers.Read && strings.HasPrefix(p.key, "unloaded-") {
					measured++
				}
			}
			assert.Equal(t, c.own, measured > 0)
		})
	}
}

// atOnce is a tier whose bytes count when a request completes, on any filesystem.
type atOnce struct{ tiers.Files }

func (a atOnce) Traits() tiers.Traits {
	t := a.Files.Traits()
	t.CountsAtCommit = false
	return t
}

// Unanswered requests still own their memory when the trial ends: if it were freed, the device
// could write into its next use.
func TestBuffersOutliveTheTrialThatADeviceDoesNotAnswer(t *testing.T) {
	for name, routine := range map[string]Routine{
		"blocks":  &Blocks{Op: tiers.Read, Size: page, Footprint: 64 * page},
		"ceiling": &Ceiling{ReadShare: 1, Footprint: 64 * page, InFlight: 4},
		"sweep":   &Ceiling{ReadShare: 1, Footprint: 64 * page, StepTime: time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				wall := clock.NewWall()
				engine := tiertest.NewEngine(ioengine.NewPsync(wall.Now))
				tier := tiertest.Files(t, filetier.Config{Engine: engine})
				var reads atomic.Int64
				var mu sync.Mutex
				held := make(map[*ioengine.Op]bool)
				engine.Hold(func(op *ioengine.Op) bool {
					hold := op.Kind == ioengine.Read && reads.Add(1) > 20
					mu.Lock()
					defer mu.Unlock()
					held[op] = hold
					return hold
				})
				cfg := overLevels(onTier(atOnce{tier}, 1<<20), 4).lasting(time.Minute)
				cfg.Clock = wall
				ctx, cancel := context.WithCancel(t.Context())
				time.AfterFunc(10*time.Second, cancel)
				res, err := runPlain(ctx, cfg, routine)
				require.ErrorIs(t, err, context.Canceled)
				assert.Equal(t, result.StatusIncomplete, res.Status, "although there was no signal")
				assert.Equal(t, result.EndedBySignal, res.EndedBy)
				require.Positive(t, engine.Held())
				engine.Release()
				synctest.Wait()
				for op, held := range held {
					if held {
						assert.NoError(t, op.Err, "the device wrote into memory that was freed")
					}
				}
				require.NoError(t, engine.Close(t.Context()))
			})
		})
	}
}

// Filling keeps its time on a slow storage: it writes one file however long that takes, and no
// further one that would end late.
func TestFillingEndsInItsTime(t *testing.T) {
	tiertest.OneThread(t)
	for _, c := range []struct {
		rate, latency time.Duration // of a MiB
		footprint     int64
		until, most   time.Duration
		files         int
	}{
		{200 * time.Millisecond, time.Millisecond, 8 << 30, 10 * time.Second, 13 * time.Second, 1},
		{50 * time.Millisecond, time.Millisecond, 8 << 30, 12 * time.Second, 12 * time.Second, 3},
		{time.Millisecond, 100 * time.Millisecond, 8 << 30, 12 * time.Second, 12500 *
			time.Millisecond, 20},
		{time.Millisecond, time.Millisecond, 512 << 20, 12 * time.Second, time.Second, 16},
	} {
		v := clock.NewVirtual()
		rate := float64(fieldFill) / c.rate.Seconds()
		m := tiers.DeviceModel{Read: rate, Write: rate, WriteLatency: c.latency, Parallelism: 128}
		cfg := onModel(v, m, 1<<40)
		cfg.Limit = 1
		_, err := runPlain(t.Context(), cfg, once(func(ctx context.Context, b *Bench) error {
			r := &Knee{Blocks: Blocks{Op: tiers.Read, Footprint: c.footprint}}
			require.NoError(t, r.lay(b, KneeSize))
			begun := v.Now()
			require.NoError(t, r.fill(ctx, r.Footprint, begun+c.until))
			assert.LessOrEqual(t, v.Now()-begun, c.most)
			assert.GreaterOrEqual(t, len(r.files), c.files)
			return r.close()
		}))
		require.NoError(t, err)
	}
}
