package submission

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"kvbench/kvbench/result"
	"kvbench/tools/command"
)

// manifestName is the list of checksums at the top of the tree, as sha256sum -c reads it. It also marks a directory as
// one that this command may add to.
const manifestName = "SHA256SUMS"

// publish makes the submission at p.out. The tree is built beside it and moved there when it is whole: with a broken input
// or a full disk p.out stays as it was. What stands in p.out already is kept: other systems and runs, and a system
// description, which its owner has filled in. A run of the same name is replaced when it differs. kept tells whether a
// description was there.
func (p *plan) publish() (kept bool, err error) {
	parent := filepath.Dir(filepath.Clean(p.out))
	if err := checkTarget(p.out); err != nil {
		return false, err
	}
	stage, err := os.MkdirTemp(parent, ".submission-*")
	if err != nil {
		return false, fmt.Errorf("build the submission beside %s: %w", p.out, err)
	}
	defer os.RemoveAll(stage)
	fresh, old := filepath.Join(stage, "new"), filepath.Join(stage, "old")
	for _, dir := range []string{fresh, old} {
		if err := os.Mkdir(dir, 0o755); err != nil {
			return false, err
		}
	}
	if err := p.build(fresh); err != nil {
		return false, err
	}
	if _, err := os.Stat(p.out); errors.Is(err, fs.ErrNotExist) {
		if err := writeManifest(fresh); err != nil {
			return false, err
		}
		return false, os.Rename(fresh, p.out)
	}
	if kept, err = merge(fresh, p.out, old); err != nil {
		return kept, err
	}
	return kept, writeManifest(p.out)
}

// checkTarget refuses to write into a directory that holds something else.
func checkTarget(out string) error {
	entries, err := os.ReadDir(out)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return err
	case len(entries) == 0:
		return nil
	}
	if _, err := os.Stat(filepath.Join(out, manifestName)); err != nil {
		return fmt.Errorf("%s is neither empty nor a submission tree (it has no %s): name another directory", out, manifestName)
	}
	return nil
}

// merge moves the units of a tree into another: each run's directory and each description as a whole.
func merge(from, to, old string) (kept bool, err error) {
	var units []string
	err = filepath.WalkDir(from, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, _ := filepath.Rel(from, path)
		isRun := d.IsDir() && filepath.Base(filepath.Dir(path)) == "run"
		if isRun || !d.IsDir() {
			units = append(units, rel)
		}
		if isRun {
			return filepath.SkipDir
		}
		return nil
	})
	if err != nil {
		return false, err
	}
	for i, rel := range units {
		source, target := filepath.Join(from, rel), filepath.Join(to, rel)
		_, statErr := os.Stat(target)
		switch {
		case errors.Is(statErr, fs.ErrNotExist):
			if err := os.MkdirAll(filepath.Dir(target), 0o755); err != nil {
				return kept, err
			}
		case statErr != nil:
			return kept, statErr
		case strings.HasSuffix(rel, ".yaml"):
			kept = true
			continue
		default:
			same, err := sameTree(source, target)
			if err != nil {
				return kept, err
			}
			if same {
				continue
			}
			if err := os.Rename(target, filepath.Join(old, fmt.Sprint(i))); err != nil {
				return kept, err
			}
		}
		if err := os.Rename(source, target); err != nil {
			if statErr == nil {
				err = errors.Join(err, os.Rename(filepath.Join(old, fmt.Sprint(i)), target))
			}
			return kept, err
		}
	}
	return kept, nil
}

// sameTree tells whether two directories hold the same files with the same bytes.
func sameTree(a, b string) (bool, error) {
	x, err := sums(a)
	if err != nil {
		return false, err
	}
	y, err := sums(b)
	return slices.Equal(x, y), err
}

// sums lists "checksum  path" of all files below dir but its manifest, by path.
func sums(dir string) ([]string, error) {
	var list []string
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		rel, err := filepath.Rel(dir, path)
		if err != nil || rel == manifestName {
			return err
		}
		f, err := os.Open(path)
		if err != nil {
			return err
		}
		defer f.Close()
		h := sha256.New()
		if _, err := io.Copy(h, f); err != nil {
			return err
		}
		list = append(list, fmt.Sprintf("%x  %s", h.Sum(nil), filepath.ToSlash(rel)))
		return nil
	})
	return list, err
}

// writeManifest lists the checksums of a tree at its top.
func writeManifest(dir string) error {
	list, err := sums(dir)
	if err != nil {
		return err
	}
	var b bytes.Buffer
	fmt.Fprintf(&b, "# %s\n# sha256sum -c %s\n", result.ClosedNotice, manifestName)
	for _, line := range list {
		fmt.Fprintln(&b, line)
	}
	path := filepath.Join(dir, manifestName)
	if have, err := os.ReadFile(path); err == nil && bytes.Equal(have, b.Bytes()) {
		return nil
	}
	return command.WriteFile(path, func(w io.Writer) error {
		_, err := w.Write(b.Bytes())
		return err
	})
}
