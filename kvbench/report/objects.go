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

// objectStore reports the store and the client's settings: pieces, parts and protection of bodies.
// Results with different settings are not comparable.
func (s *Section) objectStore(r *result.Result) {
	o := &r.Objects.Store
	where := "no endpoint"
	if n := len(r.Endpoints); n > 0 {
		first := r.Endpoints[0].URL
		if n > 1 {
			first += " …"
		}
		where = fmt.Sprintf("%s (%s, %s)", units.Plural(n, "endpoint"), first, o.EndpointsFrom)
	}
	key := "requests not signed"
	if o.Key != "" {
		key = "key " + o.Key
	}
	s.put("storage", strings.Join([]string{cmp.Or(r.IO.CacheDir, "a place of each rank's own"), where, o.Balance, o.Addressing + " style",
		o.Region, key}, ", "))
	parts := []string{"keys " + o.Names, "PUT whole", "GET whole"}
	if r.Objects.Parts() {
		parts[1] = fmt.Sprintf("PUT above %s in parts of %s", bytes(o.MultipartAbove),
			bytes(o.PartBytes))
	}
	if o.RangeBytes > 0 {
		parts[2] = "GET in ranges of " + bytes(o.RangeBytes)
	}
	requests := r.CompletionUnit != result.UnitOperation // plain I/O looks nothing up and has no engine's threads
	if requests && o.Lookup == "head" {
		parts = append(parts, "HEAD before GET")
	}
	parts = append(parts, "payload "+o.Payload, "pieces of "+bytes(r.IO.ChunkBytes))
	// An object that moves whole is one request.
	if r.Objects.Parts() || o.RangeBytes > 0 {
		parts = append(parts, fmt.Sprint("depth ", r.IO.Depth))
	}
	if requests && o.Requests > 0 {
		parts = append(parts, fmt.Sprintf("at most %s at a time",
			units.Plural(o.Requests, "request")))
	}
	s.put("", strings.Join(append(parts, "HTTP/1.1"), ", "))
}

// objects has a row for each kind of request to a store, with the number of requests and their time to
// success, including retries and pauses. Bytes include failed attempts, so that the table can be
// compared with the store's access log. A cell without a meaning in a row is empty.
func objects(r *result.Result) (s Section) {
	o := r.Objects
	if o == nil {
		return s
	}
	s = Section{Title: "Objects", Topic: "objects",
		Note: "Attempts are what the store's access log shows. Times are those of requests that " +
			"succeeded, with all attempts and the pauses between them, and of a put with the " +
			"making of its bytes, which the tier's times leave out; bytes are those of all " +
			"attempts. Cut off are requests in flight when the window closed: their bytes " +
			"count in the tiers' bytes and not here.",
		Columns: columns("request", units.Count, "requests", "attempts", "failed", "cut off",
			units.Nanoseconds, "mean", "p50", "p95", "p99", "max", units.Bytes, "bytes")}
	// Zero retries, losses and wasted bytes need no line; failing endpoints and lookups do.
	if len(o.Retries) > 0 {
		s.line("", "tried again: %s; pauses of %s in all", causes(o.Retries), ns(o.BackoffNS))
	}
	if o.Lost > 0 {
		s.line("", "the store has lost %s that had been written", units.Plural(o.Lost, "object"))
	}
	if o.WastedBytes > 0 {
		s.put("", bytes(o.WastedBytes)+" were acknowledged of uploads that failed later")
	}
	s.line("", "the store calls itself %s; checking it before the run took %s",
		cmp.Or(o.Server, "nothing"), ns(o.ProofNS))
	for _, kind := range result.ObjectOperations {
		op, some := o.Operations[kind]
		if !some {
			continue
		}
		moved := any(op.Bytes)
		if !strings.HasPrefix(kind, "get") && !strings.HasPrefix(kind, "put") {
			moved = "" // of an object nothing is in it
		}
		d := op.Latency
		s.add(strings.ReplaceAll(kind, "_", " "), op.Requests, op.Attempts, op.Failed, op.Cancelled,
			d.Mean, d.P50, d.P95, d.P99, d.Max, moved)
	}
	if f := o.FirstByte; f.Count > 0 {
		s.add("first byte of a get", f.Count, "", "", "", f.Mean, f.P50, f.P95, f.P99, f.Max, "")
	}
	return s
}

// causes lists counts by cause, the most frequent first: "503" is an answer that was retried,
// "reset" a broken connection.
func causes(counts map[string]int64) string {
	names := slices.SortedFunc(maps.Keys(counts), func(a, b string) int {
		return cmp.Or(cmp.Compare(counts[b], counts[a]), cmp.Compare(a, b))
	})
	for i, name := range names {
		names[i] = fmt.Sprintf("%s × %s", count(counts[name]), strings.ReplaceAll(name, "_", " "))
	}
	return strings.Join(names, ", ")
}

// mostEndpoints is how many of a store's endpoints the text lists: with more, those that failed
// most, because a reader looks for the failing one among hundreds.
const mostEndpoints = 8

// endpoints lists the traffic of each address of a store. It shows whether the balance worked:
// shares that differ, or one endpoint that failed while the others did not.
func endpoints(r *result.Result) (s Section) {
	if len(r.Endpoints) == 0 || r.Objects == nil {
		return s
	}
	s = Section{Title: "Endpoints", Topic: "endpoints",
		Columns: columns("endpoint", units.Count, "requests", units.Share, "share", units.Count,
			"attempts", "failed", "retried", units.Bytes, "read", "written", units.Count,
			"most in flight")}
	all := int64(0)
	for _, e := range r.Endpoints {
		all += e.Requests
	}
	for _, e := range r.Endpoints {
		s.add(e.URL, e.Requests, units.Ratio(e.Requests, all), e.Attempts, e.Failed, e.Retries,
			e.BytesRead, e.BytesWritten, e.MaxInFlight)
	}
	if len(s.Rows) > mostEndpoints {
		const failed = 4
		slices.SortStableFunc(s.Rows, func(a, b []any) int {
			return cmp.Compare(b[failed].(int64), a[failed].(int64))
		})
		s.Short = &Section{Topic: s.Topic, Columns: s.Columns, Rows: s.Rows[:mostEndpoints]}
		s.Short.line("", "%d of %d, those that failed most; the others are in the JSON",
			mostEndpoints, len(s.Rows))
	}
	return s
}

// networkText reports the kernel's TCP_INFO of the connections to a store: the cross-check that
// bytes came from it, and whether the network lost some. Received headers count, too, so that a
// load of small objects has a ratio well above 1.
func networkText(r *result.Result) string {
	n := r.Network
	if n == nil || n.ReceivedBytes == nil {
		return "no byte counts: this system does not report connections"
	}
	received := bytes(n.ReceivedBytes) + " received"
	if n.ReadRatio != nil {
		received = "received " + number(n.ReadRatio) + " times the bytes read"
	}
	return fmt.Sprintf("%s, %s acknowledged, %s sent again, %s dialled, round trip of %s at least "+
		"(kernel's TCP_INFO)", received, bytes(n.AckedBytes),
		units.Plural(units.OrZero(n.Retransmits), "segment"),
		units.Plural(r.Objects.Operations["connect"].Requests, "connection"), ns(n.MinRTTNS))
}
