//go:build linux && (amd64 || arm64)

package collector

import (
	"errors"
	"fmt"
	"math"

	"github.com/cilium/ebpf"

	"kvbench/tracing/bpf"
)

// followed visits the reads and writes at the device whose end has not been seen.
func (k *kernelPrograms) followed(visit func(*bpf.TraceEntry)) error {
	var key uint64
	var e bpf.TraceEntry
	it := k.coll.Maps[bpf.TraceMapLive].Iterate()
	for it.Next(&key, &e) {
		if e.Counted != 0 && e.Issue != 0 && e.Op <= dirWrite {
			visit(&e)
		}
	}
	if err := it.Err(); err != nil && !errors.Is(err, ebpf.ErrIterationAborted) {
		return fmt.Errorf("look for lost requests: %w", err)
	}
	return nil
}

func (k *kernelPrograms) lostInFlight(before uint64) (s lostInFlight, err error) {
	err = k.followed(func(e *bpf.TraceEntry) {
		switch {
		case int32(e.Epoch-k.openEpoch) < 0: // lost and found before the window
		case e.Epoch != k.epoch:
			s.recovered[e.Op]++
		case e.Issue < before:
			s.counted[e.Op]++
			s.unobserved += int64(before - max(e.Issue, k.opened))
		}
	})
	return s, err
}

// recoverLost begins a new epoch if there is something to leave behind in the old one. Nothing was
// in flight at that moment, so the rest of the gap counts as one.
func (k *kernelPrograms) recoverLost(before uint64) (since uint64, err error) {
	since = math.MaxUint64
	err = k.followed(func(e *bpf.TraceEntry) {
		if e.Epoch == k.epoch && e.Issue < before {
			since = min(since, e.Issue)
		}
	})
	if err != nil || since == math.MaxUint64 {
		return 0, err
	}
	next := k.epoch + 1
	v := k.coll.Variables
	err = errors.Join(
		v[gauges[next&1]].Set(&[2]line{}),
		v[bpf.TraceVarIdle].Set(&line{before}),
		v[bpf.TraceVarEpoch].Set(&line{uint64(next)}),
	)
	if err == nil {
		k.epoch = next
	}
	return since, err
}
