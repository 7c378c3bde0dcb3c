package checkpoint

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kvbench/kvbench"
	"kvbench/kvbench/record"
	"kvbench/kvbench/result"
	"kvbench/tiers"
	"kvbench/tiers/clock"
	"kvbench/tiers/content"
	"kvbench/tiers/faults"
	"kvbench/tiers/tiertest"
	"kvbench/tiers/transfer"
	files "kvbench/workloads/checkpoint"
)

// slowFile takes a while for each write and reads the bytes at the end, like a device that reads
// the memory itself.
type slowFile struct {
	tiers.OneObject
	clock clock.Clock
	takes time.Duration
	check func(p []byte, off int64)
	fail  func(off int64) error

	mu       sync.Mutex
	inFlight int
	most     int
}

func (f *slowFile) Submit(io *tiers.IO) {
	f.mu.Lock()
	f.inFlight++
	f.most = max(f.most, f.inFlight)
	f.mu.Unlock()
	p, off := io.Buf.B, io.Off
	go func() {
		_ = f.clock.Sleep(context.Background(), f.takes)
		if f.check != nil {
			f.check(p, off)
		}
		var err error
		if f.fail != nil {
			err = f.fail(off)
		}
		f.mu.Lock()
		f.inFlight--
		f.mu.Unlock()
		io.End(err)
	}()
}

// piped moves a file of some chunks through a pipeline in virtual time.
type piped struct {
	produce          time.Duration // for a chunk
	file             *slowFile
	chunks           int64
	buffers, writers int
	producers        int
	before           bool
	content          *content.Content
	o                tiers.Object
}

const testChunk = 64 << 10

func (p *piped) run(t *testing.T, c clock.Clock) (*result.Pipeline, error) {
	t.Helper()
	p.file.clock = c
	var bufs []tiers.Buffer
	for range p.buffers {
		bufs = append(bufs, tiers.Buffer{B: make([]byte, testChunk)})
	}
	pipe := &pipeline{clock: c, chunk: testChunk, producers: p.producers, writers: p.writers,
		before: p.before}
	pipe.fill = func(buf []byte, o tiers.Object, off int64) {
		_ = c.Sleep(t.Context(), p.produce)
		if p.content != nil {
			p.content.Fill(buf, o, off)
		}
	}
	pipe.add(bufs)
	end := func() {}
	if p.before {
		require.NoError(t, pipe.prepare(t.Context(), func(int) []tiers.Object { return []tiers.Object{p.o} }))
	} else {
		end = pipe.start(t.Context())
	}
	l := pipe.lines[0]
	l.busy, l.done = &clock.Busy{}, func(tiers.Chunk) {}
	from := c.Now()
	err := l.write(t.Context(), p.o, p.file)
	pipe.total = c.Now() - from
	end()
	return pipe.report(1), err
}

// TestBottleneckIsNamed: for each ratio of a producer's time to a writer's the pipeline names the
// slower side, and takes hardly longer than that side alone.
func TestBottleneckIsNamed(t *testing.T) {
	const write = 10 * time.Millisecond
	for _, c := range []struct {
		ratio float64
		want  string
	}{
		{4, result.BottleneckGeneration}, {2, result.BottleneckGeneration},
		{1.2, result.BottleneckGeneration}, {0.8, result.BottleneckIO}, {0.5, result.BottleneckIO},
		{0.25, result.BottleneckIO},
	} {
		for _, buffers := range []int{8, 64} {
			t.Run(fmt.Sprint(c.ratio, " with ", buffers), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					p := &piped{produce: time.Duration(c.ratio * float64(write)),
						file: &slowFile{takes: write}, chunks: 100, buffers: buffers, writers: 1,
						producers: 1, o: tiers.Object{Key: "f", Size: 100 * testChunk}}
					got, err := p.run(t, clock.NewWall())
					require.NoError(t, err)
					assert.Equal(t, c.want, got.Bottleneck)
					assert.LessOrEqual(t, *got.Overhead, 0.03+0.001)
					assert.EqualValues(t, 100, got.Chunks)
					assert.InDelta(t, 1/c.ratio, *got.Ratio, 0.01)
				})
			})
		}
	}
}

// TestGeneratedBefore: no write waits for generation, and the time of a checkpoint has none of it.
func TestGeneratedBefore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &piped{produce: 20 * time.Millisecond, file: &slowFile{takes: 10 * time.Millisecond},
			buffers: 10, writers: 2, producers: 2, before: true,
			o: tiers.Object{Key: "f", Size: 9*testChunk + 1}}
		got, err := p.run(t, clock.NewWall())
		require.NoError(t, err)
		assert.Equal(t, int64(100*time.Millisecond), got.GenerationWallNS)
		assert.Equal(t, int64(50*time.Millisecond), got.TotalNS)
		assert.Equal(t, got.TotalNS, got.IONS)
		assert.Zero(t, *got.Overhead)
		assert.Zero(t, got.WriterWaitNS)
		assert.Equal(t, result.BottleneckIO, got.Bottleneck)
		assert.EqualValues(t, 10, got.Chunks)
	})
}

