package profile

import (
	"fmt"

	"kvbench/workloads"
)

// RAG describes documents and how they are asked for.
type RAG struct {
	ChunkTokens   int
	MaxChunkBytes int64 // bounds a chunk of a model with large tokens
	TopK          int   // chunks per retrieval
	// MaxDocuments are kept; the oldest leave when more are ingested. 0 = all.
	MaxDocuments int
	// Tokens of a document, by the size of the model.
	SmallModelTokens, LargeModelTokens [2]int
	// Share of the turns that retrieve, and of those that are followed by a query of its own.
	Share   float64
	Uniform bool // every chunk of a document is as likely as another; else the k-th has weight 1/k
}

// DefaultRAG returns the documents of the Python benchmark.
func DefaultRAG() RAG {
	return RAG{ChunkTokens: 512, MaxChunkBytes: 256 << 20, TopK: 5, SmallModelTokens: [2]int{4000, 12000},
		LargeModelTokens: [2]int{1024, 4096}, Share: 0.1}
}

// validate returns the violations.
func (p RAG) validate() []error {
	var problems []error
	bad := func(format string, args ...any) { problems = append(problems, fmt.Errorf("rag: "+format, args...)) }
	for _, r := range [][2]int{p.SmallModelTokens, p.LargeModelTokens} {
		if r[0] < 1 || r[1] < r[0] || r[1] > workloads.MaxTokens {
			bad("document tokens (%d to %d) must rise within 1 to %d", r[0], r[1], workloads.MaxTokens)
		}
	}
	if p.ChunkTokens < 1 || p.ChunkTokens > workloads.MaxTokens {
		bad("chunk size (%d tokens) must be 1 to %d", p.ChunkTokens, workloads.MaxTokens)
	}
	if p.TopK < 1 || p.TopK > MaxTopK {
		bad("top-k (%d chunks) must be 1 to %d", p.TopK, MaxTopK)
	}
	if p.MaxChunkBytes < 0 || p.MaxDocuments < 0 {
		bad("max chunk bytes (%d) and max documents (%d) must not be negative", p.MaxChunkBytes, p.MaxDocuments)
	}
	if !(p.Share >= 0 && p.Share <= 1) {
		bad("request probability (%v) must be 0 to 1", p.Share)
	}
	return problems
}

// MaxTopK bounds the chunks of one retrieval.
const MaxTopK = 1024
