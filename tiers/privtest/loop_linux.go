package privtest

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// Loop is a mounted filesystem on a loop device.
type Loop struct {
	Dir          string // where it is mounted
	Name         string // kernel name of the loop device: loop3
	Path         string // its node: /dev/loop3
	Major, Minor uint32
	BackingFile  string
	// Memory is the tmpfs that holds the blocks, each from its first write on. If it is full, writes
	// fail: with EIO on a device that has a Server, else with ENOSPC.
	Memory string
	Server *Server // nil if the kernel itself reads and writes the backing file
}

// tmpfsSlack is additional space in MiB for files other than the backing file.
const tmpfsSlack = 4

// LoopFS mounts a new filesystem of sizeMiB on a loop device over a file in its own tmpfs, until the end of the
// test. The device is as fast as memory, so that a test measures the program and not a disk, or as slow as
// opt.Times.
func LoopFS(t testing.TB, sizeMiB int, opt LoopOptions) *Loop {
	t.Helper()
	base := newBase(t)
	l, err := build(base, sizeMiB, opt)
	if errors.Is(err, unix.ENODEV) {
		t.Skipf("this kernel does not have the filesystem: %v", err)
	}
	Need(t, err)
	return l
}

// newBase makes the directory of a test filesystem. The end of the test dismantles it.
func newBase(t testing.TB) (base string) {
	t.Helper()
	Root(t)
	reclaim()
	base, err := os.MkdirTemp("", ownPrefix())
	Need(t, err)
	t.Cleanup(func() {
		if err := dismantle(base); err != nil {
			t.Errorf("clean up the test filesystem: %v", err)
		}
	})
	for _, dir := range []string{memory(base), served(base), mounted(base)} {
		Need(t, os.Mkdir(dir, 0o755))
	}
	return base
}

// The parts of a test filesystem below its base directory.
func memory(base string) string  { return filepath.Join(base, "memory") }
func served(base string) string  { return filepath.Join(base, "served") }
func mounted(base string) string { return filepath.Join(base, "mnt") }

// build makes a filesystem below base. The backing file is in its own tmpfs, so that a test fills neither
// the machine's disk nor another test's.
func build(base string, sizeMiB int, opt LoopOptions) (*Loop, error) {
	if err := unix.Mount("tmpfs", memory(base), "tmpfs", 0,
		fmt.Sprintf("size=%dm", sizeMiB+tmpfsSlack)); err != nil {
		return nil, fmt.Errorf("mount a tmpfs: %w", err)
	}
	l := &Loop{Dir: mounted(base), BackingFile: filepath.Join(memory(base), "disk"),
		Memory: memory(base)}
	if err := os.WriteFile(l.BackingFile, nil, 0o600); err != nil {
		return nil, err
	}
	if err := os.Truncate(l.BackingFile, int64(sizeMiB)<<20); err != nil {
		return nil, err
	}
	// Format the file and not the device, which may be slow.
	if _, err := output("mkfs."+opt.kind(), append(opt.format(), l.BackingFile)...); err != nil {
		return nil, err
	}
	if opt.Times != (Times{}) || opt.CanHang {
		server, err := startFuse(base, true, opt.Times)
		if err != nil {
			return nil, err
		}
		l.BackingFile, l.Server = filepath.Join(served(base), "disk"), server
	}
	if err := l.attach(opt); err != nil {
		return nil, err
	}
	options := cmp.Or(opt.Mount, "nodiscard")
	if opt.Discard {
		options = "discard"
	}
	if err := unix.Mount(l.Path, l.Dir, opt.kind(), unix.MS_NOATIME, options); err != nil {
		return nil, fmt.Errorf("mount %s as %s: %w", l.Path, opt.kind(), err)
	}
	return l, nil
}

func (opt LoopOptions) kind() string { return cmp.Or(opt.Type, "ext4") }