// oneFile writes a file with one buffer to a tier that keeps no bytes and whose calls the hook sees.
func oneFile(t *testing.T, c clock.Clock, bytes, chunk int64, hook faults.Hook,
	fill func(buf []byte, o tiers.Object, off int64)) *result.Pipeline {
	l := &Load{env: &kvbench.Env{Clock: c, Rec: record.New(1)},
		tier:    transfer.New(faults.Wrap(tiertest.NewNull(), hook), nil),
		flushes: result.NewHistogram("ns")}
	l.env.Rec.Open(0, time.Hour)
	pipe := &pipeline{clock: c, fill: fill, chunk: chunk, producers: 1, writers: 1}
	pipe.add([]tiers.Buffer{{B: make([]byte, chunk)}})
	end := pipe.start(t.Context())
	line := pipe.lines[0]
	made, err := l.make(t.Context(), line, 1, []files.File{{Name: "f", Bytes: bytes}})
	require.NoError(t, err)
	require.NoError(t, l.file(t.Context(), 0, line, made[0]))
	pipe.total = c.Now()
	end()
	return pipe.report(1)
}

// The blocks that a file is given before its first write are the storage's work, as its flush is.
func TestMakingAFileIsTheStoragesTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		wall := clock.NewWall()
		slow := map[faults.Call]time.Duration{faults.Create: 3 * time.Second,
			faults.Commit: time.Second}
		got := oneFile(t, wall, 100, testChunk, func(ctx context.Context, e faults.Event) error {
			return wall.Sleep(ctx, slow[e.Call])
		}, func([]byte, tiers.Object, int64) {})
		assert.Equal(t, int64(4*time.Second), got.IONS)
		assert.Equal(t, int64(time.Second), got.CloseNS)
		assert.Zero(t, *got.Overhead)
	})
}

// Files of checkpoints have more than 4 GiB: each chunk is generated for, and written at, an offset
// of its own.
func TestOffsetsAboveFourGiB(t *testing.T) {
	const size, chunk = 9<<30 + 5, 16 << 20
	want, filled, written := map[int64]int{}, map[int64]int{}, map[int64]int{}
	for off := int64(0); off < size; off += chunk {
		want[off] = int(min(chunk, size-off))
	}
	oneFile(t, clock.NewWall(), size, chunk, func(_ context.Context, e faults.Event) error {
		if e.Call == faults.Write {
			written[e.Offset] += e.Length
		}
		return nil
	}, func(_ []byte, o tiers.Object, off int64) { filled[off] += int(min(chunk, o.Size-off)) })
	assert.Equal(t, want, filled)
	assert.Equal(t, want, written)
}

// TestBuffersComeBackWithTheAnswer: with two buffers, slow writers or slow producers, every chunk
// that reaches the device has the bytes of its place: no buffer is filled again before its write
// has completed.
func TestBuffersComeBackWithTheAnswer(t *testing.T) {
	for name, c := range map[string]struct{ produce, write time.Duration }{
		"slow writer":   {time.Millisecond, 10 * time.Millisecond},
		"slow producer": {10 * time.Millisecond, time.Millisecond},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				data := content.New([16]byte{7}, 0)
				o := tiers.Object{Key: "global_epoch1_step1/f", Size: 40*testChunk - 5000}
				wrong, total := 0, int64(0)
				var mu sync.Mutex
				file := &slowFile{takes: c.write, check: func(p []byte, off int64) {
					mu.Lock()
					defer mu.Unlock()
					if total += int64(len(p)); data.Check(p, o, off) != nil {
						wrong++
					}
				}}
				p := &piped{produce: c.produce, file: file, buffers: 2, writers: 2, producers: 2,
					content: data, o: o}
				_, err := p.run(t, clock.NewWall())
				require.NoError(t, err)
				assert.Zero(t, wrong)
				assert.Equal(t, o.Size, total)
				assert.LessOrEqual(t, file.most, 2)
			})
		})
	}
}

// TestAFailedWriteEndsTheFile: the first failure is returned, the call does not wait for lost
// completions, and the device keeps its buffers.
func TestAFailedWriteEndsTheFile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		full := errors.New("no space left")
		file := &slowFile{takes: time.Millisecond, fail: func(off int64) error {
			if off == 3*testChunk {
				return full
			}
			return nil
		}}
		p := &piped{file: file, buffers: 4, writers: 2, producers: 1,
			o: tiers.Object{Key: "f", Size: 100 * testChunk}}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		_, err := p.run(t, clock.NewWall())
		assert.ErrorIs(t, err, full)
		require.NoError(t, ctx.Err())
	})
}
