package report

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"kvbench/kvbench/result"
	"kvbench/kvbench/units"
)

// mostEndpoints is how many of a store's endpoints the text lists: with more, those that failed
// most, because a reader looks for the failing one among hundreds. The page, the workbook and the
// JSON have all of them.
const mostEndpoints = 8

// objectStore says which store it was and how it was used: two results that differ in pieces, parts
// or protection of bodies measured different clients, whatever the store.
func (s *summary) objectStore() {
	o := &s.Objects.Store
	where := "no endpoint"
	if n := len(s.Endpoints); n > 0 {
		more := ""
		if n > 1 {
			more = " …"
		}
		where = fmt.Sprintf("%s (%s%s, %s)", units.Plural(n, "endpoint"), s.Endpoints[0].URL, more,
			o.EndpointsFrom)
	}
	key := "requests not signed"
	if o.Key != "" {
		key = "key " + o.Key
	}
	s.put("storage", strings.Join([]string{s.IO.CacheDir, where, o.Balance, o.Addressing + " style",
		o.Region, key}, ", "))
	put, get, lookup, depth := "PUT whole", "GET whole", "", ""
	if s.Objects.Parts() {
		put = fmt.Sprintf("PUT above %s in parts of %s", bytes(o.MultipartAbove),
			bytes(o.PartBytes))
	}
	if o.RangeBytes > 0 {
		get = "GET in ranges of " + bytes(o.RangeBytes)
	}
	if o.Lookup == "head" {
		lookup = ", HEAD before GET"
	}
	// An object that moves whole is one request.
	if s.Objects.Parts() || o.RangeBytes > 0 {
		depth = fmt.Sprintf(", depth %d", s.IO.Depth)
	}
	if o.Requests > 0 {
		depth += fmt.Sprintf(", at most %s at a time", units.Plural(o.Requests, "request"))
	}
	s.line("", "keys %s, %s, %s%s, payload %s, pieces of %s%s, HTTP/1.1", o.Names, put, get, lookup,
		o.Payload, bytes(s.IO.ChunkBytes), depth)
}

// objects has a row for each kind of request to a store: their number, and their time to success
// with attempts and pauses. Bytes include those of failed attempts: so the table can be compared
// with the store's access log, and late answers that the client discarded are visible. Cells
// without a meaning in a row are empty, which is neither 0 nor unknown.
func objects(r *result.Result) (t Table) {
	o := r.Objects
	if o == nil {
		return t
	}
	n, time := units.Count, units.Milliseconds
	t = Table{Topic: "objects", Title: "Requests to the object store", Sheet: "Objects",
		Words: objectWords(r),
		Note: "Attempts are what the store's access log shows. Times are those of requests that " +
			"succeeded, with all attempts and the pauses between them, and of a put with the " +
			"making of its bytes, which the tier's times leave out; bytes are those of all " +
			"attempts. Cut off are requests in flight when the window closed: their bytes " +
			"count in the tiers' bytes and not here.",
		Columns: []Column{{" ", " ", "Request", units.Number},
			{"requests", "requests", "Requests", n}, {"attempts", "attempts", "Attempts", n},
			{"failed", "failed", "Failed", n}, {"cut off", "cut off", "Cut Off", n},
			{"mean", "mean", "Mean (ms)", time}, {"p50", "p50", "P50 (ms)", time},
			{"p95", "p95", "P95 (ms)", time}, {"p99", "p99", "P99 (ms)", time},
			{"max", "max", "Max (ms)", time}, {"bytes", "bytes", "Bytes (GiB)", units.Bytes}}}
	row := func(name string, c result.ObjectCounts, d result.Distribution) {
		moved := any(c.Bytes)
		if !strings.HasPrefix(name, "get") && !strings.HasPrefix(name, "put") {
			moved = "" // of an object nothing is in it
		}
		t.add(name, c.Requests, c.Attempts, c.Failed, c.Cancelled, ms(d.Mean), ms(d.P50), ms(d.P95),
			ms(d.P99), ms(d.Max), moved)
	}
	for _, kind := range result.ObjectOperations {
		op, some := o.Operations[kind]
		if !some {
			continue
		}
		row(strings.ReplaceAll(kind, "_", " "), op.ObjectCounts, op.Latency)
		// Behind the last kind of GET, of both.
		_, ranges := o.Operations["get_range"]
		if f := o.FirstByte; f.Count > 0 && (kind == "get" && !ranges || kind == "get_range") {
			t.add("  first byte", f.Count, "", "", "", ms(f.Mean), ms(f.P50), ms(f.P95), ms(f.P99),
				ms(f.Max), "")
		}
	}
	return t
}

