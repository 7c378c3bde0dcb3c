package params

// autoscaling checks what an autoscaler cannot work with.
func (r *resolver) autoscaling() {
	v := r.v
	if !v.Autoscaling || r.refused["enable-autoscaling"] {
		return
	}
	refuse := func(required string) {
		r.violate(byName["enable-autoscaling"], setting{"true", v.Origin("enable-autoscaling")}, required)
	}
	if mode, ok := v.Bench.all["autoscaler-mode"]; ok && mode != v.AutoscalerMode && !r.refused["autoscaler-mode"] {
		r.violate(byName["autoscaler-mode"], v.texts["autoscaler-mode"], mode+" with "+v.Bench.Name+", which is named after it")
	}
	switch {
	case v.Bench.Name != "" && v.Bench.Load != LoadUsers:
		refuse("false with " + v.Bench.Name + ", which has no users")
	case v.RequestRate > 0:
		refuse("false with -request-rate: the rate does not depend on the users")
	case v.MaxRequests > 0:
		refuse("false with -max-requests: the load would end with the requests")
	case v.IOTraceLog != "" && v.SimulateDevice == "":
		refuse("false with -io-trace-log alone: infinitely fast storage has no limit; give -simulate-device")
	}
}
