package submission

import (
	"archive/tar"
	"bytes"
	"crypto/md5"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"kvbench/kvbench/result"
)

// hashAlgorithm is the name of the hash over the code image, as the checker and rule 2.1.6 require it.
const hashAlgorithm = "md5-tree-v2"

// codeHash is the content of .code-hash.json. The keys have the order of Rules.md 2.1.6.
type codeHash struct {
	Hash       string `json:"hash"` // over all paths and contents, sorted by path
	Algorithm  string `json:"algorithm"`
	CapturedAt string `json:"captured_at"` // UTC, whole seconds, ending in Z
	Version    string `json:"mlpstorage_version"`
	GitSHA     string `json:"git_sha"`
}

// Directories and files that the hash and the image leave out, at any depth: files of development
// tools, build outputs and tests. The checker has the same list. inImage also leaves out *.egg-info.
var (
	leftOutDirs = strings.Fields(".git .idea .vscode .claude .agent .agents .roo .planning " +
		".gsd-tmp __pycache__ .pytest_cache .venv node_modules build dist .tox test tests")
	leftOutFiles = strings.Fields(".code-hash.json *.pyc *.pyo .DS_Store Thumbs.db")
)

// inImage reports whether the image has the file. name is the slash-separated path in the source.
func inImage(name string) bool {
	dirs := strings.Split(name, "/")
	for _, d := range dirs[:len(dirs)-1] {
		if slices.Contains(leftOutDirs, d) || strings.HasSuffix(d, ".egg-info") {
			return false
		}
	}
	return !slices.ContainsFunc(leftOutFiles, func(pattern string) bool {
		match, _ := path.Match(pattern, path.Base(name))
		return match
	})
}

// treeHash returns the MD5 of a tree in hexadecimal: for each file, sorted by the bytes of its path,
// the path and then the content.
func treeHash(files map[string][]byte) string {
	h := md5.New()
	for _, name := range slices.Sorted(maps.Keys(files)) {
		io.WriteString(h, name)
		h.Write(files[name])
	}
	return hex.EncodeToString(h.Sum(nil))
}

// commitHash matches a clean version. result.Version returns a commit, "commit (checkout)" if the
// binary has no stamp and ran in a checkout, or "commit+dirty".
var commitHash = regexp.MustCompile(`^[0-9a-f]{40}$`)

// revision returns the commit that measured all results. The error says why there is no such commit.
func (s *Submission) revision() (string, error) {
	// One run measures all ranks and options with one binary. Two runs may have two binaries.
	versions := make(map[string]string)
	for _, f := range s.tree.Files {
		versions[f.Result.Environment.Version] = f.Path
	}
	if len(versions) > 1 {
		return "", fmt.Errorf("the results come from %d versions of kvbench (%s), and an image "+
			"has one", len(versions), strings.Join(slices.Sorted(maps.Keys(versions)), ", "))
	}
	for v := range versions {
		rev := strings.TrimSuffix(v, " (checkout)")
		switch {
		case v == result.UnknownVersion:
			return "", errors.New("the binary that measured does not know its revision; " +
				result.VersionRemedy)
		case strings.HasSuffix(rev, "+dirty"):
			return "", fmt.Errorf("the results were measured with version %q, a checkout with "+
				"changes; measure with a clean one", v)
		case !commitHash.MatchString(rev):
			return "", fmt.Errorf("the results were measured with version %q, which is no commit; "+
				result.VersionRemedy, v)
		}
		return rev, nil
	}
	return "", errors.New("there is no result")
}

// code reads the source at the measured commit from the git repository Code. It calls git archive,
// which ignores changes in the working tree. The hash leaves out symbolic links.
func (s *Submission) code(rev string) (files map[string][]byte, _ *codeHash, err error) {
	var archive, errs bytes.Buffer
	git := exec.Command("git", "-C", s.Code, "archive", "--format=tar", rev)
	git.Stdout, git.Stderr = &archive, &errs
	if err := git.Run(); err != nil {
		return nil, nil, fmt.Errorf("git archive %s in %s: %w: %s", rev, s.Code, err,
			strings.TrimSpace(errs.String()))
	}
	files = make(map[string][]byte)
	for r := tar.NewReader(&archive); ; {
		head, err := r.Next()
		if err == io.EOF {
			break
		} else if err != nil {
			return nil, nil, fmt.Errorf("git archive %s in %s: %w", rev, s.Code, err)
		}
		// Skip directories, which the files' paths name, and the pax header, which has the commit.
		if head.Typeflag != tar.TypeReg || !inImage(head.Name) {
			continue
		}
		if files[head.Name], err = io.ReadAll(r); err != nil {
			return nil, nil, fmt.Errorf("git archive %s in %s: %w", rev, s.Code, err)
		}
	}
	return files, &codeHash{Hash: treeHash(files), Algorithm: hashAlgorithm,
		CapturedAt: s.now().UTC().Format(time.RFC3339), Version: "kvbench " + rev,
		GitSHA: rev}, nil
}

// addCode adds the code image where the layout has it and returns its path. Runs of both
// divisions refer to an image by its hash (CHECK-01 to CHECK-04). Without -code, a missing image is no
// error: place then has the reason and the command that makes the image.
func (s *Submission) addCode(out *output) (place string) {
	rev, err := s.revision()
	var files map[string][]byte
	var hash *codeHash
	remedy := "" // empty if the revision is not known: no checkout has it
	if err == nil {
		files, hash, err = s.code(rev)
		remedy = fmt.Sprintf(".\n%13sThe same command with another -o and -code CHECKOUT, a git "+
			"repository of kvbench that has the commit measured, makes it", "")
	}
	if err != nil {
		// If the user named -code, an error is an error. The default, the working directory, may be
		// none.
		if s.Code != defaultCode {
			out.err = fmt.Errorf("-code: %w", err)
		}
		return fmt.Sprintf("missing: %v%s", err, remedy)
	}
	s.image = hash.Algorithm + ":" + hash.Hash
	in := strings.NewReplacer("D", s.Division, "O", s.Organisation, "S", s.System, "H", hash.Hash[:8])
	image := in.Replace(s.layout.image)
	if s.Division == result.DivisionOpen && s.layout.open != "" {
		image = in.Replace(s.layout.open)
	}
	if s.layout.marker != "" { // if it is missing, the checker assumes an interrupted migration
		out.add(in.Replace(s.layout.marker), fmt.Appendf(nil,
			"mlpstorage_version=%s\nmigration_completed_at=%s\n", hash.Version, hash.CapturedAt), nil)
	}
	// File modes are lost: the hash covers only paths and contents.
	for name, data := range files {
		out.add(path.Join(image, name), data, nil)
	}
	text, err := json.MarshalIndent(hash, "", "  ")
	out.add(path.Join(image, ".code-hash.json"), append(text, '\n'), err)
	return fmt.Sprintf("%s (%d files of commit %.12s)", filepath.Join(s.Out, image), len(files),
		hash.GitSHA)
}
