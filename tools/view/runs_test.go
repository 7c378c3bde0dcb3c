package view

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"kvbench/kvbench/result"
	"kvbench/tools/load"
	"kvbench/tools/stats"
)

// Of many values six are listed; given parameters are listed completely, because each may matter.
func TestEveryGivenParameterIsShown(t *testing.T) {
	var f facts
	for i := range 9 {
		f.add(Given, fmt.Sprint("p=", i))
		f.add("seed", fmt.Sprint(i))
	}
	assert.Equal(t, 8, strings.Count(f[0].Value(), ", "))
	assert.Contains(t, f[1].Value(), "5, and 3 more")
}

// Each client of a trial may be on a machine of its own: the page lists all of them.
func TestTheMachinesOfClients(t *testing.T) {
	client := func(host string) *load.Record {
		return &load.Record{Result: &result.Result{Environment: result.Environment{Hostname: host,
			Cores: 8, CPUModel: "EPYC"}, IO: result.IO{CacheDir: "/mnt/kv"}}}
	}
	shown := func(rec *load.Record) map[string]string {
		values := map[string]string{}
		for _, f := range Describe(rec) {
			values[f.Key] = f.Value()
		}
		return values
	}
	together := client("")
	together.Ranks = []*load.Record{client("node0"), client("node1")}
	of := shown(together)
	assert.Equal(t, []string{"node0, node1", "EPYC, 8 cores", "/mnt/kv"},
		[]string{of["host"], of["CPU"], of["cache directory"]})
	merged := client("")
	merged.Result.Clients = &result.Clients{Hosts: []result.Host{{Name: "a"}, {Name: "b"}}}
	assert.Equal(t, "a, b", shown(merged)["host"])
}

// Medians of runs next to each other are in one unit: 995 MiB/s looks like more than 1.01 GiB/s.
func TestMediansOfRunsHaveOneUnit(t *testing.T) {
	var cells []stats.Cell
	for _, v := range []float64{995 << 20, 1034 << 20} {
		c := stats.Cell{Side: stats.Side{Values: []float64{v}}}
		c.Summary.Center, c.Summary.Lo, c.Summary.Hi = v, math.Inf(-1), math.Inf(1)
		cells = append(cells, c)
	}
	assert.Equal(t, "0.972 GiB/s", Median(cells[0], "read-B/s", cells).Text)
	assert.Equal(t, "1.01 GiB/s", Median(cells[1], "read-B/s", cells).Text)
	assert.Equal(t, "995 MiB/s", Median(cells[0], "read-B/s", cells[:1]).Text)
	assert.Equal(t, Median(cells[0], "x", nil).Text, Median(cells[0], "x", cells).Text)
}
