package testnet

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"time"
)

// Certificate is a server's certificate by an authority of its own, all in PEM. Any server can use
// it.
type Certificate struct {
	CA        []byte // the authority's certificate, which clients have to be given
	Cert, Key []byte // the server's
}

// NewCertificate makes a certificate for names and addresses that holds for a day, by the clock of
// the caller: in a bubble of testing/synctest that is the bubble's.
func NewCertificate(hosts ...string) (c Certificate, err error) {
	authority := x509.Certificate{SerialNumber: big.NewInt(1), IsCA: true,
		Subject: pkix.Name{CommonName: "test authority"}, BasicConstraintsValid: true,
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour),
		KeyUsage: x509.KeyUsageCertSign}
	// The authority signs itself, and the server's template is its own but for what it may do.
	server := authority
	server.SerialNumber, server.IsCA = big.NewInt(2), false
	server.Subject.CommonName, server.KeyUsage = "test server", x509.KeyUsageDigitalSignature
	server.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}
	for _, host := range hosts {
		if ip := net.ParseIP(host); ip != nil {
			server.IPAddresses = append(server.IPAddresses, ip)
		} else {
			server.DNSNames = append(server.DNSNames, host)
		}
	}
	caKey, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return c, err
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return c, err
	}
	sign := func(template x509.Certificate, of *ecdsa.PrivateKey) []byte {
		der, failed := x509.CreateCertificate(rand.Reader, &template, &authority, &of.PublicKey,
			caKey)
		if err == nil {
			err = failed
		}
		return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	}
	c.CA, c.Cert = sign(authority, caKey), sign(server, key)
	der, failed := x509.MarshalPKCS8PrivateKey(key)
	if err == nil {
		err = failed
	}
	c.Key = pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})
	return c, err
}

// Server is for the listener of a server.
func (c Certificate) Server() (*tls.Config, error) {
	pair, err := tls.X509KeyPair(c.Cert, c.Key)
	return &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12}, err
}

// Client is for the transport of one who trusts the authority.
func (c Certificate) Client() *tls.Config {
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(c.CA)
	return &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}
}
