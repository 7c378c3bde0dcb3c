package users

import (
	"slices"

	"kvbench/workloads"
	"kvbench/workloads/model"
)

// Corpus is the set of documents that are in the cache before a load begins. Each document is a
// function of the seed and its number, from 0. A Corpus is safe for concurrent use.
type Corpus struct {
	profile     RAG
	documents   int
	tokens      [2]int
	chunkTokens int
	stream      Stream
}

// corpusStream is the stream number of the documents. No user has it.
const corpusStream = -2

// NewCorpus returns the documents for a model. The bytes per token limit the tokens of a chunk.
func NewCorpus(p RAG, documents int, m model.Model, s model.Sizer, seed uint64) *Corpus {
	c := &Corpus{profile: p, documents: documents, tokens: p.SmallModelTokens,
		chunkTokens: p.ChunkTokens, stream: NewStream(seed, corpusStream)}
	if m.Hidden >= 8192 || m.Layers >= 64 {
		c.tokens = p.LargeModelTokens
	}
	if size := s.Bytes(1); size > 0 && p.MaxChunkBytes > 0 {
		c.chunkTokens = max(1, min(c.chunkTokens, int(p.MaxChunkBytes/size)))
	}
	return c
}

// Documents returns the number of documents and the number of the first one that is kept. The documents
// before it are written and removed again.
func (c *Corpus) Documents() (n, first int) {
	if m := c.profile.MaxDocuments; m > 0 {
		first = max(0, c.documents-m)
	}
	return c.documents, first
}

// Chunks appends the chunks of a document to dst.
func (c *Corpus) Chunks(dst []workloads.Entry, doc int) []workloads.Entry {
	left := c.stream.Between(DrawDocumentTokens, int64(doc), c.tokens[0], c.tokens[1])
	for i := 0; left > 0; i++ {
		e := workloads.Entry{Key: workloads.ChunkKey(doc, i), Tokens: min(c.chunkTokens, left)}
		dst = append(dst, e)
		left -= e.Tokens
	}
	return dst
}

// retrieve returns the top chunks of one document, drawn without replacement. n is the number of the
// retrieval in the stream.
func (c *Corpus) retrieve(u Stream, n int64, document, chunk Draw) (top []workloads.Entry) {
	last, first := c.Documents()
	chunks := c.Chunks(nil, u.Between(document, n, first, last-1))
	weights, sum := make([]float64, len(chunks)), 0.0
	for i := range weights {
		weights[i] = 1
		if !c.profile.Uniform {
			weights[i] = 1 / float64(i+1)
		}
		sum += weights[i]
	}
	for k := range min(c.profile.TopK, len(chunks), MaxTopK) {
		at := pick(weights, sum, u.Unit(chunk, n*MaxTopK+int64(k)))
		sum -= weights[at]
		weights[at] = 0
		top = append(top, chunks[at])
	}
	return top
}

// pick returns the first index at which the cumulative weight exceeds the given share of the sum. It
// never returns an index of weight 0. If rounding errors leave no such index, it returns the last index
// with a weight.
func pick(weights []float64, sum, share float64) (at int) {
	left := share * sum
	for i, w := range weights {
		if w == 0 {
			continue
		}
		if at, left = i, left-w; left < 0 {
			break
		}
	}
	return at
}

// retrieve adds chunks of documents to some turns, and a query after some. A query arrives with the turn
// that it follows, has the turn's class, and decodes the chunks that it retrieves. Queries do not count
// towards MaxRequests. A query counts as offered from the time at which its turn is taken. The Origin of
// a query is nil: no request waits for it.
func (s *Users) retrieve(c *cursor, r *workloads.Request) {
	corpus := s.cfg.Corpus
	if corpus == nil || corpus.documents < 1 {
		return
	}
	u, share := c.stream, corpus.profile.Share
	if u.Unit(DrawRetrieve, r.Seq) < share && r.Kind != workloads.DecodeOnly {
		r.Retrieved = corpus.retrieve(u, r.Seq, DrawDocument, DrawChunk)
	}
	if u.Unit(DrawQuery, r.Seq) >= share {
		return
	}
	q := &workloads.Request{
		User: r.User, Seq: r.Seq, Class: r.Class, Arrival: r.Arrival,
		Conversation: r.Conversation, Turn: r.Turn,
		Kind: workloads.DecodeOnly, SystemPrompt: -1, Query: true,
		GenerateTokens: u.Between(DrawQueryTokens, r.Seq, 50, 200),
		Retrieved:      corpus.retrieve(u, r.Seq, DrawQueryDocument, DrawQueryChunk),
	}
	for _, e := range q.Retrieved {
		q.ContextTokens += e.Tokens
	}
	s.queries = append(s.queries, q)
	s.offered[q.Class].Offered++
}

// dropQueries drops the waiting queries of the users from number n on.
func (s *Users) dropQueries(n int) {
	s.queries = slices.DeleteFunc(s.queries, func(q *workloads.Request) bool {
		if q.User >= n {
			s.offered[q.Class].Offered--
		}
		return q.User >= n
	})
}
