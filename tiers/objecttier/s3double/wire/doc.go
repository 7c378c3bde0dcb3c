// Package wire is what one request to an object store has to look like, from the server's side.
//
//	sign.go       Keys, Signer: signatures of headers and chunks, version 4
//	payload.go    Payload: bodies with their digests, checksums and the framing of aws-chunked
//	request.go    ranges, and the bodies of batch deletes and completions
//	documents.go  the documents that answers consist of
//	error.go      Error: what S3 answers when something is wrong
//
// # What is refused, and by which code
//
//	AccessDenied                  no signature, the host or an x-amz- header not signed
//	InvalidAccessKeyId            another key, or a temporary one without its token
//	InvalidToken                  a token that is not expected
//	SignatureDoesNotMatch         another secret, or a header or chunk that was changed
//	AuthorizationHeaderMalformed  what cannot be read, and another region, with the right one
//	RequestTimeTooSkewed          a clock that is off by more than 15 minutes
//	MissingContentLength          a body without a length
//	IncompleteBody                one that is shorter, or whose chunks are malformed
//	XAmzContentSHA256Mismatch, BadDigest  other bytes than the digests and checksums tell
//	NotImplemented                chunks that are signed and have a trailer: stores disagree
//	                              about them, and some keep wrong bytes
//	MalformedXML, InvalidPartOrder  documents that say nothing
//
// The rest is for the store to know: keys, uploads. Of conditions it is asked for the tag alone.
// Nothing here waits, sends or keeps anything, so all of it is tested without a server.
//
// A Payload belongs to the goroutine that serves its request; Keys do not change.
package wire
