package expfmttest

import (
	"bytes"
	"os"
	"slices"
	"strings"
	"testing"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
)

func read(t *testing.T, name string) string {
	t.Helper()
	data, err := os.ReadFile("../testdata/" + name)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// TestPrometheusReadsIt: each family has its type and all its series.
func TestPrometheusReadsIt(t *testing.T) {
	parser := expfmt.NewTextParser(model.LegacyValidation)
	families, err := parser.TextToMetricFamilies(strings.NewReader(read(t, "plain.txt")))
	if err != nil {
		t.Fatal(err)
	}
	if len(families) < 20 {
		t.Fatalf("%d families", len(families))
	}
	var own bytes.Buffer
	for name, f := range families {
		counter := strings.HasSuffix(name, "_total")
		if counter != (f.GetType() == dto.MetricType_COUNTER) || f.GetHelp() == "" {
			t.Errorf("%s: %v, %q", name, f.GetType(), f.GetHelp())
		}
		// What the same families are in OpenMetrics, Prometheus' library knows: its text must be
		// ours.
		if name == "kvbench_build_info" {
			continue // an info there, of which the library knows nothing
		}
		if _, err := expfmt.MetricFamilyToOpenMetrics(&own, f); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	lines := func(text string) (list []string) {
		for line := range strings.Lines(text) {
			if !strings.HasPrefix(line, "# UNIT") && !strings.HasPrefix(line, "# EOF") &&
				!strings.Contains(line, "kvbench_build") {
				// The library writes whole numbers of floats with a fraction.
				list = append(list, strings.TrimSuffix(strings.TrimSpace(line), ".0"))
			}
		}
		slices.Sort(list)
		return list
	}
	want, got := lines(own.String()), lines(read(t, "openmetrics.txt"))
	if !slices.Equal(want, got) {
		t.Errorf("want:\n%s\ngot:\n%s", strings.Join(want, "\n"), strings.Join(got, "\n"))
	}
}
