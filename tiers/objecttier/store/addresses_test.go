package store

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestParse(t *testing.T) {
	for text, want := range map[string]string{
		"http://a":                                 "http://a",
		" http://A:9000/ , https://b ":             "http://a:9000 https://b",
		"http://10.0.0.{5...8}:9000":               "http://10.0.0.5:9000 http://10.0.0.6:9000 http://10.0.0.7:9000 http://10.0.0.8:9000",
		"http://n{08...11}":                        "http://n08 http://n09 http://n10 http://n11",
		"http://n{0...2}":                          "http://n0 http://n1 http://n2",
		"http://r{1...2}n{1...2}":                  "http://r1n1 http://r1n2 http://r2n1 http://r2n2",
		"http://h:900{0...1},https://h:900{0...1}": "http://h:9000 http://h:9001 https://h:9000 https://h:9001",
		"http://[::1]:9000":                        "http://[::1]:9000",
		"http://[fd00::{1...2}]:9000":              "http://[fd00::1]:9000 http://[fd00::2]:9000",
		"http://n{3...3}":                          "http://n3",
	} {
		got, err := parse(text)
		require.NoError(t, err, text)
		assert.Equal(t, want, strings.Join(got, " "), text)
	}
}

func TestWhatIsNoEndpointIsToldWithItsPlace(t *testing.T) {
	for text, want := range map[string]string{
		"":                                   "URL 1 (): must begin with http://",
		"a:9000":                             "must begin with http:// or https://",
		"10.0.0.1:9000":                      "URL 1 (10.0.0.1:9000)",
		"ftp://a":                            "must begin with http:// or https://",
		"http://a,,http://b":                 "URL 2 ()",
		"http://a,b":                         "URL 2 (b): must begin with http:// or https://",
		"http://":                            "names no host",
		"http://a/bucket":                    "bucket and prefix belong into -cache-dir s3://BUCKET/PREFIX",
		"http://a?x=y":                       "must end behind host and port",
		"http://a#x":                         "must end behind host and port",
		"http://u:geheim@a":                  "must not hold user:password@",
		"http://a:0":                         "a port outside of 1…65535",
		"http://a:65536":                     "a port outside of 1…65535",
		"http://a:":                          "a port outside of 1…65535",
		"http://a{1..4}":                     "not of a range: write two whole numbers",
		"http://a{1,4}":                      "not of a range",
		"http://a{4...1}":                    "{4...1} falls: write {1...4}",
		"http://a{x...y}":                    "not of a range",
		"http://a{-1...2}":                   "not of a range",
		"http://a{1...2":                     "not of a range",
		"http://a1...2}":                     "not of a range",
		"http://a{1...257}":                  "there are more than 256 endpoints",
		"http://a{1...16}b{1...17}":          "there are more than 256 endpoints",
		"http://a{0...99999999999999999999}": "not of a range",
		"http://a,http://A":                  "URL 2 (http://A): the same as URL 1",
		"http://a{1...2},http://a2":          "URL 2 (http://a2): the same as URL 1",
		"http://a b":                         "is no",
	} {
		_, err := parse(text)
		assert.ErrorContains(t, err, want, text)
		assert.NotContains(t, err.Error(), "geheim")
	}
	_, err := parse("x,y")
	assert.ErrorContains(t, err, "URL 1 (x)")
	assert.ErrorContains(t, err, "URL 2 (y)", "all at once")
}

func TestAFileHasAURLALine(t *testing.T) {
	path := filepath.Join(t.TempDir(), "endpoints")
	write := func(text string) { require.NoError(t, os.WriteFile(path, []byte(text), 0o600)) }
	write("# the rack\n\nhttp://a{1...2}:9000  # two of them\r\n\thttps://b\n")
	got, err := parse("file:" + path)
	require.NoError(t, err)
	assert.Equal(t, []string{"http://a1:9000", "http://a2:9000", "https://b"}, got)
	write("http://a\nb\nhttp://c/d\n")
	_, err = parse("file:" + path)
	assert.ErrorContains(t, err, path)
	assert.ErrorContains(t, err, "line 2 (b)")
	assert.ErrorContains(t, err, "line 3 (http://c/d)")
	write("# nothing\n")
	_, err = parse("file:" + path)
	assert.ErrorContains(t, err, "no URL in it")
	_, err = parse("file:" + path + ".none")
	assert.ErrorContains(t, err, path+".none")
}

// Parsing the result of Parse again changes nothing.
func FuzzParse(f *testing.F) {
	for _, text := range []string{"http://a{1...4}:9000,https://b", "http://u:p@h", "http://[::1]",
		"http://n{08...11}", "{{}}", "http://a{1..4}"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if strings.HasPrefix(strings.TrimSpace(text), filePrefix) {
			return
		}
		urls, err := parse(text)
		if err != nil {
			return
		}
		assert.NotEmpty(t, urls)
		assert.LessOrEqual(t, len(urls), mostEndpoints)
		again, err := parse(strings.Join(urls, ","))
		require.NoError(t, err)
		assert.Equal(t, urls, again)
	})
}

func TestTheFirstSourceCountsWithAllItsURLs(t *testing.T) {
	path := filepath.Join(t.TempDir(), "endpoints")
	require.NoError(t, os.WriteFile(path, []byte("http://f1\nhttp://f2\n"), 0o600))
	env := map[string]string{}
	find := func(given string) (Source, error) {
		return FindEndpoints(given, "eu-west-1", func(name string) string { return env[name] })
	}
	s, err := find("")
	require.NoError(t, err)
	assert.Equal(t, Source{URLs: []string{"https://s3.eu-west-1.amazonaws.com"},
		From: "the region"}, s)
	// The sources from the last to the first: each source that is set replaces those after it.
	for i, c := range []struct{ name, value, want string }{
		{"S3_ENDPOINT", "http://e", "http://e"},
		{"AWS_ENDPOINT_URL", "http://d{1...2}", "http://d1 http://d2"},
		{"AWS_ENDPOINT_URL_S3", "http://c", "http://c"},
		{"S3_ENDPOINT_FILE", path, "http://f1 http://f2"},
		{"S3_ENDPOINT_TEMPLATE", "http://b{1...3}", "http://b1 http://b2 http://b3"},
		{"S3_ENDPOINT_URIS", "http://a1,http://a2", "http://a1 http://a2"},
	} {
		env[c.name] = c.value
		s, err := find("")
		require.NoError(t, err)
		assert.Equal(t, c.name, s.From)
		assert.Equal(t, c.want, strings.Join(s.URLs, " "))
		assert.Len(t, s.Ignored, i)
	}
	s, err = find("http://flag")
	require.NoError(t, err)
	assert.Equal(t, "-s3-endpoint", s.From)
	assert.Len(t, s.Ignored, 6)
	env["S3_ENDPOINT_URIS"] = "http://a1,a2"
	_, err = find("")
	assert.ErrorContains(t, err, "S3_ENDPOINT_URIS: URL 2 (a2)", "the next source does not count")
}
