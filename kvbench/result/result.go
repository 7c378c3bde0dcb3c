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

// SchemaVersion of the results written. Within a schema, its first number, new keys may come, and
// none goes or changes its meaning. Readers accept this schema and the one before.
const SchemaVersion = "3.0"

// LineFormat is the kvbench-format of benchmark text: units keep their names and meanings within
// it.
const LineFormat = "2"

// ClosedNotice stands in every output of the closed division.
const ClosedNotice = "MLPerf Storage v3.0 parameters, not an MLPerf result"

// RehearsalNotice stands there instead where the windows were short.
const RehearsalNotice = "REHEARSAL of the closed division with short windows: not to be submitted"

// Result is the outcome of one trial and the only schema of it: JSON file, summary, benchmark
// metrics, workbook and reports are views of this struct. Pointers are null where a value is
// unknown or does not apply: absent is never 0. The tag merge of a field says what becomes of it in
// the result of several ranks, see package merge.
type Result struct {
	SchemaVersion string `json:"schema_version" merge:"same"`
	Notice        string `json:"notice,omitempty" merge:"same"` // ClosedNotice, or RehearsalNotice
	Status        string `json:"status" merge:"-"`
	EndedBy       string `json:"ended_by" merge:"same"`
	Error         string `json:"error,omitempty" merge:"-"`
	Benchmark     string `json:"benchmark" merge:"same"`
	// with the keys of the sub-benchmark: Tier/tier=cpu/op=read/size=1MiB
	Name     string `json:"name,omitempty" merge:"same"`
	Option   *int   `json:"option" merge:"same"`
	Division string `json:"division" merge:"same"`
	Trial    int    `json:"trial" merge:"same"`
	Count    int    `json:"count" merge:"max"`
	Rank     int    `json:"rank" merge:"min"`
	Ranks    int    `json:"ranks" merge:"max"`
	// of several clients' results made one: whose numbers are in it
	MergedRanks []int `json:"merged_ranks,omitempty" merge:"-"`
	// and what they did together, if one of them coordinated it
	Clients *Clients `json:"clients,omitempty" merge:"drop"`
	// of a client's host: its wall clock less the coordinator's; null: not compared
	ClockOffsetNS *int64 `json:"clock_offset_ns,omitempty" merge:"drop"`
	Nonce         string `json:"nonce" merge:"same"`
	Seed          uint64 `json:"seed" merge:"min"` // base seed + rank
	// Digest is a hash of all requests until the window's end, those before it included, and of
	// their hits, independent of their order: equal in two runs whose requests, lookups and hits
	// were the same. Absent without requests. Only loads that do not depend on the speed of the
	// storage can be equal: so many requests of one worker, without think times.
	Digest string `json:"digest,omitempty" merge:"same"`

	// what is counted: request, or operation in benchmarks without requests
	CompletionUnit string `json:"completion_unit" merge:"same"`

	StartTime       string `json:"start_time" merge:"-"` // RFC 3339, UTC: the opening of the window
	WindowNS        int64  `json:"window_ns" merge:"max"`
	NominalWindowNS *int64 `json:"nominal_window_ns" merge:"same"`
	ElapsedNS       int64  `json:"elapsed_ns" merge:"max"` // from set-up until this was made, before cleaning
	DrainNS         int64  `json:"drain_ns" merge:"max"`
	WarmupNS        int64  `json:"warmup_ns" merge:"max"`
	SettleNS        int64  `json:"settle_ns" merge:"max"`

	Model             Model        `json:"model" merge:"same"`
	Workload          Workload     `json:"workload"`
	IO                IO           `json:"io"`
	Parameters        []Parameter  `json:"parameters" merge:"-"`
	DiffersFromClosed []Difference `json:"differs_from_closed" merge:"list"`
	Environment       Environment  `json:"environment"`
	Limits            Limits       `json:"limits"`

	Requests    RequestTotals           `json:"requests"`
	Moved       Moved                   `json:"moved"`
	Load        map[string]ClassOutcome `json:"load"` // by class, and "total"; {}: the input did not answer at the end
	Lookups     Lookups                 `json:"lookups"`
	Prompt      *Prompt                 `json:"prompt"`      // null: no requests
	BlockCache  *BlockCache             `json:"block_cache"` // of blocks and engines' objects
	Tiers       []Tier                  `json:"tiers" merge:"key=Level"`
	Policy      *Policy                 `json:"policy,omitempty"` // of runs with requests
	FirstReads  ReadKind                `json:"first_reads"`
	ReReads     ReadKind                `json:"re_reads"`
	EntrySizes  EntrySizes              `json:"entry_sizes" merge:"-"`
	Latency     Latency                 `json:"latency" merge:"-"`
	ContextLoad []ContextLoad           `json:"context_load" merge:"key=Tokens"`
	FirstToken  *FirstToken             `json:"first_token"` // null: misses were free

	Harness        Harness        `json:"harness"`
	Stalls         *Stalls        `json:"stalls" merge:"any"` // null: none
	DeviceCounters DeviceCounters `json:"device_witness"`
	Ceiling        *Ceiling       `json:"ceiling" merge:"drop"`
	CeilingRatio   *float64       `json:"ceiling_ratio" merge:"drop" line:"ceiling-ratio"`
	Precondition   *Precondition  `json:"precondition"`
	Input          *Input         `json:"input"`
	TraceFiles     *TraceFiles    `json:"trace_files,omitempty" merge:"same"`  // of recorded loads
	Simulation     *Simulation    `json:"simulation,omitempty"`                // absent: a real run
	Replay         *Replay        `json:"replay,omitempty"`                    // of an I/O trace
	PlainIO        *PlainIO       `json:"plain_io,omitempty"`                  // of benchmarks without requests
	Removal        *Removal       `json:"removal,omitempty"`                   // of one that does nothing else
	Objects        *Objects       `json:"objects,omitempty"`                   // of storage that is an object store
	Endpoints      []Endpoint     `json:"endpoints,omitempty" merge:"key=URL"` // of an object store
	Network        *Network       `json:"network,omitempty"`                   // of an object store
	Checkpoint     *Checkpoint    `json:"checkpoint,omitempty" merge:"-"`
	Autoscaler     *Autoscaler    `json:"autoscaler,omitempty" merge:"drop"`
	Recording      *Recording     `json:"recording,omitempty" merge:"drop"` // compared with (-validation-trace)

	Errors       []ErrorCount  `json:"errors" merge:"key=Tier,Operation,Errno"`
	ErrorSamples []ErrorSample `json:"error_samples" merge:"list"`
	Warnings     []string      `json:"warnings" merge:"-"`

	// DeviceLatencyTracing is what the kernel saw, a tracing.Trace: package tracing alone knows its
	// keys, a result carries it.
	DeviceLatencyTracing json.RawMessage `json:"device_latency_tracing,omitempty" merge:"drop"`
	// a job that puts the same load on another device
	FioWorkload string `json:"fio_workload,omitempty" merge:"drop"`

	Timeline   *Timeline                `json:"timeline" merge:"-"`
	Histograms map[string]HistogramData `json:"histograms" merge:"-"`
}

