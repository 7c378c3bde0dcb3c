package wire

import (
	"encoding/xml"
	"time"
)

// The documents of answers, with the elements that clients read. Their names and order are those of
// docs.aws.amazon.com/AmazonS3/latest/API; the namespace is one for all, and stands at the root.

// Time is how documents write one: in UTC with milliseconds. Headers have whole seconds.
type Time time.Time

// MarshalText writes it.
func (t Time) MarshalText() ([]byte, error) {
	return []byte(time.Time(t).UTC().Format("2006-01-02T15:04:05.000Z")), nil
}

// Prefix stands in a list for all keys that begin with it.
type Prefix struct{ Prefix string }

// Listing is a page of ListObjectsV2.
type Listing struct {
	XMLName               xml.Name `xml:"http://s3.amazonaws.com/doc/2006-03-01/ ListBucketResult"`
	Name, Prefix          string
	Delimiter             string `xml:",omitempty"`
	EncodingType          string `xml:",omitempty"`
	StartAfter            string `xml:",omitempty"`
	ContinuationToken     string `xml:",omitempty"`
	NextContinuationToken string `xml:",omitempty"`
	// KeyCount is how many objects and prefixes are below, at most MaxKeys.
	KeyCount, MaxKeys int
	IsTruncated       bool // there are more, behind NextContinuationToken
	Contents          []Content
	CommonPrefixes    []Prefix
}

// Content is one object of a Listing.
type Content struct {
	Key          string // escaped where EncodingType is url
	LastModified Time
	ETag         string // with its quotes
	Size         int64  // in bytes
	StorageClass string
}

// Uploads is a page of ListMultipartUploads, by key and then by id. The next one begins behind both
// markers.
type Uploads struct {
	XMLName                   xml.Name `xml:"http://s3.amazonaws.com/doc/2006-03-01/ ListMultipartUploadsResult"`
	Bucket, Prefix, Delimiter string
	EncodingType              string `xml:",omitempty"`
	KeyMarker, UploadIdMarker string
	NextKeyMarker             string `xml:",omitempty"`
	NextUploadIdMarker        string `xml:",omitempty"`
	MaxUploads                int
	IsTruncated               bool
	Upload                    []Upload
	CommonPrefixes            []Prefix
}

// Upload is one of Uploads.
type Upload struct {
	Key, UploadId string
	Initiated     Time
}

// Parts is a page of ListParts, by number. The next one begins behind NextPartNumberMarker.
type Parts struct {
	XMLName               xml.Name `xml:"http://s3.amazonaws.com/doc/2006-03-01/ ListPartsResult"`
	Bucket, Key, UploadId string
	PartNumberMarker      int
	NextPartNumberMarker  int `xml:",omitempty"`
	MaxParts              int
	IsTruncated           bool
	Part                  []StoredPart
}

// StoredPart is one of Parts.
type StoredPart struct {
	PartNumber   int
	LastModified Time
	ETag         string
	Size         int64
}

// Initiated answers the creation of an upload.
type Initiated struct {
	XMLName               xml.Name `xml:"http://s3.amazonaws.com/doc/2006-03-01/ InitiateMultipartUploadResult"`
	Bucket, Key, UploadId string
}

// Completed answers its completion. An Error may stand in its place, with the same status.
type Completed struct {
	XMLName                     xml.Name `xml:"http://s3.amazonaws.com/doc/2006-03-01/ CompleteMultipartUploadResult"`
	Location, Bucket, Key, ETag string
}

// Deleted answers a batch delete. What is in neither list has been deleted quietly.
type Deleted struct {
	XMLName xml.Name `xml:"http://s3.amazonaws.com/doc/2006-03-01/ DeleteResult"`
	Deleted []struct{ Key string }
	Error   []struct{ Key, Code, Message string }
}

// Location is the region of a bucket, "" for us-east-1, which has no name here.
type Location struct {
	XMLName xml.Name `xml:"http://s3.amazonaws.com/doc/2006-03-01/ LocationConstraint"`
	Region  string   `xml:",chardata"`
}

// Versioning is Enabled, Suspended, or never asked for: "". In the first two a deleted object
// goes on to take space, and to cost.
type Versioning struct {
	XMLName xml.Name `xml:"http://s3.amazonaws.com/doc/2006-03-01/ VersioningConfiguration"`
	Status  string   `xml:",omitempty"`
}
