package ranking

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"kvbench/kvbench/report"
	"kvbench/kvbench/units"
)

// Write writes all rankings, with an empty line before each.
func Write(w io.Writer, list []*Ranking) error {
	for _, k := range list {
		if _, err := fmt.Fprintf(w, "\n%s", k); err != nil {
			return err
		}
	}
	return nil
}

// String is the table and what it means: first what its order is worth, then row by row in what it
// differs from the better one beside it, last what all rows together lack.
func (k *Ranking) String() string {
	var b strings.Builder
	say := func(format string, args ...any) {
		fmt.Fprintf(&b, "%-11s %s\n", "", fmt.Sprintf(format, args...))
	}
	if k.Where != "" {
		fmt.Fprintf(&b, "%-11s %s\n", "at", k.Where)
	}
	b.WriteString(k.table().String())
	say("found tok/s: tokens of prompts that were found ÷ seconds, the median of %s; order: the "+
		"same in %d of %d rounds", k.trials(), k.Same, k.Rounds)
	// Said first: it takes back what the order of rows says. Not an excuse but the rule: with
	// so few trials even the largest difference has a p value of more than one in twenty.
	if k.TooFew {
		say("No difference is shown: %s of each cannot show any between %d rows, however large it "+
			"is; -count %d could", k.trials(), len(k.Rows), k.Needed)
	} else {
		say("places: those that are left open by the differences shown (every pair compared, p < "+
			"%g for all together)", alpha)
	}
	if slices.ContainsFunc(k.Rows, func(row *Row) bool {
		return units.OrZero(row.facts.memory)+units.OrZero(row.facts.unwritten) > apartShare
	}) {
		say("from memory, kept in it: of the bytes that were read and written, those that the " +
			"device did not see in the window, as the page cache had them")
	}
	// What differs need not be why: it is where to look, and what to change alone.
	for i, row := range k.Rows[1:] {
		better := k.Rows[i]
		shown := ""
		// Places that overlap do not tell: of four rows two may be shown to differ and nothing
		// else, which leaves the better one three places and the other one, too.
		if !k.TooFew && !slices.Contains(row.above, better) {
			shown = ", no difference shown"
		}
		why := strings.Join(differences(row.facts, better.facts), ", ")
		if why == "" {
			why = "nothing that was counted differs by much"
		}
		say("%s, %s%s: %s", row.Name, ratio(row, better), shown, why)
	}
	for _, n := range k.notes {
		say("%s", n)
	}
	return b.String()
}

// table is a row for each engine. The device's columns are empty where nothing witnessed it, as on
// tmpfs and on object stores.
func (k *Ranking) table() report.Table {
	t := report.Table{Topic: "ranking"}
	// Texts and shares that are no numbers stand as they are, so a unit is that of numbers alone.
	for _, c := range []struct {
		name string
		unit units.Unit
	}{
		{"", units.Number}, {"places", units.Number}, {"found tok/s", units.Count},
		{"least", units.Count}, {"most", units.Count}, {"ahead", units.Number},
		{"found", units.Share}, {"object", units.Bytes}, {"a read", units.Bytes},
		{"in flight", units.Number}, {"at the device", units.Number}, {"flushes/s", units.Number},
		{"looking up", units.Share}, {"from memory", units.Share}, {"kept in it", units.Share},
		{"verdict", units.Number},
	} {
		t.Columns = append(t.Columns, report.Column{Text: c.name + " ", Unit: c.unit})
	}
	for i, row := range k.Rows {
		ahead := units.Unknown // of whom
		if i < len(k.Rows)-1 {
			ahead = fmt.Sprintf("%d of %d", row.Ahead, k.Rounds)
		}
		f, values := row.facts, row.Found.Values
		// Of so few trials the range says more than an interval, which would be infinite below six.
		least, most := values[0], values[0]
		for _, v := range values {
			least, most = min(least, v), max(most, v)
		}
		t.Rows = append(t.Rows, []any{row.Name, places(row), row.Median, least, most, ahead,
			f.found, f.object, f.size, tenths(f.inFlight), tenths(f.atDevice), tenths(f.flushes),
			f.lookup, f.memory, f.unwritten, f.verdicts})
	}
	return t
}

// tenths is a mean that nobody needs more digits of.
func tenths(v *float64) string {
	if v == nil {
		return units.Unknown
	}
	return fmt.Sprintf("%.1f", *v)
}

// places are those left open: 2, or 1–3.
func places(row *Row) string {
	if row.First == row.Last {
		return fmt.Sprint(row.First)
	}
	return fmt.Sprintf("%d–%d", row.First, row.Last)
}

// trials is how many each row has, or from how few to how many.
func (k *Ranking) trials() string {
	if k.Trials[0] < k.Trials[1] {
		return fmt.Sprintf("%d–%d trials", k.Trials[0], k.Trials[1])
	}
	return units.Plural(k.Trials[0], "trial")
}

// ratio is how a row compares with a better one.
func ratio(row, better *Row) string {
	if better.Median <= 0 {
		return "as little as " + better.Name + ", nothing"
	}
	return fmt.Sprintf("%.2f of %s", row.Median/better.Median, better.Name)
}
