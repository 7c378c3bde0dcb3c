package users

import (
	"math/bits"

	"gonum.org/v1/gonum/mathext/prng"

	"kvbench/workloads"
	"kvbench/workloads/profile"
)

// User is one synthetic user: what it is promised and the upper ends of what its requests draw.
type User struct {
	ID       int
	Template string // name of the template it was made from
	Class    workloads.Class
	// Context and Generate are tokens: a request takes a quarter to all of each.
	Context, Generate int
	Think             float64 // mean seconds between its requests
}

// Population draws n users. The seed is the sum of the run's seed and the rank. The profile must be
// valid.
//
// With cpython the users are those that CPython's Mersenne Twister draws from the seed, one user
// after the other: choice of the template, random for the class, randint, randint, uniform. That
// list defines the closed division, because its few interactive users decide the result. Otherwise
// each user is a function of (seed, user), so that a larger population starts with the smaller one.
func Population(p profile.Profile, seed uint64, n int, cpython bool) []User {
	users := make([]User, n)
	if cpython {
		m := newMersenne(seed)
		for i := range users {
			t := p.Templates[m.below(uint64(len(p.Templates)))]
			users[i] = User{
				ID: i, Template: t.Name, Class: p.Class(m.random()),
				Context:  m.randint(t.Context[0], t.Context[1]),
				Generate: m.randint(t.Generate[0], t.Generate[1]),
				Think:    m.uniform(t.Think[0], t.Think[1]),
			}
		}
		return users
	}
	for i := range users {
		s := profile.NewStream(seed, i)
		t := p.Templates[s.Between(profile.DrawTemplate, 0, 0, len(p.Templates)-1)]
		users[i] = User{
			ID: i, Template: t.Name, Class: p.Class(s.Unit(profile.DrawClass, 0)),
			Context:  s.Between(profile.DrawUserContext, 0, t.Context[0], t.Context[1]),
			Generate: s.Between(profile.DrawUserGenerate, 0, t.Generate[0], t.Generate[1]),
			Think:    s.Uniform(profile.DrawThink, 0, t.Think[0], t.Think[1]),
		}
	}
	return users
}

// mersenne draws what CPython's random.Random draws after random.seed(n) with an integer n. The
// closed division needs it: its population is defined by that generator.
//
// The generator is MT19937 of M. Matsumoto and T. Nishimura (1998). How an integer becomes a state,
// and 32 bits a draw, is that of CPython's Modules/_randommodule.c (random_seed, getrandbits) and
// Lib/random.py (_randbelow, choice, randint, uniform).
type mersenne struct{ *prng.MT19937 }

// newMersenne returns the generator after random.seed(seed).
func newMersenne(seed uint64) mersenne {
	// CPython cuts the absolute value into 32-bit words, least significant first; zero is one word.
	key := []uint32{uint32(seed)}
	if high := uint32(seed >> 32); high != 0 {
		key = append(key, high)
	}
	m := prng.NewMT19937()
	m.SeedFromKeys(key)
	return mersenne{m}
}

// random is random.random(): 53 bits in [0, 1). All steps are exact, so no compiler can round them
// otherwise.
func (m mersenne) random() float64 {
	a, b := m.Uint32()>>5, m.Uint32()>>6
	return (float64(a)*67108864 + float64(b)) * (1.0 / 9007199254740992)
}

// getrandbits is random.getrandbits(k) for 1 <= k <= 64.
func (m mersenne) getrandbits(k int) uint64 {
	if k <= 32 {
		return uint64(m.Uint32() >> (32 - k))
	}
	low := uint64(m.Uint32())
	return low | uint64(m.Uint32()>>(64-k))<<32
}

// below is random._randbelow(n) for n >= 1: it rejects instead of taking a remainder.
func (m mersenne) below(n uint64) uint64 {
	k := bits.Len64(n)
	for {
		if r := m.getrandbits(k); r < n {
			return r
		}
	}
}

// randint is random.randint(low, high), both inclusive.
func (m mersenne) randint(low, high int) int {
	return low + int(m.below(uint64(high-low)+1))
}

// uniform is random.uniform(low, high). The conversion forbids the fused multiply-add that some
// processors would use, which rounds once where CPython rounds twice.
func (m mersenne) uniform(low, high float64) float64 {
	return low + float64((high-low)*m.random())
}
