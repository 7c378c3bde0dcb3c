package objecttier_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kvbench/tiers"
	"kvbench/tiers/objecttier"
	"kvbench/tiers/objecttier/endpoint"
	"kvbench/tiers/objecttier/s3double"
	"kvbench/tiers/objecttier/s3double/testnet"
	"kvbench/tiers/objecttier/store"
)

// process is one that nobody knows to be dead.
func process(pid int, host string) *objecttier.Process {
	return &objecttier.Process{PID: pid, Host: host, Boot: "b-" + host, Space: "s"}
}

// die ends a tier as kill -9 does: nothing is removed.
func die(t *testing.T, tier *objecttier.Tier) {
	t.Helper()
	require.NoError(t, tier.Close())
}

func TestAPrefixHasOneOwner(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, c := inBubble(t, 2)
		c.Process = process(4711, "a")
		first, err := objecttier.Open(t.Context(), c)
		require.NoError(t, err)
		c.Process = process(1, "b")
		refused := func() {
			t.Helper()
			_, err := objecttier.Open(t.Context(), c)
			e, ok := errors.AsType[*objecttier.InUseError](err)
			require.True(t, ok, err)
			assert.Equal(t, 4711, e.PID)
			assert.ErrorContains(t, err, "process 4711 on a")
			assert.Less(t, e.Age, 35*time.Second)
		}
		refused()
		<-time.After(10 * time.Minute) // it says every 30 s that it lives
		refused()
		o := tiers.Object{Key: "k", Gen: 1, Size: 100}
		_, err = first.Put(t.Context(), o, body(o), func(tiers.Chunk) {})
		require.NoError(t, err)
		die(t, first)
		refused()
		<-time.After(2 * time.Minute)
		second, err := objecttier.Open(t.Context(), c)
		require.NoError(t, err, "the first has not said for two minutes that it lives")
		r := second.Reclaimed()
		assert.Equal(t, objecttier.Reclaimed{Objects: 1, Bytes: 100, PID: 4711, Host: "a"}, r)
		require.NoError(t, second.Clear(t.Context(), nobody))
		require.NoError(t, second.Close())
		assert.Empty(t, keys(d))
	})
}

// A process of this boot that is gone is dead at once.
func TestADeadProcessOfThisBootHoldsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, c := inBubble(t, 1)
		boot, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
		if err != nil {
			t.Skip(err)
		}
		space, err := os.Readlink("/proc/self/ns/pid")
		require.NoError(t, err)
		c.Process = &objecttier.Process{PID: 1 << 30, Host: "x", Space: space,
			Boot: strings.TrimSpace(string(boot))}
		first, err := objecttier.Open(t.Context(), c)
		require.NoError(t, err)
		die(t, first)
		c.Process.Space = "pid:[1]"
		c.Process = nil // this one
		open(t, c)
	})
}

