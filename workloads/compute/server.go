package compute

import (
	"sync"
	"time"
)

// Server is the time of the one server that all requests share: it computes one prompt after
// another, in the order in which they were loaded.
//
// It has to be one. A published rate is that of a whole server that has always enough to do, with
// all its GPUs; would each request have the rate for itself, two hundred workers were two hundred
// servers, a miss cost a busy server nothing, and a small cache would look nearly as good as a
// large one. Engines that mix chunks of several prompts in a batch end the earlier ones later and
// none earlier, so that the order is the best case. Token generation takes no time of it.
//
// It is safe for concurrent use.
type Server struct {
	mu    sync.Mutex
	free  time.Duration // on the clock: when everything asked for so far is computed
	asked time.Duration // all of that
}

// Reserve asks for computing of that length and says how long it will not begin, and how much of it
// was done before now, because layers of the prompt had come at those times, in that order. Time is
// promised once, also that which is over: a prompt whose last layer came earlier goes first, even
// where the server was idle for a moment between that one's layers.
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
	s.free, s.asked = end, s.asked+length
	return begin - now, begin + length - end
}

// Busy is for how long it computed until now.
func (s *Server) Busy(now time.Duration) time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	return max(0, s.asked-max(0, s.free-now))
}

// pipelined is when the last layer of a prompt is computed, on the clock by which they came: each
// of them takes an equal part of length, and begins when it is there, the one before it is
// computed, and not before from. So what comes early is computed while the rest is loaded:
// end(i) = max(end(i-1), came(i)) + length ÷ n.
func pipelined(from, length time.Duration, came []time.Duration) (end time.Duration) {
	end = from
	n := time.Duration(len(came))
	for i, at := range came {
		part := length / n
		if i == len(came)-1 { // what is left of the division
			part = length - part*(n-1)
		}
		end = max(end, at) + part
	}
	return end
}
