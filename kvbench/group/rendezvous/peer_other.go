//go:build !linux

package rendezvous

import (
	"net"
	"os"
	"path/filepath"
)

// socketName is that of a file, which the listener removes.
func socketName(name string) string { return filepath.Join(os.TempDir(), name) }

// ours leaves it to the permissions of the directory of this user's temporary files.
func ours(net.Conn) error { return nil }
