package main

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"golang.org/x/perf/benchunit"

	"kvbench/tools/history"
	"kvbench/tools/load"
	"kvbench/tools/view/html"
)

// runHistory adds the results of a commit to a file, or shows the file. Both are one command,
// because who looks for one of them needs the other. Flags that one of them alone has are refused
// with the other, rather than overlooked.
func runHistory(c *Call) error {
	commit, machine := c.String("commit", "", ""), c.String("machine", "", "")
	metrics, out := c.String("metric", "", ""), c.String("o", "", "")
	var alpha float64
	c.Float64Var(&alpha, "alpha", 0.05, "")
	rest, err := c.parse()
	switch {
	case err != nil:
		return err
	case len(rest) < 2 || rest[0] != "add" && rest[0] != "show":
		return errors.New("say what to do with which file: kvreport history add FILE -commit C " +
			"IN…, or kvreport history show FILE")
	case rest[0] == "add" && (*commit == "" || len(rest) < 3):
		return errors.New("add needs -commit C and results, for example: kvreport history add " +
			"history.jsonl -commit $(git rev-parse HEAD) results")
	case rest[0] == "add" && (*metrics != "" || *out != ""):
		return errors.New("-metric and -o are for show: add keeps all metrics")
	case rest[0] == "show" && (len(rest) > 2 || *commit != "" || *machine != ""):
		return errors.New("show has one file, and neither -commit nor -machine")
	case !(alpha > 0 && alpha < 1):
		return fmt.Errorf("-alpha: must be between 0 and 1, given %g", alpha)
	}
	// The file is named before the inputs, as it is the same every time, and what follows differs.
	path := rest[1]
	if rest[0] == "add" {
		list, err := history.Entries(*commit, *machine, rest[2:],
			load.Options{Stdin: c.stdin, Warn: c.warn})
		if err != nil {
			return err
		}
		return history.Add(path, list)
	}
	// A file that is not there is an empty history for add, which begins one, and a mistake here.
	list, err := history.ReadFile(path)
	if err == nil && len(list) == 0 {
		err = fmt.Errorf("%s: there is no history in it", path)
	}
	if err != nil {
		return err
	}
	// What is looked at together shares the level: a metric that is named makes the others' changes
	// a little harder to prove.
	all := history.Arrange(list, tidied(*metrics), alpha)
	// The table is for a terminal and a log of CI, the page for people who want to see a trend.
	if *out == "" {
		_, err = io.WriteString(c.stdout, history.Text(all))
		return err
	}
	return writeFile(*out, func(w io.Writer) error { return html.WritePage(w, history.Page(all)) })
}

// tidied are the units of a list as benchfmt has them: read-p95-ns is read-p95-sec inside.
func tidied(list string) (units []string) {
	for name := range strings.SplitSeq(list, ",") {
		if name != "" {
			_, unit := benchunit.Tidy(1, strings.TrimSpace(name))
			units = append(units, unit)
		}
	}
	return units
}
