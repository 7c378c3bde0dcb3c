package users

import (
	"math/bits"

	"gonum.org/v1/gonum/mathext/prng"

	"kvbench/workloads"
)

// User is one synthetic user: its class, and the upper ends of the ranges from which its requests draw.
type User struct {
	ID       int
	Template string // name of its template
	Class    workloads.Class
	// Context and Generate are in tokens. A request draws a quarter to all of each.
	Context, Generate int
	Think             float64 // mean seconds between its requests
}

// Population draws n users. The seed is the sum of the run's seed and the rank. The profile must be
// valid.
//
// With cpython the users are the ones that CPython's Mersenne Twister draws from the seed, one user
// after the other: choice for the template, random for the class, randint, randint, uniform. The closed
// division requires these users, because the few interactive users decide the result. Otherwise each
// user is a function of (seed, user), so that a larger population starts with the smaller one.
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

// draws returns the draws that define a user: draws of a Stream, or the next draws of CPython.
type draws interface {
	Between(d Draw, n int64, low, high int) int
	Unit(d Draw, n int64) float64
	Uniform(d Draw, n int64, low, high float64) float64
}

// mersenne returns the draws of CPython's random.Random after random.seed(n) with an integer n. The
// closed division needs them, because this generator defines its population.
//
// The generator is MT19937 of M. Matsumoto and T. Nishimura (1998). The conversion of an integer to a
// state, and of 32 bits to a draw, is as in CPython's Modules/_randommodule.c (random_seed,
// getrandbits) and Lib/random.py (_randbelow, choice, randint, uniform).
type mersenne struct{ *prng.MT19937 }

// newMersenne returns the generator after random.seed(seed).
func newMersenne(seed uint64) mersenne {
	// CPython splits the absolute value into 32-bit words, least significant first. Zero is one word.
	key := []uint32{uint32(seed)}
	if high := uint32(seed >> 32); high != 0 {
		key = append(key, high)
	}
	m := prng.NewMT19937()
	m.SeedFromKeys(key)
	return mersenne{m}
}

// Unit is random.random(): 53 bits in [0, 1). All steps are exact, so the result is the same with every
// compiler.
func (m mersenne) Unit(Draw, int64) float64 {
	a, b := m.Uint32()>>5, m.Uint32()>>6
	return (float64(a)*67108864 + float64(b)) * (1.0 / 9007199254740992)
}

// Between is random.randint(low, high), both inclusive, for less than 2^32 numbers. It rejects draws
// instead of taking a remainder. random.choice draws its index the same way.
func (m mersenne) Between(_ Draw, _ int64, low, high int) int {
	n := high - low + 1
	for {
		if r := int(m.Uint32() >> (32 - bits.Len(uint(n)))); r < n {
			return low + r
		}
	}
}

// Uniform is random.uniform(low, high). The conversion prevents the fused multiply-add of some
// processors, which rounds once where CPython rounds twice.
func (m mersenne) Uniform(d Draw, n int64, low, high float64) float64 {
	return low + float64((high-low)*m.Unit(d, n))
}
