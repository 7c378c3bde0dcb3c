package params

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kvbench/kvbench/units"
)

// onBucket is what every run on an object store has to say.
var onBucket = []string{"-division=open", "-cache-dir=s3://bucket/some/prefix",
	"-storage-capacity-gb=8"}

func TestABucketHasDefaultsOfItsOwn(t *testing.T) {
	in := Inputs{Bench: bench(t, "BlockTrace")}
	v := good(t, in, onBucket...)
	name, prefix := v.Bucket()
	assert.Equal(t, []string{"bucket", "some/prefix"}, []string{name, prefix})
	assert.Equal(t, ObjectStore{Region: "us-east-1", Addressing: "auto", Balance: "round-robin",
		Payload: "unsigned", MultipartAbove: 64 * units.MiB, PartSize: 32 * units.MiB,
		RangeSize: 32 * units.MiB, Lookup: "none", Keys: "own", Retries: 3,
		Timeout: 30 * time.Second, ConnectTimeout: 5 * time.Second}, v.S3)
	assert.EqualValues(t, 256*units.KiB, v.ChunkSize)
	assert.Equal(t, "default on object stores", v.Origin("chunk-size").String())
	v = good(t, in, append(slices.Clip(onBucket), "-layout=block")...)
	assert.EqualValues(t, 5*units.GiB, v.S3.MultipartAbove)
	assert.Zero(t, v.S3.RangeSize)
	assert.Equal(t, "default with -layout block", v.Origin("s3-range-size").String())
	v = good(t, in, append(slices.Clip(onBucket), "-layout=block", "-s3-range-size=1MiB", "-chunk-size=1MiB")...)
	assert.Equal(t, []int64{units.MiB, units.MiB}, []int64{v.S3.RangeSize, v.ChunkSize})
	// A directory has none of it.
	v = good(t, in, "-division=open", "-cache-dir=/mnt/kv", "-layout=block")
	assert.False(t, v.OnObjects())
	assert.EqualValues(t, units.MiB, v.ChunkSize)
}

func TestWhatABucketIsCalled(t *testing.T) {
	for text, want := range map[string]string{
		"s3://bucket": "s3://bucket", "s3://bucket/": "s3://bucket", "s3://a.b-c/x/": "s3://a.b-c/x",
	} {
		v := good(t, Inputs{}, "-cache-dir="+text, "-storage-capacity-gb=8")
		assert.Equal(t, want, v.CacheDir(), text)
		assert.Equal(t, want, v.Text("cache-dir"), text)
	}
	for text, want := range map[string]string{
		"s3://":               "with a bucket of 3 to 63",
		"s3://kv":             "with a bucket of 3 to 63",
		"s3://Bucket/x":       "with a bucket of 3 to 63",
		"s3:///x":             "with a bucket of 3 to 63",
		"s3://bucket//x":      "without two slashes together",
		"s3://bucket/x//y":    "without two slashes together",
		"s3://bucket/x\ty":    "without control characters",
		"az://container/x":    "a directory or s3://BUCKET/PREFIX, with the address of the store in",
		"gs://bucket":         "https://storage.googleapis.com",
		"https://host/bucket": "in -s3-endpoint, given https://host/bucket (flag)",
		"file:///mnt/kv":      "(file:// is unknown)",
	} {
		texts := wrong(t, Inputs{}, "-cache-dir="+text, "-storage-capacity-gb=8")
		assert.Len(t, texts, 1, text)
		assert.Contains(t, texts[0], want, text)
	}
	// What goes with a bucket is not wrong because its name is.
	v, err := typed(t, "-cache-dir=S3://kv/x", "-s3-lookup=head", "-storage-capacity-gb=8").
		Resolve(Inputs{Bench: bench(t, "BlockTrace")})
	require.ErrorContains(t, err, "with a bucket of 3 to 63")
	bad, _ := Unheard([]*Values{v})
	assert.Empty(t, bad)
}

