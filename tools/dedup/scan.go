package dedup

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"sync"
	"syscall"

	"github.com/klauspost/compress/zstd"
	"golang.org/x/sys/unix"

	"kvbench/kvbench/units"
)

// part is the number of bytes that are compressed together. Compared with one stream per file this
// loses only the redundancy between parts.
const part = 4 << 20

// SchemaVersion of the JSON. Readers accept any 2.x.
const SchemaVersion = "2.0"

// Report is the result of a scan.
type Report struct {
	SchemaVersion string `json:"schema_version"`
	Files         int64  `json:"files"`
	Bytes         int64  `json:"bytes"`
	// The last block of a file is padded with zeros.
	BlockBytes int64 `json:"block_bytes"`
	Blocks     int64 `json:"blocks"`
	ZeroBlocks int64 `json:"zero_blocks"`
	// Bytes in holes, which have no data on the device. They are not read and in no other number.
	HoleBytes int64 `json:"hole_bytes,omitempty"`

	DuplicateBlocks float64 `json:"duplicate_blocks"` // number of blocks that equal an earlier block
	DuplicateShare  float64 `json:"duplicate_share"`
	PlusMinusShare  float64 `json:"duplicate_share_plus_minus"` // half of the 95 % interval; 0: exact
	SampledOneIn    int64   `json:"sampled_one_in"`             // 1: all distinct blocks were kept

	ZstdBytes int64    `json:"zstd_bytes"`
	ZstdRatio float64  `json:"zstd_ratio"` // compressed ÷ original, level 1
	Problems  []string `json:"problems"`   // errors of files that could not be read
}

// Scan reads all files at and below the paths. It adds a file that it cannot read to Problems and
// continues. Below a path it does not follow links. It reads a file with several hard links once. block is
// the block size of deduplication in bytes, for which CheckBlock returns nil. kept is the largest number of
// distinct blocks in memory.
func Scan(paths []string, block int64, kept int) (Report, error) {
	// Level 1 of zstd also shrinks data without matches whose bytes are not uniform, such as float16.
	enc, err := zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedFastest),
		zstd.WithAllLitEntropyCompression(true), zstd.WithEncoderConcurrency(runtime.GOMAXPROCS(0)))
	if err != nil {
		return Report{}, fmt.Errorf("start the compressor: %w", err)
	}
	defer func() { _ = enc.Close() }()
	s := &scanner{enc: enc, block: block, count: newCounter(kept), parts: make(chan []byte),
		free: make(chan []byte, 2*runtime.GOMAXPROCS(0)), met: make(map[fileID]bool)}
	for range cap(s.free) {
		s.free <- make([]byte, part)
	}
	var workers sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		workers.Go(s.work)
	}
	for _, path := range paths {
		s.path(path)
	}
	close(s.parts)
	workers.Wait()
	return s.report(), nil
}

// fileID identifies a file with all its hard links.
type fileID struct{ device, inode uint64 }

// scanner is the state of one Scan. It reads one file at a time, in parts that all processors process.
type scanner struct {
	enc   *zstd.Encoder
	block int64       // bytes
	parts chan []byte // parts to be processed
	free  chan []byte // free buffers, which bound the memory
	met   map[fileID]bool
	files int64
	bytes int64
	holes int64 // bytes
	bad   []string

	mu     sync.Mutex
	count  *counter
	packed int64
}

// problem adds an error to the report.
func (s *scanner) problem(err error) { s.bad = append(s.bad, err.Error()) }

// path reads the files at and below a path, which may be a link.
func (s *scanner) path(path string) {
	root, err := filepath.EvalSymlinks(path)
	if err != nil {
		s.problem(err)
		return
	}
	_ = filepath.WalkDir(root, func(name string, d fs.DirEntry, err error) error {
		var info fs.FileInfo
		if err == nil && d.Type().IsRegular() {
			info, err = d.Info()
		}
		if err != nil {
			s.problem(err)
		} else if info != nil {
			s.file(name, info)
		}
		return nil
	})
}

// file reads a file, unless it was read under another name.
func (s *scanner) file(path string, info fs.FileInfo) {
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		id := fileID{uint64(st.Dev), st.Ino}
		if s.met[id] {
			return
		}
		s.met[id] = true
	}
	f, err := os.Open(path)
	if err != nil {
		s.problem(err)
		return
	}
	defer f.Close()
	s.files++
	for at := int64(0); at < info.Size(); {
		from, to := data(f, at, info.Size())
		// Whole blocks: the zeros of a hole that a block has are read.
		from, to = from/s.block*s.block, min((to+s.block-1)/s.block*s.block, info.Size())
		s.holes += from - at
		if err := s.extent(f, from, to); err != nil {
			s.problem(err)
			return
		}
		at = to
	}
}