// BenchmarkEngines is the benchmark whose lines are ranked, by found-tok/s.
const BenchmarkEngines = "Engines"

// BenchmarkTrace is the benchmark of a result that was made of a trace alone: it has a window and
// what the kernel saw, and no numbers of a workload.
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
	EndedByFootprint   = "footprint" // plain writes have filled their capacity: to go on is to remove
	EndedBySignal      = "signal"
	EndedByError       = "error"
)

// Definitions of the device time of a write, as IO.WriteDevice names them.
const (
	WriteDeviceTransfer = "transfer+flush" // from the first chunk to the end of the flush
	WriteDeviceRequest  = "transfer"       // of one request, which no flush follows
	WriteDeviceFlush    = "flush"          // the flush only, as the Python benchmark measures
)

// Units of completion.
const (
	UnitRequest   = "request"
	UnitOperation = "operation"
)

// ErrSchema is wrapped by Parse for a file of a schema that this version does not know.
var ErrSchema = errors.New("unsupported result schema")

// Encode is the text of the result's file.
func (r *Result) Encode() ([]byte, error) {
	data, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("encode result: %w", err)
	}
	return append(data, '\n'), nil
}

// WriteJSON writes the result to path by way of a temporary file in the same directory, synced and
// renamed, so that path holds a whole result or is untouched, whatever happens. The directory must
// exist.
func (r *Result) WriteJSON(path string) error {
	data, err := r.Encode()
	if err != nil {
		return fmt.Errorf("for %s: %w", path, err)
	}
	dir := filepath.Dir(path)
	if err := renameio.WriteFile(path, data, 0o644, renameio.WithTempDir(dir),
		renameio.WithStaticPermissions(0o644)); err != nil {
		return fmt.Errorf("write result %s: %w; choose a writable -results-dir", path, err)
	}
	// That makes the rename durable. Filesystems that cannot sync a directory have no such step to
	// offer.
	if d, err := os.Open(dir); err == nil {
		_ = d.Sync()
		_ = d.Close()
	}
	return nil
}

// Parse reads a result of schema 3.x or 2.x. Unknown keys are ignored; another schema, or none, is
// refused with an error wrapping ErrSchema.
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

// CheckSchema refuses the schemas, and the formats of text, of other versions of kvbench: units and
// keys changed their meaning in between.
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

// Parameter is the value in force of a parameter, nil where it is unknown.
func (r *Result) Parameter(name string) any {
	for _, p := range r.Parameters {
		if p.Name == name {
			return p.Value
		}
	}
	return nil
}

// Filesystems are what the storage tier lies on: of each directory where there are several.
func (r *Result) Filesystems() []Filesystem {
	if len(r.IO.Roots) == 0 {
		return []Filesystem{r.Environment.Filesystem}
	}
	var list []Filesystem
	for _, o := range r.IO.Roots {
		list = append(list, o.Mount)
	}
	return list
}

// OneTrial reports whether the results of two ranks can be of one trial. Each trial has its own
// nonce. Ranks that one of them coordinates agree about it, and their results have a clock offset;
// ranks that do not meet have a nonce each.
func (r *Result) OneTrial(o *Result) bool {
	met := r.ClockOffsetNS != nil || o.ClockOffsetNS != nil
	return r.Nonce == "" || o.Nonce == "" ||
		r.Ranks == o.Ranks && (r.Nonce == o.Nonce || !met)
}

// Coordinated is a time of this client's wall clock, RFC 3339, by that of the coordinator's host.
// Without a comparison of the clocks it is taken as it is.
func (r *Result) Coordinated(text string) (time.Time, error) {
	at, err := time.Parse(time.RFC3339Nano, text)
	return at.Add(-time.Duration(units.OrZero(r.ClockOffsetNS))), err
}
