package report

import (
	"cmp"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"kvbench/kvbench/result"
	"kvbench/kvbench/units"
)

// Section is a part of a report: lines of text and a table. Text, HTML page and workbook have the same
// sections with the same names. They differ in the format of values.
type Section struct {
	Title   string // above it on the page; the name of its sheet in the workbook
	Topic   string // in the margin of the text
	Lines   []Line // above the table
	Columns []Column
	Rows    [][]any  // a cell for each column: what [units.Float] accepts, or a text
	Short   *Section // what the text prints instead of a table that is too long for a screen
	Below   []string // sentences below the table
	Note    string   // below the table of the page
	Folded  bool     // on the page it is folded away below the figures
	place   int      // in the order of reading; sections of other packages follow
}

// Line is one fact with its topic; a line without a topic continues the one before.
type Line struct{ Topic, Text string }

// Column is a column of a table. Text and page write the unit with every value: 900 ms and 1.20 s are
// easier to compare than 0.900 and 1.200 s. The workbook writes the unit in the heading. The names of a
// table's columns are unique. The first column has the names of the rows.
type Column struct {
	Name string
	Unit units.Unit
}

// Sections returns the sections of a result in the order of the report, without sections that do not
// apply.
func Sections(r *result.Result) []Section {
	all := append(slices.Concat(groups(r)...), stalls(r), failures(r))
	for i := range all {
		all[i].place = i - len(all)
	}
	return slices.DeleteFunc(all, func(s Section) bool { return len(s.Lines)+len(s.Rows) == 0 })
}

// groups are the sections between which the text has an empty line: what ran; what the storage did;
// how long things took, from a single entry to a context; what the cache did, and for which
// requests; what it cost, and what the kernel counted in the same window.
func groups(r *result.Result) [][]Section {
	all := [][]Section{{simulation(r), clients(r), autoscaling(r), settings(r), checkpoints(r),
		replay(r), knee(r)},
		{verdict(r), plain(r), blockIO(r), sizes(r)},
		{latencies(r), requestTime(r), contexts(r), objects(r), endpoints(r),
			firstTokens(r)},
		{tiers(r), moved(r), roots(r), prompts(r), blocks(r), blocksOverTime(r), policy(r),
			validation(r), served(r)},
		{harness(r), kernel(r), cards(r)}}
	if r.WindowNS <= 0 { // it failed before there was anything to measure
		for _, group := range all[1:] {
			clear(group)
		}
	}
	return all
}

// Joined merges the sections of several results that have the same title. It has all their lines,
// columns and rows, and the index of the result of each line and row.
type Joined struct {
	Section
	LineOf, RowOf []int // indexes of results
}

// Join joins the sections of several results that have the same title, in the order of reading.
func Join(all [][]Section) (list []Joined) {
	for of, sections := range all {
		for _, s := range sections {
			i := slices.IndexFunc(list, func(j Joined) bool { return j.Title == s.Title })
			if i < 0 {
				i = len(list)
				list = append(list, Joined{Section: Section{Title: s.Title, Note: s.Note,
					Folded: s.Folded, place: s.place}})
			}
			list[i].add(of, s)
		}
	}
	slices.SortStableFunc(list, func(a, b Joined) int { return cmp.Compare(a.place, b.place) })
	return list
}

// add adds the section of a result. Cells of columns that the section does not have are empty.
func (j *Joined) add(of int, s Section) {
	for _, l := range s.Lines {
		j.Lines, j.LineOf = append(j.Lines, l), append(j.LineOf, of)
	}
	place := make([]int, len(s.Columns))
	for i, c := range s.Columns {
		if place[i] = slices.Index(j.Columns, c); place[i] < 0 {
			place[i] = len(j.Columns)
			j.Columns = append(j.Columns, c)
			for k := range j.Rows {
				j.Rows[k] = append(j.Rows[k], "")
			}
		}
	}
	for _, cells := range s.Rows {
		row := slices.Repeat([]any{""}, len(j.Columns))
		for i, v := range cells {
			row[place[i]] = v
		}
		j.Rows, j.RowOf = append(j.Rows, row), append(j.RowOf, of)
	}
}

// columns makes columns: a unit holds for the names after it. Most tables have a few units for many
// columns, which stand in groups. The first column names its row.
func columns(first string, others ...any) []Column {
	all := []Column{{Name: first}}
	unit := units.Number
	for _, v := range others {
		if u, ok := v.(units.Unit); ok {
			unit = u
		} else {
			all = append(all, Column{v.(string), unit})
		}
	}
	return all
}

// add appends a row, with a cell for each column. A text in a column of numbers stays as it is.
func (s *Section) add(row ...any) { s.Rows = append(s.Rows, row) }

// some adds a row, unless n is 0.
func (s *Section) some(name string, n int64, others ...any) {
	if n > 0 {
		s.add(append([]any{name, n}, others...)...)
	}
}

// row makes a table of one row: names with their values. A unit holds for the names after it.
func (s *Section) row(list ...any) {
	unit, name := units.Number, ""
	values := []any{}
	for _, v := range list {
		if u, ok := v.(units.Unit); ok {
			unit = u
		} else if name == "" {
			name = v.(string)
		} else {
			s.Columns = append(s.Columns, Column{name, unit})
			values, name = append(values, v), ""
		}
	}
	s.add(values...)
}