// data returns the next range of a file with data. Holes and unwritten extents take no space, and their
// zeros would count as duplicates. A filesystem without SEEK_DATA has data everywhere.
func data(f *os.File, at, size int64) (from, to int64) {
	from, err := f.Seek(at, unix.SEEK_DATA)
	if errors.Is(err, syscall.ENXIO) {
		return size, size
	} else if err != nil {
		return at, size
	}
	if to, err = f.Seek(from, unix.SEEK_HOLE); err != nil {
		to = size
	}
	return from, min(to, size)
}

// extent reads a range of a file and passes it to the workers in parts.
func (s *scanner) extent(f *os.File, from, to int64) (err error) {
	r := io.NewSectionReader(f, from, to-from)
	for err == nil {
		buf, n := <-s.free, 0
		n, err = io.ReadFull(r, buf[:part])
		s.bytes += int64(n)
		s.parts <- buf[:n] // may be empty
	}
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return nil
	}
	return err
}

// work hashes and compresses parts until there are no more.
func (s *scanner) work() {
	var packed []byte
	var hashes []uint64
	for buf := range s.parts {
		packed = s.enc.EncodeAll(buf, packed[:0])
		var zeros int64
		hashes, zeros = hashBlocks(buf, s.block, hashes[:0])
		s.mu.Lock()
		s.packed += int64(len(packed))
		s.count.zero += zeros
		for _, h := range hashes {
			s.count.add(h)
		}
		s.mu.Unlock()
		s.free <- buf[:part]
	}
}

var zeroBlock [MaxBlock]byte

// hashBlocks appends the hashes of all blocks except blocks of zeros, which it counts. It pads the last
// block with zeros.
func hashBlocks(data []byte, block int64, hashes []uint64) (_ []uint64, zeros int64) {
	for b := range slices.Chunk(data, int(block)) {
		if missing := int(block) - len(b); missing > 0 {
			b = append(b, zeroBlock[:missing]...) // a copy: chunks have no capacity left
		}
		if bytes.Equal(b, zeroBlock[:block]) { // arrays store no blocks of zeros
			zeros++
			continue
		}
		sum := sha256.Sum256(b)
		hashes = append(hashes, binary.LittleEndian.Uint64(sum[:8]))
	}
	return hashes, zeros
}

// report returns the report of the scan.
func (s *scanner) report() Report {
	r := Report{SchemaVersion: SchemaVersion, Files: s.files, Bytes: s.bytes, HoleBytes: s.holes,
		BlockBytes: s.block, ZeroBlocks: s.count.zero, Blocks: s.count.total + s.count.zero,
		SampledOneIn: 1 << s.count.shift, ZstdBytes: s.packed,
		Problems: append([]string{}, s.bad...)}
	var plusMinus float64
	r.DuplicateBlocks, plusMinus = s.count.duplicates()
	if r.Blocks > 0 {
		r.DuplicateShare = r.DuplicateBlocks / float64(r.Blocks)
		r.PlusMinusShare = plusMinus / float64(r.Blocks)
		r.ZstdRatio = float64(r.ZstdBytes) / float64(r.Bytes)
	}
	return r
}

// Text is the report as text.
func (r Report) Text() string {
	// Exact if all distinct blocks were kept.
	duplicates := fmt.Sprintf("%.0f (%.2f %%)", r.DuplicateBlocks, 100*r.DuplicateShare)
	if r.SampledOneIn > 1 {
		duplicates = fmt.Sprintf("about %.0f (%.2f ± %.2f %%, estimated from one distinct block "+
			"in %d)", r.DuplicateBlocks, 100*r.DuplicateShare, 100*r.PlusMinusShare, r.SampledOneIn)
	}
	left := float64(r.Bytes) * (1 - r.DuplicateShare)
	size := units.Bytes.InOneUnit(r.Bytes, left, r.ZstdBytes, r.HoleBytes)
	text := fmt.Sprintf(`files             %d, %s in %d blocks of %s, %d of them all zero
duplicate blocks  %s
deduplicated      %s
zstd -1           %s, ratio %.2f
`, r.Files, size(r.Bytes), r.Blocks, units.Bytes.Text(r.BlockBytes), r.ZeroBlocks, duplicates, size(left), size(r.ZstdBytes),
		r.ZstdRatio)
	if r.HoleBytes > 0 {
		text += fmt.Sprintf("holes             %s, in none of these numbers\n", size(r.HoleBytes))
	}
	return text
}
