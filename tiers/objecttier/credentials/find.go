package credentials

import (
	"bufio"
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"unicode"
)

// Credentials are a key id with its secret, and a token where they are temporary. The zero value
// is nobody: requests are not signed.
type Credentials struct {
	ID     string // of the key; Masked shows it
	Secret Secret
	Token  Secret
	From   string // "AWS_ACCESS_KEY_ID", or the profile and its file
}

// String says whose they are, and where they come from.
func (c Credentials) String() string {
	if c.ID == "" {
		return "anonymous"
	}
	text := fmt.Sprintf("key %s (%s), secret %s", Masked(c.ID), c.From, c.Secret)
	if c.Token.Set() {
		text += ", token " + c.Token.String()
	}
	return text
}

// GoString is what %#v shows.
func (c Credentials) GoString() string { return c.String() }

// Filter takes the secrets out of texts.
func (c Credentials) Filter() *Filter { return NewFilter(c.Secret, c.Token) }

// The variables, and the keys of the files.
const (
	varID     = "AWS_ACCESS_KEY_ID"
	varSecret = "AWS_SECRET_ACCESS_KEY"
	varToken  = "AWS_SESSION_TOKEN"
	keyID     = "aws_access_key_id"
	keySecret = "aws_secret_access_key"
	keyToken  = "aws_session_token"
)

// Find returns the credentials of the environment: the variables if one of them is set, else those
// of AWS_PROFILE ("default" where it is not set) in AWS_SHARED_CREDENTIALS_FILE
// (~/.aws/credentials) and AWS_CONFIG_FILE (~/.aws/config), in this order. Programs that files name
// are not run, and no metadata service is asked. None at all and half of a pair are errors: a
// library that goes on would send requests that are not signed, and show "access denied" for a
// forgotten variable.
func Find(getenv func(string) string) (c Credentials, err error) {
	if getenv(varID)+getenv(varSecret) != "" {
		c, err = pair(getenv(varID), getenv(varSecret), getenv(varToken), varID, varSecret)
		c.From = varID
		return c, err
	}
	profile := cmp.Or(getenv("AWS_PROFILE"), "default")
	home := getenv("HOME")
	var tried []string
	for _, f := range []struct{ variable, usual, section string }{
		{"AWS_SHARED_CREDENTIALS_FILE", ".aws/credentials", profile},
		{"AWS_CONFIG_FILE", ".aws/config", "profile " + profile},
	} {
		path := cmp.Or(getenv(f.variable), filepath.Join(home, f.usual))
		text, err := os.ReadFile(path)
		switch {
		case errors.Is(err, fs.ErrNotExist) && getenv(f.variable) == "":
			tried = append(tried, path+" does not exist")
			continue
		case err != nil:
			return c, fmt.Errorf("%s: %w", f.variable, err)
		}
		sections := parse(text)
		values, there := sections[f.section]
		if f.section == "profile default" && !there { // the only one without its first word
			values, there = sections["default"]
		}
		where := fmt.Sprintf("profile %s of %s", profile, path)
		switch {
		case !there:
			tried = append(tried, fmt.Sprintf("%s has no profile %s", path, profile))
			continue
		case values[keyID]+values[keySecret] == "":
			tried = append(tried, where+" has no keys"+others(values))
			continue
		}
		c, err = pair(values[keyID], values[keySecret], values[keyToken],
			where+": "+keyID, where+": "+keySecret)
		c.From = where
		return c, err
	}
	return c, fmt.Errorf("no keys: set %s and %s, or AWS_PROFILE to a profile with keys, or give "+
		"-s3-anonymous for requests that are not signed (%s)", varID, varSecret,
		strings.Join(tried, "; "))
}

// others says how a profile without keys gets its own, which this suite does not.
func others(values map[string]string) string {
	for _, key := range []string{"credential_process", "sso_session", "sso_start_url", "role_arn",
		"credential_source", "web_identity_token_file"} {
		if values[key] != "" {
			return fmt.Sprintf(" but %s, which is not followed: export keys, as with aws "+
				"configure export-credentials --format env", key)
		}
	}
	return ""
}

// pair checks keys that stand together. Their errors name where they stand, and never a value.
func pair(id, secret, token, nameID, nameSecret string) (c Credentials, err error) {
	for _, half := range []struct{ has, lacks, name, missing string }{
		{id, secret, nameID, nameSecret}, {secret, id, nameSecret, nameID},
	} {
		if half.has != "" && half.lacks == "" {
			return c, fmt.Errorf("%s is set and %s is not: both are needed", half.name,
				half.missing)
		}
	}
	odd := func(r rune) bool { return unicode.IsSpace(r) || unicode.IsControl(r) }
	for name, value := range map[string]string{nameID: id, nameSecret: secret, varToken: token} {
		if i := strings.IndexFunc(value, odd); i >= 0 {
			return c, fmt.Errorf("%s has a space or a line break at character %d of %d, which no "+
				"key has: is it copied right?", name, i+1, len(value))
		}
	}
	return Credentials{ID: id, Secret: NewSecret(secret), Token: NewSecret(token)}, nil
}

// parse reads an AWS file: sections in brackets, key = value in lines, and lines that begin with #
// or ; as comments. Everything else, the indented lines of nested settings included, is somebody
// else's and skipped. Of what stands twice the last counts, as the SDKs have it.
func parse(text []byte) map[string]map[string]string {
	sections := map[string]map[string]string{}
	var values map[string]string // nil before the first section
	lines := bufio.NewScanner(bytes.NewReader(text))
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		line := lines.Text()
		nested := line != "" && (line[0] == ' ' || line[0] == '\t')
		line = strings.TrimSpace(line)
		switch {
		case line == "" || line[0] == '#' || line[0] == ';' || nested:
		case line[0] == '[':
			name, _, closed := strings.Cut(line[1:], "]")
			if !closed {
				values = nil
				continue
			}
			name = strings.Join(strings.Fields(name), " ")
			if values = sections[name]; values == nil {
				values = map[string]string{}
				sections[name] = values
			}
		default:
			key, value, found := strings.Cut(line, "=")
			if found && values != nil {
				values[strings.ToLower(strings.TrimSpace(key))] = strings.TrimSpace(value)
			}
		}
	}
	return sections
}
