// Package s3double is an object store for tests: it does what clients of S3 rely on, goes wrong
// where a test wants it, and writes down what it was asked.
//
//	double.go      Config, Double, Endpoint: a store and the addresses that show it; Start
//	log.go         Op, Entry: the access log, which is the witness of what clients did
//	rules.go       Rule, Fault: which request goes wrong, and how
//	operations.go  what can be asked for, and where it is done
//	handler.go     one request: whose it is, what it asks for, what a rule makes of the answer
//	objects.go     PUT, GET, HEAD, DELETE, batch delete
//	uploads.go     multipart uploads
//	lists.go       lists of objects, uploads, parts
//	store.go       the index, and bodies in files; what tests look at past the protocol
//	wire           signatures, payloads, errors: what one request has to look like
//	testnet        endpoints without sockets, for tests in virtual time; certificates
//	serve          the double as a process
//
// # What it can
//
// Objects whole and in one range, If-Match and If-None-Match; uploads of parts in any order; lists
// of version 2 with prefix, delimiter and pages; header signatures with the payload unsigned, as a
// digest, in signed chunks, or in unsigned chunks with a checksum behind them; session tokens, a
// wrong region, a clock that is off; path and virtual style; location and versioning of a bucket.
// All else is answered by 501, also where only a parameter is not known.
//
// # In a test
//
//	d := s3double.Start(t, s3double.Config{Buckets: []string{"bench"}}, 2)
//	err := d.SetRules(s3double.Rule{Op: s3double.Get, Nth: 3, Fault: s3double.Fault{
//		Kind: s3double.Cut, At: 1000}})
//	… d.URLs() … d.Log() …
//
// A test of delays, time-outs and waits between attempts belongs into a bubble of testing/synctest,
// with a testnet.Network and its DialContext in the client's transport: nothing then takes time,
// and a store that hangs for 30 s costs microseconds. A test of what kernels do (resets, sendfile,
// a port that nobody listens on) uses real sockets.
//
// # What a client sees of a fault
//
//	status       the error as S3 writes it; SlowDown with Retry-After
//	html         200 and a page: the wrong port, a proxy's login
//	lost         EOF before a header, though it has been done: a second PUT finds its object,
//	             a second Complete no upload, a second DELETE nothing
//	cut, at n    an unexpected EOF after n bytes; in a PUT a closed connection while it sends
//	reset, at n  the same with ECONNRESET
//	hang, at n   nothing more: ResponseHeaderTimeout where n is negative, else its own time-out
//	flip, at n   other bytes than were written, under an ETag and a length that look right
//	wrong-etag   a tag that no completion and no If-Match accepts
//	wrong-length a whole answer that is too short; an HEAD that says so
//	error-200    an error where only the status is looked at
//	short-page   a list that goes on, also for who asked for less than a page
//	empty        a list without what is there, as of stores that cannot list uploads
//
// # Rules
//
// All methods of Double and Endpoint are safe for concurrent use but Listen, Close, Kill and
// Return, which belong to the test. A body is sent by sendfile and received into a file, so that
// the double costs its client's processors little: 0.08 s for a GiB sent in objects of 8 MiB, 0.2 s
// for one received, 24 µs for an object of 64 KiB (2 cores of an EPYC). Nothing outlives Close.
package s3double
