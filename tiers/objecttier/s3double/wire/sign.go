package wire

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"
)

// The signature of a request's header, version 4, checked as its description says:
// docs.aws.amazon.com/AmazonS3/latest/API/sig-v4-header-based-auth.html. It is not what clients'
// libraries do turned round: what they get wrong together with it would go unseen.

const (
	algorithm  = "AWS4-HMAC-SHA256"
	timeFormat = "20060102T150405Z"
	// maxSkew is how far a client's clock may be off, as on S3.
	maxSkew = 15 * time.Minute

	emptyDigest = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
)

// authorization is the header of that name, taken apart.
type authorization struct {
	accessKey, date, region, service string
	signed                           []string // headers, in lower case and in order
	signature                        string
}

func (a authorization) scope() string {
	return a.date + "/" + a.region + "/" + a.service + "/aws4_request"
}

// parseAuthorization reads
//
//	AWS4-HMAC-SHA256 Credential=KEY/20261122/us-east-1/s3/aws4_request,
//	SignedHeaders=host;x-amz-date, Signature=0123…
func parseAuthorization(header string) (a authorization, err error) {
	rest, ok := strings.CutPrefix(header, algorithm+" ")
	if !ok {
		return a, fmt.Errorf("the authorization is not %s", algorithm)
	}
	fields := map[string]string{}
	// With or without spaces behind the commas: libraries differ.
	for field := range strings.SplitSeq(rest, ",") {
		name, value, ok := strings.Cut(strings.TrimSpace(field), "=")
		if _, twice := fields[name]; !ok || twice || value == "" {
			return a, fmt.Errorf("field %q of the authorization", field)
		}
		fields[name] = value
	}
	// A key may hold slashes; the four fields behind it do not.
	credential := strings.Split(fields["Credential"], "/")
	n := len(credential)
	if n < 5 || credential[n-1] != "aws4_request" || len(fields) != 3 {
		return a, errors.New("the authorization needs Credential=KEY/DATE/REGION/s3/" +
			"aws4_request, SignedHeaders and Signature, and nothing else")
	}
	a.accessKey = strings.Join(credential[:n-4], "/")
	a.date, a.region, a.service = credential[n-4], credential[n-3], credential[n-2]
	a.signed = strings.Split(fields["SignedHeaders"], ";")
	a.signature = fields["Signature"]
	for _, name := range a.signed {
		if name == "" || name != strings.ToLower(name) {
			return a, fmt.Errorf("signed header %q", name)
		}
	}
	switch {
	case !slices.IsSorted(a.signed):
		return a, errors.New("the signed headers are not in order")
	case len(a.signature) != 2*sha256.Size:
		return a, fmt.Errorf("a signature of %d digits", len(a.signature))
	}
	return a, nil
}

// Signer checks the chunks of a body that is signed piece by piece.
type Signer struct {
	key         []byte
	date, scope string
	last        string // the signature before
}

// Keys are what requests have to be signed with.
type Keys struct {
	AccessKey, SecretKey string
	// Token is that of temporary keys; "" = none.
	Token, Region string
	// Anonymous: requests without a signature are admitted, too.
	Anonymous bool
}

