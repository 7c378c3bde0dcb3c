package store_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kvbench/tiers/objecttier/store"
)

func TestFindCredentials(t *testing.T) {
	home := t.TempDir()
	require.NoError(t, os.Mkdir(filepath.Join(home, ".aws"), 0o700))
	write := func(name, text string) {
		require.NoError(t, os.WriteFile(filepath.Join(home, ".aws", name), []byte(text), 0o600))
	}
	for _, name := range []string{"AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN",
		"AWS_ACCESS_KEY", "AWS_SECRET_KEY", "AWS_PROFILE", "AWS_SHARED_CREDENTIALS_FILE",
		"AWS_CONFIG_FILE", "AWS_ROLE_ARN", "AWS_WEB_IDENTITY_TOKEN_FILE"} {
		t.Setenv(name, "")
	}
	t.Setenv("HOME", home)
	t.Setenv("AWS_EC2_METADATA_DISABLED", "true")
	fails := func(want string) {
		t.Helper()
		_, err := store.FindCredentials()
		assert.ErrorContains(t, err, want)
	}
	gets := func(want ...string) {
		t.Helper()
		c, err := store.FindCredentials()
		require.NoError(t, err)
		v, err := c.GetWithContext(nil)
		require.NoError(t, err)
		assert.Equal(t, want, []string{v.AccessKeyID, v.SecretAccessKey, v.SessionToken})
	}
	fails("no keys: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY")
	write("credentials", "[default]\naws_access_key_id = A\n"+
		"aws_secret_access_key = B=/+ \naws_session_token = T\n[half]\naws_access_key_id = A\n")
	gets("A", "B=/+", "T")
	t.Setenv("AWS_PROFILE", "half")
	fails("partial static credentials")
	t.Setenv("AWS_ACCESS_KEY_ID", "I")
	fails("AWS_ACCESS_KEY_ID is set and AWS_SECRET_ACCESS_KEY is not")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "J\n")
	fails("AWS_SECRET_ACCESS_KEY has a space or a line break")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "J")
	gets("I", "J", "")
	t.Setenv("AWS_ACCESS_KEY_ID", "")
	fails("AWS_SECRET_ACCESS_KEY is set and AWS_ACCESS_KEY_ID is not")
}
