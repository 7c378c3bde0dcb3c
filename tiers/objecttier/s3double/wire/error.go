package wire

import (
	"encoding/xml"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
)

// Error is what S3 answers when something is wrong, as it writes it.
type Error struct {
	XMLName   xml.Name `xml:"Error"`
	Code      string
	Message   string
	Resource  string `xml:",omitempty"` // path of the request
	Region    string `xml:",omitempty"` // the right one, where the request has another
	RequestID string `xml:"RequestId,omitempty"`
	Status    int    `xml:"-"`
}

// Fail makes an Error. Code is S3's name for it, on which clients decide; Message is for people.
func Fail(status int, code, message string) *Error {
	return &Error{Status: status, Code: code, Message: message}
}

// usual are the codes that come with a status, where there are several the most frequent.
var usual = map[int]string{
	http.StatusForbidden:           "AccessDenied",
	http.StatusNotFound:            "NoSuchKey",
	http.StatusRequestTimeout:      "RequestTimeout",
	http.StatusTooManyRequests:     "SlowDown",
	http.StatusInternalServerError: "InternalError",
	http.StatusServiceUnavailable:  "SlowDown",
	http.StatusInsufficientStorage: "XMinioStorageFull",
}

// UsualCode is the code that comes with a status: for one that S3 has none for, the status in
// words.
func UsualCode(status int) string {
	if code, known := usual[status]; known {
		return code
	}
	return strings.ReplaceAll(http.StatusText(status), " ", "")
}

// ReadError is the answer to a body that could not be read to its end, and false for errors that
// are not the client's: a full disk under the body's file.
func ReadError(err error) (*Error, bool) {
	var chunk errChunk
	var network net.Error
	switch {
	case errors.As(err, &chunk) && chunk == errChunkSignature:
		return Fail(http.StatusForbidden, "SignatureDoesNotMatch", err.Error()), true
	case errors.As(err, &chunk), errors.Is(err, io.ErrUnexpectedEOF), errors.As(err, &network):
		return Fail(http.StatusBadRequest, "IncompleteBody", err.Error()), true
	}
	return nil, false
}
