package users

import (
	"math"
	"math/bits"
)

// Draws are stateless: the n-th draw of a user for a purpose is a hash of (seed, user, purpose, n). So
// draws do not depend on each other, on timing or on the number of cores. Any request can be made again
// without the requests before it.
//
// A stream is SplitMix64 (G. Steele, D. Lea, C. Flood, "Fast Splittable Pseudorandom Number
// Generators", OOPSLA 2014). The n-th output is the finaliser of key + n times the golden gamma, which
// can be computed directly for any n. The finaliser's constants are David Stafford's variant 13, as in
// Java's SplittableRandom. It passes BigCrush.

// Draw is the purpose of a draw. The numbers affect what a seed draws: append, never reorder.
type Draw uint64

// The purposes: of a user, of its n-th request, of documents.
const (
	DrawTemplate Draw = iota + 1
	DrawClass
	DrawUserContext
	DrawUserGenerate
	DrawThink
	DrawContext
	DrawGenerate
	DrawGap // think-time jitter, or the gap of a Poisson arrival
	DrawNewConversation
	DrawPromptUse
	DrawPromptWhich
	DrawPopulation
	DrawDocumentTokens
	DrawRetrieve
	DrawDocument
	DrawChunk
	DrawQuery
	DrawQueryDocument
	DrawQueryChunk
	DrawQueryTokens
	DrawObject  // in plain I/O: the object to read, and the offset
	DrawSession // start of one of the first sessions
	DrawPause   // pause between a session and the next
	DrawScript  // everything in a session, in order
	DrawTalk    // the next conversation of a file without times
)

const golden = 0x9e3779b97f4a7c15 // 2^64 divided by the golden ratio, odd

// mix64 is the finaliser of SplitMix64.
func mix64(z uint64) uint64 {
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}

// Stream is the key of all draws of one user.
type Stream uint64

// NewStream returns the stream of a user. seed is the sum of the run's seed and the rank.
func NewStream(seed uint64, user int) Stream {
	return Stream(mix64(mix64(seed+golden) ^ mix64(uint64(user)*golden+1)))
}

// bits returns the n-th draw for a purpose.
func (u Stream) bits(d Draw, n int64) uint64 {
	key := mix64(uint64(u) ^ mix64(uint64(d)*golden))
	return mix64(key + uint64(n+1)*golden)
}

// Unit returns the n-th draw as a number in [0, 1).
func (u Stream) Unit(d Draw, n int64) float64 {
	return float64(u.bits(d, n)>>11) * 0x1p-53
}

// Between returns the n-th draw as an integer in [low, high]. It takes the upper half of the product
// (D. Lemire, 2019) without rejection. The bias is below span / 2^64, which is too small to matter.
func (u Stream) Between(d Draw, n int64, low, high int) int {
	upper, _ := bits.Mul64(u.bits(d, n), uint64(high-low)+1)
	return low + int(upper)
}

// Uniform returns the n-th draw as a number in [low, high). The conversion prevents a fused
// multiply-add: see mersenne.Uniform.
func (u Stream) Uniform(d Draw, n int64, low, high float64) float64 {
	return low + float64((high-low)*u.Unit(d, n))
}

// LogBetween returns the n-th draw as an integer in [low, high]. Each doubling is equally likely. A low
// of 0 counts as 0.5.
func (u Stream) LogBetween(d Draw, n int64, low, high int) int {
	from, to := math.Log(max(0.5, float64(low))), math.Log(float64(high)+1)
	return min(high, int(math.Exp(from+float64((to-from)*u.Unit(d, n)))))
}

// Exponential returns the n-th draw of an exponential distribution with the given mean.
func (u Stream) Exponential(d Draw, n int64, mean float64) float64 {
	return -mean * math.Log1p(-u.Unit(d, n))
}

// OwnTokens returns the length of the entry that a request writes, in tokens: its context without the
// prefix, at least 1. The prefix has its own entry.
func OwnTokens(context, prefix int) int { return max(1, context-prefix) }
