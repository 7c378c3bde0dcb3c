package compute

import (
	"sync"
	"time"
)

// Server is the time of the one server that all requests share: it computes one prompt after another, in the
// order in which they were loaded.
//
// All requests share it because a published rate is the rate of a whole server, with all its GPUs, that has
// always enough to do. With a rate for each request, two hundred workers would be two hundred servers, a miss
// would cost a busy server nothing, and a small cache would look nearly as good as a large one. Engines that
// mix chunks of several prompts in a batch end the earlier prompts later and none earlier, so the order is the
// best case. Token generation takes no time of the server.
//
// It is safe for concurrent use.
type Server struct {
	mu       sync.Mutex
	free     time.Duration // on the clock: when everything that was reserved is computed
	reserved time.Duration // sum of all lengths
}

// Reserve reserves computing of that length. It returns how long the computing will not begin, and how much of
// it was done before now, because layers of the prompt had come at those times, in that order. Time is reserved
// once, also time in the past: a prompt whose last layer came earlier goes first, even where the server was
// idle for a moment between the layers of that prompt.
func (s *Server) Reserve(now, length time.Duration, came []time.Duration) (wait,
	done time.Duration) {
	if length == 0 {
		return 0, 0
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	begin := max(now, s.free)
	end := begin + length
	if len(came) > 0 {
		end = pipelined(s.free, length, came)
	}
	s.free, s.reserved = end, s.reserved+length
	return begin - now, begin + length - end
}

// Busy returns how long the server computed until now.
func (s *Server) Busy(now time.Duration) time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	return max(0, s.reserved-max(0, s.free-now))
}

// pipelined returns when the last layer of a prompt is computed, on the clock by which the layers came. Each
// layer takes an equal part of length. It begins when it has come and the layer before it is computed, and not
// before from. So early layers are computed while the rest is loaded:
// end(i) = max(end(i-1), came(i)) + length ÷ n.
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
