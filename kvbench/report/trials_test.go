package report

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"kvbench/kvbench/result"
)

// A complete trial near the median stands for all; the first where none is complete.
func TestTypical(t *testing.T) {
	trial := func(rate float64, status string) *result.Result {
		return &result.Result{Status: status, Tiers: []result.Tier{{Level: "storage",
			Read: result.TierTraffic{Bytes: 1, BytesPerSecond: &rate}}}}
	}
	a, b, c, d := trial(9, result.StatusComplete), trial(5, result.StatusFailed),
		trial(1, result.StatusComplete), trial(2, result.StatusComplete)
	assert.Nil(t, Typical(nil))
	assert.Same(t, b, Typical([]*result.Result{b, b}))
	assert.Same(t, a, Typical([]*result.Result{b, a, c}), "as near as the other")
	assert.Same(t, d, Typical([]*result.Result{b, a, c, d}))
}

// The trials of a benchmark end with one line that says whether they can be quoted.
func TestTrialsHaveAClosingLine(t *testing.T) {
	const gib = 1 << 30
	trials := func(name, kind string, rates ...float64) (all []*result.Result) {
		for _, v := range rates {
			r := &result.Result{Name: name, Status: result.StatusComplete,
				Tiers: []result.Tier{{Level: "storage",
					Read: result.TierTraffic{Bytes: gib, BytesPerSecond: new(v * gib)}}}}
			r.Harness.Verdict.Kind = kind
			all = append(all, r)
		}
		return all
	}
	all := trials("StorageCeiling/op=read", result.StorageLimited, 1.17, 0.77, 1.48)
	all[0].Harness.Verdict.Kind = result.LoadLimited
	all[1].Harness.Verdict.Kind = result.Undecided
	all = append(all, trials("A", result.StorageLimited, 2, 2.1)...)
	all = append(all, trials("B", result.StorageLimited, 2, 4)...)
	failed := trials("C", result.StorageLimited, 2, 2)
	failed[1].Status = result.StatusFailed
	all = append(append(all, failed...), trials("once", result.StorageLimited, 2)...)
	removed := trials("StorageCeiling/op=delete", result.StorageLimited, 0, 0)
	for i, r := range removed {
		r.Tiers = nil
		r.Removal = &result.Removal{BytesPerSecond: new(float64((20 + i) * gib))}
	}
	all = append(all, removed...)
	assert.Equal(t, []string{
		"StorageCeiling/op=read, 3 trials, read 1.17 GiB/s (0.77 GiB/s to 1.48 GiB/s); 1 of 3 " +
			"storage-limited, do not quote as the storage's rate: see the other trials' verdicts or errors",
		"A, 2 trials, read 2.05 GiB/s (2 GiB/s to 2.10 GiB/s); 2 of 2 storage-limited, fit to quote",
		"B, 2 trials, read 3 GiB/s (2 GiB/s to 4 GiB/s); 2 of 2 storage-limited, too far apart to " +
			"quote: measure for longer (-benchtime) or more often (-count)",
		"C, 1 of 2 trials complete, read 2 GiB/s (2 GiB/s to 2 GiB/s); 1 of 2 storage-limited, " +
			"do not quote as the storage's rate: see the other trials' verdicts or errors",
		"StorageCeiling/op=delete, 2 trials, freed 20.5 GiB/s (20 GiB/s to 21 GiB/s); 2 of 2 " +
			"storage-limited, fit to quote",
	}, Trials(all))
}
