package privtest

// LoopOptions of LoopFS; the zero value is an ext4 with its journal, through the page cache of the backing file.
type LoopOptions struct {
	// DirectIO lets the loop device read and write its file around the page cache. tmpfs supports that since Linux 6.6.
	DirectIO bool
	// PreferDirectIO is DirectIO where tmpfs supports it, and the page cache elsewhere.
	PreferDirectIO bool
	// NoJournal makes device writes countable: without a journal nothing is written that was not asked for.
	NoJournal bool
}

// Loop is a mounted filesystem on a loop device.
type Loop struct {
	Dir          string // where it is mounted
	Name         string // kernel name of the loop device: loop3
	Path         string // its node: /dev/loop3
	Major, Minor uint32
	BackingFile  string
}
