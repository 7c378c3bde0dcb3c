package kvbench

import "slices"

// autoscalingStats is the timeline of the autoscaler: one entry per round, none without it.
func (b *builder) autoscalingStats() []Round {
	return append([]Round{}, slices.Clone(b.info.Rounds)...)
}

// autoscalingSummary is nil without an autoscaler.
func (b *builder) autoscalingSummary() *AutoscaleSummary {
	if b.info.Autoscale == nil {
		return nil
	}
	return new(*b.info.Autoscale)
}
