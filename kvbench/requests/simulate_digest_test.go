package requests

import (
	"crypto/sha256"
	"encoding/hex"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"

	"kvbench/kvbench"
	"kvbench/kvbench/result"
	"kvbench/tiers"
	"kvbench/tiers/tiertest"
	"kvbench/workloads"
	"kvbench/workloads/users"
)

// The I/O traces of seeded simulations are the same to the byte in every version: a difference
// would invalidate every earlier trace and prediction.
func TestSimulationsKeepTheirTraces(t *testing.T) {
	tiertest.OneThread(t)
	var apart result.TierTraffic // bytes that are counted apart occur in some of these loads
	drive := func() *tiers.DeviceModel {
		return &tiers.DeviceModel{Read: 60 << 30, Write: 30 << 30, ReadIOPS: 50000,
			ReadLatency: 80 * time.Microsecond, WriteLatency: 20 * time.Microsecond,
			Parallelism: 64}
	}
	for name, c := range map[string]struct {
		change func(*runConfig, *kvbench.SimConfig)
		digest string
	}{
		"three tiers, generation": {func(c *runConfig, s *kvbench.SimConfig) {
			c.TokenTime = 2 * time.Millisecond
			c.Storage.GPUBytes, c.Storage.CPUBytes, c.Storage.StorageBytes = 20<<30, 40<<30, 200<<30
		}, "493f2e09aa97a8ef"},
		"few workers, warm-up": {func(c *runConfig, s *kvbench.SimConfig) {
			c.TokenTime, c.Workers, c.Warmup = 30*time.Millisecond, 20, 2*time.Second
		}, "c27de2a4d28e3ed2"},
		"a count of requests": {func(c *runConfig, s *kvbench.SimConfig) {
			c.Limit, c.Window = 700, 0
			c.Storage.CPUBytes, c.Storage.StorageBytes = 10<<30, 50<<30
			s.Device = drive()
		}, "1a0d55d58748750c"},
		"decode only": {func(c *runConfig, s *kvbench.SimConfig) {
			p := users.Default()
			c.Source = func() (workloads.Source, error) {
				return users.New(users.Config{Profile: p, Users: users.Population(p, 1, 10, false),
					Seed: 1, DecodeOnly: true}), nil
			}
			c.Population = Population{Entries: 100, Tokens: 2048}
			s.Device = drive()
		}, "6fd3c4e25005422f"},
		"a drive under all tiers": {func(c *runConfig, s *kvbench.SimConfig) {
			c.Storage.GPUBandwidth = 64 << 30
			c.Storage.GPUBytes, c.Storage.CPUBytes, c.Storage.StorageBytes, c.Storage.Depth = 2<<30,
				8<<30, 60<<30, 4
			s.Device = drive()
		}, "b96d1a306ee8d37d"},
		"an overloaded duplex drive": {func(c *runConfig, s *kvbench.SimConfig) {
			c.Overtaking, c.Storage.StorageBytes, c.Storage.MaxWriters, c.Storage.Chunk = true,
				20<<30, 3, 16<<20
			s.Device = drive()
			s.Device.Duplex = true
		}, "c7e9cb640ed1aee4"},
		"slices": {func(c *runConfig, s *kvbench.SimConfig) {
			c.Storage.Depth, c.Storage.StorageBytes = 3, 30<<30
			s.Device = drive()
			s.Device.Slice = 100 * time.Millisecond
		}, "6e4ab4d6784ffb77"},
		"capacity mode": {func(c *runConfig, s *kvbench.SimConfig) {
			c.Autoscale = &Autoscale{Mode: result.AutoscaleCapacity, Interval: time.Second, Users: 20}
			c.Workers, c.Storage.MaxWriters = 20, 0
			c.Source = func() (workloads.Source, error) {
				p := users.Default()
				return users.New(users.Config{Profile: p, Users: users.Population(p, 42, 20, false),
					Seed: 42, MultiTurn: true}), nil
			}
			s.Device = drive()
			c.Window = 30 * time.Second
		}, "fc56ae3ff5dcb9f8"},
		"qos mode": {func(c *runConfig, s *kvbench.SimConfig) {
			c.Autoscale = &Autoscale{Mode: result.AutoscaleQoS, Target: 0.1, Interval: time.Second,
				Users: 200}
			s.Device, c.Window = drive(), 20*time.Second
		}, "6edb5ce1802f9c2f"},
		"blocks": {func(c *runConfig, s *kvbench.SimConfig) {
			*c = blockConfig(smallTrace, 16)
			c.Storage.StorageBytes = 50 * 512 * 128
		}, "f18573faf8d563ea"},
		"blocks in a small cache over a slow drive": {func(c *runConfig, s *kvbench.SimConfig) {
			*c = blockConfig(smallTrace, 16)
			c.Storage.CPUBytes, c.Storage.StorageBytes, c.Storage.MaxWriters = 20*512*128,
				40*512*128, 2
			s.Device = &tiers.DeviceModel{Read: 1 << 20, Write: 1 << 20, Parallelism: 2,
				Slice: time.Second}
		}, "bbac5413bdd9a609"},
	} {
		t.Run(name, func(t *testing.T) {
			// Nor do they depend on the number of processors.
			defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1 + len(name)%2))
			cfg, sim := optionOne(t, 5*time.Second), kvbench.SimConfig{Deletes: true}
			c.change(&cfg, &sim)
			text, res := simulateTrace(t, cfg, sim)
			checkLoad(t, res)
			checkSums(t, res)
			for _, l := range res.Tiers {
				for _, n := range []result.TierTraffic{l.Read, l.Write} {
					apart.CutBytes += n.CutBytes
					apart.DemotionBytes += n.DemotionBytes
				}
			}
			if name == "qos mode" {
				assert.Less(t, res.Autoscaler.FinalUsers, 200, "users and workers stop")
			}
			sum := sha256.Sum256([]byte(text))
			assert.Equal(t, c.digest, hex.EncodeToString(sum[:8]), "%d rows",
				res.Simulation.TraceRows)
		})
	}
	assert.Positive(t, apart.CutBytes)
	assert.Positive(t, apart.DemotionBytes)
}

// The digest of a result is that of its requests and hits, and of nothing else.
func TestTheDigestOfAResultIsOfRequestsAndHits(t *testing.T) {
	tiertest.OneThread(t)
	run := func(seed uint64, room int64) (digest string) {
		src := population(20, func(u *users.Config) { u.Seed, u.MaxRequests = seed, 200 })
		synctest.Test(t, func(t *testing.T) {
			cfg := testConfig(storage(tiertest.NewNull(), room), src, 1).finite()
			digest = mustRun(t, cfg).Digest
		})
		return digest
	}
	const room = 1 << 50
	base := run(42, room)
	assert.Len(t, base, 16)
	assert.Equal(t, base, run(42, room))
	assert.NotEqual(t, base, run(43, room), "other requests")
	assert.NotEqual(t, base, run(42, 30_000*unit), "other hits")
}
