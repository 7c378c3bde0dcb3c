package s3double

import (
	"net/http"
	"slices"
	"strings"

	"kvbench/tiers/objecttier/s3double/wire"
)

// operations are what can be asked for: the method, whether of an object or of a bucket, the
// parameters that tell it from others, and those that it may have besides. What do returns is
// answered by its caller.
var operations = []struct {
	method   string
	object   bool
	query    string
	optional string
	op       Op
	do       func(*request) *wire.Error
}{
	{http.MethodPut, true, "", "", Put, (*request).put},
	{http.MethodPut, true, "partNumber uploadId", "", PutPart, (*request).putPart},
	{http.MethodGet, true, "", "", Get, (*request).get},
	{http.MethodGet, true, "uploadId", "max-parts part-number-marker encoding-type", ListParts,
		(*request).listParts},
	{http.MethodHead, true, "", "", Head, (*request).get},
	{http.MethodDelete, true, "", "", Delete, (*request).delete},
	{http.MethodDelete, true, "uploadId", "", Abort, (*request).abort},
	{http.MethodPost, true, "uploads", "", Create, (*request).create},
	{http.MethodPost, true, "uploadId", "", Complete, (*request).complete},
	{http.MethodGet, false, "list-type", "prefix delimiter max-keys start-after " +
		"continuation-token encoding-type fetch-owner", List, (*request).list},
	{http.MethodGet, false, "uploads", "prefix delimiter max-uploads key-marker " +
		"upload-id-marker encoding-type", ListUploads, (*request).listUploads},
	{http.MethodGet, false, "location", "", Location, (*request).location},
	{http.MethodGet, false, "versioning", "", Versioning, (*request).versioning},
	{http.MethodHead, false, "", "", HeadBucket, (*request).headBucket},
	{http.MethodPost, false, "delete", "", DeleteBatch, (*request).deleteBatch},
}

// find names what a request asks for. One with parameters that belong to nothing here is Other: an
// answer that leaves them out of account would be wrong. x-id is what AWS's libraries add for
// people who read logs.
func find(r *http.Request, key string) (Op, func(*request) *wire.Error) {
	query := r.URL.Query()
	query.Del("x-id")
	if r.Header.Get("X-Amz-Copy-Source") != "" { // looks like a PUT and is another operation
		return Other, (*request).other
	}
	for _, o := range operations {
		needed := strings.Fields(o.query)
		fits := o.method == r.Method && o.object == (key != "")
		for _, name := range needed {
			fits = fits && query.Has(name)
		}
		for name := range query {
			fits = fits && (slices.Contains(needed, name) ||
				slices.Contains(strings.Fields(o.optional), name))
		}
		if fits {
			return o.op, o.do
		}
	}
	return Other, (*request).other
}

func (q *request) other() *wire.Error {
	return wire.Fail(http.StatusNotImplemented, "NotImplemented",
		"A header or query you provided implies functionality that is not implemented.")
}

func (q *request) headBucket() *wire.Error {
	q.out.WriteHeader(http.StatusOK)
	return nil
}

func (q *request) location() *wire.Error {
	region := q.d.config.Region
	if region == "us-east-1" {
		region = ""
	}
	return q.xml(wire.Location{Region: region})
}

func (q *request) versioning() *wire.Error {
	return q.xml(wire.Versioning{Status: q.d.config.Versioning})
}
