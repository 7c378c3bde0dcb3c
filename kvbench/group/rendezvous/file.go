package rendezvous

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
)

// written is a listener whose addresses stand in a file.
type written struct {
	net.Listener
	path string
	text string   // what stands in the file, "" before it does
	made []string // directories, the innermost first
}

// heading is the first line of a file of addresses. Whoever reads skips it, as it is none.
const heading = "# kvbench: where rank 0 waits for the others\n"

// Close removes the file, too, and the directories that were made for it.
func (w *written) Close() error {
	w.Forget()
	return w.Listener.Close()
}

// Forget removes the file: all are there. One that says something else is somebody else's.
func (w *written) Forget() {
	if text, err := os.ReadFile(w.path); err == nil && w.text != "" && string(text) == w.text {
		_ = os.Remove(w.path)
	}
	for _, dir := range w.made {
		_ = os.Remove(dir) // stays where somebody has used it
	}
	w.made = nil
}

// listenAndWrite listens on all interfaces and any port. The file appears as a whole.
func (p Place) listenAndWrite() (_ net.Listener, err error) {
	w := &written{path: p.Address}
	// Whoever reads of it wants to know how to do without a directory that all share.
	fail := func(err error) error {
		return fmt.Errorf("saying in %s where the other ranks find this one: %w (give "+
			"-rendezvous HOST:PORT)", p.Address, err)
	}
	// What a run that was killed has left is of no use to anybody; anything else may be.
	old, err := readSome(p.Address)
	switch {
	case errors.Is(err, os.ErrNotExist):
	case err != nil:
		return nil, fail(err)
	case !strings.HasPrefix(string(old), heading):
		return nil, fail(errors.New("there is a file of that name already, which no run of this " +
			"program has made"))
	}
	var missing []string
	for dir := filepath.Dir(p.Address); ; dir = filepath.Dir(dir) {
		if _, err := os.Stat(dir); !errors.Is(err, os.ErrNotExist) {
			break
		}
		missing = append(missing, dir)
	}
	if err := os.MkdirAll(filepath.Dir(p.Address), 0o777); err != nil {
		return nil, fail(err)
	}
	w.made = missing
	defer func() {
		if err != nil {
			w.Forget()
		}
	}()
	if w.Listener, err = net.Listen("tcp", ":0"); err != nil {
		return nil, fail(err)
	}
	// A reader must never see half of an address: 10.0.0.1 of 10.0.0.17 is somebody's, too.
	f, err := os.CreateTemp(filepath.Dir(p.Address), filepath.Base(p.Address)+"-")
	if err != nil {
		return nil, fail(errors.Join(err, w.Listener.Close()))
	}
	w.text = heading + strings.Join(addresses(w.Addr()), "\n") + "\n"
	_, err = f.WriteString(w.text)
	err = errors.Join(err, f.Chmod(0o644), f.Close())
	if err == nil {
		err = os.Rename(f.Name(), p.Address)
	}
	if err != nil {
		return nil, fail(errors.Join(err, os.Remove(f.Name()), w.Listener.Close()))
	}
	return w, nil
}

// addresses are those by which others may reach a listener on all interfaces. The loopback comes
// last: on another host it is that host's.
func addresses(at net.Addr) []string {
	port := at.(*net.TCPAddr).AddrPort().Port()
	list, _ := net.InterfaceAddrs()
	var far, near []string
	for _, a := range list {
		prefix, err := netip.ParsePrefix(a.String())
		ip := prefix.Addr()
		switch text := netip.AddrPortFrom(ip, port).String(); {
		case err != nil || ip.IsLinkLocalUnicast(): // which needs the name of an interface
		case ip.IsLoopback():
			near = append(near, text)
		default:
			far = append(far, text)
		}
	}
	return append(far, near...)
}

// mostAddresses are read of a file, whoever has written it.
const mostAddresses = 64

// parseAddresses takes what is an address and a port, and no name, which would be looked up.
func parseAddresses(text string) (list []string) {
	for line := range strings.Lines(text) {
		at, err := netip.ParseAddrPort(strings.TrimSpace(line))
		if err == nil && len(list) < mostAddresses {
			list = append(list, at.String())
		}
	}
	return list
}

// readSome reads what addresses can take, and no more of what somebody may have put there.
func readSome(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, mostAddresses*64))
}

func (p Place) dialWritten(ctx context.Context, attempt int) (net.Conn, error) {
	text, err := readSome(p.Address)
	if err != nil {
		return nil, fmt.Errorf("rank 0 has not written where it is: %w (if the ranks of other "+
			"hosts do not see this directory, give -rendezvous HOST:PORT)", err)
	}
	list := parseAddresses(string(text))
	if len(list) == 0 {
		return nil, fmt.Errorf("%s holds no address", p.Address)
	}
	var errs []error
	var d net.Dialer
	for i := range list {
		conn, err := d.DialContext(ctx, "tcp", list[(attempt+i)%len(list)])
		if err == nil {
			return conn, nil
		}
		errs = append(errs, err)
	}
	return nil, errors.Join(errs...)
}
