package buffer

// Use is what decides how many buffers a run needs.
type Use struct {
	Workers    int // operations at a time
	MaxWriters int // of these that write, 0 = all
	Depth      int // chunks in flight per operation
	Chunk      int // bytes of a buffer
}

// maxPool bounds the buffers of one run: past it, more operations in flight do
// not make any device faster, and memory would grow with the workers.
const maxPool = 1 << 30

// Buffers is how many buffers the workers can use at once (every operation holds
// Depth of them, a write one more for the chunk that is being generated), and how
// many they get.
func (u Use) Buffers() (want, got int) {
	writers := u.Workers
	if u.MaxWriters > 0 {
		writers = min(writers, u.MaxWriters)
	}
	want = writers*(u.Depth+1) + (u.Workers-writers)*u.Depth
	got = min(want, max(maxPool/u.Chunk, 2*(u.Depth+1)))
	return want, got
}

// Bytes is what the buffers take.
func (u Use) Bytes() int64 {
	_, got := u.Buffers()
	return int64(got) * int64(u.Chunk)
}
