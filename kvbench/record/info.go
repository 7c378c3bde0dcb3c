package record

import (
	"time"

	"kvbench/kvbench/result"
	"kvbench/workloads"
	"kvbench/workloads/model"
)

// Info is what the engine knows about one trial beside what the Recorder counted. [Build] turns
// both into a Result and touches nothing else: no clock, no file, no system call.
//
// The engine fills the sections of the Result itself; Build adds the numbers. It makes Status worse
// where the counts ask for it, and adds the rank to the Seed. Of Tiers it takes what a tier is and
// holds, of Harness what the process took, of DeviceWitness what the kernel counted, of Simulation
// the model and the costs. Warnings come first, TraceWarnings beside the trace.
type Info struct {
	result.Result
	TraceWarnings []string

	Window  time.Duration // as measured; 0 = take the Recorder's
	Sizer   model.Sizer
	Profile string // latency, throughput: decides the criteria of storage_health
	QoS     [workloads.NumClasses]workloads.QoS

	// The backlog by class at the window's opening and end, both cumulative since the load's origin
	// as Source.Account returns them, and the second moment on that scale, from which ages are
	// reckoned.
	LoadStart []workloads.ClassLoad
	LoadEnd   []workloads.ClassLoad
	LoadEndAt time.Duration
	Requests  [workloads.NumClasses]RequestCount

	// For how long of the window the storage device had requests, and the simulated one's medium
	// bytes.
	DeviceBusy, MediumBusy time.Duration
}

// RequestCount tells what happened to the requests of one class inside the window, beside those
// that completed.
type RequestCount struct {
	Running        int64         // taken before the window and not complete at its opening
	Started        int64         // taken by a worker inside the window
	Failed         int64         // ended inside the window with a failed operation
	InFlight       int64         // taken and not complete at its end
	OldestInFlight time.Duration // age of the oldest of those, since its arrival
}

// Input is what a recorded source says of its file, as the result keeps it.
func Input(r workloads.TraceReport) *result.Input {
	in := &result.Input{Rows: r.Rows, Failed: r.Failed, Malformed: r.Malformed, Skipped: r.Skipped,
		Cycles: int64(r.Cycles), Tokenizer: r.Tokenizer}
	for _, p := range r.First {
		in.Problems = append(in.Problems, p.Error())
	}
	return in
}
