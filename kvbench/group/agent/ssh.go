package agent

import (
	"bufio"
	"debug/elf"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"syscall"
	"time"
)

// standardIO in the variable says that the orders come on standard input.
const standardIO = "stdin"

// setup is the first line on the standard input of an agent on another host: its orders, and what
// it would have got as arguments and environment were it a child. Neither stands in an argument
// list, which everybody on a host may read.
type setup struct {
	Orders Orders   `json:"orders"`
	Args   []string `json:"args"`
	Env    []string `json:"env"`
}

// longestSetup is what an agent reads of it, in bytes.
const longestSetup = 1 << 20

// Shell is how a command is run on another host.
type Shell struct {
	Command []string // ssh and its options; host and command follow
	Binary  string   // the path of this program there; "" copies this one
}

// inherited are the variables that an agent on another host gets.
func inherited(env []string) (list []string) {
	for _, v := range env {
		for _, prefix := range []string{"AWS_", "S3_", "KVBENCH_"} {
			if strings.HasPrefix(v, prefix) && strings.Contains(v, "=") &&
				!strings.HasPrefix(v, Variable+"=") {
				list = append(list, v)
			}
		}
	}
	return list
}

// program is this one, also where its file was removed.
const program = "/proc/self/exe"

// Copyable says why this program cannot be copied to another host, nil if it can.
func Copyable() error {
	f, err := elf.Open(program)
	if err != nil {
		return fmt.Errorf("this program cannot be read: %w", err)
	}
	defer f.Close()
	for _, p := range f.Progs {
		if p.Type == elf.PT_INTERP {
			return errors.New("this program needs the libraries of this host (CGO_ENABLED=0 " +
				"builds one that does not)")
		}
	}
	return nil
}

// machines are what uname -m calls the architectures.
var machines = map[string]string{"amd64": "x86_64", "arm64": "aarch64"}

// copying is a script for the shell of another host: it takes its standard input for the program,
// says that it has it, and leaves what follows then to it: some commands (BusyBox's head) read more
// than they are asked for, and what they have read is lost. The program removes itself when it has
// begun, so that nothing is left of it however the run ends; what could not begin is removed here,
// also when the connection ends while it is copied (the shell dies of telling, SIGPIPE).
const copying = `case "$(uname -s) $(uname -m)" in "Linux %[2]s") ;; *) ` +
	`echo "this host is $(uname -s) $(uname -m), the program is for Linux %[2]s: ` +
	`make dist builds others, -remote-binary names one that is here" >&2; exit 1;; esac; ` +
	`umask 077; f=; trap 'rm -f "$f"; exit 1' HUP INT TERM PIPE; ` +
	`f=$(mktemp "${TMPDIR:-/tmp}/kvbench.XXXXXXXX") || exit 1; ` +
	`if head -c %[1]d >"$f" && chmod 700 "$f" && printf ` + copied + `; then ` + Variable + `=` +
	standardIO +
	`+remove "$f"; r=$?; else r=1; fi; rm -f "$f"; exit $r`

// copied is what a host says that has the program.
const copied = "+"

// Dial starts this program on another host with the orders. What it and the shell say goes to log,
// which stays the caller's. The connection is ready when the program is: say nothing before it has.
func (s Shell) Dial(host string, o Orders, log *os.File) (*Process, net.Conn, error) {
	fail := func(err error) (*Process, net.Conn, error) {
		return nil, nil, fmt.Errorf("starting rank %d on %s: %w", o.Rank, host, err)
	}
	first, err := json.Marshal(setup{o, os.Args[1:], inherited(os.Environ())})
	if err != nil {
		return fail(err)
	}
	// The other side's shell reads one text.
	command := "env " + Variable + "=" + standardIO + " " + Quoted(s.Binary)
	var image *os.File
	if s.Binary == "" {
		if image, err = os.Open(program); err != nil {
			return fail(err)
		}
		info, err := image.Stat()
		if err != nil {
			return fail(errors.Join(err, image.Close()))
		}
		command = "exec sh -c " + Quoted(fmt.Sprintf(copying, info.Size(),
			machines[runtime.GOARCH]))
	}
	ours, theirs, err := pair()
	if err != nil {
		return fail(err)
	}
	defer theirs.Close()
	p := &Process{what: fmt.Sprintf("rank %d on %s", o.Rank, host), ended: make(chan struct{}),
		log: log.Name()}
	p.cmd = exec.Command(s.Command[0], append(s.Command[1:len(s.Command):len(s.Command)], host,
		command)...)
	p.cmd.Stdin, p.cmd.Stdout, p.cmd.Stderr = theirs, theirs, log
	// Ctrl-C is for this process, which waits for what the ranks still have to say.
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := p.cmd.Start(); err != nil {
		return fail(errors.Join(err, ours.Close()))
	}
	go p.wait()
	return p, &started{Conn: ours, image: image, first: append(first, '\n'), to: p}, nil
}