// Check says who sent a request and that nobody changed its header. The error is what S3 answers.
// The Signer is nil where nothing was signed.
func (k Keys) Check(r *http.Request, now time.Time) (*Signer, *Error) {
	header := r.Header.Get("Authorization")
	if header == "" {
		if k.Anonymous {
			return nil, nil
		}
		return nil, Fail(http.StatusForbidden, "AccessDenied", "Access Denied.")
	}
	a, err := parseAuthorization(header)
	if err != nil {
		return nil, Fail(http.StatusBadRequest, "AuthorizationHeaderMalformed", err.Error())
	}
	date := r.Header.Get("X-Amz-Date")
	when, err := time.Parse(timeFormat, date)
	switch {
	case err != nil || !strings.HasPrefix(date, a.date+"T"):
		return nil, Fail(http.StatusForbidden, "AccessDenied",
			"AWS authentication requires a valid Date or x-amz-date header")
	case a.accessKey != k.AccessKey:
		return nil, Fail(http.StatusForbidden, "InvalidAccessKeyId",
			"The AWS Access Key Id you provided does not exist in our records.")
	case a.region != k.Region || a.service != "s3":
		e := Fail(http.StatusBadRequest, "AuthorizationHeaderMalformed", fmt.Sprintf(
			"The authorization header is malformed; the region '%s' is wrong; expecting '%s'",
			a.region, k.Region))
		e.Region = k.Region
		return nil, e
	}
	if skew := now.Sub(when); skew > maxSkew || skew < -maxSkew {
		return nil, Fail(http.StatusForbidden, "RequestTimeTooSkewed", "The difference "+
			"between the request time and the current time is too large.")
	}
	if !slices.Contains(a.signed, "host") {
		return nil, Fail(http.StatusForbidden, "AccessDenied", "The host is not signed.")
	}
	for name := range r.Header { // what is not signed could have been added on the way
		name = strings.ToLower(name)
		if strings.HasPrefix(name, "x-amz-") && !slices.Contains(a.signed, name) {
			return nil, Fail(http.StatusForbidden, "AccessDenied", "There were headers present "+
				"in the request which were not signed: "+name)
		}
	}
	switch token := r.Header.Get("X-Amz-Security-Token"); {
	case token == k.Token: // both may be empty
	case k.Token == "":
		return nil, Fail(http.StatusBadRequest, "InvalidToken",
			"The provided token is malformed or otherwise invalid.")
	default: // a temporary key without its token is not known
		return nil, Fail(http.StatusForbidden, "InvalidAccessKeyId",
			"The AWS Access Key Id you provided does not exist in our records.")
	}
	key := signingKey(k.SecretKey, a)
	// The comparison takes the same time wherever they differ; not that it mattered here, but who
	// copies this may need it.
	digest := sha256.Sum256([]byte(canonical(r, a.signed)))
	want := sign(key, algorithm+"\n"+date+"\n"+a.scope()+"\n"+hex.EncodeToString(digest[:]))
	if !hmac.Equal([]byte(want), []byte(a.signature)) {
		return nil, Fail(http.StatusForbidden, "SignatureDoesNotMatch", "The request signature "+
			"we calculated does not match the signature you provided. Check your key and signing "+
			"method.")
	}
	return &Signer{key: key, date: date, scope: a.scope(), last: a.signature}, nil
}

// chunk checks the signature of one chunk of a body, of which it gets the digest. Each covers the
// one before it, so that chunks can neither be left out nor change places.
func (s *Signer) chunk(digest []byte, signature string) bool {
	s.last = sign(s.key, algorithm+"-PAYLOAD\n"+s.date+"\n"+s.scope+"\n"+s.last+"\n"+emptyDigest+
		"\n"+hex.EncodeToString(digest))
	return hmac.Equal([]byte(s.last), []byte(signature))
}

func signingKey(secret string, a authorization) []byte {
	// A chain of keys, each of which is good for less: a day, a region, a service.
	key := []byte("AWS4" + secret)
	for _, part := range []string{a.date, a.region, a.service, "aws4_request"} {
		key = hmacOf(key, part)
	}
	return key
}

func hmacOf(key []byte, text string) []byte {
	h := hmac.New(sha256.New, key)
	h.Write([]byte(text))
	return h.Sum(nil)
}

func sign(key []byte, text string) string { return hex.EncodeToString(hmacOf(key, text)) }

// canonical is the request as it is signed: method, path, query, the signed headers, their names,
// and what the header says of the payload, a line each.
func canonical(r *http.Request, signed []string) string {
	var b strings.Builder
	b.WriteString(r.Method + "\n" + escape(r.URL.Path, true) + "\n" +
		canonicalQuery(r.URL.Query()) + "\n")
	for _, name := range signed {
		values := slices.Clone(r.Header.Values(name))
		switch name { // net/http keeps these elsewhere
		case "host":
			values = []string{r.Host}
		case "content-length": // signed by some clients
			values = []string{fmt.Sprint(r.ContentLength)}
		}
		for i, v := range values {
			values[i] = strings.Join(strings.Fields(v), " ")
		}
		b.WriteString(name + ":" + strings.Join(values, ",") + "\n")
	}
	b.WriteString("\n" + strings.Join(signed, ";") + "\n" + r.Header.Get("X-Amz-Content-Sha256"))
	return b.String()
}

// canonicalQuery sorts by names as they are escaped, then by values. A name without a value gets an
// equals sign: ?uploads is signed as uploads=.
func canonicalQuery(query url.Values) string {
	var all []string
	// Order is that of the escaped names: what comes in is a map.
	for name, values := range query {
		for _, v := range values {
			all = append(all, escape(name, false)+"="+escape(v, false))
		}
	}
	slices.Sort(all)
	return strings.Join(all, "&")
}

// escape is percent-encoding as signatures want it: all but letters, digits and -._~, in capitals,
// and no + for a space. Neither function of net/url does so; a slash stays one in paths.
func escape(text string, path bool) string {
	var b strings.Builder
	for i := range len(text) {
		switch c := text[i]; {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9',
			c == '-', c == '.', c == '_', c == '~', c == '/' && path:
			b.WriteByte(c)
		default:
			fmt.Fprintf(&b, "%%%02X", c)
		}
	}
	return b.String()
}
