package workloads

import "math/bits"

// mersenne draws what CPython's random.Random draws after random.seed(n) with an integer n. The closed division needs it:
// its population is defined by that generator.
//
// The generator is MT19937 of M. Matsumoto and T. Nishimura (1998). How an integer becomes a state, and a state a draw, is
// that of CPython's Modules/_randommodule.c (random_seed, genrand_uint32, getrandbits) and Lib/random.py (_randbelow,
// choice, randint, uniform).
type mersenne struct {
	state [624]uint32
	next  int
}

const (
	mtN      = 624
	mtM      = 397
	mtMatrix = 0x9908b0df
	mtUpper  = 0x80000000
	mtLower  = 0x7fffffff
)

// newMersenne returns the generator after random.seed(seed).
func newMersenne(seed uint64) *mersenne {
	// CPython cuts the absolute value into 32-bit words, least significant first; zero is one word.
	key := []uint32{uint32(seed)}
	if high := uint32(seed >> 32); high != 0 {
		key = append(key, high)
	}
	m := new(mersenne)
	m.initByArray(key)
	return m
}

func (m *mersenne) initGenrand(s uint32) {
	m.state[0] = s
	for i := 1; i < mtN; i++ {
		prev := m.state[i-1]
		m.state[i] = 1812433253*(prev^prev>>30) + uint32(i)
	}
	m.next = mtN
}

func (m *mersenne) initByArray(key []uint32) {
	m.initGenrand(19650218)
	i, j := 1, 0
	for range max(mtN, len(key)) {
		prev := m.state[i-1]
		m.state[i] = (m.state[i] ^ (prev^prev>>30)*1664525) + key[j] + uint32(j)
		i, j = i+1, j+1
		if i == mtN {
			m.state[0] = m.state[mtN-1]
			i = 1
		}
		if j == len(key) {
			j = 0
		}
	}
	for range mtN - 1 {
		prev := m.state[i-1]
		m.state[i] = (m.state[i] ^ (prev^prev>>30)*1566083941) - uint32(i)
		i++
		if i == mtN {
			m.state[0] = m.state[mtN-1]
			i = 1
		}
	}
	m.state[0] = 0x80000000
}

// uint32 returns the next 32 bits.
func (m *mersenne) uint32() uint32 {
	if m.next >= mtN {
		for k := range mtN {
			y := m.state[k]&mtUpper | m.state[(k+1)%mtN]&mtLower
			m.state[k] = m.state[(k+mtM)%mtN] ^ y>>1 ^ (y&1)*mtMatrix
		}
		m.next = 0
	}
	y := m.state[m.next]
	m.next++
	y ^= y >> 11
	y ^= y << 7 & 0x9d2c5680
	y ^= y << 15 & 0xefc60000
	return y ^ y>>18
}

// random is random.random(): 53 bits in [0, 1). All steps are exact, so no compiler can round them otherwise.
func (m *mersenne) random() float64 {
	a, b := m.uint32()>>5, m.uint32()>>6
	return (float64(a)*67108864 + float64(b)) * (1.0 / 9007199254740992)
}

// getrandbits is random.getrandbits(k) for 1 <= k <= 64.
func (m *mersenne) getrandbits(k int) uint64 {
	if k <= 32 {
		return uint64(m.uint32() >> (32 - k))
	}
	low := uint64(m.uint32())
	return low | uint64(m.uint32()>>(64-k))<<32
}

// below is random._randbelow(n) for n >= 1: it rejects instead of taking a remainder.
func (m *mersenne) below(n uint64) uint64 {
	k := bits.Len64(n)
	for {
		if r := m.getrandbits(k); r < n {
			return r
		}
	}
}

// randint is random.randint(low, high), both inclusive.
func (m *mersenne) randint(low, high int) int {
	return low + int(m.below(uint64(high-low)+1))
}

// uniform is random.uniform(low, high). The conversion forbids the fused multiply-add that some processors would use, which
// rounds once where CPython rounds twice.
func (m *mersenne) uniform(low, high float64) float64 {
	return low + float64((high-low)*m.random())
}