// Whatever is not exactly ours stays as it is, to the byte: beside the prefix, and in it.
func TestReclaimingIsExact(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, c := inBubble(t, 2)
		c.Rank = 0
		c.Process = process(4711, "a")
		first, err := objecttier.Open(t.Context(), c)
		require.NoError(t, err)
		for i := range 30 {
			o := tiers.Object{Key: fmt.Sprint("k", i), Gen: 1, Size: 1000}
			_, err := first.Put(t.Context(), o, body(o), func(tiers.Chunk) {})
			require.NoError(t, err)
		}
		die(t, first)
		client, err := store.New(c.Store)
		require.NoError(t, err)
		defer client.Close()
		ours := regexp.MustCompile(`^a/b/rank_0/([0-9a-f]{2})/([0-9a-f]{30}-[0-9a-f]{16})$`)
		var one string
		for _, k := range keys(d) {
			if ours.MatchString(k) {
				one = k
			}
		}
		require.NotEmpty(t, one)
		foreign := []string{"a/b/rank_0/notes.txt", one + ".txt", "a/b/rank_0/x" + one[11:],
			strings.ToUpper(one), "a/b/rank_01/" + one[len("a/b/rank_0/"):], "a/b/rank_0", "a/b/x",
			strings.Replace(one, "rank_0", "rank_00", 1), "rank_0/" + one[len("a/b/rank_0/"):],
			"a/b/rank_0/.kvbench-proof-x", "a/b/rank_0/.kvbench.json.old"}
		for _, k := range foreign {
			_, _, err := client.Put(t.Context(), k, int64(len(k)), func() io.ReadSeeker {
				return strings.NewReader(k)
			}, store.Condition{})
			require.NoError(t, err)
		}
		_, _, err = client.Create(t.Context(), one) // of ours
		require.NoError(t, err)
		_, _, err = client.Create(t.Context(), "a/b/rank_0/notes.txt")
		require.NoError(t, err)
		_, _, err = client.Create(t.Context(), foreign[4])
		require.NoError(t, err)
		<-time.After(2 * time.Minute)
		d.ClearLog()
		c.Process = process(1, "b")
		second, err := objecttier.Open(t.Context(), c)
		require.NoError(t, err)
		assert.Equal(t, objecttier.Reclaimed{Objects: 30, Bytes: 30_000, Uploads: 1, PID: 4711,
			Host: "a"}, second.Reclaimed())
		require.NoError(t, second.Clear(t.Context(), nobody))
		require.NoError(t, second.Close())
		// Without the marker nobody would know whose prefix it is, and the next run be refused.
		assert.ElementsMatch(t, append(foreign, "a/b/rank_0/.kvbench.json"), keys(d))
		for _, k := range foreign {
			got := ""
			_, err := client.Get(t.Context(), k, store.Range{N: int64(len(k)), Of: int64(len(k))},
				make([]byte, 1000), func(p []byte, _ int64) error { got += string(p); return nil })
			require.NoError(t, err)
			assert.Equal(t, k, got)
		}
		assert.Len(t, d.Uploads("bucket"), 2)
		log := d.Log()
		third, err := objecttier.Open(t.Context(), c)
		require.NoError(t, err, "the next benchmark of the same process")
		assert.Zero(t, third.Reclaimed().Objects)
		require.NoError(t, third.Close())
		for _, e := range log {
			if e.Op != s3double.Get && e.Op != s3double.Versioning { // those are the test's
				for _, k := range append(e.Keys, e.Key) {
					assert.True(t, k == "" && len(e.Keys) > 0 || strings.HasPrefix(k, "a/b/rank_0/"),
						"%s %q", e.Op, k)
				}
			}
		}
	})
}

func TestAPrefixOfSomebodyElseIsRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, c := inBubble(t, 1)
		client, err := store.New(c.Store)
		require.NoError(t, err)
		defer client.Close()
		base := fmt.Sprintf("a/b/rank_%d/", c.Rank)
		put := func(key, text string) {
			_, _, err := client.Put(t.Context(), key, int64(len(text)), func() io.ReadSeeker {
				return strings.NewReader(text)
			}, store.Condition{})
			require.NoError(t, err)
		}
		put(base+"notes.txt", "mine")
		_, err = objecttier.Open(t.Context(), c)
		assert.ErrorContains(t, err, "holds objects (notes.txt) but no marker")
		put(base+".kvbench.json", `{"theirs":1}`)
		_, err = objecttier.Open(t.Context(), c)
		assert.ErrorContains(t, err, "is no marker of kvbench's (12 bytes)")
		assert.Len(t, keys(d), 2, "and left as it was")
	})
}

// Of the next run's names are those of the run before, whatever format it had.
func TestTheMarkerKnowsTheNamesOfTheRunBefore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, c := inBubble(t, 1)
		c.Process = process(1, "a")
		c.Names = objecttier.Names{Format: objecttier.VLLM, Model: "org/m", Ranks: 1}
		first, err := objecttier.Open(t.Context(), c)
		require.NoError(t, err)
		o := tiers.Object{Key: "k", Gen: 1, Size: 100}
		_, err = first.Put(t.Context(), o, body(o), func(tiers.Chunk) {})
		require.NoError(t, err)
		die(t, first)
		<-time.After(2 * time.Minute)
		// The second start dies before it has reclaimed anything.
		c.Names, c.Process = objecttier.Names{Format: objecttier.Own}, process(2, "b")
		require.NoError(t, d.SetRules(s3double.Rule{Op: s3double.DeleteBatch, Fault: s3double.Fault{
			Kind: s3double.Status, Status: 403}}, s3double.Rule{Op: s3double.Delete,
			Fault: s3double.Fault{Kind: s3double.Status, Status: 403}}))
		_, err = objecttier.Open(t.Context(), c)
		require.Error(t, err)
		require.NoError(t, d.SetRules())
		<-time.After(2 * time.Minute)
		c.Process = process(3, "c")
		third := open(t, c)
		assert.EqualValues(t, 1, third.Reclaimed().Objects)
		assert.Equal(t, 2, third.Reclaimed().PID)
	})
}

