package endpoint

import (
	"cmp"
	"fmt"
	"strings"
)

// Source is where the endpoints of a run came from.
type Source struct {
	URLs []string
	// From names what said so: "-s3-endpoint", a variable, or "the region" where nobody did.
	From string
	// Ignored are variables that are set too, and do not count.
	Ignored []string
}

// sources are the environment's, in their order. The first five are those of the Python benchmark
// and of the SDKs; how a value is read is said beside it, because each has its own form there.
var sources = []struct {
	name string
	file bool // it holds the path of a file of URLs
}{
	{"S3_ENDPOINT_URIS", false},
	{"S3_ENDPOINT_TEMPLATE", false},
	{"S3_ENDPOINT_FILE", true},
	{"AWS_ENDPOINT_URL_S3", false},
	{"AWS_ENDPOINT_URL", false},
	{"S3_ENDPOINT", false},
}

// Find returns all endpoints of the first source that says anything: given, which is the flag's
// value, then the environment's, then Amazon's of the region. A source that is wrong is an error:
// to take the next one would measure another store than the one that was meant.
func Find(given, region string, getenv func(string) string) (s Source, err error) {
	// Spaces are what a shell script leaves around a value, and a variable that is set to nothing
	// is not set: both are so with the SDKs, too.
	text := strings.TrimSpace(given)
	if text != "" {
		s.From = "-s3-endpoint"
	}
	file := false
	for _, source := range sources {
		value := strings.TrimSpace(getenv(source.name))
		switch {
		case value == "":
		case text != "":
			s.Ignored = append(s.Ignored, source.name)
		default:
			text, s.From, file = value, source.name, source.file
		}
	}
	switch {
	case text == "":
		s.From = "the region"
		s.URLs, err = Parse("https://s3." + region + ".amazonaws.com")
	case file:
		s.URLs, err = ReadFile(cmp.Or(strings.TrimPrefix(text, FilePrefix), text))
	default: // ranges are read wherever a URL may stand: the Python benchmark's template has one
		s.URLs, err = Parse(text)
	}
	if err != nil {
		return s, fmt.Errorf("%s: %w", s.From, err)
	}
	return s, nil
}
