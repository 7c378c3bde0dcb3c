package users

import (
	"math/bits"

	"gonum.org/v1/gonum/mathext/prng"
)

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
