// Package model computes how many bytes a token takes in the KV cache of a model, and how many of these
// bytes one rank keeps.
//
//	model.go     Model: dimensions, their rules, the built-in models; Sizer: tokens into bytes of
//	             one rank of a tensor-parallel group
//	layers.go    Group: models with different layers; types of numbers with their scales;
//	             FixedBytes: the bytes of a sequence besides its tokens
//	paging.go    Paging: a model with different layers in pages of one size, as in vLLM
//	config.go    Find, ReadConfig: a model by its key or from a Hugging Face config.json
//	kinds.go     the kinds of layers of a config.json, and what a layer of each kind keeps
//	keys.go      the keys of a config.json: unknown keys are refused, missing ones have the class's value
//
// Begin with Model.BytesPerToken. All types are plain data and safe for concurrent use. The package is
// below package workloads and imports nothing of the module.
package model
