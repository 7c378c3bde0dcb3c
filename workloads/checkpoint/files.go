package checkpoint

import "fmt"

// Spec is a checkpoint: a model on a number of accelerators, with file sizes divided by a scale.
type Spec struct {
	Model
	// Accelerators is the number of accelerators that write and read. If there are fewer than the model
	// has, they are the model's first accelerators. If there are more, they are further data-parallel
	// groups.
	Accelerators int
	// Scale divides the size of every file; 1 = the exact bytes.
	Scale int64
	// Stream, if not 0, is the bytes of the only file: one stream without a model.
	Stream int64
}

// StreamKey is the key and the name of a stream, in place of a model's.
const StreamKey = "stream"

// NewStream returns a checkpoint of one file, which one accelerator writes and reads.
func NewStream(bytes int64) (Spec, error) {
	if bytes < 1 {
		return Spec{}, fmt.Errorf("a stream of %d bytes: need at least 1", bytes)
	}
	return Spec{Model: Model{Key: StreamKey, Name: StreamKey, Tensor: 1, Pipeline: 1, Data: 1},
		Accelerators: 1, Scale: 1, Stream: bytes}, nil
}

// MaxScale is the largest Spec.Scale. With it the files of the smallest model have two pages each.
const MaxScale = 65536

// blockBytes is a divisor of the size of every scaled file, so that direct I/O needs no padding.
const blockBytes = 4096

// File is one file of a checkpoint.
type File struct {
	Name  string
	Bytes int64
}

// New returns a checkpoint. If accelerators is 0, it has the model's own number. scale is 1 to MaxScale.
func New(m Model, accelerators int, scale int64) (Spec, error) {
	s := Spec{Model: m, Accelerators: accelerators, Scale: scale}
	if accelerators == 0 {
		s.Accelerators = m.Accelerators()
	}
	if n := s.Accelerators; n < 1 || n > m.Accelerators() && n%m.Group() != 0 {
		return s, fmt.Errorf("%d accelerators for %s: need 1 to %d, or a multiple of %d (TP %d × PP %d)",
			accelerators, m.Name, m.Accelerators(), m.Group(), m.Tensor, m.Pipeline)
	}
	return s, nil
}

// Data returns the number of data-parallel groups. A subset of the accelerators keeps the model's
// number, because its files are files of the whole checkpoint. More accelerators form more groups.
func (s Spec) Data() int { return max(s.Model.Data, s.Accelerators/s.Group()) }

// Subset reports whether accelerators of the model are missing, so that the files are no whole model.
func (s Spec) Subset() bool { return s.Accelerators < s.Model.Accelerators() }

// Files returns the files of one accelerator, numbered from 0, in the order in which it writes them,
// one at a time.
func (s Spec) Files(accelerator int) (list []File) {
	if s.Stream > 0 {
		return []File{{"stream.bin", s.Stream}}
	}
	group := s.Group()
	pp, dp, mp := accelerator/s.Tensor%s.Pipeline, accelerator/group, accelerator%group
	add := func(bytes int64, format string, args ...any) {
		list = append(list, File{fmt.Sprintf(format, args...), s.scaled(bytes)})
	}
	layers := s.stage(int64(pp))
	switch {
	case s.Zero == 3:
		var sum int64
		for _, layer := range layers {
			sum += s.layerBytes(layer, int64(s.Data()))
		}
		add(sum, "zero_pp_rank_%d_mp_rank_%d_model_states.pt", dp, mp)
	case dp == 0: // the other groups have the same parameters
		for _, layer := range layers {
			add(s.layerBytes(layer, 1), "layer_%d-model_%d_model_states.pt", layer, mp)
		}
	}
	add(s.optimizerBytes(s.Data()), "zero_pp_rank_%d_mp_rank_%d_optim_states.pt", dp, mp)
	return list
}

// scaled returns the size of a file at the checkpoint's scale. bytes is its full size.
func (s Spec) scaled(bytes int64) int64 {
	if s.Scale == 1 {
		return bytes
	}
	up := func(n, by int64) int64 { return (n + by - 1) / by }
	return up(up(bytes, s.Scale), blockBytes) * blockBytes
}

// Totals returns the number and the total bytes of the files of all accelerators.
func (s Spec) Totals() (files int, bytes int64) {
	for a := range s.Accelerators {
		for _, f := range s.Files(a) {
			files++
			bytes += f.Bytes
		}
	}
	return files, bytes
}

// Pattern returns a regular expression for the paths of the files of all numbered checkpoints of a
// model, on any number of accelerators. A path is a directory as of Step and a file name as of Files.
func (m Model) Pattern() string {
	names := `layer_[0-9]+-model_[0-9]+_model_states\.pt|zero_pp_rank_[0-9]+_mp_rank_[0-9]+_optim_states\.pt`
	switch {
	case m.Key == StreamKey:
		names = `stream\.bin`
	case m.Zero == 3:
		names = `zero_pp_rank_[0-9]+_mp_rank_[0-9]+_(?:model|optim)_states\.pt`
	}
	return `global_epoch1_step[1-9][0-9]*/(?:` + names + `)`
}

// Step returns the directory of the n-th checkpoint, from 1, with the reference's name.
func Step(number int) string { return fmt.Sprintf("global_epoch1_step%d", number) }

// Folder returns the directory of all checkpoints of a model.
func (m Model) Folder() string { return "ckpt_" + m.Key }
