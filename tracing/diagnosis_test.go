package tracing

import (
	"encoding/json"
	"testing"

	"github.com/cockroachdb/datadriven"
	"github.com/stretchr/testify/require"

	"kvbench/tools/golden"
)

// TestDiagnosis runs testdata/diagnoses. In a second a device completed 1000 reads of 1 MiB, which took
// 10 ms each; lines change this trace (golden.Changed). The arguments are the bytes that the application
// read, and remote.
func TestDiagnosis(t *testing.T) {
	device, err := json.Marshal(&Trace{Capture: Capture{Status: StatusTraced, Filter: FilterDevice,
		Device: "nvme0n1", WindowNS: 1e9, IdleKnown: true,
		Read: Direction{Requests: 1000, Bytes: 1000 << 20, D2CNS: 1000 * 10e6, MeanDepth: 10}}})
	require.NoError(t, err)
	datadriven.RunTest(t, "testdata/diagnoses", func(t *testing.T, d *datadriven.TestData) string {
		var tr Trace
		var app Application
		require.NoError(t, json.Unmarshal(golden.Changed(t, device, d.Input), &tr))
		d.MaybeScanArgs(t, "read", &app.ReadBytes)
		app.Remote = d.HasArg("remote")
		return tr.Diagnosis(app) + "\n"
	})
}
