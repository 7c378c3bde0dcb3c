package params

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
)

// parseDirectories reads one or several directories that share a storage tier, by comma, or one
// bucket. A comma in a name has a backslash before it: as few names have one, it is not to be taken
// for a list.
func parseDirectories(text string) (any, error) {
	var list []any
	absolute, seen := 0, map[string]bool{}
	for part := range strings.SplitSeq(strings.ReplaceAll(text, `\,`, commaOfName), ",") {
		part = strings.ReplaceAll(strings.TrimSpace(part), commaOfName, ",")
		dir, err := parseDirectory(part)
		switch {
		case err != nil:
			return nil, err
		case part == "":
			return nil, errors.New("directories by comma, none of which is empty")
		// Another name of the same directory is refused when the directory is opened.
		case seen[filepath.Clean(part)]:
			return nil, fmt.Errorf("different directories (%s is there twice)", part)
		case filepath.IsAbs(part) || strings.Contains(part, "://"):
			absolute++
		}
		seen[filepath.Clean(part)] = true
		list = append(list, dir)
	}
	if absolute > 0 && absolute < len(list) { // /data/kv,old is rather one name than two
		return nil, errors.New(`directories that all begin with / or none of them (a comma ` +
			`in a name is \,)`)
	}
	isBucket := func(dir any) bool { _, bucket := dir.(string); return bucket }
	if len(list) > 1 && slices.ContainsFunc(list, isBucket) {
		return nil, errors.New("one s3://BUCKET/PREFIX alone, or directories: a store " +
			"spreads objects by itself, and -s3-endpoint takes several addresses of it")
	}
	return list, nil
}

func formatDirectories(list []string) string {
	list = slices.Clone(list)
	for i, dir := range list {
		list[i] = strings.ReplaceAll(dir, ",", `\,`)
	}
	return strings.Join(list, ",")
}

// commaOfName stands for a comma that separates nothing. No path has a zero byte.
const commaOfName = "\x00"
