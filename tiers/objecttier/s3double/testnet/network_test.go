package testnet

import (
	"context"
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// pair is the two ends of a connection.
func pair(t *testing.T) (client, server net.Conn, l net.Listener, n *Network) {
	n = &Network{}
	l, err := n.Listen("a:1")
	require.NoError(t, err)
	accepted := make(chan net.Conn)
	go func() {
		c, err := l.Accept()
		assert.NoError(t, err)
		accepted <- c
	}()
	client, err = n.DialContext(t.Context(), "tcp", "a:1")
	require.NoError(t, err)
	return client, <-accepted, l, n
}

func TestErrorsAreThoseOfSockets(t *testing.T) {
	client, server, l, n := pair(t)
	assert.EqualValues(t, 1, n.Dials())
	_, err := n.Listen("a:1")
	assert.ErrorIs(t, err, syscall.EADDRINUSE)
	_, err = n.DialContext(t.Context(), "tcp", "b:1")
	assert.ErrorIs(t, err, syscall.ECONNREFUSED)
	assert.EqualError(t, err, "dial tcp b:1: connect: connection refused")
	go func() { _, _ = client.Write([]byte("x")) }()
	b := make([]byte, 2)
	k, err := server.Read(b)
	require.NoError(t, err)
	assert.Equal(t, 1, k)

	require.NoError(t, server.Close())
	_, err = client.Read(b)
	assert.ErrorIs(t, err, io.EOF)
	_, err = client.Write(b)
	assert.ErrorIs(t, err, syscall.ECONNRESET)

	client, server, _, _ = pair(t)
	Reset(server)
	_, err = client.Read(b)
	assert.ErrorIs(t, err, syscall.ECONNRESET)

	require.NoError(t, l.Close())
	require.NoError(t, l.Close())
	_, err = l.Accept()
	assert.ErrorIs(t, err, net.ErrClosed)
	_, err = n.DialContext(t.Context(), "tcp", "a:1")
	assert.ErrorIs(t, err, syscall.ECONNREFUSED)
}

func TestTimePassesWhileTheNetworkWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client, server, l, n := pair(t)
		require.NoError(t, client.SetReadDeadline(time.Now().Add(time.Hour)))
		begun := time.Now()
		_, err := client.Read(make([]byte, 1))
		timeout, ok := err.(net.Error)
		require.True(t, ok)
		assert.True(t, timeout.Timeout())
		assert.Equal(t, time.Hour, time.Since(begun))
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		_, err = n.DialContext(ctx, "tcp", "a:1") // nobody accepts
		assert.ErrorIs(t, err, context.DeadlineExceeded)
		require.NoError(t, l.Close())
		require.NoError(t, client.Close())
		require.NoError(t, server.Close())
	})
}

func TestCertificatesAreTrustedByWhoKnowsTheAuthority(t *testing.T) {
	c, err := NewCertificate("127.0.0.1", "store.test")
	require.NoError(t, err)
	config, err := c.Server()
	require.NoError(t, err)
	l, err := tls.Listen("tcp", "127.0.0.1:0", config)
	require.NoError(t, err)
	server := &http.Server{Handler: http.NotFoundHandler()}
	go func() { assert.ErrorIs(t, server.Serve(l), http.ErrServerClosed) }()
	t.Cleanup(func() { require.NoError(t, server.Close()) })
	for name, want := range map[string]string{"127.0.0.1": "", "store.test": "",
		"other.test": "certificate is valid for store.test, not other.test"} {
		client := c.Client()
		client.ServerName = name
		conn, err := tls.Dial("tcp", l.Addr().String(), client)
		if want != "" {
			assert.ErrorContains(t, err, want)
			continue
		}
		require.NoError(t, err)
		require.NoError(t, conn.Close())
	}
}