// format returns the arguments of mkfs. Lazy initialisation would write in the background while a test counts
// bytes.
func (opt LoopOptions) format() (args []string) {
	if opt.kind() != "ext4" {
		return []string{"-q", "-f"}
	}
	args = []string{"-q", "-F", "-m", "0", "-E", "lazy_itable_init=0,lazy_journal_init=0"}
	if opt.NoJournal {
		args = append(args, "-O", "^has_journal")
	}
	if opt.BlockBytes > 0 {
		args = append(args, "-b", strconv.Itoa(opt.BlockBytes))
	}
	return args
}

// attach finds a free loop device. The losetup command retries when another process takes the same
// one.
func (l *Loop) attach(opt LoopOptions) error {
	losetup := func(args ...string) (string, error) {
		if opt.SectorBytes > 0 {
			args = append(args, "--sector-size", strconv.Itoa(opt.SectorBytes))
		}
		return output("losetup", append(args, "--find", "--show", l.BackingFile)...)
	}
	var path string
	err := errors.ErrUnsupported
	if opt.DirectIO || opt.PreferDirectIO {
		path, err = losetup("--direct-io=on")
	}
	if err != nil && !opt.DirectIO {
		path, err = losetup()
	}
	if err != nil {
		return err
	}
	l.Path, l.Name = path, filepath.Base(path)
	var st unix.Stat_t
	if err := unix.Stat(path, &st); err != nil {
		return fmt.Errorf("stat %s: %w", path, err)
	}
	l.Major, l.Minor = unix.Major(st.Rdev), unix.Minor(st.Rdev)
	if dio := readLine(filepath.Join("/sys/block", l.Name, "loop/dio")); opt.DirectIO &&
		dio != "1" {
		return errors.New("this kernel's tmpfs refuses direct I/O of loop devices (Linux 6.6 has " +
			"it)")
	}
	return nil
}

// Remount makes the filesystem read-only or writable again, while it is in use.
func (l *Loop) Remount(t testing.TB, readOnly bool) {
	t.Helper()
	flags := uintptr(unix.MS_REMOUNT | unix.MS_NOATIME)
	if readOnly {
		flags |= unix.MS_RDONLY
	}
	if err := unix.Mount(l.Path, l.Dir, "ext4", flags, ""); err != nil {
		t.Fatalf("remount %s: %v", l.Dir, err)
	}
}

// dismantle removes a test filesystem in any state: half built, in use, or partly removed. A mount in use
// is detached now and removed after its last user.
func dismantle(base string) error {
	errs := []error{unmount(mounted(base))}
	for _, name := range loopsIn(base) {
		_, err := output("losetup", "--detach", "/dev/"+name)
		errs = append(errs, err)
	}
	errs = append(errs, unmount(served(base)), unmount(memory(base)))
	if err := errors.Join(errs...); err != nil {
		return err // and leave the directory: removing it could reach into a mount
	}
	return os.RemoveAll(base)
}

// unmount also detaches a mount in use: a test that does not close a file must not leave a mount.
func unmount(dir string) error {
	err := unix.Unmount(dir, 0)
	if err == unix.EBUSY {
		err = unix.Unmount(dir, unix.MNT_DETACH)
	}
	if err == nil || err == unix.EINVAL || err == unix.ENOENT { // EINVAL: nothing is mounted there
		return nil
	}
	return fmt.Errorf("unmount %s: %w", dir, err)
}

// loopsIn finds the loop devices whose file is below base, so that the test detaches no other.
func loopsIn(base string) []string {
	// The pattern is valid: no error possible.
	files, _ := filepath.Glob("/sys/block/loop*/loop/backing_file")
	var names []string
	for _, f := range files {
		if strings.HasPrefix(readLine(f), base+"/") {
			names = append(names, filepath.Base(filepath.Dir(filepath.Dir(f))))
		}
	}
	return names
}

func readLine(path string) string {
	text, err := os.ReadFile(path)
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(text))
}

// output runs a command and returns its output, or an error with its error messages.
func output(name string, args ...string) (string, error) {
	out, err := exec.Command(name, args...).CombinedOutput()
	text := strings.TrimSpace(string(out))
	if err != nil {
		return "", fmt.Errorf("%s %s: %w: %s", name, strings.Join(args, " "), err, text)
	}
	return text, nil
}
