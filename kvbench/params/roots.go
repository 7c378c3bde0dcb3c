package params

import (
	"errors"
	"os"
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
	isBucket := func(dir any) bool { _, is := dir.(string); return is }
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

// roots checks several directories of one storage tier.
func (r *resolver) roots() {
	v := r.v
	if len(v.CacheDirs) < 2 || v.Simulated() || v.refused["cache-dir"] {
		return
	}
	for i, dir := range v.CacheDirs {
		for _, other := range v.CacheDirs[:i] {
			a, b := real(other), real(dir)
			switch {
			case sameDir(a, b):
				r.refuse("cache-dir", "different directories (%s is the same directory as %s)", dir,
					other)
			case liesIn(a, b):
				r.refuse("cache-dir", "separate directories (%s is inside of %s)", other, dir)
			case liesIn(b, a):
				r.refuse("cache-dir", "separate directories (%s is inside of %s)", dir, other)
			}
		}
	}
}

// sameDir reports whether two paths lead to one directory, or would: by a bind mount as well, whose
// paths do not show it.
func sameDir(a, b string) bool {
	for {
		one, errA := os.Stat(a)
		other, errB := os.Stat(b)
		if errA == nil && errB == nil {
			return os.SameFile(one, other)
		}
		if filepath.Base(a) != filepath.Base(b) {
			return false
		}
		a, b = filepath.Dir(a), filepath.Dir(b)
	}
}

// liesIn reports whether a directory is another one or lies below it, by names or by a bind mount.
func liesIn(dir, other string) bool {
	for ; !sameDir(dir, other); dir = filepath.Dir(dir) {
		if dir == filepath.Dir(dir) {
			return false
		}
	}
	return true
}

// real is a path with the symbolic links of its existing part resolved.
func real(dir string) string {
	rest := ""
	for at := filepath.Clean(dir); ; at = filepath.Dir(at) {
		if to, err := filepath.EvalSymlinks(at); err == nil || at == filepath.Dir(at) {
			if err != nil {
				to = at
			}
			return filepath.Join(to, rest)
		}
		rest = filepath.Join(filepath.Base(at), rest)
	}
}
