package result

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/google/renameio/v2"

	"kvbench/kvbench/units"
)

// SchemaVersion is the schema version of written results. Within a major version keys may be added,
// but no key is removed or changes its meaning. Readers accept this major version and the previous
// one.
const SchemaVersion = "3.0"

// LineFormat is the value of kvbench-format in benchmark text. Within a format, units keep their
// names and meanings.
const LineFormat = "2"

// ClosedNotice is the notice in every output of the closed division.
const ClosedNotice = "MLPerf Storage v3.0 parameters, not an MLPerf result"

// RehearsalNotice replaces ClosedNotice if the windows were short.
const RehearsalNotice = "REHEARSAL of the closed division with short windows: not to be submitted"

// Result is the result of one trial. JSON file, summary, benchmark metrics, workbook and reports
// are views of this struct. A value that is unknown or does not apply is null, never 0. The tag
// merge of a field is the rule by which package merge merges the values of several ranks. The tags
// ratio and rate are how the field follows from others: see Derive.
type Result struct {
	SchemaVersion string `json:"schema_version" merge:"same"`
	Notice        string `json:"notice,omitempty" merge:"same"` // ClosedNotice, or RehearsalNotice
	Status        string `json:"status" merge:"-"`
	EndedBy       string `json:"ended_by" merge:"same"`
	Error         string `json:"error,omitempty" merge:"-"`
	Benchmark     string `json:"benchmark" merge:"same"`
	// with the keys of the sub-benchmark, such as Tier/tier=cpu/op=read/size=1MiB
	Name     string `json:"name,omitempty" merge:"same"`
	RunName  string `json:"run_name,omitempty" merge:"same"` // of -name, absent without
	Option   *int   `json:"option" merge:"same"`
	Division string `json:"division" merge:"same"`
	Trial    int    `json:"trial" merge:"same"`
	Count    int    `json:"count" merge:"max"`
	Rank     int    `json:"rank" merge:"min"`
	Ranks    int    `json:"ranks" merge:"max"`
	// in a merged result: the ranks whose numbers are in it
	MergedRanks []int `json:"merged_ranks,omitempty" merge:"-"`
	// in a merged result, if a client coordinated the trial
	Clients *Clients `json:"clients,omitempty" merge:"drop"`
	// wall clock of the client's host minus wall clock of the coordinator's host; null: not
	// compared
	ClockOffsetNS *int64 `json:"clock_offset_ns,omitempty" merge:"drop"`
	Nonce         string `json:"nonce" merge:"same"`
	Seed          uint64 `json:"seed" merge:"min"` // base seed + rank
	// Digest is a hash of all requests until the end of the window, also those before the window,
	// and of their hits. It does not depend on their order. Two runs with the same requests,
	// lookups and hits have the same digest. That requires a load that does not depend on the speed
	// of the storage, such as a fixed number of requests of one worker without think times. Absent
	// without requests.
	Digest string `json:"digest,omitempty" merge:"same"`

	// unit of the counts: request, or operation in benchmarks without requests
	CompletionUnit string `json:"completion_unit" merge:"same"`

	StartTime       string `json:"start_time" merge:"-"` // start of the window, RFC 3339, UTC
	WindowNS        int64  `json:"window_ns" merge:"max"`
	NominalWindowNS *int64 `json:"nominal_window_ns" merge:"same"`
	ElapsedNS       int64  `json:"elapsed_ns" merge:"max"` // from set-up to this result, before clean-up
	DrainNS         int64  `json:"drain_ns" merge:"max"`
	WarmupNS        int64  `json:"warmup_ns" merge:"max"`
	SettleNS        int64  `json:"settle_ns" merge:"max"`
	// pause that the run made between another MLPerf option and this one, in closed; absent: none
	OptionPauseNS *int64 `json:"option_pause_ns,omitempty" merge:"max"`

	Model             Model        `json:"model" merge:"same"`
	Workload          Workload     `json:"workload"`
	IO                IO           `json:"io"`
	Parameters        []Parameter  `json:"parameters" merge:"-"`
	DiffersFromClosed []Difference `json:"differs_from_closed" merge:"list"`
	Environment       Environment  `json:"environment"`
	Limits            Limits       `json:"limits"`

	Requests    RequestTotals           `json:"requests"`
	Moved       Moved                   `json:"moved"`
	Load        map[string]ClassOutcome `json:"load"` // by class, and "total"; {}: unknown at the end, or no requests
	Lookups     Lookups                 `json:"lookups"`
	Prompt      *Prompt                 `json:"prompt"`      // null: no requests
	BlockCache  *BlockCache             `json:"block_cache"` // of block traces and engines' objects
	Tiers       []Tier                  `json:"tiers" merge:"key=Level"`
	Policy      *Policy                 `json:"policy,omitempty"` // of runs with requests
	FirstReads  ReadKind                `json:"first_reads"`
	ReReads     ReadKind                `json:"re_reads"`
	EntrySizes  EntrySizes              `json:"entry_sizes" merge:"-"`
	Latency     Latency                 `json:"latency" merge:"-"`
	ContextLoad []ContextLoad           `json:"context_load" merge:"key=Tokens"`
	FirstToken  *FirstToken             `json:"first_token"` // null: misses cost no time

	Harness        Harness        `json:"harness"`
	Stalls         *Stalls        `json:"stalls" merge:"any"`         // null: none
	Pauses         []Pause        `json:"pauses,omitempty" merge:"-"` // of 1 s and longer
	DeviceCounters DeviceCounters `json:"device_witness"`
	Cards          []Card         `json:"cards,omitempty" merge:"list"` // of -gpu-backend cuda
	Ceiling        *Ceiling       `json:"ceiling" merge:"drop"`
	CeilingRatio   *float64       `json:"ceiling_ratio" merge:"drop" line:"ceiling-ratio"`
	Precondition   *Precondition  `json:"precondition"`
	Input          *Input         `json:"input"`
	TraceFiles     *TraceFiles    `json:"trace_files,omitempty" merge:"same"`  // of recorded loads
	Simulation     *Simulation    `json:"simulation,omitempty"`                // absent: a real run
	Replay         *Replay        `json:"replay,omitempty"`                    // of an I/O trace
	PlainIO        *PlainIO       `json:"plain_io,omitempty"`                  // of benchmarks without requests
	Removal        *Removal       `json:"removal,omitempty"`                   // of removal benchmarks
	Objects        *Objects       `json:"objects,omitempty"`                   // of an object store
	Endpoints      []Endpoint     `json:"endpoints,omitempty" merge:"key=URL"` // of an object store
	Network        *Network       `json:"network,omitempty"`                   // of an object store
	Checkpoint     *Checkpoint    `json:"checkpoint,omitempty" merge:"-"`
	Autoscaler     *Autoscaler    `json:"autoscaler,omitempty" merge:"drop"`
	Recording      *Recording     `json:"recording,omitempty" merge:"drop"` // of -validation-trace

	Errors       []ErrorCount  `json:"errors" merge:"key=Tier,Operation,Errno"`
	ErrorSamples []ErrorSample `json:"error_samples" merge:"list"`
	Warnings     []string      `json:"warnings" merge:"-"`

	// DeviceLatencyTracing is the kernel's trace, a tracing.Trace. Its keys are defined in package
	// tracing.
	DeviceLatencyTracing json.RawMessage `json:"device_latency_tracing,omitempty" merge:"drop"`
	// a fio job with the same load, for another device
	FioWorkload string `json:"fio_workload,omitempty" merge:"drop"`

	Timeline   *Timeline                `json:"timeline" merge:"-"`
	Histograms map[string]HistogramData `json:"histograms" merge:"-"`
}

