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
}

// Reserve reserves length of the server's time for a prompt. came are the times at which the layers of
// the prompt were loaded, in order. wait is the time until the server is free. done is the part of
// length that the server computed before now, while later layers were loaded. Reserve also reserves
// time in the past, each time only once: a prompt whose last layer came earlier goes first, even if the
// server was idle between the layers of that prompt.
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
