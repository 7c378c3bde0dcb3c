package result

import "kvbench/kvbench/units"

// Objects are the requests to an object store. What ended inside the window is the window's;
// Outside is what ended before it (lists, fill, warm-up) and what
// was in flight at its end. Requests of the proof, one endpoint after the other, are in neither.
// What is deleted at the end of the run comes after its result.
type Objects struct {
	Store ObjectStore `json:"store" merge:"same"`
	// by kind of request: put, put_part, get, get_range, head, delete, delete_batch, list, create,
	// complete, abort, bucket, connect; kinds of which there was none are absent
	Operations map[string]ObjectOperation `json:"operations"`
	Outside    map[string]ObjectCounts    `json:"outside"`
	// of GETs, whole or of a range: from the request's begin to the first byte of the response
	FirstByte Distribution `json:"get_first_byte" merge:"-"`

	Status    map[string]int64 `json:"status" merge:"sum"`     // responses, by status code
	Retries   map[string]int64 `json:"retries" merge:"sum"`    // attempts that another followed, by cause
	BackoffNS int64            `json:"backoff_ns" merge:"sum"` // pauses between attempts, summed over requests
	Lost      int64            `json:"lost" merge:"sum"`       // reads of written objects that were not there
	// of uploads that failed after the store had acknowledged them
	WastedBytes int64 `json:"wasted_bytes" merge:"sum"`

	Server  string `json:"server" merge:"same"`  // the Server header of the responses
	ProofNS int64  `json:"proof_ns" merge:"max"` // of the check of the store before the run
}

// ObjectCounts are numbers of requests to a store. Attempts are those of all requests:
// what a store's access log shows, and Unsent ones, which found no connection. Bytes are of
// objects, those of attempts that failed included.
type ObjectCounts struct {
	Requests int64 `json:"requests" merge:"sum"`
	Attempts int64 `json:"attempts" merge:"sum"`
	Failed   int64 `json:"failed" merge:"sum"` // requests, after their last attempt
	// requests, by this program; those that the window's end cut off are counted in the window,
	// too, though they are not among its requests
	Cancelled int64 `json:"cancelled" merge:"sum"`
	Unsent    int64 `json:"unsent" merge:"sum"` // attempts
	Bytes     int64 `json:"bytes" merge:"sum"`
}

// Parts says that larger objects were written in parts. Engines write whole ones, up to the most
// that S3 takes in a PUT.
func (o *Objects) Parts() bool { return o.Store.MultipartAbove < 5<<30 }

// ObjectOperation is one kind of request in the window. Its latency is of requests that succeeded,
// with all attempts and the pauses between them. A HEAD that finds nothing has succeeded.
type ObjectOperation struct {
	ObjectCounts
	Latency Distribution `json:"latency" merge:"-"`
}

// ObjectOperations are the keys of Objects.Operations in the order of the reports: what an engine
// asks for, then what larger objects take, then what else a run does.
var ObjectOperations = [...]string{"head", "get", "get_range", "put", "put_part", "create",
	"complete", "abort", "delete", "delete_batch", "list", "bucket", "connect"}

// ObjectStore is how a store was used. Nothing in it is secret: Key is masked.
type ObjectStore struct {
	EndpointsFrom string `json:"endpoints_from"` // the flag or variable that named them
	Balance       string `json:"balance"`
	Addressing    string `json:"addressing"` // path or virtual
	Region        string `json:"region"`
	Key           string `json:"key"` // "": requests are not signed
	Names         string `json:"names"`
	Lookup        string `json:"lookup"`
	Payload       string `json:"payload"`
	// Larger objects are written in parts of PartBytes, and read in ranges of RangeBytes; 0: whole.
	MultipartAbove int64 `json:"multipart_above"`
	PartBytes      int64 `json:"part_bytes"`
	RangeBytes     int64 `json:"range_bytes"`
	// Requests of entries in flight at most, as an engine has threads; 0: no bound.
	Requests int `json:"requests"`
}

// Endpoint is one address of a store, and what it carried in the window.
type Endpoint struct {
	URL          string `json:"url" merge:"same"`
	Requests     int64  `json:"requests" merge:"sum"` // whose first attempt went here
	Attempts     int64  `json:"attempts" merge:"sum"`
	Failed       int64  `json:"failed" merge:"sum"` // attempts
	BytesRead    int64  `json:"bytes_read" merge:"sum"`
	BytesWritten int64  `json:"bytes_written" merge:"sum"`
	Retries      int64  `json:"retries" merge:"sum"` // attempts after a first one, here or elsewhere
	MaxInFlight  int64  `json:"max_in_flight" merge:"sum"`
}

// Network is what the kernel's TCP_INFO says of the connections to a store in the window, headers
// included: a cross-check of a store, as a block device's counters are one of files. Numbers are
// null where the kernel does not report them.
type Network struct {
	ReceivedBytes *int64 `json:"received_bytes" merge:"sum"`
	AckedBytes    *int64 `json:"acked_bytes" merge:"sum"`
	Retransmits   *int64 `json:"retransmits" merge:"sum"` // segments
	MinRTTNS      *int64 `json:"min_rtt_ns" merge:"min"`  // of all connections since the run began
	// received ÷ what the storage tier has read; headers make it a little more than 1
	ReadRatio *float64 `json:"read_ratio" merge:"-"`
}

// notFromNetworkBelow is the read ratio from which bytes came from elsewhere.
const notFromNetworkBelow = 0.95

// Derive makes the ratio of the bytes that the application read.
func (n *Network) Derive(read int64) {
	n.ReadRatio = nil
	if n.ReceivedBytes != nil && read > 0 {
		n.ReadRatio = units.Ratio(*n.ReceivedBytes, read)
	}
}

// Short says that fewer bytes came from the network than were read.
func (n *Network) Short() bool {
	return n != nil && n.ReadRatio != nil && *n.ReadRatio < notFromNetworkBelow
}
