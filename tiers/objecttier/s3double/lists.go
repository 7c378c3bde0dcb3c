package s3double

import (
	"cmp"
	"encoding/base64"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"kvbench/tiers/objecttier/s3double/wire"
)

// pageSize is how many entries a list may have, by the request and by its rule.
func (q *request) pageSize(parameter string) (int, *wire.Error) {
	n := wire.MaxKeys
	if text := q.URL.Query().Get(parameter); text != "" {
		wanted, err := strconv.Atoi(text)
		if err != nil || wanted < 0 {
			return 0, wire.Fail(http.StatusBadRequest, "InvalidArgument",
				"Provided "+parameter+" not an integer or within integer range")
		}
		n = min(n, wanted) // more is no error, but never given
	}
	if q.fault.Kind == ShortPage {
		n = min(n, max(1, int(q.fault.At)))
	}
	return n, nil
}

// namer encodes keys in lists as the request wants it: XML cannot hold all bytes.
func (q *request) namer() func(string) string {
	if q.URL.Query().Get("encoding-type") != "url" {
		return func(key string) string { return key }
	}
	return func(key string) string {
		return strings.ReplaceAll(url.QueryEscape(key), "%2F", "/")
	}
}

// list is ListObjectsV2. Its token is the last key or prefix of the page before, so that objects
// may come and go between two pages, as they do when a client deletes what it has listed.
func (q *request) list() *wire.Error {
	query := q.URL.Query()
	if query.Get("list-type") != "2" {
		return q.other()
	}
	name := q.namer()
	size, bad := q.pageSize("max-keys")
	if bad != nil {
		return bad
	}
	prefix, delimiter, after := query.Get("prefix"), query.Get("delimiter"),
		query.Get("start-after")
	token := query.Get("continuation-token")
	if query.Has("continuation-token") {
		text, err := base64.URLEncoding.DecodeString(token)
		if err != nil || token == "" {
			return wire.Fail(http.StatusBadRequest, "InvalidArgument",
				"The continuation token provided is incorrect")
		}
		after = string(text)
	}
	var result wire.Listing
	result.Name, result.Prefix, result.Delimiter = q.bucket, name(prefix), name(delimiter)
	result.EncodingType = query.Get("encoding-type")
	result.StartAfter, result.ContinuationToken = name(query.Get("start-after")), token
	result.MaxKeys = size
	s := q.d.store
	s.mu.Lock()
	b := s.buckets[q.bucket]
	last, keys := "", b.keys(prefix)
	// Nobody can go on behind a page of no entries, so it is the last one.
	if q.fault.Kind == Empty || size == 0 {
		keys = nil
	}
	start, found := slices.BinarySearch(keys, after)
	if found {
		start++
	}
	for _, key := range keys[start:] {
		group := ""
		if i := strings.Index(key[len(prefix):], delimiter); delimiter != "" && i >= 0 {
			group = key[:len(prefix)+i+len(delimiter)]
		}
		if group != "" && (group == last || group == after) { // told already
			continue
		}
		if result.KeyCount == size {
			result.IsTruncated = true
			result.NextContinuationToken = base64.URLEncoding.EncodeToString([]byte(last))
			break
		}
		result.KeyCount++
		if last = cmp.Or(group, key); group != "" {
			result.CommonPrefixes = append(result.CommonPrefixes, wire.Prefix{Prefix: name(group)})
			continue
		}
		o := b.objects[key]
		result.Contents = append(result.Contents, wire.Content{Key: name(key),
			LastModified: wire.Time(o.modified), ETag: o.etag, Size: o.size,
			StorageClass: "STANDARD"})
	}
	s.mu.Unlock()
	return q.xml(result)
}

// listUploads lists the uploads under way, by key and then by id. A delimiter groups them as list
// does; pages go on behind key-marker and upload-id-marker.
func (q *request) listUploads() *wire.Error {
	query := q.URL.Query()
	name := q.namer()
	size, bad := q.pageSize("max-uploads")
	if bad != nil {
		return bad
	}
	prefix, delimiter := query.Get("prefix"), query.Get("delimiter")
	marker, idMarker := query.Get("key-marker"), query.Get("upload-id-marker")
	var result wire.Uploads
	result.Bucket, result.Prefix, result.Delimiter = q.bucket, name(prefix), name(delimiter)
	result.EncodingType, result.MaxUploads = query.Get("encoding-type"), size
	result.KeyMarker, result.UploadIdMarker = name(marker), idMarker
	s := q.d.store
	var uploads []*upload
	s.mu.Lock()
	for _, u := range s.buckets[q.bucket].uploads {
		if strings.HasPrefix(u.key, prefix) && q.fault.Kind != Empty && size > 0 {
			uploads = append(uploads, u)
		}
	}
	s.mu.Unlock() // what is shown of an upload does not change
	slices.SortFunc(uploads, func(a, b *upload) int {
		return cmp.Or(strings.Compare(a.key, b.key), strings.Compare(a.id, b.id))
	})
	count, last := 0, ""
	for _, u := range uploads {
		if u.key < marker || u.key == marker && (idMarker == "" || u.id <= idMarker) {
			continue
		}
		group := ""
		if i := strings.Index(u.key[len(prefix):], delimiter); delimiter != "" && i >= 0 {
			group = u.key[:len(prefix)+i+len(delimiter)]
			if group == last || group == marker {
				continue
			}
		}
		if count == size {
			result.IsTruncated = true
			break
		}
		count++
		last = cmp.Or(group, u.key)
		result.NextKeyMarker, result.NextUploadIdMarker = name(last), u.id
		if group != "" {
			result.NextUploadIdMarker = ""
			result.CommonPrefixes = append(result.CommonPrefixes, wire.Prefix{Prefix: name(group)})
			continue
		}
		result.Upload = append(result.Upload, wire.Upload{Key: name(u.key), UploadId: u.id,
			Initiated: wire.Time(u.begun)})
	}
	if !result.IsTruncated {
		result.NextKeyMarker, result.NextUploadIdMarker = "", ""
	}
	return q.xml(result)
}

// listParts lists the parts of an upload, by number.
func (q *request) listParts() *wire.Error {
	size, bad := q.pageSize("max-parts")
	if bad != nil {
		return bad
	}
	var result wire.Parts
	result.Bucket, result.Key, result.UploadId = q.bucket, q.namer()(q.key), q.entry.UploadID
	result.PartNumberMarker, _ = strconv.Atoi(q.URL.Query().Get("part-number-marker"))
	result.MaxParts = size
	s := q.d.store
	s.mu.Lock()
	_, u, bad := q.upload()
	if bad != nil {
		s.mu.Unlock()
		return bad
	}
	for _, n := range u.numbers(result.PartNumberMarker) {
		if len(result.Part) == size {
			result.IsTruncated = true
			break
		}
		p := u.parts[n]
		result.NextPartNumberMarker = n
		result.Part = append(result.Part, wire.StoredPart{PartNumber: n,
			LastModified: wire.Time(p.modified), ETag: p.etag, Size: p.size})
	}
	s.mu.Unlock()
	return q.xml(result)
}
