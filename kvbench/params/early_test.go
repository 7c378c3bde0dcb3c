package params

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

// TestIOTimeoutIsKnownBeforeAnyFile, as far as the command line and the environment tell it.
func TestIOTimeoutIsKnownBeforeAnyFile(t *testing.T) {
	in := Inputs{Base: "/base", Env: func(name string) (string, bool) {
		return "7s", name == "KVBENCH_IO_TIMEOUT"
	}}
	for _, c := range []struct {
		in   Inputs
		args []string
		want time.Duration
	}{
		{Inputs{Base: "/base"}, nil, 0},
		{in, nil, 7 * time.Second},
		{in, []string{"-io-timeout=2s"}, 2 * time.Second},
		{in, []string{"-io-timeout=soon"}, 7 * time.Second}, // which is refused later
		{Inputs{Base: "/base"}, []string{"-config=/none", "-io-timeout=2s"}, 2 * time.Second},
	} {
		assert.Equal(t, c.want, typed(t, c.args...).IOTimeout(c.in), c.args)
	}
}
