package checkpoint

import (
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"

	"kvbench/tiers"
	"kvbench/tiers/workdir"
	files "kvbench/workloads/checkpoint"
)

// contents is the content of the marker in ckpt_<model>. It determines the names and the content of
// the checkpoints that a run may read.
type contents struct {
	Model        string `json:"model"`
	Accelerators int    `json:"accelerators"`
	Scale        int64  `json:"scale"`
	Nonce        string `json:"nonce"` // hexadecimal seed of the bytes
	Stream       int64  `json:"stream,omitempty"`

	// Set when all checkpoints are written: the number of the last checkpoint, how many exist, and the
	// wall-clock times of the start of the first and the end of the last.
	Last  int        `json:"last,omitempty"`
	Kept  int        `json:"kept,omitempty"`
	Begun *time.Time `json:"begun,omitempty"`
	Ended *time.Time `json:"ended,omitempty"`
}

// String returns a short description for messages.
func (c contents) String() string {
	if c.Stream > 0 {
		return fmt.Sprintf("a stream of %d bytes", c.Stream)
	}
	return fmt.Sprintf("%s on %d accelerators at a scale of 1/%d", c.Model, c.Accelerators, c.Scale)
}

// Folder is the work directory of a run that writes checkpoints or reads existing ones.
//
// A run that writes removes the files of an earlier run. A run that reads changes nothing, and refuses a
// directory without the requested checkpoint. All ranks of a run share the directory.
func Folder(s files.Spec, nonce [16]byte, read bool, rank int) *workdir.Folder {
	wanted := contents{Model: s.Key, Accelerators: s.Accelerators, Scale: s.Scale, Stream: s.Stream,
		Nonce: hex.EncodeToString(nonce[:])}
	text, _ := json.Marshal(wanted) // cannot fail
	f := &workdir.Folder{Name: s.Folder(), Files: newNames(s, rank), Contents: text}
	if read {
		f.Check = wanted.check
	}
	return f
}

// check returns an error if the marker of an earlier run has other checkpoints than wanted.
func (wanted contents) check(marker json.RawMessage) error {
	var found contents
	switch err := json.Unmarshal(marker, &found); {
	case err != nil || found.Model == "":
		return errors.New("there is no checkpoint to read: run it with -checkpoint-writes first, " +
			"and -checkpoint-reads 0")
	case found.Model != wanted.Model || found.Scale != wanted.Scale ||
		found.Accelerators != wanted.Accelerators || found.Stream != wanted.Stream:
		return fmt.Errorf("there are checkpoints of %s, not of %s: give the same parameters", found,
			wanted)
	case found.Ended == nil:
		return errors.New("the run that wrote the checkpoints there did not come to its end: write " +
			"them again")
	}
	return nil
}

// names maps objects to the file names of a model's checkpoints.
type names struct {
	rank  int
	paths *regexp.Regexp
}

var _ workdir.Names = names{}

// probe is the name of the file with which a rank's tier tests the filesystem.
const probe = ".kvbench-probe-"

func newNames(s files.Spec, rank int) names {
	return names{rank, regexp.MustCompile(`^(?:` + s.Pattern() + `|` + files.Step(1) + `/` +
		regexp.QuoteMeta(probe) + `[0-9]+)$`)}
}

// Of implements workdir.Names: the key of an object is its path.
func (n names) Of(o tiers.Object) (dir, file string) {
	if dir, file, ok := strings.Cut(o.Key, "/"); ok {
		return dir, file
	}
	// A tier's test file is in the directory of the files.
	return files.Step(1), probe + strconv.Itoa(n.rank)
}

// Match implements workdir.Names.
func (n names) Match(path string) bool { return n.paths.MatchString(path) }

// object returns the object of a file of checkpoint number step. The nonce and the key determine its
// bytes.
func object(step int, f files.File) tiers.Object {
	return tiers.Object{Key: files.Step(step) + "/" + f.Name, Size: f.Bytes}
}
