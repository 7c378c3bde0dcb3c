package users

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kvbench/workloads"
	"kvbench/workloads/model"
)

var ragModel = model.Model{
	Key:       "x",
	Layers:    2,
	Hidden:    64,
	Heads:     2,
	KVHeads:   2,
	HeadDim:   32,
	Attention: model.GQA,
}

func TestDocumentsAreCutIntoChunks(t *testing.T) {
	c := NewCorpus(Default().RAG, 300, ragModel,
		model.NewSizer(ragModel, 1, model.TPEngine), 1)
	sum := 0
	for doc := range 300 {
		tokens := 0
		for i, e := range c.Chunks(nil, doc) {
			assert.Equal(t, workloads.ChunkKey(doc, i), e.Key)
			assert.LessOrEqual(t, e.Tokens, 512)
			tokens += e.Tokens
		}
		require.GreaterOrEqual(t, tokens, 4000)
		require.LessOrEqual(t, tokens, 12000)
		sum += tokens
	}
	assert.InDelta(t, 8000, float64(sum)/300, 500)
	assert.Equal(
		t,
		c.Chunks(nil, 7),
		NewCorpus(Default().RAG, 9, ragModel, model.NewSizer(ragModel, 1, model.TPEngine),
			1).Chunks(nil, 7),
		"a function of the seed",
	)
	assert.Equal(t, "rag/7/0", workloads.ChunkKey(7, 0))

	large := ragModel
	large.Layers = 64
	n := 0
	sizer := model.NewSizer(large, 1, model.TPEngine)
	for _, e := range NewCorpus(Default().RAG, 1, large, sizer, 1).Chunks(nil, 0) {
		n += e.Tokens
	}
	assert.LessOrEqual(t, n, 4096)

	heavy := NewCorpus(Default().RAG, 1, ragModel, model.Sizer{BytesPerToken: 1 << 20}, 1)
	assert.Equal(t, 256, heavy.Chunks(nil, 0)[0].Tokens, "a chunk has at most 256 MiB")
}

// Retrieval follows the weights and never takes a chunk twice.
func TestRetrievalIsWeightedWithoutReplacement(t *testing.T) {
	const draws = 10000
	for _, uniform := range []bool{false, true} {
		p := Default().RAG
		p.SmallModelTokens, p.Uniform = [2]int{4096, 4096}, uniform
		c := NewCorpus(p, 3, ragModel, model.NewSizer(ragModel, 1, model.TPEngine), 1)
		first := make([]float64, 8)
		u := NewStream(5, 9)
		for n := range int64(draws) {
			got := c.retrieve(u, n, DrawDocument, DrawChunk)
			require.Len(t, got, 5)
			seen := map[string]bool{}
			for _, e := range got {
				require.False(t, seen[e.Key], "%s twice", e.Key)
				seen[e.Key] = true
			}
			for doc := range 3 {
				for i := range first {
					if got[0].Key == workloads.ChunkKey(doc, i) {
						first[i]++
					}
				}
			}
		}
		harmonic := 0.0
		for i := range first {
			harmonic += 1 / float64(i+1)
		}
		for i := range first {
			want := 1 / float64(i+1) / harmonic
			if uniform {
				want = 1.0 / 8
			}
			assert.InDelta(t, want, first[i]/draws, 4*math.Sqrt(want/draws), "chunk %d, uniform %v",
				i, uniform)
		}
	}
	p := Default().RAG
	p.SmallModelTokens = [2]int{600, 600}
	assert.Len(
		t,
		NewCorpus(p, 1, ragModel, model.Sizer{},
			1).retrieve(NewStream(1, 1), 0, DrawDocument, DrawChunk),
		2,
		"all that there are",
	)
}

func TestOnlyKeptDocumentsAreRetrieved(t *testing.T) {
	p := Default().RAG
	p.MaxDocuments = 2
	c := NewCorpus(p, 10, ragModel, model.Sizer{}, 1)
	n, first := c.Documents()
	assert.Equal(t, []int{10, 8}, []int{n, first})
	for k := range int64(100) {
		u := NewStream(1, 1)
		key := c.retrieve(u, k, DrawDocument, DrawChunk)[0].Key
		assert.Regexp(t, "^rag/[89]/", key)
	}
}