// ms are nanoseconds in the unit of workbooks.
func ms[N int64 | float64](v *N) *float64 {
	if v == nil {
		return nil
	}
	return new(float64(*v) / 1e6)
}

// objectWords say what happened to requests, without their times. Zero retries, losses and wasted
// bytes need no line; failing endpoints and lookups do.
func objectWords(r *result.Result) (all []string) {
	o := r.Objects
	if len(o.Retries) > 0 {
		all = append(all, fmt.Sprintf("Tried again: %s; pauses of %s in all.", causes(o.Retries),
			ns(o.BackoffNS)))
	}
	if o.Lost > 0 {
		all = append(all, fmt.Sprintf("The store has lost %s that had been written.",
			units.Plural(o.Lost, "object")))
	}
	if o.WastedBytes > 0 {
		all = append(all, bytes(o.WastedBytes)+" were acknowledged of uploads that failed later.")
	}
	server := cmp.Or(o.Server, "nothing")
	return append(all, fmt.Sprintf("The store calls itself %s; what it was asked to show before "+
		"took %s.", server, ns(o.ProofNS)))
}

// causes lists counts by cause, the most frequent first: "503" is an answer that was retried,
// "reset" a broken connection.
func causes(of map[string]int64) string {
	names := slices.SortedFunc(maps.Keys(of), func(a, b string) int {
		return cmp.Or(cmp.Compare(of[b], of[a]), cmp.Compare(a, b))
	})
	for i, name := range names {
		names[i] = fmt.Sprintf("%s × %s", count(of[name]), strings.ReplaceAll(name, "_", " "))
	}
	return strings.Join(names, ", ")
}

// endpoints lists the traffic of each address of a store. It shows whether the balance worked:
// shares that differ, or one endpoint that failed while the others did not.
func endpoints(r *result.Result) (t Table) {
	if len(r.Endpoints) == 0 || r.Objects == nil {
		return t
	}
	n := units.Count
	t = Table{Topic: "endpoints", Title: "Endpoints", Sheet: "Endpoints", Folded: true,
		Words: []string{"Network: " + networkText(r) + "."},
		Columns: []Column{{" ", " ", "Endpoint", units.Number},
			{"requests", "requests", "Requests", n}, {"share", "share", "Share", units.Share},
			{"attempts", "attempts", "Attempts", n}, {"failed", "failed", "Failed", n},
			{"retried", "retried", "Retried", n}, {"read", "read", "Read (GiB)", units.Bytes},
			{"written", "written", "Written (GiB)", units.Bytes},
			{"most in flight", "most in flight", "Most in Flight", n}}}
	all := int64(0)
	for _, e := range r.Endpoints {
		all += e.Requests
	}
	for _, e := range r.Endpoints {
		t.add(e.URL, e.Requests, units.Ratio(e.Requests, all), e.Attempts, e.Failed, e.Retries,
			e.BytesRead, e.BytesWritten, e.MaxInFlight)
	}
	return t
}

// store describes the store's requests and network. A store of hundreds of addresses would push
// everything else off the screen.
func (s *summary) store() {
	if s.Objects == nil {
		return
	}
	s.tables(objects(s.Result))
	for _, line := range objectWords(s.Result) {
		s.put("", line)
	}
	t := endpoints(s.Result)
	if more := len(t.Rows) - mostEndpoints; more > 0 {
		const failed = 4
		slices.SortStableFunc(t.Rows, func(a, b []any) int {
			return cmp.Compare(b[failed].(int64), a[failed].(int64))
		})
		t.Rows = t.Rows[:mostEndpoints]
		s.tables(t)
		s.line("", "and %d more in the JSON, which failed less often", more)
		return
	}
	s.tables(t)
}

// network writes the kernel's counts of the connections to a store.
func (s *summary) network() {
	if s.Network != nil {
		s.put("network", networkText(s.Result))
	}
}

// networkText reports the kernel's TCP_INFO of the connections to a store: the cross-check that
// bytes came from it, and whether the network lost some. Received headers count, too, so that a
// load of small objects has a ratio well above 1.
func networkText(r *result.Result) string {
	n := r.Network
	if n == nil || n.ReceivedBytes == nil {
		return "no byte counts: this system does not tell of connections"
	}
	received := bytes(n.ReceivedBytes) + " received"
	if n.ReadRatio != nil {
		received = number(n.ReadRatio) + " bytes received per byte read"
	}
	return fmt.Sprintf("%s, %s acknowledged, %s sent again, %s dialled, round trip of %s at least "+
		"(kernel's TCP_INFO)", received, bytes(n.AckedBytes),
		units.Plural(units.OrZero(n.Retransmits), "segment"),
		units.Plural(r.Objects.Operations["connect"].Requests, "connection"), ns(n.MinRTTNS))
}
