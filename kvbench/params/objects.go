package params

import (
	"cmp"
	"errors"
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode"
)

// ObjectStore has the settings for a bucket that CacheDirs name. Sizes are in bytes.
type ObjectStore struct {
	// Address and identity. Endpoint is as it was given: other variables may set it, too.
	Endpoint, Region, Addressing, CAFile string
	Anonymous, SkipVerify                bool

	Balance, Payload                    string
	MultipartAbove, PartSize, RangeSize int64
	Lookup, Keys                        string
	Requests                            int // in flight for entries, 0 = no bound
	Retries                             int
	Timeout, ConnectTimeout             time.Duration
}

// CacheDir is the first directory of the storage tier, or its bucket; "" without one.
func (v *Values) CacheDir() string {
	if len(v.CacheDirs) == 0 {
		return ""
	}
	return v.CacheDirs[0]
}

// bucketScheme begins a cache directory that is a bucket.
const bucketScheme = "s3://"

// OnObjects reports whether the storage tier is an object store.
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

// bucketName is what S3 calls buckets; the store reports the rarer rules (no address, no two
// dots).
var bucketName = regexp.MustCompile(`^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$`)

// parseDirectory reads a directory, or a bucket with a prefix, which the field holds without a slash
// at its end.
func parseDirectory(s string) (any, error) {
	scheme, name, url := strings.Cut(s, "://")
	if !url {
		return path(s), nil
	}
	if !strings.EqualFold(scheme, "s3") {
		return nil, errors.New("a directory or s3://BUCKET/PREFIX, with the address of the store, or of an " +
			"S3 gateway before it, in -s3-endpoint (benchmarks/README.md, Measure an object store)")
	}
	bucket, prefix, _ := strings.Cut(strings.TrimRight(name, "/"), "/")
	switch {
	case !bucketName.MatchString(bucket):
		return nil, errors.New("s3://BUCKET/PREFIX with a bucket of 3 to 63 lower-case " +
			"letters, digits, dots and hyphens")
	case strings.Contains("/"+prefix, "//") || strings.ContainsFunc(prefix, unicode.IsControl):
		return nil, errors.New("s3://BUCKET/PREFIX without control characters and without two slashes " +
			"together in the prefix")
	case slices.Contains(strings.Split(prefix, "/"), ".."), slices.Contains(strings.Split(prefix, "/"), "."):
		return nil, errors.New("s3://BUCKET/PREFIX without . and .. between the slashes of the prefix: a store " +
			"over a filesystem writes outside of such a prefix")
	}
	return strings.TrimRight(bucketScheme+bucket+"/"+prefix, "/"), nil
}

// parseDirectories reads one or several directories that share a storage tier, by comma, or one
// bucket. A comma in a name has a backslash before it: as few names have one, it is not to be taken
// for a list.
func parseDirectories(text string) (any, error) {
	var list []any
	absolute, seen := 0, map[string]bool{}
	for part := range strings.SplitSeq(strings.ReplaceAll(text, `\,`, commaOfName), ",") {
		part = strings.ReplaceAll(strings.TrimSpace(part), commaOfName, ",")
		dir, err := parseDirectory(part)
		switch {
		case err != nil:
			return nil, err
		case part == "":
			return nil, errors.New("directories by comma, none of which is empty")
		// Another name of the same directory is refused when the directory is opened.
		case seen[filepath.Clean(part)]:
			return nil, fmt.Errorf("different directories (%s is there twice)", part)
		case filepath.IsAbs(part) || strings.Contains(part, "://"):
			absolute++
		}
		seen[filepath.Clean(part)] = true
		list = append(list, dir)
	}
	if absolute > 0 && absolute < len(list) { // /data/kv,old is rather one name than two
		return nil, errors.New(`directories that all begin with / or none of them (a comma in a name is \,)`)
	}
	isBucket := func(dir any) bool { _, bucket := dir.(string); return bucket }
	if len(list) > 1 && slices.ContainsFunc(list, isBucket) {
		return nil, errors.New("one s3://BUCKET/PREFIX alone, or directories: a store " +
			"spreads objects by itself, and -s3-endpoint takes several addresses of it")
	}
	return list, nil
}

func formatDirectories(list []string) string {
	list = slices.Clone(list)
	for i, dir := range list {
		list[i] = strings.ReplaceAll(dir, ",", `\,`)
	}
	return strings.Join(list, ",")
}

// commaOfName stands for a comma that separates nothing. No path has a zero byte.
const commaOfName = "\x00"

var balances = oneOf("round-robin", "least-in-flight", "pin-rank", "pin-key")

// parseBalance reads a way to choose among endpoints, in our words or the words of
// S3_LOAD_BALANCE_STRATEGY in the Python benchmark.
func parseBalance(s string) (string, error) {
	ours := map[string]string{"round_robin": "round-robin", "least_connections": "least-in-flight"}
	x, err := balances.parse(cmp.Or(ours[s], s))
	return x.(string), err
}

// others has the variables of other programs that set a parameter. A variable with endpoints may have
// several, see store.FindEndpoints.
var others = map[string][]string{
	"s3-region":  {"AWS_REGION", "AWS_DEFAULT_REGION"},
	"s3-ca-file": {"AWS_CA_BUNDLE"},
	"s3-balance": {"S3_LOAD_BALANCE_STRATEGY"},
}

// onObjects adds the layers of a run on an object store: variables of other programs, and defaults
// that differ there. Engines write and read an object for each of their blocks, whole.
func (r *resolver) onObjects() {
	if !r.v.OnObjects() {
		return
	}
	for name, variables := range others {
		for _, variable := range variables {
			if text := r.in.Env(variable); text != "" {
				r.add(FromEnvironment, variable, name, text)
			}
		}
	}
	// Chunks are not what a request moves: they are the memory that it takes. Parts of checkpoints
	// are acknowledged one by one.
	r.set(FromDefault, " on object stores",
		map[string]string{"chunk-size": "256KiB", "stream-writers": "8"})
	if r.v.Layout == "block" {
		r.add(FromDefault, " with -layout block", "s3-multipart-above", "5GiB")
		r.add(FromDefault, " with -layout block", "s3-range-size", "0B")
	}
}

// EngineName is the model's name in the engines' names of objects.
func (v *Values) EngineName() string {
	if v.Model.Name != "" {
		return v.Model.Name
	}
	return v.Model.Key
}
