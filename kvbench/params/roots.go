package params

import (
	"cmp"
	"errors"
	"path/filepath"
	"slices"
	"strings"
)

// parseDirectories reads one or several directories that share a storage tier, by comma, or one
// bucket. A comma in a name has a backslash before it: as few names have one, it is not to be taken
// for a list.
func parseDirectories(text string) (any, error) {
	var list []any
	absolute := 0
	for part := range strings.SplitSeq(strings.ReplaceAll(text, `\,`, commaOfName), ",") {
		part = strings.ReplaceAll(strings.TrimSpace(part), commaOfName, ",")
		dir, err := parseDirectory(part)
		switch {
		case err != nil:
			return nil, err
		case part == "":
			return nil, errors.New("directories by comma, none of which is empty")
		case filepath.IsAbs(part) || strings.Contains(part, "://"):
			absolute++
		}
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

// roots checks several directories of one storage tier, by the names that they have without links. A bind
// mount of a directory in use is refused when the directory is opened.
func (r *resolver) roots() {
	if len(r.v.CacheDirs) < 2 || r.v.Simulated() || r.v.refused["cache-dir"] {
		return
	}
	for i, dir := range r.v.CacheDirs {
		for _, other := range r.v.CacheDirs[:i] {
			outer, inner := other, dir
			if len(real(outer)) > len(real(inner)) {
				outer, inner = inner, outer
			}
			switch {
			case real(outer) == real(inner):
				r.refuse("cache-dir", "different directories (%s is the same directory as %s)", dir,
					other)
			case strings.HasPrefix(real(inner), strings.TrimSuffix(real(outer), "/")+"/"):
				r.refuse("cache-dir", "separate directories (%s is inside of %s)", inner, outer)
			}
		}
	}
}

// real is a path with the symbolic links of its existing part resolved.
func real(dir string) string {
	dir = filepath.Clean(dir)
	to, err := filepath.EvalSymlinks(dir)
	if parent := filepath.Dir(dir); err != nil && parent != dir {
		return filepath.Join(real(parent), filepath.Base(dir))
	}
	return cmp.Or(to, dir)
}
