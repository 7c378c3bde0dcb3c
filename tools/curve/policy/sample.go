package policy

import (
	"math"
	"strconv"
	"time"

	"kvbench/workloads/formats"
	"kvbench/workloads/reuse"
)

// Sample keeps requests of blocks in memory: some 4 bytes for each block that one asks for, and 100
// for each distinct block. The zero Sample keeps all of them.
type Sample struct {
	Seed uint64 // decides which beginnings are kept
	// Most is how many blocks, and MostJoined how many of what Join makes of them, are asked for at
	// most: beyond it half of the beginnings are left out, and half again. 0 = no bound.
	Most, MostJoined int

	origin   time.Duration // when the first request came, kept or not
	begun    bool
	halved   int // times
	joined   int // blocks at most
	requests []request
	blocks   []int32 // of all requests: places in names
	ids      map[string]map[int64]int32
	names    []string // of distinct blocks
}

// request is one that is kept.
type request struct {
	at            time.Duration
	hash          uint64 // of its beginning
	blocks        int    // how many
	context, size int    // tokens: of all, of a block
}

// Add keeps a request, if its beginning is one of those that are kept.
func (s *Sample) Add(r *formats.Row, at time.Duration) {
	if !s.begun {
		s.begun, s.origin = true, at
	}
	if len(r.Blocks) == 0 {
		return
	}
	kept := request{at: at, hash: s.hash(r.Scope, r.Blocks[0]), blocks: len(r.Blocks),
		context: r.Context, size: r.BlockTokens}
	if !s.keeps(&kept) {
		return
	}
	s.requests = append(s.requests, kept)
	if s.ids == nil {
		s.ids = make(map[string]map[int64]int32)
	}
	ids := s.ids[r.Scope]
	if ids == nil {
		ids = make(map[int64]int32)
		s.ids[r.Scope] = ids
	}
	for _, id := range r.Blocks {
		place, known := ids[id]
		if !known {
			place = int32(len(s.names))
			ids[id] = place
			s.names = append(s.names, strconv.Itoa(int(place)))
		}
		s.blocks = append(s.blocks, place)
	}
	for s.Most > 0 && len(s.blocks) > s.Most && s.halved < maxHalved {
		s.halve()
	}
}

// maxHalved leaves a beginning of a million: who has fewer has a trace of one.
const maxHalved = 20

// keeps says whether a beginning is one of those that are kept.
func (s *Sample) keeps(r *request) bool { return r.hash>>(64-s.halved) == 0 }

// halve leaves out half of the beginnings.
func (s *Sample) halve() {
	s.halved++
	requests, blocks := s.requests[:0], s.blocks[:0]
	for r, ids := range s.all {
		if s.keeps(r) {
			requests, blocks = append(requests, *r), append(blocks, ids...)
		}
	}
	s.requests, s.blocks = requests, blocks
}

// all are the requests with their blocks.
func (s *Sample) all(yield func(*request, []int32) bool) {
	from := 0
	for i := range s.requests {
		// A copy: halve writes to where it has read.
		r := s.requests[i]
		if !yield(&r, s.blocks[from:from+r.blocks]) {
			return
		}
		from += r.blocks
	}
}

// Share is that of the beginnings that are kept.
func (s *Sample) Share() float64 { return math.Ldexp(1, -s.halved) }

// Requests is how many are kept.
func (s *Sample) Requests() int { return len(s.requests) }

// hash mixes the name of a block: FNV-1a of its scope, then the finalizer of MurmurHash3.
func (s *Sample) hash(scope string, id int64) uint64 {
	h := 14695981039346656037 ^ s.Seed
	for i := range len(scope) {
		h = (h ^ uint64(scope[i])) * 1099511628211
	}
	h += uint64(id) * 0x9e3779b97f4a7c15
	h = (h ^ h>>33) * 0xff51afd7ed558ccd
	h = (h ^ h>>33) * 0xc4ceb9fe1a85ec53
	return h ^ h>>33
}

// piece is blocks that are asked for together.
type piece struct {
	first  int32 // block
	blocks int32
}

// mostJoined is how many blocks are joined at most: a piece leaves as a whole, so that a cache of
// few pieces finds less than one of their blocks. Of conversations eight changed hits by 0.02
// points, of thirty of Mooncake's traces side by side S3-FIFO's by 0.63, and half of these with
// blocks joined by two by 0.15. So no more than fewJoined are joined while half of the requests
// are still enough; a quarter of 2,000 is wrong by 3.2 points.
const (
	mostJoined     = 8
	fewJoined      = 2
	enoughRequests = 30_000
)

// join makes pieces of the blocks of all requests, of as few blocks as lets no more than MostJoined
// be asked for. What still is too much is left out.
func (s *Sample) join() []piece {
	for {
		begins := s.begins()
		most := mostJoined
		if len(s.requests) >= 2*enoughRequests && s.halved < maxHalved {
			most = fewJoined
		}
		for s.joined = 1; s.joined <= most; s.joined *= 2 {
			pieces := s.pieces(begins)
			if s.MostJoined == 0 || len(pieces) <= s.MostJoined || s.halved == maxHalved &&
				s.joined == mostJoined {
				return pieces
			}
		}
		s.halve()
	}
}

// pieces cuts requests where blocks begin another piece, and where one is as large as it may be.
func (s *Sample) pieces(begins []bool) (pieces []piece) {
	for _, blocks := range s.all {
		for i, b := range blocks {
			if n := len(pieces); i > 0 && !begins[b] && int(pieces[n-1].blocks) < s.joined {
				pieces[n-1].blocks++
				continue
			}
			pieces = append(pieces, piece{b, 1})
		}
	}
	return pieces
}

// begins says of each block whether somebody asks for it without the one before it, for that
// without it, or for it behind another one.
func (s *Sample) begins() []bool {
	const unseen, nobody = -2, -1
	asked, before := make([]int32, len(s.names)), make([]int32, len(s.names))
	begins := make([]bool, len(s.names))
	for b := range before {
		before[b] = unseen
	}
	for _, blocks := range s.all {
		behind := int32(nobody)
		for _, b := range blocks {
			asked[b]++
			if before[b] == unseen {
				before[b] = behind
			}
			begins[b] = begins[b] || before[b] != behind
			behind = b
		}
	}
	for b, behind := range before {
		begins[b] = begins[b] || behind < 0 || asked[behind] != asked[b]
	}
	return begins
}

// leastRecent is the curve of the sample with least recent use.
func (s *Sample) leastRecent(cfg reuse.Config) (reuse.Summary, error) {
	c := reuse.New(cfg)
	row := formats.Row{}
	for r, blocks := range s.all {
		row.Context, row.BlockTokens, row.Blocks = r.context, r.size, row.Blocks[:0]
		for _, b := range blocks {
			row.Blocks = append(row.Blocks, int64(b))
		}
		if err := c.Add(&row, r.at); err != nil {
			return reuse.Summary{}, err
		}
	}
	return c.Summary(), nil
}