// A run whose prefix another one has taken deletes nothing any more: the names are the same.
func TestARunThatWasTakenForDeadKeepsItsHandsOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, c := inBubble(t, 1)
		c.Process = process(1, "a")
		first, err := objecttier.Open(t.Context(), c)
		require.NoError(t, err)
		o := tiers.Object{Key: "k", Gen: 1, Size: 100}
		_, err = first.Put(t.Context(), o, body(o), func(tiers.Chunk) {})
		require.NoError(t, err)
		require.NoError(t, d.SetRules(s3double.Rule{Op: s3double.Put, Key: "kvbench.json",
			Fault: s3double.Fault{Kind: s3double.Status, Status: 403}}))
		<-time.After(190 * time.Second) // its heartbeats do not come through
		require.NoError(t, d.SetRules())
		c.Process = process(2, "b")
		second := open(t, c)
		_, err = second.Put(t.Context(), o, body(o), func(tiers.Chunk) {})
		require.NoError(t, err)
		assert.ErrorContains(t, first.Clear(t.Context(), nobody), "another run has taken over")
		_, err = first.Put(t.Context(), o, body(o), func(tiers.Chunk) {})
		assert.ErrorContains(t, err, "another run has taken over")
		assert.ErrorContains(t, first.Remove(t.Context(), o), "another run has taken over")
		require.NoError(t, first.Close())
		assert.NoError(t, check(t.Context(), second, o, func(tiers.Chunk) {}))
	})
}

func TestAStoreWithoutConditionsIsSaid(t *testing.T) {
	for _, fault := range []s3double.Fault{{Kind: s3double.NoConditions}} {
		synctest.Test(t, func(t *testing.T) {
			d, c := inBubble(t, 1)
			require.NoError(t, d.SetRules(s3double.Rule{Key: "kvbench.json", Fault: fault}))
			tier := open(t, c)
			assert.Contains(t, strings.Join(tier.Warnings(), "\n"), "nothing keeps a second run out")
		})
	}
}

func TestKeptObjectsAreTheNextStarts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, c := inBubble(t, 1)
		c.Process, c.Keep = process(1, "a"), true
		tier, err := objecttier.Open(t.Context(), c)
		require.NoError(t, err)
		o := tiers.Object{Key: "k", Gen: 1, Size: 100}
		_, err = tier.Put(t.Context(), o, body(o), func(tiers.Chunk) {})
		require.NoError(t, err)
		require.NoError(t, tier.Clear(t.Context(), nobody))
		require.NoError(t, tier.Close())
		assert.Len(t, keys(d), 2)
		// At once, and by the process that lives: it is the next trial.
		c.Keep = false
		assert.EqualValues(t, 1, open(t, c).Reclaimed().Objects)
	})
}

// A store is asked to show what the run will rely on, and what is wrong is said with its cure.
func TestTheProof(t *testing.T) {
	at := func(op s3double.Op, nth int, fault s3double.Fault) s3double.Rule {
		return s3double.Rule{Op: op, Key: "kvbench-proof", Nth: nth, Fault: fault}
	}
	for _, c := range []struct {
		name string
		rule s3double.Rule
		want string
	}{
		{"wrong bytes", at(s3double.Put, 0, s3double.Fault{Kind: s3double.Flip, At: 777}),
			"it gave back other bytes than it was given, from byte 777 of 100003 on"},
		{"wrong range", at(s3double.Get, 2, s3double.Fault{Kind: s3double.Flip}),
			"from byte 4097"},
		{"length", at(s3double.Get, 0, s3double.Fault{Kind: s3double.WrongLength}),
			"the answer has 100002 bytes instead of 100003"},
		{"list", at(s3double.List, 0, s3double.Fault{Kind: s3double.Empty}),
			"a list does not show an object"},
		{"delete", at(s3double.Delete, 0, s3double.Fault{Kind: s3double.Status, Status: 403}),
			"may not do that in the bucket bucket"},
		{"parts", at(s3double.Complete, 0, s3double.Fault{Kind: s3double.Error200, Code: "InvalidPart"}),
			"InvalidPart"},
		{"page", s3double.Rule{Fault: s3double.Fault{Kind: s3double.HTML}},
			"check host and port of -s3-endpoint"},
		{"key", s3double.Rule{Fault: s3double.Fault{Kind: s3double.Status, Status: 403, Code: "InvalidAccessKeyId"}},
			"check AWS_ACCESS_KEY_ID"},
		{"bucket", s3double.Rule{Fault: s3double.Fault{Kind: s3double.Status, Status: 404, Code: "NoSuchBucket"}},
			"the bucket bucket must exist, it is never made"},
		{"region", s3double.Rule{Fault: s3double.Fault{Kind: s3double.Status, Status: 400, Code: "AuthorizationHeaderMalformed"}},
			"the bucket's region is not us-east-1: give it with -s3-region"},
	} {
		synctest.Test(t, func(t *testing.T) {
			d, cfg := inBubble(t, 1)
			require.NoError(t, d.SetRules(c.rule))
			_, err := objecttier.Open(t.Context(), cfg)
			assert.ErrorContains(t, err, c.want, c.name)
			if c.name != "delete" {
				assert.Empty(t, keys(d), c.name)
			}
			assert.Empty(t, d.Uploads("bucket"), c.name)
		})
	}
}

