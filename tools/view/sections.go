package view

import (
	"slices"
	"strings"

	"kvbench/kvbench/report"
	"kvbench/kvbench/result"
	"kvbench/kvbench/units"
)

// Sections are the summary's tables of a result, with names for page and workbook. There rows are
// sorted and filtered, so the name of a part begins with the name of its whole, and a column that
// belongs to the count before it begins with that count's name.
func Sections(r *result.Result) (all []report.Table) {
	for _, t := range report.Sections(r) {
		all = append(all, everywhere(t))
	}
	return all
}

// everywhere names the columns and rows of a table of the text.
func everywhere(t report.Table) report.Table {
	times := map[string]int{}
	for _, c := range t.Columns {
		times[c.Text]++
	}
	// The heading of the first column is about the result: how many requests, compared with what.
	t.Words = nil
	if said := strings.TrimSpace(t.Columns[0].Text); slices.Contains(saying, t.Sheet) {
		t.Words = []string{said}
	}
	group, columns := "", slices.Clone(t.Columns)
	for i, c := range columns {
		name := strings.TrimSpace(c.Text)
		if c.Unit == units.Count {
			group = name
		}
		if times[c.Text] > 1 {
			name = group + " " + name
		}
		columns[i].Page, columns[i].Sheet = name, name+sheetUnits[c.Unit]
	}
	columns[0].Page, columns[0].Sheet = " ", "Of"
	rows := make([][]any, len(t.Rows))
	var whole []string
	for i, row := range t.Rows {
		name, _ := row[0].(string)
		depth := (len(name) - len(strings.TrimLeft(name, " "))) / 2
		whole = append(whole[:min(depth, len(whole))], strings.TrimSpace(name))
		rows[i] = append([]any{strings.Join(whole, ", ")}, row[1:]...)
	}
	t.Columns, t.Rows = columns, rows
	return t
}

// saying are the sheets whose heading has more than the kind of the rows.
var saying = []string{"Time To Load", "Latency By Size", "Request Time", "First Token"}

// sheetUnits are the units of values in the workbook, which stand in the heads.
var sheetUnits = map[units.Unit]string{units.Nanoseconds: " (ms)", units.Bytes: " (GiB)",
	units.BytesPerSec: " (GiB/s)", units.Seconds: " (s)", units.Milliseconds: " (ms)"}

// details reports whether a page folds a table away: the tables of the summary that are not about
// what users got, and those of a trace.
func details(sheet string) bool {
	return !slices.Contains([]string{"Load Served", "First Token", "Time To Load"}, sheet)
}
