package params

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestAutoscalingRefusesWhatItCannotWorkWith(t *testing.T) {
	for _, args := range [][]string{
		{"-request-rate", "5"}, {"-max-requests", "5"}, {"-io-trace-log", "x.csv"},
	} {
		messages := wrong(t, Inputs{Bench: bench(t, "AutoscaleQoS")}, args...)
		require.Len(t, messages, 1, args)
		assert.Contains(t, messages[0], "-enable-autoscaling")
	}
	v := good(t, Inputs{Bench: bench(t, "AutoscaleCapacity")}, "-io-trace-log", "x.csv",
		"-simulate-device", "read=1GiB,write=1GiB")
	assert.True(t, v.Autoscaling)
	assert.Equal(t, "capacity", v.AutoscalerMode)
	messages := wrong(t, Inputs{Bench: bench(t, "MaxStorageStress")}, "-division", "closed",
		"-enable-autoscaling")
	assert.Contains(t, messages[0], "closed division")
}
