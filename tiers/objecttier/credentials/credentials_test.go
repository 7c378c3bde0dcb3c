package credentials

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"gopkg.in/yaml.v3"
)

// secretOf is one of any length, no eight characters of which occur in it twice or in usual texts.
func secretOf(n int) string {
	var b strings.Builder
	for i := 0; b.Len() < n; i++ {
		fmt.Fprintf(&b, "%xQ/z+%d", i*7919, i)
	}
	return b.String()[:n]
}

// leaks says whether eight characters of the secret are in the text.
func leaks(text, secret string) bool {
	n := min(gram, len(secret))
	for i := range len(secret) - n + 1 {
		if strings.Contains(text, secret[i:i+n]) {
			return true
		}
	}
	return false
}

func TestASecretIsNowhereToBeSeen(t *testing.T) {
	for _, n := range []int{1, 3, 8, 40, 1000} {
		text := secretOf(n)
		c := Credentials{ID: "AKIAIOSFODNN7EXAMPLE", Secret: NewSecret(text),
			Token: NewSecret(text + "t"), From: "test"}
		all := struct {
			C Credentials
			P *Credentials
			S Secret
			L []Secret
			M map[string]Secret
		}{c, &c, c.Secret, []Secret{c.Secret}, map[string]Secret{"x": c.Secret}}
		asJSON, err := json.Marshal(all)
		require.NoError(t, err)
		asYAML, err := yaml.Marshal(all.S)
		require.NoError(t, err)
		shown := []string{string(asJSON), string(asYAML), fmt.Sprint(all), c.Secret.String(),
			fmt.Errorf("x: %w", errors.New(c.Secret.String())).Error()}
		for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%d", "%10s"} {
			shown = append(shown, fmt.Sprintf(verb, c), fmt.Sprintf(verb, &c),
				fmt.Sprintf(verb, c.Secret), fmt.Sprintf(verb, all))
		}
		for _, s := range shown {
			if n >= gram {
				assert.False(t, leaks(s, text), "%d: %s", n, s)
				assert.NotContains(t, s, fmt.Sprintf("%x", text[:gram]))
			}
		}
		assert.Equal(t, text, c.Secret.Reveal())
	}
	assert.Equal(t, "set, 40 characters", NewSecret(secretOf(40)).String())
	assert.Equal(t, "not set", Secret{}.String())
	assert.Equal(t, "AKIA****MPLE", Masked("AKIAIOSFODNN7EXAMPLE"))
	assert.Equal(t, "****", Masked("minio12"))
	assert.Equal(t, "anonymous", Credentials{}.String())
}

func TestAFilterTakesSecretsOutOfTexts(t *testing.T) {
	for _, n := range []int{2, 8, 40, 1000} {
		secret := secretOf(n)
		f := NewFilter(NewSecret(secret), Secret{})
		for _, text := range []string{secret, "a " + secret + " b", secret + secret,
			"x" + secret[:min(8, n)] + "y", secret[n-min(8, n):]} {
			assert.False(t, leaks(f.Text(text), secret), "%d: %s", n, f.Text(text))
		}
		assert.Equal(t, "a **** b", f.Text("a "+secret+" b"))
		assert.Equal(t, "nothing to see here", f.Text("nothing to see here"))
	}
	f := NewFilter()
	for text, want := range map[string]string{
		"Authorization: AWS4-HMAC-SHA256 Credential=AK/x/s3, SignedHeaders=host, Signature=0abc": "Authorization: AWS4-HMAC-SHA256 ****, SignedHeaders=host, Signature=****",
		"authorization=Bearer abc.def x":                                   "authorization=Bearer **** x",
		"GET http://h/b?X-Amz-Credential=AK%2F2026&X-Amz-Signature=12&x=1": "GET http://h/b?X-Amz-Credential=****&X-Amz-Signature=****&x=1",
		`"X-Amz-Security-Token":["FwoG"]`:                                  `"X-Amz-Security-Token":["****"]`,
		"x-amz-security-token: FwoGZXIvYXdzE and more":                     "x-amz-security-token: **** and more",
	} {
		assert.Equal(t, want, f.Text(text))
	}
	secret := secretOf(40)
	f = NewFilter(NewSecret(secret))
	err := f.Error(fmt.Errorf("signing with %s: %w", secret, io.ErrUnexpectedEOF))
	assert.Equal(t, "signing with ****: unexpected EOF", err.Error())
	assert.ErrorIs(t, err, io.ErrUnexpectedEOF)
	_, as := errors.AsType[*os.PathError](f.Error(fmt.Errorf("%s %w", secret, &os.PathError{
		Op: "open", Path: "x", Err: os.ErrNotExist})))
	assert.True(t, as)
	assert.Same(t, io.EOF, f.Error(io.EOF), "what is clean stays as it is")
	assert.NoError(t, f.Error(nil))
}

