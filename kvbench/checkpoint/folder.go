package checkpoint

import (
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"

	"kvbench/tiers"
	"kvbench/tiers/workdir"
	files "kvbench/workloads/checkpoint"
)

// contents is the content of the marker in ckpt_<model>. It determines the names and the content of
// all files. Other files there are not the suite's.
type contents struct {
	Model        string `json:"model"`
	Accelerators int    `json:"accelerators"`
	Scale        int64  `json:"scale"`
	Steps        int    `json:"steps"` // that the run may make
	Nonce        string `json:"nonce"` // of the bytes, hexadecimal
	Stream       int64  `json:"stream,omitempty"`

	// Set when all are written: the number of the last, how many exist, and the wall-clock times at
	// which the writing of the first began and of the last ended.
	Last  int        `json:"last,omitempty"`
	Kept  int        `json:"kept,omitempty"`
	Begun *time.Time `json:"begun,omitempty"`
	Ended *time.Time `json:"ended,omitempty"`
}

// spec is the checkpoint in the marker.
func (c contents) spec() (files.Spec, error) {
	if c.Model == files.StreamKey {
		return files.NewStream(c.Stream)
	}
	m, err := files.Find(c.Model)
	if err != nil {
		return files.Spec{}, err
	}
	return files.New(m, c.Accelerators, c.Scale)
}

// String distinguishes it from others, for people.
func (c contents) String() string {
	if c.Stream > 0 {
		return fmt.Sprintf("a stream of %d bytes", c.Stream)
	}
	return fmt.Sprintf("%s on %d accelerators at a scale of 1/%d", c.Model, c.Accelerators, c.Scale)
}

// Folder is the work directory of a run that writes checkpoints or reads existing ones.
//
// A run that writes removes the files of an earlier run. A run that reads changes nothing, and
// refuses a directory without the requested checkpoint. All ranks of a run work in one.
func Folder(s files.Spec, steps int, nonce [16]byte, read bool, rank int) *workdir.Folder {
	mine := contents{Model: s.Key, Accelerators: s.Accelerators, Scale: s.Scale, Steps: steps,
		Stream: s.Stream, Nonce: hex.EncodeToString(nonce[:])}
	text, _ := json.Marshal(mine) // it is plain data
	// Also files of a run that was killed before its marker was complete.
	own := newNames(s, steps, rank)
	return &workdir.Folder{Name: s.Folder(), Files: own, Contents: text,
		Recall: func(old json.RawMessage) (workdir.Names, bool, error) {
			var found contents
			spec, err := files.Spec{}, json.Unmarshal(old, &found)
			if err == nil {
				spec, err = found.spec()
			}
			switch {
			case read && err != nil:
				return nil, false, fmt.Errorf("there is no checkpoint to read: run it with "+
					"-checkpoint-writes first, and -checkpoint-reads 0 (%w)", err)
			case read && (found.Model != mine.Model || found.Scale != mine.Scale ||
				found.Accelerators != mine.Accelerators || found.Stream != mine.Stream):
				return nil, false, fmt.Errorf("there are checkpoints of %s, not of %s: give the "+
					"same parameters", found, mine)
			case read && found.Ended == nil:
				return nil, false, fmt.Errorf("the run that wrote the checkpoints there did not " +
					"come to its end: write them again")
			case err != nil:
				return own, false, nil // all that is known
			}
			return newNames(spec, found.Steps, rank), read, nil
		}}
}

// names are the names of all files of some checkpoints: in memory one set, whatever the steps.
type names struct {
	steps int
	files map[string]bool
	probe string
}

var _ workdir.Names = names{}

// probe is the name of the file with which a rank's tier tests the filesystem.
const probe = ".kvbench-probe-"

func newNames(s files.Spec, steps, rank int) names {
	n := names{steps: steps, files: make(map[string]bool), probe: probe + strconv.Itoa(rank)}
	for a := range s.Accelerators {
		for _, f := range s.Files(a) {
			n.files[f.Name] = true
		}
	}
	return n
}

// Of implements workdir.Names: the key of an object is its path.
func (n names) Of(o tiers.Object) (dir, file string) {
	if dir, file, ok := strings.Cut(o.Key, "/"); ok {
		return dir, file
	}
	// A tier's test file is in the directory of the files.
	return files.Step(1), n.probe
}

// Dir implements workdir.Names.
func (n names) Dir(name string) bool {
	// Compared with what Step makes: Sscanf alone takes 01 and 1x for 1.
	var step int
	_, err := fmt.Sscanf(name, files.Step(0)[:len(files.Step(0))-1]+"%d", &step)
	return err == nil && step >= 1 && step <= max(n.steps, 1) && name == files.Step(step)
}

// File implements workdir.Names.
func (n names) File(_, name string) bool {
	rank, is := strings.CutPrefix(name, probe)
	number, err := strconv.Atoi(rank) // compared again: it takes +1 and 01, too
	return n.files[name] || is && err == nil && number >= 0 && strconv.Itoa(number) == rank
}

// object returns a numbered file of the checkpoint for tiers and content: its bytes follow from the
// nonce.
func object(step int, f files.File) tiers.Object {
	return tiers.Object{Key: files.Step(step) + "/" + f.Name, Size: f.Bytes}
}
