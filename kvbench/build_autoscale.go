package kvbench

// autoscalingStats is the timeline of the autoscaler: one entry per round, none without it.
func (b *builder) autoscalingStats() []any {
	list := make([]any, len(b.info.Rounds))
	for i, r := range b.info.Rounds {
		list[i] = r
	}
	return list
}

// autoscalingSummary is nil without an autoscaler.
func (b *builder) autoscalingSummary() any {
	if b.info.Autoscale == nil {
		return nil
	}
	return *b.info.Autoscale
}

// autoscaled returns what the autoscaler found, of a result that was just built or read from a file.
func (r *Result) autoscaled() (AutoscaleSummary, bool) {
	switch s := r.Summary.AutoscalingSummary.(type) {
	case AutoscaleSummary:
		return s, true
	case map[string]any:
		number := func(key string) float64 { v, _ := s[key].(float64); return v }
		mode, _ := s["mode"].(string)
		found, _ := s["found"].(bool)
		return AutoscaleSummary{
			Mode: mode, InitialUsers: int(number("initial_users")), FinalUsers: int(number("final_users")),
			SustainedUsers: int(number("sustained_users")), PeakUsers: int(number("peak_users")),
			PeakRate: number("peak_bytes_per_s"), Rounds: int(number("rounds")), Found: found,
		}, mode != ""
	}
	return AutoscaleSummary{}, false
}
