package compute

import (
	"sync"
	"time"
)

// Server is the time of the one server that all requests share. It computes one prompt after another,
// in the order in which they were loaded.
//
// All requests share one server because a published rate is the rate of a whole server, with all its
// GPUs, that always has enough to do. With a rate for each request, two hundred workers would be two
// hundred servers: a miss would cost a busy server nothing, and a small cache would look nearly as good
// as a large one. The order is the best case: an engine that mixes chunks of several prompts in a batch
// completes the earlier prompts later, and completes none earlier. Token generation takes no time of
// the server.
//
// Server is safe for concurrent use.
type Server struct {
	mu       sync.Mutex
	free     time.Duration // time at which everything that was reserved is computed
	reserved time.Duration // sum of all reserved lengths
	saved    time.Duration // time to compute what all prompts had found
	prompts  int64
}

// Reserve reserves length of the server's time for a prompt that takes whole if nothing is found. came are
// the times at which the layers of the prompt were loaded, in order. wait is the time until the server is
// free. done is the part of length that the server computed before now, while later layers were loaded.
// Reserve also reserves time in the past, each time only once: a prompt whose last layer came earlier goes
// first, even if the server was idle between the layers of that prompt.
func (s *Server) Reserve(now, length, whole time.Duration, came []time.Duration) (wait,
	done time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if whole > 0 {
		s.prompts, s.saved = s.prompts+1, s.saved+whole-length
	}
	if length == 0 {
		return 0, 0
	}
	begin := max(now, s.free)
	end := begin + length
	if len(came) > 0 {
		end = pipelined(s.free, length, came)
	}
	s.free, s.reserved = end, s.reserved+length
	return begin - now, begin + length - end
}

// Work is what a server did until a moment.
type Work struct {
	Prompts int64         // that were loaded, and computed or not
	Busy    time.Duration // time in which it computed
	All     time.Duration // Busy, and the time to compute what these prompts had found
}

// Work returns what the server did until now.
func (s *Server) Work(now time.Duration) Work {
	s.mu.Lock()
	defer s.mu.Unlock()
	busy := max(0, s.reserved-max(0, s.free-now))
	return Work{s.prompts, busy, busy + s.saved}
}

// Since returns the work after an earlier moment.
func (w Work) Since(before Work) Work {
	return Work{w.Prompts - before.Prompts, w.Busy - before.Busy, w.All - before.All}
}

// pipelined returns the time at which the last layer of a prompt is computed. came are the times at
// which the layers were loaded. Each layer takes an equal part of length. It starts after from, after
// its loading, and after the layer before it. So the server computes early layers while the rest is
// loaded: end(i) = max(end(i-1), came(i)) + length ÷ n.
func pipelined(from, length time.Duration, came []time.Duration) (end time.Duration) {
	end = from
	n := time.Duration(len(came))
	for i, at := range came {
		part := length / n
		if i == len(came)-1 { // the remainder of the division
			part = length - part*(n-1)
		}
		end = max(end, at) + part
	}
	return end
}
