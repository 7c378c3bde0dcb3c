package report

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"kvbench/kvbench/result"
	"kvbench/kvbench/units"
)

// knee lists the cells of the grid and the knee, and gives matching settings of inference engines.
func knee(r *result.Result) (s Section) {
	if r.PlainIO == nil || r.PlainIO.Knee == nil {
		return s
	}
	k := r.PlainIO.Knee
	s = Section{Title: "Knee", Short: kneeGrid(k),
		Note: "Requests of each size at random places, so many in flight. Rates are medians of " +
			"three short measurements. The knee is the cell with the fewest bytes in flight " +
			"within 5 % of what the best cell reached in each of its measurements.",
		Columns: columns("", units.Bytes, "size", units.Count, "in flight", units.Bytes,
			"bytes in flight", units.BytesPerSec, "rate", "lowest", "highest", units.Nanoseconds,
			"p99", units.Count, "measured", units.Number, "knee")[1:]}
	words := map[string]string{"= ": "equal within the spread", "* ": "best so far"}
	if k.Known() {
		words["* "] = "knee"
	}
	for _, p := range k.Points {
		s.add(p.RequestBytes, int64(p.InFlight), p.Bytes(), p.Rate, p.Min, p.Max, p.P99NS,
			int64(p.Rounds), words[mark(k, p)]) // in words, because a page is read aloud
	}
	s.meaning(r, k)
	return s
}

// mark marks the knee by an asterisk, and by an equals sign the cells that equal it within the spread.
func mark(k *result.Knee, p result.KneePoint) string {
	switch {
	case k.Is(p):
		return "* "
	case slices.Contains(k.Equal(), p):
		return "= "
	}
	return ""
}

// kneeGrid returns the grid for the text, with a row per number in flight and a column per request size.
// A cell has the median and, in brackets, the lowest and the highest measurement, all in one unit.
func kneeGrid(k *result.Knee) *Section {
	type cell struct {
		depth int
		size  int64
	}
	var rates []any
	cells, depths, sizes := map[cell]result.KneePoint{}, map[int]bool{}, map[int64]bool{}
	for _, p := range k.Points {
		cells[cell{p.InFlight, p.RequestBytes}] = p
		depths[p.InFlight], sizes[p.RequestBytes] = true, true
		rates = append(rates, p.Min, p.Rate, p.Max)
	}
	text := units.BytesPerSec.InOneUnit(rates...)
	_, unit, _ := strings.Cut(text(k.Best), " ")
	number := func(v float64) string { return strings.TrimSuffix(text(v), " "+unit) }
	s := &Section{Topic: "grid", Columns: columns("in flight, " + unit)}
	for _, size := range slices.Sorted(maps.Keys(sizes)) {
		s.Columns = append(s.Columns, Column{Name: bytes(size)})
	}
	for _, depth := range slices.Sorted(maps.Keys(depths)) {
		row := []any{fmt.Sprint(depth)}
		for _, size := range slices.Sorted(maps.Keys(sizes)) {
			shown := units.Unknown
			if p, measured := cells[cell{depth, size}]; measured {
				shown = fmt.Sprintf("%s%s (%s–%s)", mark(k, p), number(p.Rate), number(p.Min),
					number(p.Max))
			}
			row = append(row, shown)
		}
		s.add(row...)
	}
	return s
}

// enough is the share of the best cell that an engine's setting has to reach, like the knee.
const enough = 0.95

