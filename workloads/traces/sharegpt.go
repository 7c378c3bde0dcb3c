package traces

import (
	"errors"

	"kvbench/workloads/formats"
)

// ShareGPTConfig is what conversations need beside a TraceConfig, whose Speedup has no meaning for
// them: they have no times.
type ShareGPTConfig struct {
	// Counter counts tokens; nil means NewTokenizer.
	Counter *formats.Tokenizer
	// MaxConversations ends the input after that many in each cycle, 0 = all.
	MaxConversations int64
}

// NewShareGPT returns a load of recorded conversations: JSON lists of {id, conversations: [{from:
// human|gpt, value}]}. Each question followed by an answer is a turn, which reads the entries of
// those before; turns follow each other, conversations overlap. Messages without a known role, and
// questions or answers without their other half, are left out; a conversation without a turn counts
// as failed. Conversations are told apart by their place in the input, not by their id.
func NewShareGPT(cfg Config, more ShareGPTConfig) (*Trace, error) {
	if cfg.Start != 0 {
		return nil, errors.New("ShareGPT conversations have no times, so their replay cannot start at one")
	}
	if cfg.Name == "" {
		cfg.Name = "sharegpt"
	}
	if more.Counter == nil {
		counter, err := formats.NewTokenizer(formats.TokenizerCL100K, 0)
		if err != nil {
			return nil, err
		}
		more.Counter = counter
	}
	cfg.Speedup = 0
	caps := cfg.Profile.ShareGPT
	cfg.maxConversations = more.MaxConversations
	t, err := newTrace(formats.ShareGPT(caps.MaxContext, caps.MaxGenerate, more.Counter), cfg)
	if err != nil {
		return nil, err
	}
	t.report.Tokenizer = more.Counter.Name()
	return t, nil
}
