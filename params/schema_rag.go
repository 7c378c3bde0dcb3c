package params

import "math"

// addRAG adds the keys of documents and retrievals.
func addRAG(add func(name string, kind keyKind, low, high float64, set func(*profileDraft, keyValue))) {
	const big = math.MaxInt32
	add("rag.chunk_size_tokens", keyInt, 1, big, func(d *profileDraft, v keyValue) { d.profile.RAG.ChunkTokens = v.int() })
	add("rag.top_k_chunks", keyInt, 1, 1024, func(d *profileDraft, v keyValue) { d.profile.RAG.TopK = v.int() })
	add("rag.max_chunk_bytes", keyInt, 1, 1<<50, func(d *profileDraft, v keyValue) { d.profile.RAG.MaxChunkBytes = int64(v.numbers[0]) })
	add("rag.max_documents", keyInt, 0, big, func(d *profileDraft, v keyValue) { d.profile.RAG.MaxDocuments = v.int() })
	add("rag.large_model_doc_tokens_min", keyInt, 1, big, func(d *profileDraft, v keyValue) { d.profile.RAG.LargeModelTokens[0] = v.int() })
	add("rag.large_model_doc_tokens_max", keyInt, 1, big, func(d *profileDraft, v keyValue) { d.profile.RAG.LargeModelTokens[1] = v.int() })
	add("rag.small_model_doc_tokens_min", keyInt, 1, big, func(d *profileDraft, v keyValue) { d.profile.RAG.SmallModelTokens[0] = v.int() })
	add("rag.small_model_doc_tokens_max", keyInt, 1, big, func(d *profileDraft, v keyValue) { d.profile.RAG.SmallModelTokens[1] = v.int() })
	add("rag.request_probability", keyNumber, 0, 1, func(d *profileDraft, v keyValue) { d.profile.RAG.Share = v.numbers[0] })
	add("rag.retrieval_distribution", keyText, 0, 0, func(d *profileDraft, v keyValue) { d.profile.RAG.Uniform = v.text == "uniform" })
}
