package filetier_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"kvbench/tiers"
	"kvbench/tiers/filetier"
	"kvbench/tiers/ioengine"
	"kvbench/tiers/tiertest"
)

// refusing is an engine that fails direct reads or direct writes with EINVAL.
type refusing struct {
	ioengine.Engine
	kind ioengine.Kind
}

func (r refusing) Submit(op *ioengine.Op) {
	flags, _ := unix.FcntlInt(uintptr(op.FD), unix.F_GETFL, 0)
	if op.Kind == r.kind && flags&unix.O_DIRECT != 0 {
		op.Err = unix.EINVAL
		op.Done(op)
		return
	}
	r.Engine.Submit(op)
}

// The probe fails before anything is measured if names are too long, or if a filesystem accepts
// O_DIRECT at open and refuses direct I/O afterwards.
func TestWhatCannotWorkIsFoundBefore(t *testing.T) {
	probe := func(cfg filetier.Config) error {
		cfg.Dir, cfg.Layout.Bytes, cfg.Capacity = tiertest.Dir(t), 16384, 1<<20
		tier, err := filetier.New(t.Context(), cfg)
		if err != nil {
			return err
		}
		err = tier.Probe(t.Context())
		held, waste := tier.Footprint()
		assert.Zero(t, held+waste)
		require.NoError(t, tier.Close())
		return err
	}
	for layout, fixed := range map[string]int{
		"hicache-file": 64 + len("__0_1.bin"),               // its temporary name is shorter
		"lmcache-fs":   len("@0x01000100@0@.data.tmp") + 64, // the temporary one is the longest
		"vllm-fs":      len("__r0") + 12,                    // a directory
	} {
		cfg := imitating(layout, 0)
		cfg.Engine, cfg.Direct, cfg.Model = tiertest.Psync(t), false, strings.Repeat("m", 255-fixed)
		require.NoError(t, probe(cfg), layout)
		cfg.Model += "m"
		err := probe(cfg)
		require.ErrorIs(t, err, unix.ENAMETOOLONG, layout)
		assert.ErrorContains(t, err, "mmm")
		assert.ErrorContains(t, err, "-model")
	}
	for _, l := range tiers.EngineLayouts {
		if !l.Direct && !l.Either {
			continue
		}
		for _, kind := range []ioengine.Kind{ioengine.Read, ioengine.Write} {
			cfg := imitating(l.Name, 0)
			cfg.Direct, cfg.Model, cfg.Engine = true, "m", refusing{tiertest.Psync(t), kind}
			err := probe(cfg)
			if l.Name == "vllm-fs" && kind == ioengine.Write { // it goes on without, as vLLM does
				require.NoError(t, err)
				continue
			}
			require.ErrorAs(t, err, new(*tiers.UnsupportedError), l.Name)
			assert.ErrorContains(t, err, "invalid argument")
			assert.ErrorContains(t, err, map[bool]string{true: "-io buffered",
				false: "-layout"}[l.Either])
		}
	}
}

// The counter of the kernel shows which writes are cached, also while other processes write through the page cache.
func TestWritesThroughThePageCacheAreCounted(t *testing.T) {
	const pages = 1024
	for name, c := range map[string]struct {
		cached bool
		others []int64 // dirty pages of other processes between two readings of the counter, again and again
	}{
		"direct":                      {false, []int64{0}},
		"cached":                      {true, []int64{0}},
		"direct, others write less":   {false, []int64{pages / 3}},
		"direct, others write more":   {false, []int64{3 * pages}},
		"direct, others write bursts": {false, []int64{9 * pages, 0, 0, 2 * pages, 0}},
		"cached, others write more":   {true, []int64{3 * pages}},
		"cached, others write bursts": {true, []int64{0, 5 * pages, 0, 0, 0, 0, 0}},
	} {
		var dirty, readings int64
		count := func() int64 {
			if readings > 0 {
				dirty += c.others[(readings-1)%int64(len(c.others))]
			}
			readings++
			return dirty
		}
		got, err := filetier.CachedWrites(pages, count, func() error {
			if c.cached {
				dirty += pages - 1 // the kernel's counter lags
			}
			return nil
		})
		require.NoError(t, err, name)
		assert.Equal(t, c.cached, got, name)
	}
	_, err := filetier.CachedWrites(pages, func() int64 { return 0 }, func() error { return unix.ENOSPC })
	require.ErrorIs(t, err, unix.ENOSPC)
}
