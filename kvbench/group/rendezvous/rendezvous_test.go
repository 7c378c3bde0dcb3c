package rendezvous

import (
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// meet lets two ends say something to each other.
func meet(t *testing.T, p Place) net.Listener {
	l, err := p.Listen()
	require.NoError(t, err)
	t.Cleanup(func() { _ = l.Close() })
	for attempt := range 3 {
		came := make(chan net.Conn, 1)
		go func() {
			conn, _ := l.Accept()
			came <- conn
		}()
		near, err := p.Dial(t.Context(), attempt)
		require.NoError(t, err)
		far := <-came
		require.NotNil(t, far)
		_, err = near.Write([]byte("x"))
		require.NoError(t, err)
		n, err := far.Read(make([]byte, 2))
		assert.Equal(t, 1, n)
		assert.NoError(t, err)
		_, _ = near.Close(), far.Close()
	}
	return l
}

func TestPlaces(t *testing.T) {
	dir := t.TempDir()
	in := In(filepath.Join(dir, "a", "b"), "Open MPI 7")
	for _, p := range []Place{{TCP, freeAddress(t)}, OnHost(t.Name() + dir), in} {
		l := meet(t, p)
		assert.NoError(t, l.Close())
		_, err := p.Dial(t.Context(), 0)
		assert.Error(t, err, "nobody is there any more")
	}
	left, err := os.ReadDir(dir)
	assert.NoError(t, err)
	assert.Empty(t, left)
	assert.Equal(t, ".kvbench-rendezvous-Open_MPI_7-", filepath.Base(in.Address)[:31])
	assert.Equal(t, ".kvbench-rendezvous", filepath.Base(In(dir, "").Address))
}

func freeAddress(t *testing.T) string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	return l.Addr().String()
}

// A job's second start finds what the first has left.
func TestAnOldFile(t *testing.T) {
	p := In(t.TempDir(), "j")
	require.NoError(t, os.WriteFile(p.Address, []byte(heading+"127.0.0.1:1\n"), 0o644))
	_, err := p.Dial(t.Context(), 0)
	assert.Error(t, err)
	l := meet(t, p)
	l.(interface{ Forget() }).Forget()
	assert.NoFileExists(t, p.Address)
	assert.NoError(t, l.Close())
}

// A file that is not the rank's own is neither written over nor removed.
func TestAFileOfSomebodyElse(t *testing.T) {
	p := In(t.TempDir(), "j")
	require.NoError(t, os.WriteFile(p.Address, []byte("127.0.0.1:1\n"), 0o644))
	_, err := p.Listen()
	assert.ErrorContains(t, err, p.Address+" where the other ranks find this one: there is a file")
	text, err := os.ReadFile(p.Address)
	require.NoError(t, err)
	assert.Equal(t, "127.0.0.1:1\n", string(text))

	require.NoError(t, os.Remove(p.Address))
	l := meet(t, p)
	require.NoError(t, os.WriteFile(p.Address, []byte("notes"), 0o644))
	require.NoError(t, l.Close())
	assert.FileExists(t, p.Address)
	left, err := os.ReadDir(filepath.Dir(p.Address))
	require.NoError(t, err)
	assert.Len(t, left, 1)
}

func TestNames(t *testing.T) {
	assert.Equal(t, "4711.0", plain("4711.0"))
	assert.Regexp(t, `^_.._etc_passwd-[0-9a-f]{8}$`, plain("/../etc/passwd"))
	assert.NotEqual(t, plain("a b"), plain("a/b"))
	long := plain(strings.Repeat("x", 1000))
	assert.Len(t, long, longest+9)
	assert.Equal(t, "a:1", Place{TCP, "a:1"}.String())
}

// FuzzParseAddresses: whoever wrote the file, nothing but addresses comes out of it.
func FuzzParseAddresses(f *testing.F) {
	f.Add("10.0.0.1:7717\n[::1]:2\n")
	f.Add("localhost:1\n-oProxyCommand=x\n1.2.3.4:99999\n\x00")
	f.Fuzz(func(t *testing.T, text string) {
		list := parseAddresses(text)
		if len(list) > mostAddresses {
			t.Fatal(len(list))
		}
		for _, a := range list {
			host, _, err := net.SplitHostPort(a)
			if err != nil || net.ParseIP(strings.Split(host, "%")[0]) == nil {
				t.Fatalf("%q of %q", a, text)
			}
		}
	})
}
