package s3double

import (
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"kvbench/tiers/objecttier/s3double/wire"
)

// upload finds the upload that a request is about. The store must be locked.
func (q *request) upload() (*bucket, *upload, *wire.Error) {
	b := q.d.store.buckets[q.bucket]
	u := b.uploads[q.entry.UploadID]
	if u == nil || u.key != q.key {
		return b, nil, wire.Fail(http.StatusNotFound, "NoSuchUpload", "The specified upload does "+
			"not exist. The upload ID may be invalid, or the upload may have been aborted or "+
			"completed.")
	}
	return b, u, nil
}

// create begins an upload. Only lists of uploads show it, for ever if nobody ends it: what a killed
// client leaves.
func (q *request) create() *wire.Error {
	u := &upload{id: newID(), key: q.key, header: objectHeader(q.Header), parts: map[int]*part{}}
	s := q.d.store
	s.mu.Lock()
	u.begun = s.now()
	s.buckets[q.bucket].uploads[u.id] = u
	s.mu.Unlock()
	q.d.log.note(func() { q.entry.UploadID = u.id })
	return q.xml(wire.Initiated{Bucket: q.bucket, Key: q.key, UploadId: u.id})
}

// putPart stores a part, in any order, in the place of one of the same number.
func (q *request) putPart() *wire.Error {
	if q.entry.Part < 1 || q.entry.Part > wire.MaxParts {
		return wire.Fail(http.StatusBadRequest, "InvalidArgument",
			"Part number must be an integer between 1 and 10000, inclusive")
	}
	s := q.d.store
	s.mu.Lock()
	_, _, err := q.upload()
	s.mu.Unlock()
	if err != nil {
		return err
	}
	body, err := q.receive()
	if err != nil {
		return err
	}
	p := &part{piece: body, etag: newETag()}
	s.mu.Lock()
	_, u, err := q.upload() // it may have been aborted meanwhile
	if err == nil {
		// A client that did not hear of the first attempt sends the part again.
		if old := u.parts[q.entry.Part]; old != nil {
			s.unlink(old.piece)
		}
		p.modified = s.now()
		u.parts[q.entry.Part] = p
	}
	s.mu.Unlock()
	if err != nil {
		s.unlink(body)
		return err
	}
	q.tag(p.etag)
	if body.checksum[0] != "" {
		q.out.Header().Set(body.checksum[0], body.checksum[1])
	}
	q.out.WriteHeader(http.StatusOK)
	return nil
}

// complete makes an object of the named parts; the others go. On S3 it may fail after its 200 has
// been sent; here everything is checked before, and Error200 plays that.
func (q *request) complete() *wire.Error {
	reader, payload, err := q.body()
	if err != nil {
		return err
	}
	text, failed := io.ReadAll(io.LimitReader(reader, 4<<20))
	if failed != nil {
		return wire.Fail(http.StatusBadRequest, "IncompleteBody", failed.Error())
	}
	if err := payload.Check(); err != nil {
		return err
	}
	named, err := wire.ParseComplete(text)
	if err != nil {
		return err
	}
	s := q.d.store
	s.mu.Lock()
	o, err := q.assemble(named)
	s.mu.Unlock()
	if err != nil {
		return err
	}
	etag := o.etag
	if q.fault.Kind == WrongETag {
		etag = newETag()
	}
	return q.xml(wire.Completed{Location: q.endpoint.URL() + q.URL.Path, Bucket: q.bucket,
		Key: q.key, ETag: etag})
}

// assemble is complete with the store locked. The tag ends in the number of parts, by which some
// clients tell that it is no digest.
func (q *request) assemble(named []wire.Part) (*object, *wire.Error) {
	b, u, err := q.upload()
	if err != nil {
		return nil, err
	}
	if err := q.conditionsLocked(); err != nil {
		return nil, err
	}
	o := &object{header: u.header}
	for i, n := range named {
		p := u.parts[n.PartNumber]
		switch {
		case p == nil || strings.Trim(p.etag, `"`) != strings.Trim(n.ETag, `"`):
			return nil, wire.Fail(http.StatusBadRequest, "InvalidPart", "One or more of the "+
				"specified parts could not be found. The part may not have been uploaded, or the "+
				"specified entity tag may not match the part's entity tag.")
		case i < len(named)-1 && p.size < q.d.config.MinPart:
			return nil, wire.Fail(http.StatusBadRequest, "EntityTooSmall",
				"Your proposed upload is smaller than the minimum allowed size")
		}
		o.body = append(o.body, p.piece)
		o.size += p.size
	}
	for _, n := range named {
		delete(u.parts, n.PartNumber) // those that are left go with the upload
	}
	o.etag = strings.TrimSuffix(newETag(), `"`) + "-" + strconv.Itoa(len(named)) + `"`
	q.d.store.drop(b, u.id)
	q.d.store.set(b, q.key, o)
	return o, nil
}

// abort drops an upload with its parts. A part that is on its way finds no upload when it arrives,
// where S3 would keep it: real stores want to be asked until a list of parts is empty.
func (q *request) abort() *wire.Error {
	s := q.d.store
	s.mu.Lock()
	b, u, err := q.upload()
	if err == nil {
		s.drop(b, u.id)
	}
	s.mu.Unlock()
	if err != nil {
		return err
	}
	q.out.WriteHeader(http.StatusNoContent)
	return nil
}

// numbers are those of an upload's parts behind one, in order.
func (u *upload) numbers(behind int) (all []int) {
	for n := range u.parts {
		if n > behind {
			all = append(all, n)
		}
	}
	slices.Sort(all)
	return all
}