// Other programs' variables count on an object store, behind the suite's own, and nowhere else.
func TestVariablesOfOtherPrograms(t *testing.T) {
	set := []string{"AWS_REGION", "eu-west-1", "AWS_DEFAULT_REGION", "eu-west-2", "AWS_CA_BUNDLE",
		"/ca.pem", "S3_LOAD_BALANCE_STRATEGY", "least_connections"}
	in := Inputs{Bench: bench(t, "BlockTrace"), Env: environment(set...)}
	v := good(t, in, onBucket...)
	assert.Equal(t, "eu-west-1", v.S3.Region)
	assert.Equal(t, "environment AWS_REGION", v.Origin("s3-region").String())
	assert.Equal(t, "/ca.pem", v.S3.CAFile)
	assert.Equal(t, "least-in-flight", v.S3.Balance)
	assert.Equal(t, "least-in-flight", v.Text("s3-balance"))
	in.Env = environment(append(slices.Clip(set), "KVBENCH_S3_REGION", "eu-north-1")...)
	v = good(t, in, append(slices.Clip(onBucket), "-s3-balance=pin-key")...)
	assert.Equal(t, []string{"eu-north-1", "pin-key"}, []string{v.S3.Region, v.S3.Balance})
	in.Env = environment("S3_LOAD_BALANCE_STRATEGY", "random")
	assert.Contains(t, wrong(t, in, onBucket...)[0], "given random (environment "+
		"S3_LOAD_BALANCE_STRATEGY)")
	v = good(t, in, "-division=open", "-cache-dir=/mnt/kv")
	assert.Equal(t, "round-robin", v.S3.Balance, "a directory has no endpoints")
	bad, notes := Unheard([]*Values{v})
	assert.Empty(t, append(bad, notes...))
}

func TestWhatCannotBeOnABucket(t *testing.T) {
	in := Inputs{Bench: bench(t, "BlockTrace")}
	for arg, want := range map[string]string{
		"-io=direct": "-io: must be absent with -cache-dir s3://…: requests to a store pass no " +
			"page cache, given direct (flag)",
		"-layout=slots":    "-layout: must be entry or block with -cache-dir s3://…",
		"-layout=packed=4": "-layout: must be entry or block with -cache-dir s3://…",
		"-storage-capacity-gb=0": "-storage-capacity-gb: must be given with -cache-dir s3://…: a " +
			"store shows no free space",
		"-s3-range-size=4KiB":   "-s3-range-size: must be 0 or a multiple of 4KiB from 64KiB on",
		"-s3-range-size=65537B": "-s3-range-size: must be 0 or a multiple of 4KiB from 64KiB on",
		"-division=closed":      "-cache-dir: must be a directory in the closed division: MLPerf's",
		"-simulate-device=read=1GiB/s,write=1GiB/s": "-cache-dir: must be absent with -io-trace-log " +
			"and -simulate-device: no store is asked",
	} {
		texts := wrong(t, in, append(slices.Clip(onBucket), arg)...)
		assert.Contains(t, strings.Join(texts, "\n"), want, arg)
	}
	// All of it together, in the order in which it is checked.
	texts := wrong(t, in, append(slices.Clip(onBucket), "-io=buffered", "-layout=slots", "-s3-range-size=1B",
		"-s3-retries=11", "-s3-timeout=1ms")...)
	assert.Len(t, texts, 5)
	// Flags of object stores are for those; sizes and words have their limits: see TestLimits.
	v := good(t, in, "-division=open", "-cache-dir=/mnt/kv", "-s3-lookup=head", "-s3-payload=signed")
	bad, _ := Unheard([]*Values{v})
	assert.Len(t, bad, 2)
	assert.Contains(t, bad[0], "with -cache-dir=s3://*")
	in.Bench = bench(t, "Tier")
	bad, _ = Unheard([]*Values{good(t, in, append(slices.Clip(onBucket), "-s3-lookup=head")...)})
	assert.Len(t, bad, 1, "only requests look anything up")
}
