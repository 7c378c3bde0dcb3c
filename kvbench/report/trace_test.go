package report

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"kvbench/kvbench/result"
)

func TestStorageConcurrencyIsWhatWasInFlight(t *testing.T) {
	r := &result.Result{WindowNS: int64(10 * time.Second), Workload: result.Workload{Workers: 500},
		Tiers: []result.Tier{{
			Level: "storage", Read: result.TierTraffic{DeviceNS: int64(20 * time.Second)},
			Write: result.TierTraffic{DeviceNS: int64(10 * time.Second)},
		}}}
	r.IO.Depth = 2
	assert.InDelta(t, 6, storageConcurrency(r), 1e-9)
	r.Tiers[0].Read.DeviceNS, r.Tiers[0].Write.DeviceNS = 0, 0
	assert.InDelta(t, 1000, storageConcurrency(r), 1e-9, "the workers are an upper bound")
}
