package users

import (
	"math/bits"

	"gonum.org/v1/gonum/mathext/prng"

	"kvbench/workloads"
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
func Population(p Profile, seed uint64, n int, cpython bool) []User {
	users, twister := make([]User, n), newMersenne(seed)
	for i := range users {
		var d draws = twister
		if !cpython {
			d = NewStream(seed, i)
		}
		t := p.Templates[d.Between(DrawTemplate, 0, 0, len(p.Templates)-1)]
		users[i] = User{
			ID: i, Template: t.Name, Class: p.Class(d.Unit(DrawClass, 0)),
			Context:  d.Between(DrawUserContext, 0, t.Context[0], t.Context[1]),
			Generate: d.Between(DrawUserGenerate, 0, t.Generate[0], t.Generate[1]),
			Think:    d.Uniform(DrawThink, 0, t.Think[0], t.Think[1]),
		}
	}
	return users
}

// draws decide what a user is: draws of a Stream, or the next ones of CPython.
type draws interface {
	Between(d Draw, n int64, low, high int) int
	Unit(d Draw, n int64) float64
	Uniform(d Draw, n int64, low, high float64) float64
}

// mersenne draws what CPython's random.Random draws after random.seed(n) with an integer n. The
// closed division needs it: its population is defined by that generator.
//
// The generator is MT19937 of M. Matsumoto and T. Nishimura (1998). How an integer becomes a state,
// and 32 bits a draw, is as in CPython's Modules/_randommodule.c (random_seed, getrandbits) and
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

// Unit is random.random(): 53 bits in [0, 1). All steps are exact, so no compiler can round them
// otherwise.
func (m mersenne) Unit(Draw, int64) float64 {
	a, b := m.Uint32()>>5, m.Uint32()>>6
	return (float64(a)*67108864 + float64(b)) * (1.0 / 9007199254740992)
}

// Between is random.randint(low, high), both inclusive, of less than 2^32 numbers: it rejects
// instead of taking a remainder. choice draws an index with it.
func (m mersenne) Between(_ Draw, _ int64, low, high int) int {
	n := high - low + 1
	for {
		if r := int(m.Uint32() >> (32 - bits.Len(uint(n)))); r < n {
			return low + r
		}
	}
}

// Uniform is random.uniform(low, high). The conversion forbids the fused multiply-add that some
// processors would use, which rounds once where CPython rounds twice.
func (m mersenne) Uniform(d Draw, n int64, low, high float64) float64 {
	return low + float64((high-low)*m.Unit(d, n))
}
