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
	info, err := os.Stat(s)
	switch {
	case err == nil && info.IsDir():
		return f.filesIn(s)
	case err == nil:
		return []string{s}, nil
	case !strings.ContainsAny(s, "*?["):
		return nil, fmt.Errorf("trace path: %w", err)
	}
	matches, err := filepath.Glob(s)
	if err != nil {
		return nil, fmt.Errorf("trace path %q as a glob pattern: %w", s, err)
	}
	// A pattern such as * also matches folders, which are no traces.
	matches = slices.DeleteFunc(matches, func(path string) bool {
		info, err := os.Stat(path)
		return err != nil || info.IsDir()
	})
	if len(matches) == 0 {
		return nil, fmt.Errorf("trace path %q matches no file", s)
	}
	slices.Sort(matches)
	return matches, nil
}

// filesIn returns the files of a directory that have one of the extensions.
func (f Format) filesIn(dir string) (paths []string, err error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, fmt.Errorf("trace path: %w", err)
	}
	for _, e := range entries {
		name := strings.ToLower(e.Name())
		matches := func(ext string) bool { return strings.HasSuffix(name, ext) }
		if !e.IsDir() && name[0] != '.' && slices.ContainsFunc(f.Extensions, matches) {
			paths = append(paths, filepath.Join(dir, e.Name()))
		}
	}
	if len(paths) == 0 {
		return nil, fmt.Errorf("trace directory %s holds no file that ends in %s",
			dir, strings.Join(f.Extensions, ", "))
	}
	return paths, nil
}
