//go:build linux && (amd64 || arm64)

package collector

import (
	"reflect"
	"testing"

	"github.com/stretchr/testify/assert"

	"kvbench/tracing/bpf"
)

func TestCountersAreLaidOutAsInTheKernel(t *testing.T) {
	for _, c := range []struct{ here, kernel any }{
		{directionCounts{}, bpf.TraceDirection{}}, {otherCounts{}, bpf.TraceOther{}}, {callCounts{}, bpf.TraceCalls{}},
	} {
		got, want := reflect.TypeOf(c.here), reflect.TypeOf(c.kernel)
		assert.Equal(t, want.Size(), got.Size())
		for f := range got.Fields() {
			w, ok := want.FieldByName(f.Name)
			assert.True(t, ok, "%s.%s", got, f.Name)
			assert.Equal(t, w.Offset, f.Offset, "%s.%s", got, f.Name)
			assert.Equal(t, w.Type, f.Type, "%s.%s", got, f.Name)
		}
	}
}
