package params

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestBucket(t *testing.T) {
	in := Inputs{Bench: bench(t, "BlockTrace")}
	v := good(t, in, "-division=open", "-cache-dir=s3://bucket/some/prefix", "-storage-capacity-gb=8")
	name, prefix := v.Bucket()
	assert.Equal(t, []string{"bucket", "some/prefix"}, []string{name, prefix})
	// What goes with a bucket is not wrong because its name is.
	v, err := typed(t, "-cache-dir=S3://kv/x", "-s3-lookup=head", "-storage-capacity-gb=8").
		Resolve(Inputs{Bench: bench(t, "BlockTrace")})
	require.ErrorContains(t, err, "with a bucket of 3 to 63")
	bad, _ := Unused([]*Values{v})
	assert.Empty(t, bad)
}