// put adds a line, unless its text is empty.
func (s *Section) put(topic, text string) {
	if text != "" {
		s.Lines = append(s.Lines, Line{topic, text})
	}
}

func (s *Section) line(topic, format string, args ...any) {
	s.put(topic, fmt.Sprintf(format, args...))
}

// trim removes columns, from one on, in which every row is zero: activities that the load does not
// have. An unknown value is no zero.
func (s *Section) trim(from int) {
	for c := len(s.Columns) - 1; c >= from; c-- {
		if slices.ContainsFunc(s.Rows, func(row []any) bool { return row[c] != int64(0) }) {
			continue
		}
		s.Columns = slices.Delete(s.Columns, c, c+1)
		for i := range s.Rows {
			s.Rows[i] = slices.Delete(s.Rows[i], c, c+1)
		}
	}
}

// String is the section as text: its lines, which are not wrapped, because a terminal does that and
// a golden file shows the changed line, and below them its table. The topic stands in the margin of
// the first line, which all sections of a summary share.
func (s Section) String() string { return s.text(12, math.MaxInt) }

// Alone is a section that stands alone as text, below a line with its topic. Its table is at most 100 columns
// wide: where it would be wider, names are broken after a slash or space.
func (s Section) Alone() string {
	if s.Topic == "" {
		return s.text(0, 100)
	}
	topic := s.Topic + "\n"
	s.Topic = ""
	return topic + s.text(2, 98)
}

// text is the section as text, with a margin and a table of at most so many columns.
func (s Section) text(margin, most int) string {
	var b strings.Builder
	topic := s.Topic
	put := func(own, text string) {
		text = strings.ReplaceAll(text, "\n", "\n"+strings.Repeat(" ", margin))
		fmt.Fprintf(&b, "%-*s%s\n", margin, cmp.Or(own, topic), text)
		topic = ""
	}
	for _, l := range s.Lines {
		put(l.Topic, l.Text)
	}
	if s.Short != nil {
		return b.String() + s.Short.text(margin, most)
	}
	for _, line := range s.table(most) {
		put("", line)
	}
	for _, text := range s.Below {
		put("", text)
	}
	return b.String()
}

// Markdown is the table in Markdown, and below it the sentences as a list. As in the text, the first column is
// aligned left, the others right.
func (s Section) Markdown() string {
	var b strings.Builder
	heads, rule := []any{}, []any{"---"}
	for _, c := range s.Columns {
		heads, rule = append(heads, c.Name), append(rule, "---:")
	}
	escape := strings.NewReplacer("|", `\|`, "\n", " ")
	for _, row := range slices.Concat([][]any{heads, rule[:len(heads)]}, s.Rows) {
		for i, v := range row {
			b.WriteString("| " + escape.Replace(s.Columns[i].Unit.Text(v)) + " ")
		}
		b.WriteString("|\n")
	}
	return b.String() + strings.Join(append([]string{""}, s.Below...), "\n- ") + "\n"
}

// leastName is the width of the first column in a table that is too wide, as for StorageCeiling/.
const leastName = 16

// table returns the lines of the table. A column is as wide as its widest cell. The first column is
// aligned left, the others right. Without rows there is no heading.
func (s Section) table(most int) (lines []string) {
	if len(s.Rows) == 0 {
		return nil
	}
	// Bytes are compared within the table: all of a table have one unit, and so have its rates.
	values := map[units.Unit][]any{}
	for i, c := range s.Columns {
		for _, row := range s.Rows {
			values[c.Unit] = append(values[c.Unit], row[i])
		}
	}
	names, others := []string{}, make([]string, len(s.Rows)+1)
	width := 0 // of the first column
	for i, c := range slices.Backward(s.Columns) {
		format := c.Unit.InOneUnit(values[c.Unit]...)
		names, width = []string{c.Name}, 0
		for _, row := range s.Rows {
			names = append(names, format(row[i]))
		}
		for _, cell := range names {
			width = max(width, utf8.RuneCountInString(cell))
		}
		for k, cell := range names {
			if i > 0 {
				others[k] = fmt.Sprintf("  %*s", width, cell) + others[k]
			}
		}
	}
	width = min(width, max(leastName, most-utf8.RuneCountInString(others[0])))
	for k, name := range names {
		pieces := broken(name, width)
		lines = append(lines, strings.TrimRight(fmt.Sprintf("%-*s%s", width, pieces[0], others[k]), " "))
		for _, piece := range pieces[1:] {
			lines = append(lines, "  "+piece)
		}
	}
	return lines
}

// nameParts matches the parts of a name after which it may be broken.
var nameParts = regexp.MustCompile(`[^/ ]*[/ ]?`)

// broken breaks a name after slashes and spaces into pieces of at most so many letters. A longer part is cut
// in the middle.
func broken(name string, width int) (pieces []string) {
	for _, part := range nameParts.FindAllString(name, -1) {
		last := len(pieces) - 1
		if last >= 0 && utf8.RuneCountInString(pieces[last]+part) <= width {
			pieces[last] += part
		} else {
			pieces = append(pieces, units.Shorten(part, width))
		}
	}
	return pieces
}