// BenchmarkEngines is the benchmark that ranks engines by found-tok/s.
const BenchmarkEngines = "Engines"

// BenchmarkTrace is the benchmark of a result from a kernel trace alone. It has a window and the
// trace, but no numbers of a workload.
const BenchmarkTrace = "Trace"

// Divisions.
const (
	DivisionQuick  = "quick"
	DivisionOpen   = "open"
	DivisionClosed = "closed"
)

// Statuses of a result.
const (
	StatusComplete   = "complete"
	StatusIncomplete = "incomplete"
	StatusFailed     = "failed"
)

// Reasons why a window ended.
const (
	EndedByDeadline    = "deadline"
	EndedByCount       = "count"
	EndedByMaxRequests = "max_requests"
	EndedByInput       = "input"
	EndedByCapacity    = "capacity"
	EndedByFootprint   = "footprint" // plain writes filled their capacity; more writes need removals
	EndedBySignal      = "signal"
	EndedByError       = "error"
)

// Definitions of the device time of a write, as IO.WriteDevice names them.
const (
	WriteDeviceTransfer = "transfer+flush" // from the first chunk to the end of the flush
	WriteDeviceRequest  = "transfer"       // of one request, without a flush
	WriteDeviceFlush    = "flush"          // only the flush, as in the Python benchmark
)

