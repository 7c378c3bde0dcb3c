package workloads

// TPRule says what one rank of a tensor-parallel group keeps of an entry.
type TPRule string

const (
	// TPEngine is what inference engines do: KV heads are spread over the ranks as far as they go (a head is never split,
	// so 1/min(TP, kv_heads) remains), and the latents of MLA are replicated.
	TPEngine TPRule = "engine"
	// TPMLPerf divides every entry by TP, as MLPerf Storage's KV-cache program does.
	TPMLPerf TPRule = "mlperf"
)

// Sizer turns token counts into bytes of one rank. The zero Sizer makes everything 0 bytes.
type Sizer struct {
	BytesPerToken int64 // all ranks
	Divisor       int64 // 0 and 1 mean: not divided
}

// NewSizer returns the Sizer of a valid model at tensor parallelism tp (below 1 counts as 1).
func NewSizer(m Model, tp int, rule TPRule) Sizer {
	divisor := max(1, tp)
	if rule != TPMLPerf {
		if m.Attention == MLA {
			divisor = 1
		} else {
			divisor = min(divisor, max(1, m.KVHeads))
		}
	}
	return Sizer{BytesPerToken: m.BytesPerToken(), Divisor: int64(divisor)}
}

// Bytes returns the size of an entry of that many tokens, rounded up to a whole byte.
func (s Sizer) Bytes(tokens int) int64 {
	divisor := max(1, s.Divisor)
	return (int64(tokens)*s.BytesPerToken + divisor - 1) / divisor
}