// Endpoints that do not show the same objects are different stores.
func TestEndpointsHaveToShowTheSame(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		one, two := &testnet.Network{}, &testnet.Network{}
		a := s3double.Start(t, s3double.Config{Buckets: []string{"bucket"}, Network: one}, 1)
		b, err := s3double.Open(s3double.Config{Buckets: []string{"bucket"}, Network: two})
		require.NoError(t, err)
		t.Cleanup(func() { assert.NoError(t, b.Close()) })
		_, err = b.Listen("10.0.0.9:9000")
		require.NoError(t, err)
		for _, balance := range []endpoint.Balance{endpoint.RoundRobin, endpoint.PinKey} {
			c := config(t, a, one)
			c.Store.Endpoints, err = endpoint.NewSet(append(a.URLs(), b.URLs()...), balance, 0,
				c.Store.Clock.Now)
			require.NoError(t, err)
			c.Store.Dial = func(ctx context.Context, n, address string) (net.Conn, error) {
				if address == "10.0.0.9:9000" {
					return two.DialContext(ctx, n, address)
				}
				return one.DialContext(ctx, n, address)
			}
			tier, err := objecttier.Open(t.Context(), c)
			if balance == endpoint.RoundRobin {
				assert.ErrorContains(t, err, "they are different stores; with -s3-balance pin-key")
				assert.Empty(t, append(keys(a), keys(b)...), "a start that is refused leaves nothing")
				continue
			}
			require.NoError(t, err)
			for i := range 50 {
				o := tiers.Object{Key: fmt.Sprint("k", i), Gen: 1, Size: 100}
				_, err := tier.Put(t.Context(), o, body(o), func(tiers.Chunk) {})
				require.NoError(t, err)
				require.NoError(t, check(t.Context(), tier, o, func(tiers.Chunk) {}))
			}
			assert.Greater(t, len(keys(a)), 10)
			assert.Greater(t, len(keys(b)), 10)
			die(t, tier)
			<-time.After(3 * time.Minute)
			assert.EqualValues(t, 50, open(t, c).Reclaimed().Objects, "wherever they are")
		}
	})
}

// Of two endpoints the one that does not answer is named, not the one that was asked beside it.
func TestADeadEndpointIsNamed(t *testing.T) {
	for dead := range 2 {
		synctest.Test(t, func(t *testing.T) {
			d, c := inBubble(t, 2)
			d.Endpoints()[dead].Kill()
			_, err := objecttier.Open(t.Context(), c)
			assert.ErrorContains(t, err, "the endpoint "+d.URLs()[dead]+" does not answer")
			assert.NotContains(t, err.Error(), d.URLs()[1-dead])
			assert.Empty(t, keys(d))
		})
	}
}

func TestAVersionedBucketIsRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		network := &testnet.Network{}
		d := s3double.Start(t, s3double.Config{Buckets: []string{"bucket"}, Network: network,
			Versioning: "Enabled"}, 1)
		_, err := objecttier.Open(t.Context(), config(t, d, network))
		assert.ErrorContains(t, err, "keeps versions")
		assert.Empty(t, keys(d))
	})
}
