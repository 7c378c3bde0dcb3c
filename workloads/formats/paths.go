package formats

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Files returns the files that a file name, a directory or a glob pattern means, sorted. Of a
// directory it takes those with one of the format's extensions, neither hidden ones nor
// subdirectories.
func (f Format) Files(s string) ([]string, error) {
	if s == "" {
		return nil, errors.New("trace path is empty: give a file, a directory or a glob pattern")
	}
	var paths []string
	none := fmt.Errorf("trace path %q matches no file", s)
	info, err := os.Stat(s)
	switch {
	case err == nil && info.IsDir():
		paths, err = f.filesIn(s)
		none = fmt.Errorf("trace directory %s holds no file that ends in %s",
			s, strings.Join(f.Extensions, ", "))
	case err == nil:
		return []string{s}, nil
	case strings.ContainsAny(s, "*?["):
		paths, err = filepath.Glob(s)
	}
	if err != nil {
		return nil, fmt.Errorf("trace path %q: %w", s, err)
	}
	// Folders match a pattern such as *, and may be called like a trace. What is neither here nor
	// there, such as a link into nothing, is said when it is opened.
	paths = slices.DeleteFunc(paths, func(path string) bool {
		info, err := os.Stat(path)
		return err == nil && info.IsDir()
	})
	if len(paths) == 0 {
		return nil, none
	}
	slices.Sort(paths)
	return paths, nil
}

// filesIn returns what a directory has with one of the extensions.
func (f Format) filesIn(dir string) (paths []string, err error) {
	entries, err := os.ReadDir(dir)
	for _, e := range entries {
		name := strings.ToLower(e.Name())
		matches := func(ext string) bool { return strings.HasSuffix(name, ext) }
		if name[0] != '.' && slices.ContainsFunc(f.Extensions, matches) {
			paths = append(paths, filepath.Join(dir, e.Name()))
		}
	}
	return paths, err
}