// meaning reports where the knee is, and what that means in the settings of inference engines. A
// grid that was not measured to its end has no knee, and no settings.
//
// An engine's thread reads or writes one object after the other. So the number of threads is the number
// of requests in flight, and the object size is the request size. The settings and their defaults are
// from the engines' main branches of September 2026.
func (s *Section) meaning(r *result.Result, k *result.Knee) {
	cells := units.Plural(len(k.Points), "cell")
	what := fmt.Sprintf("%d of %s, %s in flight: %s", k.InFlight, bytes(k.RequestBytes),
		bytes(k.Bytes()), rate(k.Rate))
	switch k.EndedBy {
	case result.KneeInterrupted:
		s.line("knee", "not known: the grid was interrupted after %s, with %s measured", ns(k.NS),
			cells)
		return
	case result.KneeTime:
		s.line("knee", "not known: the time was up after %s, before each of %s was measured three "+
			"times", ns(k.NS), cells)
		s.line("", "the window has the best so far, %s in the grid", what)
		return
	}
	s.line("knee", "%s, within 5 %% of the %s that the best cell reached in each measurement; "+
		"p99 %s", what, rate(k.Best), ns(k.P99NS))
	if equal := k.Equal(); len(equal) > 0 {
		s.line("", "equal within the spread (=): %s, %s to %s in flight with the knee",
			units.Plural(len(equal), "other cell"), bytes(min(k.Bytes(), equal[0].Bytes())),
			bytes(max(k.Bytes(), equal[len(equal)-1].Bytes())))
	}
	if last := k.Points[len(k.Points)-1]; 2*k.Bytes() >= last.Bytes() {
		s.line("", "the knee is at the edge of the grid, %s in flight: more may move more",
			bytes(last.Bytes()))
	}
	moved, write := r.StorageTraffic()
	verb, use := "read", "load"
	if moved.Requests == 0 {
		moved, verb, use = write, "write", "store"
	}
	if v := moved.BytesPerSecond; v != nil {
		s.line("", "the window moved %s, %s of the cell's median", rate(*v),
			percent(units.Ratio(*v, k.Rate)))
	}
	s.line("", "%s in %s, each the median of three measurements (lowest to highest) in random "+
		"order, seed %d", cells, ns(k.NS), k.OrderSeed)

	s.put("engines", "as many objects at a time as come within 5 % of the best cell")
	for _, o := range engineObjects {
		s.line("", "%s: %s", o.what, inFlight(k, o.bytes))
	}
	s.line("", "vLLM: n_%s_threads (16), each of which %ss all objects of a request, one after the "+
		"other: as many requests have to %[3]s at once", verb, verb, use)
	settings := "LMCache: num_workers (4)"
	if verb == "read" {
		settings += ", or read_io_depth (0 = off), which is the reads of all its workers together; " +
			"read_max_bytes_in_flight (0 = 1536 MiB): at least 32 MiB for each object at a time"
	}
	s.put("", settings)
	s.put("", "NIXL: the blocks of a batch (16), times the batches in flight: 4 of KVBM's, "+
		"64 blocks")
}

// engineObjects are what engines keep of a model of 128 KiB per token, llama3.1-8b.
var engineObjects = []struct {
	what  string
	bytes int64
}{
	{"objects of 64 KiB, a layer of 16 tokens", 64 << 10},
	{"objects of 2 MiB, 16 tokens of llama3.1-8b, vLLM's", 2 << 20},
	{"objects of 32 MiB, 256 tokens of it, LMCache's", 32 << 20},
}

// inFlight reports how many requests are enough, of the largest size that was measured and is not
// larger than an object. The points are sorted by bytes in flight: those of one size by their number.
func inFlight(k *result.Knee, object int64) string {
	var fastest, last result.KneePoint
	for _, p := range k.Points {
		if p.RequestBytes <= object {
			last.RequestBytes = max(last.RequestBytes, p.RequestBytes)
		}
	}
	for _, p := range k.Points {
		if p.RequestBytes != last.RequestBytes {
			continue
		}
		if last = p; p.Rate > fastest.Rate {
			fastest = p
		}
		if p.Rate >= enough*k.Best {
			return fmt.Sprintf("%d (%s with requests of %s)", p.InFlight, rate(p.Rate),
				bytes(p.RequestBytes))
		}
	}
	if last.InFlight == 0 {
		return "not measured"
	}
	return fmt.Sprintf("none of those measured, which are up to %d; the fastest was %d (%s with "+
		"requests of %s)", last.InFlight, fastest.InFlight, rate(fastest.Rate),
		bytes(fastest.RequestBytes))
}
