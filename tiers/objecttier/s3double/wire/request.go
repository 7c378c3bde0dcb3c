package wire

import (
	"encoding/xml"
	"net/http"
	"strconv"
	"strings"
)

// What S3 admits (docs.aws.amazon.com/AmazonS3/latest/userguide/qfacts.html): keys of a batch
// delete and of a page of a list, and parts of an upload.
const (
	MaxKeys  = 1000
	MaxParts = 10_000
)

// ParseRange reads a header of one range of an object: where it begins, and how many bytes. One of
// another form is not ok, and means the whole object (RFC 9110, 14.2). Satisfied tells whether
// the object has any of it; the numbers mean nothing if not.
func ParseRange(header string, size int64) (from, n int64, ok, satisfied bool) {
	whole := func() (int64, int64, bool, bool) { return 0, size, false, false }
	spec, found := strings.CutPrefix(header, "bytes=")
	first, last, dash := strings.Cut(strings.TrimSpace(spec), "-")
	if !found || !dash {
		return whole()
	}
	// Unlike strconv.ParseInt this takes no sign.
	number := func(text string) (int64, bool) {
		v, err := strconv.ParseUint(text, 10, 63)
		return int64(v), err == nil
	}
	if first == "" { // the last bytes
		suffix, fine := number(last)
		if !fine {
			return whole()
		}
		n = min(suffix, size)
		return size - n, n, true, n > 0
	}
	from, fine := number(first)
	end := size - 1
	if last != "" {
		to, fineToo := number(last)
		if !fineToo || to < from {
			return whole()
		}
		end = min(end, to)
	}
	if !fine {
		return whole()
	}
	return from, end - from + 1, true, from < size
}

// ParseDelete reads the body of a batch delete: keys, and whether only those that fail are to be
// named. Versions are refused, since nothing here has any.
func ParseDelete(text []byte) (keys []string, quiet bool, _ *Error) {
	var request struct {
		XMLName xml.Name `xml:"Delete"`
		Quiet   bool
		Object  []struct{ Key, VersionId string }
	}
	err := xml.Unmarshal(text, &request)
	if err != nil || len(request.Object) == 0 || len(request.Object) > MaxKeys {
		return nil, false, malformed()
	}
	for _, o := range request.Object {
		if o.Key == "" || o.VersionId != "" {
			return nil, false, malformed()
		}
		keys = append(keys, o.Key)
	}
	return keys, request.Quiet, nil
}

// Part is a part as the completion of an upload names it.
type Part struct {
	PartNumber int
	ETag       string
}

// ParseComplete reads the body of a completion: parts in the order of their numbers.
func ParseComplete(text []byte) ([]Part, *Error) {
	var request struct {
		XMLName xml.Name `xml:"CompleteMultipartUpload"`
		Part    []Part
	}
	err := xml.Unmarshal(text, &request)
	if err != nil || len(request.Part) == 0 || len(request.Part) > MaxParts {
		return nil, malformed()
	}
	// Numbers need not follow each other, only rise: a client may leave some out.
	for i, p := range request.Part[1:] {
		if p.PartNumber <= request.Part[i].PartNumber {
			return nil, Fail(http.StatusBadRequest, "InvalidPartOrder", "The list of parts was "+
				"not in ascending order. Parts must be ordered by part number.")
		}
	}
	return request.Part, nil
}

// Conditions checks If-None-Match and If-Match of a request against the tag of its object, "" where
// there is none (docs.aws.amazon.com/AmazonS3/latest/userguide/conditional-requests.html). Quotes
// around a tag may be missing: libraries take them off and do not put them back.
func Conditions(r *http.Request, etag string) *Error {
	same := func(header string) bool {
		return header == "*" || strings.Trim(header, `"`) == strings.Trim(etag, `"`)
	}
	match, none := r.Header.Get("If-Match"), r.Header.Get("If-None-Match")
	switch {
	case match != "" && etag == "":
		// Not 412: a client that rewrites its object learns that somebody took it away.
		return Fail(http.StatusNotFound, "NoSuchKey", "The specified key does not exist.")
	case match == "" || same(match):
		if none == "" || etag == "" || !same(none) {
			return nil
		}
		if r.Method == http.MethodGet || r.Method == http.MethodHead {
			return Fail(http.StatusNotModified, "NotModified", "") // without a body
		}
	}
	return Fail(http.StatusPreconditionFailed, "PreconditionFailed",
		"At least one of the pre-conditions you specified did not hold")
}

// malformed is said of all documents alike: what is wrong in them S3 does not tell.
func malformed() *Error {
	return Fail(http.StatusBadRequest, "MalformedXML", "The XML you provided was not "+
		"well-formed or did not validate against our published schema")
}