func TestRAGPicksBothEndsOfAWeight(t *testing.T) {
	w := []float64{0, 1, 0, 3}
	assert.Equal(t, 1, pick(w, 4, 0))
	assert.Equal(t, 1, pick(w, 4, 0.24))
	assert.Equal(t, 3, pick(w, 4, 0.26))
	assert.Equal(t, 3, pick(w, 4, math.Nextafter(1, 0)))
	assert.Equal(t, 3, pick(w, 8, 0.9), "a sum that lost its last digits")
}

// A tenth of the turns retrieve, and a tenth are followed by a query. Otherwise the turns do not change.
func TestTurnsRetrieveAndHaveQueries(t *testing.T) {
	cfg := Config{Profile: Default(), Users: Population(Default(), 42, 20, false), Seed: 42,
		MultiTurn: true, Overtaking: true}
	plain := New(cfg)
	cfg.Corpus = NewCorpus(Default().RAG, 50, ragModel, model.Sizer{BytesPerToken: 1}, 42)
	with := New(cfg)
	turns, retrieved, queries := 0, 0, 0
	for now := time.Duration(0); now < 400*time.Second; now += 100 * time.Millisecond {
		for {
			r, st, _ := with.Take(now)
			if st != workloads.Ready {
				break
			}
			with.Written(r)
			with.Done(r, now)
			if r.Query {
				queries++
				assert.Len(t, r.Retrieved, 5)
				assert.GreaterOrEqual(t, r.GenerateTokens, 50)
				assert.LessOrEqual(t, r.GenerateTokens, 200)
				sizer := model.Sizer{BytesPerToken: 1}
				planner := workloads.Planner{Sizer: sizer, Batched: true}
				for _, op := range planner.Plan(nil, r) {
					assert.Equal(t, workloads.ForRetrieval, op.Purpose)
					assert.Equal(t, workloads.ReadIfPresent, op.Kind)
				}
				continue
			}
			want, st, _ := plain.Take(now)
			require.Equal(t, workloads.Ready, st)
			turns++
			if len(r.Retrieved) > 0 {
				retrieved++
				r.Retrieved = nil
			}
			r.Origin, want.Origin = nil, nil // cursors of different loads
			require.Equal(t, want, r)
		}
		if now%(10*time.Second) == 0 {
			var offered, queued int64
			for _, l := range with.Account(now) {
				offered, queued = offered+l.Offered, queued+l.Queued
			}
			assert.EqualValues(t, turns+queries, offered)
			assert.Zero(t, queued)
		}
	}
	require.Greater(t, turns, 10000)
	assert.InDelta(t, 0.1, float64(retrieved)/float64(turns), 0.01)
	assert.InDelta(t, 0.1, float64(queries)/float64(turns), 0.01)
}

// An autoscaler may change the number of users of a load with documents, too.
func TestUsersWithRAGStayScalable(t *testing.T) {
	p := Default()
	p.RAG.Share = 1 // each turn has a query
	scaled := New(Config{Profile: p, Users: Population(p, 42, 4, false), Seed: 42,
		MultiTurn: true, Overtaking: true,
		Corpus: NewCorpus(p.RAG, 50, ragModel, model.Sizer{BytesPerToken: 1}, 42)})
	active := func(from, to time.Duration) map[int]int {
		users := map[int]int{}
		for now := from; now < to; now += 100 * time.Millisecond {
			for {
				r, st, _ := scaled.Take(now)
				if st != workloads.Ready {
					break
				}
				users[r.User]++
				scaled.Written(r)
				scaled.Done(r, now)
			}
		}
		return users
	}
	assert.Len(t, active(0, 60*time.Second), 4)
	// Take a turn whose query waits. If its user leaves, both leave.
	now := 60 * time.Second
	for {
		r, st, wake := scaled.Take(now)
		if st == workloads.Ready && r.User == 3 && !r.Query {
			break
		}
		if st != workloads.Ready {
			now = wake
		}
	}
	offered := func() (n int64) {
		for _, l := range scaled.Account(now) {
			n += l.Offered
		}
		return n
	}
	before := offered()
	scaled.SetUsers(2, now)
	assert.Less(t, offered(), before)
	for user := range active(now, now+60*time.Second) {
		assert.Less(t, user, 2)
	}
	scaled.SetUsers(6, now+60*time.Second)
	assert.Len(t, active(now+60*time.Second, now+120*time.Second), 6)
}
