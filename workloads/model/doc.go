// Package model says how many bytes a token leaves in the KV cache of a model, and how many of them
// one rank keeps.
//
//	model.go     Model: the dimensions that decide it, their rules, the built-in models; Sizer:
//	             tokens into bytes of one rank of a tensor-parallel group
//	layers.go    Group: models whose layers do not all keep the same; types of numbers with their
//	             scales; FixedBytes: what a sequence keeps besides its tokens
//	paging.go    Paging: such a model in pages of one size, as vLLM keeps it: blocks and groups
//	config.go    Find, ReadConfig: a model by its key or from a Hugging Face config.json
//	kinds.go     which layers of a config.json keep what: the names of kinds, what each keeps
//	keys.go      keys that are neither read nor known to change nothing, which are refused
//
// Begin with Model.BytesPerToken. Everything is plain data and safe for concurrent use. It stands
// below package workloads and imports nothing of the module.
package model
