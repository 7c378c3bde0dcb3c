package endpoint

import (
	"cmp"
	"fmt"
	"strings"
)

// Source is where the endpoints of a run came from.
type Source struct {
	URLs    []string
	From    string   // "-s3-endpoint", the name of a variable, or "the region" without either
	Ignored []string // variables that are set, too, and do not count
}

// sources are the environment's, in their order: the variables of the Python benchmark and of the
// SDKs.
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

// Find returns all endpoints of the first source with a value: given, which is the flag's, then the
// environment, then Amazon's endpoint of the region. A wrong value is an error: the next source
// would be another store than the one that was meant.
func Find(given, region string, getenv func(string) string) (s Source, err error) {
	// As in the SDKs, spaces around a value do not count, and an empty variable is not set.
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
	default: // with ranges: the template of the Python benchmark has one
		s.URLs, err = Parse(text)
	}
	if err != nil {
		return s, fmt.Errorf("%s: %w", s.From, err)
	}
	return s, nil
}
