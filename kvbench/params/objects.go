package params

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
	"time"

	"kvbench/kvbench/units"
)

// ObjectStore is how a bucket is used that CacheDirs name; sizes are bytes.
type ObjectStore struct {
	// Where it is, and who asks. Endpoint is as it was given: the environment may say it, too.
	Endpoint, Region, Addressing, CAFile string
	Anonymous, SkipVerify                bool

	Balance, Payload                    string
	MultipartAbove, PartSize, RangeSize int64
	Lookup, Keys                        string
	Requests                            int // under way for entries, 0 = as many as there are
	Retries                             int
	Timeout, ConnectTimeout             time.Duration
}

// CacheDir is the first directory of the storage tier, or its bucket; "" where nobody gave one.
func (v *Values) CacheDir() string {
	if len(v.CacheDirs) == 0 {
		return ""
	}
	return v.CacheDirs[0]
}

// bucketScheme begins a cache directory that is a bucket.
const bucketScheme = "s3://"

// OnObjects tells whether the storage tier is an object store.
func (v *Values) OnObjects() bool { return strings.HasPrefix(v.CacheDir(), bucketScheme) }

// Bucket is the bucket of the storage tier and the prefix in it, without slashes at its ends; both
// are empty where the tier is a directory.
func (v *Values) Bucket() (bucket, prefix string) {
	if !v.OnObjects() {
		return "", ""
	}
	bucket, prefix, _ = strings.Cut(strings.TrimPrefix(v.CacheDir(), bucketScheme), "/")
	return bucket, prefix
}

// bucketName is what S3 calls buckets; the rarer rules (no address, no two dots) are the store's to
// tell.
var bucketName = regexp.MustCompile(`^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$`)

// schemes are what people write whose objects are reached otherwise.
var schemes = map[string]string{
	"az": "Azure's own interface is not spoken",
	"gs": "Google's own interface is not spoken: its S3 interface is " +
		"https://storage.googleapis.com, with HMAC keys",
	"https": "", "http": "",
}

// storage is a directory, or a bucket with a prefix, which the field holds without a slash at its
// end.
func storage(to *string, base string) kind[string] {
	return text(to, func(s string) (string, error) {
		scheme, rest, url := strings.Cut(s, "://")
		if !url { // filepath.Join would make a directory of a URL, s3:/bucket
			return path(to, base).parse(s)
		}
		scheme = strings.ToLower(scheme) // as in any URL
		why, known := schemes[scheme]
		switch {
		case scheme == "s3":
		case known:
			return "", errors.New("a directory or s3://BUCKET/PREFIX, with the address of the " +
				"store in -s3-endpoint" + strings.TrimSuffix(" ("+why+")", " ()"))
		default:
			return "", fmt.Errorf("a directory or s3://BUCKET/PREFIX (%s:// is unknown)", scheme)
		}
		bucket, prefix, _ := strings.Cut(strings.TrimRight(rest, "/"), "/")
		switch {
		case !bucketName.MatchString(bucket):
			return "", errors.New("s3://BUCKET/PREFIX with a bucket of 3 to 63 lower-case " +
				"letters, digits, dots and hyphens")
		case strings.HasPrefix(prefix, "/") || strings.Contains(prefix, "//"):
			return "", errors.New("s3://BUCKET/PREFIX without two slashes together in the prefix")
		case strings.ContainsFunc(prefix, func(r rune) bool { return r < ' ' || r == 0x7f }):
			return "", errors.New("s3://BUCKET/PREFIX without control characters")
		}
		return strings.TrimRight(bucketScheme+bucket+"/"+prefix, "/"), nil
	})
}

// balances are the words for S3_LOAD_BALANCE_STRATEGY in the Python benchmark, and ours.
var balances = strings.NewReplacer("round_robin", "round-robin", "least_connections",
	"least-in-flight")

// balance is a way to choose among endpoints, in our words or those of the Python benchmark.
func balance(to *string) kind[string] {
	ours := oneOf(to, "round-robin", "least-in-flight", "pin-rank", "pin-key")
	return text(to, func(s string) (string, error) { return ours.parse(balances.Replace(s)) })
}

// others are the variables of other programs that say the same as a parameter. That of the
// endpoints is more than one text: see package endpoint.
var others = map[string][]string{
	"s3-region":  {"AWS_REGION", "AWS_DEFAULT_REGION"},
	"s3-ca-file": {"AWS_CA_BUNDLE"},
	"s3-balance": {"S3_LOAD_BALANCE_STRATEGY"},
}

// foreign lists those of them that are set, for a run on an object store: every other run would be
// told of variables that it does not hear.
func (r *resolver) foreign(name string) (variables []string) {
	if !r.v.OnObjects() {
		return nil
	}
	for _, variable := range others[name] {
		if r.in.env(variable) != "" {
			variables = append(variables, variable)
		}
	}
	return variables
}

// ofObjects is the default of a parameter on an object store, where it is another one there, and
// what makes it so.
func (r *resolver) ofObjects(name string) (text, why string) {
	v := r.v
	if !v.OnObjects() {
		return "", ""
	}
	// Pieces are not what a request moves: they are the memory that it takes.
	switch name {
	case "chunk-size":
		return "256KiB", " on object stores"
	case "stream-writers": // of parts, which are acknowledged one by one
		return "8", " on object stores"
	}
	// Engines write and read an object for each of their blocks, whole.
	if v.Layout == "block" {
		why = " with -layout block"
		switch name {
		case "s3-multipart-above":
			return "5GiB", why
		case "s3-range-size":
			return "0B", why
		}
	}
	return "", ""
}

// smallestRange is the smallest -s3-range-size but 0: below it a read is requests and little else.
const smallestRange = 64 * units.KiB

const overNetwork = "absent with -cache-dir s3://…: requests to a store go over the network"

// objects checks what the storage tier cannot be, or must have, on an object store.
func (r *resolver) objects() {
	v := r.v
	if !v.OnObjects() || v.Simulated() || v.row("cache-dir").refused ||
		v.Bench.Checkpoints() { // which refuses them itself
		return
	}
	r.want(v.Division != Closed, "cache-dir", "a directory in the closed division: MLPerf's KV "+
		"cache rules take objects only through a file gateway")
	r.want(v.StorageBytes > 0, "storage-capacity-gb", "given with -cache-dir s3://…: a store shows "+
		"no free space")
	r.want(!v.Typed("io"), "io", "absent with -cache-dir s3://…: requests to a store pass no page "+
		"cache")
	r.want(!v.Typed("io-engine"), "io-engine", overNetwork)
	r.want(!v.Typed("io-timeout"), "io-timeout", "absent with -cache-dir s3://…, which has "+
		"-s3-timeout")
	r.want(v.Layout == "entry" || v.Layout == "block", "layout",
		"entry or block with -cache-dir s3://…: a store writes no part of an object")
	n := v.S3.RangeSize
	r.want(n == 0 || n >= smallestRange && n%4096 == 0, "s3-range-size",
		"0 or a multiple of 4KiB from "+units.FormatSize(smallestRange)+" on")
	r.want(v.S3.Keys == "own" || v.TensorParallel < 256, "s3-keys", fmt.Sprintf("own with %d "+
		"tensor parallel ranks: the number is a byte in the engines' names", v.TensorParallel))
	r.want(v.S3.Keys == "own" || !strings.Contains(v.EngineName(), "@"), "s3-keys",
		"own with a model that has an @ in its name, by which the engines' names are told apart")
}

// EngineName is the model's name as engines have it in those of objects.
func (v *Values) EngineName() string {
	if v.Model.Name != "" {
		return v.Model.Name
	}
	return v.Model.Key
}