func TestVariablesComeBeforeProfiles(t *testing.T) {
	home := t.TempDir()
	require.NoError(t, os.Mkdir(filepath.Join(home, ".aws"), 0o700))
	put := func(name, text string) string {
		path := filepath.Join(home, name)
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
		return path
	}
	env := map[string]string{"HOME": home}
	find := func() (Credentials, error) { return Find(func(n string) string { return env[n] }) }
	fails := func(want string) {
		t.Helper()
		_, err := find()
		assert.ErrorContains(t, err, want)
	}
	gets := func(id, secret, token, from string) {
		t.Helper()
		c, err := find()
		require.NoError(t, err)
		assert.Equal(t, []string{id, secret, token}, []string{c.ID, c.Secret.Reveal(),
			c.Token.Reveal()})
		assert.Contains(t, c.From, from)
	}
	fails("no keys: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY")
	fails(".aws/credentials does not exist")
	put(".aws/config", "[default]\nregion = eu\naws_access_key_id=C\naws_secret_access_key=D\n"+
		"[profile  sso]\nsso_session = x\ns3 =\n  aws_access_key_id = nested\n"+
		"[profile both]\naws_access_key_id=E\naws_secret_access_key=F\n")
	gets("C", "D", "", "profile default of "+home+"/.aws/config")
	put(".aws/credentials", "# mine\n\n[default]\naws_access_key_id = A\n"+
		"AWS_SECRET_ACCESS_KEY = B=/+ \naws_session_token = T\n[half]\naws_access_key_id = A\n"+
		"[open\naws_access_key_id = Z\n")
	gets("A", "B=/+", "T", "profile default of "+home+"/.aws/credentials")
	env["AWS_PROFILE"] = "both"
	gets("E", "F", "", "profile both of "+home+"/.aws/config")
	env["AWS_PROFILE"] = "sso"
	fails("has no keys but sso_session, which is not followed")
	env["AWS_PROFILE"] = "half"
	fails("aws_access_key_id is set and profile half")
	env["AWS_PROFILE"] = "none"
	fails("has no profile none")
	env["AWS_SHARED_CREDENTIALS_FILE"] = home + "/elsewhere"
	fails("AWS_SHARED_CREDENTIALS_FILE: open " + home + "/elsewhere")
	env["AWS_SHARED_CREDENTIALS_FILE"] = put("mine", "[none]\naws_access_key_id=G\n"+
		"aws_secret_access_key=H\n")
	gets("G", "H", "", "/mine")
	env["AWS_ACCESS_KEY_ID"] = "I"
	fails("AWS_ACCESS_KEY_ID is set and AWS_SECRET_ACCESS_KEY is not")
	env["AWS_SECRET_ACCESS_KEY"] = "J\n"
	fails("AWS_SECRET_ACCESS_KEY has a space or a line break at character 2 of 2")
	env["AWS_SECRET_ACCESS_KEY"] = "J"
	gets("I", "J", "", "AWS_ACCESS_KEY_ID")
	env["AWS_ACCESS_KEY_ID"] = ""
	fails("AWS_SECRET_ACCESS_KEY is set and AWS_ACCESS_KEY_ID is not")
}

// No text makes the reader panic, and what it has read is in the text.
func FuzzParse(f *testing.F) {
	f.Add([]byte("[default]\naws_access_key_id = A\n#x\n[profile b]\n k = v\n"))
	f.Add([]byte("[\n=\n]\n[a]=b"))
	f.Fuzz(func(t *testing.T, text []byte) {
		for _, values := range parse(text) {
			for _, v := range values {
				assert.Contains(t, string(text), v)
			}
		}
	})
}

// Whatever stands around a secret, nothing of it is left. A secret with a star in it is passed
// over: beside what was there before, the mask itself would look like a part of it.
func FuzzFilter(f *testing.F) {
	f.Add("Signature=", "x", "abcdefgh12345678")
	f.Fuzz(func(t *testing.T, before, after, secret string) {
		if len(secret) < gram || strings.Contains(secret, "*") {
			return
		}
		text := NewFilter(NewSecret(secret)).Text(before + secret + after)
		assert.False(t, leaks(text, secret), text)
	})
}
