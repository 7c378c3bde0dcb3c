package result

import "kvbench/kvbench/units"

// Objects counts the requests to an object store. Operations has the requests that ended inside the
// window. Outside has the requests that ended before the window (lists, fill, warm-up) or were in
// flight at its end. Neither has the requests of the check of the store, or the deletions at the
// end of the run, which come after the result.
type Objects struct {
	Store ObjectStore `json:"store" merge:"same"`
	// by kind of request: put, put_part, get, get_range, head, delete, delete_batch, list, create,
	// complete, abort, bucket, connect; kinds without requests are absent
	Operations map[string]ObjectOperation `json:"operations"`
	Outside    map[string]ObjectCounts    `json:"outside"`
	// of GETs, also of a range: from the begin of the request to the first byte of the response
	FirstByte Distribution `json:"get_first_byte" merge:"-"`

	Status    map[string]int64 `json:"status" merge:"sum"`     // responses, by status code
	Retries   map[string]int64 `json:"retries" merge:"sum"`    // attempts that were repeated, by cause
	BackoffNS int64            `json:"backoff_ns" merge:"sum"` // pauses between attempts
	// such pauses before the window
	EarlierBackoffNS int64 `json:"earlier_backoff_ns" merge:"sum"`
	Lost             int64 `json:"lost" merge:"sum"` // reads of missing written objects
	// acknowledged bytes of uploads that failed
	WastedBytes int64 `json:"wasted_bytes" merge:"sum"`

	Server  string `json:"server" merge:"same"`  // the Server header of the responses
	ProofNS int64  `json:"proof_ns" merge:"max"` // time of the check of the store before the run
}

// ObjectCounts counts requests to a store. A request has one or more attempts. A store's access log
// shows the attempts without the unsent ones, which found no connection. Bytes are bytes of
// objects, failed attempts included.
type ObjectCounts struct {
	Requests int64 `json:"requests" merge:"sum"`
	Attempts int64 `json:"attempts" merge:"sum"`
	Failed   int64 `json:"failed" merge:"sum"` // requests, after their last attempt
	// requests that this program cancelled; those that the window's end cut off also count in the
	// window, although requests does not have them there
	Cancelled int64 `json:"cancelled" merge:"sum"`
	Unsent    int64 `json:"unsent" merge:"sum"` // attempts
	Bytes     int64 `json:"bytes" merge:"sum"`
}

// Parts reports whether large objects were written in parts. Engines write whole objects up to 5
// GiB, the maximum of an S3 PUT.
func (o *Objects) Parts() bool { return o.Store.MultipartAbove < 5<<30 }

// ObjectOperation counts one kind of request in the window. Latency is the time of a successful
// request, with all attempts and the pauses between attempts. A HEAD that finds nothing is
// successful.
type ObjectOperation struct {
	ObjectCounts
	Latency Distribution `json:"latency" merge:"-"`
}

// ObjectOperations are the keys of Objects.Operations in the order of the reports.
var ObjectOperations = [...]string{"head", "get", "get_range", "put", "put_part", "create",
	"complete", "abort", "delete", "delete_batch", "list", "bucket", "connect"}

// ObjectStore is the configuration of a store. It has no secrets: Key is masked.
type ObjectStore struct {
	EndpointsFrom string `json:"endpoints_from"` // the flag or variable with the endpoints
	Balance       string `json:"balance"`
	Addressing    string `json:"addressing"` // path or virtual
	Region        string `json:"region"`
	Key           string `json:"key"` // "": requests are not signed
	Names         string `json:"names"`
	Lookup        string `json:"lookup"`
	Payload       string `json:"payload"`
	// Objects above MultipartAbove bytes are written in parts of PartBytes. Objects are read in
	// ranges of RangeBytes; 0: whole.
	MultipartAbove int64 `json:"multipart_above"`
	PartBytes      int64 `json:"part_bytes"`
	RangeBytes     int64 `json:"range_bytes"`
	// Maximum number of requests in flight, such as an engine's threads; 0: no limit.
	Requests int `json:"requests"`
}

// Endpoint is one address of a store, with its traffic in the window.
type Endpoint struct {
	URL          string `json:"url" merge:"same"`
	Requests     int64  `json:"requests" merge:"sum"` // with their first attempt here
	Attempts     int64  `json:"attempts" merge:"sum"`
	Failed       int64  `json:"failed" merge:"sum"` // attempts
	BytesRead    int64  `json:"bytes_read" merge:"sum"`
	BytesWritten int64  `json:"bytes_written" merge:"sum"`
	Retries      int64  `json:"retries" merge:"sum"` // attempts that are not the first of their request
	MaxInFlight  int64  `json:"max_in_flight" merge:"sum"`
}

// Network is the sum of the kernel's TCP_INFO over the connections to a store in the window,
// headers included. It is a cross-check, as the counters of a block device are for files. Numbers
// that the kernel does not report are null.
type Network struct {
	ReceivedBytes *int64 `json:"received_bytes" merge:"sum"`
	AckedBytes    *int64 `json:"acked_bytes" merge:"sum"`
	Retransmits   *int64 `json:"retransmits" merge:"sum"` // segments
	MinRTTNS      *int64 `json:"min_rtt_ns" merge:"min"`  // of all connections, since the run began
	// received bytes ÷ bytes that the storage tier read; with headers a little above 1
	ReadRatio *float64 `json:"read_ratio" merge:"-"`
}

// notFromNetworkBelow is the read ratio below which some bytes did not come from the network.
const notFromNetworkBelow = 0.95

// Derive computes ReadRatio. read is how many bytes the application read.
func (n *Network) Derive(read int64) {
	n.ReadRatio = nil
	if n.ReceivedBytes != nil && read > 0 {
		n.ReadRatio = units.Ratio(*n.ReceivedBytes, read)
	}
}

// Short reports whether the network received fewer bytes than the application read.
func (n *Network) Short() bool {
	return n != nil && n.ReadRatio != nil && *n.ReadRatio < notFromNetworkBelow
}