// Units of completion.
const (
	UnitRequest   = "request"
	UnitOperation = "operation"
)

// ErrSchema is wrapped by the error of Parse for a file with an unsupported schema.
var ErrSchema = errors.New("unsupported result schema")

// Encode returns the result as indented JSON with a newline at the end.
func (r *Result) Encode() ([]byte, error) {
	data, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("encode result: %w", err)
	}
	return append(data, '\n'), nil
}

// file returns the result's file. With -results-format python, complete results have the keys of EncodePython:
// the scripts of the Python benchmark know no status and no simulation. They would count a merged result, too,
// after its ranks.
func (r *Result) file() ([]byte, error) {
	if r.Parameter("results-format") == "python" && r.Status == StatusComplete &&
		r.CompletionUnit == UnitRequest && r.MergedRanks == nil && r.Simulation == nil {
		return r.EncodePython()
	}
	return r.Encode()
}

// WriteJSON writes the result to path. It writes and syncs a temporary file in the same directory
// and renames it, so path has a complete result or is unchanged. The directory must exist.
func (r *Result) WriteJSON(path string) error {
	data, err := r.file()
	if err != nil {
		return fmt.Errorf("for %s: %w", path, err)
	}
	dir := filepath.Dir(path)
	if err := renameio.WriteFile(path, data, 0o644, renameio.WithTempDir(dir),
		renameio.WithStaticPermissions(0o644)); err != nil {
		return fmt.Errorf("write result %s: %w; choose a writable -results-dir", path, err)
	}
	// Sync the directory to make the rename durable. Some filesystems do not support that, so
	// ignore errors.
	if d, err := os.Open(dir); err == nil {
		_ = d.Sync()
		_ = d.Close()
	}
	return nil
}

// Parse reads a result of schema 3.x or 2.x. It ignores unknown keys. For another schema, or none,
// it returns an error that wraps ErrSchema.
func Parse(data []byte) (*Result, error) {
	var head struct {
		SchemaVersion string `json:"schema_version"`
	}
	if err := json.Unmarshal(data, &head); err != nil {
		return nil, err
	}
	if err := CheckSchema(head.SchemaVersion); err != nil {
		return nil, err
	}
	r := &Result{}
	if err := json.Unmarshal(data, r); err != nil || !strings.HasPrefix(head.SchemaVersion, "2") {
		return r, err
	}
	return upgraded(data)
}

// CheckSchema returns an error that wraps ErrSchema if version is not 2.x or 3.x. In other versions
// units and keys have other meanings.
func CheckSchema(version string) error {
	switch schema, _, _ := strings.Cut(version, "."); schema {
	case "2", "3":
		return nil
	case "1":
		return fmt.Errorf("%w: schema 1 is of an older kvbench; read it with the release that "+
			"wrote it (its environment.kvbench_version), or run the benchmark again", ErrSchema)
	}
	return fmt.Errorf("%w %q, this version reads 2.x and 3.x", ErrSchema, version)
}

// Parameter returns the effective value of a parameter, nil if unknown.
func (r *Result) Parameter(name string) any {
	for _, p := range r.Parameters {
		if p.Name == name {
			return p.Value
		}
	}
	return nil
}

// Roots returns the cache directories: those of the list, or the only one, which the environment describes.
func (r *Result) Roots() []Root {
	if e := r.Environment; len(r.IO.Roots) == 0 {
		return []Root{{BlockDevice: e.Device, DeviceReason: e.DeviceReason, Mount: e.Filesystem}}
	}
	return r.IO.Roots
}

// Filesystems returns the filesystem of each cache directory.
func (r *Result) Filesystems() (list []Filesystem) {
	for _, o := range r.Roots() {
		list = append(list, o.Mount)
	}
	return list
}

// OneTrial reports whether the results of two ranks can belong to one trial. Ranks with a
// coordinator have the same nonce in a trial, and a clock offset. Ranks without a coordinator each
// have their own nonce.
func (r *Result) OneTrial(o *Result) bool {
	met := r.ClockOffsetNS != nil || o.ClockOffsetNS != nil
	return r.Nonce == "" || o.Nonce == "" ||
		r.Ranks == o.Ranks && (r.Nonce == o.Nonce || !met)
}

// Coordinated converts a time of this client's wall clock (RFC 3339) to the wall clock of the
// coordinator's host. If the clocks were not compared, the time does not change.
func (r *Result) Coordinated(text string) (time.Time, error) {
	at, err := time.Parse(time.RFC3339Nano, text)
	return at.Add(-time.Duration(units.OrZero(r.ClockOffsetNS))), err
}
