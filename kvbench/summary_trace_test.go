package kvbench

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

func TestStorageConcurrencyIsWhatWasInFlight(t *testing.T) {
	r := &Result{WindowNS: int64(10 * time.Second), Workload: Workload{Workers: 500}, Tiers: []TierResult{{
		Level: "storage", Read: TierTraffic{DeviceNS: int64(20 * time.Second)}, Write: TierTraffic{DeviceNS: int64(10 * time.Second)},
	}}}
	r.IO.Depth = 2
	assert.InDelta(t, 6, storageConcurrency(r), 1e-9)
	r.Tiers[0].Read.DeviceNS, r.Tiers[0].Write.DeviceNS = 0, 0
	assert.InDelta(t, 1000, storageConcurrency(r), 1e-9, "the workers are an upper bound")
}