// started is the way to a program that is to be copied, and to be told what it is to do, before
// anything else is heard of it.
type started struct {
	net.Conn
	image *os.File // nil if it is there
	first []byte   // nil when it was said
	err   error
	to    *Process
}

// Read says the first things before it hears any: an end of the other side then says why by itself.
func (s *started) Read(p []byte) (int, error) {
	if s.first != nil {
		_ = s.SetDeadline(time.Time{}) // however long a login and a copy take
		if s.image != nil {
			_, s.err = io.Copy(s.Conn, s.image)
			_ = s.image.Close()
			said := make([]byte, len(copied))
			if _, err := io.ReadFull(s.Conn, said); err != nil {
				s.err = err // whoever accepts it asks the shell why
			} else if string(said) != copied {
				s.err = fmt.Errorf("the shell there prints something before it runs a command (%q)",
					said)
			}
		}
		if s.err == nil {
			_, s.err = s.Conn.Write(s.first)
		}
		s.first = nil
	}
	if s.err != nil {
		return 0, s.err
	}
	// What comes over this way is the rank's: the shell has nothing more to say of a login.
	n, err := s.Conn.Read(p)
	if n > 0 {
		s.to.heard.Store(true)
	}
	return n, err
}

// Quoted is a text as one word of a shell.
func Quoted(text string) string { return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'" }

// takeRemote is Take on another host.
func takeRemote(removed bool) (*Orders, net.Conn, error) {
	if removed {
		if path, err := os.Executable(); err == nil {
			_ = os.Remove(path)
		}
	}
	for fd := range 2 {
		if err := syscall.SetNonblock(fd, true); err != nil {
			return nil, nil, fmt.Errorf("standard input and output of a rank: %w", err)
		}
	}
	c := &standard{in: os.NewFile(0, "coordinator"), out: os.NewFile(1, "coordinator")}
	s, err := readSetup(c.in)
	if err != nil {
		return nil, nil, err
	}
	for _, v := range s.Env {
		name, value, _ := strings.Cut(v, "=")
		if err := os.Setenv(name, value); err != nil {
			return nil, nil, err
		}
	}
	os.Args = append(os.Args[:1:1], s.Args...)
	// What this process prints must not get among what it says. The runtime closes the descriptor
	// of a file that nobody knows any more.
	c.kept, os.Stdout = os.Stdout, os.Stderr
	return &s.Orders, c, nil
}

// readSetup reads the first line, and nothing behind it.
func readSetup(r io.Reader) (s setup, err error) {
	// A byte at a time: what follows is not for this reader.
	line, err := bufio.NewReaderSize(io.LimitReader(oneByte{r}, longestSetup), 16).ReadBytes('\n')
	if err != nil {
		return s, fmt.Errorf("reading what this rank is to do: %w", err)
	}
	if err := json.Unmarshal(line, &s); err != nil {
		return s, fmt.Errorf("what this rank is to do is none of a coordinator's orders: %w", err)
	}
	s.Env = inherited(s.Env)
	return s, nil
}

type oneByte struct{ io.Reader }

func (r oneByte) Read(p []byte) (int, error) { return r.Reader.Read(p[:min(1, len(p))]) }

// standard is standard input and output as a connection.
type standard struct{ in, out, kept *os.File }

var _ net.Conn = (*standard)(nil)

func (s *standard) Read(p []byte) (int, error)  { return s.in.Read(p) }
func (s *standard) Write(p []byte) (int, error) { return s.out.Write(p) }
func (s *standard) Close() error                { return errors.Join(s.in.Close(), s.out.Close()) }

func (s *standard) SetReadDeadline(t time.Time) error  { return s.in.SetReadDeadline(t) }
func (s *standard) SetWriteDeadline(t time.Time) error { return s.out.SetWriteDeadline(t) }
func (s *standard) SetDeadline(t time.Time) error {
	return errors.Join(s.SetReadDeadline(t), s.SetWriteDeadline(t))
}
func (s *standard) LocalAddr() net.Addr  { return nowhere{} }
func (s *standard) RemoteAddr() net.Addr { return nowhere{} }

// nowhere is the address of what has none.
type nowhere struct{}

func (nowhere) Network() string { return "stdio" }
func (nowhere) String() string  { return "standard input and output" }
