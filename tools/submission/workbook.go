package submission

import (
	"archive/zip"
	"bytes"
	"cmp"
	"io"
	"regexp"
	"slices"

	"kvbench/tools/load"
	"kvbench/tools/stats"
	"kvbench/tools/view/xlsx"
)

// contentTypes is the part of a workbook that lists the others. Its writer does so in the order of a Go map, which differs
// from run to run; the order means nothing.
const contentTypes = "[Content_Types].xml"

var listed = regexp.MustCompile(`<(?:Default|Override)\s[^>]*>(?:</(?:Default|Override)>)?`)

// writeWorkbook writes the same bytes for the same results: a second call must not look like a change.
func writeWorkbook(w io.Writer, records []*load.Record, t *stats.Table) error {
	var b bytes.Buffer
	if err := xlsx.Write(&b, records, t); err != nil {
		return err
	}
	in, err := zip.NewReader(bytes.NewReader(b.Bytes()), int64(b.Len()))
	if err != nil {
		return err
	}
	slices.SortFunc(in.File, func(a, b *zip.File) int { return cmp.Compare(a.Name, b.Name) })
	out := zip.NewWriter(w)
	for _, f := range in.File {
		part, err := f.Open()
		if err != nil {
			return err
		}
		data, err := io.ReadAll(part)
		if err := cmp.Or(err, part.Close()); err != nil {
			return err
		}
		if f.Name == contentTypes {
			data = sortList(data)
		}
		to, err := out.Create(f.Name)
		if err != nil {
			return err
		}
		if _, err := to.Write(data); err != nil {
			return err
		}
	}
	return out.Close()
}

// sortList puts the elements of the content types in order.
func sortList(data []byte) []byte {
	places := listed.FindAllIndex(data, -1)
	items := listed.FindAll(data, -1)
	slices.SortFunc(items, bytes.Compare)
	var out []byte
	last := 0
	for i, at := range places {
		out = append(append(out, data[last:at[0]]...), items[i]...)
		last = at[1]
	}
	return append(out, data[last:]...)
}
