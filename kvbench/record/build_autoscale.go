package record

import (
	"slices"

	"kvbench/kvbench/result"
)

// autoscalingStats is the timeline of the autoscaler: one entry per round, none without it.
func (b *builder) autoscalingStats() []result.Round {
	return append([]result.Round{}, slices.Clone(b.info.Rounds)...)
}

// autoscalingSummary is nil without an autoscaler.
func (b *builder) autoscalingSummary() *result.AutoscaleSummary {
	if b.info.Autoscale == nil {
		return nil
	}
	return new(*b.info.Autoscale)
}
