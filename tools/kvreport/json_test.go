package main

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kvbench/tools/golden"
)

func TestJSONOutput(t *testing.T) {
	code, out, errs := call("", "json", "../load/testdata/bench.txt",
		"../load/testdata/events.json")
	assert.Equal(t, Done, code)
	golden.Check(t, "json/text.stderr", errs)
	// The embedded result file is golden in its own package.
	var doc map[string]any
	require.NoError(t, json.Unmarshal([]byte(out), &doc))
	for _, r := range doc["results"].([]any) {
		if m := r.(map[string]any); m["result"] != nil {
			m["result"] = "embedded"
		}
	}
	text, err := json.MarshalIndent(doc, "", " ")
	require.NoError(t, err)
	golden.Check(t, "json/text.json", string(text)+"\n")
}
