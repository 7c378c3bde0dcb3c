package workloads

import "time"

// queryTokens are the tokens generated for a query, inclusive.
var queryTokens = [2]int{50, 200}

// DrawnCorpus is a Corpus whose documents are drawn: each is a function of the seed and its number.
// It is safe for concurrent use.
type DrawnCorpus struct {
	profile     RAGProfile
	documents   int
	tokens      [2]int
	chunkTokens int
	stream      userStream
	seed        uint64
}

// corpusStream is the number of the documents' stream, which is no user's.
const corpusStream = -2

var _ Corpus = (*DrawnCorpus)(nil)

// NewCorpus returns documents for a model; bytes per token decide how many tokens fit into a chunk.
func NewCorpus(p RAGProfile, documents int, m Model, sizer Sizer, seed uint64) *DrawnCorpus {
	c := &DrawnCorpus{profile: p, documents: documents, tokens: p.SmallModelTokens, chunkTokens: p.ChunkTokens,
		stream: newStream(seed, corpusStream), seed: seed}
	if m.Hidden >= 8192 || m.Layers >= 64 {
		c.tokens = p.LargeModelTokens
	}
	if size := sizer.Bytes(1); size > 0 && p.MaxChunkBytes > 0 {
		c.chunkTokens = max(1, min(c.chunkTokens, int(p.MaxChunkBytes/size)))
	}
	return c
}

// Documents returns how many documents are ingested, and the number of the first that is still
// there after that.
func (c *DrawnCorpus) Documents() (n, first int) {
	if m := c.profile.MaxDocuments; m > 0 && m < c.documents {
		return c.documents, c.documents - m
	}
	return c.documents, 0
}

// chunks returns the number of chunks of a document, and its tokens.
func (c *DrawnCorpus) chunks(doc int) (n, tokens int) {
	tokens = c.stream.between(drawDocumentTokens, int64(doc), c.tokens[0], c.tokens[1])
	return (tokens-1)/c.chunkTokens + 1, tokens
}

// Chunks appends the chunks of a document to dst.
func (c *DrawnCorpus) Chunks(dst []Entry, doc int) []Entry {
	n, tokens := c.chunks(doc)
	for i := range n {
		dst = append(dst, Entry{Key: ChunkKey(doc, i), Tokens: min(c.chunkTokens, tokens-i*c.chunkTokens)})
	}
	return dst
}

// retrieve draws the top chunks of one document; n numbers the retrievals of a stream.
func (c *DrawnCorpus) retrieve(u userStream, n int64, document, chunk draw) []Entry {
	last, first := c.Documents()
	doc := u.between(document, n, first, last-1)
	count, tokens := c.chunks(doc)
	weights := make([]float64, count)
	sum := 0.0
	for i := range weights {
		weights[i] = 1
		if !c.profile.Uniform {
			weights[i] = 1 / float64(i+1)
		}
		sum += weights[i]
	}
	var got []Entry
	for k := range min(c.profile.TopK, count, maxTopK) {
		at := pick(weights, sum, u.unit(chunk, n*maxTopK+int64(k)))
		sum -= weights[at]
		weights[at] = 0
		got = append(got, Entry{Key: ChunkKey(doc, at), Tokens: min(c.chunkTokens, tokens-at*c.chunkTokens)})
	}
	return got
}

// pick returns the index at which the weights up to it exceed that share of their sum; never one of
// weight 0.
func pick(weights []float64, sum, share float64) int {
	last, at := 0, share*sum
	for i, w := range weights {
		if w == 0 {
			continue
		}
		last = i
		if at < w {
			return i
		}
		at -= w
	}
	return last // rounding
}

// WithRAG lets the turns of a source retrieve chunks of documents, and lets their users ask queries
// besides: a query arrives with the turn that it follows, is of its class, and decodes the chunks
// that it retrieves. Queries come on top of the source's own number of requests; they count as
// offered from the moment at which their turn is taken.
func WithRAG(src Source, c *DrawnCorpus) Source {
	if c.documents < 1 {
		return src
	}
	return &ragSource{Source: src, corpus: c}
}

type ragSource struct {
	Source
	corpus  *DrawnCorpus
	waiting []*Request
	taken   [NumClasses]int64
}

// Take implements Source.
func (s *ragSource) Take(now time.Duration) (*Request, State, time.Duration) {
	if len(s.waiting) > 0 {
		q := s.waiting[0]
		s.waiting = s.waiting[1:]
		s.taken[q.Class]++
		return q, Ready, 0
	}
	r, st, wake := s.Source.Take(now)
	if st != Ready {
		return r, st, wake
	}
	u, share := newStream(s.corpus.seed, r.User), s.corpus.profile.Share
	if u.unit(drawRetrieve, r.Seq) < share && r.Kind != DecodeOnly {
		r.Retrieved = s.corpus.retrieve(u, r.Seq, drawDocument, drawChunk)
	}
	if u.unit(drawQuery, r.Seq) < share {
		q := &Request{
			User: r.User, Seq: r.Seq, Class: r.Class, Arrival: r.Arrival, Conversation: r.Conversation, Turn: r.Turn,
			Kind: DecodeOnly, SystemPrompt: -1, Query: true,
			GenerateTokens: u.between(drawQueryTokens, r.Seq, queryTokens[0], queryTokens[1]),
			Retrieved:      s.corpus.retrieve(u, r.Seq, drawQueryDocument, drawQueryChunk),
		}
		for _, e := range q.Retrieved {
			q.ContextTokens += e.Tokens
		}
		s.waiting = append(s.waiting, q)
	}
	return r, st, wake
}

// Written implements Source.
func (s *ragSource) Written(r *Request) {
	if !r.Query {
		s.Source.Written(r)
	}
}

// Done implements Source.
func (s *ragSource) Done(r *Request, now time.Duration) {
	if !r.Query {
		s.Source.Done(r, now)
	}
}

// Account implements Source.
func (s *ragSource) Account(until time.Duration) []ClassLoad {
	loads := s.Source.Account(until)
	for c := range loads {
		loads[c].Offered += s.taken[c]
	}
	for _, q := range s.waiting {
		l := &loads[q.Class]
		l.Offered++
		l.Queued++
		l.Oldest = min(l.Oldest, q.Arrival)
	}
	return loads
}
